//! Tests that the reader of recorded references reads what the plugin wrote.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::large_stack_arrays,
    reason = "the plugin checks its numbers otherwise, and its recorder exists once"
)]
#![allow(
    dead_code,
    reason = "the plugin's modules have more than the tests need"
)]

#[path = "../../profile/src/references/form.rs"]
mod form;
#[path = "../plugin/recorder.rs"]
mod recorder;

use std::cell::RefCell;

use pagetide_profile::{EventKind, Header, Item, Kind, PageEvent, Recorded, Region, Run};
use pagetide_reference::Rng;
use recorder::{Moment, Recorder};

/// A reference: page, kind, task and address space.
type Reference = (u64, u8, u32, u32);

/// Records references, of which one is made every `step` instructions. Returns the stored form.
fn record(references: &[Reference], step: u64, most: u64) -> Vec<u8> {
    let out = RefCell::new(Vec::new());
    let mut recorder = Recorder::new(most, |bytes: &[u8]| out.borrow_mut().extend(bytes));
    recorder.begin();
    for (number, (page, kind, task, space)) in (0..).zip(references) {
        let moment = Moment {
            at: number * step,
            task: *task,
            space: *space,
        };
        recorder.add(*page, *kind, moment);
    }
    let header = recorder.end(references.len() as u64 * step, 7);
    let mut bytes = out.borrow().clone();
    let numbers: Vec<u8> = header.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes[..numbers.len()].copy_from_slice(&numbers);
    bytes
}

fn read(bytes: &[u8]) -> (Vec<Run>, Header) {
    let mut runs = Vec::new();
    let header = Recorded::new(bytes)
        .unwrap()
        .each(|run| runs.push(run))
        .unwrap();
    (runs, header)
}

fn expanded(runs: &[Run]) -> Vec<Reference> {
    let each = |run: &Run| {
        let one = (run.page, run.kind as u8, run.task, run.space);
        vec![one; usize::try_from(run.times).unwrap()]
    };
    runs.iter().flat_map(each).collect()
}

/// References of several tasks: runs, loops over a few pages, scans, and pages anywhere.
fn references(seed: u64, count: usize) -> Vec<Reference> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    let (mut task, mut scan) = (0, 0_u64);
    while all.len() < count {
        let kind = u8::try_from(rng.below(5)).unwrap();
        let length = rng.below(200);
        match rng.below(5) {
            0 => all.extend((0..length).map(|_| (scan, kind, task, task / 2))),
            1 => all.extend((0..length).map(|at| (100 + at % 7, kind, task, task / 2))),
            2 => all.extend((0..length).map(|at| (scan + at, kind, task, task / 2))),
            3 => all.extend((0..length).map(|_| (rng.below(1 << 45), kind, task, task / 2))),
            _ => task = rng.below_u32(1000),
        }
        scan += length;
    }
    all
}

#[test]
fn every_reference_is_read_as_it_was_recorded() {
    for seed in 1..20 {
        let all = references(seed, 50_000);
        let (runs, header) = read(&record(&all, 37, u64::MAX / 2));
        assert!(expanded(&runs) == all, "seed {seed}");
        assert_eq!(header.recorded, all.len() as u64);
        assert_eq!((header.workload, header.is_cut()), (7, false));
        for kind in Kind::ALL {
            let count = all.iter().filter(|one| one.1 == kind as u8).count() as u64;
            assert_eq!(header.counts[kind as usize], count);
        }
        // A run's time is that of its first reference, within 1024 instructions.
        let mut at = 0;
        for run in &runs {
            assert!(
                run.at <= at && at - run.at < 1024 + 37 * 64,
                "{run:?} at {at}"
            );
            at += 37 * run.times;
        }
    }
}

