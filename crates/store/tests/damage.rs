//! Tests of a store whose files are changed by hand, damaged, or not writable: wrong data is never returned as a
//! record's.

use std::path::Path;

use crate::common::{add, ids, record, with_small_disk};
use pagetide_quantity::Metric;
use pagetide_record::Record;
use pagetide_store::{CampaignNote, Filter, Store, StoreError};

/// Creates a store with `seeds` records; each has a bulk section.
fn filled(at: &Path, seeds: u64) -> Vec<Record> {
    let mut store = Store::open(at).unwrap();
    (1..=seeds)
        .map(|seed| {
            let mut record = record("linear", "a", seed, 0);
            let mut writer = store.writer().unwrap();
            let noise: Vec<u8> = (0..5000_u64)
                .map(|n| ((n * n * seed) & 0xff) as u8)
                .collect();
            writer.section("blob", "log", &noise).unwrap();
            store.add(writer, &mut record).unwrap();
            record
        })
        .collect()
}

/// Changes the index directly with SQL.
fn tamper(at: &Path, sql: &str) {
    let index = rusqlite::Connection::open(at.join("index.sqlite")).unwrap();
    let changed = index.execute(sql, []).unwrap();
    assert!(changed > 0, "{sql}");
}

/// Waits until a change of a directory would give it another modification time: longer than a tick of the clock.
fn a_moment_later() {
    std::thread::sleep(std::time::Duration::from_millis(30));
}

#[test]
fn a_record_deleted_by_hand_is_forgotten_at_the_next_opening() {
    let dir = tempfile::tempdir().unwrap();
    let all = filled(dir.path(), 4);
    let store = Store::open(dir.path()).unwrap();
    std::fs::remove_file(store.path(&all[1].id())).unwrap();
    drop(store);
    a_moment_later();
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.count(&Filter::default()).unwrap(), 3);
    assert!(store.by_keys(&[all[1].subject.key()]).unwrap().is_empty());
    assert!(store.find(&all[0].id()).is_ok());
    // A whole folder is deleted while the store is open: the first failed lookup notices it.
    let folder = store.path(&all[0].id()).parent().unwrap().to_owned();
    std::fs::remove_dir_all(folder).unwrap();
    let error = store.load(&all[0].id()).err().unwrap();
    assert!(matches!(error, StoreError::Gone { .. }), "{error}");
    assert!(!ids(&store).contains(&all[0].id()));
}

#[test]
fn a_record_copied_in_by_hand_is_found_at_the_next_opening_and_at_the_first_miss() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let all = filled(here.path(), 3);
    let from = Store::open(here.path()).unwrap();
    let to = Store::open(there.path()).unwrap();
    let copy = |id: &str| {
        let place = to.path(id);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(from.path(id), place).unwrap();
    };
    copy(&all[0].id());
    assert_eq!(to.find(&all[0].id()[..12]).unwrap().id, all[0].id());
    copy(&all[1].id());
    a_moment_later();
    let again = Store::open(there.path()).unwrap();
    assert_eq!(again.count(&Filter::default()).unwrap(), 2);
    // A file with a wrong name is not a record of this store.
    let wrong = to.path(&all[0].id()).with_file_name("00ff.record");
    std::fs::copy(from.path(&all[2].id()), &wrong).unwrap();
    a_moment_later();
    let again = Store::open(there.path()).unwrap();
    assert_eq!(again.count(&Filter::default()).unwrap(), 2);
    assert_eq!(again.damaged().unwrap()[0].path, wrong);
}

#[test]
fn a_damaged_bulk_section_is_left_out_by_a_rebuild_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let all = filled(dir.path(), 3);
    let mut store = Store::open(dir.path()).unwrap();
    let path = store.path(&all[2].id());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let verified = store.verify().unwrap();
    assert_eq!((verified.records, verified.damaged.len()), (2, 1));
    let rebuilt = store.rebuild().unwrap();
    assert_eq!((rebuilt.records, rebuilt.damaged.len()), (2, 1));
    assert_eq!(rebuilt.damaged[0].path, path);
    assert!(!ids(&store).contains(&all[2].id()));
}

