//! Tests of the store's public interface: added records are found again, also after crashes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{add, ids, record, with_small_disk};
use pagetide_quantity::{Metric, Nanos};
use pagetide_record::{Invalid, Record, RecordReader, RecordWriter};
use pagetide_store::{CampaignNote, Entry, Filter};
use pagetide_store::{Store, StoreError};
use proptest::prelude::*;

#[test]
fn what_was_added_is_found_by_id_key_and_filter_also_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let first = add(&mut store, record("linear", "off", 1, 0));
    let again = add(&mut store, record("linear", "off", 1, 5));
    let other = add(&mut store, record("linear", "on", 1, 7));
    drop(store);

    let store = Store::open(dir.path()).unwrap();
    let row = store.find(&first.id()[..12]).unwrap();
    assert_eq!(row.id, first.id());
    assert_eq!(row.digest, first.digest);
    assert_eq!(row.subject(), first.subject);
    assert_eq!(row.subject().cell(), row.cell.hash);
    assert_eq!(store.load(&row.id).unwrap().record(), &first);

    let of_trial = store.by_keys(&[first.subject.key()]).unwrap();
    let found: Vec<&str> = of_trial.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(found, [again.id(), first.id()], "newest first");

    let on = Filter {
        campaign: Some("of-on".into()),
        ..Filter::default()
    };
    let found = store.select(&on).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, other.id());
    assert_eq!(
        store.typical_wall(None, "linear").unwrap(),
        Some(Nanos::from_millis(15))
    );
}

#[test]
fn a_prefix_of_several_records_is_refused_with_a_list_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let all: Vec<Record> = (0..40)
        .map(|seed| add(&mut store, record("linear", "off", seed, 0)))
        .collect();
    // Some of 40 hexadecimal IDs share their first digit.
    let mut by_digit: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in &all {
        by_digit
            .entry(record.id()[..1].to_owned())
            .or_default()
            .push(record);
    }
    let (digit, sharing) = by_digit.iter().find(|(_, of)| of.len() > 1).unwrap();
    let error = store.find(digit).unwrap_err();
    assert!(
        matches!(&error, StoreError::Ambiguous { count, .. } if *count == sharing.len() as u64),
        "{error}"
    );
    assert!(error.to_string().contains("linear off seed"), "{error}");
    for nonsense in ["", "zzz", "%", "0123456789abcdef"] {
        assert!(matches!(
            store.find(nonsense),
            Err(StoreError::Unknown { .. })
        ));
    }
}

#[test]
fn metrics_come_with_their_heads_and_absent_ones_with_their_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let first = add(&mut store, record("linear", "off", 1, 0));
    let row = store.find(&first.id()).unwrap();
    let metrics: Vec<Metric> = store
        .metrics("linear", &[row.row])
        .unwrap()
        .into_iter()
        .map(|(of, metric)| {
            assert_eq!(of, row.row);
            metric
        })
        .collect();
    assert_eq!(metrics, first.results.metrics);
}

#[test]
fn a_history_is_in_order_of_time_and_leaves_out_what_its_filter_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    for moment in [5, 1, 9, 3] {
        add(&mut store, record("linear", "off", moment, moment));
    }
    let mut invalid = record("linear", "off", 7, 7);
    invalid.results.invalid.push(Invalid::NoReclaim);
    add(&mut store, invalid);
    add(&mut store, record("random", "off", 8, 8));
    let valid = Filter {
        scenario: Some("linear".into()),
        valid: Some(true),
        ..Filter::default()
    };
    let values = |filter: &Filter| -> Vec<f64> {
        store
            .history("run", filter)
            .unwrap()
            .into_iter()
            .map(|point| point.metric.value.number().unwrap())
            .collect()
    };
    assert_eq!(values(&valid), [1.25, 3.25, 5.25, 9.25]);
    assert_eq!(
        values(&Filter::default()),
        [1.25, 3.25, 5.25, 7.25, 8.25, 9.25]
    );
    let newest = Filter {
        limit: Some(2),
        ..valid
    };
    assert_eq!(values(&newest), [5.25, 9.25]);
    assert!(
        store
            .history("scanned", &Filter::default())
            .unwrap()
            .is_empty()
    );
}

