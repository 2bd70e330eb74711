//! Retries a failed build in a clean folder. A folder that is kept between builds may be inconsistent in a way that
//! nobody foresaw, and then every later build in it fails.

use std::fs;
use std::io;
use std::path::Path;

use crate::compile::{CONFIGURED, Job, compile, configure};
use crate::error::SourceError;
use crate::make::Make;
use crate::step::{BuildStep, OnStep};

/// Name of the subfolder that keeps the files of a build folder while one object is compiled in the emptied folder.
pub const KEPT_FOLDER: &str = "kept";

/// Returns true if a build that failed with this error may succeed in a clean folder.
pub fn may_help(why: &SourceError) -> bool {
    match why {
        SourceError::Configure { said, .. } | SourceError::Make { said, .. } => {
            !said.contains("No space left")
        }
        SourceError::Compile { .. } => true,
        _ => false,
    }
}

/// Removes everything in a folder, or creates it if it does not exist.
pub fn empty(folder: &Path) -> Result<(), SourceError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(SourceError::cache("emptying", folder)(error));
        }
        _ => {}
    }
    fs::create_dir_all(folder).map_err(SourceError::cache("making", folder))
}

/// Repeats a build in an emptied folder after it failed with `failed`. Returns the number of objects compiled. If the
/// log names an object that failed, compiles only this object first. If it fails again, the source is wrong: the build
/// folder is left as it was, and `failed` is returned.
pub fn build(
    make: &Make,
    folder: &Path,
    job: &Job,
    failed: SourceError,
    watch: &mut OnStep,
) -> Result<usize, SourceError> {
    let object = fs::read_to_string(&make.log)
        .ok()
        .and_then(|log| failed_object(&log, make.source, make.out));
    watch(&BuildStep::Note(match &object {
        Some(object) => format!("{object} failed in a kept build folder: trying it in a clean one"),
        None => "building failed in a kept build folder: trying again from nothing".to_owned(),
    }));
    let stamp = folder.join(CONFIGURED);
    if let Some(object) = object {
        let kept = folder.join(KEPT_FOLDER);
        empty(&kept)?;
        let moved = |from: &Path, to: &Path| {
            let _ = fs::remove_dir_all(to);
            fs::rename(from, to).map_err(SourceError::cache("moving", from))
        };
        moved(make.out, &kept)?;
        let _ = fs::remove_file(&stamp);
        empty(make.out)?;
        let tried =
            configure(make, folder, job).and_then(|()| make.run(&[&object], &[], &mut |_| {}));
        if !matches!(tried, Ok(true)) {
            moved(&kept, make.out)?;
            return Err(match tried {
                Err(SourceError::Stopped) => SourceError::Stopped,
                _ => failed,
            });
        }
        let _ = fs::remove_dir_all(&kept);
    } else {
        let _ = fs::remove_file(&stamp);
        empty(make.out)?;
        configure(make, folder, job)?;
    }
    compile(make, folder, job, watch)
}

/// Returns the object that failed to compile according to make's log, as a path relative to the top folder of the
/// source. Example: `make[3]: *** [FILE:LINE: mm/vmscan.o] Error 1`. `None` if the target is not an object file, or if
/// make cannot compile it by name because its folder has its own rules.
fn failed_object(log: &str, source: &Path, out: &Path) -> Option<String> {
    const OWN_RULES: [&str; 8] = [
        "scripts/",
        "tools/",
        "usr/",
        "arch/x86/boot/",
        "arch/x86/entry/vdso/",
        "arch/x86/purgatory/",
        "arch/x86/realmode/",
        "arch/x86/tools/",
    ];
    let failed = log
        .lines()
        .filter(|line| line.starts_with("make"))
        .find_map(|line| line.split_once("*** [")?.1.split_once("] Error"))?;
    let target = failed.0.rsplit(": ").next()?;
    let inside = target.strip_prefix(&*out.to_string_lossy());
    let target = inside.map_or(target, |inside| inside.trim_start_matches('/'));
    let stem = target.strip_suffix(".o")?;
    let is_plain = !OWN_RULES.iter().any(|start| target.starts_with(start));
    (is_plain && source.join(format!("{stem}.c")).is_file()).then(|| target.to_owned())
}
