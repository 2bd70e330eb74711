//! Sampling allocates nothing once a source is open, and decoding allocates nothing per event. An observer that
//! allocates under memory pressure would disturb the trial.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pagetide_probe::meaning::Decoder;
use pagetide_probe::trace::TraceFile;
use pagetide_probe::{Probes, Scope};
use pagetide_quantity::Nanos;

/// An allocator that counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds `alloc`'s contract, and it is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System.alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn decoding_an_event_allocates_nothing() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reclaim-6.18.trace");
    let trace = TraceFile::read(std::fs::File::open(path).unwrap()).unwrap();
    let mut decoder = Decoder::for_trace(&trace).unwrap();
    let mut events = trace.events();
    let mut decoded = 0;
    let count = allocations(|| {
        for raw in events.by_ref() {
            decoded += u64::from(decoder.decode(&raw).is_some());
        }
    });
    assert_eq!(count, 0);
    assert!(decoded > 5_000, "{decoded}");
}

#[test]
fn a_sample_of_every_probe_allocates_nothing() {
    let mut probes = Probes::open(&Scope::default(), 16);
    probes.before().unwrap();
    // A new counter may appear in a file while this test runs. The first round then stores its name, the next round
    // does not.
    let mut fewest = u64::MAX;
    for _ in 0..5 {
        let count = allocations(|| {
            for tick in 0..50 {
                probes.sample(Nanos(tick)).unwrap();
            }
        });
        fewest = fewest.min(count);
    }
    assert_eq!(fewest, 0);
    let found = probes.after().unwrap();
    assert!(found.iter().all(|(_, found)| found.series.is_some()) && found.len() >= 2);
}
