//! Tests of merging stores.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{add, ids, record};
use pagetide_record::{ArenaKind, Record};
use pagetide_store::{CampaignNote, Entry, Merge, Store, StoreError};

fn note(name: &str, variants: &[&str], records: &[&Record]) -> CampaignNote {
    CampaignNote {
        name: name.into(),
        generation: 1,
        variants: variants.iter().map(|name| (*name).to_owned()).collect(),
        entries: records
            .iter()
            .map(|record| Entry {
                key: record.subject.key(),
                unit: u32::try_from(record.subject.seed).unwrap(),
                ..Entry::default()
            })
            .collect(),
        ..CampaignNote::default()
    }
}

struct Stores {
    folder: tempfile::TempDir,
}

impl Stores {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self, name: &str) -> Store {
        Store::open(&self.path(name)).unwrap()
    }
}

fn merged(store: &mut Store, folders: &[PathBuf]) -> Merge {
    store.merge(folders, false).unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "record") {
            all.push(path);
        }
    }
    all
}

#[test]
fn merging_adds_each_record_once_however_often_and_in_whatever_order() {
    let stores = Stores::new();
    let mut shards = Vec::new();
    let mut all = Vec::new();
    for shard in 0..3_u64 {
        let name = format!("shard-{shard}");
        let mut store = stores.open(&name);
        let records: Vec<Record> = (0..5)
            .map(|seed| add(&mut store, record("linear", "off", 3 * seed + shard, 0)))
            .collect();
        let some: Vec<&Record> = records.iter().collect();
        store.note(&note("test", &["off"], &some)).unwrap();
        all.extend(records.iter().map(Record::id));
        shards.push(stores.path(&name));
    }
    all.sort_unstable();
    let mut whole = stores.open("whole");
    let merge = merged(&mut whole, &shards);
    assert_eq!((merge.added, merge.present), (15, 0));
    assert_eq!(merge.campaigns, ["test"]);
    assert!(merge.is_whole());
    assert_eq!(ids(&whole), all);
    assert_eq!(whole.campaign("test").unwrap().unwrap().entries.len(), 15);
    assert_eq!(whole.verify().unwrap().records, 15);

    shards.reverse();
    let again = merged(&mut whole, &shards);
    assert_eq!((again.added, again.present), (0, 15));
    assert_eq!(again.campaigns, Vec::<String>::new());
    assert_eq!(ids(&whole), all);
    assert_eq!(whole.campaign("test").unwrap().unwrap().entries.len(), 15);
    // The other store is given twice in one call.
    let twice = merged(
        &mut stores.open("other"),
        &[shards[0].clone(), shards[0].clone()],
    );
    assert_eq!((twice.added, twice.present), (5, 5));
}

#[test]
fn two_results_of_one_exact_trial_are_refused_and_nothing_is_merged() {
    let stores = Stores::new();
    let mut here = stores.open("here");
    add(&mut here, record("linear", "off", 1, 0));
    let mut there = stores.open("there");
    let mut other = record("linear", "off", 1, 7);
    other.results.elapsed.0 += 1;
    let other = add(&mut there, other);
    add(&mut there, record("linear", "off", 2, 0));
    let before = ids(&here);
    let merge = merged(&mut here, &[stores.path("there")]);
    assert_eq!(merge.conflicts.len(), 1);
    assert_eq!(merge.conflicts[0].there, there.path(&other.id()));
    assert!(merge.text(true).contains("nothing is merged: 1 trials"));
    assert_eq!(ids(&here), before);

    // A conflict between two other stores, neither of which is this store.
    let folders = [stores.path("here"), stores.path("there")];
    let mut empty = stores.open("empty");
    assert_eq!(merged(&mut empty, &folders).conflicts.len(), 1);
    assert!(ids(&empty).is_empty());
}

