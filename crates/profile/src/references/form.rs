//! Constants of recorded references: the header and the codes that follow it. The emulator's plugin is compiled with
//! this file too.

/// First number of the header: the bytes "pgrefs1\0".
pub const MAGIC: u64 = 0x0031_7366_6572_6770;
/// Number of little-endian numbers of 64 bits in the header.
pub const HEADER_NUMBERS: usize = 16;

/// Place in the header: instructions from the start of the scenario to its end.
pub const AT_END: usize = 1;
/// Place in the header: instructions from the start of the scenario to the last recorded reference, if the record was
/// cut; otherwise the same number as at [`AT_END`].
pub const AT_CUT: usize = 2;
/// Place in the header: number of recorded references.
pub const AT_RECORDED: usize = 3;
/// Place in the header: numbers of all references by kind, of which the last ones may have been cut. One number for
/// each of the [`KINDS`].
pub const AT_COUNTS: usize = 4;
/// Place in the header: number of accesses of the kernel to its own memory, which are not recorded.
pub const AT_OWN: usize = AT_COUNTS + KINDS;
/// Place in the header: number of the task that ran the scenario.
pub const AT_WORKLOAD: usize = AT_OWN + 1;
/// Place in the header: number of bytes after the header.
pub const AT_BYTES: usize = AT_OWN + 2;

/// Place in the header: number of evictions of pages that are not known, which are not recorded.
pub const AT_UNKNOWN: usize = AT_OWN + 3;
/// Place in the header: a bit for each kind of event that could be recorded on this kernel, at the place of the kind's
/// number. Zero in records of earlier versions.
pub const AT_TOLD: usize = AT_OWN + 4;

/// Number of kinds of references.
pub const KINDS: usize = 5;
/// Kind: a program reads.
pub const READ: u8 = 0;
/// Kind: a program writes.
pub const WRITE: u8 = 1;
/// Kind: a program executes code of a page after code of another page.
pub const FETCH: u8 = 2;
/// Kind: the kernel reads the memory of a program.
pub const KERNEL_READ: u8 = 3;
/// Kind: the kernel writes the memory of a program.
pub const KERNEL_WRITE: u8 = 4;

/// Number of recent references that a code of one byte can repeat; a power of two.
pub const SLOTS: usize = 128;
/// Number of bits that a page number is shifted by, to make room for the kind.
const KIND_BITS: u32 = 3;

/// Codes below this are the number of a slot: the reference that the slot holds.
pub const REPEAT: u8 = 0x80;
/// Mask of the number of repetitions in a code from [`REPEAT`] on: the reference before is repeated this number of
/// times plus one. If all bits are set, another number follows and is added.
pub const REPEAT_MASK: u8 = 0x3f;
/// Lowest code of a reference that is in no slot. The kind is added; the distance to the last such page of the same
/// kind follows.
pub const NEW: u8 = 0xc0;
/// Code: the number of a task and the number of its address space follow.
pub const TASK: u8 = 0xf0;
/// Code: the number of instructions since the last such code follows.
pub const TIME: u8 = 0xf1;

/// Code: the kernel did something with a page. The kind of event, the number of the address space and the number of the
/// page follow.
pub const EVENT: u8 = 0xf2;
/// Code: a mapping of an address space. The number of the space, the number of its first page, the number of its pages,
/// the page of the file with which it begins, and the size and the bytes of its name follow.
pub const MAPPING: u8 = 0xf3;
/// Code: pages of an address space that are in memory in which DAMON saw accesses. The number of the space, the number of
/// the first page and the number of pages follow.
pub const REGION: u8 = 0xf4;
/// Code: DAMON has added up, and the pages in regions with accesses stand before. The number of all regions follows.
pub const REGIONS: u8 = 0xf5;
/// Maximum size of the name of a mapping, in bytes.
pub const MAX_NAME: usize = 200;

/// Number of kinds of events.
pub const EVENTS: usize = 6;
/// Kind of event: reclaim removes the page from its address space.
pub const EVICTED: u8 = 0;
/// Kind of event: a page fault finds the page's contents in memory. The reference that causes the fault follows.
pub const FAULT_FOUND: u8 = 1;
/// Kind of event: a page fault reads the page's contents from a device. The reference that causes the fault follows.
pub const FAULT_READ: u8 = 2;
/// Kind of event: the page begins to be read from swap, by read-ahead or for a page fault.
pub const SWAPPED_IN: u8 = 3;
/// Kind of event: the kernel checks the page's accessed bit, which is not set.
pub const OLD: u8 = 4;
/// Kind of event: the kernel checks the page's accessed bit, which is set, and clears it.
pub const YOUNG: u8 = 5;

/// Key of a reference in a slot.
pub const fn key(page: u64, kind: u8) -> u64 {
    page << KIND_BITS | kind as u64
}

/// Page and kind of a reference with this key.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the bits of a kind are fewer than eight"
)]
pub const fn of_key(key: u64) -> (u64, u8) {
    (key >> KIND_BITS, (key & ((1 << KIND_BITS) - 1)) as u8)
}

/// Slot of a reference: the upper bits of its product with 2^64 / φ.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the number is below the number of slots"
)]
pub const fn slot_of(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.trailing_zeros())) as usize
}
