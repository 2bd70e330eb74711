//! Small records for tests, and the IDs of the records in a store.

// Each test file uses some of these. Helpers may unwrap, as tests do.

use std::ffi::CStr;
use std::path::Path;

use pagetide_quantity::{Direction, Metric, MetricDef, Nanos};
use pagetide_record::Record;
use pagetide_store::Filter;
use pagetide_store::Store;

/// A time metric; every record has a value.
pub const TIME: MetricDef = MetricDef::time("run", "whole run");
/// A count metric; no record has a value.
pub const SCANNED: MetricDef = MetricDef::count("scanned", Direction::Neutral, "pages scanned");

/// A small record. Records with different `moment` belong to the same trial.
pub fn record(scenario: &str, variant: &str, seed: u64, moment: u64) -> Record {
    let mut record = Record::default();
    record.subject.scenario = scenario.into();
    record.subject.variant.name = variant.into();
    record.subject.variant.kernel.release = format!("6.1-{variant}");
    record.subject.seed = seed;
    record.results.metrics = vec![
        Metric::new(&TIME, seed as f64 + 0.25),
        Metric::absent(&SCANNED, "not on this kernel"),
    ];
    record.results.elapsed = Nanos(seed);
    record.wall.started = Nanos(1_000_000 + moment);
    record.wall.total = Nanos::from_millis(10 + moment);
    record.wall.campaign = format!("of-{variant}");
    record
}

/// Adds a record, and asserts that the file is at the path that the store returns.
pub fn add(store: &mut Store, mut record: Record) -> Record {
    let writer = store.writer().unwrap();
    let path = store.add(writer, &mut record).unwrap();
    assert_eq!(path, store.path(&record.id()));
    record
}

/// IDs of all records, sorted.
pub fn ids(store: &Store) -> Vec<String> {
    let mut ids: Vec<String> = store
        .select(&Filter::default())
        .unwrap()
        .into_iter()
        .map(|row| row.id)
        .collect();
    ids.sort_unstable();
    ids
}

/// Runs `test` in a thread with separate mounts, in which a tmpfs is mounted at `at` with the mount option `size`, such
/// as `size=1m`. Returns false, without running `test`, if mounting is not permitted.
pub fn with_small_disk(at: &Path, size: &CStr, test: impl FnOnce() + Send) -> bool {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                // SAFETY: the thread shares neither mounts nor working directory with others afterwards and ends here;
                // no file descriptor table is unshared.
                let private = unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) };
                let apart = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
                if private.is_err()
                    || mount_change("/", apart).is_err()
                    || mount("none", at, "tmpfs", MountFlags::empty(), size).is_err()
                {
                    return false;
                }
                test();
                true
            })
            .join()
            .unwrap()
    })
}
