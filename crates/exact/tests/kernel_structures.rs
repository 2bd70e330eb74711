//! Tests what the plugin reads from the kernel's structures, on memory that is laid out as kernels do.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]
#![allow(
    dead_code,
    clippy::cast_possible_truncation,
    reason = "the plugin's modules have more than the tests need, and the plugin checks its numbers otherwise"
)]

extern crate alloc;

#[path = "../plugin/damon.rs"]
mod damon;
#[path = "../../profile/src/references/form.rs"]
mod form;
#[path = "../plugin/format.rs"]
mod format;
#[path = "../plugin/mappings.rs"]
mod mappings;

use std::collections::BTreeMap;

use format::{
    AT_ACCESSES, AT_ADDRESSES, AT_BRK, AT_BRK_START, AT_DATA, AT_DENTRY, AT_END, AT_FILE,
    AT_INTERVAL, AT_LAST_ACCESSES, AT_MM, AT_NAME, AT_OFFSET, AT_PARENT, AT_REGIONS, AT_ROOT,
    AT_STACK, AT_START, AT_TABLE, AT_TARGET_PID, AT_TARGETS, AT_WORKER, KERNEL, NO_PLACE,
};
use mappings::{Mapping, Mappings, Memory, Places};

/// Distance between two members of a structure, and between two structures.
const STEP: u64 = 16;
const STRUCTURE: u64 = 0x1000;

/// Numbers and bytes by their addresses.
#[derive(Default)]
struct Kernel {
    numbers: BTreeMap<u64, u64>,
    bytes: BTreeMap<u64, u8>,
}

impl Memory for Kernel {
    fn number(&self, address: u64) -> Option<u64> {
        self.numbers.get(&address).copied()
    }

    fn byte(&self, address: u64) -> Option<u8> {
        self.bytes.get(&address).copied()
    }
}

/// Places of members, other than those of maple trees and lists.
fn places() -> Places {
    let mut places: Places = std::array::from_fn(|at| STEP * at as u64);
    // Offsets of pivots and slots of `struct maple_range_64` and `struct maple_arange_64`.
    places[format::AT_PIVOT..=format::AT_ARANGE_SLOT].copy_from_slice(&[8, 128, 8, 80]);
    places[AT_STACK] = 8;
    places
}

impl Kernel {
    fn set(&mut self, structure: u64, which: usize, value: u64) {
        self.numbers.insert(structure + places()[which], value);
    }

    fn area(&mut self, at: u64, range: [u64; 2], offset: u64, file: u64) {
        for (which, value) in [
            (AT_START, range[0]),
            (AT_END, range[1]),
            (AT_OFFSET, offset),
            (AT_FILE, file),
        ] {
            self.set(at, which, value);
        }
    }

    /// A node of a maple tree, with the last address and the content of each of its slots. Returns how it is referred to.
    fn node(&mut self, at: u64, kind: u64, slots: &[(u64, u64)]) -> u64 {
        let (pivots, first) = if kind == 3 { (8, 80) } else { (8, 128) };
        let count = (first - pivots) / 8;
        for number in 0..count {
            self.numbers.insert(at + pivots + 8 * number, 0);
        }
        // Slots behind the last one keep old content.
        for number in 0..=count {
            self.numbers
                .insert(at + first + 8 * number, KERNEL | 0xdead_0000);
        }
        for (number, (last, slot)) in (0..).zip(slots) {
            if number < count {
                self.numbers.insert(at + pivots + 8 * number, *last);
            }
            self.numbers.insert(at + first + 8 * number, *slot);
        }
        at | kind << 3 | 6
    }

    fn dentry(&mut self, at: u64, parent: u64, name: &str) {
        self.set(at, AT_PARENT, parent);
        self.set(at, AT_NAME, at + 0x800);
        for (place, byte) in (at + 0x800..).zip(name.bytes().chain([0])) {
            self.bytes.insert(place, byte);
        }
    }
}

fn structure(number: u64) -> u64 {
    KERNEL | (number * STRUCTURE)
}

