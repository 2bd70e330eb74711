//! Files of references: all forms can be read back, and every damage is reported with its position.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests may unwrap as tests do"
)]

use std::fs;
use std::io::{BufReader, Read};

use pagetide_reference::{
    FileSummary, Form, MAX_PAGES, PackedFile, Pattern, ReadError, Reader, check_file, open_file,
    pack_file, tally, write_binary, write_counts, write_text,
};
use proptest::prelude::*;

fn read(bytes: &[u8], pages: u32) -> Result<Vec<u32>, ReadError> {
    Reader::new(bytes, pages)?.collect()
}

fn refusal(bytes: &[u8], pages: u32) -> String {
    read(bytes, pages).unwrap_err().to_string()
}

fn binary(pages: u32, references: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_binary(
        &mut bytes,
        pages,
        references.len() as u64,
        references.iter().copied(),
    )
    .unwrap();
    bytes
}

/// A stream that returns one byte at a time, like a slow device.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = 1.min(buffer.len());
        self.0.read(&mut buffer[..length])
    }
}

#[test]
fn each_form_is_told_by_its_contents() {
    let of = |bytes: &[u8]| Reader::new(bytes, 10).unwrap().form();
    assert_eq!(of(b"3\n"), Form::Text);
    assert_eq!(of(b"3 2\n"), Form::Counts);
    assert_eq!(of(&binary(10, &[3])), Form::Binary);
}

#[test]
fn counts_are_read_back_in_page_order() {
    assert_eq!(read(b"0 2\n1 0\n4 1\n", 5).unwrap(), [0, 0, 4]);
}

#[test]
fn line_ends_blanks_and_a_missing_last_line_end_do_not_matter() {
    assert_eq!(read(b"1\r\n 2\t\n3", 5).unwrap(), [1, 2, 3]);
    assert_eq!(read(b"1\t2 \r\n2 1", 5).unwrap(), [1, 1, 2]);
}

#[test]
fn malformed_lines_are_refused_by_their_number() {
    for (text, message) in [
        (
            "1\nabc\n",
            "line 2: \"abc\" is no whole number; write a page index, or a page and its count",
        ),
        (
            "1\n2.5\n",
            "line 2: \"2.5\" is no whole number; write a page index, or a page and its count",
        ),
        (
            "1\n+2\n",
            "line 2: \"+2\" is no whole number; write a page index, or a page and its count",
        ),
        (
            "1 x\n",
            "line 1: \"x\" is no whole number; write a page index, or a page and its count",
        ),
        (
            "-\n",
            "line 1: \"-\" is no whole number; write a page index, or a page and its count",
        ),
        (
            "\0\u{e9}\n",
            "line 1: \"\\x00\\xc3\\xa9\" is no whole number; write a page index, or a page and its count",
        ),
        (
            "1\n\n2\n",
            "line 2 is empty; write a page index, or a page and its count, in every line",
        ),
        (
            "1\n2\n-3\n",
            "line 3: -3 is negative; pages and counts start at 0",
        ),
        (
            "1 -3\n",
            "line 1: -3 is negative; pages and counts start at 0",
        ),
        (
            "1\n10\n",
            "line 2: page 10 is outside the range of 10 page(s), which start at 0; give a larger range or correct the file",
        ),
        (
            "99999999999999999999999\n",
            "line 1: page 99999999999999999999999 is outside the range of 10 page(s), which start at 0; give a larger \
             range or correct the file",
        ),
        (
            "1\n2 3\n",
            "line 2 has 2 number(s) instead of 1; write either a page index in every line, or a page and its count",
        ),
        (
            "1 2\n3\n",
            "line 2 has 1 number(s) instead of 2; write either a page index in every line, or a page and its count",
        ),
        (
            "1 2 3\n",
            "line 1 has 3 number(s) instead of 2; write either a page index in every line, or a page and its count",
        ),
        (
            "2 1\n2 1\n",
            "line 2: page 2 comes after page 2; list every page once, in ascending order (sort -n)",
        ),
        (
            "0 0\n1 0\n",
            "there is no reference in it; give at least one",
        ),
        ("", "there is no reference in it; give at least one"),
        (
            "1 4294967296\n",
            "line 1: there are more than 4294967295 references; shorten the file",
        ),
    ] {
        let mut reader = match Reader::new(text.as_bytes(), 10) {
            Ok(reader) => reader,
            Err(error) => {
                assert_eq!(error.to_string(), message);
                continue;
            }
        };
        let error = reader.find_map(Result::err).unwrap();
        assert_eq!(error.to_string(), message);
        assert!(reader.next().is_none(), "nothing follows an error");
    }
}

#[test]
fn a_line_without_end_is_refused_without_reading_it_all() {
    let endless = std::io::repeat(b'7');
    let error = Reader::new(BufReader::new(endless), 10).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1: \"777777777777777777777777…\" is no whole number; write a page index, or a page and its count"
    );
}