#[test]
fn an_index_that_says_otherwise_than_its_records_is_not_believed() {
    for sql in [
        "UPDATE metric SET value = value * 5",
        "UPDATE metric SET value = NULL WHERE value IS NOT NULL",
        "DELETE FROM metric WHERE value IS NOT NULL",
        "UPDATE metric SET record = record + 100",
        "UPDATE record SET seed = seed + 1",
        "UPDATE record SET invalid = (SELECT min(id) FROM text)",
        "UPDATE record SET digest = 'x'",
        "UPDATE record SET accident = 1",
        "UPDATE record SET wall = wall * 9",
        "UPDATE variant SET spec = replace(spec, '6.1-a', '6.2-b')",
        "UPDATE cell SET subject = replace(subject, '64M', '65M')",
        "UPDATE text SET text = text || 'x'",
        "UPDATE definition SET head = replace(head, 'lower', 'higher')",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let all = filled(dir.path(), 5);
        tamper(dir.path(), sql);
        let mut store = Store::open(dir.path()).unwrap();
        let read = |store: &Store| -> Result<Vec<(i64, Metric)>, StoreError> {
            let rows = store.select(&Filter::default())?;
            let rows: Vec<i64> = rows.iter().map(|row| row.row).collect();
            store.metrics("linear", &rows)
        };
        let error = read(&store).expect_err(sql);
        let said = error.to_string();
        assert!(
            matches!(error, StoreError::Disagrees { .. }),
            "{sql}: {said}"
        );
        assert!(said.contains("store rebuild"), "{said}");
        let verified = store.verify().unwrap();
        assert!(!verified.damaged.is_empty(), "{sql}: verify is content");
        store.rebuild().unwrap();
        assert_eq!(read(&store).unwrap().len(), 10, "{sql}");
        let verified = store.verify().unwrap();
        assert_eq!((verified.records, verified.damaged.len()), (5, 0), "{sql}");
        assert_eq!(store.find(&all[0].id()).unwrap().subject(), all[0].subject);
    }
}

#[test]
fn a_history_does_not_believe_a_changed_index_either() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3);
    tamper(dir.path(), "UPDATE metric SET value = value * 5");
    let store = Store::open(dir.path()).unwrap();
    let error = store.history("run", &Filter::default()).unwrap_err();
    assert!(matches!(error, StoreError::Disagrees { .. }), "{error}");
}

#[test]
fn rot_anywhere_in_a_record_is_never_taken_for_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let all = filled(dir.path(), 1);
    let store = Store::open(dir.path()).unwrap();
    let (path, id) = (store.path(&all[0].id()), all[0].id());
    let whole = std::fs::read(&path).unwrap();
    let (mut opened, mut refused) = (0, 0);
    for at in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).unwrap();
        match store.load(&id) {
            // The head is intact, so the bulk section is damaged, and reading it must fail.
            Ok(reader) => {
                opened += 1;
                assert_eq!(reader.record(), &all[0], "byte {at}");
                assert!(reader.verify().is_err(), "byte {at}");
            }
            Err(_) => refused += 1,
        }
    }
    assert!(
        opened > 0 && refused > 0,
        "{opened} opened, {refused} refused"
    );
}

#[test]
fn rot_anywhere_in_the_index_gives_the_records_word_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = filled(dir.path(), 6);
    all.sort_by_key(|record| record.subject.seed);
    let index = dir.path().join("index.sqlite");
    let whole = std::fs::read(&index).unwrap();
    let (mut right, mut refused) = (0, 0);
    for at in (0..whole.len()).step_by(397) {
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(dir.path().join(format!("index.sqlite{suffix}")));
        }
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&index, &bytes).unwrap();
        let read = || -> Result<(), StoreError> {
            let store = Store::open(dir.path())?;
            let mut rows = store.select(&Filter::default())?;
            rows.sort_by_key(|row| row.seed);
            // Rows may be missing if the damage removed them from a list; the remaining ones must be right.
            for row in &rows {
                let record = &all[usize::try_from(row.seed - 1).unwrap()];
                assert_eq!(row.id, record.id(), "byte {at}");
                assert_eq!(row.subject(), record.subject, "byte {at}");
                let metrics = store.metrics("linear", &[row.row])?;
                let metrics: Vec<Metric> = metrics.into_iter().map(|(_, metric)| metric).collect();
                assert_eq!(metrics, record.results.metrics, "byte {at}");
            }
            Ok(())
        };
        match read() {
            Ok(()) => right += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{right} right, {refused} refused");
    assert!(right > 0 && refused > 0);
}

