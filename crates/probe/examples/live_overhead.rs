//! What full vmscan tracing costs under heavy reclaim on the running kernel, A/B in one run:
//! `cargo run --release -p pagetide-probe --example live_overhead [ROUNDS]`. Needs root.
//!
//! Each round runs the same small workload (a memory cgroup limited to 64 MiB with a swap file of its own) twice, traced and
//! not, in alternating order. The disk under the swap file makes elapsed times noisy, so CPU time is shown as well.

#[path = "../tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use pagetide_probe::meaning::RECLAIM_EVENTS;
use pagetide_probe::trace::{Capture, Instance, TraceSettings, Tracefs};

/// Milliseconds elapsed, and on CPUs.
fn run(pressure: &support::Pressure, traced: bool) -> Result<(f64, f64, usize), Box<dyn Error>> {
    let mut running = None;
    if traced {
        let settings = TraceSettings {
            events: RECLAIM_EVENTS.to_vec(),
            buffer_kib: 8 << 10,
            ..TraceSettings::default()
        };
        let mut capture = Capture::new(Instance::new(Tracefs::open()?, &settings)?)?;
        capture.start()?;
        running = Some(capture.in_background(Duration::from_millis(100))?);
    }
    let task = support::measured(pressure.start(96, 4));
    let mut size = 0;
    if let Some(running) = running {
        let trace = running.finish()?;
        if trace.meta.losses.any() {
            return Err(format!("events were lost: {:?}", trace.meta.losses).into());
        }
        size = trace.size();
    }
    let elapsed = (task.end.get() - task.begin.get()) as f64 / 1e6;
    let cpu = (task.user.get() + task.system.get()) as f64 / 1e6;
    Ok((elapsed, cpu, size))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[middle - 1] + values[middle]) / 2.0
    } else {
        values[middle]
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    if support::is_child() {
        support::workload();
        return Ok(());
    }
    let rounds = std::env::args()
        .nth(1)
        .map_or(Ok(12), |text| text.parse::<u32>())?;
    let pressure = match support::Pressure::new("overhead", 64, 192) {
        Ok(pressure) => pressure,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(());
        }
    };
    run(&pressure, false)?;
    let (mut elapsed, mut cpu) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let first = round % 2 == 0;
        let one = run(&pressure, first)?;
        let other = run(&pressure, !first)?;
        let (traced, plain) = if first { (one, other) } else { (other, one) };
        println!(
            "round {round:2}: {:7.0} ms traced, {:7.0} ms not; on CPU {:6.0} and {:6.0} ms; {} KiB of events",
            traced.0,
            plain.0,
            traced.1,
            plain.1,
            traced.2 >> 10
        );
        elapsed.push(traced.0 / plain.0);
        cpu.push(traced.1 / plain.1);
    }
    println!(
        "elapsed: {:+.2} % (median of {rounds} paired ratios)",
        100.0 * (median(elapsed) - 1.0)
    );
    println!("CPU time: {:+.2} %", 100.0 * (median(cpu) - 1.0));
    Ok(())
}
