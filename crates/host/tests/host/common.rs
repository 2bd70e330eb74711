//! Helpers of the tests: they read the state of the machine before and after a trial, and run the example that changes
//! the machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagetide_host::journal::{Content, Unusable};
use pagetide_host::process::Process;
use pagetide_host::{Hierarchy, StateFolder};
use pagetide_probe::trace::Tracefs;
use pagetide_testing::machine::{Turn, alone};
use pagetide_testing::{Need, skip};

/// Time limit of a test that waits. It is far above the usual duration, because the machine may be busy.
const LIMIT: Duration = Duration::from_mins(5);

/// Time after which a difference counts as lasting.
const LASTING: Duration = Duration::from_mins(1);

/// Waits until a condition holds.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "no {what}");
        sleep(Duration::from_millis(10));
    }
}

/// The right to make groups and to change swap and settings; `None`, with a counted skip, if this process lacks rights
/// for it.
pub fn turn() -> Option<Turn> {
    let turn = turn_of_groups()?;
    if is_user() {
        skip(Need::Root, "swap and settings can be changed by root only");
        return None;
    }
    Some(turn)
}

/// The right to make groups; `None`, with a counted skip, if this process lacks rights for it.
pub fn turn_of_groups() -> Option<Turn> {
    Hierarchy::find()
        .inspect_err(|why| skip(Need::MemoryGroup, why))
        .is_ok()
        .then(alone)
}

/// True if this process is not root, and so can neither make swap nor change settings.
pub fn is_user() -> bool {
    !rustix::process::geteuid().is_root()
}

/// Arguments of trials that this process has the rights for.
pub fn usual() -> &'static [&'static str] {
    if is_user() {
        &["--swap", "none", "--size", "8M"]
    } else {
        &[]
    }
}

/// Everything that a trial may change, as text by name.
pub type State = BTreeMap<String, String>;

/// Reads a file; a file that cannot be read is empty.
fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Files of a folder and of all folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// Names of the folders in a folder.
fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Reads the state of the machine: swaps, settings, groups, mounts, loop and zram devices, tracing instances, and what
/// lies in `folder`.
fn state(folder: &Path) -> State {
    let mut state = State::new();
    // Left out: the used size, which changes with every process of the machine.
    let swaps = pagetide_system::swaps::table().into_iter();
    let swaps: Vec<String> = swaps
        .map(|area| format!("{} {} {}", area.path, area.size, area.priority))
        .collect();
    state.insert("swaps".to_owned(), swaps.join("\n"));
    state.insert("mounts".to_owned(), read("/proc/self/mounts"));
    for folder in [
        "/proc/sys/vm",
        "/sys/kernel/mm/swap",
        "/sys/kernel/mm/transparent_hugepage",
    ] {
        for file in files(Path::new(folder)) {
            // Left out: counters, and files that start an action when written but read as numbers.
            let is_stat = file.components().any(|part| part.as_os_str() == "stats");
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_count = ["pages_collapsed", "full_scans", "stat_refresh"].contains(&&*name);
            if !is_stat && !is_count {
                state.insert(file.display().to_string(), read(&file));
            }
        }
    }
    for file in files(Path::new("/sys/module/zswap/parameters")) {
        state.insert(file.display().to_string(), read(&file));
    }
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        for file in [
            "loop/backing_file",
            "loop/dio",
            "initstate",
            "disksize",
            "comp_algorithm",
            "size",
            "queue/rotational",
        ] {
            let path = entry.path().join(file);
            if !name.starts_with("vd") && path.exists() {
                state.insert(format!("{name}/{file}"), read(path));
            }
        }
        state.insert(format!("block {name}"), String::new());
    }
    let found = Hierarchy::find();
    let mut roots = Vec::new();
    if let Ok(hierarchy) = &found {
        roots.push(hierarchy.root().to_owned());
        if let Hierarchy::Version1 { unified, .. } = hierarchy {
            roots.extend(unified.clone());
        }
    }
    for root in roots {
        let control = root.join("cgroup.subtree_control");
        state.insert(control.display().to_string(), read(&control));
        state.insert(root.display().to_string(), folders(&root).join("\n"));
    }
    if let Ok(tracefs) = Tracefs::open() {
        let names = folders(&tracefs.root().join("instances"));
        state.insert("instances".to_owned(), names.join("\n"));
    }
    let mut here: Vec<String> = files(folder)
        .into_iter()
        .map(|path| path.display().to_string())
        .filter(|path| !path.contains("/state/"))
        .collect();
    here.sort();
    state.insert(folder.display().to_string(), here.join("\n"));
    state
}

