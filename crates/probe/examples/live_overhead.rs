//! What full vmscan tracing costs under heavy reclaim on the running kernel, A/B in one run:
//! `cargo run --release -p pagetide-probe --example live_overhead [ROUNDS]`. Needs root.
//!
//! Each round runs the same small workload (a memory cgroup limited to 64 MiB with a swap file of its own) twice, traced and
//! not, in alternating order. Other load on the machine and the disk under the swap file make single times noisy: medians
//! of pairs, and the least disturbed runs, are shown of elapsed and CPU time. Run it on a quiet machine.

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

/// The value below which this share of the others lies.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    // The index is between 0 and the last one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let at = (share * last as f64).round() as usize;
    values[at.min(last)]
}

/// How much more, in percent.
fn more(traced: f64, plain: f64) -> f64 {
    100.0 * (traced / plain - 1.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    if support::is_child() {
        support::workload();
        return Ok(());
    }
    println!(
        "load average: {}",
        std::fs::read_to_string("/proc/loadavg")?.trim()
    );
    let rounds = std::env::args()
        .nth(1)
        .map_or(Ok(20), |text| text.parse::<u32>())?;
    let pressure = match support::Pressure::new("overhead", 64, 192) {
        Ok(pressure) => pressure,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(());
        }
    };
    run(&pressure, false)?;
    let [
        mut elapsed,
        mut cpu,
        mut traced_ms,
        mut plain_ms,
        mut traced_cpu,
        mut plain_cpu,
    ] = [const { Vec::new() }; 6];
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
        elapsed.push(more(traced.0, plain.0));
        cpu.push(more(traced.1, plain.1));
        traced_ms.push(traced.0);
        plain_ms.push(plain.0);
        traced_cpu.push(traced.1);
        plain_cpu.push(plain.1);
    }
    let fastest = more(quantile(&mut traced_ms, 0.1), quantile(&mut plain_ms, 0.1));
    let fastest_cpu = more(
        quantile(&mut traced_cpu, 0.1),
        quantile(&mut plain_cpu, 0.1),
    );
    println!(
        "elapsed:  {fastest:+.2} % between the tenth percentiles (least disturbed), {:+.2} % median of {rounds} pairs ({:+.1} to {:+.1} %)",
        quantile(&mut elapsed, 0.5),
        quantile(&mut elapsed, 0.25),
        quantile(&mut elapsed, 0.75)
    );
    println!(
        "CPU time: {fastest_cpu:+.2} % between the tenth percentiles, {:+.2} % median",
        quantile(&mut cpu, 0.5)
    );
    Ok(())
}
