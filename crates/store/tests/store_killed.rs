//! Tests of processes that are killed while writing, and of processes that write at the same time.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{add, ids, record};
use pagetide_store::Store;

/// Runs in a child process of other tests: adds records to a store and prints their IDs.
#[test]
#[ignore = "run as a child by other tests"]
fn child_writes_records() {
    let folder = std::env::var("PAGETIDE_TEST_STORE").unwrap();
    let number = |name| -> u64 { std::env::var(name).unwrap().parse().unwrap() };
    let (from, count) = (number("PAGETIDE_TEST_FROM"), number("PAGETIDE_TEST_COUNT"));
    let mut store = Store::open(Path::new(&folder)).unwrap();
    for seed in from..from + count {
        let record = add(&mut store, record("linear", "child", seed, seed));
        println!("added {}", record.id());
    }
}

fn child(folder: &Path, from: u64, count: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "store_killed::child_writes_records",
            "--ignored",
            "--nocapture",
        ])
        .env("PAGETIDE_TEST_STORE", folder)
        .env("PAGETIDE_TEST_FROM", from.to_string())
        .env("PAGETIDE_TEST_COUNT", count.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// IDs of records that a child process reported as added.
fn told(child: &mut Child) -> Vec<String> {
    BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.split_once("added ").map(|(_, id)| id.to_owned()))
        .collect()
}

#[test]
fn thirty_writers_killed_at_random_lose_nothing_they_had_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut reported = Vec::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..30 {
        let mut writer = child(dir.path(), round * 1_000_000, 1_000_000);
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        std::thread::sleep(std::time::Duration::from_millis(10 + (random >> 33) % 60));
        writer.kill().unwrap();
        reported.extend(told(&mut writer));
        writer.wait().unwrap();
    }
    let mut store = Store::open(dir.path()).unwrap();
    let found = ids(&store);
    assert!(
        reported.iter().all(|id| found.binary_search(id).is_ok()),
        "a reported record is gone"
    );
    assert!(
        found.len() <= reported.len() + 30,
        "at most the one in flight is more: {} against {}",
        found.len(),
        reported.len()
    );
    assert_eq!(
        std::fs::read_dir(dir.path().join("incoming"))
            .unwrap()
            .count(),
        0,
        "nothing is left behind"
    );
    for id in &found {
        store.load(id).unwrap().verify().unwrap();
    }
    store.rebuild().unwrap();
    assert_eq!(ids(&store), found);
}

#[test]
fn processes_side_by_side_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut children: Vec<Child> = (0..4).map(|n| child(dir.path(), n * 1000, 40)).collect();
    let mut reported: Vec<String> = children.iter_mut().flat_map(told).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    // One process rebuilds the index while others write.
    let mut writer = child(dir.path(), 9000, 60);
    for _ in 0..10 {
        Store::open(dir.path()).unwrap().rebuild().unwrap();
    }
    reported.extend(told(&mut writer));
    assert!(writer.wait().unwrap().success());
    reported.sort_unstable();
    assert_eq!(reported.len(), 220);
    assert_eq!(ids(&Store::open(dir.path()).unwrap()), reported);
}

#[test]
#[ignore = "test-all"]
fn sixteen_writers_of_which_one_is_killed_and_started_again_lose_and_double_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut children: Vec<Child> = (0..16).map(|n| child(dir.path(), n * 1000, 125)).collect();
    let mut killed = children.remove(7);
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    let mut reported: Vec<String> = Vec::new();
    while reported.len() < 20 {
        let line = lines.next().unwrap().unwrap();
        reported.extend(line.split_once("added ").map(|(_, id)| id.to_owned()));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    children.push(child(dir.path(), 7000, 125));
    reported.extend(children.iter_mut().flat_map(told));
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    reported.sort_unstable();
    reported.dedup();
    assert_eq!(reported.len(), 2000);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(ids(&store), reported);
    let verified = store.verify().unwrap();
    assert_eq!((verified.records, verified.damaged.len()), (2000, 0));
}
