//! Several CPUs: a spinner on each, and the timers that end their turns.
//!
//! The emulator runs its CPUs one after the other in one thread. It divides the time until the machine's next timer
//! evenly among the CPUs, so without further timers a turn could last a whole tick. The guest therefore programs
//! timers of the HPET such that one is due at the end of each round, in which each CPU has a turn. These timers cause
//! no interrupts. The kernel does not use the HPET (`hpet=disable`).

use std::fs::File;
use std::os::fd::AsFd;

use pagetide_record::CpusSpec;
use pagetide_system::{Mapping, Source};

use crate::error::{GuestError, io};
use crate::idle::Spinner;

/// Physical address of the HPET's registers. Source: QEMU `include/hw/timer/hpet.h`, `HPET_BASE`.
const HPET: u64 = 0xfed0_0000;
/// Size of the mapping of the HPET's registers in bytes: one page.
const LENGTH: usize = 4096;

// Offsets of registers in bytes. Source: IA-PC HPET specification 1.0a, table 2.
const PERIOD: usize = 0x004;
const CONFIG: usize = 0x010;
const COUNTER: usize = 0x0f0;
/// Offset of the first timer's configuration register from [`HPET`].
const TIMER: usize = 0x100;
/// Offset of a timer's comparator from its configuration register.
const COMPARATOR: usize = 8;
/// Distance between the registers of two timers in bytes.
const TIMER_BYTES: usize = 0x20;

/// Bit of the HPET's general configuration register: the main counter runs.
const RUNNING: u32 = 1;
/// Bits of a timer's configuration: the timer is periodic, its comparator is set by the next write, and it has 32 bits.
/// The bit that enables its interrupt is not set.
const PERIODIC: u32 = 1 << 3 | 1 << 6 | 1 << 8;
/// Period of the main counter in femtoseconds: 10 ns.
const TICK_FEMTOSECONDS: u32 = 10_000_000;
/// Period of the main counter in nanoseconds.
const TICK_NANOS: u64 = 10;
/// Number of reads after which a counter that has not changed is considered stopped.
const READS: u32 = 1000;

/// Pins `first` to the first CPU and starts a spinner on each of the other CPUs. Fails if the kernel runs fewer or more
/// CPUs than the machine has.
pub fn start_spinners(cpus: CpusSpec, first: &Spinner) -> Result<(), GuestError> {
    // SAFETY: plain system call.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    if online != i64::from(cpus.count) {
        return Err(GuestError::Cpus {
            wanted: cpus.count,
            online,
        });
    }
    first.pin(0)?;
    for cpu in 1..cpus.count {
        Spinner::start()?.pin(cpu)?;
    }
    Ok(())
}

/// Starts the timers that end the turns of CPUs. One of them is due at the end of each round, in which each CPU has a
/// turn. Fails if the HPET's counter does not run in steps of 10 ns.
pub fn start(cpus: CpusSpec) -> Result<(), GuestError> {
    let on = || "the timers of turns (HPET)".to_owned();
    let file = File::options()
        .read(true)
        .write(true)
        .open("/dev/mem")
        .map_err(io("opening", "/dev/mem"))?;
    let source = Source::File(file.as_fd(), HPET);
    let registers = Mapping::new(source, LENGTH).map_err(io("mapping", on()))?;
    let base = registers.start();
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "a page and offsets of registers, which are multiples of four"
    )]
    let register = |at: usize| base.wrapping_add(at).cast::<u32>();
    // SAFETY: the offsets lie within the mapping and are aligned; the device's registers are accessed by 32 bits, and this
    // process is the only one that uses them.
    let read = |at: usize| unsafe { register(at).read_volatile() };
    // SAFETY: as above.
    let write = |at: usize, value: u32| unsafe { register(at).write_volatile(value) };
    let round = cpus.turn.0 * u64::from(cpus.count) / TICK_NANOS;
    let round = u32::try_from(round).unwrap_or(u32::MAX / 2);
    write(CONFIG, 0);
    write(COUNTER, 0);
    write(COUNTER + 4, 0);
    // Two timers alternate. A timer that becomes the machine's next one when it is set again makes the emulator end the
    // turns of all CPUs early, one after the other, and the first ones get longer turns than the last ones.
    for (first, timer) in [(round, TIMER), (2 * round, TIMER + TIMER_BYTES)] {
        write(timer, PERIODIC);
        write(timer + COMPARATOR, first);
        write(timer + COMPARATOR, 2 * round);
    }
    write(CONFIG, RUNNING);
    let before = read(COUNTER);
    let counts = (0..READS).any(|_| read(COUNTER) > before);
    if counts && read(PERIOD) == TICK_FEMTOSECONDS {
        Ok(())
    } else {
        let why = std::io::Error::other("it does not count in steps of 10 ns");
        Err(io("starting", on())(why))
    }
}
