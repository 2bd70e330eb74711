//! Tests of files of other tools. The format is detected from the contents, and the same trace gives the same string in
//! each format. Damaged, mixed or ambiguous files are refused in one sentence.

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

mod traces;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pagetide_oracle::{Choice, Format, ReferenceString, ask};
use pagetide_reference::Rng;
use pagetide_testing::{Need, skip};
use tempfile::{TempDir, tempdir};
use traces::{Access, Request};

struct File {
    _folder: TempDir,
    path: PathBuf,
}

impl File {
    fn of(bytes: &[u8]) -> Self {
        let folder = tempdir().unwrap();
        let path = folder.path().join("trace");
        fs::write(&path, bytes).unwrap();
        Self {
            _folder: folder,
            path,
        }
    }

    fn read(&self, format: Option<&str>) -> Result<ReferenceString, String> {
        let format = format.map(|format| format.parse().unwrap());
        ReferenceString::read(&self.path, format, u64::MAX).map_err(|error| error.to_string())
    }
}

/// Reads the references of a file. If `format` is `None`, it is detected.
fn references(bytes: &[u8], format: Option<&str>) -> Vec<u32> {
    let string = File::of(bytes).read(format).unwrap();
    string.in_memory().unwrap().to_vec()
}

/// Returns the reason why a file is refused: one sentence that names the file.
fn refusal(bytes: &[u8], format: Option<&str>) -> String {
    let refusal = File::of(bytes).read(format).unwrap_err();
    assert!(
        refusal.contains("/trace: ") && !refusal.contains('\n'),
        "{refusal}"
    );
    refusal
}

fn writes(bytes: &[u8]) -> Vec<bool> {
    let file = File::of(bytes);
    let string = ReferenceString::read_with_writes(&file.path, None, u64::MAX).unwrap();
    let writes = string.writes().unwrap();
    (0..string.references())
        .map(|time| writes.is(time))
        .collect()
}

/// Returns ids as numbers from 0 in order of first use.
fn dense<T: std::hash::Hash + Eq + Copy>(ids: &[T]) -> Vec<u32> {
    let mut numbers = HashMap::new();
    ids.iter()
        .map(|id| {
            let next = u32::try_from(numbers.len()).unwrap();
            *numbers.entry(*id).or_insert(next)
        })
        .collect()
}

/// Returns `count` random ids, some of which occur often.
fn ids(count: usize) -> Vec<u64> {
    let mut rng = Rng::new(17);
    let draw = |_| {
        let id = rng.below_u32(400).min(rng.below_u32(400));
        u64::from(id).wrapping_mul(0x1_0000_0001_0001)
    };
    (0..count).map(draw).collect()
}

fn requests(count: usize) -> Vec<Request> {
    let mut rng = Rng::new(18);
    let draw = |_| Request {
        block: 40_000_000 + u64::from(rng.below_u32(3000)),
        bytes: 512 * (1 + rng.below_u32(60)),
        write: rng.below_u32(3) == 0,
    };
    (0..count).map(draw).collect()
}

fn accesses(count: usize) -> Vec<Access> {
    let mut rng = Rng::new(19);
    let draw = |_| Access {
        address: 0x7fff_0000_0000 + u64::from(rng.below_u32(900)) * 1021,
        bytes: 1 << rng.below_u32(6),
        write: rng.below_u32(3) == 0,
    };
    (0..count).map(draw).collect()
}

/// Returns all pages of 4 KiB that ranges of bytes touch, and for each whether it is written. A range is address, size
/// and true if it writes.
fn pages(ranges: impl Iterator<Item = (u64, u64, bool)>) -> (Vec<u64>, Vec<bool>) {
    let (mut all, mut writes) = (Vec::new(), Vec::new());
    for (address, bytes, write) in ranges {
        let mut touched: Vec<u64> = (address..address + bytes).map(|byte| byte / 4096).collect();
        touched.dedup();
        writes.extend(std::iter::repeat_n(write, touched.len()));
        all.extend(touched);
    }
    (all, writes)
}

