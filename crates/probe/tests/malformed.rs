//! Tests that malformed input never causes a panic, a hang, or an allocation of the size that the input claims.

use std::path::Path;

use pagetide_probe::block::BlockObserver;
use pagetide_probe::meaning::{Attribution, Decoder, ReclaimObserver, TaskAccounting, analyse};
use pagetide_probe::trace::{
    CpuReader, EventFormat, FieldAccess, PageLayout, Stride, TextAccess, TraceFile, pack,
};
use pagetide_quantity::Nanos;
use pagetide_system::free::{Zones, parse_blocks};
use pagetide_system::{Counters, Syntax, maps, swaps};
use proptest::prelude::*;

fn golden() -> TraceFile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reclaim-6.18.trace");
    let file = std::fs::File::open(path).expect("the golden trace stands beside the tests");
    TraceFile::read(file).expect("the golden trace is whole")
}

/// Reads a ring buffer with every kind of reader.
fn read_ring(bytes: &[u8]) {
    let small = PageLayout {
        commit_size: 4,
        data: 12,
        page: 64,
    };
    let nonsense = PageLayout {
        commit_size: 0,
        data: usize::MAX,
        page: 0,
    };
    for layout in [PageLayout::default(), small, nonsense] {
        for stride in [Stride::Pages, Stride::Packed] {
            let mut reader = CpuReader::new(0, bytes, layout, stride);
            // Each event needs at least four bytes.
            let events = reader.by_ref().count();
            assert!(events <= bytes.len() / 4 + 1);
        }
        pack(bytes, &layout, &mut Vec::new());
    }
}

/// Runs every analysis on a trace.
fn understand(trace: &TraceFile) {
    let Ok(mut decoder) = Decoder::for_trace(trace) else {
        return;
    };
    let mut reclaim = ReclaimObserver::new(&trace.meta);
    let mut attribution = Attribution::new(&[TaskAccounting {
        pid: 1,
        begin: Some(Nanos(0)),
        end: Some(Nanos(u64::MAX)),
        user: Some(Nanos(u64::MAX)),
        system: Some(Nanos(u64::MAX)),
    }]);
    let mut block = BlockObserver::new();
    for raw in trace.events() {
        if let Some(traced) = decoder.decode(&raw) {
            reclaim.observe(&traced);
            attribution.observe(&traced);
            block.observe(&traced);
        }
    }
    attribution.finish();
    block.finish();
    analyse(trace, None, None).expect("formats that were understood once are understood again");
}

fn read_format(text: &str) {
    let _ = PageLayout::parse(text);
    let Ok(format) = EventFormat::parse("any", text) else {
        return;
    };
    for field in &format.fields {
        for data in [&[][..], &[0xff; 7], &[0xff; 64]] {
            let _ = FieldAccess::new(field).map(|access| access.get(data));
            let _ = TextAccess::new(field).map(|access| access.get(data).map(<[u8]>::len));
        }
    }
}

fn read_text(text: &[u8]) {
    for syntax in [
        Syntax::KeyValue,
        Syntax::KeyColonKib,
        Syntax::NodeKeyColonKib,
        Syntax::Columns(&["a"]),
        Syntax::Pressure,
    ] {
        Counters::new().parse(text, syntax);
    }
    swaps::parse(text);
    let text = String::from_utf8_lossy(text);
    let _ = Zones::parse(&text).all_free();
    parse_blocks(&text);
    for own in maps::parse(&text) {
        let _ = own.size();
    }
}

#[test]
fn every_file_of_the_corpus_is_survived() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        let name = entry.file_name().into_string().unwrap();
        match name.split_once('-').unwrap().0 {
            "ring" => read_ring(&bytes),
            "format" => read_format(&String::from_utf8_lossy(&bytes)),
            "text" => read_text(&bytes),
            "trace" => assert!(TraceFile::read(&bytes[..]).is_err()),
            other => panic!("no reader for {other}"),
        }
        replayed += 1;
    }
    assert!(replayed >= 20, "{replayed}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_survived_as_a_ring_buffer(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        read_ring(&bytes);
    }

    #[test]
    fn any_text_is_survived_as_a_format(text in "(name: [a-z]{0,3}\n)?(ID: [0-9]{0,7}\n)?(\tfield:[a-z_\\[\\] *;]{0,20};\t(offset:[0-9]{1,20};)?(\tsize:[0-9]{1,20};)?\n){0,4}.{0,20}") {
        read_format(&text);
    }

    #[test]
    fn any_bytes_are_survived_as_any_text_source(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        read_text(&bytes);
    }

    #[test]
    fn real_texts_with_bytes_changed_are_survived(at in any::<proptest::sample::Index>(), value in any::<u8>(), cut in any::<proptest::sample::Index>()) {
        for path in ["/proc/zoneinfo", "/proc/buddyinfo", "/proc/self/maps", "/proc/meminfo"] {
            let mut text = std::fs::read(path).unwrap();
            let place = at.index(text.len());
            text[place] = value;
            text.truncate(cut.index(text.len()) + 1);
            read_text(&text);
        }
    }

    #[test]
    fn any_bytes_are_survived_as_a_stored_trace(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(TraceFile::read(&bytes[..]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_real_trace_with_bytes_changed_and_cut_off_is_survived(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..200),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut trace = golden();
        for cpu in &mut trace.cpus {
            if cpu.bytes.is_empty() {
                continue;
            }
            for (at, value) in &changes {
                let place = at.index(cpu.bytes.len());
                cpu.bytes[place] = *value;
            }
            let length = cut.index(cpu.bytes.len()) + 1;
            cpu.bytes.truncate(length);
            read_ring(&cpu.bytes);
        }
        understand(&trace);
    }

    #[test]
    fn a_real_trace_with_other_formats_is_survived(shift in 0_u64..64, from in 0_usize..40) {
        let mut trace = golden();
        // From some index on, every field has another offset than the data.
        for format in trace.meta.formats.iter_mut().skip(from) {
            for offset in (8..64).rev().step_by(4) {
                let old = format!("offset:{offset};");
                let new = format!("offset:{};", offset + shift);
                format.text = format.text.replace(&old, &new);
            }
        }
        understand(&trace);
    }
}
