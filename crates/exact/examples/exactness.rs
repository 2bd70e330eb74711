//! Checks that trials repeat exactly, and measures the time that a trial takes before and after its scenario.
//!
//! `cargo run --release -p pagetide-exact --example exactness -- [REPEATS] [SIDE_BY_SIDE] [cpus=N] [KERNEL…]` repeats one
//! swapping trial of random references on each kernel and each kind of swap. It prints the number of different digests
//! (one, if all is well). It also prints the median time from starting the emulator to the scenario's first
//! instruction, and from the scenario's end to the stored record. Exits with status 1 if digests differ.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use pagetide_arena::{Arena, NoProgress, Options, Trial, VariantSpec};
use pagetide_exact::Exact;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{CpusSpec, Maker, MemorySpec, RecordWriter, SwapSpec};

type Fault = Box<dyn Error + Send + Sync>;

/// Results of the trials of one kernel with one kind of swap.
#[derive(Default)]
struct Tally {
    digests: BTreeMap<String, usize>,
    first: Vec<Nanos>,
    stored: Vec<Duration>,
    invalid: usize,
}

fn main() -> Result<ExitCode, Fault> {
    let mut arguments = std::env::args().skip(1);
    let repeats: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let side_by_side: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let mut kernels: Vec<String> = arguments.collect();
    let cpus = kernels
        .iter()
        .find_map(|word| word.strip_prefix("cpus="))
        .map_or(Ok(CpusSpec::ONE), str::parse)?;
    kernels.retain(|word| !word.starts_with("cpus="));
    if kernels.is_empty() {
        kernels = ["debian:bookworm", "debian:bookworm/6.12", "debian:sid"]
            .map(String::from)
            .to_vec();
    }
    let exact = Exact::open(Options::new(pagetide_kernel::cache_root()?), |text| {
        eprintln!("{text}");
    })?;
    println!(
        "{}, {repeats} trials by each of {side_by_side} side by side",
        exact.emulator().version
    );
    println!("kernel               swap      trials digests invalid  first instruction  to stored");
    let mut differ = false;
    for kernel in &kernels {
        for swap in [SwapSpec::ZRAM, SwapSpec::Ssd(Nanos::from_micros(80))] {
            let tally = repeat(&exact, kernel, (swap, cpus), repeats, side_by_side)?;
            let trials: usize = tally.digests.values().sum();
            println!(
                "{kernel:20} {:9} {trials:6} {:7} {:7}  {:>17}  {:>9}",
                swap.to_string(),
                tally.digests.len(),
                tally.invalid,
                median(tally.first).unwrap_or_default().to_string(),
                format!(
                    "{:.1} ms",
                    median(tally.stored).unwrap_or_default().as_secs_f64() * 1e3
                ),
            );
            for (digest, count) in &tally.digests {
                println!("    {count:4} × {}", &digest[..16]);
            }
            differ |= tally.digests.len() > 1;
        }
    }
    Ok(ExitCode::from(u8::from(differ)))
}

/// Runs the same trial `repeats` times in each of `side_by_side` threads, and returns their digests and times.
fn repeat(
    exact: &Exact,
    kernel: &str,
    (swap, cpus): (SwapSpec, CpusSpec),
    repeats: usize,
    side_by_side: usize,
) -> Result<Tally, Fault> {
    let trial = Trial {
        scenario: "smooth-sin-random".to_owned(),
        params: BTreeMap::from([("refs".to_owned(), "8192".to_owned())]),
        seed: 7,
        memory: MemorySpec::Free(Bytes::from_mib(12)),
        swap,
        cpus,
        variant: VariantSpec {
            kernel: kernel.to_owned(),
            ..VariantSpec::default()
        },
        ..Trial::default()
    };
    let prepared = exact.prepare(&trial)?;
    let folder = std::env::temp_dir().join(format!("pagetide-exactness-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let tally = Mutex::new(Tally::default());
    let one = || -> Result<(), Fault> {
        for _ in 0..repeats {
            let mut writer = RecordWriter::create(&folder)?;
            let finding = exact.run(&prepared, &mut writer, &NoProgress)?;
            let ended = finding.ended;
            let mut record = prepared.record(Maker::default(), finding);
            let path = writer.finish(&mut record)?;
            let stored = ended.elapsed();
            std::fs::remove_file(path)?;
            let mut tally = tally.lock().map_err(|_| "another thread panicked")?;
            tally.invalid += usize::from(!record.is_valid());
            *tally.digests.entry(record.digest).or_default() += 1;
            tally.first.push(record.wall.to_first_instruction);
            tally.stored.push(stored);
        }
        Ok(())
    };
    let result = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..side_by_side).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a thread panicked".into()))
            })
            .collect::<Result<Vec<()>, Fault>>()
    });
    let _ = std::fs::remove_dir_all(&folder);
    result?;
    tally
        .into_inner()
        .map_err(|_| "another thread panicked".into())
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
