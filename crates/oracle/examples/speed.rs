//! How fast the oracle is, and how its hits compare with libCacheSim's where that is at hand.
//!
//! Two strings of 20 million references: z, zipf(1.0) over 1,000,000 pages, and p, runs of 512 pages alternating with 512
//! random ones over 200,000; at 10 % and 50 % of their distinct pages. One thread; the figures are million references a
//! second of processor time, ingestion apart in ours and included in the peer's. `PAGETIDE_PEER` names libCacheSim's `cachesim`, built by hand from its
//! public sources; without it, its columns are left out. An argument divides the length of the strings.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use pagetide_oracle::{Choice, POLICIES, Trace, ask, curve, sweep, workers};
use pagetide_reference::{Pattern, Rng};

type Failure = Box<dyn std::error::Error>;

/// Policies with their names there. LIRS and 2Q differ by definition.
const PEERS: [(&str, &str); 9] = [
    ("lru", "lru"),
    ("fifo", "fifo"),
    ("clock", "clock"),
    ("sieve", "sieve"),
    ("s3-fifo", "s3fifo"),
    ("arc", "arc"),
    ("opt", "belady"),
    ("lirs", "lirs"),
    ("2q", "twoq"),
];

fn main() -> Result<(), Failure> {
    let divisor: u32 = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let length = 20_000_000 / divisor.max(1);
    let folder = tempfile::tempdir()?;
    let peer = std::env::var_os("PAGETIDE_PEER").map(PathBuf::from);
    if peer.is_none() {
        println!("PAGETIDE_PEER names no cachesim of libCacheSim: its columns are left out");
    }
    if let Some(peer) = &peer {
        equal(peer, folder.path())?;
    }
    for (name, string) in [("z", zipf(length)?), ("p", runs(length))] {
        let path = folder.path().join(format!("{name}.oracleGeneral.bin"));
        write_entries(&path, &string)?;
        let start = now();
        let trace = Trace::read(&path, None, u64::MAX)?;
        println!(
            "\n{name}: {length} references, {} pages; read and numbered at {:.0} Mref/s",
            trace.distinct(),
            rate(length, start)
        );
        policies(&trace, &path, peer.as_deref())?;
        curves(&trace, &path)?;
        many(&trace)?;
    }
    Ok(())
}

/// Processor time of this process so far, in seconds.
fn now() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn rate(references: u32, start: f64) -> f64 {
    f64::from(references) / (now() - start) / 1e6
}

/// Every policy at both sizes, on one thread, best of two.
fn policies(trace: &Trace, path: &Path, peer: Option<&Path>) -> Result<(), Failure> {
    let references = trace.in_memory().unwrap_or_default();
    println!("policy              pages  miss ratio   Mref/s      peer  miss ratio   ratio");
    for about in POLICIES {
        for share in [10, 2] {
            let size = trace.distinct() / share;
            let choice = Choice::default_of(about);
            let mut best = 0.0_f64;
            let mut ratio = 0.0;
            for _ in 0..2 {
                let start = now();
                let mut policy = choice.start(trace.pages(), size);
                let hits = policy.feed(references);
                ratio = 1.0 - hits as f64 / references.len() as f64;
                best = best.max(rate(u32::try_from(references.len())?, start));
            }
            print!("{:16} {size:8} {ratio:11.4} {best:8.1}", about.name);
            let name = PEERS.iter().find(|(ours, _)| *ours == about.name);
            if let (Some(peer), Some((_, theirs))) = (peer, name) {
                let (their_rate, ratio) = ask_peer(peer, path, theirs, size)?;
                print!("{their_rate:10.2} {ratio:11.4} {:7.1}", best / their_rate);
            }
            println!();
        }
    }
    Ok(())
}

/// Speed by processor time, its reading of the file included, and the miss ratio it prints, to four places.
fn ask_peer(peer: &Path, path: &Path, policy: &str, size: u32) -> Result<(f64, f64), Failure> {
    // Processor time, as bash reports it: the machine may have other work.
    let output = Command::new("bash")
        .args(["-c", "TIMEFORMAT=%U; time \"$@\"", "bash"])
        .arg(peer)
        .arg(path)
        .args(["oracleGeneral", policy, &size.to_string()])
        .args(["--ignore-obj-size", "1", "--num-thread", "1"])
        .current_dir(std::env::temp_dir())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = |word: &str| -> Option<f64> {
        let rest = &text[text.rfind(word)? + word.len()..];
        let word = rest.split_whitespace().next()?;
        word.trim_matches(',').parse().ok()
    };
    let times = String::from_utf8_lossy(&output.stderr).into_owned();
    // The peer leaves a colour sequence, which ends in m, before it.
    let seconds = times
        .split_whitespace()
        .next_back()
        .and_then(|text| text.rsplit('m').next())
        .and_then(|text| text.parse::<f64>().ok());
    match (seconds, after("cache size").and(after("miss ratio"))) {
        (Some(seconds), Some(ratio)) => {
            let references = std::fs::metadata(path)?.len() as f64 / 24.0;
            Ok((references / seconds.max(0.001) / 1e6, ratio))
        }
        _ => Err(format!("the peer printed what is not understood: {text}").into()),
    }
}

