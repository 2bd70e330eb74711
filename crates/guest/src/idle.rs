//! The process that keeps the CPU from halting.
//!
//! When an emulated CPU halts, the emulator's main loop moves virtual time to the next timer. It races with the CPU's own
//! thread, and exactness is lost. While the CPU executes, its thread runs every timer at its exact instruction. So a process of
//! the lowest scheduling class spins whenever no other task is runnable. The emulator translates a `nop` to nothing, so a long run
//! of them makes idle virtual time cost almost no wall time.
//!
//! Each change of address space makes the emulator forget all translations of addresses, and it looks them up again one by one: the
//! way from a process to a spinner with an address space of its own and back cost as much as the fault that the process waited
//! for. A real kernel's idle task has no address space. So from the ready point on the one who spins lives in the address space
//! of the workload's main process, which in most trials is the one who waits.

use std::arch::asm;
use std::io;

use crate::error::{GuestError, io};

/// Bytes of stack for one who spins; it calls the kernel once or twice and nothing else.
const STACK: usize = 16 << 10;

/// A process that spins.
#[derive(Debug)]
pub struct Spinner(libc::pid_t);

impl Spinner {
    /// Starts it as a child of this process. It is locked in memory with the rest of PID 1's pages and needs no memory of its own.
    pub fn start() -> Result<Self, GuestError> {
        // SAFETY: PID 1 has a single thread, so the child may go on with ordinary code.
        match unsafe { libc::fork() } {
            -1 => Err(failed()),
            0 => {
                // SAFETY: locks this process' pages when they are first used.
                unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT as libc::c_int) };
                spin()
            }
            pid => Ok(Self(pid)),
        }
    }

    /// Starts it in the address space of this process, as a child of this process' parent, to whom its id must be told.
    pub fn share() -> Result<Self, GuestError> {
        extern "C" fn run(_: *mut libc::c_void) -> libc::c_int {
            spin()
        }
        let stack = Box::leak(vec![0_u128; STACK / size_of::<u128>()].into_boxed_slice());
        let flags = libc::CLONE_VM | libc::CLONE_PARENT;
        let end = stack.as_mut_ptr_range().end.cast();
        // SAFETY: `end` is the aligned end of a stack that nobody else uses or frees. What runs on it makes system calls that cannot
        // fail, so that it leaves this process' `errno` alone, and touches no other memory.
        match unsafe { libc::clone(run, end, flags, std::ptr::null_mut()) } {
            -1 => Err(failed()),
            pid => Ok(Self(pid)),
        }
    }

    /// Its id.
    pub fn id(&self) -> libc::pid_t {
        self.0
    }

    /// The one with this id, a child of this process.
    pub fn child(id: libc::pid_t) -> Self {
        Self(id)
    }

    /// Holds it up, for another one spins.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// Lets it spin again.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Ends it and waits until it is gone, and its address space with it if no other process has it.
    pub fn end(self) {
        self.signal(libc::SIGKILL);
        // SAFETY: waits for a child of ours; where it is gone already, and reaped, the call fails at once.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), 0) };
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: plain system call. Ids are not used twice in the short life of a guest.
        unsafe { libc::kill(self.0, signal) };
    }
}

fn failed() -> GuestError {
    io("starting", "the idle spinner")(io::Error::last_os_error())
}

#[inline(never)]
fn spin() -> ! {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: plain system calls on this process; `param` lives through the call, the name is a C string.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param);
        libc::prctl(libc::PR_SET_NAME, c"pagetide-idle".as_ptr());
    }
    // The whole loop lies in one page: the emulator goes from a block in one page to a block in another through a table.
    // SAFETY: instructions that do nothing and a jump back to them: no memory, stack or flags are touched.
    unsafe {
        asm!(
            ".p2align 9",
            "2:",
            ".rept 500",
            "nop",
            ".endr",
            "jmp 2b",
            options(nomem, nostack, preserves_flags, noreturn)
        );
    }
}
