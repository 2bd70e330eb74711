//! Keeps the emulator's main thread from running while CPUs take turns.
//!
//! One thread, the CPU thread, executes all CPUs of a guest. It divides the time until the next timer among the CPUs.
//! If something ends a turn early, it divides the time again. The main thread can end turns: it runs timers that are
//! due, and wakes the CPU thread for them. With one CPU this changes nothing. With several CPUs, the turns would
//! depend on the host. So the CPU thread takes the big lock only while the main thread sleeps.
//!
//! In a trial, the main thread has nothing to do, but QEMU wakes it at each timer of the guest (`util/async.c`,
//! `aio_notify`, called by `qemu_clock_notify`). So in a trial, the CPU thread does not wake other threads.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use crate::stop::{pause, real};
use crate::thread::me;

/// Name of the environment variable with the phase of this emulator: boot or trial. If it is not set, the guest has
/// one CPU.
const VARIABLE: &CStr = c"PAGETIDE_TURNS";
/// First letter of the variable's value in a trial; any other value stands for a boot.
const TRIAL: c_char = b't' as c_char;

// Phase of this emulator.
const UNKNOWN: c_int = 0;
const ONE_CPU: c_int = 1;
const BOOTS: c_int = 2;
const IN_TRIAL: c_int = 3;

/// Maximum number of polled files of the main thread that are stored. Further files are ignored; QEMU polls about ten.
const MAX_FILES: usize = 32;

static MODE: AtomicI32 = AtomicI32::new(UNKNOWN);
/// The CPU thread: the first thread except the main one that waited with the big lock; null until then.
static CPU: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The files that the main thread polls.
static FILES: [AtomicI32; MAX_FILES] = [const { AtomicI32::new(-1) }; MAX_FILES];
/// Number of times that the CPU thread woke the main thread.
static WAKES: AtomicU64 = AtomicU64::new(0);
/// While the main thread sleeps: the number of wakes that it had seen before. Otherwise [`AWAKE`] or [`WAITS`].
static ASLEEP: AtomicU64 = AtomicU64::new(AWAKE);
/// Value of [`ASLEEP`] while the main thread runs.
const AWAKE: u64 = u64::MAX;
/// Value of [`ASLEEP`] while the main thread waits for another thread.
const WAITS: u64 = u64::MAX - 1;

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
}

/// `struct pollfd` of the C library.
#[repr(C)]
pub struct PollFile {
    file: c_int,
    events: u32,
}

fn mode() -> c_int {
    let known = MODE.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known;
    }
    // SAFETY: the name is a C string. The environment is not changed while the emulator runs.
    let value = unsafe { getenv(VARIABLE.as_ptr()) };
    // SAFETY: if not null, the value is a C string.
    let mode = match unsafe { value.as_ref() } {
        None => ONE_CPU,
        Some(&TRIAL) => IN_TRIAL,
        Some(_) => BOOTS,
    };
    MODE.store(mode, Ordering::Relaxed);
    mode
}

/// True if the guest has several CPUs, so that its CPUs take turns.
pub fn are_taken() -> bool {
    mode() != ONE_CPU
}

/// Polls files for the main thread. `poll` polls with the timeout that it is given; null for no timeout. While the
/// main thread counts as asleep, it has no work to do.
pub fn poll_as_main(
    files: &[PollFile],
    timeout: *const c_void,
    poll: impl Fn(*const c_void) -> c_int,
) -> c_int {
    for (known, polled) in FILES.iter().zip(files) {
        known.store(polled.file, Ordering::Relaxed);
    }
    for unused in FILES.iter().skip(files.len()) {
        unused.store(-1, Ordering::Relaxed);
    }
    let wakes = WAKES.load(Ordering::SeqCst);
    let at_once: [c_long; 2] = [0, 0];
    match poll(at_once.as_ptr().cast()) {
        0 => {
            ASLEEP.store(wakes, Ordering::SeqCst);
            let ready = poll(timeout);
            ASLEEP.store(AWAKE, Ordering::SeqCst);
            ready
        }
        ready => ready,
    }
}

/// Records whether the main thread waits for another thread.
pub fn main_waits(waits: bool) {
    ASLEEP.store(if waits { WAITS } else { AWAKE }, Ordering::SeqCst);
}

/// Records that the calling thread, which is not the main thread, has waited for something with the big lock.
pub fn waited() {
    let _ = CPU.compare_exchange(null_mut(), me(), Ordering::SeqCst, Ordering::SeqCst);
}

/// True if the calling thread executes several CPUs.
fn is_cpus() -> bool {
    are_taken() && CPU.load(Ordering::Relaxed) == me()
}

/// Called before a thread takes the big lock. Makes the CPU thread wait until the main thread sleeps, for at most 10 s.
pub fn before_lock() {
    if is_cpus() {
        pause(|| {
            let asleep = ASLEEP.load(Ordering::SeqCst);
            asleep == WAITS || asleep == WAKES.load(Ordering::SeqCst)
        });
    }
}

type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> c_long;

/// Replaces the C library's `write`. The CPU thread writes numbers only to wake other threads (eventfd(2)).
///
/// # Safety
/// The caller must meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: usize) -> c_long {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    /// Size of the number that wakes a thread.
    const NUMBER: usize = 8;
    if count == NUMBER && is_cpus() {
        if mode() == IN_TRIAL {
            return NUMBER as c_long;
        }
        if FILES
            .iter()
            .any(|known| known.load(Ordering::Relaxed) == file)
        {
            WAKES.fetch_add(1, Ordering::SeqCst);
        }
    }
    let real = real(&REAL, c"write");
    // SAFETY: the symbol of this name has this type; the caller vouches for the arguments.
    unsafe { transmute::<*mut c_void, Write>(real)(file, bytes, count) }
}
