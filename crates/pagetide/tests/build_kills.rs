//! Interruptions at random moments of a run that fetches, unpacks, configures and builds a kernel: the same command always
//! comes to the right end.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::rot::Random;
use crate::common::{Lab, TINY, wait_until};
use pagetide_testing::{Need, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Interruptions, unless `PAGETIDE_TEST_BUILD_KILLS` says how many.
const KILLS: u64 = 20;
/// The latest moment of an interruption: fetching and unpacking take about as long together, and so does a part of a build.
const LATEST: Duration = Duration::from_secs(40);
/// Of the runs that come through, each so many-th is followed by one that fetches its source anew.
const SOURCES: u64 = 3;

/// The patch whose kernel is built.
const PATCH: &str = include_str!("../../../patches/used-once-2008.patch");
/// What the trials of a test do not need of pagetide's own configuration: a build without it is as small as can be.
const SMALLER: &str = "# CONFIG_EXT4_FS is not set\n# CONFIG_BLK_DEV_NBD is not set\n# CONFIG_FTRACE is not set\n\
                       # CONFIG_ENABLE_DEFAULT_TRACERS is not set\n# CONFIG_DEBUG_FS is not set\n";

fn command<'a>(store: &'a str, cache: &'a str) -> Vec<&'a str> {
    let own = [
        "run",
        "random",
        "--seeds",
        "1",
        "--patch",
        "my.patch",
        "--config",
        "my.config",
        "--store",
        store,
        "--cache",
        cache,
    ];
    [&own, &TINY[..]].concat()
}

/// Digests of a store's records by variant; all of them are valid.
fn digests(lab: &Lab, store: &str) -> BTreeMap<String, String> {
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--store", store]);
    let records: Vec<Value> = serde_json::from_str(&list).unwrap();
    let of = |record: &Value| {
        assert!(record["invalid"].is_null(), "{record}");
        let text = |name: &str| record[name].as_str().unwrap().to_owned();
        (text("variant"), text("digest"))
    };
    records.iter().map(of).collect()
}

/// Processes that were started for a cache: it stands in their arguments, their environment, or is where they work.
fn at_work_for(cache: &Path) -> Vec<String> {
    let name = cache.as_os_str().as_encoded_bytes();
    let has = |bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let works_there =
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(cache));
        if works_there || has(&read("cmdline")) || has(&read("environ")) {
            found.push(String::from_utf8_lossy(&read("cmdline")).replace('\0', " "));
        }
    }
    found
}

/// What a run was doing, by what it leaves in its cache.
fn phase(cache: &Path) -> &'static str {
    let first = |folder: &str| -> Option<PathBuf> {
        let mut entries = fs::read_dir(cache.join(folder)).ok()?.flatten();
        entries
            .find(|entry| entry.path().is_dir())
            .map(|entry| entry.path())
    };
    let Some(source) = first("sources") else {
        return match first("tmp") {
            Some(scratch) if scratch.join("unpacked").is_dir() => {
                match fs::read_dir(scratch.join("unpacked")).map(Iterator::count) {
                    Ok(0) | Err(_) => "fetching",
                    Ok(_) => "unpacking",
                }
            }
            _ => "fetching lists",
        };
    };
    assert!(source.is_dir());
    match first("builds") {
        None => "before configuring",
        Some(build) if !build.join("configured").is_file() => "configuring",
        Some(build) if build.join("building").is_file() => "building",
        Some(_) => "between builds and trials",
    }
}

/// A real kernel is built again and again: with ccache some 2 minutes for each run that comes through, and 30 s for each interruption.
#[test]
fn a_run_that_builds_a_kernel_comes_to_its_right_end_however_often_it_is_interrupted() {
    let Some(builds) = std::env::var_os("PAGETIDE_TEST_BUILDS").map(PathBuf::from) else {
        return skip(
            Need::Builds,
            "PAGETIDE_TEST_BUILDS names no cache folder to build kernels in (6 minutes once)",
        );
    };
    let kills =
        std::env::var("PAGETIDE_TEST_BUILD_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let lab = Lab::with_own_cache();
    fs::write(lab.folder().join("my.patch"), PATCH).unwrap();
    fs::write(lab.folder().join("my.config"), SMALLER).unwrap();
    let finished = |store: &str, cache: &Path| {
        let cache = cache.display().to_string();
        let output = lab.pagetide(command(store, &cache)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{said}");
        digests(&lab, store)
    };
    let right = finished("right", &builds);
    assert_eq!(right.len(), 2);

    let cache = lab.cache().to_owned();
    let path = cache.display().to_string();
    let mut random = Random::new(3);
    let (mut round, mut killed, mut whole) = (0_u64, 0, 0);
    let mut phases: BTreeMap<&str, u32> = BTreeMap::new();
    while killed < kills {
        round += 1;
        let store = format!("store-{whole}");
        let mut child = lab.start(command(&store, &path));
        let latest = u64::try_from(LATEST.as_millis()).unwrap();
        let moment = Duration::from_millis(random.below(latest));
        let began = Instant::now();
        while began.elapsed() < moment && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let was = phase(&cache);
        let signals = [Signal::TERM, Signal::KILL, Signal::INT];
        let signal = signals[usize::try_from(round % 3).unwrap()];
        let is_killed = child.try_wait().unwrap().is_none();
        if is_killed {
            kill_process(Pid::from_child(&child), signal).unwrap();
            killed += 1;
            *phases.entry(was).or_default() += 1;
        }
        let status = child.wait().unwrap();
        let mut said = String::new();
        let _ = child.stderr.take().unwrap().read_to_string(&mut said);
        wait_until(
            "the end of all that was started",
            Duration::from_mins(1),
            || at_work_for(&cache).is_empty(),
        );
        println!("round {round}: {was}, {signal:?}, {status}");
        if is_killed && !matches!(status.code(), Some(0 | 1 | 3)) {
            let by_signal = [None, Some(130), Some(143)];
            assert!(
                by_signal.contains(&status.code()),
                "round {round}: {status}: {said}"
            );
            continue;
        }
        assert!(
            matches!(status.code(), Some(0 | 1 | 3)),
            "round {round}: {status}: {said}"
        );
        assert_eq!(digests(&lab, &store), right, "round {round}: {said}");
        whole += 1;
        // What comes next is configured and built anew, or also fetched.
        for folder in ["built", "builds", "kernels", "snapshots"] {
            let _ = fs::remove_dir_all(cache.join(folder));
        }
        if whole % SOURCES == 0 {
            let _ = fs::remove_dir_all(cache.join("sources"));
        }
    }
    assert_eq!(finished("last", &cache), right);
    println!("{killed} interruptions in {round} rounds, {whole} of them whole: {phases:?}");
}
