//! Flat tables larger than the processor's caches: allocation on huge pages, and prefetching of entries.

use crate::number::at;

/// Number of references between prefetching a table entry and using it: enough to cover memory latency, few enough that
/// the entry is still in the cache.
pub(crate) const AHEAD: usize = 16;

/// Smallest table for which huge pages are requested, in bytes.
const HUGE_BYTES: usize = 4 << 20;

/// Returns a table of `len` zeroed entries, on huge pages if it is large and the kernel provides them.
pub(crate) fn zeroed<T: Copy + Default>(len: usize) -> Vec<T> {
    filled(T::default(), len)
}

/// Returns a table of `len` entries that all equal `value`, on huge pages if it is large and the kernel provides them.
pub(crate) fn filled<T: Copy>(value: T, len: usize) -> Vec<T> {
    let table = vec![value; len];
    ask_for_huge_pages(&table);
    table
}

/// Requests huge pages for a large table with madvise. If the kernel refuses, the table is only slower.
fn ask_for_huge_pages<T>(table: &[T]) {
    let bytes = size_of_val(table);
    if bytes < HUGE_BYTES {
        return;
    }
    let start = table.as_ptr().addr().next_multiple_of(4096);
    let end = (table.as_ptr().addr() + bytes) & !4095;
    let skipped = start - table.as_ptr().addr();
    // SAFETY: the range lies within the table's own allocation, and this advice changes no contents.
    let _ = unsafe {
        rustix::mm::madvise(
            table.as_ptr().cast::<u8>().add(skipped).cast_mut().cast(),
            end - start,
            rustix::mm::Advice::LinuxHugepage,
        )
    };
}

/// Prefetches entry `index` into the processor's cache.
#[inline]
pub(crate) fn prefetch<T>(table: &[T], index: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let place = table.as_ptr().wrapping_add(at(index)).cast::<i8>();
        // SAFETY: a prefetch reads nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
