//! Estimates how long a trial takes on this machine: the trial's work, computed from its sizes, divided by the
//! machine's speed.
//!
//! Work ([`work`]) is measured in laps. A lap ([`lap`]) is one run of a small benchmark loop whose instruction mix
//! resembles an emulator's. It is timed on this machine under its current load. If there are records of the same
//! scenario, they correct the remaining error.

mod faults;
mod sizes;
mod work;

use std::hint::black_box;
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{CpusSpec, Subject};

/// Returns the estimated wall-clock time of a trial; `None` if the trial's work is not known.
pub fn of(subject: &Subject) -> Option<Nanos> {
    time_of(work::laps(subject)?)
}

/// Returns the estimated wall-clock time to boot and save a guest with these CPUs, including the time to transfer files
/// of this size into it.
pub fn of_boot(files: Bytes, cpus: CpusSpec) -> Option<Nanos> {
    time_of(boot_laps(files, cpus))
}

/// Converts a wall-clock time on the reference machine of [`Arena::here`](pagetide_arena::Arena::here) to the expected
/// time on this machine.
pub fn here(there: Nanos) -> Option<Nanos> {
    time_of(there.secs() / LAP_THERE)
}

/// Seconds per lap (a run of the benchmark loop) on the reference machine, with laps running on both of its processors.
const LAP_THERE: f64 = 0.0150;

/// Returns the wall-clock time of this number of laps (runs of the benchmark loop) on this machine; `None` if it is out
/// of range.
fn time_of(laps: f64) -> Option<Nanos> {
    static LAP: OnceLock<f64> = OnceLock::new();
    let seconds = laps * *LAP.get_or_init(time_of_lap);
    Duration::try_from_secs_f64(seconds)
        .ok()
        .and_then(|time| u64::try_from(time.as_nanos()).ok())
        .map(Nanos)
}

/// Number of entries of the table that a lap walks. The table is larger than a core's private cache, as an emulator's
/// translated kernel code is.
const TABLE_ENTRIES: usize = 1 << 18;
/// Number of steps in a lap.
const STEPS: u32 = 1_000_000;
/// Wall-clock time for which the benchmark loop is timed on each CPU: several time slices, so that other processes run
/// as well. It is short, because every run of pagetide starts with this measurement.
const TIMED: Duration = Duration::from_millis(20);

/// Runs one lap: dependent loads and unpredictable jumps, which are what an emulator spends most of its time on.
fn lap(table: &[u32]) -> u32 {
    let mask = TABLE_ENTRIES - 1;
    let (mut at, mut sum) = (1_u32, 0_u32);
    for step in 0..STEPS {
        let next = table[at as usize & mask];
        sum = if next & 8 == 0 {
            sum.wrapping_add(next)
        } else {
            sum.rotate_left(5) ^ next
        };
        at = next.wrapping_add(sum >> 13).wrapping_add(step);
    }
    sum
}

/// Returns the seconds per lap on this machine under its current load. Laps run on every CPU, because trials run in
/// parallel too.
fn time_of_lap() -> f64 {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let table = &table();
    let times: Vec<f64> = thread::scope(|scope| {
        let timed: Vec<_> = (0..cpus)
            .map(|_| scope.spawn(|| time_of_laps(table)))
            .collect();
        timed
            .into_iter()
            .filter_map(|timed| timed.join().ok())
            .collect()
    });
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

/// Returns the seconds per lap on one CPU.
fn time_of_laps(table: &[u32]) -> f64 {
    black_box(lap(table));
    let (began, mut laps) = (Instant::now(), 0_u32);
    while laps == 0 || began.elapsed() < TIMED {
        black_box(lap(black_box(table)));
        laps += 1;
    }
    began.elapsed().as_secs_f64() / f64::from(laps)
}

fn table() -> Vec<u32> {
    let mut state = 88_172_645_463_325_252_u64;
    (0..TABLE_ENTRIES)
        .map(|_| {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32
        })
        .collect()
}

/// Laps (runs of the benchmark loop) that a boot takes: 0.7 to 1.8 billion instructions, most of them translated for
/// the first time, and saving the guest.
const BOOT_LAPS: f64 = 500.0;

/// Laps per MiB of files that are transferred to the guest. Files are read and verified by the host, written to its
/// disk by the guest, and saved with the guest. A boot took 9 s without files, and 22 and 33 s more with 256 and 512
/// MiB.
const BOOT_LAPS_PER_MIB: f64 = 4.0;

/// Time that each CPU beyond the first adds to a boot, relative to a boot with one CPU.
const BOOT_OF_CPU: f64 = 0.2;

fn boot_laps(files: Bytes, cpus: CpusSpec) -> f64 {
    let boot = BOOT_LAPS * (1.0 + BOOT_OF_CPU * f64::from(cpus.count.saturating_sub(1)));
    boot + BOOT_LAPS_PER_MIB * files.0 as f64 / Bytes::from_mib(1).0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_takes_longer_by_the_files_that_are_handed_over() {
        let [none, some, much] =
            [0, 64, 640].map(|mib| boot_laps(Bytes::from_mib(mib), CpusSpec::ONE));
        assert!(none < some && some < much);
        // The added time is proportional to the size.
        let ratio = (much - none) / (some - none);
        assert!((ratio - 10.0).abs() < 1e-6, "{ratio}");
        assert!(boot_laps(Bytes(0), CpusSpec::of(4)) > 1.5 * none);
    }

    #[test]
    fn a_lap_takes_a_plausible_time() {
        let lap = time_of_lap();
        assert!((1e-4..2.0).contains(&lap), "{lap}");
    }
}
