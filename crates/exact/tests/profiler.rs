//! Tests the emulator's plugin on a guest of a few hundred instructions, all counted by hand.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod counted;
#[path = "../plugin/insn.rs"]
#[allow(
    dead_code,
    clippy::cast_possible_truncation,
    clippy::match_same_arms,
    clippy::verbose_bit_mask,
    reason = "a part of the plugin, which uses the rest"
)]
mod insn;

use counted::{Found, LOAD, Work, image, ranges, run};
use pagetide_exact::emulator::Emulator;
use pagetide_exact::profiler::{Counted, Profiler};
use pagetide_profile::{Kind, Profile, Recorded, Run};
use pagetide_quantity::Bytes;
use pagetide_root::{CodeFile, CodeSegment, CodeSymbol};
use pagetide_testing::{Need, skip};

/// First address of the code in its file, for tests in which the code stands for a program.
const START: u64 = 0x7000;
/// Instructions and calls of a function; `None` if it was not executed.
fn of(profile: &Profile, name: &str) -> Option<(u64, u64)> {
    let function = profile.functions.iter().find(|one| one.name == name);
    function.map(|one| (one.instructions, one.calls))
}

#[test]
fn every_instruction_is_counted_once_also_where_blocks_are_left_early() {
    let Ok(emulator) = Emulator::find() else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    let ranges = ranges();
    let inside = |name: &str, place: u64| {
        let range = ranges.iter().find(|range| range.name == name).unwrap();
        range.start + place
    };
    // The loop's `decl` and a store that faults are watched, and an address at which no instruction begins.
    let mut watched = [inside("loop", 5), inside("touches", 13), inside("loop", 1)];
    watched.sort_unstable();
    let counted = Counted {
        ranges: &ranges,
        watched: &watched,
        ..Counted::default()
    };
    check_counts(&run(&emulator, counted, Work::None), inside);
    // Recording references changes no count.
    let counted = Counted {
        references: Some(Bytes(1 << 20)),
        ..counted
    };
    check_counts(&run(&emulator, counted, Work::None), inside);
}

/// Checks the counts of the guest. `inside` returns an address inside of a function.
fn check_counts(found: &Found, inside: impl Fn(&str, u64) -> u64) {
    let Found {
        profile, executed, ..
    } = found;
    assert_eq!(executed[&inside("loop", 5)], 1000);
    assert_eq!(executed[&inside("touches", 13)], 2 * 64);
    assert_eq!(executed[&inside("loop", 1)], 0);
    let found = |name: &str| of(profile, name);
    assert_eq!(found("loop"), Some((1 + 2 * 1000 + 1, 1)));
    assert_eq!(found("leaf"), Some((2 * (79 + 67), 79 + 67)));
    // Each of 64 stores faults once, in the middle of its block.
    assert_eq!(found("touches"), Some((2 + 5 * 64 + 1, 1)));
    // The repeated instruction is executed once for each byte and once more; it faults in two pages.
    assert_eq!(found("strings"), Some((2 + 6145 + 1, 1)));
    // The repeated instruction is complete, so the fault of the next instruction must not take its count back.
    assert_eq!(found("string before fault"), Some((2 + 17 + 2, 1)));
    // Each access to the device is executed again, alone.
    assert_eq!(found("device"), Some((7 * 10, 10)));
    assert_eq!(found("crosses"), Some((3 * 2, 2)));
    // QEMU 7.2 calls the callback of the load again for the access of `cmpxchg16b`.
    assert_eq!(found("crosses first"), Some((7 * 2, 2)));
    assert_eq!(found("jumps"), Some((2, 1)));
    let matrix = 3 + 64 * (2 + 64 * (4 + 64 * 7 + 5) + 3) + 1;
    assert_eq!(found("matrix"), Some((matrix, 1)));
    assert_eq!(found("asm_exc_page_fault"), Some((14 * 67, 67)));
    // The mark and three instructions after it, then those between the calls; the last are a fence and the clock's.
    let main = 4 + 1 + 1 + 3 * 77 + 1 + 1 + 1 + 1 + 3 * 10 + 1 + 4 + 1 + 5 + 2 + 1 + 2;
    assert_eq!(
        found("main").map(|(instructions, _)| instructions),
        Some(main)
    );
    assert_eq!(profile.gap(), 0, "{} ns", profile.elapsed);
    let paths: Vec<String> = (0..profile.nodes.len())
        .map(|node| profile.path(node)[1..].join(";"))
        .collect();
    let fault = "main;touches;asm_exc_page_fault".to_owned();
    let at = paths.iter().position(|path| *path == fault).unwrap();
    assert_eq!(
        (profile.nodes[at].own, profile.nodes[at].calls),
        (14 * 64, 64)
    );
    assert!(paths.contains(&"main;leaf".to_owned()), "{paths:?}");
}