/// Writes a complete record to `incoming`, as a writer does that is killed before it adds the record to the index.
/// Returns the path.
fn finished_only(store: &Store, mut record: Record) -> PathBuf {
    store.writer().unwrap().finish(&mut record).unwrap()
}

#[test]
fn whatever_a_killed_writer_left_is_taken_in_or_removed_at_the_next_opening() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    // The writer was killed after completing the file, before adding it to the index.
    let not_entered = finished_only(&store, record("linear", "a", 1, 0));
    // The writer was killed after adding the record to the index, before moving the file.
    let entered = finished_only(&store, record("linear", "b", 1, 0));
    let known = RecordReader::open(&entered).unwrap().into_record();
    let place = store.admit(&entered, &known).unwrap();
    std::fs::rename(place, &entered).unwrap();
    // The writer was killed while writing. Its process does not exist: process IDs of this system end at 2^22.
    let incoming = dir.path().join("incoming");
    std::fs::write(incoming.join("9999999-1-1.part"), b"PTREC01\n").unwrap();
    // This process is still writing the file.
    let writer = store.writer().unwrap();
    // The process was killed while running a campaign, and while writing its description.
    let campaigns = dir.path().join("campaigns");
    std::fs::write(campaigns.join("gone.lock"), b"9999999").unwrap();
    std::fs::write(campaigns.join("gone.9999999.new"), b"{").unwrap();
    let held = store.lock_campaign("held").unwrap();
    drop(store);

    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(std::fs::read_dir(&campaigns).unwrap().count(), 1);
    assert!(
        store.lock_campaign("held").is_err(),
        "a lock that is held stays"
    );
    drop(held);
    assert_eq!(store.count(&Filter::default()).unwrap(), 2);
    assert!(!not_entered.exists() && !entered.exists());
    for row in store.select(&Filter::default()).unwrap() {
        assert!(store.path(&row.id).starts_with(dir.path().join("records")));
        store.load(&row.id).unwrap().verify().unwrap();
    }
    assert_eq!(
        std::fs::read_dir(&incoming).unwrap().count(),
        1,
        "the part whose writer lives stays"
    );
    store.add(writer, &mut record("linear", "c", 1, 0)).unwrap();
    assert_eq!(std::fs::read_dir(&incoming).unwrap().count(), 0);
    assert_eq!(store.count(&Filter::default()).unwrap(), 3);
}

#[test]
fn damaged_records_are_listed_and_the_others_stay_usable() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let whole = add(&mut store, record("linear", "a", 1, 0));
    let broken = add(&mut store, record("linear", "a", 2, 0));
    let path = store.path(&broken.id());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let cut = store.folder().join("incoming/cut.record");
    std::fs::write(&cut, &bytes[..40]).unwrap();
    drop(store);

    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(store.damaged().unwrap().len(), 1, "the one in incoming");
    let rebuilt = store.rebuild().unwrap();
    assert_eq!(rebuilt.records, 1);
    let paths: Vec<&Path> = rebuilt.damaged.iter().map(|d| d.path.as_path()).collect();
    assert_eq!(paths, [cut.as_path(), path.as_path()]);
    assert_eq!(ids(&store), [whole.id()]);
    std::fs::remove_file(&cut).unwrap();
    assert_eq!(store.damaged().unwrap().len(), 1);
}

#[test]
fn an_index_that_is_lost_or_garbage_is_made_anew_without_asking() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    for seed in 0..5 {
        add(&mut store, record("linear", "a", seed, 0));
    }
    let before = ids(&store);
    drop(store);
    let index = dir.path().join("index.sqlite");
    for damage in [
        None,
        Some(vec![0x5a; 70_000]),
        Some(b"SQLite format 3\0".to_vec()),
    ] {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(dir.path().join(format!("index.sqlite{suffix}")));
        }
        if let Some(bytes) = damage {
            std::fs::write(&index, bytes).unwrap();
        }
        assert_eq!(ids(&Store::open(dir.path()).unwrap()), before);
    }
}

