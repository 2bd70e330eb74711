//! Measures how fast stored traces are decoded on one core: `cargo run --release -p pagetide-probe --example
//! decode_speed [TRACE]`.
//!
//! Decodes the same raw buffers (by default the golden trace of the tests) repeatedly for about a second each: the ring
//! buffer alone, with all decoded fields, and with the sums of the reclaim table.

use std::error::Error;

use pagetide_probe::meaning::{Decoder, ReclaimObserver};
use pagetide_probe::trace::TraceFile;
use rustix::time::{ClockId, clock_gettime};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reclaim-6.18.trace");

/// CPU time of this thread in seconds. Unlike elapsed time, it does not depend on other load.
fn on_core() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Repeats one pass over the trace for about a second. Returns the total number of events and the events per second of
/// CPU time.
fn measure(mut pass: impl FnMut() -> u64) -> (u64, f64) {
    let start = on_core();
    let mut events = 0;
    while on_core() - start < 1.0 {
        events += pass();
    }
    (events, events as f64 / (on_core() - start))
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or(" unknown").trim().to_owned()
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| GOLDEN.to_owned());
    let trace = TraceFile::read(std::fs::File::open(&path)?)?;
    let mut decoder = Decoder::for_trace(&trace)?;
    println!("{path}: {} bytes of raw events", trace.size());
    println!("peak memory before: {}", peak_memory());

    let ring = measure(|| trace.events().map(|event| u64::from(event.id > 0)).sum());
    let mut checksum = 0_u64;
    let fields = measure(|| {
        let mut count = 0;
        for raw in trace.events() {
            if let Some(traced) = decoder.decode(&raw) {
                checksum = checksum.wrapping_add(traced.time ^ u64::from(traced.pid));
            }
            count += 1;
        }
        count
    });
    let sums = measure(|| {
        let mut observer = ReclaimObserver::new(&trace.meta);
        let mut count = 0;
        for raw in trace.events() {
            if let Some(traced) = decoder.decode(&raw) {
                observer.observe(&traced);
            }
            count += 1;
        }
        count
    });
    for (what, (events, speed)) in [
        ("ring buffer alone", ring),
        ("with all fields", fields),
        ("with the reclaim sums", sums),
    ] {
        println!(
            "{what:24} {:8.1} million events/s ({events} events)",
            speed / 1e6
        );
    }
    println!(
        "peak memory after: {} (checksum {checksum:x})",
        peak_memory()
    );
    Ok(())
}