#[test]
fn scans_and_repeats_take_a_few_bytes_whatever_their_length() {
    let string: Vec<u32> = (0..50_000).chain(vec![7; 100_000]).collect();
    let bytes = binary(50_000, &string);
    assert!(bytes.len() < 24 + 20 + 4, "{} bytes", bytes.len());
    assert_eq!(read(&bytes, 50_000).unwrap(), string);
}

#[test]
fn the_binary_form_is_what_its_documentation_says() {
    let expected = [
        &b"\x89PTREFS\n"[..],
        &[1, 0, 0, 0],
        &[0x10, 0x27, 0, 0],
        &[6, 0, 0, 0, 0, 0, 0, 0],
        &[0x08],             // two up: zigzag 4, once
        &[0x05, 1],          // one up, walked 3 times: to 5
        &[0x02],             // one down: zigzag 1
        &[0x9c, 0xa0, 0x02], // 9223 up: zigzag 18446, so the word is 36892 = 2·128² + 32·128 + 28
    ]
    .concat();
    let mut bytes = binary(10_000, &[2, 3, 4, 5, 4, 4 + 9223]);
    let sum = u32::from_le_bytes(bytes.split_off(bytes.len() - 4).try_into().unwrap());
    assert_eq!(sum, crc32fast::hash(&bytes));
    assert_eq!(bytes, expected);
}

#[test]
fn a_damaged_binary_file_is_refused_wherever_a_byte_is_changed_or_missing() {
    let string = [5, 6, 7, 8, 8, 8, 300, 2, 999];
    let good = binary(1000, &string);
    assert!(PackedFile::new(&good, 1000).is_ok());
    for length in 0..good.len() {
        assert!(read(&good[..length], 1000).is_err(), "{length} bytes");
        assert!(
            PackedFile::new(&good[..length], 1000).is_err(),
            "{length} bytes"
        );
    }
    for place in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[place] ^= 1 << bit;
            // With a changed first byte the file is read as text, which then has no digits.
            assert!(read(&bad, 1000).is_err(), "byte {place} bit {bit}");
            assert!(
                PackedFile::new(&bad, 1000).is_err(),
                "byte {place} bit {bit}"
            );
        }
    }
    let mut longer = good.clone();
    longer.push(0);
    assert_eq!(
        refusal(&longer, 1000),
        "it is damaged (something follows its checksum); copy or make it again"
    );
    assert!(PackedFile::new(&longer, 1000).is_err());
}

#[test]
fn a_binary_file_of_another_version_or_kind_is_refused_by_name() {
    let mut newer = binary(10, &[1]);
    newer[8] = 2;
    assert_eq!(
        refusal(&newer, 10),
        "it is of version 2 of the binary form; read it with the tool that made it, or update this one"
    );
    assert_eq!(
        refusal(b"\x89PNG\r\n\x1a\n", 10),
        "it is no file of references; give text with one page index a line, or a binary file made by this tool"
    );
}

#[test]
fn binary_references_outside_the_callers_range_are_refused_by_their_place() {
    let bytes = binary(1000, &[5, 6, 7, 500]);
    assert_eq!(
        refusal(&bytes, 500),
        "reference 4: page 500 is outside the range of 500 page(s), which start at 0; give a larger range or correct the \
         file"
    );
    assert!(matches!(
        PackedFile::new(&bytes, 500),
        Err(ReadError::OutOfRange { .. })
    ));
    assert_eq!(read(&bytes, 501).unwrap(), [5, 6, 7, 500]);
}

#[test]
fn packed_references_are_cut_off_or_repeated_as_asked() {
    let bytes = binary(10, &[3, 1, 4]);
    let packed = PackedFile::new(&bytes, 10).unwrap();
    assert_eq!((packed.refs(), packed.pages()), (3, 5));
    assert!(packed.references(2).eq([3, 1]));
    assert!(packed.references(7).eq([3, 1, 4, 3, 1, 4, 3]));
}

#[test]
fn writing_fails_when_the_references_are_not_as_announced() {
    let write = |pages, refs, string: &[u32]| {
        write_binary(Vec::new(), pages, refs, string.iter().copied()).map_err(|e| e.to_string())
    };
    assert_eq!(
        write(10, 2, &[1]).unwrap_err(),
        "there are fewer references than announced"
    );
    assert_eq!(
        write(10, 1, &[1, 2]).unwrap_err(),
        "there are more references than announced"
    );
    assert_eq!(
        write(10, 1, &[10]).unwrap_err(),
        "a reference is outside the range"
    );
    assert!(write(0, 1, &[0]).is_err());
    assert!(write(10, 0, &[]).is_err());
}

