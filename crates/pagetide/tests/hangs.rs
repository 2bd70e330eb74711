//! Tests of guests that do not boot, and of signals in every phase: no wait exceeds its stated limit, and every command
//! ends within two seconds after Ctrl-C or SIGTERM.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::rot::kernel_files;
use crate::common::{
    KERNEL, Lab, TINY, emulators_of, one_sentence, program, trials_of, wait_until,
};
use pagetide_testing::program::write_program;
use rustix::process::{Pid, Signal, kill_process};

/// Maximum time from a signal to the end of the program.
const PROMISED: Duration = Duration::from_secs(2);

/// Maximum time from the start of a boot that fails to its end.
const BOOT: Duration = Duration::from_mins(1);

/// Arguments of `run linear` with a tiny size on this kernel, followed by more arguments.
fn tiny<'a>(kernel: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [
        &["run", "linear", "--seeds", "1", "--kernel", kernel],
        &TINY[..],
        more,
    ]
    .concat()
}

/// Changes a copy of the tests' kernel image. Returns the argument that names the changed kernel.
fn changed(shared: &Lab, lab: &Lab, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let kernel = kernel_files(shared);
    let (image, rest) = kernel
        .strip_prefix("image:")
        .unwrap()
        .split_once(',')
        .unwrap();
    let mut bytes = fs::read(image).unwrap();
    change(&mut bytes);
    let path = lab.folder().join("bzImage");
    fs::write(&path, bytes).unwrap();
    format!("image:{},{rest}", path.display())
}

/// Offset of the code that runs first in a kernel image. Source: kernel `Documentation/arch/x86/boot.rst`,
/// `setup_sects`.
fn start_of(image: &[u8]) -> usize {
    (usize::from(image[0x1f1]) + 1) * 512
}

/// Makes a kernel image whose first code is an endless loop of two bytes; returns the argument that names the kernel.
fn spinning(shared: &Lab, lab: &Lab) -> String {
    changed(shared, lab, |image| {
        let start = start_of(image);
        image[start..start + 2].copy_from_slice(&[0xeb, 0xfe]);
    })
}

#[test]
fn a_guest_that_panics_in_boot_ends_at_once_with_its_last_words_and_the_likely_cause() {
    let Some(lab) = Lab::that_runs() else { return };
    let began = Instant::now();
    let (_, err) = lab.ends(2, tiny(KERNEL, &["--boot", "mem=8M"]));
    one_sentence(
        &err,
        &["did not get ready", "panic", "mem=8M", "leave it out"],
    );
    assert!(began.elapsed() < stretched(BOOT), "{:?}", began.elapsed());
}

#[test]
#[ignore = "test-all"]
fn an_image_that_does_not_unpack_ends_at_once_and_is_called_damaged() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    let lab = Lab::with_own_cache();
    let kernel = changed(&shared, &lab, |image| {
        let at = image.len() / 2;
        image[at] ^= 16;
    });
    let began = Instant::now();
    let (_, err) = lab.ends(2, tiny(&kernel, &[]));
    one_sentence(&err, &["did not get ready", "corrupt", "image is damaged"]);
    assert!(began.elapsed() < stretched(BOOT), "{:?}", began.elapsed());
}

#[test]
#[ignore = "test-all"]
fn a_guest_that_makes_no_progress_in_boot_ends_after_the_timeout() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    let lab = Lab::with_own_cache();
    let kernel = spinning(&shared, &lab);
    let began = Instant::now();
    let (_, err) = lab.ends(2, tiny(&kernel, &["--timeout", "4s"]));
    one_sentence(
        &err,
        &["did not get ready", "nothing moved in it for ", "--timeout"],
    );
    assert!(began.elapsed() < stretched(BOOT), "{:?}", began.elapsed());
}

/// Extends a time limit by the load per processor, because the machine may be busy with other tests.
fn stretched(promised: Duration) -> Duration {
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    let load: f64 = load.split(' ').next().unwrap().parse().unwrap();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    promised.mul_f64((load / cpus as f64).max(1.0))
}

/// True if Ctrl-C is ignored by this process. Source: proc_pid_status(5), `SigIgn`.
fn ignores_interrupts() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (Signal::INT.as_raw() - 1) & 1 == 1
}