/// Misses of the peer and ours on twenty strings of 10,000 references, so that its four places are exact.
fn equal(peer: &Path, folder: &Path) -> Result<(), Failure> {
    println!("\nmisses equal the peer's, of 20 strings at 3 sizes:");
    let mut rng = Rng::new(5);
    let path = folder.join("short.oracleGeneral.bin");
    let strings: Vec<Vec<u32>> = (0..20)
        .map(|number: u32| {
            let pages = 500 + number * 150;
            (0..10_000_u32)
                .map(|time| match number % 4 {
                    0 => rng.below_u32(pages),
                    1 => rng.below_u32(rng.clone().below_u32(pages).max(1)),
                    2 if time % 3 == 0 => time / 3 % pages,
                    2 => rng.below_u32(pages / 8),
                    _ => (time / 2000 * 97 + rng.below_u32(pages / 3)) % pages,
                })
                .collect()
        })
        .collect();
    for (ours, theirs) in PEERS {
        let mut same = 0;
        let mut worst = 0_i64;
        for string in &strings {
            write_entries(&path, string)?;
            let trace = Trace::read(&path, None, u64::MAX)?;
            for size in [20, 100, 400] {
                let answer = ask(&trace, &[Choice::parse(ours)?], &[size], 1, 1)?;
                let line = answer.lines.iter().find(|line| line.policy == ours);
                let found = line.map_or(0, |line| line.faults);
                let (_, ratio) = ask_peer(peer, &path, theirs, size)?;
                let difference =
                    i64::try_from(found)? - format!("{:.0}", ratio * 10_000.0).parse::<i64>()?;
                same += u32::from(difference == 0);
                worst = worst.max(difference.abs());
            }
        }
        println!("{ours:10} {same} of 60, at most {worst} apart");
    }
    Ok(())
}

fn curves(trace: &Trace, path: &Path) -> Result<(), Failure> {
    let references = trace.in_memory().unwrap_or_default();
    let length = u32::try_from(references.len())?;
    let start = now();
    let lru = curve::lru(references, trace.pages());
    println!(
        "LRU curve, all sizes          {:8.1} Mref/s",
        rate(length, start)
    );
    let start = now();
    let opt = curve::opt(references, trace.pages());
    println!(
        "OPT curve, all sizes          {:8.1} Mref/s",
        rate(length, start)
    );
    let start = now();
    let sampled = curve::shards_of_file(path, None, 0.01)?;
    println!(
        "SHARDS 1 %, from the file     {:8.1} Mref/s",
        rate(length, start)
    );
    let size = trace.distinct() / 10;
    let (estimate, error) = sampled.faults(size);
    println!(
        "faults at {size} pages: LRU {}, OPT {}, LRU by SHARDS {estimate:.0} ± {error:.0}",
        lru.faults(size),
        opt.faults(size)
    );
    let start = now();
    let trace = Trace::read(path, None, u64::MAX)?;
    ask(&trace, &[Choice::opt()], &[size], 1, 1)?;
    println!(
        "OPT, one size, from the file  {:8.1} Mref/s",
        rate(length, start)
    );
    Ok(())
}

/// Twelve policies at eight sizes, and a thousand settings of S3-FIFO, on all cores.
fn many(trace: &Trace) -> Result<(), Failure> {
    let length = f64::from(u32::try_from(trace.references())?);
    let choices: Vec<Choice> = POLICIES
        .iter()
        .take(12)
        .map(|about| Choice::default_of(about))
        .collect();
    let sizes: Vec<u32> = (1..=8).map(|part| trace.distinct() / 10 * part).collect();
    let start = Instant::now();
    ask(trace, &choices, &sizes, 1, workers())?;
    println!(
        "12 policies × 8 sizes         {:8.1} Mref/s of all together on {} cores",
        length * 96.0 / start.elapsed().as_secs_f64() / 1e6,
        workers()
    );
    let settings = sweep(
        &Choice::parse("s3-fifo")?,
        "small=0.01:0.5:10,ghost=0.5:2:2",
    )?;
    let start = Instant::now();
    let answer = ask(trace, &settings, &[trace.distinct() / 10], 1, workers())?;
    let seconds: f64 = answer.lines.iter().map(|line| line.seconds).sum();
    println!(
        "{} settings of S3-FIFO: {:.1} s, {seconds:.1} s of processor time; a thousand take {:.0} s",
        settings.len(),
        start.elapsed().as_secs_f64(),
        seconds / answer.lines.len() as f64 * 1000.0
    );
    Ok(())
}

fn zipf(length: u32) -> Result<Vec<u32>, Failure> {
    let pattern: Pattern = "zipf(1.0)".parse()?;
    let mut string = vec![0; length as usize];
    pattern
        .references(1_000_000, u64::from(length), 1)?
        .fill(&mut string);
    Ok(string)
}

fn runs(length: u32) -> Vec<u32> {
    let mut rng = Rng::new(1);
    let mut string = Vec::with_capacity(length as usize + 1024);
    while string.len() < length as usize {
        let first = rng.below_u32(200_000);
        string.extend((0..512).map(|page| (first + page) % 200_000));
        string.extend((0..512).map(|_| rng.below_u32(200_000)));
    }
    string.truncate(length as usize);
    string
}

/// libCacheSim's form, the next access included, which its Belady needs.
fn write_entries(path: &Path, string: &[u32]) -> Result<(), Failure> {
    let mut next = vec![-1_i64; string.len()];
    let mut last = std::collections::HashMap::new();
    for (time, page) in string.iter().enumerate().rev() {
        if let Some(later) = last.insert(*page, time) {
            next[time] = i64::try_from(later)?;
        }
    }
    let mut out = BufWriter::new(File::create(path)?);
    for (time, page) in string.iter().enumerate() {
        out.write_all(&u32::from(time > 0).to_le_bytes())?;
        out.write_all(&u64::from(page + 1).to_le_bytes())?;
        out.write_all(&1_u32.to_le_bytes())?;
        out.write_all(&next[time].to_le_bytes())?;
    }
    out.flush()?;
    Ok(())
}