#[test]
fn a_trace_of_objects_has_the_same_misses_in_every_format() {
    let ids = ids(5000);
    let expected = dense(&ids);
    let choices = [
        Choice::parse("lru").unwrap(),
        Choice::parse("s3-fifo").unwrap(),
    ];
    let misses = |string: &ReferenceString| -> Vec<u64> {
        let answer = ask(string, &choices, &[50, 200], 1, 1).unwrap();
        answer.lines.iter().map(|line| line.faults).collect()
    };
    let right = misses(&ReferenceString::of(expected.clone(), 400));
    let lcs = (1..=8).map(|version| (traces::lcs(&ids, version), None));
    let others = [
        (traces::text(&ids), None),
        (traces::oracle_general(&ids), None),
        (traces::twitter(&ids), None),
        (traces::csv(&ids, true), Some("csv:lbn")),
        (traces::csv(&ids, true), Some("csv:5")),
        (traces::csv(&ids, false), Some("csv:5")),
    ];
    for (at, (bytes, format)) in others.into_iter().chain(lcs).enumerate() {
        let string = File::of(&bytes).read(format).unwrap();
        assert_eq!(string.in_memory(), Some(&expected[..]), "file {at}");
        assert_eq!(misses(&string), right, "file {at}");
    }
}

#[test]
fn a_request_for_blocks_is_references_to_all_its_pages() {
    let requests = requests(600);
    let ranges = requests
        .iter()
        .map(|request| (request.block * 512, u64::from(request.bytes), request.write));
    let (pages, expected_writes) = pages(ranges);
    assert!(
        pages.len() > 2 * requests.len(),
        "requests of several pages"
    );
    let expected = dense(&pages);
    let mut with_header = b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n".to_vec();
    with_header.extend(traces::msr(&requests));
    for bytes in [
        traces::msr(&requests),
        with_header,
        traces::vscsi(&requests, 1),
        traces::vscsi(&requests, 2),
    ] {
        assert_eq!(references(&bytes, None), expected);
        assert_eq!(writes(&bytes), expected_writes);
    }
}

#[test]
fn volumes_of_a_block_trace_and_targets_of_damon_have_pages_of_their_own() {
    let msr = b"128166372003061629,hm,0,Read,4096,4096,413\n\
                128166372003061630,hm,1,Read,4096,4096,413\n\
                128166372003061631,src,1,Read,4096,0,413\n\
                128166372003061632,hm,0,Write,4097,1,413\n";
    assert_eq!(references(msr, None), [0, 1, 0]);
    let damo = "base_time_absolute: 8 m 59.809 s\ndata source: unknown\n\n\
        monitoring_start:                0 ns\nmonitoring_end:            104.599 ms\n\
        monitoring_duration:       104.599 ms\ntarget_id: 5\nnr_regions: 3\n\
        # start_addr     end_addr        length  nr_accesses   age\n\
        000000400000-000000402000 (   8.000 KiB)           7    -1\n\
        000000402000-000000403000 (   4.000 KiB)           0    12\n\
        7fff66b0a000-7fff66b0c000 (   8.000 KiB)           1     0\n\n\
        target_id: 6\nnr_regions: 1\n000000400000-000000401000(   4.000 KiB):\t1\n\n\
        target_id: 5\nnr_regions: 2\n000000401000-000000402000 (4096)           1    1\n\
        000000402000-000000403000 (4096)           2    1\n";
    assert_eq!(references(damo.as_bytes(), None), [0, 1, 2, 3, 4, 1, 5]);
}

#[test]
fn an_access_to_memory_is_the_same_pages_in_every_format() {
    let accesses = accesses(700);
    let ranges = accesses.iter().map(|a| (a.address, a.bytes, a.write));
    let (all, expected_writes) = pages(ranges.clone());
    let expected = dense(&all);
    for bytes in [
        traces::lackey(&accesses),
        traces::view(&accesses),
        traces::memtrace(&accesses, false),
        traces::memtrace(&accesses, true),
    ] {
        assert_eq!(references(&bytes, None), expected);
        assert_eq!(writes(&bytes), expected_writes);
    }
    // perf does not say how many bytes were accessed.
    let (first, _) = pages(ranges.map(|(address, _, write)| (address, 1, write)));
    assert_eq!(references(&traces::perf(&accesses), None), dense(&first));
}

#[test]
fn instructions_of_dynamorio_are_references_and_workloads_have_pages_of_their_own() {
    let view = b"           8           1: W0.T32 ifetch       3 byte(s) @ 0x0000000000401ffe 48 89 e7             mov    %rsp, %rdi\n\
                 \x20          9           1: W1.T33 read         8 byte(s) @ 0x0000000000401000 by PC 0x0000000000401ffe\n\
                 \x20         10           2: W0.T32 non-fetched  3 byte(s) @ 0x0000000000700000 f3 a4 rep movs\n";
    assert_eq!(references(view, None), [0, 1, 2]);
    let simple = [traces::SIMPLE, "0x401ffe:  3, mov\n0x402000:  8, w\n"].concat();
    assert_eq!(references(simple.as_bytes(), None), [0, 1, 1]);
}

