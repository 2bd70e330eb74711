//! Enforces the order in which the emulator's threads process a stop that the guest requested.
//!
//! At its ready point a guest stops itself: the CPU thread reports the event, asks the main thread for the stop, and
//! leaves its loop. If the CPU thread has left its loop before the main thread has seen the request, the main thread
//! finds an idle CPU in a running machine and advances the guest's clock to the next timer (QEMU `softmmu/icount.c`,
//! `icount_start_warp_timer`, before `main_loop_should_exit`). Which thread is first is a race, and the two outcomes
//! give different snapshots. So after reporting an event, the CPU thread waits here, before it takes the big lock
//! again, until the main thread waits for the CPU thread (`pause_all_vcpus`).
//!
//! The big lock is recognized as the first lock that the main thread takes after each poll (QEMU `util/main-loop.c`,
//! `os_host_main_loop_wait`).

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::thread::{is_main, me};
use crate::turns;

/// Source: glibc `dlfcn.h`.
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
/// Source: Linux `arch/x86/entry/syscalls/syscall_64.tbl`.
const NANOSLEEP: c_long = 35;
/// Nanoseconds that the CPU thread sleeps between two checks for the stop.
const LOOK_NANOS: c_long = 50_000;
/// Maximum number of checks, which take 10 s in all. Then the emulator continues, and the saved state is checked for a
/// moved clock.
const LOOKS: u32 = 200_000;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn syscall(number: c_long, ...) -> c_long;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// Value of [`REPORTER`] once the main thread has seen the stop. After that, no thread waits.
const NOTED: *mut c_void = -1_isize as *mut c_void;

/// The thread that reported the first event, which is the guest's stop: the CPU thread. Null until a thread other than
/// the main one has reported an event. Threads that save the guest report later.
static REPORTER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// True if the main thread has returned from a poll and has taken no lock since.
static POLLED: AtomicBool = AtomicBool::new(false);
/// Address of the emulator's big lock; null until it is known.
static BIG: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

type Lock = unsafe extern "C" fn(*mut c_void) -> c_int;
type Wait = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type Poll = unsafe extern "C" fn(*mut c_void, c_long, *const c_void, *const c_void) -> c_int;

/// Address of the C library's own function, looked up once.
fn next(known: &AtomicPtr<c_void>, name: &CStr, version: Option<&CStr>) -> *mut c_void {
    let mut found = known.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: both names are C strings; a null result is handled below.
        found = unsafe {
            match version {
                Some(version) => dlvsym(RTLD_NEXT, name.as_ptr(), version.as_ptr()),
                None => null_mut(),
            }
        };
        if found.is_null() {
            // SAFETY: the name is a C string; a null result is handled below.
            found = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) };
        }
        known.store(found, Ordering::Relaxed);
    }
    found
}

/// Notes that the calling thread has reported an event of the monitor.
pub fn reported() {
    if !is_main() {
        let _ = REPORTER.compare_exchange(null_mut(), me(), Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Waits until `done` returns true, for at most 10 s. Returns false if the time is over.
pub fn pause(done: impl Fn() -> bool) -> bool {
    let pause: [c_long; 2] = [0, LOOK_NANOS];
    for _ in 0..LOOKS {
        if done() {
            return true;
        }
        // SAFETY: the timespec outlives the call; no remainder is asked for.
        unsafe { syscall(NANOSLEEP, pause.as_ptr(), null_mut::<c_long>()) };
    }
    false
}

/// Makes the CPU thread wait until the main thread has seen the stop, for at most 10 s.
fn wait() {
    if !pause(|| REPORTER.load(Ordering::SeqCst) == NOTED) {
        REPORTER.store(NOTED, Ordering::SeqCst);
    }
}

/// True if a thread has reported a stop that the main thread has not seen yet.
fn is_reported() -> bool {
    let reporter = REPORTER.load(Ordering::Relaxed);
    !reporter.is_null() && reporter != NOTED
}

/// Address of the C library's own function of this name. It is looked up once and then stored in `known`.
pub fn real(known: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    next(known, name, None)
}

/// Replaces the C library's `pthread_mutex_lock`.
///
/// # Safety
/// The caller must meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    if POLLED.load(Ordering::Relaxed) && is_main() {
        POLLED.store(false, Ordering::Relaxed);
        BIG.store(mutex, Ordering::SeqCst);
    } else {
        if is_reported()
            && mutex == BIG.load(Ordering::SeqCst)
            && REPORTER.load(Ordering::Relaxed) == me()
        {
            wait();
        }
        if mutex == BIG.load(Ordering::Relaxed) {
            turns::before_lock();
        }
    }
    let real = next(&REAL, c"pthread_mutex_lock", None);
    // SAFETY: the symbol of this name has this type; the caller vouches for the mutex.
    unsafe { transmute::<*mut c_void, Lock>(real)(mutex) }
}

/// Replaces the C library's `pthread_cond_wait`.
///
/// # Safety
/// The caller must meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(condition: *mut c_void, mutex: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    if is_reported() && is_main() {
        REPORTER.store(NOTED, Ordering::SeqCst);
    }
    // The symbol version before this one uses another layout of the condition.
    let real = next(&REAL, c"pthread_cond_wait", Some(c"GLIBC_2.3.2"));
    let is_main = is_main();
    let takes_turns = turns::are_taken();
    if takes_turns && is_main {
        turns::main_waits(true);
    }
    // SAFETY: the symbol of this name has this type; the caller vouches for both pointers.
    let done = unsafe { transmute::<*mut c_void, Wait>(real)(condition, mutex) };
    if takes_turns && is_main {
        turns::main_waits(false);
    } else if takes_turns && mutex == BIG.load(Ordering::SeqCst) {
        turns::waited();
    }
    done
}

/// Replaces the C library's `ppoll`.
///
/// # Safety
/// The caller must meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    files: *mut c_void,
    count: c_long,
    timeout: *const c_void,
    mask: *const c_void,
) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let real = next(&REAL, c"ppoll", None);
    // SAFETY: the symbol of this name has this type; the caller vouches for the pointers.
    let poll =
        |timeout| unsafe { transmute::<*mut c_void, Poll>(real)(files, count, timeout, mask) };
    let is_main = is_main();
    let ready = if is_main && turns::are_taken() && !files.is_null() {
        let length = usize::try_from(count).unwrap_or(0);
        // SAFETY: the caller vouches for `count` elements at `files`, which only it changes.
        let polled = unsafe { core::slice::from_raw_parts(files.cast(), length) };
        turns::poll_as_main(polled, timeout, poll)
    } else {
        poll(timeout)
    };
    if is_main {
        POLLED.store(true, Ordering::Relaxed);
    }
    ready
}