#[test]
fn events_stand_between_the_references_where_they_happened() {
    let out = RefCell::new(Vec::new());
    let mut recorder = Recorder::new(u64::MAX / 2, |bytes: &[u8]| out.borrow_mut().extend(bytes));
    recorder.begin();
    let moment = |at| Moment {
        at,
        task: 2,
        space: 1,
    };
    recorder.event(form::EVICTED, 1, 70, 10);
    recorder.add(50, form::READ, moment(20));
    recorder.repeat();
    recorder.event(form::YOUNG, 9, (1 << 45) - 1, 5000);
    recorder.repeat();
    recorder.mapping([9, 5, 7, 2], b"/a/b");
    recorder.numbers(form::REGION, &[9, 5, 7], 6000);
    recorder.numbers(form::REGIONS, &[4], 6000);
    recorder.add(51, form::WRITE, moment(6000));
    let header = recorder.end(7000, 2);
    let mut bytes = out.borrow().clone();
    let numbers: Vec<u8> = header.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes[..numbers.len()].copy_from_slice(&numbers);
    let mut recorded = Recorded::new(&bytes[..]).unwrap();
    while recorded.next_run().unwrap().is_some() {}
    let mappings = recorded.take_mappings();
    assert_eq!(
        (mappings[0].first, mappings[0].pages, mappings[0].offset),
        (5, 7, 2)
    );
    assert_eq!(mappings[0].name, "/a/b");
    let items = |bytes: &[u8]| {
        let mut recorded = Recorded::new(bytes).ok()?;
        let mut all = Vec::new();
        loop {
            match recorded.next_item() {
                Ok(Some(item)) => all.push(item),
                Ok(None) => return Some(all),
                Err(_) => return None,
            }
        }
    };
    let run = |page, kind, times, at| {
        Item::Run(Run {
            page,
            space: 1,
            task: 2,
            kind,
            times,
            at,
        })
    };
    let event = |kind, space, page, at| {
        Item::Event(PageEvent {
            kind,
            space,
            page,
            at,
        })
    };
    let expected = vec![
        event(EventKind::Evicted, 1, 70, 0),
        run(50, Kind::Read, 1, 0),
        run(50, Kind::Read, 1, 0),
        event(EventKind::Young, 9, (1 << 45) - 1, 5000),
        run(50, Kind::Read, 1, 5000),
        Item::Region(Region {
            space: 9,
            first: 5,
            pages: 7,
        }),
        Item::Regions { count: 4, at: 5000 },
        run(51, Kind::Write, 1, 5000),
    ];
    assert_eq!(items(&bytes), Some(expected.clone()));
    // Those who only want references read them alone.
    assert_eq!(expanded(&read(&bytes).0).len(), 4);
    for length in 0..bytes.len() {
        assert_eq!(items(&bytes[..length]), None, "{length}");
    }
    // A damaged event is refused, or it is another event or reference; it never panics.
    for at in numbers.len()..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let _ = items(&damaged);
        }
    }
    let at = numbers.len();
    let mut damaged = bytes.clone();
    damaged[at + 1] = 6;
    assert_eq!((bytes[at], items(&damaged)), (form::EVENT, None));
}

#[test]
fn a_record_has_its_largest_size_at_most_and_its_beginning_is_right() {
    for most in [0, 100, 5000, 70_000, 150_000] {
        let all = references(3, 50_000);
        let bytes = record(&all, 1000, most);
        assert!(bytes.len() as u64 <= most + 128);
        let (runs, header) = read(&bytes);
        assert!(header.is_cut());
        assert!(all.starts_with(&expanded(&runs)));
        assert_eq!(header.references(), all.len() as u64);
    }
}

#[test]
fn sequential_references_take_less_than_a_byte() {
    // Each page is read in steps of 8 bytes.
    let all: Vec<Reference> = (0..512 * 1000).map(|at| (at / 512, 0, 1, 0)).collect();
    let bytes = record(&all, 4, u64::MAX / 2);
    assert!(bytes.len() < all.len() / 50, "{} bytes", bytes.len());
    // Each page is referenced once, between two references to others that are always the same.
    let all: Vec<Reference> = (0..1000_u64)
        .flat_map(|at| {
            [
                (at, 0, 1, 0),
                (5000, 1, 1, 0),
                (5001, 0, 1, 0),
                (5001, 0, 1, 0),
            ]
        })
        .collect();
    let bytes = record(&all, 4, u64::MAX / 2);
    assert!(bytes.len() < all.len() * 3 / 2, "{} bytes", bytes.len());
}
