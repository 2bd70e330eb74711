//! Tests of files of references: all formats give the same string, and unreadable files give one clear sentence.

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]
#![expect(
    clippy::format_collect,
    clippy::large_stack_arrays,
    reason = "files of tests are small"
)]

use std::fs;
use std::io::Write;
use std::path::Path;

use pagetide_oracle::{Choice, Format, ReferenceString, ask, curve};
use pagetide_reference::Rng;
use tempfile::tempdir;

/// Ids of references, two of them above 2^32.
const IDS: [u64; 8] = [7, 9, 7, 1 << 40, u64::MAX, 9, 1 << 40, 3];
/// Dense numbers expected for the ids.
const NUMBERS: [u32; 8] = [0, 1, 0, 2, 3, 1, 2, 4];

fn entries(ids: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, id) in (0_u32..).zip(ids) {
        bytes.extend(time.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(4096_u32.to_le_bytes());
        bytes.extend((-1_i64).to_le_bytes());
    }
    bytes
}

fn read(path: &Path, bytes: &[u8]) -> Result<ReferenceString, String> {
    fs::write(path, bytes).unwrap();
    ReferenceString::read(path, None, u64::MAX).map_err(|error| error.to_string())
}

#[test]
fn every_format_and_compression_gives_the_same_string() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trace");
    let text: String = IDS.iter().map(|id| format!("{id}\n")).collect();
    let lackey: String = [7_u64, 9, 7, 1 << 40, (1 << 52) - 1, 9, 1 << 40, 3]
        .iter()
        .zip(["I ", " L", " S", " M"].iter().cycle())
        .map(|(page, kind)| format!("{kind} {:08x},4\n", page << 12))
        .collect();
    let lackey = format!("==7== Lackey, an example Valgrind tool\n{lackey}");
    for plain in [text.into_bytes(), lackey.into_bytes(), entries(&IDS)] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&plain).unwrap();
        let zstd = zstd::encode_all(&plain[..], 1).unwrap();
        for bytes in [
            plain.clone(),
            gzip.finish().unwrap(),
            xz.finish().unwrap(),
            zstd,
        ] {
            let string = read(&path, &bytes).unwrap();
            assert_eq!(string.in_memory(), Some(&NUMBERS[..]));
            assert_eq!((string.distinct(), string.references()), (5, 8));
        }
    }
}

#[test]
fn an_access_across_two_pages_touches_both() {
    let folder = tempdir().unwrap();
    let string = read(
        &folder.path().join("trace"),
        b" L 00001ffe,8\n L 00001000,1\n",
    )
    .unwrap();
    assert_eq!(string.in_memory(), Some(&[0, 1, 0][..]));
}

#[test]
fn bad_files_are_refused_in_one_sentence_that_says_where() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut truncated = entries(&IDS);
    truncated.truncate(24 * 3 + 5);
    let mut halved = zstd::encode_all(&entries(&[5; 4000])[..], 1).unwrap();
    halved.truncate(halved.len() / 2);
    for (bytes, said) in [
        (Vec::new(), "no reference"),
        (b"\n\n".to_vec(), "no reference"),
        (b"1\n2\nx3\n".to_vec(), "line 3: \"x3\""),
        (b" L 1000,4\n77\n".to_vec(), "line 2: \"77\""),
        (b"12\n99999999999999999999999\n".to_vec(), "line 2"),
        (b"hello\n".to_vec(), "fit no format"),
        ((0..200).rev().collect(), "fit no format"),
        (truncated, "within entry 4, after 5 of its 24 bytes"),
        (halved, "whether the file is whole"),
    ] {
        let error = read(&path, &bytes).unwrap_err();
        assert!(error.contains(said), "{error}");
        assert!(error.contains("trace:") && !error.contains('\n'), "{error}");
    }
    assert!(
        ReferenceString::read(Path::new("/nowhere"), None, 1)
            .unwrap_err()
            .to_string()
            .contains("/nowhere")
    );
}

#[test]
fn a_string_on_disk_gives_the_faults_of_one_in_memory() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut rng = Rng::new(1);
    let ids: Vec<u64> = (0..3_000_000)
        .map(|_| u64::from(rng.below_u32(5000)))
        .collect();
    fs::write(&path, entries(&ids)).unwrap();
    let memory = ReferenceString::read(&path, Some(Format::OracleGeneral), u64::MAX).unwrap();
    let disk = ReferenceString::read(&path, Some(Format::OracleGeneral), 1000).unwrap();
    assert!(disk.in_memory().is_none());
    let choices = [
        Choice::parse("lru").unwrap(),
        Choice::parse("sieve").unwrap(),
    ];
    let faults = |string: &ReferenceString| -> Vec<Vec<u64>> {
        let answer = ask(string, &choices, &[500, 2000], 3, 2).unwrap();
        answer.lines.into_iter().map(|line| line.windows).collect()
    };
    assert_eq!(faults(&memory), faults(&disk));
}

#[test]
fn a_sample_of_all_pages_is_exact_and_of_a_tenth_within_its_error() {
    let mut rng = Rng::new(3);
    let string: Vec<u32> = (0..400_000)
        .map(|_| rng.below_u32(20_000).min(rng.below_u32(20_000)))
        .collect();
    let exact = curve::lru(&string, 20_000);
    let all = curve::shards(&string, 1.0);
    let tenth = curve::shards(&string, 0.1);
    for size in [500, 2000, 8000, 15_000] {
        let faults = exact.faults(size) as f64;
        assert!((all.faults(size).0 - faults).abs() < 1.0);
        let (estimate, error) = tenth.faults(size);
        assert!(error > 0.0 && error < faults * 0.2, "{error} of {faults}");
        // The tolerance is five standard errors: the test fails by chance once in a million.
        assert!(
            (estimate - faults).abs() < 5.0 * error,
            "{estimate} ± {error}, exactly {faults}"
        );
    }
}

#[test]
fn a_sample_of_a_few_pages_is_refused_with_the_share_that_has_enough() {
    let mut rng = Rng::new(5);
    let folder = tempdir().unwrap();
    let path = folder.path().join("references");
    let text = |count: u32, pages: u32, rng: &mut Rng| -> String {
        (0..count)
            .map(|_| format!("{}\n", rng.below_u32(pages)))
            .collect()
    };
    fs::write(&path, text(100_000, 10_000, &mut rng)).unwrap();
    let refused = curve::shards_of_file(&path, None, 0.001)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("too few to tell"), "{refused}");
    let (_, advised) = refused.rsplit_once("--sample ").unwrap();
    let advised: f64 = advised.parse().unwrap();
    assert!(advised > 0.03 && advised <= 1.0, "{refused}");
    let curve = curve::shards_of_file(&path, None, advised).unwrap();
    let (faults, error) = curve.faults(2000);
    assert!(error < faults, "{faults} ± {error}");
    // Even if a sample has no page, the error gives advice.
    let refused = curve::shards_of_file(&path, None, 1e-9).unwrap_err();
    assert!(refused.to_string().contains("--sample "), "{refused}");
    // The sample has all pages, but there are few.
    fs::write(&path, text(1000, 5, &mut rng)).unwrap();
    let curve = curve::shards_of_file(&path, None, 1.0).unwrap();
    // If memory holds all pages, each page faults once.
    assert!((curve.faults(5).0 - 5.0).abs() < 1e-9);
}
