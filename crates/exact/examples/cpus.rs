//! Measures the processor time that trials with several CPUs take.
//!
//! `cargo run --release -p pagetide-exact --example cpus -- [KERNEL [TURN]]` boots a guest with 1, 2 and 4 CPUs, which
//! take turns of length TURN, such as 20us, and runs a trial in which all CPUs are busy. For each number of CPUs it
//! prints the processor time of the boot, and of a second on the guest's clock, which is the sum over its CPUs. The time
//! with one CPU is the reference. Exits with status 1 if bounds are judged (`pagetide_testing::bound`) and the second
//! takes more than 1.3 times as long with 2 CPUs or 1.6 times as long with 4 CPUs, or a boot takes more than 1.5 times
//! as long.

use std::collections::BTreeMap;
use std::error::Error;
use std::os::unix::fs::symlink;
use std::process::ExitCode;
use std::time::Duration;

use pagetide_arena::{Arena, NoProgress, Options, Trial, VariantSpec};
use pagetide_exact::Exact;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{CpusSpec, Maker, MemorySpec, RecordWriter, SwapSpec};
use pagetide_testing::bound::bound;
use pagetide_testing::usage::processor_of_children;

type Fault = Box<dyn Error + Send + Sync>;

/// Numbers of CPUs, each with the largest allowed ratio to one CPU for a second and for a boot.
const LIMITS: [(u32, f64, f64); 3] = [(1, 1.0, 1.0), (2, 1.3, 1.5), (4, 1.6, 1.5)];
/// Number of measured trials of each machine.
const TRIALS: u32 = 3;

fn main() -> Result<ExitCode, Fault> {
    let turn = std::env::args().nth(2);
    let kernel = std::env::args().nth(1);
    let kernel = kernel.unwrap_or_else(|| "debian:bookworm/6.12".to_owned());
    // The cache has no snapshots, so that each guest is booted.
    let folder = tempfile::tempdir()?;
    let root = pagetide_kernel::cache_root()?;
    for shared in ["kernels", "pins", "emulators"] {
        if root.join(shared).exists() {
            symlink(root.join(shared), folder.path().join(shared))?;
        }
    }
    let exact = Exact::open(Options::new(folder.path().to_owned()), |text| {
        eprintln!("{text}");
    })?;
    println!("CPUs   boot  factor  of a guest's second  factor");
    let (mut first, mut are_kept) = (None, true);
    for (cpus, most, most_of_boot) in LIMITS {
        let machine: CpusSpec = match &turn {
            Some(turn) if cpus > 1 => format!("{cpus}:{turn}").parse()?,
            _ => CpusSpec::of(cpus),
        };
        let (boot, second) = measure(&exact, &kernel, machine, folder.path())?;
        let (boot_of_one, of_one) = *first.get_or_insert((boot, second));
        let factors = [boot / boot_of_one, second / of_one];
        println!(
            "{cpus:4} {boot:4.1} s {:7.2} {second:17.2} s {:7.2}",
            factors[0], factors[1]
        );
        if cpus > 1 {
            let boots = format!("boot with {cpus} CPUs / with one");
            let seconds = format!("guest's second with {cpus} CPUs / with one");
            are_kept &= bound(&boots, factors[0], most_of_boot, "");
            are_kept &= bound(&seconds, factors[1], most, "");
        }
    }
    Ok(ExitCode::from(u8::from(!are_kept)))
}

/// Processor time in seconds of a boot with these CPUs, and of a second on the guest's clock.
fn measure(
    exact: &Exact,
    kernel: &str,
    cpus: CpusSpec,
    folder: &std::path::Path,
) -> Result<(f64, f64), Fault> {
    let trial = Trial {
        scenario: "swapbench".to_owned(),
        params: BTreeMap::from([
            ("processes".to_owned(), "8".to_owned()),
            ("size".to_owned(), "6M".to_owned()),
            ("locked".to_owned(), "4M".to_owned()),
        ]),
        seed: 1,
        memory: MemorySpec::Free(Bytes::from_mib(32)),
        swap: SwapSpec::ZRAM,
        cpus,
        variant: VariantSpec {
            kernel: kernel.to_owned(),
            ..VariantSpec::default()
        },
        ..Trial::default()
    };
    let prepared = exact.prepare(&trial)?;
    let mut times = Vec::new();
    let mut elapsed = Nanos(0);
    for _ in 0..=TRIALS {
        let before = processor_of_children();
        let mut writer = RecordWriter::create(folder)?;
        let finding = exact.run(&prepared, &mut writer, &NoProgress)?;
        let mut record = prepared.record(Maker::default(), finding);
        if !record.is_valid() {
            return Err(format!("invalid: {:?}", record.results.invalid).into());
        }
        elapsed = record.results.elapsed;
        std::fs::remove_file(writer.finish(&mut record)?)?;
        // Another thread ends the emulator.
        std::thread::sleep(Duration::from_millis(500));
        times.push(processor_of_children().saturating_sub(before).as_secs_f64());
    }
    let trials = times.split_off(1);
    let mean = trials.iter().sum::<f64>() / f64::from(TRIALS);
    Ok((times[0] - mean, mean / elapsed.secs()))
}
