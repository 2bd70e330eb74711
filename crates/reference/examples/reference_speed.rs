//! Measures nanoseconds per reference for each pattern: one by one and in batches.
//!
//! `cargo run --release -p pagetide-reference --example reference_speed [PAGES] [REFS]`

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use pagetide_reference::{PackedFile, Pattern, References, catalogue, write_binary};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let pages = arguments.next().map_or(Ok(50_000), |text| text.parse())?;
    let refs = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    println!("{pages} pages, {refs} references; best of 5, nanoseconds a reference");
    println!(
        "{:24} {:>8} {:>8} {:>12}",
        "pattern", "single", "batch", "held bytes"
    );
    for about in catalogue() {
        let Ok(pattern) = about.name.parse::<Pattern>() else {
            continue;
        };
        if pattern.path().is_some() {
            continue;
        }
        let references = pattern.references(pages, refs, 1)?;
        show(about.name, &references, pattern.held_bytes(pages));
    }
    for name in ["linear", "random"] {
        let mut bytes = Vec::new();
        let references = name.parse::<Pattern>()?.references(pages, refs, 1)?;
        write_binary(&mut bytes, pages, refs, references)?;
        let packed = PackedFile::new(&bytes, pages)?;
        show(
            &format!("{name}, packed"),
            &packed.references(refs),
            bytes.len() as u64,
        );
    }
    Ok(())
}

/// Measures a string of references one by one and in batches, and prints both times and the heap memory `held`.
fn show(name: &str, references: &References<'_>, held: u64) {
    let single = best(references, |references| {
        for page in references {
            black_box(page);
        }
    });
    let batch = best(references, |mut references| {
        let mut batch = [0; 1024];
        while references.fill(&mut batch) > 0 {
            black_box(&batch);
        }
    });
    println!("{name:24} {single:8.1} {batch:8.1} {held:12}");
}

/// Shortest of five runs of `take`, in nanoseconds per reference.
fn best<'a>(references: &References<'a>, take: impl Fn(References<'a>)) -> f64 {
    let refs = references.left() as f64;
    let run = || {
        let references = references.clone();
        let start = Instant::now();
        take(references);
        start.elapsed().as_secs_f64() * 1e9 / refs
    };
    (0..5).map(|_| run()).fold(f64::INFINITY, f64::min)
}
