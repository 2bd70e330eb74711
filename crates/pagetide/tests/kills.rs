//! Tests with kills at random moments and bit rot in between: the campaign always ends with the same records as without
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::rot::{Random, flip, kernel_files};
use crate::common::{Lab, TINY, emulators_of, is_alive, wait_until};
use serde_json::Value;

/// Default number of kills; `PAGETIDE_TEST_KILLS` overrides it.
const KILLS: u64 = 8;
/// Number of records of the campaign.
const SEEDS: usize = 2;

fn run<'a>(kernel: &'a str, store: &'a str) -> Vec<&'a str> {
    let campaign = [
        "run", "random", "--seeds", "2", "--kernel", kernel, "--store", store,
    ];
    [&campaign, &TINY[..]].concat()
}

/// Digests of a store's records by seed; all records must be valid, and the store must verify.
fn digests(lab: &Lab, store: &str) -> BTreeMap<u64, String> {
    lab.ends(0, ["store", "verify", "--store", store]);
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--store", store]);
    let records: Vec<Value> = serde_json::from_str(&list).unwrap();
    records
        .iter()
        .map(|record| {
            assert!(record["invalid"].is_null(), "{record}");
            let seed = record["seed"].as_u64().unwrap();
            (seed, record["digest"].as_str().unwrap().to_owned())
        })
        .collect()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// A kind of file in the cache: its name, and a function that recognizes its path.
type Kind<'a> = (&'static str, &'a dyn Fn(&Path) -> bool);

/// Flips bits in one file of the cache; `kind` selects the kind of file. Returns the kind's name, or `None` if there is
/// no such file.
fn rot(cache: &Path, kind: u64, random: &mut Random) -> Option<String> {
    let kinds: [Kind<'_>; 7] = [
        ("snapshot ram", &|path| path.ends_with("ram")),
        ("kernel image", &|path| path.ends_with("image")),
        ("snapshot state", &|path| path.ends_with("state")),
        ("kernel module", &|path| {
            path.to_string_lossy().contains("lz4_compress.ko")
        }),
        ("snapshot seal", &|path| path.ends_with("whole")),
        ("kernel config", &|path| path.ends_with("config")),
        ("kernel facts", &|path| path.ends_with("kernel.json")),
    ];
    let (name, is_it) = kinds[usize::try_from(kind).unwrap() % kinds.len()];
    let is_kept = |path: &PathBuf| {
        let inside = path.strip_prefix(cache).unwrap();
        (inside.starts_with("kernels") || inside.starts_with("snapshots"))
            && !inside.to_string_lossy().contains(".making")
    };
    let file = files(cache)
        .into_iter()
        .filter(is_kept)
        .find(|path| is_it(path))?;
    flip(&file, 5, random);
    Some(name.to_owned())
}

#[test]
#[ignore = "test-all"]
fn kills_at_random_moments_and_rot_in_the_cache_lose_nothing_and_let_nothing_wrong_through() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    let kills = std::env::var("PAGETIDE_TEST_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let kernel = kernel_files(&shared);
    let undisturbed = Lab::with_own_cache();
    let store = undisturbed.store().display().to_string();
    let began = Instant::now();
    undisturbed.ends(0, run(&kernel, &store));
    // Some of the moments are later than the end of a run, so that runs complete and leave a snapshot for bit rot.
    let cold = u64::try_from(began.elapsed().as_millis()).unwrap() * 3 / 2;
    let mut warm = cold;
    let right = digests(&undisturbed, &store);
    assert_eq!(right.len(), SEEDS);

    let lab = Lab::with_own_cache();
    let mut random = Random::new(2);
    let (mut round, mut killed, mut whole) = (0, 0, 0);
    let mut rotten: BTreeMap<String, u32> = BTreeMap::new();
    while killed < kills {
        round += 1;
        // After a complete run, the next one starts with an empty store, so that later kills have something to
        // interrupt.
        let store = lab
            .folder()
            .join(format!("store-{whole}"))
            .display()
            .to_string();
        let mut child = lab.start(run(&kernel, &store));
        let span = if round % 2 == 0 { cold } else { warm };
        let moment = Duration::from_millis(random.below(span));
        let began = Instant::now();
        while began.elapsed() < moment && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let emulators = emulators_of(child.id());
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        let status = child.wait().unwrap();
        wait_until("the end of the emulators", Duration::from_secs(20), || {
            !emulators.iter().any(|pid| is_alive(*pid))
        });
        if status.success() {
            let now = digests(&lab, &store);
            assert_eq!(now, right, "round {round} after {rotten:?}");
            whole += 1;
            // If a snapshot exists, a run takes less time.
            warm = u64::try_from(began.elapsed().as_millis()).unwrap().max(500);
        } else {
            assert_eq!(status.code(), None, "round {round}: it failed by itself");
            for (seed, digest) in digests(&lab, &store) {
                assert_eq!(
                    digest, right[&seed],
                    "round {round}, seed {seed}, after {rotten:?}"
                );
            }
        }
        if round % 2 == 0
            && let Some(kind) = rot(lab.cache(), round / 2, &mut random)
        {
            *rotten.entry(kind).or_default() += 1;
        }
    }

    let store = lab
        .folder()
        .join(format!("store-{whole}"))
        .display()
        .to_string();
    lab.ends(0, run(&kernel, &store));
    let now = digests(&lab, &store);
    assert_eq!(now, right, "after {rotten:?}");
    assert_eq!(lab.in_the_making(), Vec::<PathBuf>::new());
    assert_eq!(files(&lab.cache().join("tmp")), Vec::<PathBuf>::new());
    println!("{killed} kills in {round} rounds, {whole} runs came through; rot in {rotten:?}");
}
