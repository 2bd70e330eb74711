//! Traces the running kernel under real memory pressure. Needs root; skipped, with the reason, if it cannot run.

// Helpers of tests may unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pagetide_probe::ProbeError;
use pagetide_probe::meaning::{
    ATTRIBUTION_EVENTS, BLOCK_EVENTS, Part, RECLAIM_EVENTS, RowId, Section, TaskAccounting,
    analyse, attribute,
};
use pagetide_probe::text::TextFile;
use pagetide_probe::trace::{
    Capture, EventName, FieldAccess, Instance, TraceFile, TraceSettings, Tracefs,
};
use pagetide_quantity::Nanos;
use pagetide_system::Syntax;
use pagetide_testing::{Need, skip};

/// Lock held by tests that put the machine under memory pressure, so that only one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports why a test is skipped. Returns `Some`, because a skipped test must not be repeated.
#[allow(clippy::unnecessary_wraps)] // Tests that can be skipped return an `Option`.
fn skipped(need: Need, why: impl std::fmt::Display) -> Option<()> {
    skip(need, why);
    Some(())
}

/// Runs as the child process of [`support::Pressure::start`].
#[test]
#[ignore = "started by other tests"]
fn workload() {
    support::workload();
}

fn capture(events: &[&[EventName]]) -> Result<Capture, ProbeError> {
    let settings = TraceSettings {
        events: events.concat(),
        buffer_kib: 16 << 10,
        ..TraceSettings::default()
    };
    Capture::new(Instance::new(Tracefs::open()?, &settings)?)
}

/// Sets up memory pressure and a capture for a test. Returns `None` after reporting why the test is skipped.
fn prepare(name: &str, events: &[&[EventName]]) -> Option<(support::Pressure, Capture)> {
    let pressure = match support::Pressure::new(name, 64, 192) {
        Ok(pressure) => pressure,
        Err(why) => {
            skip(Need::MemoryGroup, why);
            return None;
        }
    };
    match capture(events) {
        Ok(capture) => Some((pressure, capture)),
        Err(error) => {
            skip(Need::Tracing, error);
            None
        }
    }
}

#[test]
fn the_sums_of_a_limited_groups_reclaim_agree_with_vmstat() {
    support::unless_killed(sums_of_reclaim);
}

fn sums_of_reclaim() -> Option<()> {
    let _alone = alone();
    let Some((pressure, mut capture)) = prepare("sums", &[RECLAIM_EVENTS]) else {
        return Some(());
    };
    let mut vmstat = TextFile::open(Path::new("/proc/vmstat"), Syntax::KeyValue).unwrap();
    capture.start().unwrap();
    let before = vmstat.sample().unwrap().clone();
    let capture = support::Background::new(capture, Duration::from_millis(20));
    support::printed(pressure.start(128, 3))?;
    let after = vmstat.sample().unwrap().clone();
    let trace = capture.finish().unwrap();
    let delta = after.delta(&before);
    let table = analyse(&trace, Some(&delta), None).unwrap();
    assert!(!table.losses.any(), "{:?}", table.losses);
    for row in &table.rows {
        println!("{:60} {:?} {:?}", row.name, row.value, row.check);
    }
    let count = |id| table.row(id).unwrap().value.count().unwrap();
    // 128 MiB are written three times under a limit of 64 MiB: at least twice the excess is swapped out.
    assert!(count(RowId::SwapOuts) > 2 * 16_384);
    assert!(count(RowId::MemcgReclaims) > 100);
    assert!(count(RowId::MemcgScanned) >= count(RowId::MemcgReclaimed));
    for id in [RowId::AllScanned, RowId::AllReclaimed, RowId::AllWritten] {
        let check = table.row(id).unwrap().check.as_ref().unwrap();
        assert!(!check.disagrees, "{id:?}: {check:?}");
    }
    let worst = &table.tasks[0];
    assert!(
        worst.stalled > Nanos(1_000_000) && worst.reclaims > 100,
        "{worst:?}"
    );
    // The stored trace gives the same result as the live one.
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    let again = TraceFile::read(&bytes[..]).unwrap();
    assert_eq!(analyse(&again, Some(&delta), None).unwrap(), table);
    Some(())
}

