//! Fuzz tests of the readers of foreign reference files, one for each format.

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

mod traces;

use pagetide_oracle::{Format, ReferenceString};
use pagetide_testing::fuzz::fuzz;
use traces::{Access, Request};

/// Gives modified files to the reader of `format`, and to the reader of the format that is detected.
fn readers(format: &str, corpus: &[Vec<u8>]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let (_, refused) = fuzz(format, corpus, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let read = |format: Option<Format>| {
            let string = ReferenceString::read(&path, format, 1 << 16);
            string.map(drop).map_err(|why| why.to_string())
        };
        // Both readers run, even if one refuses the file.
        let (told, asked) = (read(None), read(Some(format.parse().unwrap())));
        asked.and(told)
    });
    assert!(refused > 0, "no changed {format} file was refused");
}

const IDS: [u64; 8] = [7, 9, 7, 1 << 40, u64::MAX, 9, 1 << 40, 3];

fn requests() -> Vec<Request> {
    let request = |(number, id): (u32, &u64)| Request {
        block: id % 1000,
        bytes: 512 << number,
        write: number % 2 == 0,
    };
    (0..).zip(&IDS).map(request).collect()
}

fn accesses() -> Vec<Access> {
    let access = |id: &u64| Access {
        address: id >> 8,
        bytes: id % 9,
        write: id.is_multiple_of(2),
    };
    IDS.iter().map(access).collect()
}

#[test]
fn tables_and_text() {
    readers("text", &[traces::text(&IDS), b"0x7 1\n0x9 2\n".to_vec()]);
    let quoted = b"time;\"a;b\"\n1;\"7\"\n2;x\"y\n".to_vec();
    readers(
        "csv:2",
        &[traces::csv(&IDS, true), traces::csv(&IDS, false), quoted],
    );
    readers("twitter", &[traces::twitter(&IDS)]);
}

#[test]
fn traces_of_memory() {
    readers("lackey", &[traces::lackey(&accesses())]);
    let memtrace = |x86| traces::memtrace(&accesses(), x86);
    readers(
        "dynamorio",
        &[traces::view(&accesses()), memtrace(true), memtrace(false)],
    );
    let dump =
        b"# PID, TID, IP, ADDR, LOCAL WEIGHT, DSRC, SYMBOL\n1 1 0xf1 0x0165f 0 0x1 a:b\n".to_vec();
    readers("perf", &[traces::perf(&accesses()), dump]);
    let damo = b"base_time_absolute: 1 s\ntarget_id: 7\nnr_regions: 2\n\
        000000400000-000000402000 (   8.000 KiB)           7    -1\n\
        7fff66b0a000-7fff66b0c000 (   8.000 KiB)           0     3\n";
    readers("damo", &[damo.to_vec()]);
}

#[test]
fn binary_traces_and_blocks() {
    readers("oracle-general", &[traces::oracle_general(&IDS)]);
    readers(
        "lcs",
        &[
            traces::lcs(&IDS, 1),
            traces::lcs(&IDS, 2),
            traces::lcs(&IDS, 8),
        ],
    );
    readers(
        "vscsi",
        &[traces::vscsi(&requests(), 1), traces::vscsi(&requests(), 2)],
    );
    readers("msr", &[traces::msr(&requests())]);
}
