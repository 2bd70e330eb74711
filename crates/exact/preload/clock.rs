//! The wall clock that an emulator of the exact arena sees. Built as a shared object and preloaded into it.
//!
//! QEMU's emulated TLB grows and shrinks by how full it was within the last 100 ms of *wall* time (`accel/tcg/cputlb.c`,
//! `tlb_mmu_resize_locked`, which asks `gettimeofday` at every flush). Its size decides which translations survive, and
//! so which page table entries get their accessed bit set again after the kernel cleared it: Linux clears it without a
//! flush on x86 (`ptep_clear_flush_young`). Reclaim looks at that bit. So this clock goes by flushes instead: in the main
//! thread it stands still, everywhere else a call takes a millisecond.

#![no_std]

mod stop;

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicI64, Ordering};

/// How far one call moves it, in microseconds.
const STEP: c_long = 1000;
/// Source: Linux `arch/x86/entry/syscalls/syscall_64.tbl`.
const GETTID: c_long = 186;

/// `struct timeval` of the C library.
#[repr(C)]
pub struct Time {
    seconds: c_long,
    micros: c_long,
}

unsafe extern "C" {
    fn getpid() -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

static CALLS: AtomicI64 = AtomicI64::new(0);

/// The calling thread's id.
fn thread() -> c_long {
    // SAFETY: this reads and writes no memory of this process.
    unsafe { syscall(GETTID) }
}

/// Whether the main thread asks.
fn is_main() -> bool {
    // SAFETY: this reads and writes no memory of this process.
    thread() == c_long::from(unsafe { getpid() })
}

/// Microseconds since 1970, where the clock starts. The main thread does not move it: how often that asks depends on the
/// host.
fn now() -> c_long {
    if is_main() {
        0
    } else {
        STEP * (CALLS.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Takes the place of the C library's function.
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

/// Takes the place of GLib's function, by which the monitor's events are dated: they tell that the clock is this one.
#[unsafe(no_mangle)]
pub extern "C" fn g_get_real_time() -> c_long {
    stop::reported();
    now()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