#[test]
fn the_parts_of_a_tasks_time_add_up_to_its_elapsed_time() {
    support::unless_killed(parts_of_time);
}

fn parts_of_time() -> Option<()> {
    let _alone = alone();
    let events = [RECLAIM_EVENTS, ATTRIBUTION_EVENTS, BLOCK_EVENTS];
    let Some((pressure, mut capture)) = prepare("parts", &events) else {
        return Some(());
    };
    capture.start().unwrap();
    let capture = support::Background::new(capture, Duration::from_millis(10));
    let stolen = support::stolen();
    let child = pressure.start(128, 2);
    let task = support::measured(child)?;
    let trace = capture.finish().unwrap();
    let tasks = [TaskAccounting {
        pid: task.pid,
        begin: Some(task.begin),
        end: Some(task.end),
        user: Some(task.user),
        system: Some(task.system),
    }];
    let losses = trace.meta.losses;
    assert!(!losses.any(), "{losses:?}");
    let time = attribute(&trace, &tasks).unwrap().remove(0);
    println!("{time:#?}");
    let share = |nanos: Nanos| nanos.0 as f64 / time.elapsed.0 as f64;
    assert_eq!(time.parts.total(), time.elapsed);
    assert!(share(time.parts.get(Part::Unexplained)) < 0.02);
    // The trace and the task's accounting agree on its time on CPUs, with two exceptions. Time stolen by a hypervisor
    // is not accounted to the task, but the trace cannot see it. And if a woken task preempts another, the scheduler
    // skips a clock update (`rq_clock_skip_update`) and accounts from the wakeup on.
    let (accounted, traced) = (time.accounted.unwrap().0, time.on_cpu.0);
    let margin = time.elapsed.0 / 50;
    let stolen = support::stolen().0 - stolen.0;
    let queued = time.parts.get(Part::RunQueue).0;
    assert!(
        accounted < traced + margin + queued && traced < accounted + margin + stolen,
        "{accounted} ns accounted, {traced} traced, {queued} waited, {stolen} stolen"
    );
    assert!(time.parts.get(Part::Reclaim) > Nanos(0) && time.parts.get(Part::IoWait) > Nanos(0));
    assert!(time.faults > 20_000, "{}", time.faults);
    Some(())
}

#[test]
fn what_goes_to_a_swap_device_is_what_vmstat_counts_as_swapped() {
    support::unless_killed(swapped_on_a_device);
}

fn swapped_on_a_device() -> Option<()> {
    let _alone = alone();
    let pressure = match support::Pressure::on_device("device", 64, 192) {
        Ok(pressure) => pressure,
        Err(why) => {
            return skipped(Need::Swap, why);
        }
    };
    let mut capture = match capture(&[RECLAIM_EVENTS, BLOCK_EVENTS]) {
        Ok(capture) => capture,
        Err(error) => {
            return skipped(Need::Tracing, error);
        }
    };
    let mut vmstat = TextFile::open(Path::new("/proc/vmstat"), Syntax::KeyValue).unwrap();
    capture.start().unwrap();
    let before = vmstat.sample().unwrap().clone();
    let capture = support::Background::new(capture, Duration::from_millis(20));
    support::printed(pressure.start(96, 2))?;
    let after = vmstat.sample().unwrap().clone();
    let trace = capture.finish().unwrap();
    assert_eq!(trace.meta.swap_devices.len(), 1);
    let delta = after.delta(&before);
    let table = analyse(&trace, Some(&delta), None).unwrap();
    for id in [RowId::SwapIns, RowId::SwapOuts] {
        let row = table.row(id).unwrap();
        println!("{row:?}");
        let check = row.check.as_ref().unwrap();
        assert!(check.traced > 1000 && !check.disagrees, "{check:?}");
    }
    Some(())
}

/// Runs as a process that holds an instance until the process is killed.
#[test]
#[ignore = "started by another test"]
fn hold() {
    let mut held = capture(&[RECLAIM_EVENTS]).unwrap();
    held.start().unwrap();
    println!("holding {}", held.instance().path().display());
    std::thread::sleep(Duration::from_mins(1));
}