#[test]
fn a_column_is_named_counted_or_the_only_one_and_words_are_ids_too() {
    for (table, format) in [
        ("time,id,size\n1,7,4\n2,9,4\n3,7,8\n", None),
        ("# time, Object, size\n1, 7, 4\n2, 9, 4\n3, 7, 8\n", None),
        ("time;page\n1;0x7\n2;0x9\n3;7\n", None),
        ("1\t7\n2\t9\n3\t7\n", Some("csv:2")),
        ("   1  7\n  22  9\n 333  7\n", Some("csv:2")),
        (
            "\"a, b\",\"x\"\n\"1,5\",7\n\"2,5\",9\n3,\"7\"\n",
            Some("csv:x"),
        ),
        ("1.5,red\n2.5,blue\n3.5,red\n", Some("csv:2")),
        (
            "time,color\n1.5,red\n2.5,blue\n3.5,red\n",
            Some("csv:color"),
        ),
        ("color\nred\nblue\nred\n", Some("csv")),
        ("7\n9\n7\n", Some("csv")),
        ("7\n9\n7\n", Some("csv:1")),
    ] {
        assert_eq!(references(table.as_bytes(), format), [0, 1, 0], "{table}");
    }
    for (table, format, told) in [
        ("version,time,op,size,lbn\n1,2,2a,512,7\n", None, "csv:NAME"),
        (
            "version,time,op,size,lbn\n1,2,2a,512,7\n",
            None,
            "(version, time, op, size, lbn)",
        ),
        ("id,key\n1,2\n", None, "csv:NAME"),
        ("1,7,4\n2,9,4\n", None, "(3 and no header)"),
        ("1 7 4\n2 9 4\n", None, "--format"),
        ("a,b\n1,2\n", Some("csv:c"), "no one column c"),
        ("a,a\n1,2\n", Some("csv:a"), "no one column a"),
        ("a,b\n1,2\n", Some("csv:3"), "no one column 3"),
        ("1,2\n", Some("csv:a"), "no one column a"),
        ("a,b\n1,2\n1,2,3\n", Some("csv:a"), "line 3"),
        ("a,b\n1,2\n,2\n", Some("csv:a"), "line 3"),
        ("a,b\n1,2\nx,2\n", Some("csv:a"), "row with a number"),
        ("a,b\n", Some("csv:a"), "no reference"),
    ] {
        let refusal = refusal(table.as_bytes(), format);
        assert!(refusal.contains(told), "{refusal}");
    }
}

#[test]
fn a_format_is_asked_for_by_a_name_and_a_column() {
    for name in ["csv:", "csv:0", "excel"] {
        assert!(name.parse::<Format>().is_err(), "{name}");
    }
    assert!(
        "excel"
            .parse::<Format>()
            .unwrap_err()
            .contains("oracle-general, lcs, vscsi")
    );
    assert_eq!(
        "csv:5".parse(),
        Ok(Format::Csv(Some(pagetide_oracle::Column::Number(5))))
    );
}

/// Returns records of vscsi's version 2 that are also valid entries of oracleGeneral.
fn two_faced() -> Vec<u8> {
    let record = |number: u32, bytes: u32, block: u64, time: u64, response: u64| {
        let mut record = vec![0x28, 0, 0, 2];
        record.extend(number.to_le_bytes());
        record.extend(bytes.to_le_bytes());
        record.extend(1_u32.to_le_bytes());
        for long in [block, time, response] {
            record.extend(long.to_le_bytes());
        }
        record
    };
    [
        record(1, 512, 9, 0x0300_0000, 1 << 32),
        record(1, 0x0400_0000, 1 << 32, 9, 0x0500_0000),
        record(1, 512, 0x0600_0000, 1 << 32, 9),
    ]
    .concat()
}

