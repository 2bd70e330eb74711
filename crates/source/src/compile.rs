//! Configures and compiles a kernel in a build folder.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use pagetide_kernel::Digest;
use pagetide_outside::{FileOrigin, read_text};

use crate::config::{self, MAX_CONFIG_BYTES};
use crate::error::SourceError;
use crate::fault;
use crate::make::Make;
use crate::options::{Asked, Start};
use crate::series::Series;
use crate::step::{BuildStep, OnStep};
use crate::tree::{Files, MAX_NOTE_BYTES, Tree, write};

/// Minimum time between two progress reports.
pub(crate) const PACE: Duration = Duration::from_secs(5);

/// Name of a file in the build folder that exists once the folder is configured. It contains a digest of the options
/// and the changed Kconfig files.
pub(crate) const CONFIGURED: &str = "configured";

/// A source in the cache, locked and ready to be patched and built.
pub(crate) struct OpenSource {
    pub tree: Tree,
    /// Source with its version, such as `debian:6.12 6.12.117-1~deb12u1`, or the name of a git tree with its commit.
    pub id: String,
}

/// All inputs of the build of one kernel.
pub(crate) struct Job {
    /// Description of the kernel: its source and the subject lines of its patches.
    pub what: String,
    pub opened: OpenSource,
    pub series: Series,
    /// Content of the files in which the kernel differs from its source.
    pub files: Files,
    pub asked: Asked,
}

/// Configures the build folder. Does nothing if it is already configured with the same options and Kconfig files. Fails
/// if make fails, or if an option of the user is not taken.
pub(crate) fn configure(make: &Make, folder: &Path, job: &Job) -> Result<(), SourceError> {
    let asked = config::text(&job.asked.all);
    let kconfigs: Vec<_> = job
        .files
        .iter()
        .filter(|(path, _)| {
            let file = path.rsplit('/').next().unwrap_or_default();
            file.starts_with("Kconfig")
        })
        .collect();
    let stamp = Digest::of(format!("{asked}{kconfigs:?}").as_bytes()).to_string();
    let stamp_file = folder.join(CONFIGURED);
    let result = make.out.join(".config");
    if result.is_file()
        && read_text(&stamp_file, FileOrigin::Own, MAX_NOTE_BYTES).is_ok_and(|known| known == stamp)
    {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp_file);
    let asked_file = match job.asked.start {
        Start::Nothing => folder.join("asked.config"),
        Start::Distribution => result.clone(),
    };
    write(&asked_file, asked.as_bytes())?;
    let mut said = Vec::new();
    let allconfig = [("KCONFIG_ALLCONFIG", asked_file.display().to_string())];
    let (target, variables) = match job.asked.start {
        Start::Nothing => ("allnoconfig", &allconfig[..]),
        Start::Distribution => ("olddefconfig", &[][..]),
    };
    let done = make.run(&[target], variables, &mut |line| {
        said.push(line.to_owned());
    })?;
    if !done {
        return Err(SourceError::Configure {
            source_name: job.opened.id.clone(),
            said: fault::last_words(&said),
            log: make.log.clone(),
        });
    }
    let text = read_text(&result, FileOrigin::Own, MAX_CONFIG_BYTES);
    let text = text.map_err(SourceError::cache("reading", &result))?;
    // Only options that the user asked for can be the user's fault. If a kernel lacks one of pagetide's own options,
    // the preparation of a trial that needs the option reports it.
    let not_taken = config::not_taken(&job.asked.user, &config::options(&text));
    if !not_taken.is_empty() {
        return Err(SourceError::NotTaken {
            source_name: job.opened.id.clone(),
            options: not_taken.join(", "),
        });
    }
    write(&stamp_file, stamp.as_bytes())
}

/// Compiles and links a kernel. Returns the number of objects that were compiled. Fails if make fails.
pub(crate) fn compile(
    make: &Make,
    folder: &Path,
    job: &Job,
    watch: &mut OnStep,
) -> Result<usize, SourceError> {
    let known = folder.join("objects");
    let all: Option<usize> = read_text(&known, FileOrigin::Own, MAX_NOTE_BYTES)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    // The first build in a folder compiles all objects. How many a later build compiles is unknown.
    let of =
        (all.is_none() && job.asked.user.is_empty()).then_some(job.asked.start.typical_objects());
    let (began, mut told, mut done, mut said) =
        (Instant::now(), Instant::now(), 0_usize, Vec::new());
    let made = make.run(&["bzImage", "modules"], &[], &mut |line| {
        if is_object(line) {
            done += 1;
        } else {
            said.push(line.to_owned());
        }
        if told.elapsed() >= PACE {
            told = Instant::now();
            let left = of.and_then(|of| left(began.elapsed(), done, of));
            let what = job.what.clone();
            watch(&BuildStep::Progress {
                what,
                done,
                of,
                left,
            });
        }
    })?;
    if made {
        if done > all.unwrap_or(0) {
            write(&known, done.to_string().as_bytes())?;
        }
        return Ok(done);
    }
    let top = make.source.display().to_string();
    if let Some(fault) = fault::first(&said, &top) {
        watch(&BuildStep::Compiler(fault::said(&said).join("\n")));
        return Err(SourceError::Compile {
            what: job.what.clone(),
            hunk: fault::hunk(&job.series, &fault),
            error: fault.text,
            log: make.log.clone(),
        });
    }
    Err(SourceError::Make {
        what: job.what.clone(),
        said: fault::last_words(&said),
        log: make.log.clone(),
    })
}

/// Returns true if a line of make's output says that an object is compiled.
fn is_object(line: &str) -> bool {
    ["  CC ", "  AS "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Returns the estimated remaining time of a build, if each remaining object takes as long as the average so far.
/// `None` if no object has been compiled yet.
fn left(elapsed: Duration, done: usize, of: usize) -> Option<Duration> {
    let done = u32::try_from(done).ok().filter(|done| *done > 0)?;
    let rest = u32::try_from(of).ok()?.saturating_sub(done);
    Some(elapsed / done * rest)
}