#[test]
fn a_store_of_a_newer_version_is_refused_in_one_sentence_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    for newer in ["2\n", "2026-beta with words\n"] {
        std::fs::write(dir.path().join("format"), newer).unwrap();
        let Err(error) = Store::open(dir.path()) else {
            panic!("opened format {newer}");
        };
        let text = error.to_string();
        assert!(matches!(error, StoreError::Newer { .. }), "{text}");
        assert!(
            text.contains("newer pagetide") && text.contains("upgrade"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
        assert_eq!(
            std::fs::read_to_string(dir.path().join("format")).unwrap(),
            newer
        );
    }
}

#[test]
fn a_store_where_no_folder_can_be_is_refused_naming_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let Err(error) = Store::open(&file.join("store")) else {
        panic!("opened below a file");
    };
    let text = error.to_string();
    assert!(matches!(error, StoreError::Folder { .. }), "{text}");
    assert!(
        text.contains("/file/") && text.contains("PAGETIDE_STORE"),
        "{text}"
    );
}

#[test]
fn root_a_full_disk_and_a_read_only_folder_are_one_clear_error_and_lose_nothing() {
    use rustix::mount::{MountFlags, mount_remount};
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let done = with_small_disk(at, c"size=512k", || {
        let mut store = Store::open(at).unwrap();
        let mut added = Vec::new();
        let error = loop {
            let mut next = record("linear", "a", added.len() as u64, 0);
            let tried = store.writer().and_then(|mut writer| {
                // Random data does not compress, so the disk is soon full.
                let mut state = 1_u64;
                let noise: Vec<u8> = (0..40_000)
                    .map(|_| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                        state.to_le_bytes()[7]
                    })
                    .collect();
                writer.section("blob", "noise", &noise)?;
                store.add(writer, &mut next)
            });
            match tried {
                Ok(_) => added.push(next.id()),
                Err(error) => break error,
            }
        };
        assert!(!added.is_empty());
        let text = error.to_string();
        assert!(
            text.contains("No space left")
                || text.contains("disk is full")
                || text.contains("disk I/O"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
        added.sort_unstable();
        assert!(ids(&store).iter().all(|id| store.load(id).is_ok()));
        assert!(added.iter().all(|id| store.find(id).is_ok()));
        drop(store);

        mount_remount(at, MountFlags::RDONLY, c"").unwrap();
        // Records can still be read; writing is refused.
        let store = Store::open(at).unwrap();
        assert!(added.iter().all(|id| store.find(id).is_ok()));
        let Err(error) = store.writer() else {
            panic!("began a record in a read-only store");
        };
        let text = error.to_string();
        assert!(
            text.contains("Read-only") && text.contains("PAGETIDE_STORE"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    });
    if !done {
        pagetide_testing::skip(
            pagetide_testing::Need::Root,
            "mounting a file system of one's own needs root",
        );
    }
}

#[test]
fn campaigns_are_remembered_with_the_latest_run_first() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut note = CampaignNote {
        name: "quick".into(),
        generation: 1,
        variants: vec!["off".into(), "on".into()],
        ..CampaignNote::default()
    };
    store.note(&note).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    note.generation = 2;
    store.note(&note).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let other = CampaignNote {
        name: "kernels".into(),
        generation: 1,
        ..CampaignNote::default()
    };
    store.note(&other).unwrap();
    assert_eq!(store.campaigns().unwrap(), ["kernels", "quick.2", "quick"]);
    assert_eq!(store.latest_of("quick").unwrap(), Some(note));
    assert_eq!(store.latest_of("none").unwrap(), None);
    std::fs::write(dir.path().join("campaigns/bad.json"), b"{").unwrap();
    assert!(matches!(
        store.campaign("bad"),
        Err(StoreError::Note { .. })
    ));
}

#[test]
fn a_campaign_is_removed_with_the_records_that_no_other_has() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let all: Vec<Record> = (0..4)
        .map(|seed| add(&mut store, record("linear", "off", seed, 0)))
        .collect();
    let note = |name: &str, generation, seeds: &[usize]| {
        let entry = |seed: &usize| Entry {
            key: all[*seed].subject.key(),
            ..Entry::default()
        };
        let note = CampaignNote {
            name: name.into(),
            generation,
            entries: seeds.iter().map(entry).collect(),
            ..CampaignNote::default()
        };
        store.note(&note).unwrap();
    };
    note("quick", 1, &[0]);
    note("quick", 2, &[0, 1]);
    note("other", 1, &[1, 2]);
    let names = ["quick".to_owned(), all[3].id()[..10].to_owned()];
    let removal = store.removal(&names).unwrap();
    assert_eq!(removal.campaigns, ["quick", "quick.2"]);
    let mut expected = [all[0].id(), all[3].id()];
    expected.sort_unstable();
    assert_eq!(
        (removal.records.as_slice(), removal.shared),
        (&expected[..], 1)
    );
    assert!(removal.size.0 > 0);

    // Nothing is removed while the campaign is running.
    let lock = store.lock_campaign("quick").unwrap();
    let refused = Store::open(dir.path()).unwrap().remove(&removal);
    assert!(matches!(refused, Err(StoreError::Running { .. })));
    assert_eq!(store.count(&Filter::default()).unwrap(), 4);
    drop(lock);

    store.remove(&removal).unwrap();
    assert_eq!(store.campaigns().unwrap(), ["other"]);
    let mut left = ids(&store);
    left.sort_unstable();
    let mut kept = vec![all[1].id(), all[2].id()];
    kept.sort_unstable();
    assert_eq!(left, kept);
    assert!(matches!(
        store.removal(&["quick".to_owned()]),
        Err(StoreError::Neither { .. })
    ));
    assert!(store.verify().unwrap().damaged.is_empty());
}

#[test]
fn a_campaign_is_run_by_one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let lock = store.lock_campaign("quick").unwrap();
    let error = Store::open(dir.path())
        .unwrap()
        .lock_campaign("quick")
        .unwrap_err();
    let pid = std::process::id().to_string();
    assert!(error.to_string().contains(&pid), "{error}");
    let _other = store.lock_campaign("kernels").unwrap();
    drop(lock);
    assert!(!dir.path().join("campaigns/quick.lock").exists());
    store.lock_campaign("quick").unwrap();
    assert!(
        store.campaigns().unwrap().is_empty(),
        "a lock is no campaign"
    );
}