#[test]
fn records_of_one_trial_with_noise_or_with_equal_results_are_no_conflict() {
    let stores = Stores::new();
    let (mut here, mut there) = (stores.open("here"), stores.open("there"));
    for (moment, elapsed, store) in [(0, 5, &mut here), (7, 6, &mut there)] {
        let mut noisy = record("linear", "off", 1, moment);
        noisy.subject.arena.kind = ArenaKind::Host;
        noisy.results.elapsed.0 = elapsed;
        add(store, noisy);
        add(store, record("linear", "off", 2, moment));
    }
    let merge = merged(&mut here, &[stores.path("there")]);
    assert_eq!((merge.added, merge.conflicts.len()), (2, 0));
    assert_eq!(ids(&here).len(), 4);
}

#[test]
fn damaged_records_and_campaigns_are_named_and_left_out() {
    let stores = Stores::new();
    let mut there = stores.open("there");
    let records: Vec<Record> = (0..3)
        .map(|seed| add(&mut there, record("linear", "off", seed, 0)))
        .collect();
    there.note(&note("test", &["off"], &[&records[0]])).unwrap();
    let (short, flipped) = (there.path(&records[0].id()), there.path(&records[1].id()));
    let bytes = fs::read(&short).unwrap();
    fs::write(&short, &bytes[..bytes.len() / 2]).unwrap();
    let mut bytes = fs::read(&flipped).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&flipped, bytes).unwrap();
    let campaign = stores.path("there").join("campaigns/test.json");
    fs::write(&campaign, "{").unwrap();
    let mut here = stores.open("here");
    let merge = merged(&mut here, &[stores.path("there")]);
    assert_eq!(merge.added, 1);
    let mut damaged: Vec<_> = merge.damaged.iter().map(|file| file.path.clone()).collect();
    damaged.sort_unstable();
    let mut wrong = vec![short, flipped, campaign];
    wrong.sort_unstable();
    assert_eq!(damaged, wrong);
    assert!(!merge.is_whole());
    assert_eq!(ids(&here), [records[2].id()]);
    assert_eq!(
        files(&stores.path("here").join("incoming")),
        Vec::<PathBuf>::new()
    );
}

#[test]
fn a_campaign_with_other_variants_keeps_its_trials() {
    let stores = Stores::new();
    let (mut here, mut there) = (stores.open("here"), stores.open("there"));
    let one = add(&mut here, record("linear", "off", 1, 0));
    let two = add(&mut there, record("linear", "on", 2, 0));
    here.note(&note("test", &["off"], &[&one])).unwrap();
    there.note(&note("test", &["on"], &[&two])).unwrap();
    let merge = merged(&mut here, &[stores.path("there")]);
    assert_eq!(merge.differing, ["test"]);
    assert_eq!(merge.added, 1);
    assert_eq!(here.campaign("test").unwrap().unwrap().variants, ["off"]);
}

#[test]
fn a_dry_run_changes_nothing_and_wrong_folders_are_refused() {
    let stores = Stores::new();
    let mut there = stores.open("there");
    let one = add(&mut there, record("linear", "off", 1, 0));
    there.note(&note("test", &["off"], &[&one])).unwrap();
    let mut here = stores.open("here");
    let dry = here.merge(&[stores.path("there")], true).unwrap();
    assert_eq!((dry.added, ids(&here).len()), (1, 0));
    assert!(here.campaign("test").unwrap().is_none());
    let refused = |here: &mut Store, path: PathBuf| here.merge(&[path], false).unwrap_err();
    assert!(matches!(
        refused(&mut here, stores.path("nowhere")),
        StoreError::NoStore { .. }
    ));
    assert!(matches!(
        refused(&mut here, stores.path("here")),
        StoreError::Itself { .. }
    ));
    let link = stores.path("link");
    std::os::unix::fs::symlink(stores.path("here"), &link).unwrap();
    assert!(matches!(
        refused(&mut here, link),
        StoreError::Itself { .. }
    ));
    fs::write(stores.path("there").join("format"), "99\n").unwrap();
    assert!(matches!(
        refused(&mut here, stores.path("there")),
        StoreError::Newer { .. }
    ));
}