#[test]
fn code_of_programs_is_found_by_its_bytes_wherever_it_is_mapped_and_the_rest_has_no_name() {
    let Ok(emulator) = Emulator::find() else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    // The file of the guest has other addresses than the guest runs at. `jumps` and what follows have no symbols.
    let ranges = ranges();
    let named = ranges.iter().zip(ranges.iter().skip(1));
    let symbols = named.take_while(|(range, _)| range.name != "jumps");
    let symbols = symbols.map(|(range, next)| CodeSymbol {
        start: range.start - LOAD + START,
        size: next.start - range.start,
        name: range.name.clone(),
    });
    let segment = |bytes: &[u8], symbols| CodeSegment {
        start: START,
        bytes: bytes.to_vec(),
        symbols,
    };
    let file = |path: &str, segment| CodeFile {
        path: path.to_owned(),
        segments: vec![segment],
    };
    // Another file has the same size, but other bytes.
    let other: Vec<u8> = image().iter().map(|byte| !byte).collect();
    let programs = [
        file("/lib/other.so", segment(&other, Vec::new())),
        file("/usr/bin/guest", segment(image(), symbols.collect())),
    ];
    let counted = Counted {
        programs: &programs,
        ..Counted::default()
    };
    let Found { profile, .. } = run(&emulator, counted, Work::None);
    let found = |name: &str| of(&profile, name);
    assert_eq!(found("loop"), Some((1 + 2 * 1000 + 1, 1)));
    assert_eq!(found("leaf"), Some((2 * (79 + 67), 79 + 67)));
    assert_eq!(found("device"), Some((7 * 10, 10)));
    assert!(found("jumps").is_none());
    let none = profile
        .functions
        .iter()
        .find(|one| one.name == "(no symbol)");
    let none = none.unwrap();
    assert_eq!(
        (none.module.as_deref(), none.is_program),
        (Some("guest"), true)
    );
    assert!(none.instructions >= 14 * 67, "{none:?}");
    let paths: Vec<String> = (0..profile.nodes.len())
        .map(|node| profile.path(node).join(";"))
        .collect();
    assert!(
        paths.iter().any(|path| path.ends_with("main;leaf")),
        "{paths:?}"
    );
}

#[test]
fn each_instruction_of_an_annotated_function_is_counted_exactly() {
    let Ok(emulator) = Emulator::find() else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    let ranges = ranges();
    let of = |name| {
        let counted = Counted {
            ranges: &ranges,
            annotate: Some(name),
            ..Counted::default()
        };
        run(&emulator, counted, Work::None).annotation.unwrap()
    };
    let counts = |name| -> Vec<u64> {
        let found = of(name);
        assert_eq!(found.surplus(), 0, "{found:?}");
        found.lines.iter().map(|line| line.executed).collect()
    };
    let expected = [1, 1, 1, 64, 64]
        .into_iter()
        .chain([64 * 64; 4])
        .chain([64 * 64 * 64; 7])
        .chain([64 * 64; 5])
        .chain([64; 3])
        .chain([1]);
    assert_eq!(counts("matrix"), expected.collect::<Vec<u64>>());
    // The third instruction of the loop faults each time, and is executed again.
    assert_eq!(counts("touches"), [1, 1, 64, 64, 64, 64, 64, 1]);
    let jumps = of("jumps");
    assert_eq!(jumps.calls, 1);
    let crosses = of("crosses");
    let places: Vec<Option<u64>> = crosses.lines.iter().map(|line| line.offset).collect();
    assert_eq!(places, [Some(0), Some(7), Some(13)]);
    let counted = Counted {
        ranges: &ranges,
        annotate: Some("matrxi"),
        ..Counted::default()
    };
    let why = Profiler::new(counted).unwrap_err().to_string();
    assert!(why.contains("did you mean matrix?"), "{why}");
}

