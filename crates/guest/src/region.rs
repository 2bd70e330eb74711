//! The output region in the guest: memory of a device at a physical address.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use pagetide_record::wire::{HEAD, Region};
use pagetide_system::{Mapping, Source};

use crate::error::{GuestError, io};

/// Maps the output region. `at` is its physical address, `size` its size in bytes.
pub fn map(at: u64, size: u64) -> Result<Region<'static>, GuestError> {
    let on = || format!("{size} bytes of physical memory at {at:#x}");
    let file = File::options()
        .read(true)
        .write(true)
        .open("/dev/mem")
        .map_err(io("opening the output region in", "/dev/mem"))?;
    let length =
        usize::try_from(size).map_err(|_| io("mapping", on())(io::Error::other("too large")))?;
    let memory =
        Mapping::new(Source::File(file.as_fd(), at), length).map_err(io("mapping", on()))?;
    let base = memory.start();
    // The region stays mapped until the guest ends.
    std::mem::forget(memory);
    // SAFETY: `base` is the page-aligned start of a mapping of `length` bytes that is never unmapped. The controller, which
    // maps the same memory, writes it only before the guest starts and reads its head through atomics.
    Ok(unsafe { Region::new(base, length) })
}

/// Returns a range of bytes of a mapped region.
///
/// # Safety
///
/// The range must be within the region, and no process may write to it from now on.
pub unsafe fn bytes(region: &Region<'static>, offset: usize, length: usize) -> &'static [u8] {
    let head: *const pagetide_record::wire::Head = region.head();
    // SAFETY: the head is the start of the mapping, which is never unmapped; that the range lies within it and does not
    // change is this function's own contract.
    unsafe { std::slice::from_raw_parts(head.cast::<u8>().add(offset), length) }
}

/// Excludes the region, except its head, from the address space of processes that are forked later.
pub fn keep_from_children(region: &Region, size: u64) {
    let head: *const pagetide_record::wire::Head = region.head();
    let length = usize::try_from(size).unwrap_or(0).saturating_sub(HEAD);
    // SAFETY: the range is our own mapping after its first page, the head; the advice changes what a child inherits, not
    // what this process sees.
    unsafe {
        libc::madvise(
            head.cast::<u8>().add(HEAD).cast_mut().cast(),
            length,
            libc::MADV_DONTFORK,
        )
    };
}
