//! Measures the time from a patch to its verdict with `pagetide run --patch`, split by the activity of its processes.
//!
//! `cold`: the screening set with an empty cache, so that package lists, source and kernels are fetched first. `warm`:
//! a patch to one file on hot-cold with the same cache, which then contains the base. Without an argument, both run.
//! `warm` alone uses the default cache, and is skipped unless that contains a built base.
//!
//! `cargo run --release -p pagetide --example patch_time -- [cold] [warm]`. The program is the one built together with
//! this example, or `$PAGETIDE`.

// An example may panic if it cannot continue.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pagetide_testing::{Need, skip};

/// Interval between two samples of the running processes.
const GLANCE: Duration = Duration::from_millis(50);
/// Ticks per second in `/proc/PID/stat` on every x86 kernel.
const TICKS: u64 = 100;

/// Activity of the program, in the order of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Fetch,
    Configure,
    Base,
    Patched,
    Control,
    Boot,
    Trials,
    Rest,
}

impl Phase {
    const ALL: [Self; 8] = [
        Self::Fetch,
        Self::Configure,
        Self::Base,
        Self::Patched,
        Self::Control,
        Self::Boot,
        Self::Trials,
        Self::Rest,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Fetch => "lists, source, unpacking",
            Self::Configure => "configuration",
            Self::Base => "kernel: base",
            Self::Patched => "kernel: patched",
            Self::Control => "kernel: control",
            Self::Boot => "guests boot, snapshots",
            Self::Trials => "trials",
            Self::Rest => "plan, verdict, explanation",
        }
    }

    /// Returns the phase that this message of the program announces; `None` if it announces none.
    fn of_line(line: &str) -> Option<Self> {
        let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        if line.starts_with("building ") {
            let is_control = line.contains("(control)");
            let is_patched = line.contains("(patch ");
            return Some(match (is_control, is_patched) {
                (true, _) => Self::Control,
                (_, true) => Self::Patched,
                _ => Self::Base,
            });
        }
        if begins(&["fetching ", "unpacking ", "updating ", "reading "]) {
            return Some(Self::Fetch);
        }
        begins(&["built "]).then_some(Self::Rest)
    }
}

/// Parent, processor time and command line of one process.
struct Process {
    parent: u32,
    ticks: u64,
    words: String,
}