/// Sends the signal to the program, which must end because of the signal within the promised time.
fn ends_soon(phase: &str, mut child: Child, signal: Signal) {
    // If the tests run in the background of a script, Ctrl-C may be ignored, which children inherit.
    let signal = if signal == Signal::INT && ignores_interrupts() {
        Signal::TERM
    } else {
        signal
    };
    let limit = stretched(PROMISED);
    let began = Instant::now();
    kill_process(Pid::from_child(&child), signal).unwrap();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > limit {
            child.kill().unwrap();
            panic!(
                "{phase}: still there {:?} after {signal:?}",
                began.elapsed()
            );
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = child.wait().unwrap();
    // The program either exits with the code that shells use, or is killed by the signal.
    let code = 128 + signal.as_raw();
    let is_served = phase == "serving" && status.success();
    assert!(
        is_served || status.code() == Some(code) || status.signal() == Some(signal.as_raw()),
        "{phase}: {status}"
    );
    println!("{phase}: ended {:?} after {signal:?}", began.elapsed());
}

/// Starts the program with these arguments. Nothing reads the program's output.
fn start(lab: &Lab, arguments: &[&str], path: Option<&Path>) -> Child {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .env("PAGETIDE_STORE", lab.store())
        .env("PAGETIDE_CACHE", lab.cache())
        .current_dir(lab.folder())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(path) = path {
        let usual = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{usual}", path.display()));
    }
    command.spawn().unwrap()
}

/// Occupies all slots for emulators in a cache, as other runs would. Dropping the files frees the slots.
fn all_places(lab: &Lab) -> Vec<fs::File> {
    let folder = lab.cache().join("places");
    fs::create_dir_all(&folder).unwrap();
    let processors = std::thread::available_parallelism().unwrap().get();
    let lock = |number: usize| {
        let file = fs::File::create(folder.join(number.to_string())).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        file
    };
    (0..processors).map(lock).collect()
}

/// Creates a folder with an `apt-get` that never ends. Returns this folder, and the path of the file that `apt-get`
/// creates when it runs.
fn endless_apt(lab: &Lab) -> (PathBuf, PathBuf) {
    let (folder, seen) = (lab.folder().join("bin"), lab.folder().join("apt-runs"));
    fs::create_dir(&folder).unwrap();
    let path = folder.join("apt-get");
    let text = format!("#!/bin/sh\ntouch {}\nexec sleep 600\n", seen.display());
    write_program(&path, &text);
    (folder, seen)
}

/// Time limit only for tests that would never end; it is not a measurement, because the machine may be busy.
const SOON: Duration = Duration::from_mins(10);

#[test]
#[ignore = "test-all"]
fn a_signal_ends_a_run_within_two_seconds_while_a_kernel_is_fetched_or_unpacked() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    for signal in [Signal::INT, Signal::TERM] {
        let lab = Lab::with_own_cache();
        let (bin, seen) = endless_apt(&lab);
        let child = start(&lab, &tiny("debian:sid", &[]), Some(&bin));
        wait_until("a fetch", SOON, || seen.exists());
        ends_soon("fetching", child, signal);
    }
    // The configuration is a pipe without writer, which stops the program in the middle of unpacking.
    let lab = Lab::with_own_cache();
    let pipe = lab.folder().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let kernel = kernel_files(&shared);
    let (image, _) = kernel.split_once(",modules:").unwrap();
    let kernel = format!("{image},config:{}", pipe.display());
    let child = start(&lab, &tiny(&kernel, &[]), None);
    let tmp = lab.cache().join("tmp");
    wait_until("unpacking", SOON, || {
        fs::read_dir(&tmp).is_ok_and(|mut entries| entries.next().is_some())
    });
    ends_soon("unpacking", child, Signal::TERM);
}

#[test]
fn a_signal_ends_a_run_within_two_seconds_while_a_guest_boots_or_runs() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    let lab = Lab::with_own_cache();
    let kernel = spinning(&shared, &lab);
    for signal in [Signal::INT, Signal::TERM] {
        let child = start(&lab, &tiny(&kernel, &[]), None);
        let id = child.id();
        wait_until("a boot", SOON, || !emulators_of(id).is_empty());
        ends_soon("booting", child, signal);
        assert_eq!(lab.in_the_making(), Vec::<PathBuf>::new());
    }
    let held = all_places(&lab);
    let waiting = || {
        let child = start(&lab, &tiny(&kernel, &[]), None);
        wait_until("a wait", SOON, || !lab.in_the_making().is_empty());
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(emulators_of(child.id()), Vec::<u32>::new());
        child
    };
    ends_soon("waiting for a place", waiting(), Signal::INT);
    let child = waiting();
    drop(held);
    let id = child.id();
    wait_until("a boot", SOON, || !emulators_of(id).is_empty());
    ends_soon("booting after a wait", child, Signal::TERM);
    let long = tiny(KERNEL, &["-p", "pages=40M", "-p", "refs=500000000"]);
    let child = start(&shared, &long, None);
    let id = child.id();
    wait_until("a trial", SOON, || {
        !shared.incoming().is_empty() && !trials_of(id).is_empty()
    });
    ends_soon("running", child, Signal::INT);
    assert_eq!(shared.leftovers(), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "test-all"]
