//! Prepares the guest's swap: compressed memory, or a simulated solid-state disk.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pagetide_quantity::Bytes;
use pagetide_quantity::PAGE_SIZE;
use pagetide_record::SwapSpec;

use crate::error::{GuestError, io};

/// Device of the simulated disk.
pub const SSD: &str = "/dev/nullb0";
/// Device of compressed memory.
pub const ZRAM: &str = "/dev/zram0";

/// Module parameters of the simulated disk: memory behind it, completion by timer after the latency, one queue.
/// Source: kernel `Documentation/block/null_blk.rst`.
pub fn ssd_params(latency: pagetide_quantity::Nanos, size: Bytes, devices: u32) -> String {
    let gb = size.0.div_ceil(1 << 30).max(1);
    format!(
        "memory_backed=1 gb={gb} irqmode=2 completion_nsec={} nr_devices={devices} queue_mode=2 submit_queues=1 \
         hw_queue_depth=64",
        latency.0
    )
}

/// Prepares and switches on the swap a trial asks for.
pub fn prepare(swap: SwapSpec, size: Bytes, compressor: &str) -> Result<(), GuestError> {
    match swap {
        SwapSpec::None => Ok(()),
        SwapSpec::Zram => {
            present(ZRAM)?;
            let set = |name: &str, value: &str| {
                let path = format!("/sys/block/zram0/{name}");
                fs::write(&path, value).map_err(io("setting", format!("{path} to {value}")))
            };
            set("comp_algorithm", compressor)?;
            set("disksize", &size.0.to_string())?;
            switch_on(ZRAM, size)
        }
        SwapSpec::Ssd(_) => {
            present(SSD)?;
            fill(SSD, size)?;
            switch_on(SSD, size)
        }
    }
}

/// Checks that a device is there.
pub fn present(device: &str) -> Result<(), GuestError> {
    if Path::new(device).exists() {
        Ok(())
    } else {
        Err(GuestError::NoDevice {
            device: device.to_owned(),
        })
    }
}

/// Writes the first `size` bytes of a simulated disk once, so that its pages are allocated now: a disk that took memory
/// when it is swapped to would deadlock in reclaim.
pub fn fill(device: &str, size: Bytes) -> Result<(), GuestError> {
    const CHUNK: usize = 1 << 20;
    /// A page-aligned buffer, as direct I/O wants it.
    #[repr(C, align(4096))]
    struct Aligned([u8; CHUNK]);
    let zeros: Box<Aligned> = {
        // SAFETY: all zeros are a valid value of a byte array; allocated zeroed so that it never lies on the stack.
        unsafe { Box::<Aligned>::new_zeroed().assume_init() }
    };
    let fault = |e| io("filling", device)(e);
    let file = File::options()
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(device)
        .map_err(fault)?;
    let mut at = 0;
    while at < size.0 {
        let length = usize::try_from(size.0 - at).unwrap_or(CHUNK).min(CHUNK);
        file.write_all_at(&zeros.0[..length], at).map_err(fault)?;
        at += length as u64;
    }
    Ok(())
}

/// Writes a swap header and switches swap on.
/// Source: kernel `include/linux/swap.h`, `union swap_header`: version, last page and number of bad pages at offset
/// 1024, magic `SWAPSPACE2` in the last ten bytes of the first page.
fn switch_on(device: &str, size: Bytes) -> Result<(), GuestError> {
    let page = usize::try_from(PAGE_SIZE).unwrap_or(4096);
    let mut header = vec![0_u8; page];
    let last = u32::try_from(size.0 / PAGE_SIZE - 1).map_err(|_| {
        io("formatting swap on", device)(io::Error::other("the device is too large"))
    })?;
    header[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
    header[1028..1032].copy_from_slice(&last.to_le_bytes());
    header[page - 10..].copy_from_slice(b"SWAPSPACE2");
    let mut file = File::options()
        .write(true)
        .open(device)
        .map_err(io("formatting swap on", device))?;
    file.write_all(&header)
        .and_then(|()| file.sync_all())
        .map_err(io("formatting swap on", device))?;
    drop(file);
    let path = CString::new(device).unwrap_or_default();
    // SAFETY: the path is a C string that lives through the call.
    if unsafe { libc::swapon(path.as_ptr(), 0) } != 0 {
        return Err(io("switching on swap on", device)(
            io::Error::last_os_error(),
        ));
    }
    Ok(())
}
