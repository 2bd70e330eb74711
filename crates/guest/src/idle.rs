//! The process that keeps the CPU from halting.
//!
//! When an emulated CPU halts, the emulator's main loop moves virtual time to the next timer. It races with the CPU's own
//! thread, and exactness is lost. While the CPU executes, its thread runs every timer at its exact instruction. So a process of
//! the lowest scheduling class spins whenever no other task is runnable. The emulator translates a `nop` to nothing, so a long run
//! of them makes idle virtual time cost almost no wall time.

use std::arch::asm;
use std::io;

use crate::error::{GuestError, io};

/// Starts the spinner. It is locked in memory with the rest of PID 1's pages and needs no memory of its own.
pub fn start() -> Result<(), GuestError> {
    // SAFETY: PID 1 has a single thread, so the child may go on with ordinary code.
    match unsafe { libc::fork() } {
        -1 => Err(io("starting", "the idle spinner")(
            io::Error::last_os_error(),
        )),
        0 => spin(),
        _ => Ok(()),
    }
}

fn spin() -> ! {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: plain system calls on this process; `param` lives through the call, the name is a C string.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param);
        libc::prctl(libc::PR_SET_NAME, c"pagetide-idle".as_ptr());
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT as libc::c_int);
    }
    loop {
        // SAFETY: instructions that do nothing: no memory, stack or flags are touched.
        unsafe {
            asm!(
                ".rept 500",
                "nop",
                ".endr",
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}
