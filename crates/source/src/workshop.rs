//! Builds kernels from recipes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use pagetide_kernel::{Cache, Digest, Freshness, Kernel, KernelRef};
use pagetide_outside::{FileOrigin, read};
use serde::{Deserialize, Serialize};

use crate::build_forecast::{self, BuildForecast, BuildState};
use crate::changed::Built;
use crate::clean;
use crate::compile::{CONFIGURED, Job, OpenSource, PACE, compile, configure};
use crate::config::{self, Options};
use crate::debian;
use crate::error::SourceError;
use crate::git::Revision;
use crate::make::{Isolation, Make};
use crate::options::{Asked, Start};
use crate::recipe::{ConfigRef, Recipe, SourceRef};
use crate::room;
use crate::series::Series;
use crate::step::{BuildStep, OnStep};
use crate::tools::{self, Compiler};
use crate::tree::{Files, MAX_NOTE_BYTES, Tree, wait, write};

/// A kernel built from a recipe, with messages about it for the user.
#[derive(Debug, Clone)]
pub struct BuiltKernel {
    /// The kernel, as stored in the cache.
    pub kernel: Kernel,
    /// Name of the kernel in the cache: `built:DIGEST SOURCE + SUBJECT`.
    pub name: String,
    /// One sentence for each `.c` file that the patches change but that this configuration does not build, with the
    /// option that would build it if the Makefile names one.
    pub not_built: Vec<String>,
}

/// Builds kernels from recipes, one at a time.
pub struct Workshop {
    cache: Cache,
    freshness: Freshness,
    jobs: usize,
    limit: u64,
    compiler: Compiler,
    isolation: Option<Isolation>,
    /// Checks that all programs needed for a build are installed.
    needs: fn() -> Result<(), SourceError>,
}

/// Cache entry of a finished build.
#[derive(Serialize, Deserialize)]
struct Memory {
    /// Digest of the built kernel.
    digest: String,
    not_built: Vec<String>,
}

impl Workshop {
    /// Creates a workshop that uses the cache. Sources and builds may occupy at most `limit` bytes of it.
    pub fn open(cache: Cache, freshness: Freshness, limit: u64) -> Self {
        Self {
            cache,
            freshness,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            limit,
            compiler: Compiler::find(),
            isolation: None,
            needs: tools::check,
        }
    }

    /// Fails if programs that a build needs are missing. The error names all of them.
    pub fn needs(&self) -> Result<(), SourceError> {
        (self.needs)()
    }