#[test]
fn mappings_are_those_of_the_tree_with_the_paths_of_their_files() {
    let mut kernel = Kernel::default();
    let [task, mm, file] = [1, 2, 3].map(structure);
    let [root, usr, name] = [4, 5, 6].map(structure);
    kernel.dentry(root, root, "/");
    kernel.dentry(usr, root, "usr");
    kernel.dentry(name, usr, "sort");
    kernel.set(file, AT_DENTRY, name);
    let [code, heap, other] = [7, 8, 9].map(structure);
    kernel.area(code, [0x40_0000, 0x40_3000], 2, file);
    kernel.area(heap, [0x50_0000, 0x50_1000], 0x500, 0);
    kernel.area(other, [0x7f_0000, 0x7f_2000], 0x7f0, 0);
    kernel.set(mm, AT_BRK_START, 0x50_0000);
    kernel.set(mm, AT_BRK, 0x50_0800);
    let left = kernel.node(
        structure(10),
        1,
        &[(0x3f_ffff, 0), (0x40_2fff, code), (0x4f_ffff, 0)],
    );
    let right = kernel.node(
        structure(11),
        1,
        &[
            (0x50_0fff, heap),
            (0x7e_ffff, 0),
            (0x7f_1fff, other),
            (u64::MAX, 0),
        ],
    );
    let tree = kernel.node(structure(12), 3, &[(0x4f_ffff, left), (u64::MAX, right)]);
    kernel.set(mm, AT_ROOT, tree);
    kernel.set(task, AT_MM, mm);
    let mut mappings = Mappings::new(places());
    let saved = task + places()[AT_STACK];
    let found = mappings.list(&kernel, 1, saved);
    let expected = [
        (0x400, 3, 2, "/usr/sort"),
        (0x500, 1, 0, "[heap]"),
        (0x7f0, 2, 0, ""),
    ];
    let expected = expected.map(|(first, pages, offset, name)| Mapping {
        first,
        pages,
        offset,
        name: name.as_bytes().to_vec(),
    });
    assert_eq!(found, expected);
    // Nothing is listed twice for one address space, and a thread of the kernel has no mappings.
    assert!(mappings.list(&kernel, 1, saved).is_empty());
    assert_eq!(mappings.list(&kernel, 2, saved).len(), 3);
    kernel.set(task, AT_MM, 0);
    assert!(mappings.list(&kernel, 3, saved).is_empty());
    // A tree whose nodes refer to each other ends.
    let circle = kernel.node(structure(13), 2, &[(u64::MAX, structure(13) | 2 << 3 | 6)]);
    kernel.set(task, AT_MM, mm);
    kernel.set(mm, AT_ROOT, circle);
    assert!(mappings.list(&kernel, 4, saved).is_empty());
}

#[test]
fn pages_that_damon_saw_are_those_that_the_tables_map_to_its_regions_with_accesses() {
    let mut kernel = Kernel::default();
    let [task, worker, context, target, first, second] = [1, 2, 3, 4, 5, 6].map(structure);
    let saved = task + places()[AT_STACK];
    kernel.set(task, AT_WORKER, worker);
    kernel.set(worker, AT_DATA, context);
    kernel.set(context, AT_INTERVAL, 100_000);
    let link = |structure: u64, which: usize| structure + places()[which];
    let targets = link(context, AT_TARGETS);
    let own = link(target, format::AT_TARGET_LIST);
    kernel.numbers.extend([(targets, own), (own, targets)]);
    kernel.set(target, AT_TARGET_PID, 0);
    let head = link(target, AT_REGIONS);
    let [a, b] = [first, second].map(|region| link(region, format::AT_REGION_LIST));
    kernel.numbers.extend([(head, a), (a, b), (b, head)]);
    for (region, start, accesses) in [(first, 0x10_0000, 5), (second, 0x20_0000, 0)] {
        let at = link(region, AT_ADDRESSES);
        kernel
            .numbers
            .extend([(at, start), (at + 8, start + 0x10_0000)]);
        // The upper half is another member.
        kernel.set(region, AT_ACCESSES, 7 << 32);
        kernel.set(region, AT_LAST_ACCESSES, 9 << 32 | accesses);
    }
    let view = damon::view(&kernel, &places(), saved).unwrap();
    assert_eq!((view.interval, view.is_fresh), (100_000_000, true));
    let accesses: Vec<u64> = view.regions.iter().map(|region| region.accesses).collect();
    assert_eq!(accesses, [5, 0]);
    // A table of four levels. Pages 3, 4 and 6 are in the first region, page 5 is in the second, and page 7 is not present.
    let [mm, direct] = [structure(7), KERNEL];
    kernel.set(task, AT_MM, mm);
    let tables = [0x50_0000, 0x50_1000, 0x50_2000, 0x50_3000];
    kernel.set(mm, AT_TABLE, direct + tables[0]);
    for table in tables {
        for entry in 0..512 {
            kernel.numbers.insert(direct + table + 8 * entry, 0);
        }
    }
    for (table, next) in tables.into_iter().zip(&tables[1..]) {
        kernel.numbers.insert(direct + table, next | 0x67);
    }
    for (page, physical) in [
        (3, 0x10_0000),
        (4, 0x1f_f000),
        (5, 0x20_0000),
        (6, 0x11_0000),
    ] {
        let bits = 0x8000_0000_0000_0067;
        kernel
            .numbers
            .insert(direct + tables[3] + 8 * page, physical | bits);
    }
    kernel.numbers.insert(direct + tables[3] + 8 * 7, 0x10_0000);
    let found = damon::pages(&kernel, &places(), saved, direct, &view.regions);
    assert_eq!(found, [(3, 2), (6, 1)]);
    kernel.set(first, AT_ACCESSES, 1);
    assert!(!damon::view(&kernel, &places(), saved).unwrap().is_fresh);
    let mut without = places();
    without[AT_TARGETS] = NO_PLACE;
    assert!(damon::view(&kernel, &without, saved).is_none());
    assert!(damon::view(&kernel, &places(), structure(20)).is_none());
    // A thread that watches a process.
    kernel.set(target, AT_TARGET_PID, 77);
    assert!(damon::view(&kernel, &places(), saved).is_none());
}
