//! Tests of what other users of this machine do during a trial on its kernel: each time the trial gets a clear verdict,
//! nothing is left, and the campaign goes on.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagetide_testing::{Need, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{Lab, one_sentence, text};
use crate::running_kernel::{SMALL, lab, nothing_is_left, state};

/// Longest time to wait for something that happens in a trial. Far above the usual time, because the machine may be
/// busy.
const LIMIT: Duration = Duration::from_mins(5);
/// Folders in which control groups may be made: version 2, version 1, and version 2 beside version 1.
const ROOTS: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/memory",
    "/sys/fs/cgroup/unified",
];
/// Priority of the swap areas that trials switch on.
const OURS: &str = "32767";

/// Waits until `found` returns a value, and returns it; panics after [`LIMIT`].
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "no {what}");
        sleep(Duration::from_millis(2));
    }
}

/// IDs of the processes in a control group; empty if the group is gone.
fn members(group: &Path) -> Vec<i32> {
    let list = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|pid| pid.parse().ok()).collect()
}

/// Kills all processes of a control group and removes it.
fn remove(group: &Path) {
    wait_for("end of the group", || {
        for pid in members(group) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
        let _ = fs::remove_dir(group);
        (!group.exists()).then_some(())
    });
}

/// A running `pagetide run`, and the lines that it writes to standard error.
struct Run {
    child: Child,
    lines: Receiver<String>,
    said: String,
}

impl Run {
    fn start(lab: &Lab, words: &[&str]) -> Self {
        let mut child = lab.start([&["run"], words, &SMALL].concat());
        let err = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            lines,
            said: String::new(),
        }
    }

    /// Waits until the group of a trial has a process. Returns its folders, one for each hierarchy of control groups.
    fn group(&self) -> Vec<PathBuf> {
        let start = format!("pagetide-{}-", self.child.id());
        wait_for("group with a process", || {
            let entries = ROOTS.iter().flat_map(|root| fs::read_dir(root).into_iter());
            let mut groups: Vec<PathBuf> = entries
                .flatten()
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
                .map(|entry| entry.path())
                .collect();
            groups.retain(|group| !members(group).is_empty());
            (!groups.is_empty()).then_some(groups)
        })
    }

    /// Waits until a line on standard error contains these words.
    fn says(&mut self, words: &str) {
        while !self.said.contains(words) {
            let line = self.lines.recv_timeout(LIMIT);
            let line = line.unwrap_or_else(|_| panic!("no `{words}` in {}", self.said));
            self.said.push_str(&line);
            self.said.push('\n');
        }
    }

    /// Waits for the end, which must have one of the codes of a run with records. Returns all it wrote to standard
    /// error and standard output.
    fn ends(mut self) -> String {
        let mut out = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut out).unwrap();
        let status = self.child.wait().unwrap();
        for line in self.lines {
            self.said.push_str(&line);
            self.said.push('\n');
        }
        let said = format!("{}{out}", self.said);
        assert!(matches!(status.code(), Some(0 | 1 | 3)), "{status}: {said}");
        said
    }
}

/// Reasons why the trial of a record is invalid, as JSON.
fn invalid(record: &Value) -> Vec<Value> {
    let list = record["results"]["invalid"].as_array();
    list.cloned().unwrap_or_default()
}

/// Words of a run of the scenario `linear` over 1.5 times the memory.
fn linear<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let words = ["linear", "-p", "pages=36M", "-p", "refs=18432"];
    [&words[..], more].concat()
}

#[test]
fn load_that_begins_in_a_trial_makes_times_doubtful_and_the_campaign_goes_on() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    let words = ["--swap", "ssd", "--vs", "swap-size=128M", "--seeds", "1"];
    let run = Run::start(&lab, &linear(&words));
    run.group();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let mut load: Vec<Child> = (0..cpus)
        .map(|_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).spawn().unwrap()
        })
        .collect();
    let said = run.ends();
    for process in &mut load {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    nothing_is_left(&lab, &before);
    assert!(
        said.contains("2 of 2 trials are doubtful in their times"),
        "{said}"
    );
    // The table of the records says so too.
    let words: Vec<&str> = said.split_whitespace().collect();
    let words = words.join(" ");
    assert!(
        words.contains("Caution: 2 of 2 trials are doubtful"),
        "{said}"
    );
    for record in lab.newest(2) {
        assert_eq!(invalid(&record), [Value::Null; 0]);
        let warnings = record["results"]["warnings"].to_string();
        assert!(warnings.contains("other processes used"), "{warnings}");
    }
}