#[test]
fn what_fits_two_formats_is_refused_until_one_is_named() {
    let refusal = refusal(&two_faced(), None);
    assert!(
        refusal.contains("several formats") && refusal.contains("--format"),
        "{refusal}"
    );
    assert_eq!(references(&two_faced(), Some("oracle-general")).len(), 5);
    let pages = references(&two_faced(), Some("vscsi")).len();
    assert_eq!(pages, 1 + (0x0400_0000 >> 12) + 1);
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn damaged_and_mixed_files_are_refused_where_they_are_wrong() {
    let (ids, requests, accesses) = (ids(20), requests(20), accesses(20));
    let with = |mut bytes: Vec<u8>, place: usize, new: &[u8]| {
        bytes[place..place + new.len()].copy_from_slice(new);
        bytes
    };
    let cut = |mut bytes: Vec<u8>, length: usize| {
        bytes.truncate(length);
        bytes
    };
    let and = |bytes: Vec<u8>, more: &[u8]| [bytes, more.to_vec()].concat();
    let huge_read = b"128166372003061629,hm,0,Read,0,18446744073709551615,413\n";
    let lcs = |version| traces::lcs(&ids, version);
    let view = traces::view(&accesses);
    let address = view.windows(4).rposition(|four| four == b"@ 0x").unwrap();
    let damo = |region: &str| {
        format!("base_time_absolute: 1 s\ntarget_id: 0\nnr_regions: 1\n{region}\n").into_bytes()
    };
    let cases: Vec<(Vec<u8>, Option<&str>, &str)> = vec![
        // The file is truncated.
        (
            cut(lcs(2), 8192 + 28 * 3 + 5),
            None,
            "entry 4, after 5 of its 28 bytes",
        ),
        (
            cut(lcs(2), 8192 + 28 * 3),
            None,
            "says that 20 follow, and 3 do",
        ),
        (cut(lcs(2), 100), None, "shorter than a header"),
        (
            cut(traces::vscsi(&requests, 1), 32 * 3 + 31),
            None,
            "entry 4, after 31 of its 32",
        ),
        (
            cut(traces::vscsi(&requests, 2), 40 * 3 + 1),
            None,
            "entry 4, after 1 of its 40",
        ),
        (
            b"128166372003061629,hm,0,Read,0,4096,4\n128166372,hm,0,Re".to_vec(),
            None,
            "line 2",
        ),
        (b"0,key,3,4,5,get,0\n1,key,3,4,5,g".to_vec(), None, "line 2"),
        (damo("")[..].to_vec(), None, "says that 1 follow, and 0 do"),
        (damo("000000400000-0000"), None, "line 4"),
        (
            cut(view.clone(), address + 9),
            None,
            "is no record as DynamoRIO",
        ),
        // The magic number is wrong.
        (with(lcs(1), 0, b"\0"), None, "fit no format"),
        (
            with(lcs(1), 0, b"\0"),
            Some("lcs"),
            "does not begin with the magic",
        ),
        (
            with(lcs(1), 8191, b"\0"),
            None,
            "does not end with the magic",
        ),
        (with(lcs(1), 8, &[9]), None, "version is none from 1 to 8"),
        (with(lcs(1), 8, b"<IQI"), None, "libCacheSim before 2025"),
        (
            with(traces::vscsi(&requests, 1), 15, &[3]),
            Some("vscsi"),
            "neither version",
        ),
        // The counts are huge.
        (
            with(lcs(3), 24, &u64::MAX.to_le_bytes()),
            None,
            "18446744073709551615 follow",
        ),
        (
            with(traces::vscsi(&requests, 1), 16 + 64, &[0xff; 8]),
            None,
            "entry 3 is no",
        ),
        (
            huge_read.to_vec(),
            None,
            "line 1 covers 4503599627370496 pages",
        ),
        (b" L 1000,99999999999\n".to_vec(), None, "line 1 covers"),
        (
            damo("000000000000-ffffffffffffffff (16 EiB) 1 0"),
            None,
            "line 4 covers",
        ),
        (
            damo("000000000000-fffffffffffffffff (16 EiB) 1 0"),
            None,
            "line 4",
        ),
        (damo("000000002000-000000001000 (4096) 1 0"), None, "line 4"),
        (
            b"base_time_absolute: 1\nnr_regions: 99999999999999999999\n".to_vec(),
            None,
            "line 2",
        ),
        (
            and(traces::SIMPLE.into(), b"0x1: 18446744073709551615, r\n"),
            None,
            "line 2 covers",
        ),
        // The text has NUL bytes.
        (vec![0; 4096], None, "fit no format"),
        (b"7\n\0\0\0\0\n9\n".to_vec(), None, "fit no format"),
        (
            and(traces::text(&[7; 3000]), b"\0\0\n"),
            None,
            "line 3001: \"\\x00\\x00\"",
        ),
        (
            and(traces::msr(&requests), b"\0\n"),
            Some("msr"),
            "line 21: \"\\x00\"",
        ),
        (
            and(traces::twitter(&ids), &[0; 90]),
            Some("twitter"),
            "line 21",
        ),
        (
            and(traces::csv(&ids, true), b"1,2,3,4,\0\n"),
            Some("csv:lbn"),
            "line 22",
        ),
        (
            and(traces::perf(&accesses), b"\0\n"),
            Some("perf"),
            "line 25",
        ),
        // One format follows another.
        (
            and(traces::text(&ids), &traces::lackey(&accesses)),
            None,
            "line 21",
        ),
        (
            and(traces::lackey(&accesses), &traces::text(&ids)),
            None,
            "line 22",
        ),
        (
            and(traces::msr(&requests), &traces::twitter(&ids)),
            None,
            "line 21",
        ),
        (
            and(traces::twitter(&ids), &traces::msr(&requests)),
            None,
            "line 21",
        ),
        (
            and(traces::view(&accesses), &traces::perf(&accesses)),
            None,
            "no record as DynamoRIO",
        ),
        (
            and(traces::perf(&accesses), &traces::csv(&ids, false)),
            None,
            "line 25",
        ),
        (
            and(
                damo("000000001000-000000002000 (4096) 1 0"),
                b"a 3 7.5: f: 55f71746a018\n",
            ),
            None,
            "line 5",
        ),
        (
            and(traces::vscsi(&requests, 1), &traces::vscsi(&requests, 2)),
            Some("vscsi"),
            "entry 21 is no",
        ),
        (
            and(lcs(1), &traces::oracle_general(&ids)),
            None,
            "20 follow, and 40 do",
        ),
        // One line has no end, and one sample has no address.
        (and(b"7\n".to_vec(), &[b'9'; 70_000]), None, "line 2"),
        (
            b"t 39 11.5: 1 page-faults: ffffffff817554ea elf_load+0x28a ([k])\n".to_vec(),
            None,
            "-F comm,tid,time,event,addr",
        ),
        (
            b"The quick brown fox\njumps over\n".to_vec(),
            None,
            "--format: pagetide, text, csv",
        ),
    ];
    for (bytes, format, told) in cases {
        let refusal = refusal(&bytes, format);
        assert!(refusal.contains(told), "{refusal}, not {told}");
    }
}

/// Returns what a command prints to standard output and standard error; `None` if it cannot be run or fails.
fn output(folder: &Path, words: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| [output.stdout, output.stderr].concat())
}