fn a_signal_ends_a_run_within_two_seconds_while_its_results_are_written_and_nobody_reads_them() {
    let Some(lab) = Lab::that_runs() else { return };
    let two = [
        "--seeds",
        "2",
        "--vs",
        "vm.swappiness=200",
        "--as",
        "samples",
        "--exit-zero",
    ];
    let run = [&["run", "linear", "--kernel", KERNEL], &TINY[..], &two].concat();
    lab.ends(0, run.clone());
    let child = start(&lab, &run, None);
    let pipe = child.stdout.as_ref().unwrap();
    rustix::pipe::fcntl_setpipe_size(pipe, 4096).unwrap();
    // The pipe is full, so further output blocks.
    wait_until("a full pipe", SOON, || {
        rustix::io::ioctl_fionread(pipe).is_ok_and(|waiting| waiting >= 4096)
    });
    ends_soon("writing", child, Signal::TERM);
}

#[test]
#[ignore = "test-all"]
fn a_signal_ends_serve_within_two_seconds_although_a_connection_says_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let lab = Lab::with_own_cache();
        let mut child = start(&lab, &["serve", "--listen", "127.0.0.1:0"], None);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("http://")
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        let mut silent = TcpStream::connect(address).unwrap();
        // The request is incomplete.
        silent.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
        std::thread::sleep(Duration::from_millis(300));
        ends_soon("serving", child, signal);
        let _ = silent.read(&mut [0; 16]);
    }
}

/// A table of measurements with this number of lines, two variants, and one pair for each seed.
fn table(lab: &Lab, lines: usize) -> PathBuf {
    let mut text = String::from("scenario,variant,seed,metric,value\n");
    for line in 0..lines {
        let (variant, seed) = (["a", "b"][line % 2], line / 2);
        let value = 100 + line % 7;
        writeln!(text, "x,{variant},{seed},time,{value}.5").unwrap();
    }
    let path = lab.folder().join("table.csv");
    fs::write(&path, text).unwrap();
    path
}

/// Path of a campaign file whose plan takes longer than any test.
fn endless_plan(lab: &Lab) -> PathBuf {
    let list = |from: u32| {
        let values: Vec<String> = (from..from + 4000).map(|value| value.to_string()).collect();
        values.join(", ")
    };
    let text = format!(
        "name = \"endless\"\narena = \"exact\"\n[sampling]\nseeds = 8\n[[variant]]\nname = \"a\"\nkernel = \"{KERNEL}\"\n\
         [[scenario]]\nname = \"linear\"\nparams = {{ pages = [{}], refs = [{}] }}\n",
        list(30_000),
        list(1000)
    );
    let path = lab.folder().join("endless.toml");
    fs::write(&path, text).unwrap();
    path
}

#[test]
#[ignore = "test-all"]
fn a_signal_ends_what_works_on_the_store_within_two_seconds_and_the_store_stays_whole() {
    let lab = Lab::with_own_cache();
    let table = table(&lab, 6000);
    let table = table.to_str().unwrap();
    lab.ends(0, ["import", "csv", table, "--name", "many"]);
    let page = lab.folder().join("page.html");
    let page = page.to_str().unwrap();
    let work: [&[&str]; 7] = [
        &["compare", "many"],
        &["compare", "many", "--tails"],
        &["compare", "many", "--why"],
        &["report", "many", "-o", page],
        &["import", "csv", table, "--name", "again"],
        &["store", "verify"],
        &["store", "rebuild"],
    ];
    for (signal, delay) in [(Signal::INT, 20), (Signal::TERM, 120)] {
        for arguments in work {
            let mut child = start(&lab, arguments, None);
            std::thread::sleep(Duration::from_millis(delay));
            if child.try_wait().unwrap().is_none() {
                ends_soon(arguments[0], child, signal);
            }
            fs::remove_file(page).ok();
        }
    }
    lab.ends(0, ["store", "verify"]);
    lab.ends(0, ["compare", "many", "--exit-zero"]);
}

#[test]
#[ignore = "test-all"]
fn a_signal_ends_a_plan_and_the_adding_of_a_kernel_within_two_seconds() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    let lab = Lab::with_own_cache();
    let plan = endless_plan(&lab);
    for signal in [Signal::INT, Signal::TERM] {
        let child = start(&shared, &["plan", plan.to_str().unwrap()], None);
        std::thread::sleep(Duration::from_secs(1));
        ends_soon("planning", child, signal);
        let lab = Lab::with_own_cache();
        let (bin, seen) = endless_apt(&lab);
        let child = start(&lab, &["kernel", "add", "debian:sid"], Some(&bin));
        wait_until("a fetch", SOON, || seen.exists());
        ends_soon("adding", child, signal);
    }
}

