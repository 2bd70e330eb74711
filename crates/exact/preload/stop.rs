//! The order in which the emulator's threads take note that a guest has stopped itself.
//!
//! A guest at its ready point stops from inside: the CPU's thread reports the event, asks the main thread for the stop, and goes
//! out of its loop. If it is out before the main thread has seen the request, the main thread finds a CPU that is idle in a machine
//! that runs, and moves the guest's clock to the next timer (QEMU `softmmu/icount.c`, `icount_start_warp_timer`, before
//! `main_loop_should_exit`). Which of the two comes first is chance, and each gives another snapshot. So here the CPU's thread waits
//! after it reported an event, before it takes the big lock again, until the main thread waits for *it* (`pause_all_vcpus`).
//!
//! The big lock is what the main thread takes first after each poll (QEMU `util/main-loop.c`, `os_host_main_loop_wait`).

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering};

use crate::{is_main, syscall, thread};

/// Source: glibc `dlfcn.h`.
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
/// Source: Linux `arch/x86/entry/syscalls/syscall_64.tbl`.
const NANOSLEEP: c_long = 35;
/// How long the CPU's thread sleeps between two looks, and how often it looks: 10 s in all. After that the emulator does as it
/// always did; whether the clock was moved is checked in what it saved.
const LOOK_NANOS: c_long = 50_000;
const LOOKS: u32 = 200_000;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// No thread but the main one has reported an event yet.
const NOBODY: c_long = 0;
/// The main thread has taken note; from then on nothing waits.
const NOTED: c_long = -1;

/// The thread that reported the first event, which is the guest's stop: the CPU's. Threads that save the guest report later.
static REPORTER: AtomicI64 = AtomicI64::new(NOBODY);
/// The main thread came back from a poll and has taken no lock since.
static POLLED: AtomicBool = AtomicBool::new(false);
/// The big lock.
static BIG: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

type Lock = unsafe extern "C" fn(*mut c_void) -> c_int;
type Wait = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type Poll = unsafe extern "C" fn(*mut c_void, c_long, *const c_void, *const c_void) -> c_int;

/// The C library's own function, looked up once.
fn next(known: &AtomicPtr<c_void>, name: &CStr, version: Option<&CStr>) -> *mut c_void {
    let mut found = known.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: both names are C strings; a null result is looked at below.
        found = unsafe {
            match version {
                Some(version) => dlvsym(RTLD_NEXT, name.as_ptr(), version.as_ptr()),
                None => null_mut(),
            }
        };
        if found.is_null() {
            // SAFETY: as above.
            found = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) };
        }
        known.store(found, Ordering::Relaxed);
    }
    found
}

/// Notes that the calling thread reports an event.
pub fn reported() {
    if !is_main() {
        let _ = REPORTER.compare_exchange(NOBODY, thread(), Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Waits until the main thread has taken note of the stop.
fn wait() {
    let pause: [c_long; 2] = [0, LOOK_NANOS];
    for _ in 0..LOOKS {
        if REPORTER.load(Ordering::SeqCst) == NOTED {
            return;
        }
        // SAFETY: the time lives through the call; no remainder is asked for.
        unsafe { syscall(NANOSLEEP, pause.as_ptr(), null_mut::<c_long>()) };
    }
    REPORTER.store(NOTED, Ordering::SeqCst);
}

/// Takes the place of the C library's function.
///
/// # Safety
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    if POLLED.load(Ordering::Relaxed) && is_main() {
        POLLED.store(false, Ordering::Relaxed);
        BIG.store(mutex, Ordering::SeqCst);
    } else {
        let reporter = REPORTER.load(Ordering::Relaxed);
        if reporter > NOBODY && mutex == BIG.load(Ordering::SeqCst) && reporter == thread() {
            wait();
        }
    }
    let real = next(&REAL, c"pthread_mutex_lock", None);
    // SAFETY: what was found under this name has this type; the caller vouches for the mutex.
    unsafe { transmute::<*mut c_void, Lock>(real)(mutex) }
}

/// Takes the place of the C library's function.
///
/// # Safety
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(condition: *mut c_void, mutex: *mut c_void) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    if REPORTER.load(Ordering::Relaxed) > NOBODY && is_main() {
        REPORTER.store(NOTED, Ordering::SeqCst);
    }
    // The version before this one has another layout.
    let real = next(&REAL, c"pthread_cond_wait", Some(c"GLIBC_2.3.2"));
    // SAFETY: what was found under this name has this type; the caller vouches for both.
    unsafe { transmute::<*mut c_void, Wait>(real)(condition, mutex) }
}

/// Takes the place of the C library's function.
///
/// # Safety
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    files: *mut c_void,
    count: c_long,
    timeout: *const c_void,
    mask: *const c_void,
) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let real = next(&REAL, c"ppoll", None);
    // SAFETY: what was found under this name has this type; the caller vouches for the rest.
    let ready = unsafe { transmute::<*mut c_void, Poll>(real)(files, count, timeout, mask) };
    if is_main() {
        POLLED.store(true, Ordering::Relaxed);
    }
    ready
}