/// All runs of references in order, and the number of references in the header.
fn runs(bytes: &[u8]) -> (Vec<Run>, u64) {
    let mut all = Vec::new();
    let header = Recorded::new(bytes)
        .unwrap()
        .each(|run| all.push(run))
        .unwrap();
    (all, header.recorded)
}

#[test]
fn references_to_pages_are_those_of_the_programs_arithmetic() {
    let Ok(emulator) = Emulator::find() else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    let counted = Counted {
        references: Some(Bytes(16 << 20)),
        ..Counted::default()
    };
    let found = run(&emulator, counted, Work::None);
    let (runs, recorded) = runs(&found.references);
    assert_eq!(runs.iter().map(|run| run.times).sum::<u64>(), recorded);
    let times = |kind: Kind, page: u64| -> u64 {
        let of_page = runs
            .iter()
            .filter(|run| run.page == page && run.kind == kind);
        of_page.map(|run| run.times).sum()
    };
    // The matrices have 8 pages each. An inner loop reads each page of the second one 8 times.
    for page in 0..8 {
        assert_eq!(times(Kind::Read, 0x300 + page), 64 * 64 * 64 / 8);
        assert_eq!(times(Kind::Read, 0x310 + page), 64 * 64 * 64 / 8);
        assert_eq!(times(Kind::Write, 0x320 + page), 64 * 64 / 8);
        assert_eq!(times(Kind::Write, 0x310 + page), 0);
    }
    let is_matrix = |run: &&Run| (0x300..0x328).contains(&run.page);
    let order: Vec<u64> = runs
        .iter()
        .filter(is_matrix)
        .flat_map(|run| (0..run.times).map(|_| run.page))
        .collect();
    let expected = (0..64_u64).flat_map(|row| {
        (0..64).flat_map(move |_| {
            let reads = (0..64).flat_map(move |at| [0x300 + row / 8, 0x310 + at / 8]);
            reads.chain([0x320 + row / 8])
        })
    });
    assert!(order.into_iter().eq(expected), "another order");
    // An instruction that faults refers to its page when it is executed again, and only then.
    for page in 0x400..0x440 {
        assert_eq!(times(Kind::Write, page), 1, "{page:#x}");
    }
    assert_eq!(times(Kind::Write, 0x440), 4096);
    assert_eq!(times(Kind::Write, 0x441), 2048 + 16);
    assert_eq!(times(Kind::Write, 0x442), 1);
    // An instruction that accesses a device is executed again, alone.
    assert_eq!(times(Kind::Read, 0xfee00), 20);
    // Two calls of a function whose end is on the next page, and two of one that begins there and ends on the page after.
    assert_eq!(times(Kind::Fetch, 0x102), 2);
    assert_eq!(times(Kind::Fetch, 0x101), 2 + 2);
    assert_eq!(times(Kind::Fetch, 0x100), 1 + 2 + 2);
    assert!(runs.is_sorted_by_key(|run| run.at));
}

#[test]
fn a_record_that_would_become_too_large_is_cut_and_says_what_is_missing() {
    let Ok(emulator) = Emulator::find() else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    let most = |references| Counted {
        references: Some(Bytes(references)),
        ..Counted::default()
    };
    let whole = run(&emulator, most(16 << 20), Work::None);
    let cut = run(&emulator, most(100_000), Work::None);
    let [whole_runs, cut_runs] = [&whole, &cut].map(|found| runs(&found.references).0);
    assert!(cut.references.len() < 100_200);
    let header = |found: &Found| *Recorded::new(&*found.references).unwrap().header();
    let [whole, cut] = [&whole, &cut].map(header);
    assert!(cut.is_cut() && !whole.is_cut());
    assert_eq!(cut.counts, whole.counts);
    assert!(cut.until > 0 && cut.until < whole.until);
    // What was recorded is the beginning of the whole.
    let expand = |runs: &[Run]| -> Vec<(u64, Kind)> {
        let each = |run: &Run| vec![(run.page, run.kind); usize::try_from(run.times).unwrap()];
        runs.iter().flat_map(each).collect()
    };
    let (whole, cut) = (expand(&whole_runs), expand(&cut_runs));
    assert!(whole.len() > cut.len() && whole.starts_with(&cut));
}

