//! Memory of the harness itself. It is counted, and locked so that it is not reclaimed.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use pagetide_quantity::Bytes;
use pagetide_system::{Mapping, Source, maps};

use crate::error::Stop;
use crate::number;

/// Maximum amount of memory that the harness may use in addition to the workload.
pub(crate) const LIMIT: Bytes = Bytes::from_mib(4);

/// Current total size of the buffers of this process, in bytes.
static BUFFERS: AtomicU64 = AtomicU64::new(0);
/// Peak total size of the buffers of this process, in bytes.
static MAX: AtomicU64 = AtomicU64::new(0);

/// Resets the buffer counters. A child calls this after fork, because the parent counts its own buffers.
pub(crate) fn count_anew() {
    BUFFERS.store(0, Ordering::Relaxed);
    MAX.store(0, Ordering::Relaxed);
}

/// Returns the peak total size of this process's buffers.
pub(crate) fn most() -> Bytes {
    Bytes(MAX.load(Ordering::Relaxed))
}

/// A buffer of plain numbers in a mapping of its own, zeroed, and locked if the process has the privilege.
pub(crate) struct LockedBuffer<T: Plain> {
    memory: Mapping,
    length: usize,
    of: PhantomData<T>,
}

/// Types for which every bit pattern is a valid value.
///
/// # Safety
/// Every content of the memory, including zeros, must be a valid value.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: every bit pattern is a number.
unsafe impl Plain for u8 {}
// SAFETY: every bit pattern is a number.
unsafe impl Plain for u32 {}
// SAFETY: every bit pattern is a number.
unsafe impl Plain for u64 {}

impl<T: Plain> LockedBuffer<T> {
    /// Creates a buffer of `length` zeros. Fails if it cannot be mapped.
    pub(crate) fn new(length: usize) -> Result<Self, Stop> {
        let size = Self::size(length);
        let memory = Mapping::with(Source::Private, size, libc::MAP_POPULATE)
            .map_err(Stop::system(format!("cannot map a buffer of {size} bytes")))?;
        // An unprivileged process can lock only little memory. The buffer is then used often enough to stay in memory,
        // and the record says that the harness's memory was not locked.
        let _ = memory.lock(0);
        let now = BUFFERS.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
        MAX.fetch_max(now, Ordering::Relaxed);
        Ok(Self {
            memory,
            length,
            of: PhantomData,
        })
    }

    fn size(length: usize) -> usize {
        (length * size_of::<T>()).max(1).next_multiple_of(4096)
    }
}

impl<T: Plain> std::ops::Deref for LockedBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `length` values, zeros at first, which are valid (`Plain`), and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.start().cast(), self.length) }
    }
}

impl<T: Plain> std::ops::DerefMut for LockedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the mapping holds `length` values and lives as long as `self`, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().cast(), self.length) }
    }
}

impl<T: Plain> Drop for LockedBuffer<T> {
    fn drop(&mut self) {
        BUFFERS.fetch_sub(self.memory.length() as u64, Ordering::Relaxed);
    }
}

/// Memory that the harness uses in addition to the workload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HarnessMemory {
    /// Size of heap, stack, data, buffers, and all page tables.
    pub size: Bytes,
    /// Size of heap and stack at the start, in bytes; included in `size`.
    growing: u64,
    /// Size of the buffers at the start; included in `size`.
    buffers: Bytes,
    /// True if all memory of the harness is locked.
    pub locked: bool,
}

impl HarnessMemory {
    /// Returns the size at the end of the trial: `size` plus the growth of heap, stack and buffers.
    pub(crate) fn grown(self) -> Bytes {
        let maps = maps::own().unwrap_or_default();
        let grown = growing(&maps).saturating_sub(self.growing);
        Bytes(self.size.0 + grown + most().0.saturating_sub(self.buffers.0))
    }
}

/// Returns the total size of heap and stack, in bytes.
fn growing(maps: &[maps::PrivateMapping]) -> u64 {
    let growing = maps.iter().filter(|own| own.grows);
    growing.map(|own| own.size().0).sum()
}

/// Locks all private writable memory of this process (heap, stack, buffers). Returns its size and that of page tables.
///
/// Must be called before the workload is mapped.
pub(crate) fn lock_own_memory() -> HarnessMemory {
    let Ok(maps) = maps::own() else {
        return HarnessMemory::default();
    };
    let mut locked = true;
    let mut total = 0;
    for own in &maps {
        total += own.size().0;
        // SAFETY: locking changes no content; a range that went away in the meantime is refused by the kernel.
        let refused = unsafe {
            libc::mlock(
                std::ptr::without_provenance(number::index(own.start)),
                number::index(own.size().0),
            )
        };
        locked &= refused == 0;
    }
    HarnessMemory {
        size: Bytes(total + maps::page_tables().0),
        growing: growing(&maps),
        buffers: most(),
        locked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_heap_grows_by_is_counted_at_the_end() {
        let maps = "00400000-00401000 r-xp 00000000 08:02 173521           /init\n\
                    01a2b000-01a4c000 rw-p 00000000 00:00 0                [heap]\n\
                    7ffc0000-7ffc3000 rw-p 00000000 00:00 0                [stack]\n\
                    7ffd0000-7ffd9000 rw-p 00000000 00:00 0\n";
        assert_eq!(growing(&maps::parse(maps)), 0x21000 + 0x3000);
        let own = lock_own_memory();
        assert!(own.grown() >= own.size && own.size > maps::page_tables());
        let smaller = HarnessMemory {
            growing: own.growing.saturating_sub(4096),
            ..own
        };
        assert!(smaller.grown().0 >= own.size.0 + 4096);
    }

    #[test]
    fn a_locked_buffer_holds_what_was_written() {
        let mut buffer = LockedBuffer::<u64>::new(1000).unwrap();
        assert!(buffer.iter().all(|value| *value == 0));
        buffer[999] = 7;
        assert_eq!(buffer.iter().sum::<u64>(), 7);
    }
}
