//! Identifies the calling thread, and tells whether it is the main thread. A thread is identified by the address of
//! its `errno`, because asking the kernel for the thread's number takes a system call.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// Identity of the main thread, which loads this object.
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Called by the loader, in the main thread.
#[used]
#[unsafe(link_section = ".init_array")]
static INIT: extern "C" fn() = init;

extern "C" fn init() {
    MAIN.store(me(), Ordering::SeqCst);
}

/// Identity of the calling thread.
pub fn me() -> *mut c_void {
    // SAFETY: the C library's function only returns an address.
    unsafe { __errno_location() }.cast()
}

/// True if the calling thread is the main thread.
pub fn is_main() -> bool {
    MAIN.load(Ordering::Relaxed) == me()
}
