//! Fuzzes record files and the wire format.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

use pagetide_record::{Record, RecordReader, RecordWriter, wire};
use pagetide_testing::fuzz::fuzz;

/// Bytes of a record file with a blob.
fn written() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RecordWriter::create(dir.path()).unwrap();
    writer.section("blob", "log", &[7; 3000]).unwrap();
    let path = writer.finish(&mut Record::default()).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn record_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.record");
    let whole = written();
    let corpus = [
        whole.clone(),
        whole[..whole.len() / 2].to_vec(),
        vec![0; 40],
    ];
    let (tried, refused) = fuzz("record", &corpus, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let reader = RecordReader::open(&path).map_err(|why| why.to_string())?;
        if let Ok(mut blob) = reader.blob("log") {
            let _ = std::io::copy(&mut blob, &mut std::io::sink());
        }
        reader.verify().map_err(|why| why.to_string())
    });
    assert!(refused > tried / 2, "{refused} of {tried}");
}

#[test]
fn record_json() {
    let json = serde_json::to_vec(&Record::default()).unwrap();
    fuzz("record json", &[json], |bytes| {
        serde_json::from_slice::<Record>(bytes)
            .map(drop)
            .map_err(|why| why.to_string())
    });
}

#[test]
fn wire_frames() {
    let mut region = vec![0_u8; 4096];
    region[16..24].copy_from_slice(&4096_u64.to_le_bytes());
    fuzz("wire", &[region, vec![1; 300]], |bytes| {
        assert!(wire::frames(bytes).count() <= bytes.len());
        Ok(())
    });
}
