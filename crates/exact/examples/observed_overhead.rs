//! Overhead of observed passes in virtual time: runs the same trials timed and observed.
//!
//! `cargo run --release -p pagetide-exact --example observed_overhead -- [SEEDS] [KERNEL]`. Virtual time has no noise,
//! but trajectories are chaotic: an observer that uses the CPU for a moment can make the kernel choose another victim
//! page. So a single trial may become faster as well as slower, and the overhead is the median over seeds.

use std::error::Error;

use pagetide_arena::{Arena, NoProgress, Options, Trial, VariantSpec};
use pagetide_exact::Exact;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{MemorySpec, Pass, RecordWriter, SwapSpec};

type Fault = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    let seeds: u64 = arguments.next().map_or(Ok(6), |text| text.parse())?;
    let kernel = arguments
        .next()
        .unwrap_or_else(|| "debian:bookworm/6.12".to_owned());
    let exact = Exact::open(Options::new(pagetide_kernel::cache_root()?), |text| {
        eprintln!("{text}");
    })?;
    println!("exact overhead of observing, {kernel}, {seeds} seeds");
    println!("scenario            swap         median    least     most");
    for scenario in ["smooth-sin-random", "swapbench"] {
        for swap in [SwapSpec::ZRAM, SwapSpec::Ssd(Nanos::from_micros(80))] {
            let mut more = Vec::new();
            for seed in 1..=seeds {
                let [timed, observed] = [Pass::Timed, Pass::Observed]
                    .map(|pass| elapsed(&exact, &kernel, scenario, swap, seed, pass));
                more.push(100.0 * (observed? / timed? - 1.0));
            }
            more.sort_by(f64::total_cmp);
            let at = |place: usize| more.get(place).copied().unwrap_or(f64::NAN);
            println!(
                "{scenario:19} {:10} {:+7.2} % {:+7.2} % {:+7.2} %",
                swap.to_string(),
                at(more.len() / 2),
                at(0),
                at(more.len() - 1)
            );
        }
    }
    Ok(())
}

/// Virtual time that the scenario of a trial takes, in nanoseconds.
fn elapsed(
    exact: &Exact,
    kernel: &str,
    scenario: &str,
    swap: SwapSpec,
    seed: u64,
    pass: Pass,
) -> Result<f64, Fault> {
    let trial = Trial {
        scenario: scenario.to_owned(),
        seed,
        memory: MemorySpec::Free(Bytes::from_mib(24)),
        swap,
        pass,
        variant: VariantSpec {
            kernel: kernel.to_owned(),
            ..VariantSpec::default()
        },
        ..Trial::default()
    };
    let prepared = exact.prepare(&trial)?;
    let folder = std::env::temp_dir().join(format!("pagetide-overhead-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut writer = RecordWriter::create(&folder)?;
    let finding = exact.run(&prepared, &mut writer, &NoProgress);
    drop(writer);
    let _ = std::fs::remove_dir_all(&folder);
    let results = finding?.results;
    match results.invalid.first() {
        Some(why) => Err(why.to_string().into()),
        None => Ok(results.elapsed.0 as f64),
    }
}