    /// Returns those of the options `needed` (names without `CONFIG_`) that the configuration of a recipe leaves out.
    /// Returns none for a distribution's configuration, because only its package says what it has.
    pub fn leaves_out<'a>(
        &self,
        recipe: &Recipe,
        needed: &[&'a str],
    ) -> Result<Vec<&'a str>, SourceError> {
        let asked = Asked::of(recipe, &self.cache)?;
        let is_out = |name: &&str| asked.all.get(*name).is_none_or(|value| value == "n");
        Ok(match asked.start {
            Start::Distribution => Vec::new(),
            Start::Nothing => needed.iter().copied().filter(is_out).collect(),
        })
    }

    /// Returns the number of bytes that sources, builds, ccache and built kernels occupy in the cache.
    pub fn taken(&self) -> u64 {
        room::taken(&self.cache)
    }

    /// Checks that the patches of a recipe exist and fit its source. Builds nothing, but fetches the source if needed.
    pub fn check(&self, recipe: &Recipe, watch: &mut OnStep) -> Result<(), SourceError> {
        let series = series_of(recipe)?;
        self.provide(recipe, watch)?;
        let opened = self.source(&recipe.source, watch)?;
        let files = opened.tree.patched(&series.patches)?;
        if files.is_empty() && !series.patches.is_empty() {
            watch(&BuildStep::Note(format!(
                "\"{}\" leaves the source as it is",
                series.subject()
            )));
        }
        Ok(())
    }

    /// Returns the kernel of a recipe: from the cache if it was built before, otherwise from a new build. Fails if the
    /// patches do not fit, or if the kernel cannot be built.
    pub fn build(
        &mut self,
        recipe: &Recipe,
        watch: &mut OnStep,
    ) -> Result<BuiltKernel, SourceError> {
        self.provide(recipe, watch)?;
        let asked = Asked::of(recipe, &self.cache)?;
        if let Some(built) = self.known_revision(recipe, &asked, watch)? {
            return Ok(built);
        }
        let opened = self.source(&recipe.source, watch)?;
        let job = job(recipe, asked, opened)?;
        let key = self.key(&job.opened.id, &job.files, &job.asked.all);
        if let Some(built) = self.remembered(&key, &job.what, watch) {
            return Ok(built);
        }
        self.needs()?;
        let built = self.make(&job, watch)?;
        self.remember(&key, &built)?;
        Ok(built)
    }

    /// Fetches the distribution's configuration, if the recipe uses it and the cache does not have it or a newer one is
    /// requested.
    fn provide(&self, recipe: &Recipe, watch: &mut OnStep) -> Result<(), SourceError> {
        if recipe.config == Some(ConfigRef::Debian) {
            let (suite, series) = recipe.source.debian_config();
            debian::config(&self.cache, suite, series, self.freshness, watch)?;
        }
        Ok(())
    }

    /// Returns the kernel of an unpatched git revision, if it was built before; otherwise `None`. No files are checked
    /// out.
    fn known_revision(
        &self,
        recipe: &Recipe,
        asked: &Asked,
        watch: &mut OnStep,
    ) -> Result<Option<BuiltKernel>, SourceError> {
        let SourceRef::Git { folder, revision } = &recipe.source else {
            return Ok(None);
        };
        if recipe.control || !recipe.patches.is_empty() {
            return Ok(None);
        }
        let found = Revision::find(folder, revision.as_deref(), &mut |_| {})?;
        let key = self.key(&found.name, &Files::new(), &asked.all);
        let what = what(&found.name, recipe, &Series::default());
        let built = self.remembered(&key, &what, watch);
        if built.is_some() {
            // Also tells the user that uncommitted changes are left out.
            Revision::find(folder, revision.as_deref(), watch)?;
        }
        Ok(built)
    }

    /// Predicts the cost of building a recipe. `there` lists the build folders in which earlier builds of the same
    /// forecast will have been completed; the folder of this build is added. `watch` receives a step if another process
    /// must be waited for.
    pub(crate) fn forecast_recipe(
        &self,
        recipe: &Recipe,
        there: &mut BTreeSet<PathBuf>,
        watch: &mut OnStep,
    ) -> Result<BuildForecast, SourceError> {
        let mut quiet = |_: &BuildStep| {};
        let ours = recipe.config.is_none();
        let series = series_of(recipe)?;
        let asked = Asked::of(recipe, &self.cache)?;
        let at = |what: String, state: BuildState| BuildForecast { what, ours, state };
        if let Some(built) = self.known_revision(recipe, &asked, &mut quiet)? {
            let what = built.name.split_once(' ').map_or("", |(_, what)| what);
            return Ok(at(what.to_owned(), BuildState::Built(built.name.clone())));
        }
        let (folder, id, is_here) = match &recipe.source {
            SourceRef::Debian { suite, series, .. } => {
                if let Some((folder, version)) = debian::here(&self.cache, suite, series) {
                    (folder, format!("{} {version}", recipe.source), true)
                } else {
                    let place = PathBuf::from(format!("linux-source-{series}"));
                    (place, recipe.source.to_string(), false)
                }
            }
            SourceRef::Git { folder, revision } => {
                let revision = Revision::find(folder, revision.as_deref(), &mut quiet)?;
                let place = self.cache.root().join("sources").join(revision.key());
                let is_here = revision.is_in(&place);
                (place, revision.name, is_here)
            }
        };
        let build = self.build_folder(&folder, &asked.all);
        let state = build_forecast::of_folder(&build, there, self.jobs, asked.start.typical_time());
        let words = what(&id, recipe, &series);
        if !is_here {
            let about = state.about();
            let is_git = matches!(recipe.source, SourceRef::Git { .. });
            // The files of a git tree are read only when it is built. Without patches, nothing can fail to fit.
            let state = if is_git {
                state
            } else {
                BuildState::ToFetch { about }
            };
            return Ok(at(words, state));
        }
        let tree = Tree::take(&folder, &id, self.cache.stop(), watch)?;
        let job = job(recipe, asked, OpenSource { tree, id })?;
        let key = self.key(&job.opened.id, &job.files, &job.asked.all);
        let built = self.remembered(&key, &job.what, &mut quiet);
        Ok(at(
            words,
            built.map_or(state, |built| BuildState::Built(built.name)),
        ))
    }

    /// Opens a source at the requested revision, and locks it.
    fn source(&self, source: &SourceRef, watch: &mut OnStep) -> Result<OpenSource, SourceError> {
        let stop = self.cache.stop();
        match source {
            SourceRef::Debian { suite, series, .. } => {
                if debian::here(&self.cache, suite, series).is_none() {
                    self.needs()?;
                }
                let (folder, version) =
                    debian::open(&self.cache, suite, series, self.freshness, watch)?;
                let id = format!("{source} {version}");
                Ok(OpenSource {
                    tree: Tree::take(&folder, &id, stop, watch)?,
                    id,
                })
            }
            SourceRef::Git { folder, revision } => {
                let revision = Revision::find(folder, revision.as_deref(), watch)?;
                let place = self.cache.root().join("sources").join(revision.key());
                let tree = Tree::take(&place, &revision.name, stop, watch)?;
                revision.check_out(&tree, stop, watch)?;
                Ok(OpenSource {
                    tree,
                    id: revision.name,
                })
            }
        }
    }

    /// Returns a digest of everything that determines a kernel: the source, the files that differ from it, the options,
    /// and the versions of compiler and linker.
    fn key(&self, source: &str, files: &Files, asked: &Options) -> String {
        let files: Vec<(&String, String)> = files
            .iter()
            .map(|(path, content)| {
                let sum = content
                    .as_deref()
                    .map(|bytes| Digest::of(bytes).to_string());
                (path, sum.unwrap_or_default())
            })
            .collect();
        let all = format!(
            "{source}\n{}\n{}\n{files:?}",
            config::text(asked),
            self.compiler.id
        );
        Digest::of(all.as_bytes()).short().to_owned()
    }

    fn memory(&self, key: &str) -> PathBuf {
        self.cache.root().join("built").join(format!("{key}.json"))
    }

    fn remember(&self, key: &str, built: &BuiltKernel) -> Result<(), SourceError> {
        let memory = Memory {
            digest: built.kernel.digest.to_string(),
            not_built: built.not_built.clone(),
        };
        let text = serde_json::to_vec_pretty(&memory).unwrap_or_default();
        write(&self.memory(key), &text)
    }

    fn remembered(&self, key: &str, what: &str, watch: &mut OnStep) -> Option<BuiltKernel> {
        let text = read(&self.memory(key), FileOrigin::Own, MAX_NOTE_BYTES).ok()?;
        let memory: Memory = serde_json::from_slice(&text).ok()?;
        let name = name(&memory.digest, what);
        let reference: KernelRef = name.parse().ok()?;
        let mut watch = |step: &pagetide_kernel::Step| watch(&BuildStep::Kernel(step.clone()));
        // A kernel that has been removed or damaged since its build is built again.
        let kernel = self
            .cache
            .resolve(&reference, Freshness::Pinned, &mut watch)
            .ok()?;
        Some(BuiltKernel {
            kernel,
            name,
            not_built: memory.not_built,
        })
    }

    /// Builds the kernel of a job.
    fn make(&mut self, job: &Job, watch: &mut OnStep) -> Result<BuiltKernel, SourceError> {
        let tree = &job.opened.tree;
        let folder = self.build_folder(tree.folder(), &job.asked.all);
        let (out, scratch) = (folder.join("out"), folder.join("tmp"));
        for folder in [&out, &scratch] {
            fs::create_dir_all(folder).map_err(SourceError::cache("making", folder))?;
        }
        write(&folder.join("used"), b"")?;
        room::changed(&folder);
        room::make(&self.cache, self.limit, &[&folder, tree.folder()]);
        // A process may have been killed during a retry in a clean folder, and have left these files.
        let _ = fs::remove_dir_all(folder.join(clean::KEPT_FOLDER));
        mend(&folder)?;
        let is_kept = out.join(".config").is_file();
        tree.bring_to(&job.files)?;
        let isolation = self.isolation.get_or_insert_with(|| {
            let isolation = Isolation::find();
            if let Some(lacks) = isolation.lacks {
                watch(&BuildStep::Note(lacks.to_owned()));
            }
            isolation
        });
        let log = folder.join("log");
        write(&log, b"")?;
        let top = tree.top();
        let make = Make {
            source: &top,
            out: &out,
            scratch: &scratch,
            ccache: &self.cache.root().join("ccache"),
            compiler: &self.compiler.command,
            jobs: self.jobs,
            log,
            isolation,
            lock: tree.lock(),
            stop: self.cache.stop(),
        };
        let whole = !build_forecast::is_whole(&folder);
        if whole && let Start::Distribution = job.asked.start {
            watch(&BuildStep::Note(job.asked.start.warning(self.jobs)));
        }
        watch(&BuildStep::Building {
            what: job.what.clone(),
        });
        // While this lock is held, no other process removes the build folder to free space.
        let _held = wait(&folder, &job.what, self.cache.stop(), watch)?;
        let began = Instant::now();
        let marker = folder.join("building");
        write(&marker, b"")?;
        let objects =
            configure(&make, &folder, job).and_then(|()| compile(&make, &folder, job, watch));
        let objects = match objects {
            Err(why) if is_kept && clean::may_help(&why) => {
                clean::build(&make, &folder, job, why, watch)
            }
            other => other,
        };
        if !matches!(objects, Err(SourceError::Stopped)) {
            fs::remove_file(&marker).map_err(SourceError::cache("removing", &marker))?;
        }
        let objects = objects?;
        let built = Built {
            tree,
            out: &out,
            scratch: &scratch,
            stop: self.cache.stop(),
        };
        // A control has no patch of the user, so no changed lines.
        let is_patched = !job.series.patches.is_empty();
        let changed = is_patched
            .then(|| built.changed_code(&job.files))
            .transpose()?;
        let _ = fs::remove_dir_all(&scratch);
        build_forecast::keep(&folder, began.elapsed(), whole)?;
        watch(&BuildStep::Built {
            what: job.what.clone(),
            objects,
            took: began.elapsed(),
        });
        let mut watch = |step: &pagetide_kernel::Step| {
            if !matches!(step, pagetide_kernel::Step::Unpacking { .. }) {
                watch(&BuildStep::Kernel(step.clone()));
            }
        };
        let made_from = format!("{}{}", room::BUILT_FROM, job.what);
        let kernel = self.cache.take_built(&out, &made_from, &mut watch)?;
        // A patch that changes no code leads to the kernel without it, which must not get lines of a patch.
        let is_own = kernel.origin.reference == made_from || kernel.changed_code().is_some();
        if let Some(changed) = changed.filter(|_| is_own) {
            kernel.set_changed_code(&changed)?;
        }
        Ok(BuiltKernel {
            name: name(kernel.digest.as_str(), &job.what),
            kernel,
            not_built: not_built(tree, &out, &job.files)?,
        })
    }

    /// Returns the path of the build folder. There is one for each source, configuration and compiler; all patches
    /// share it.
    fn build_folder(&self, source: &Path, asked: &Options) -> PathBuf {
        let source = source.file_name().unwrap_or_default();
        let asked = config::text(asked);
        let config = Digest::of(asked.as_bytes());
        let config = config.as_str().get(..8).unwrap_or_default();
        let compiler = self.compiler.key();
        let compiler = compiler.get(..8).unwrap_or_default();
        let name = format!("{}-{config}-{compiler}", source.to_string_lossy());
        self.cache.root().join("builds").join(name)
    }
}

