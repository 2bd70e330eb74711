//! Tests of the oracle's memory use, measured by the allocator.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod counting;

use std::io::Write;
use std::path::Path;

use pagetide_oracle::{Choice, POLICIES, ReferenceString, ask, curve};
use pagetide_reference::Rng;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Writes references in libCacheSim's format oracleGeneral, with 24 bytes each.
fn write_entries(path: &Path, references: u32, pages: u32) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut rng = Rng::new(8);
    for time in 0..references {
        out.write_all(&time.to_le_bytes()).unwrap();
        // These ids are too large for the tree, so they need the hash table.
        let id = u64::from(rng.below_u32(pages)).wrapping_mul(0x1_0000_0001);
        out.write_all(&id.to_le_bytes()).unwrap();
        out.write_all(&[1, 0, 0, 0]).unwrap();
        out.write_all(&[0xff; 8]).unwrap();
    }
    out.flush().unwrap();
}

/// This is one test, because allocations of tests that run at the same time would be counted too.
#[test]
fn memory_is_bounded_by_pages_and_a_long_file_by_what_it_may_hold() {
    let pages: u32 = 200_000;
    let mut rng = Rng::new(9);
    let string: Vec<u32> = (0..600_000).map(|_| rng.below_u32(pages)).collect();
    for about in POLICIES {
        for size in [pages / 10, pages / 2, pages] {
            let (peak, hits) = counting::peak(|| {
                let mut policy = Choice::default_of(about).start(pages, size);
                policy.feed(&string)
            });
            assert!(hits > 0);
            let each = peak as f64 / f64::from(pages);
            println!(
                "{:16} {size:7} pages of memory: {each:5.1} bytes a page",
                about.name
            );
            let most = match about.name {
                "lru" | "clock" | "sieve" | "fifo" => 16.0,
                "opt" => 24.0,
                // These policies have up to four lists, and lists of evicted pages (ghosts).
                _ => 80.0,
            };
            assert!(each <= most, "{} takes {each:.1} bytes a page", about.name);
        }
    }
    let (peak, _) = counting::peak(|| curve::lru(&string, pages));
    println!(
        "LRU curve: {:.1} bytes a page",
        peak as f64 / f64::from(pages)
    );
    assert!(peak as f64 / f64::from(pages) < 40.0);

    // Memory of the OPT curve depends on the number of pages too: a string four times as long takes no more.
    let pages = 20_000;
    let string: Vec<u32> = (0..800_000).map(|_| rng.below_u32(pages)).collect();
    let peak = |length| counting::peak(|| curve::opt(&string[..length], pages)).0;
    let (short, long) = (peak(200_000), peak(800_000));
    println!(
        "OPT curve: {:.1} MB of 200,000 references, {:.1} MB of 800,000",
        short as f64 / 1e6,
        long as f64 / 1e6
    );
    assert!(long as f64 <= 1.1 * short as f64, "{long} after {short}");
    assert!(long < 8_000_000, "{long} bytes");

    // A file of 60 MB, with 4,096 references (16 KiB) allowed in memory: memory use depends on the number of pages, not
    // on the length.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.oracleGeneral.bin");
    write_entries(&path, 2_500_000, 20_000);
    let (peak, faults) = counting::peak(|| {
        let string = ReferenceString::read(&path, None, 4096).unwrap();
        assert!(string.in_memory().is_none(), "it was to lie on disk");
        let choice = [Choice::parse("lru").unwrap()];
        ask(&string, &choice, &[10_000], 1, 1).unwrap().lines[1].faults
    });
    assert!(faults > 0);
    println!(
        "a string of 10 MB in a file of 60 MB: {:.1} MB",
        peak as f64 / 1e6
    );
    assert!(
        peak < 24_000_000,
        "{peak} bytes for a file that was to be streamed"
    );
}