/// All processes of this machine that can be read, by process id.
fn processes() -> BTreeMap<u32, Process> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name of the process may contain anything; it ends with the last parenthesis.
        let Some((_, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let field = |place: usize| -> u64 {
            let mut fields = rest.split_whitespace();
            fields
                .nth(place)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        all.insert(
            id,
            Process {
                parent: u32::try_from(field(1)).unwrap_or(0),
                // Ticks of the process and of its ended children, in user mode and in the kernel.
                ticks: (11..=14).map(field).sum(),
                words: String::from_utf8_lossy(&words).replace('\0', " "),
            },
        );
    }
    all
}

/// Processor time used so far by a process and all its descendants, and their command lines.
fn below(top: u32) -> (u64, Vec<String>) {
    let all = processes();
    let (mut ticks, mut words, mut at) = (0, Vec::new(), vec![top]);
    while let Some(id) = at.pop() {
        if let Some(process) = all.get(&id) {
            ticks += process.ticks;
            words.push(process.words.clone());
        }
        at.extend(
            all.iter()
                .filter(|(_, other)| other.parent == id)
                .map(|(id, _)| *id),
        );
    }
    (ticks, words)
}

/// Current activities, each with its share of the time.
fn doing(said: Phase, words: &[String]) -> Vec<(Phase, f64)> {
    let count = |what: &dyn Fn(&String) -> bool| words.iter().filter(|words| what(words)).count();
    let is_guest = |words: &String| words.contains("qemu-system") && words.contains("-append");
    let comes_back = |words: &String| is_guest(words) && words.contains("-incoming");
    let (guests, trials) = (count(&is_guest), count(&comes_back));
    if guests > 0 {
        let share = |part: usize| part as f64 / guests as f64;
        return vec![
            (Phase::Boot, share(guests - trials)),
            (Phase::Trials, share(trials)),
        ];
    }
    let is_target = |word: &str| word.ends_with("config") && !word.contains('/');
    let configures = |words: &String| words.starts_with("make ") && words.split(' ').any(is_target);
    let is_building = matches!(said, Phase::Base | Phase::Patched | Phase::Control);
    if is_building && count(&configures) > 0 {
        return vec![(Phase::Configure, 1.0)];
    }
    vec![(said, 1.0)]
}

/// Runs the program and prints the time of each phase; returns false if it failed.
fn timed(title: &str, program: &Path, words: &[&str]) -> bool {
    let mut child = Command::new(program)
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("starting {}: {why}", program.display()));
    let said = Arc::new(Mutex::new((Phase::Rest, String::new())));
    let told = Arc::clone(&said);
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listener = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let mut told = told.lock().unwrap();
            told.0 = Phase::of_line(&line).unwrap_or(told.0);
            told.1 = line;
        }
    });
    let mut spent: BTreeMap<Phase, (f64, f64)> = BTreeMap::new();
    let (began, mut last, mut before) = (Instant::now(), Instant::now(), 0);
    let status = loop {
        let ended = child.try_wait().unwrap();
        let (ticks, words) = below(child.id());
        let phase = said.lock().unwrap().0;
        let wall = last.elapsed().as_secs_f64();
        last = Instant::now();
        // A child that ends between two samples is counted when its parent has waited for it.
        let used = ticks.saturating_sub(before) as f64 / TICKS as f64;
        before = before.max(ticks);
        for (phase, share) in doing(phase, &words) {
            let row = spent.entry(phase).or_default();
            row.0 += wall * share;
            row.1 += used * share;
        }
        if let Some(status) = ended {
            break status;
        }
        std::thread::sleep(GLANCE);
    };
    listener.join().unwrap();
    println!("{title}: {:.0} s", began.elapsed().as_secs_f64());
    println!("  {:28}{:>10}{:>14}", "", "seconds", "of processors");
    for phase in Phase::ALL {
        if let Some((wall, used)) = spent.get(&phase) {
            println!("  {:28}{wall:>10.1}{used:>14.1}", phase.words());
        }
    }
    if !status.success() {
        println!("  it ended with {status}: {}", said.lock().unwrap().1);
    }
    status.success()
}

/// Path of the program: `$PAGETIDE`, or the program built together with this example.
fn program() -> PathBuf {
    std::env::var_os("PAGETIDE").map_or_else(
        || {
            let own = std::env::current_exe().expect("this program lies somewhere");
            let folder = own.parent().and_then(|examples| examples.parent());
            folder
                .expect("examples lie below the program")
                .join("pagetide")
        },
        PathBuf::from,
    )
}

/// True if the default cache contains the kernel without patches.
fn has_base(program: &Path) -> bool {
    let plan = [
        "plan",
        "linear",
        "--source",
        "debian:6.12",
        "--memory",
        "24M",
    ];
    let output = Command::new(program).args(plan).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .any(|line| line.starts_with("kernel of ") && line.ends_with("in the cache"))
}

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |part: &str| asked.is_empty() || asked.iter().any(|word| word == part);
    let program = program();
    let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let store = folder.path().join("store").display().to_string();
    let patches = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted-patches");
    let patch = |name: &str| patches.join(name).display().to_string();
    let own = folder.path().join("cache").display().to_string();
    let mut holds = true;
    if is_asked("cold") {
        let patch = patch("fault-swap.patch");
        let words = [
            "run",
            "--patch",
            &patch,
            "--cache",
            &own,
            "--store",
            &store,
            "--exit-zero",
        ];
        holds &= timed("screening set, nothing in the cache", &program, &words);
    } else if !has_base(&program) {
        skip(
            Need::Builds,
            "no kernel of debian:6.12 is built in the cache (`pagetide run linear --source debian:6.12` builds it)",
        );
        return ExitCode::SUCCESS;
    }
    if is_asked("warm") {
        let patch = patch("fault-reclaim.patch");
        let one = [
            "run", "hot-cold", "--swap", "ssd", "--memory", "24M", "--patch", &patch,
        ];
        let mut words = [&one[..], &["--store", &store, "--exit-zero"]].concat();
        if is_asked("cold") {
            words.extend(["--cache", &own]);
        }
        holds &= timed(
            "one file on hot-cold, the base in the cache",
            &program,
            &words,
        );
    }
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
