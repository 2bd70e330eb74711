//! The wall clock seen by an emulator of the exact arena. Built as a shared object and preloaded into the emulator.
//!
//! QEMU's emulated TLB grows and shrinks with its occupancy within the last 100 ms of *wall* time
//! (`accel/tcg/cputlb.c`, `tlb_mmu_resize_locked`, which calls `gettimeofday` at every flush). The TLB's size decides
//! which translations survive. So it decides which page table entries get their accessed bit set again after the kernel
//! cleared it, because Linux clears the bit without a flush on x86 (`ptep_clear_flush_young`). Reclaim reads that bit.
//! Therefore this clock counts flushes instead of time: it stands still in the main thread, and advances by a
//! millisecond at each call from another thread.

#![no_std]

mod stop;
mod thread;
mod turns;

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicI64, Ordering};

use thread::is_main;

/// Microseconds by which one call advances the clock.
const STEP: c_long = 1000;

/// `struct timeval` of the C library.
#[repr(C)]
pub struct Time {
    seconds: c_long,
    micros: c_long,
}

static CALLS: AtomicI64 = AtomicI64::new(0);

/// Current time in microseconds since 1970, where the clock starts. Calls from the main thread do not advance it,
/// because their number depends on the host.
fn now() -> c_long {
    if is_main() {
        0
    } else {
        STEP * (CALLS.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Replaces the C library's `gettimeofday`.
///
/// # Safety
/// `time` is null or valid for writing, as for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut Time, _zone: *mut c_void) -> c_int {
    let now = now();
    // SAFETY: the caller vouches for the pointer.
    if let Some(time) = unsafe { time.as_mut() } {
        time.seconds = now / 1_000_000;
        time.micros = now % 1_000_000;
    }
    0
}

/// Replaces GLib's `g_get_real_time`, which dates the monitor's events. The dates prove that this clock is in use.
#[unsafe(no_mangle)]
pub extern "C" fn g_get_real_time() -> c_long {
    stop::reported();
    now()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