/// Reads the patches of a recipe.
fn series_of(recipe: &Recipe) -> Result<Series, SourceError> {
    let series = Series::read(&recipe.patches)?;
    Ok(match recipe.first {
        Some(count) => series.first(count),
        None => series,
    })
}

/// Collects all inputs of a recipe's build.
fn job(recipe: &Recipe, asked: Asked, opened: OpenSource) -> Result<Job, SourceError> {
    let series = series_of(recipe)?;
    Ok(Job {
        what: what(&opened.id, recipe, &series),
        files: if recipe.control {
            control(&opened.tree, &series)?
        } else {
            opened.tree.patched(&series.patches)?
        },
        series: if recipe.control {
            Series::default()
        } else {
            series
        },
        asked,
        opened,
    })
}

/// Returns the description of a kernel's source, configuration and patches. pagetide's own configuration is not
/// mentioned.
fn what(source: &str, recipe: &Recipe, series: &Series) -> String {
    let source = match &recipe.config {
        None => source.to_owned(),
        Some(config) => format!("{source} with {}", config.words()),
    };
    if recipe.control {
        return format!("{source} + a nop (control)");
    }
    match series.subject().as_str() {
        "" => source,
        subject => format!("{source} + {subject} (patch {})", series.id()),
    }
}

fn name(digest: &str, what: &str) -> String {
    format!("built:{} {what}", digest.get(..12).unwrap_or(digest))
}