#[test]
fn an_instance_of_a_killed_process_is_removed_by_the_next_start() {
    let tracefs = match Tracefs::open() {
        Ok(tracefs) => tracefs,
        Err(error) => return skip(Need::Tracing, error),
    };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "hold",
            "--nocapture",
            "--test-threads=1",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let name = output
        .lines()
        .find_map(|line| {
            line.unwrap()
                .split_once("holding ")
                .map(|(_, path)| path.to_owned())
        })
        .unwrap();
    let left = tracefs
        .root()
        .join("instances")
        .join(Path::new(&name).file_name().unwrap());
    let state = || std::fs::read_to_string(left.join("tracing_on")).unwrap();
    assert_eq!(state(), "1\n");
    // The process is killed with SIGKILL, so it cannot clean up.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(state(), "1\n");
    drop(capture(&[RECLAIM_EVENTS]).unwrap());
    assert!(!left.exists());
}

#[test]
fn the_sums_of_compaction_agree_with_vmstat() {
    let _alone = alone();
    let mut capture = match capture(&[RECLAIM_EVENTS]) {
        Ok(capture) => capture,
        Err(error) => return skip(Need::Tracing, error),
    };
    let mut vmstat = TextFile::open(Path::new("/proc/vmstat"), Syntax::KeyValue).unwrap();
    capture.start().unwrap();
    let before = vmstat.sample().unwrap().clone();
    let capture = support::Background::new(capture, Duration::from_millis(20));
    if let Err(error) = std::fs::write("/proc/sys/vm/compact_memory", "1") {
        return skip(
            Need::Root,
            format!("compaction could not be asked for ({error})"),
        );
    }
    let after = vmstat.sample().unwrap().clone();
    let trace = capture.finish().unwrap();
    let delta = after.delta(&before);
    let table = analyse(&trace, Some(&delta), None).unwrap();
    for row in &table.rows {
        if row.section == Section::Compaction {
            println!("{:40} {:?} {:?}", row.name, row.value, row.check);
        }
    }
    assert!(
        table
            .row(RowId::MigrateScanned)
            .unwrap()
            .value
            .count()
            .unwrap()
            > 0
    );
    for id in [
        RowId::AllMigrated,
        RowId::MigrateScanned,
        RowId::FreeScanned,
        RowId::Isolated,
    ] {
        let check = table.row(id).unwrap().check.as_ref().unwrap();
        assert!(
            !check.disagrees || check.reason.is_some(),
            "{id:?}: {check:?}"
        );
    }
    let migrated = table.row(RowId::AllMigrated).unwrap();
    assert!(!migrated.check.as_ref().unwrap().disagrees, "{migrated:?}");
}

/// Counts by event from the output of `perf stat`, or the reason why there are none.
fn perf_counts(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let mut columns = line.split(',');
        let (Some(count), Some(_), Some(event)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        if let Some((_, name)) = event.split_once(':') {
            let count = count.parse().map_err(|_| format!("perf says: {line}"))?;
            counts.insert(name.to_owned(), count);
        }
    }
    if counts.is_empty() {
        return Err(format!("perf counted nothing: {}", text.trim()));
    }
    Ok(counts)
}

#[test]
fn counts_equal_those_perf_makes_of_the_same_run() {
    support::unless_killed(counts_of_perf);
}

