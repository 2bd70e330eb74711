//! A store that an early build of version 0.1 wrote, with an index of other tables, can be read, compared and reported.

use std::path::Path;

use pagetide_compare::compare_campaign;
use pagetide_store::{Filter, Store};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).unwrap();
        }
    }
}

#[test]
fn a_store_of_the_first_version_is_read_compared_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-0.1"),
        dir.path(),
    );
    let mut store = Store::open(dir.path()).unwrap();
    let rows = store.select(&Filter::default()).unwrap();
    assert_eq!(rows.len(), 6);
    for row in &rows {
        let reader = store.load(&row.id).unwrap();
        assert!(
            reader.record().is_valid(),
            "{:?}",
            reader.record().why_invalid()
        );
        // The digest covers the results as they were written, so reading must not lose anything.
        reader.verify().unwrap();
        // This is the data that a repetition starts from.
        assert_eq!(row.subject(), reader.record().subject);
        assert_eq!(row.key, reader.record().subject.key());
    }
    let verified = store.verify().unwrap();
    assert_eq!((verified.records, verified.damaged.len()), (6, 0));
    assert_eq!(store.rebuild().unwrap().records, 6);
    let comparison = compare_campaign(&store, Some("old")).unwrap();
    assert_eq!(comparison.cells.len(), 1);
    let mut out = Vec::new();
    pagetide_report::csv::judgements(&mut out, &comparison).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("usemem"));
}