/// Reads the state of the machine as soon as no other process of pagetide has swap or groups on it, at the latest
/// after a minute.
pub fn quiet_state(folder: &Path) -> State {
    /// Priority of the swap areas that trials switch on.
    const OURS: i32 = 32767;
    let began = Instant::now();
    loop {
        let is_swap = |area: &pagetide_system::swaps::Area| area.priority == OURS;
        let has_swap = pagetide_system::swaps::table().iter().any(is_swap);
        let found = state(folder);
        let has_group = found.values().any(|text| text.contains("pagetide-"));
        if (!has_swap && !has_group) || began.elapsed() > LASTING {
            return found;
        }
        sleep(Duration::from_millis(50));
    }
}

/// Differences between two states, as text.
fn differences(before: &State, after: &State) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| format!("{name}: {:?} -> {:?}", before.get(name), after.get(name)))
        .collect()
}

/// Lasting differences between `before` and the current state. The kernel removes what was closed with a delay, and
/// other processes may create groups for a while.
pub fn lasting_differences(before: &State, folder: &Path) -> Vec<String> {
    let began = Instant::now();
    loop {
        let changed = differences(before, &state(folder));
        if changed.is_empty() || began.elapsed() > LASTING {
            return changed;
        }
        sleep(Duration::from_millis(50));
    }
}

/// Command of the example, whose journal and files lie in `folder`.
pub fn example(folder: &Path) -> Command {
    let program = program();
    let mut command = Command::new(program);
    command
        .args(["--state", &folder.join("state").display().to_string()])
        .args(["--folder", &folder.display().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Path of the example's program, which `cargo test` builds.
pub fn program() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap().parent().unwrap();
    folder.join("examples/host_trial")
}

/// Runs the example to its end.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    example(folder).args(arguments).output().unwrap()
}

/// Standard output of the example. Panics if it failed.
pub fn text(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

/// A running example.
pub struct Tool {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Tool {
    /// Starts the example.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = example(folder).args(arguments).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Process number of the example.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that begins with this word, and returns the rest of it.
    pub fn line(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.out.read_line(&mut line).unwrap();
            assert!(read > 0, "the example ended before `{word}`");
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Process number of the guardian, which the example prints first.
    pub fn guardian(&mut self) -> u32 {
        self.line("guardian").parse().unwrap()
    }

    /// Kills the example with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end, and returns what it printed since the last line that was read.
    pub fn rest(mut self) -> String {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.out, &mut text).unwrap();
        assert!(self.child.wait().unwrap().success(), "{text}");
        text
    }
}

/// Kills a process that the example started, with SIGKILL, and waits until it is gone.
pub fn kill(pid: u32) {
    let process = Process::of(pid);
    let number = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
    wait_until("end of the process", || {
        process.is_none_or(|process| !process.is_alive())
    });
}

/// True if no journal has a change that is not undone. A tool that was killed before its first change leaves a journal
/// without changes, which the next start removes.
pub fn is_all_undone(folder: &Path) -> bool {
    let journals = StateFolder::at(folder.join("state")).journals();
    journals.iter().all(|path| match Content::read(path) {
        Ok(content) => content.standing.is_empty(),
        Err(Unusable::Empty) => true,
        Err(_) => !path.exists(),
    })
}