#[test]
fn accesses_of_the_kernel_to_its_stack_and_to_its_variables_cannot_fault() {
    use insn::Kind::{Memory, Plain, Update};
    let kind = |code: &[u8], is_kernel| {
        let mut bytes = [0; 16];
        bytes[..code.len()].copy_from_slice(code);
        insn::kind(&bytes, code.len(), 0, is_kernel)
    };
    for (code, in_kernel, in_program) in [
        // mov 8(%rsp), %rax; incl 4(%rsp); mov (%rsp,%rcx,8), %rax
        (&[0x48, 0x8b, 0x44, 0x24, 0x08][..], Plain, Memory),
        (&[0xff, 0x44, 0x24, 0x04], Plain, Update),
        (&[0x48, 0x8b, 0x04, 0xcc], Memory, Memory),
        // mov (%r12), %rax; mov (%rsp,%r12,1), %rax
        (&[0x49, 0x8b, 0x04, 0x24], Memory, Memory),
        (&[0x4a, 0x8b, 0x04, 0x24], Memory, Memory),
        // mov 0x1234(%rip), %eax; movzbl 0x1234(%rip), %eax
        (&[0x8b, 0x05, 0x34, 0x12, 0, 0], Plain, Memory),
        (&[0x0f, 0xb6, 0x05, 0x34, 0x12, 0, 0], Plain, Memory),
        // mov %gs:0x1234, %rax; lock incl (%rax)
        (
            &[0x65, 0x48, 0x8b, 0x04, 0x25, 0x34, 0x12, 0, 0],
            Plain,
            Memory,
        ),
        (&[0xf0, 0xff, 0x00], Update, Update),
        // The interrupt controller: mov 0xffffffffff5fd0b0, %eax
        (&[0x8b, 0x04, 0x25, 0xb0, 0xd0, 0x5f, 0xff], Memory, Memory),
        // vmovdqu (%rsp), %ymm0; vmovdqu (%rax), %ymm0
        (&[0xc5, 0xfe, 0x6f, 0x04, 0x24], Memory, Memory),
        (&[0xc5, 0xfe, 0x6f, 0x00], Memory, Memory),
    ] {
        assert_eq!(kind(code, true), in_kernel, "{code:x?}");
        assert_eq!(kind(code, false), in_program, "{code:x?}");
    }
}

/// Measures the speed of recording: `cargo test --release -p pagetide-exact --test profiler -- --ignored --nocapture`.
#[test]
#[ignore = "test-all: prints figures that depend on the machine"]
fn recording_says_how_fast_it_is() {
    let Ok(emulator) = Emulator::find() else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    let ranges = ranges();
    for (work, count) in [(Work::Sweep, 104_857_600_u64), (Work::Random, 20_000_000)] {
        let seconds = |references: Option<Bytes>| {
            let counted = Counted {
                ranges: &ranges,
                references,
                ..Counted::default()
            };
            let idle = run(&emulator, counted, Work::None).processor;
            let found = run(&emulator, counted, work);
            let bytes = found.references.len();
            (found.processor.saturating_sub(idle).as_secs_f64(), bytes)
        };
        let (without, _) = seconds(None);
        let (with, bytes) = seconds(Some(Bytes(256 << 20)));
        println!(
            "{work:?}: {:.0} million references a second of processor time ({:.0} without recording), {:.3} bytes each",
            count as f64 / with / 1e6,
            count as f64 / without / 1e6,
            bytes as f64 / count as f64
        );
        assert!(bytes > 0);
    }
}
