//! Flat tables that leave the caches: huge pages for them, and a hint to the processor of what is read soon.

use crate::number::at;

/// References that are looked ahead: far enough for memory's latency, near enough for the cache to hold them.
pub(crate) const AHEAD: usize = 16;

/// Smallest table that huge pages are asked for, in bytes.
const HUGE_BYTES: usize = 4 << 20;

/// A table of `len` zeroed entries, on huge pages if it is large and the kernel has some.
pub(crate) fn zeroed<T: Copy + Default>(len: usize) -> Vec<T> {
    filled(T::default(), len)
}

/// A table of `len` entries with this value, as [`zeroed`].
pub(crate) fn filled<T: Copy>(value: T, len: usize) -> Vec<T> {
    let table = vec![value; len];
    ask_for_huge_pages(&table);
    table
}

/// Asks for huge pages below a table. A kernel that refuses costs speed only.
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

/// Hints that entry `index` is read soon.
#[inline]
pub(crate) fn soon<T>(table: &[T], index: u32) {
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
