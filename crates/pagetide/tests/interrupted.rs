//! Tests of Ctrl-C, kill -9, and two runs at once: only the running trial is lost, and nothing is left behind.

use std::process::Child;
use std::time::Duration;

use crate::common::{KERNEL, Lab, is_alive, one_sentence, text, trials_of, wait_until};

/// Arguments of a trial that takes minutes, so that it is certainly still running when it is interrupted.
const LONG: [&str; 14] = [
    "run",
    "random",
    "--kernel",
    KERNEL,
    "--memory",
    "24M",
    "--swap-size",
    "64M",
    "-p",
    "pages=40M",
    "-p",
    "refs=500000000",
    "--seeds",
    "1",
];
/// Time limit only for tests that would never end; it is not a measurement, because the machine may be busy.
const LIMIT: Duration = Duration::from_mins(10);

/// Starts the long trial and waits until its emulator runs. Returns the process, and the ids of its emulators.
fn in_flight(lab: &Lab) -> (Child, Vec<u32>) {
    let child = lab.start(LONG);
    wait_until("a trial in flight", LIMIT, || {
        !lab.incoming().is_empty() && !trials_of(child.id()).is_empty()
    });
    // The snapshot is restored, and the trial has begun.
    std::thread::sleep(Duration::from_millis(500));
    let emulators = trials_of(child.id());
    (child, emulators)
}

fn send(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

fn gone(emulators: &[u32]) {
    wait_until("the end of the emulators", Duration::from_secs(10), || {
        !emulators.iter().any(|pid| is_alive(*pid))
    });
}

#[test]
fn ctrl_c_stops_the_trial_in_order_and_says_how_to_go_on() {
    let Some(lab) = Lab::that_runs() else { return };
    let (child, emulators) = in_flight(&lab);
    send(&child, rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("the same command goes on from here"), "{err}");
    gone(&emulators);
    assert_eq!(lab.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// Names of the program's files in `/dev/shm`. Tests may keep stores there, with other names.
fn shared_memory() -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter(|name| name.to_string_lossy().contains("pagetide"))
        .collect()
}

#[test]
fn a_killed_run_leaves_nothing_after_the_next_start_and_no_second_run_gets_in_its_way() {
    let Some(lab) = Lab::that_runs() else { return };
    let before = shared_memory();
    let (mut child, emulators) = in_flight(&lab);

    // The same campaign is refused while it runs, but other commands are not.
    let (_, err) = lab.ends(2, LONG);
    one_sentence(&err, &[&child.id().to_string()]);
    lab.ends(0, ["list", "records"]);

    child.kill().unwrap();
    child.wait().unwrap();
    gone(&emulators);
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, "[]\n");
    assert_eq!(lab.leftovers(), Vec::<std::path::PathBuf>::new());
    assert_eq!(shared_memory(), before, "no shared memory file");

    // The lock is free: the same campaign can start again.
    let half_made = lab.in_the_making();
    let (child, emulators) = in_flight(&lab);
    // The second run has removed incomplete snapshots if the first run was killed while making one. Other tests may be
    // making their own snapshots at any time.
    wait_until("the end of half-made snapshots", LIMIT, || {
        half_made.iter().all(|path| !path.exists())
    });
    send(&child, rustix::process::Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
    gone(&emulators);
}