/// Returns the changed files of a control: one of the files that the patches change, with a nop inserted before its
/// code. All code after the nop moves; nothing else changes.
fn control(tree: &Tree, series: &Series) -> Result<Files, SourceError> {
    /// File with reclaim code, used if the patches change no file with code.
    const OTHERWISE: &str = "mm/vmscan.c";
    // This also checks that the patches fit.
    let patched = tree.patched(&series.patches)?;
    let is_code = |path: &&String| {
        Path::new(path)
            .extension()
            .is_some_and(|ending| ending == "c")
    };
    let mut names: Vec<&String> = patched.keys().filter(is_code).collect();
    let otherwise = OTHERWISE.to_owned();
    names.push(&otherwise);
    for path in names {
        if let Some(mut bytes) = tree.pristine(path)? {
            bytes.extend_from_slice(b"\nasm(\".pushsection .text\\n\\tnop\\n\\t.popsection\");\n");
            return Ok(Files::from([(path.clone(), Some(bytes))]));
        }
    }
    Ok(Files::new())
}

/// A file without a `.cmd` counts as complete if the build changed another file this long after it. No command of a
/// kernel's build pauses that long while it writes such a file.
const SETTLED: Duration = Duration::from_mins(1);

/// Removes files that a killed build left incomplete. make regards a file as complete if it is newer than its inputs.
/// But Kbuild writes how a file was made (`.FILE.cmd`) only after the file is complete, so a file that is newer than
/// its `.cmd` is incomplete. Some files have no `.cmd`, such as generated headers, on which nearly every object
/// depends: they are complete if the build went on for [`SETTLED`] after them. Files that existed when configuring
/// finished are complete. If configuring itself was interrupted, the folder is emptied: some of its programs write two
/// files, and the first of these does not show whether the second is complete.
fn mend(folder: &Path) -> Result<(), SourceError> {
    let marker = folder.join("building");
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    let Ok(began) = modified(&marker) else {
        return Ok(());
    };
    let Ok(configured) = modified(&folder.join(CONFIGURED)) else {
        clean::empty(&folder.join("out"))?;
        return fs::remove_file(&marker).map_err(SourceError::cache("removing", &marker));
    };
    let began = began.max(configured);
    let mut young: BTreeMap<PathBuf, SystemTime> = BTreeMap::new();
    let mut folders = vec![folder.join("out")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(data) = entry.metadata() else {
                continue;
            };
            if data.is_dir() {
                folders.push(entry.path());
            } else if let Ok(at) = data.modified()
                && at >= began
            {
                young.insert(entry.path(), at);
            }
        }
    }
    let last = young.values().max().copied().unwrap_or(began);
    for (path, at) in &young {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(".cmd") {
            continue;
        }
        let cmd = path.with_file_name(format!(".{name}.cmd"));
        let cmd_at = fs::metadata(&cmd).and_then(|data| data.modified());
        let age = |at: SystemTime| last.duration_since(at).unwrap_or_default();
        let is_whole = match cmd_at {
            // A `.cmd` that was written in the last seconds may itself be incomplete.
            Ok(cmd_at) => cmd_at >= *at && age(cmd_at) > PACE,
            Err(_) => age(*at) > SETTLED,
        };
        if is_whole || name == ".config" {
            continue;
        }
        for path in [path, &cmd] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(SourceError::cache("removing", path)(error));
                }
                _ => {}
            }
        }
    }
    fs::remove_file(&marker).map_err(SourceError::cache("removing", &marker))
}

/// Returns a sentence for each `.c` file that patches change but that was not built, with the option that would build
/// it if the Makefile names one.
fn not_built(tree: &Tree, out: &Path, files: &Files) -> Result<Vec<String>, SourceError> {
    let mut missing = Vec::new();
    for (path, content) in files {
        let Some(stem) = path.strip_suffix(".c") else {
            continue;
        };
        if content.is_none() || out.join(format!("{stem}.o")).is_file() {
            continue;
        }
        let (folder, object) = path.rsplit_once('/').unwrap_or(("", path));
        let object = format!("{}.o", object.trim_end_matches(".c"));
        let makefile = tree
            .pristine(&format!("{folder}/Makefile"))?
            .unwrap_or_default();
        let option = config::option_of(&String::from_utf8_lossy(&makefile), &object);
        missing.push(match option {
            Some(option) => format!("{path} is not built: give --config a file with {option}=y"),
            None => format!("{path} is not built with this configuration"),
        });
    }
    Ok(missing)
}

#[cfg(test)]
#[path = "workshop_tests.rs"]
mod tests;
