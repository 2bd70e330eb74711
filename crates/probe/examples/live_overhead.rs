//! Measures the cost of full vmscan tracing under heavy reclaim on the running kernel, as an A/B comparison in one run:
//! `cargo run --release -p pagetide-probe --example live_overhead [PASSES]`. Needs root. 500 passes, enough to
//! distinguish 2 % from noise on a virtual disk, take eight minutes.
//!
//! A series of processes in a memory cgroup limited to 64 MiB, with a swap file, each write 96 MiB repeatedly. Between
//! its passes a process enables and disables the events itself, in the order on, off, off, on. So every traced pass has
//! an adjacent untraced one, and drift (of the disk, of other load) affects both alike. The output is the median of the
//! ratios of adjacent passes with its 95 % confidence interval (order statistics of the binomial distribution, for any
//! distribution of noise).

#[path = "../tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pagetide_probe::meaning::RECLAIM_EVENTS;
use pagetide_probe::trace::{Capture, Instance, TraceSettings, Tracefs};
use pagetide_quantity::Nanos;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Number of passes at the start of a process that do not count, because memory and swap are still filling.
const WARM_UP: usize = 4;
/// Number of passes of a process that count.
const COUNTED: usize = 20;
/// Number of consecutive processes without a counted pass after which the measurement is given up.
const KILLED: usize = 5;
/// Time limit for one process: hundreds of times longer than its passes take on a slow disk.
const PATIENCE: Duration = Duration::from_mins(3);
/// Largest acceptable cost of tracing, in percent.
const GOAL: f64 = 2.0;

/// Median of the ratios and the bounds of its 95 % interval, as a change in percent: a ratio of 1.02 is 2. `None`
/// without ratios. For fewer than six ratios the bounds are the extremes, whose coverage is lower.
fn median(mut ratios: Vec<f64>) -> Option<[f64; 3]> {
    ratios.sort_by(f64::total_cmp);
    let n = ratios.len();
    // The largest rank whose tail probability is at most 2.5 %: P(B < k) for B binomial with n trials of probability
    // one half.
    let (mut tail, mut term) = (0.0, 0.5_f64.powi(i32::try_from(n).ok()?));
    let mut rank = 0;
    for k in 0..n {
        tail += term;
        if tail > 0.025 {
            break;
        }
        rank = k + 1;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let low = ratios.get(rank.saturating_sub(1)).copied()?;
    let high = ratios.get(n - rank.max(1)).copied()?;
    let middle = (ratios.get((n - 1) / 2)? + ratios.get(n / 2)?) / 2.0;
    Some([percent(middle), percent(low), percent(high)])
}

/// A flag that is set by signals, so that swap, cgroup and tracing instance are removed after an interrupt too.
fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn main() -> Result<(), Box<dyn Error>> {
    if support::is_child() {
        support::workload();
        return Ok(());
    }
    let stop = stop_flag()?;
    let stopped = || stop.load(Ordering::Relaxed);
    let passes = std::env::args()
        .nth(1)
        .map_or(Ok(500), |text| text.parse::<usize>())?;
    let pressure = match support::Pressure::new("overhead", 64, 192) {
        Ok(pressure) => pressure,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(());
        }
    };
    if let Err(why) = pressure.wait_when_full() {
        println!("{why}: its workload may be killed now and then");
    }
    let settings = TraceSettings {
        events: RECLAIM_EVENTS.to_vec(),
        buffer_kib: 8 << 10,
        ..TraceSettings::default()
    };
    let mut capture = Capture::new(Instance::new(Tracefs::open()?, &settings)?)?;
    let instance = capture.instance().path().to_owned();
    capture.start()?;
    let running = support::Background::new(capture, Duration::from_millis(100));
    let each = u64::try_from(WARM_UP + COUNTED)?;
    let (mut taken, mut killed, mut in_vain) = (Vec::new(), 0, 0);
    while taken.len() < passes && in_vain < KILLED && !stopped() {
        let child = pressure.start_toggling(&instance, 96, each);
        let (passes, was_killed) = support::passes(child, PATIENCE, &stopped);
        // Whole groups of four, so that the number of traced and untraced passes is equal.
        let counted = passes.get(WARM_UP..).unwrap_or_default();
        let (counted, _) = counted.as_chunks::<4>();
        taken.extend(counted.iter().flatten().copied());
        killed += usize::from(was_killed);
        in_vain = if counted.is_empty() { in_vain + 1 } else { 0 };
    }
    if stopped() {
        return Err("stopped before there were enough passes".into());
    }
    if taken.is_empty() {
        println!(
            "live overhead cannot be measured here: each of {killed} workloads was killed, for lack of memory in its cgroup, before it had a pass that counts"
        );
        return Ok(());
    }
    let trace = running.finish()?;
    if trace.meta.losses.any() {
        return Err(format!("events were lost: {:?}", trace.meta.losses).into());
    }
    let pairs = taken.chunks_exact(2);
    let (traced, plain): (Vec<_>, Vec<_>) = pairs
        .map(|pair| {
            if pair[0].traced {
                (pair[0], pair[1])
            } else {
                (pair[1], pair[0])
            }
        })
        .unzip();
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let events = trace.events().count();
    println!(
        "live overhead of full vmscan tracing: {} pairs of passes, {events} events, load average {}{}",
        traced.len(),
        load.split(' ').next().unwrap_or_default(),
        match killed {
            0 => String::new(),
            1 => ", one process was killed for lack of memory".to_owned(),
            _ => format!(", {killed} processes were killed for lack of memory"),
        }
    );
    for (name, of) in [
        (
            "elapsed",
            (|pass| pass.elapsed) as fn(&support::Pass) -> Nanos,
        ),
        ("CPU time", |pass| pass.cpu),
    ] {
        let ratios = traced
            .iter()
            .zip(&plain)
            .map(|(a, b)| of(a).0 as f64 / of(b).0.max(1) as f64)
            .collect();
        let Some([middle, low, high]) = median(ratios) else {
            println!("{name:9} too few passes");
            continue;
        };
        let verdict = if high <= GOAL {
            "within the goal of 2 %"
        } else if low > GOAL {
            "more than the goal of 2 %"
        } else {
            "the interval holds the goal of 2 %: take more passes, or a quieter machine"
        };
        println!("{name:9} {middle:+.2} % (95 %: {low:+.2} to {high:+.2} %), {verdict}");
    }
    Ok(())
}