#[test]
fn a_file_is_checked_and_packed_from_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    fs::write(&path, "4\n2\n4\n").unwrap();
    let expected = FileSummary {
        form: Form::Text,
        refs: 3,
        pages: 5,
    };
    assert_eq!(check_file(&path, MAX_PAGES).unwrap(), expected);
    let mut bytes = Vec::new();
    assert_eq!(pack_file(&path, 5, &mut bytes).unwrap(), expected);
    assert!(
        PackedFile::new(&bytes, 5)
            .unwrap()
            .references(3)
            .eq([4, 2, 4])
    );

    let error = check_file(&path, 4).unwrap_err().to_string();
    let start = format!(
        "cannot use the references in {}: line 1: page 4 is outside",
        path.display()
    );
    assert!(error.starts_with(&start), "{error}");
    let missing = folder.path().join("none");
    let error = check_file(&missing, 4).unwrap_err().to_string();
    assert!(
        error.contains("No such file") && error.contains("check the path"),
        "{error}"
    );
    assert!(check_file(folder.path(), 4).is_err(), "a folder is no file");
}

#[test]
fn a_file_that_turns_bad_after_a_good_start_is_not_packed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    fs::write(&path, "4\n2\nx\n").unwrap();
    let mut bytes = Vec::new();
    let error = pack_file(&path, 5, &mut bytes).unwrap_err().to_string();
    assert!(error.contains("line 3"), "{error}");
    assert!(bytes.is_empty());
}

#[test]
fn a_batch_read_from_a_file_ends_where_the_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, binary(100, &[9, 8, 7])).unwrap();
    let mut reader = open_file(&path, 100).unwrap();
    let mut batch = [0; 2];
    assert_eq!(reader.fill(&mut batch).unwrap(), 2);
    assert_eq!(batch, [9, 8]);
    assert_eq!(reader.fill(&mut batch).unwrap(), 1);
    assert_eq!(batch[0], 7);
    assert_eq!(reader.fill(&mut batch).unwrap(), 0);
}

#[test]
fn a_generated_string_survives_every_form() {
    let pattern: Pattern = "smooth-sin-random".parse().unwrap();
    let string = || pattern.references(300, 5000, 4).unwrap();
    let plain: Vec<u32> = string().collect();
    let (mut text, mut counts, mut packed) = (Vec::new(), Vec::new(), Vec::new());
    write_text(&mut text, string()).unwrap();
    write_counts(&mut counts, &tally(string(), 300)).unwrap();
    write_binary(&mut packed, 300, string().left(), string()).unwrap();
    assert_eq!(read(&text, 300).unwrap(), plain);
    assert_eq!(read(&packed, 300).unwrap(), plain);
    let mut sorted = plain;
    sorted.sort_unstable();
    assert_eq!(read(&counts, 300).unwrap(), sorted);
}

proptest! {
    #[test]
    fn any_string_reads_back_from_text_and_binary(
        string in prop::collection::vec(prop_oneof![0..20_u32, 0..MAX_PAGES], 1..200),
    ) {
        let mut text = Vec::new();
        write_text(&mut text, string.iter().copied()).unwrap();
        prop_assert_eq!(&read(&text, MAX_PAGES).unwrap(), &string);
        let bytes = binary(MAX_PAGES, &string);
        prop_assert_eq!(&read(&bytes, MAX_PAGES).unwrap(), &string);
        let slow = BufReader::with_capacity(1, Trickle(&bytes));
        prop_assert_eq!(&Reader::new(slow, MAX_PAGES).unwrap().collect::<Result<Vec<_>, _>>().unwrap(), &string);
        let packed = PackedFile::new(&bytes, MAX_PAGES).unwrap();
        prop_assert_eq!(packed.pages(), string.iter().max().unwrap() + 1);
        prop_assert_eq!(&packed.references(string.len() as u64).collect::<Vec<_>>(), &string);
    }

    #[test]
    fn any_counts_read_back(counts in prop::collection::vec(0..5_u32, 1..50)) {
        let mut text = Vec::new();
        write_counts(&mut text, &counts).unwrap();
        match read(&text, 50) {
            Ok(string) => prop_assert_eq!(tally(string.into_iter(), u32::try_from(counts.len()).unwrap()), counts),
            Err(error) => {
                prop_assert!(counts.iter().all(|&count| count == 0), "{}", error);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, 100);
        let _ = PackedFile::new(&bytes, 100);
    }

    #[test]
    fn arbitrary_steps_behind_a_good_header_never_panic_and_both_readers_judge_alike(
        refs in 1..40_u64,
        steps in prop::collection::vec(prop_oneof![0..12_u8, any::<u8>()], 0..40),
    ) {
        let mut bytes = binary(100, &[0]);
        bytes.truncate(24);
        bytes[16..24].copy_from_slice(&refs.to_le_bytes());
        bytes.extend(steps);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let streamed = read(&bytes, 50);
        let packed = PackedFile::new(&bytes, 50).map(|packed| packed.references(refs).collect::<Vec<_>>());
        prop_assert_eq!(streamed.ok(), packed.ok());
    }

    #[test]
    fn arbitrary_lines_never_panic(text in "[0-9 \\-x\r\n\t]{0,60}") {
        let _ = read(text.as_bytes(), 100);
    }
}
