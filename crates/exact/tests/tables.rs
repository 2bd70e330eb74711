//! Tests what the plugin concludes from accesses to page tables, with accesses as kernels make them.

#![allow(
    dead_code,
    clippy::cast_possible_truncation,
    reason = "the plugin's modules have more than the tests need, and the plugin checks its numbers otherwise"
)]

extern crate alloc;

#[path = "../../profile/src/references/form.rs"]
mod form;
#[path = "../plugin/format.rs"]
mod format;
#[path = "../plugin/tables.rs"]
mod tables;

use form::{EVICTED, FAULT_FOUND, FAULT_READ, OLD, SWAPPED_IN, YOUNG};
use format::{BIND, CHECKS, CLEARS, COUNTS, ENTERS, FAULTS, MAPS, PREPARES, READS, SWAPS, UNMAPS};
use tables::{Event, Page, Tables};

/// Address of a page table; [`OTHER`] is the address of a page that is none.
const TABLE: u64 = 0xffff_8880_0123_4000;
const OTHER: u64 = 0xffff_8880_0777_0000;
/// Address of a byte of the swap map.
const PLACE: u64 = 0xffff_c900_0000_0123;

fn page(number: u64) -> Page {
    Page { space: 3, number }
}

fn seen(event: Option<Event>) -> Option<(u8, u64)> {
    event.map(|event| {
        assert_eq!(event.page.space, 3);
        (event.kind, event.page.number)
    })
}

/// Address of the entry of a page in [`TABLE`].
fn entry(number: u64) -> u64 {
    TABLE + number % 512 * 8
}

/// A fault of task 1 whose functions have these flags. Returns what the reference that ends it tells.
fn fault(tables: &mut Tables, number: u64, flags: &[u32]) -> Option<(u8, u64)> {
    tables.begun(FAULTS, 1, false);
    for flags in flags {
        tables.begun(*flags, 1, false);
    }
    // Other writes of the same functions are no entries, or those of other pages.
    for at in [
        OTHER + 300 * 8,
        entry(number),
        OTHER + 301 * 8,
        entry(number) | 4,
    ] {
        assert!(tables.access(MAPS, at, (true, 8), 1, false).is_none());
    }
    // A reference of another task does not end the fault, nor does one to another page: here that of the code.
    assert!(tables.refer(page(number), 2).is_none());
    for _ in 0..20 {
        assert!(tables.refer(page(number + 1), 1).is_none());
    }
    seen(tables.refer(page(number), 1))
}

/// Reclaim evicts the page of an entry. Returns what this tells.
fn evict(tables: &mut Tables, at: u64, place: u64) -> Option<(u8, u64)> {
    tables.begun(UNMAPS, 5, false);
    tables.begun(CLEARS, 5, true);
    assert!(tables.access(CLEARS, at, (false, 8), 5, true).is_none());
    let event = tables.access(CLEARS, at, (true, 8), 5, true);
    tables.begun(BIND, 5, true);
    assert!(tables.access(COUNTS, OTHER, (true, 4), 5, false).is_none());
    assert!(tables.access(COUNTS, place, (true, 1), 5, false).is_none());
    // The lock of the swap map, after the byte.
    assert!(tables.access(COUNTS, OTHER, (true, 1), 5, false).is_none());
    // The entry gets the place in swap.
    assert!(tables.access(UNMAPS, at, (true, 8), 5, true).is_none());
    seen(event)
}

fn read_from_swap(tables: &mut Tables, place: u64) -> Option<(u8, u64)> {
    tables.begun(PREPARES, 7, false);
    seen(tables.access(COUNTS, place, (true, 1), 7, false))
}

#[test]
fn a_page_is_followed_from_its_first_fault_to_swap_and_back() {
    let mut tables = Tables::new();
    assert_eq!(fault(&mut tables, 0x7_f005, &[]), None);
    // Its neighbour in the table was never seen before.
    assert_eq!(
        evict(&mut tables, entry(0x7_f006), PLACE),
        Some((EVICTED, 0x7_f006))
    );
    assert_eq!(
        evict(&mut tables, entry(0x7_f005), PLACE + 1),
        Some((EVICTED, 0x7_f005))
    );
    assert_eq!(
        read_from_swap(&mut tables, PLACE + 1),
        Some((SWAPPED_IN, 0x7_f005))
    );
    assert_eq!(
        read_from_swap(&mut tables, PLACE),
        Some((SWAPPED_IN, 0x7_f006))
    );
    assert_eq!(read_from_swap(&mut tables, PLACE + 2), None);
    let read = fault(&mut tables, 0x7_f005, &[SWAPS, READS]);
    assert_eq!(read, Some((FAULT_READ, 0x7_f005)));
    let found = fault(&mut tables, 0x7_f006, &[SWAPS]);
    assert_eq!(found, Some((FAULT_FOUND, 0x7_f006)));
    assert_eq!(
        evict(&mut tables, entry(0x7_f005), PLACE),
        Some((EVICTED, 0x7_f005))
    );
    assert_eq!(tables.unknown(), 0);
}