#[test]
fn a_trial_whose_group_is_removed_runs_again() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    let mut run = Run::start(&lab, &linear(&["--swap", "ssd", "--seeds", "2"]));
    for group in run.group() {
        remove(&group);
    }
    run.says("spoiled a trial; it runs again");
    run.ends();
    nothing_is_left(&lab, &before);
    for record in lab.newest(2) {
        assert_eq!(invalid(&record), [Value::Null; 0]);
    }
}

/// A process that belongs to no trial, with 32 MiB of memory in a control group of its own; killed on drop.
struct Stranger {
    group: PathBuf,
    child: Child,
    /// File with the limit of the group.
    limit: PathBuf,
}

impl Stranger {
    fn start() -> Self {
        let is_version_1 = Path::new(ROOTS[1]).join("memory.limit_in_bytes").exists();
        let (root, limit, usage) = if is_version_1 {
            (ROOTS[1], "memory.limit_in_bytes", "memory.usage_in_bytes")
        } else {
            (ROOTS[0], "memory.max", "memory.current")
        };
        if !is_version_1 {
            // The tool switches this off again only if it has switched it on.
            fs::write(Path::new(root).join("cgroup.subtree_control"), "+memory").unwrap();
        }
        let group = Path::new(root).join(format!("stranger-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        let procs = group.join("cgroup.procs");
        let mut command = Command::new("sh");
        // `tail` keeps what it reads in memory until its input ends.
        command
            .args([
                "-c",
                "{ head -c 33554432 /dev/urandom; sleep 1000; } | tail -c 33554432",
            ])
            .stdout(Stdio::null());
        // SAFETY: the test's other threads hold no lock that a write of a file needs.
        unsafe { command.pre_exec(move || fs::write(&procs, "0")) };
        let child = command.spawn().unwrap();
        let stranger = Self {
            limit: group.join(limit),
            group,
            child,
        };
        wait_for("memory of the stranger", || {
            let used = fs::read_to_string(stranger.group.join(usage)).ok()?;
            (used.trim().parse::<u64>().ok()? >= 32 << 20).then_some(())
        });
        stranger
    }

    /// Makes the kernel swap out all but 8 MiB.
    fn swap_out(&self) {
        // A group of version 1 takes a new limit only once its memory fits.
        wait_for("swap of the stranger", || {
            fs::write(&self.limit, "8388608").ok()
        });
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        remove(&self.group);
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "test-all"]
fn a_trial_with_pages_of_a_stranger_in_its_swap_runs_again_and_the_stranger_lives() {
    let Some((lab, _turn)) = lab() else { return };
    if fs::read_to_string("/proc/swaps").unwrap().lines().count() > 1 {
        return skip(Need::Swap, "other swap is on");
    }
    let mut stranger = Stranger::start();
    let before = state();
    let words = ["--swap", "ssd", "--seeds", "1", "-p", "refs=200000"];
    let mut run = Run::start(&lab, &linear(&words));
    wait_for("swap of the trial", || {
        let swaps = fs::read_to_string("/proc/swaps").unwrap();
        swaps.lines().any(|line| line.ends_with(OURS)).then_some(())
    });
    stranger.swap_out();
    run.says("other processes have pages in it");
    run.says("spoiled a trial; it runs again");
    assert!(stranger.child.try_wait().unwrap().is_none());
    drop(stranger);
    let said = run.ends();
    assert_eq!(said.matches("runs again").count(), 1, "{said}");
    nothing_is_left(&lab, &before);
    assert_eq!(invalid(&lab.newest(1)[0]), [Value::Null; 0]);
}

#[test]
fn a_trial_that_is_killed_at_its_limit_is_a_result_and_the_next_one_runs() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    let grow = "x=0123456789abcdef; while :; do x=$x$x; done";
    let words = ["--swap", "none", "--seeds", "2", "--file", "/bin/sh"];
    let words = [&["run"], &SMALL[..], &words, &["--", "sh", "-c", grow]].concat();
    lab.ends(3, &words);
    nothing_is_left(&lab, &before);
    let records = lab.newest(2);
    assert_eq!(records.len(), 2);
    for record in records {
        is_killed_at_its_limit(&record);
    }
}

/// Asserts that the trial of a record is invalid because processes were killed at the limit of its group, and for no
/// other reason.
fn is_killed_at_its_limit(record: &Value) {
    let killed = invalid(record);
    let is_kill = |why: &Value| why["kind"] == "out-of-limit";
    assert!(
        !killed.is_empty() && killed.iter().all(is_kill),
        "{killed:?}"
    );
}

/// Runs a program as a workload, which need not end well. Returns its record, and all output of the command.
fn program(lab: &Lab, words: &[&str]) -> (Value, String) {
    let words = [&["--swap", "none", "--seeds", "1", "--fresh"], words].concat();
    let output = lab
        .pagetide([&["run"], &SMALL[..], &words].concat())
        .output()
        .unwrap();
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{said}");
    (lab.newest(1).remove(0), said)
}

#[test]
fn a_child_that_forks_away_is_gone_and_names_of_processes_cannot_forge_a_verdict() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    // The number identifies the process.
    let away = "setsid sleep 100047 </dev/null >/dev/null 2>&1 & sleep 0.2; echo left";
    let files = [
        "--file",
        "/bin/sh",
        "--file",
        "/bin/sleep",
        "--file",
        "/usr/bin/setsid",
    ];
    let (record, said) = program(&lab, &[&files[..], &["--", "sh", "-c", away]].concat());
    let why = record["results"]["invalid"].to_string();
    assert!(why.contains("1 of its processes went on"), "{said}");
    nothing_is_left(&lab, &before);
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!text(&words).contains("sleep\u{0}100047"), "{entry:?}");
    }
    // A process whose name looks like a fault of the kernel, like another process's state, and clears the terminal.
    for name in [r"\033[2J) R 1 (BUG:", "WARNING:", r"\nKilled process"] {
        let grow = format!(
            "printf '{name}' > /proc/self/comm; x=0123456789abcdef; while :; do x=$x$x; done"
        );
        let (record, said) = program(&lab, &["--file", "/bin/sh", "--", "sh", "-c", &grow]);
        is_killed_at_its_limit(&record);
        assert!(!said.contains('\u{1b}'), "{said:?}");
        nothing_is_left(&lab, &before);
    }
    // A program whose file has such a name.
    let path = lab.folder().join("a) Z 0 (BUG:");
    fs::copy("/bin/sh", &path).unwrap();
    let words = ["--", path.to_str().unwrap(), "-c", "echo well"];
    let (record, said) = program(&lab, &words);
    assert_eq!(invalid(&record), [Value::Null; 0], "{said}");
    assert_eq!(record["results"]["texts"]["stdout"], "well\n");
    let path = lab.folder().join("a\nb");
    fs::copy("/bin/sh", &path).unwrap();
    let words = ["--swap", "none", "--", path.to_str().unwrap()];
    let (_, err) = lab.ends_badly([&["run"], &SMALL[..], &words].concat());
    one_sentence(&err, &["control characters"]);
    nothing_is_left(&lab, &before);
}

