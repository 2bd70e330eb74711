//! The harness's own memory: locked, so that it does not become the victim, and counted.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use pagetide_quantity::Bytes;

use crate::error::Stop;
use crate::number;

/// The most that the harness may take beside the workload.
pub(crate) const LIMIT: Bytes = Bytes::from_mib(4);

/// Size of the buffers that this process has now, and the most it had.
static BUFFERS: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

/// Begins to count buffers anew, in a child that was just forked: what its parent had is counted there.
pub(crate) fn count_anew() {
    BUFFERS.store(0, Ordering::Relaxed);
    MOST.store(0, Ordering::Relaxed);
}

/// The most that this process's buffers took at a time.
pub(crate) fn most() -> Bytes {
    Bytes(MOST.load(Ordering::Relaxed))
}

/// A buffer of plain numbers in memory of its own, filled with zeros and locked where the process may lock.
pub(crate) struct Locked<T: Plain> {
    start: NonNull<T>,
    length: usize,
}

/// Types of which every bit pattern is a value.
///
/// # Safety
/// Memory of zeros must be a valid value, and so must every other content.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: every bit pattern is a number.
unsafe impl Plain for u8 {}
// SAFETY: every bit pattern is a number.
unsafe impl Plain for u32 {}
// SAFETY: every bit pattern is a number.
unsafe impl Plain for u64 {}

impl<T: Plain> Locked<T> {
    /// A buffer of `length` zeros.
    pub(crate) fn new(length: usize) -> Result<Self, Stop> {
        let size = Self::size(length);
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Stop::last(format!("cannot map a buffer of {size} bytes")));
        }
        // An unprivileged process may not lock much; the buffer is then hot enough to stay by itself, and the record
        // says what was not locked.
        // SAFETY: the range is the mapping made above.
        unsafe { libc::mlock(start, size) };
        let now = BUFFERS.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
        MOST.fetch_max(now, Ordering::Relaxed);
        let start = NonNull::new(start.cast::<T>())
            .ok_or_else(|| Stop::last("cannot map a buffer at address zero"))?;
        Ok(Self { start, length })
    }

    fn size(length: usize) -> usize {
        (length * size_of::<T>()).max(1).next_multiple_of(4096)
    }
}

impl<T: Plain> std::ops::Deref for Locked<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `length` values, zeros at first, which are valid (`Plain`), and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Plain> std::ops::DerefMut for Locked<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the mapping holds `length` values and lives as long as `self`, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T: Plain> Drop for Locked<T> {
    fn drop(&mut self) {
        let size = Self::size(self.length);
        BUFFERS.fetch_sub(size as u64, Ordering::Relaxed);
        // SAFETY: the mapping was made by `new` and nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), size) };
    }
}

/// What the harness takes beside the workload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own {
    /// Heap, stack, data and buffers, and the page tables of all there is.
    pub size: Bytes,
    /// The part of it that grows by itself: heap and stack.
    growing: u64,
    /// The buffers in it.
    buffers: Bytes,
    /// Whether all of it is locked.
    pub locked: bool,
}

impl Own {
    /// The same at the trial's end: what heap, stack and buffers grew by since comes to it.
    pub(crate) fn grown(self) -> Bytes {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let grown = growing(&maps).saturating_sub(self.growing);
        Bytes(self.size.0 + grown + most().0.saturating_sub(self.buffers.0))
    }
}

/// Heap and stack in `/proc/self/maps`, in bytes.
fn growing(maps: &str) -> u64 {
    let of = |line: &str| {
        let mine = line.ends_with("[heap]") || line.ends_with("[stack]");
        own(line)
            .filter(|_| mine)
            .map_or(0, |(start, end)| end - start)
    };
    maps.lines().map(of).sum()
}

/// Page tables of this process.
fn page_tables() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmPTE:")?.trim().strip_suffix(" kB"))
        .and_then(|text| text.trim().parse().ok())
        .map_or(0, |kib: u64| kib << 10)
}

/// Locks all private writable memory that this process has now (heap, stack, buffers) and says how much it is.
///
/// To be called before the workload is mapped.
pub(crate) fn lock_own_memory() -> Own {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return Own::default();
    };
    let mut locked = true;
    let mut total = 0;
    for line in maps.lines() {
        let Some((start, end)) = own(line) else {
            continue;
        };
        total += end - start;
        // SAFETY: locking changes no content; a range that went away in the meantime is refused by the kernel.
        let refused = unsafe {
            libc::mlock(
                std::ptr::without_provenance(number::index(start)),
                number::index(end - start),
            )
        };
        locked &= refused == 0;
    }
    Own {
        size: Bytes(total + page_tables()),
        growing: growing(&maps),
        buffers: most(),
        locked,
    }
}

/// Start and end of a private writable anonymous mapping (heap and stack included) of a line of `/proc/self/maps`.
fn own(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let range = words.next()?;
    let rights = words.next()?;
    let (_offset, _device, inode) = (words.next()?, words.next()?, words.next()?);
    let name = words.next().unwrap_or("");
    // The program's data is private and writable too, and is the harness's.
    let data = rights.starts_with("rw") && rights.ends_with('p');
    if !data || name == "[vvar]" || (inode == "0" && name.starts_with("[v")) {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some((hex(start)?, hex(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_stack_and_data_are_the_harness_and_code_is_not() {
        let heap = "01a2b000-01a4c000 rw-p 00000000 00:00 0                [heap]";
        assert_eq!(own(heap), Some((0x01a2_b000, 0x01a4_c000)));
        let code = "00400000-00401000 r-xp 00000000 08:02 173521           /init";
        assert_eq!(own(code), None);
        let shared = "7f00-7f10 rw-s 00000000 00:01 9 /dev/zero (deleted)";
        assert_eq!(own(shared), None);
    }

    #[test]
    fn what_the_heap_grows_by_is_counted_at_the_end() {
        let maps = "00400000-00401000 r-xp 00000000 08:02 173521           /init\n\
                    01a2b000-01a4c000 rw-p 00000000 00:00 0                [heap]\n\
                    7ffc0000-7ffc3000 rw-p 00000000 00:00 0                [stack]\n\
                    7ffd0000-7ffd9000 rw-p 00000000 00:00 0\n";
        assert_eq!(growing(maps), 0x21000 + 0x3000);
        let own = lock_own_memory();
        assert!(own.grown() >= own.size && own.size > Bytes(page_tables()));
        let smaller = Own {
            growing: own.growing.saturating_sub(4096),
            ..own
        };
        assert!(smaller.grown().0 >= own.size.0 + 4096);
    }

    #[test]
    fn a_locked_buffer_holds_what_was_written() {
        let mut buffer = Locked::<u64>::new(1000).unwrap();
        assert!(buffer.iter().all(|value| *value == 0));
        buffer[999] = 7;
        assert_eq!(buffer.iter().sum::<u64>(), 7);
    }
}
