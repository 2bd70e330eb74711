//! The spinner: a process that keeps the CPU from halting.
//!
//! When an emulated CPU halts, the emulator's main loop advances virtual time to the next timer. This races with the
//! thread of the CPU, so results are no longer exact. While the CPU executes, its thread runs every timer at its exact
//! instruction. So a process of the lowest scheduling class spins whenever no other task is runnable. The emulator
//! translates a `nop` to nothing, so a long sequence of them makes idle virtual time cost almost no wall-clock time.
//!
//! Each change of the address space makes the emulator discard all address translations, which it then looks up again
//! one by one. Switching from a process to a spinner in another address space and back would cost as much as the fault
//! that the process waits for. The idle task of a real kernel has no address space. So, from the ready point on, the
//! spinner runs in the address space of the workload's main process, because this process is the one that waits in most
//! trials.

use std::arch::asm;
use std::io;

use crate::error::{GuestError, io};

/// Stack size of a spinner in bytes; the spinner only makes two system calls.
const STACK: usize = 16 << 10;

/// A process that spins so that the CPU does not halt; identified by its process ID.
#[derive(Debug)]
pub struct Spinner(libc::pid_t);

impl Spinner {
    /// Starts a spinner as a child of this process. The spinner locks its pages when they are first used, so that
    /// reclaim does not evict them.
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

    /// Returns an object without a spinner process, for machines whose CPU may halt.
    pub fn none() -> Self {
        Self(0)
    }

    /// Starts a spinner in the address space of this process. It becomes a child of this process's parent, which must
    /// be told the spinner's ID.
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

    /// Returns the process ID of the spinner.
    pub fn id(&self) -> libc::pid_t {
        self.0
    }

    /// Returns the handle of a spinner, given its process ID. The spinner must be a child of this process.
    pub fn child(id: libc::pid_t) -> Self {
        Self(id)
    }

    /// Restricts the spinner to one CPU.
    pub fn pin(&self, cpu: u32) -> Result<(), GuestError> {
        // SAFETY: an empty set of CPUs is all zeros; the set lives through the call.
        let done = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu as usize, &mut set);
            libc::sched_setaffinity(self.0, size_of::<libc::cpu_set_t>(), &raw const set)
        };
        match done {
            0 => Ok(()),
            _ => Err(io("pinning the idle spinner to CPU", cpu.to_string())(
                io::Error::last_os_error(),
            )),
        }
    }

    /// Stops the spinner with SIGSTOP. Another spinner must be running.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// Continues a stopped spinner with SIGCONT.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Kills the spinner and waits for its end. The kernel frees the spinner's address space if no other process uses
    /// it.
    pub fn end(self) {
        if self.0 == 0 {
            return;
        }
        self.signal(libc::SIGKILL);
        // SAFETY: waits for a child of ours; if it has already been reaped, the call fails immediately.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), 0) };
    }

    fn signal(&self, signal: libc::c_int) {
        // Zero would mean all processes of this group.
        if self.0 == 0 {
            return;
        }
        // SAFETY: plain system call. Process IDs are not reused in the short life of a guest.
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
    // The whole loop is in one page, because the emulator needs a table lookup to jump to a block in another page.
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
