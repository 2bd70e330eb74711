//! An allocator that counts bytes, so that tests and benchmarks can check real memory use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Allocator that counts the bytes in use and their peak.
pub struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

fn sub(bytes: usize) {
    NOW.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: every call is passed to the system's allocator unchanged, and counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        sub(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old and the new block may both exist while the contents are copied.
        add(size);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        let moved = unsafe { System.realloc(place, layout, size) };
        sub(layout.size());
        moved
    }
}

/// Runs `work`. Returns the largest number of bytes in use meanwhile, minus those in use before, and the result.
pub fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let value = work();
    (PEAK.load(Ordering::Relaxed) - before, value)
}