#[test]
fn rot_in_a_campaigns_note_is_refused_or_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let note = CampaignNote {
        name: "quick".into(),
        generation: 1,
        variants: vec!["off".into(), "on".into()],
        ..CampaignNote::default()
    };
    store.note(&note).unwrap();
    let path = dir.path().join("campaigns/quick.json");
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).unwrap();
        match store.campaign("quick") {
            // Damage to the name of the checksum member alone leaves the description unchanged.
            Ok(read) => assert_eq!(read, Some(note.clone()), "byte {at}"),
            Err(error) => assert!(matches!(error, StoreError::Note { .. }), "{error}"),
        }
    }
    for cut in 0..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert!(store.campaign("quick").is_err(), "cut at {cut}");
    }
}

#[test]
fn an_empty_or_foreign_record_file_is_called_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.record");
    for (bytes, word) in [
        (&b""[..], "empty"),
        (&b"PTREC01\n"[..], "ends early"),
        (&b"hello, I am no record"[..], "does not begin"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let said = pagetide_record::RecordReader::open(&path)
            .err()
            .unwrap()
            .to_string();
        assert!(said.contains(word), "{said}");
        assert!(!said.contains("newer"), "{said}");
    }
    std::fs::write(dir.path().join("format"), b"").unwrap();
    let said = Store::open(dir.path()).err().unwrap().to_string();
    assert!(said.contains("empty") && !said.contains("newer"), "{said}");
}

#[test]
fn root_a_store_that_cannot_be_written_can_be_read() {
    use rustix::mount::{MountFlags, mount_remount};
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let done = with_small_disk(at, c"size=1m", || {
        let mut known: Vec<String> = filled(at, 4).iter().map(Record::id).collect();
        known.sort_unstable();
        // The files that a killed run leaves: a lock and a half-written file. A folder that later versions added is
        // missing.
        std::fs::write(at.join("campaigns/gone.lock"), b"9999999").unwrap();
        std::fs::write(at.join("campaigns/gone.9999999.new"), b"{").unwrap();
        std::fs::remove_dir(at.join("runs")).unwrap();
        for index_there in [true, false] {
            if !index_there {
                mount_remount(at, MountFlags::empty(), c"").unwrap();
                std::fs::remove_file(at.join("index.sqlite")).unwrap();
            }
            // Fill the disk to the last byte.
            let mut size = 1 << 20;
            let filler = std::fs::File::create(at.join("filler")).unwrap();
            while size > 0 {
                if std::os::unix::fs::FileExt::write_at(
                    &filler,
                    &vec![1; size],
                    filler.metadata().unwrap().len(),
                )
                .is_err()
                {
                    size /= 2;
                }
            }
            drop(filler);
            let store = Store::open(at).unwrap();
            assert_eq!(ids(&store), known, "full, index {index_there}");
            assert!(store.load(&known[0]).unwrap().verify().is_ok());
            drop(store);
            mount_remount(at, MountFlags::RDONLY, c"").unwrap();
            let mut store = Store::open(at).unwrap();
            assert_eq!(ids(&store), known, "read-only, index {index_there}");
            assert_eq!(store.verify().unwrap().records, 4);
            assert!(store.campaigns().unwrap().is_empty());
            let said = match store.writer() {
                Ok(_) => panic!("a record was begun in a read-only store"),
                Err(error) => error.to_string(),
            };
            assert!(said.contains("Read-only"), "{said}");
            assert!(store.rebuild().is_err() || !index_there);
        }
    });
    if !done {
        println!("skipped: mounting a file system of one's own needs root");
    }
}

#[test]
fn opening_a_large_store_again_looks_only_at_what_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    for seed in 0..400 {
        add(&mut store, record("linear", "a", seed, 0));
    }
    drop(store);
    std::thread::sleep(std::time::Duration::from_millis(1200));
    drop(Store::open(dir.path()).unwrap());
    let began = std::time::Instant::now();
    drop(Store::open(dir.path()).unwrap());
    assert!(began.elapsed() < std::time::Duration::from_millis(300));
}