#[test]
#[ignore = "test-all"]
fn a_signal_ends_a_run_within_two_seconds_while_it_compares() {
    let Some(lab) = Lab::that_runs() else { return };
    let two = ["--seeds", "2", "--vs", "vm.swappiness=200", "--exit-zero"];
    let run = [&["run", "linear", "--kernel", KERNEL], &TINY[..], &two].concat();
    lab.ends(0, run.clone());
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        // All trials have records, so the command compares at once. It is paused (SIGSTOP) while the signal is sent,
        // and the time is measured from its continuation.
        let mut command = Command::new(program());
        command
            .args(&run)
            .env("PAGETIDE_STORE", lab.store())
            .env("PAGETIDE_CACHE", lab.cache())
            .current_dir(lab.folder())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let began = Instant::now();
        kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            began.elapsed() < stretched(PROMISED),
            "{:?}",
            began.elapsed()
        );
        // If the process ended before the signal or completed in time, its own exit code counts.
        let status = output.status;
        let fine = [Some(0), Some(code)].contains(&status.code())
            || status.signal() == Some(signal.as_raw());
        assert!(fine, "{status}");
    }
}

/// True if the process has a file in this folder open, named or unnamed.
fn has_open(child: &Child, folder: &Path) -> bool {
    let folder = fs::canonicalize(folder).unwrap();
    fs::read_dir(format!("/proc/{}/fd", child.id()))
        .unwrap()
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|file| file.starts_with(&folder)))
}

#[test]
fn a_command_that_is_ended_while_it_writes_a_file_leaves_nothing_of_it() {
    let lab = Lab::with_own_cache();
    let table = table(&lab, 6000);
    lab.ends(
        0,
        ["import", "csv", table.to_str().unwrap(), "--name", "many"],
    );
    let folder = lab.folder().join("out");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("file");
    let file = file.to_str().unwrap();
    let endless = ["--pages", "1000", "--refs", "4000000000", "-o", file];
    let endless = [&["ideal", "references", "random"], &endless[..]].concat();
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        for arguments in [&["report", "many", "-o", file], &endless[..]] {
            let child = start(&lab, arguments, None);
            wait_until("a file in the making", SOON, || has_open(&child, &folder));
            ends_soon(arguments[0], child, signal);
            let left: Vec<_> = fs::read_dir(&folder).unwrap().flatten().collect();
            assert!(left.is_empty(), "{} {signal:?}: {left:?}", arguments[0]);
        }
    }
    // An existing file is replaced when the new file is complete; a device is written directly.
    let one = [
        "ideal",
        "references",
        "random",
        "--pages",
        "9",
        "--refs",
        "9",
    ];
    for _ in 0..2 {
        lab.ends(0, [&one[..], &["--text", "-o", file]].concat());
        assert_eq!(fs::read_to_string(file).unwrap().lines().count(), 9);
    }
    lab.ends(0, [&one[..], &["-o", "/dev/null"]].concat());
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
#[ignore = "test-all"]
fn a_signal_ends_a_comparison_of_many_trials_within_two_seconds() {
    let lab = Lab::with_own_cache();
    let table = table(&lab, 20_000);
    lab.ends(
        0,
        ["import", "csv", table.to_str().unwrap(), "--name", "many"],
    );
    let page = lab.folder().join("page.html");
    let page = page.to_str().unwrap();
    let work: [&[&str]; 2] = [
        &["compare", "many", "--tails", "--exit-zero"],
        &["report", "many", "-o", page],
    ];
    for (signal, arguments) in [Signal::INT, Signal::TERM].into_iter().zip(work) {
        // The duration of a complete run shows when to interrupt it. On a busy machine several attempts may be
        // necessary.
        let began = Instant::now();
        lab.ends(0, arguments);
        let whole = began.elapsed();
        fs::remove_file(page).ok();
        let child = (0..10).find_map(|_| {
            let mut child = start(&lab, arguments, None);
            std::thread::sleep(whole / 2);
            let has_ended = child.try_wait().unwrap().is_some();
            fs::remove_file(page).ok();
            (!has_ended).then_some(child)
        });
        println!("{} takes {whole:?}", arguments[0]);
        ends_soon(arguments[0], child.unwrap(), signal);
        assert!(!Path::new(page).exists());
    }
}