#[test]
fn what_valgrind_prints_of_a_program_is_read_line_by_line() {
    let folder = tempdir().unwrap();
    let words = ["valgrind", "--tool=lackey", "--trace-mem=yes", "true"];
    let Some(trace) = output(folder.path(), &words) else {
        return skip(Need::Judges, "valgrind is not here");
    };
    let text = String::from_utf8(trace.clone()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("=="));
    let lines = lines.filter(|line| !line.is_empty()).count() as u64;
    assert!(lines > 1000, "{lines} accesses");
    let string = File::of(&trace).read(None).unwrap();
    // Few accesses cross into another page.
    assert!(string.references() >= lines && string.references() < lines + lines / 20);
}

#[test]
fn what_perf_prints_of_page_faults_is_the_same_string_in_all_its_forms() {
    let folder = tempdir().unwrap();
    let perf = |words: &[&str]| output(folder.path(), &[&["perf"], words].concat());
    let record = [
        "record",
        "-e",
        "page-faults",
        "-c",
        "1",
        "-d",
        "-o",
        "perf.data",
        "true",
    ];
    let Some(script) = perf(&record).and_then(|_| {
        perf(&[
            "script",
            "-i",
            "perf.data",
            "-F",
            "comm,tid,time,event,addr",
        ])
    }) else {
        return skip(Need::Perf, "perf cannot record page faults here");
    };
    let expected = references(&script, None);
    assert!(expected.len() > 20, "{} faults", expected.len());
    for fields in [
        "+addr",
        "+addr,+data_src",
        "comm,pid,tid,time,period,event,addr,ip",
    ] {
        if let Some(script) = perf(&["script", "-i", "perf.data", "-F", fields]) {
            assert_eq!(references(&script, None), expected, "{fields}");
        }
    }
    for fields in ["addr", "ip,addr"] {
        let script = perf(&["script", "-i", "perf.data", "-F", fields]).unwrap();
        assert_eq!(references(&script, Some("perf")), expected, "{fields}");
    }
    // By default, the command prints only addresses of instructions.
    let plain = perf(&["script", "-i", "perf.data"]).unwrap();
    assert!(refusal(&plain, None).contains("-F comm,tid,time,event,addr"));
    for separator in [" ", ","] {
        let dump = perf(&["mem", "-i", "perf.data", "report", "-D", "-x", separator]).unwrap();
        assert_eq!(references(&dump, None), expected, "{separator}");
    }
    let dump = perf(&["mem", "-i", "perf.data", "report", "-D"]).unwrap();
    assert_eq!(references(&dump, None), expected);
}