#[test]
fn of_many_records_one_that_cannot_be_stored_keeps_all_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let mut all: Vec<Record> = (0..200)
        .map(|seed| record("linear", "a", seed, 0))
        .collect();
    all[150].results.metrics[0].value = pagetide_quantity::Value::Number(f64::INFINITY);
    assert!(store.add_all(&mut all).is_err());
    drop(store);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.count(&Filter::default()).unwrap(), 0);
    assert_eq!(
        std::fs::read_dir(dir.path().join("incoming"))
            .unwrap()
            .count(),
        0
    );
}

proptest! {
    // Each case makes a store on disk.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_a_store_takes_it_gives_back(
        bits in any::<u64>(),
        name in "\\PC{0,12}",
        text in any::<String>(),
        path in proptest::collection::vec(any::<u8>(), 0..6),
    ) {
        use std::os::unix::ffi::OsStrExt;
        let number = f64::from_bits(bits);
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let mut record = record("linear", &name, 1, 0);
        record.results.metrics[0].value = pagetide_quantity::Value::Number(number);
        record.results.kernel_log.clone_from(&text);
        let writer = store.writer().unwrap();
        match store.add(writer, &mut record) {
            Ok(_) => {
                let back = store.load(&record.id()).unwrap().into_record();
                prop_assert_eq!(back, record);
            }
            // Only numbers that are not finite or too large are refused.
            Err(error) => prop_assert!(!number.is_finite() || number.abs() > 1e30, "{}", error),
        }
        let cell = pagetide_store::CellNote {
            label: text.clone(),
            margins: [(name.clone(), number)].into(),
            ..pagetide_store::CellNote::default()
        };
        let note = CampaignNote {
            name: "quick".into(),
            command: text.clone(),
            variants: vec![name],
            cells: vec![cell],
            ..CampaignNote::default()
        };
        match store.note(&note) {
            Ok(()) => prop_assert_eq!(store.campaign("quick").unwrap(), Some(note)),
            Err(error) => prop_assert!(!number.is_finite(), "{}", error),
        }
        let state = pagetide_store::RunState {
            name: "quick".into(),
            folder: std::ffi::OsStr::from_bytes(&path).into(),
            said: vec![text],
            ..pagetide_store::RunState::default()
        };
        match store.note_run(&state) {
            Ok(()) => prop_assert_eq!(store.run_of("quick"), Some(state)),
            Err(error) => prop_assert!(std::str::from_utf8(&path).is_err(), "{}", error),
        }
        // None of these records damages the store.
        drop(store);
        let store = Store::open(dir.path()).unwrap();
        prop_assert!(store.verify().unwrap().damaged.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_selection_is_what_looking_at_every_record_gives_and_survives_a_rebuild(
        made in proptest::collection::vec((0..3_u8, 0..3_u8, 0..4_u64, any::<bool>()), 1..12),
        scenario in proptest::option::of(0..3_u8),
        variant in proptest::option::of(0..3_u8),
        valid in proptest::option::of(any::<bool>()),
        limit in proptest::option::of(0..5_u32),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let name = |prefix: &str, n: u8| format!("{prefix}{n}");
        let mut all = Vec::new();
        for (moment, (scenario, variant, seed, is_valid)) in (0..).zip(made) {
            let mut record = record(&name("s", scenario), &name("v", variant), seed, moment);
            if !is_valid {
                record.results.invalid.push(Invalid::NoReclaim);
            }
            all.push(add(&mut store, record));
        }
        let filter = Filter {
            scenario: scenario.map(|n| name("s", n)),
            variant: variant.map(|n| name("v", n)),
            valid,
            limit,
            ..Filter::default()
        };
        let mut expected: Vec<String> = all
            .iter()
            .rev()
            .filter(|r| filter.scenario.as_ref().is_none_or(|s| *s == r.subject.scenario))
            .filter(|r| filter.variant.as_ref().is_none_or(|v| *v == r.subject.variant.name))
            .filter(|r| valid.is_none_or(|v| v == r.is_valid()))
            .map(Record::id)
            .collect();
        let without_limit = expected.len() as u64;
        expected.truncate(limit.map_or(usize::MAX, |l| l as usize));
        let found = |store: &Store| -> Vec<String> {
            store.select(&filter).unwrap().into_iter().map(|row| row.id).collect()
        };
        prop_assert_eq!(&found(&store), &expected);
        prop_assert_eq!(store.count(&filter).unwrap(), without_limit);
        let before = store.select(&Filter::default()).unwrap();
        let rebuilt = store.rebuild().unwrap();
        prop_assert_eq!(rebuilt.records, all.len() as u64);
        let after = store.select(&Filter::default()).unwrap();
        let text = |rows| serde_json::to_string(rows).unwrap();
        prop_assert_eq!(text(&before), text(&after));
        let again: Vec<String> = found(&store);
        prop_assert_eq!(&again, &expected);
    }
}

#[test]
fn writers_begun_at_the_same_moment_do_not_meet() {
    let dir = tempfile::tempdir().unwrap();
    let writers: Vec<RecordWriter> = (0..200)
        .map(|_| RecordWriter::create(dir.path()).unwrap())
        .collect();
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        writers.len()
    );
}

#[test]
fn many_records_added_together_are_all_in_the_index_and_in_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let mut records: Vec<_> = (0..300)
        .map(|seed| record("linear", "a", seed, seed))
        .collect();
    store.add_all(&mut records).unwrap();
    // Adding them again is no error and adds nothing.
    store.add_all(&mut records).unwrap();
    let mut wanted: Vec<String> = records.iter().map(pagetide_record::Record::id).collect();
    wanted.sort_unstable();
    assert_eq!(ids(&store), wanted);
    let left = std::fs::read_dir(dir.path().join("incoming")).unwrap();
    assert_eq!(left.count(), 0);
    for id in &wanted {
        let path = dir.path().join("records").join(&id[..2]);
        assert!(path.join(format!("{id}.record")).exists(), "{id}");
    }
    assert_eq!(store.verify().unwrap().records, 300);
}