/// A small file system on a file, mounted as the cache of a laboratory, unmounted on drop.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// Returns `None`, and counts a skip, if the file system cannot be made.
    fn mount(lab: &'a Lab) -> Option<Self> {
        let image = lab.folder().join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir_all(lab.cache()).unwrap();
        let works = |command: &mut Command| command.status().is_ok_and(|status| status.success());
        let made = works(Command::new("mkfs.ext4").arg("-q").arg(&image))
            && works(
                Command::new("mount")
                    .args(["-o", "loop"])
                    .arg(&image)
                    .arg(lab.cache()),
            );
        if !made {
            skip(Need::Root, "no file system can be made and mounted");
        }
        made.then_some(Self(lab.cache()))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
#[ignore = "test-all"]
fn a_full_disk_is_the_result_of_a_trial_that_fills_it_and_refused_where_swap_needs_it() {
    let Some((lab, _turn)) = lab() else { return };
    let Some(_disk) = SmallDisk::mount(&lab) else {
        return;
    };
    let before = state();
    let words = [
        "filecopy",
        "--swap",
        "none",
        "-p",
        "victim=4M",
        "-p",
        "size=16M",
        "-p",
        "size=80M",
    ];
    let said = Run::start(&lab, &[&words[..], &["--seeds", "1"]].concat()).ends();
    nothing_is_left(&lab, &before);
    let records = lab.newest(2);
    let (whole, full): (Vec<_>, Vec<_>) = records
        .iter()
        .partition(|record| invalid(record).is_empty());
    assert_eq!((whole.len(), full.len()), (1, 1), "{said}");
    let why = full[0]["results"]["invalid"].to_string();
    assert!(why.contains("No space left"), "{why}");
    // Without room for swap no trial can run.
    let words = linear(&["--swap", "ssd", "--seeds", "1"]);
    let (_, err) = lab.ends_badly([&["run"], &words[..], &SMALL].concat());
    one_sentence(&err, &["free"]);
    assert_eq!(lab.records(), 2);
    nothing_is_left(&lab, &before);
}