fn counts_of_perf() -> Option<()> {
    const COUNTED: &[&str] = &[
        "mm_vmscan_memcg_reclaim_begin",
        "mm_vmscan_memcg_reclaim_end",
        "mm_vmscan_lru_isolate",
        "mm_vmscan_lru_shrink_inactive",
        "mm_vmscan_write_folio",
    ];
    let _alone = alone();
    let works = Command::new("perf").arg("--version").output();
    if !works.is_ok_and(|output| output.status.success()) {
        return skipped(
            Need::Perf,
            "perf is not installed (Debian's package linux-perf)",
        );
    }
    let Some((pressure, mut capture)) = prepare("perf", &[RECLAIM_EVENTS]) else {
        return Some(());
    };
    let result = tempfile::NamedTempFile::new().unwrap();
    let events: Vec<_> = COUNTED
        .iter()
        .map(|name| format!("vmscan:{name}"))
        .collect();
    let events = events.join(",");
    // perf needs tracefs at its usual path: mount it in a namespace that only perf sees.
    let mounted = "mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing; exec \"$@\"";
    let program = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        mounted,
        "sh",
        "perf",
        "stat",
        "-x,",
        "-o",
        result.path().to_str().unwrap(),
        "-e",
        &events,
        "--",
    ];
    capture.start().unwrap();
    let capture = support::Background::new(capture, Duration::from_millis(20));
    let task = support::measured(pressure.start_under(&program, 128, 2))?;
    let trace = capture.finish().unwrap();
    let text = std::fs::read_to_string(result.path()).unwrap();
    let perf = match perf_counts(&text) {
        Ok(counts) => counts,
        Err(why) => {
            return skipped(Need::Perf, why);
        }
    };
    let formats = trace.formats().unwrap();
    let names: BTreeMap<u16, &str> = formats.iter().map(|f| (f.id, f.name.as_str())).collect();
    let mut traced: BTreeMap<String, u64> = COUNTED.iter().map(|&n| (n.to_owned(), 0)).collect();
    let pid = FieldAccess::first_of(&formats[0], &["common_pid"]).unwrap();
    for event in trace.events() {
        let pid = pid.get(event.data).unwrap();
        let ours = pid == u64::from(task.pid) || pid == u64::from(task.process);
        if let (true, Some(count)) = (ours, traced.get_mut(names[&event.id])) {
            *count += 1;
        }
    }
    println!("{traced:#?}");
    assert_eq!(traced, perf);
    assert!(traced["mm_vmscan_lru_isolate"] > 1000);
    Some(())
}

#[test]
fn nothing_of_an_instance_is_left_when_it_is_dropped() {
    let mut capture = match capture(&[RECLAIM_EVENTS]) {
        Ok(capture) => capture,
        Err(error) => return skip(Need::Tracing, error),
    };
    let path = capture.instance().path().to_owned();
    capture.start().unwrap();
    assert_eq!(
        std::fs::read_to_string(path.join("tracing_on")).unwrap(),
        "1\n"
    );
    let running = support::Background::new(capture, Duration::from_millis(5));
    let name = path.file_name().unwrap().to_owned();
    drop(running);
    let tracefs = Tracefs::open().unwrap();
    assert!(!tracefs.root().join("instances").join(name).exists());
}

#[test]
#[ignore = "makes tests/data/reclaim-6.18.trace anew"]
fn make_the_golden_trace() {
    let pressure = support::Pressure::new("golden", 16, 64).unwrap();
    let mut capture = capture(&[RECLAIM_EVENTS, ATTRIBUTION_EVENTS, BLOCK_EVENTS]).unwrap();
    capture.start().unwrap();
    assert!(pressure.start(24, 1).wait().unwrap().success());
    let mut trace = capture.finish().unwrap();
    // The names of this machine's other tasks must not be published.
    let ours = |name: &str| name.starts_with("kswapd") || name.starts_with("kcompactd");
    trace.meta.tasks.retain(|(_, name)| ours(name));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reclaim-6.18.trace");
    trace.write(std::fs::File::create(path).unwrap()).unwrap();
}

/// True if the kernel currently swaps to this file.
fn is_swapped_to(file: &Path) -> bool {
    let areas = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    areas.contains(&*file.to_string_lossy())
}

#[test]
fn the_measurement_of_overhead_takes_its_swap_away_when_it_is_stopped() {
    let own = std::env::current_exe().unwrap();
    let program = own
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples/live_overhead");
    if !program.exists() {
        let why = "the example is not built: cargo build --workspace --examples";
        return skip(Need::Tracing, why);
    }
    let _alone = alone();
    let swap = program.with_file_name("pagetide-probe-overhead.swap");
    let mut child = Command::new(&program)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut found = false;
    // The program first writes a file of 192 MiB. If that or swap is not possible, it reports so and exits.
    while !found && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
        found = is_swapped_to(&swap);
    }
    if found {
        // Signal it while its workload runs.
        std::thread::sleep(Duration::from_millis(700));
        let pid = i32::try_from(child.id()).unwrap();
        // SAFETY: the signal goes to a child process that has not been waited for.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !found {
        return skip(Need::Swap, said.trim());
    }
    assert!(!output.status.success(), "{said}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("stopped before"), "{error}");
    assert!(!is_swapped_to(&swap) && !swap.exists());
    assert!(!Path::new("/sys/fs/cgroup/memory/pagetide-probe-overhead").exists());
}