#[test]
fn a_kernel_with_a_table_of_swap_tells_the_same() {
    let mut tables = Tables::new();
    tables.flags = FAULTS | MAPS | UNMAPS | CLEARS | PREPARES | BIND | ENTERS;
    assert_eq!(tables.told() >> SWAPPED_IN & 1, 1);
    fault(&mut tables, 9, &[]);
    let slot = PLACE & !7;
    tables.begun(UNMAPS, 5, false);
    tables.begun(CLEARS, 5, true);
    let event = tables.access(CLEARS, entry(9), (true, 8), 5, true);
    assert_eq!(seen(event), Some((EVICTED, 9)));
    tables.begun(BIND | ENTERS, 5, true);
    // A counter of four bytes, the table, and a member of the page.
    assert!(tables.access(ENTERS, OTHER, (true, 4), 5, false).is_none());
    assert!(tables.access(ENTERS, slot, (true, 8), 5, false).is_none());
    assert!(tables.access(ENTERS, OTHER, (true, 8), 5, false).is_none());
    // A place is allocated, which is no read.
    tables.begun(ENTERS, 7, false);
    assert!(tables.access(ENTERS, slot, (true, 8), 7, false).is_none());
    tables.begun(PREPARES | ENTERS, 7, false);
    let event = tables.access(ENTERS, slot, (true, 8), 7, false);
    assert_eq!(seen(event), Some((SWAPPED_IN, 9)));
}

#[test]
fn a_fault_that_waits_for_a_lock_begins_again_and_has_still_read_its_page() {
    let mut tables = Tables::new();
    fault(&mut tables, 9, &[]);
    tables.begun(FAULTS, 1, false);
    tables.begun(SWAPS, 1, false);
    tables.begun(READS, 1, false);
    assert_eq!(fault(&mut tables, 9, &[SWAPS]), Some((FAULT_READ, 9)));
    // The next fault is another one.
    assert_eq!(fault(&mut tables, 10, &[SWAPS]), Some((FAULT_FOUND, 10)));
}

#[test]
fn what_is_not_known_is_counted_and_never_guessed() {
    let mut tables = Tables::new();
    assert_eq!(evict(&mut tables, entry(1), PLACE), None);
    assert_eq!(tables.unknown(), 1);
    // The place in swap of an unknown page is not that of the page that was evicted before.
    assert_eq!(read_from_swap(&mut tables, PLACE), None);
    fault(&mut tables, 1, &[]);
    assert_eq!(evict(&mut tables, entry(1), PLACE), Some((EVICTED, 1)));
    assert_eq!(evict(&mut tables, OTHER, PLACE), None);
    assert_eq!(tables.unknown(), 2);
    assert_eq!(read_from_swap(&mut tables, PLACE), None);
    // An entry that is removed by other code than reclaim's, or a place that a fork copies.
    tables.begun(CLEARS, 1, false);
    assert!(
        tables
            .access(CLEARS, entry(1), (true, 8), 1, false)
            .is_none()
    );
    tables.begun(BIND, 1, false);
    assert!(tables.access(COUNTS, PLACE, (true, 1), 1, false).is_none());
    assert_eq!(tables.unknown(), 2);
    // A fault whose reference never comes is given up, and one without an entry tells nothing.
    tables.begun(FAULTS, 1, false);
    tables.begun(SWAPS, 1, false);
    for number in 100..120 {
        assert!(tables.refer(page(number), 1).is_none());
    }
    assert!(tables.refer(page(77), 99).is_none());
}

#[test]
fn a_check_is_young_if_the_entry_is_written_and_old_otherwise() {
    let mut tables = Tables::new();
    fault(&mut tables, 1, &[]);
    let mut check = |at, is_store| seen(tables.access(CHECKS, at, (is_store, 8), 4, false));
    // The entry is read several times before it is written.
    assert_eq!(check(entry(1), false), None);
    assert_eq!(check(entry(1), false), None);
    assert_eq!(check(entry(1), true), Some((YOUNG, 1)));
    // The next entry may be read before one is written.
    assert_eq!(check(entry(2), false), None);
    assert_eq!(check(entry(3), false), None);
    assert_eq!(check(entry(2), true), Some((YOUNG, 2)));
    for at in 4..67 {
        assert_eq!(check(entry(at), false), None);
    }
    assert_eq!(check(entry(67), false), Some((OLD, 3)));
    assert_eq!(check(OTHER, false), None);
    assert_eq!(check(OTHER, true), None);
    assert!(tables.is_checking());
    for at in 4..68 {
        assert_eq!(seen(tables.end_check()), Some((OLD, at)));
    }
    assert!(!tables.is_checking() && tables.end_check().is_none());
}

#[test]
fn a_kernel_without_the_functions_tells_less() {
    let mut tables = Tables::new();
    assert_eq!(tables.told(), 0);
    tables.flags = FAULTS | MAPS | UNMAPS | CLEARS;
    assert_eq!(tables.told(), 1 << EVICTED);
    tables.flags |= SWAPS | READS | CHECKS | PREPARES | BIND;
    assert_eq!(tables.told() >> SWAPPED_IN & 1, 0);
    tables.flags |= COUNTS;
    assert_eq!(tables.told(), 0b11_1111);
}