/// Creates a named pipe at a path.
fn pipe(at: &Path) {
    let made = std::process::Command::new("mkfifo").arg(at).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_pipe_or_link_in_the_place_of_a_record_is_damaged_and_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let all = filled(dir.path(), 3);
    let folder = dir.path().join("records/aa");
    std::fs::create_dir_all(&folder).unwrap();
    pipe(&folder.join("aa11.record"));
    pipe(&dir.path().join("incoming/bb22.record"));
    let real = Store::open(dir.path()).unwrap().path(&all[0].id());
    std::os::unix::fs::symlink(&real, folder.join("aa33.record")).unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    for found in [store.verify().unwrap(), store.rebuild().unwrap()] {
        assert_eq!((found.records, found.damaged.len()), (3, 3), "{found:?}");
        let text = found.text("whole");
        assert!(text.contains("a named pipe") && text.contains("a symbolic link"));
    }
}

#[test]
fn a_link_in_the_place_of_a_lock_note_or_index_is_refused_and_what_it_points_to_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "kept").unwrap();
    let at = dir.path().join("store");
    let store = Store::open(&at).unwrap();
    let link = |name: &str| std::os::unix::fs::symlink(&victim, at.join(name)).unwrap();
    link("campaigns/quick.lock");
    let said = store.lock_campaign("quick").unwrap_err().to_string();
    assert!(
        said.contains("a symbolic link") && said.contains("remove the link"),
        "{said}"
    );
    assert!(store.runner("quick").is_err());
    link("campaigns/quick.json");
    let said = store.campaign("quick").unwrap_err().to_string();
    assert!(said.contains("a symbolic link"), "{said}");
    link("runs/quick.json");
    assert_eq!(store.run_of("quick"), None);
    // A file that is written replaces a link.
    let note = CampaignNote {
        name: "quick".into(),
        ..CampaignNote::default()
    };
    store.note(&note).unwrap();
    assert_eq!(store.campaign("quick").unwrap(), Some(note));
    drop(store);
    for name in [
        "index.sqlite",
        "index.sqlite-wal",
        "index.sqlite-shm",
        "format",
    ] {
        let _ = std::fs::remove_file(at.join(name));
        for is_link in [true, false] {
            if is_link {
                link(name);
            } else {
                pipe(&at.join(name));
            }
            let said = Store::open(&at).err().unwrap().to_string();
            let word = if is_link {
                "a symbolic link"
            } else {
                "a named pipe"
            };
            assert!(said.contains(word) && said.contains(name), "{said}");
            std::fs::remove_file(at.join(name)).unwrap();
        }
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
}

#[test]
fn a_store_whose_name_is_no_text_is_a_store_like_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join(std::ffi::OsStr::from_bytes(b"st\xffre"));
    let all = filled(&at, 3);
    let store = Store::open(&at).unwrap();
    assert_eq!(store.verify().unwrap().records, 3);
    // Damage is detected here too, and can be written as JSON.
    std::fs::write(store.path(&all[0].id()), "x").unwrap();
    drop(store);
    let found = Store::open(&at).unwrap().rebuild().unwrap();
    assert_eq!((found.records, found.damaged.len()), (2, 1), "{found:?}");
    assert!(serde_json::to_string(&found).unwrap().contains(".record"));
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut note = CampaignNote {
        name: "quick".into(),
        cells: vec![pagetide_store::CellNote::default()],
        ..CampaignNote::default()
    };
    store.note(&note).unwrap();
    let kept = store.campaign("quick").unwrap();
    note.cells[0].margins.insert("run".into(), f64::INFINITY);
    assert!(matches!(
        store.note(&note),
        Err(StoreError::Unreadable { .. })
    ));
    assert_eq!(store.campaign("quick").unwrap(), kept);
    let state = pagetide_store::RunState {
        name: "quick".into(),
        folder: std::ffi::OsStr::from_bytes(b"\xff").into(),
        ..pagetide_store::RunState::default()
    };
    assert!(store.note_run(&state).is_err());
    assert_eq!(store.run_of("quick"), None);
}
