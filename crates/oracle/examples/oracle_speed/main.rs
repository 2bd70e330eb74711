//! Measures the speed and memory use of the oracle, and compares speed, memory and hits with libCacheSim if it is
//! installed.
//!
//! There are two strings of 20 million references. String z is zipf(1.0) over 1,000,000 pages. String p alternates runs
//! of 512 pages with 512 random pages out of 200,000. Memory is 10 % and 50 % of the distinct pages of a string. One
//! thread is used. Speeds are in million references per second of processor time. For the oracle they exclude
//! ingestion, for libCacheSim they include it. Memory of the oracle is what it allocates in addition to the string;
//! memory of libCacheSim is its resident memory without the mapped file.
//!
//! `PAGETIDE_PEER` is the path of libCacheSim's `cachesim`, built by hand from its public sources. Without it, the
//! columns of libCacheSim are left out. `PAGETIDE_TREE` is the path of the program compared for the OPT curve:
//! `cache_sim_sugumar_tree` of ScaleOPT's sources.
//!
//! `oracle_speed [DIVISOR] [PART…]`: a number divides the length of the strings. Parts are equal, z, p, policies,
//! curves, file, many, or the name of a policy.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

#[path = "../../tests/counting/mod.rs"]
mod counting;
mod peer;

use pagetide_oracle::{
    About, Choice, Job, POLICIES, ReferenceString, ask, curve, simulate, sweep, workers,
};
use pagetide_reference::{Pattern, Rng};
use peer::Peer;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

type Failure = Box<dyn std::error::Error>;

/// Names of our policies, each with libCacheSim's name. LIRS, 2Q and W-TinyLFU are defined differently there. The
/// policy random draws other random numbers.
const PEERS: [(&str, &str); 11] = [
    ("lru", "lru"),
    ("fifo", "fifo"),
    ("clock", "clock"),
    ("sieve", "sieve"),
    ("s3-fifo", "s3fifov0"),
    ("arc", "arc"),
    ("opt", "belady"),
    ("lirs", "lirs"),
    ("2q", "twoq"),
    ("random", "random"),
    ("w-tinylfu", "wtinylfu"),
];

/// Policies whose hits must equal libCacheSim's: our name, with the parameters that make it equal, and libCacheSim's
/// name.
const EQUAL: [(&str, &str); 8] = [
    ("lru", "lru"),
    ("fifo", "fifo"),
    ("clock", "clock"),
    ("sieve", "sieve"),
    ("s3-fifo", "s3fifov0"),
    ("arc", "arc"),
    ("opt", "belady"),
    ("lirs(demote=1)", "lirs"),
];

/// The twelve policies of the part `many` with libCacheSim's names; empty if libCacheSim does not have the policy.
const TWELVE: [(&str, &str); 12] = [
    ("opt", "belady"),
    ("lru", "lru"),
    ("fifo", "fifo"),
    ("random", "random"),
    ("clock", "clock"),
    ("2q", "twoq"),
    ("arc", "arc"),
    ("car", ""),
    ("lirs", "lirs"),
    ("w-tinylfu", "wtinylfu"),
    ("s3-fifo", "s3fifov0"),
    ("sieve", "sieve"),
];

/// Fraction of the pages that SHARDS samples.
const SAMPLED: f64 = 0.01;

/// Command line arguments.
struct Asked {
    divisor: u32,
    parts: Vec<String>,
}

impl Asked {
    fn read() -> Self {
        let (numbers, parts): (Vec<String>, Vec<String>) = std::env::args()
            .skip(1)
            .partition(|word| word.parse::<u32>().is_ok());
        let divisor = numbers.first().and_then(|word| word.parse().ok());
        Self {
            divisor: divisor.unwrap_or(1).max(1),
            parts,
        }
    }

    /// Returns true if `part` is to run: it was named, or no part of `all` was named.
    fn wants(&self, part: &str, all: &[&str]) -> bool {
        let any = self.parts.iter().any(|named| all.contains(&named.as_str()));
        !any || self.parts.iter().any(|named| named == part)
    }
}

const STRINGS: [&str; 2] = ["z", "p"];

fn main() -> Result<(), Failure> {
    let asked = Asked::read();
    let names: Vec<&str> = POLICIES.iter().map(|about| about.name).collect();
    let mut parts = vec!["equal", "policies", "curves", "file", "many"];
    parts.extend(&names);
    let length = 20_000_000 / asked.divisor;
    let folder = tempfile::tempdir()?;
    let short = folder.path().join("short.oracleGeneral.bin");
    write_entries(&short, &[0, 1, 2, 0, 1, 2, 3, 4])?;
    let peer = Peer::at_hand(&short)?;
    if peer.is_none() {
        println!("PAGETIDE_PEER names no cachesim of libCacheSim: its columns are left out");
    }
    if let Some(peer) = &peer
        && asked.wants("equal", &parts)
    {
        equal(peer, folder.path())?;
    }
    for name in STRINGS {
        if !asked.wants(name, &STRINGS) {
            continue;
        }
        let string = if name == "z" {
            zipf(length)?
        } else {
            runs(length)
        };
        let path = folder.path().join(format!("{name}.oracleGeneral.bin"));
        write_entries(&path, &string)?;
        drop(string);
        let start = now();
        let string = ReferenceString::read(&path, None, u64::MAX)?;
        println!(
            "\n{name}: {length} references, {} pages; read and numbered at {:.0} Mref/s",
            string.distinct(),
            rate(length, start)
        );
        let chosen: Vec<&About> = POLICIES
            .iter()
            .copied()
            .filter(|about| asked.wants("policies", &parts) || asked.wants(about.name, &parts))
            .collect();
        if !chosen.is_empty() {
            policies(&chosen, &string, &path, peer.as_ref())?;
        }
        if asked.wants("curves", &parts) {
            curves(&string, folder.path())?;
        }
        if asked.wants("file", &parts) {
            from_file(&string, &path, peer.as_ref())?;
        }
        if asked.wants("many", &parts) {
            many(&string, &path, peer.as_ref())?;
        }
    }
    Ok(())
}

/// Returns the processor time of this process so far, in seconds.
fn now() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn rate(references: u32, start: f64) -> f64 {
    f64::from(references) / (now() - start) / 1e6
}

/// Prints miss ratio, speed and memory of each policy at both sizes, on one thread. The oracle runs before and after
/// libCacheSim; the better speed counts.
fn policies(
    chosen: &[&'static About],
    string: &ReferenceString,
    path: &Path,
    peer: Option<&Peer>,
) -> Result<(), Failure> {
    let references = string.in_memory().unwrap_or_default();
    println!(
        "policy              pages  miss ratio   Mref/s      MB      peer  miss ratio      MB   ratio"
    );
    for about in chosen {
        for share in [10, 2] {
            let size = string.distinct() / share;
            let choice = Choice::default_of(about);
            let run = || -> Result<(f64, f64, f64), Failure> {
                let start = now();
                let (peak, hits) = counting::peak(|| {
                    let mut policy = choice.start(string.pages(), size);
                    policy.feed(references)
                });
                Ok((
                    rate(u32::try_from(references.len())?, start),
                    1.0 - hits as f64 / references.len() as f64,
                    peak as f64 / 1e6,
                ))
            };
            let (mut best, ratio, memory) = run()?;
            let name = PEERS.iter().find(|(ours, _)| *ours == about.name);
            let theirs = match (peer, name) {
                (Some(peer), Some((_, theirs))) => Some(peer.policy(path, theirs, size)?),
                _ => None,
            };
            best = best.max(run()?.0);
            print!(
                "{:16} {size:8} {ratio:11.4} {best:8.1} {memory:7.1}",
                about.name
            );
            if let Some(theirs) = theirs {
                print!(
                    "{:10.2} {:11.4} {:7.0} {:7.1}",
                    theirs.rate,
                    theirs.misses,
                    theirs.memory,
                    best / theirs.rate
                );
            }
            println!();
        }
    }
    Ok(())
}

/// Compares the faults with libCacheSim's on twenty strings of 10,000 references. With this length the four decimal
/// places of its miss ratios are exact.
fn equal(peer: &Peer, folder: &Path) -> Result<(), Failure> {
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
    for (ours, theirs) in EQUAL {
        let mut same = 0;
        let mut worst = 0_i64;
        for string in &strings {
            write_entries(&path, string)?;
            let string = ReferenceString::read(&path, None, u64::MAX)?;
            for size in [20, 100, 400] {
                let answer = ask(&string, &[Choice::parse(ours)?], &[size], 1, 1)?;
                let line = answer.lines.iter().find(|line| line.policy == ours);
                let found = line.map_or(0, |line| line.faults);
                let ratio = peer.policy(&path, theirs, size)?.misses;
                let difference =
                    i64::try_from(found)? - format!("{:.0}", ratio * 10_000.0).parse::<i64>()?;
                same += u32::from(difference == 0);
                worst = worst.max(difference.abs());
            }
        }
        println!("{ours:14} {same} of 60, at most {worst} apart");
    }
    Ok(())
}

/// Prints speed and memory of the exact LRU and OPT curves. With a peer for OPT, our OPT curve runs before and after
/// it, and the better speed counts.
fn curves(string: &ReferenceString, folder: &Path) -> Result<(), Failure> {
    let references = string.in_memory().unwrap_or_default();
    let length = u32::try_from(references.len())?;
    let start = now();
    let (peak, lru) = counting::peak(|| curve::lru(references, string.pages()));
    println!(
        "LRU curve, all sizes          {:8.1} Mref/s {:7.1} MB",
        rate(length, start),
        peak as f64 / 1e6
    );
    let run = || {
        let start = now();
        let (peak, opt) = counting::peak(|| curve::opt(references, string.pages()));
        (rate(length, start), peak as f64 / 1e6, opt)
    };
    let (mut best, memory, opt) = run();
    let mut theirs = None;
    if let Some(program) = peer::tree() {
        let text = folder.join("pages");
        let mut out = BufWriter::new(File::create(&text)?);
        for page in references {
            writeln!(out, "{page}")?;
        }
        out.flush()?;
        drop(out);
        theirs = Some(peer::tree_curve(&program, &text)?);
        std::fs::remove_file(&text)?;
        best = best.max(run().0);
    }
    print!("OPT curve, all sizes          {best:8.2} Mref/s {memory:7.1} MB");
    match theirs {
        Some(took) => {
            let theirs = f64::from(length) / took.processor / 1e6;
            println!("{theirs:10.3} {:7.0} {:7.1}", took.memory, best / theirs);
        }
        None => println!(),
    }
    let size = string.distinct() / 10;
    println!(
        "faults at {size} pages: LRU {}, OPT {}",
        lru.faults(size),
        opt.faults(size)
    );
    Ok(())
}

/// Prints the speed of runs that read the string from a file. The time includes reading and numbering, as it always
/// does for libCacheSim.
fn from_file(string: &ReferenceString, path: &Path, peer: Option<&Peer>) -> Result<(), Failure> {
    let length = u32::try_from(string.references())?;
    let size = string.distinct() / 10;
    println!("from the file                   Mref/s      MB      peer      MB   ratio");
    let print = |name: &str, ours: f64, memory: f64, theirs: Option<(f64, f64)>| {
        print!("{name:28} {ours:9.1} {memory:7.1}");
        match theirs {
            Some((rate, memory)) => println!("{rate:10.2} {memory:7.0} {:7.1}", ours / rate),
            None => println!(),
        }
    };
    for (name, theirs) in [("opt", "belady"), ("lru", "lru"), ("s3-fifo", "s3fifov0")] {
        let run = || -> Result<(f64, f64), Failure> {
            let start = now();
            let (peak, answer) = counting::peak(|| -> Result<(), Failure> {
                let string = ReferenceString::read(path, None, u64::MAX)?;
                let jobs = [Job {
                    choice: Choice::parse(name)?,
                    size,
                }];
                simulate(&string, &jobs, 1, 1)?;
                Ok(())
            });
            answer?;
            Ok((rate(length, start), peak as f64 / 1e6))
        };
        let (first, memory) = run()?;
        let theirs = match peer {
            Some(peer) => {
                let theirs = peer.policy(path, theirs, size)?;
                Some((theirs.rate, theirs.memory))
            }
            None => None,
        };
        print(
            &format!("{name}, one size"),
            first.max(run()?.0),
            memory,
            theirs,
        );
    }
    let run = || -> Result<(f64, f64, curve::SampledCurve), Failure> {
        let start = now();
        let (peak, sampled) = counting::peak(|| curve::shards_of_file(path, None, SAMPLED));
        Ok((rate(length, start), peak as f64 / 1e6, sampled?))
    };
    let (first, memory, sampled) = run()?;
    let theirs = match peer {
        Some(peer) => peer.shards(path, SAMPLED, string.distinct())?,
        None => None,
    };
    let theirs = theirs.map(|took| (f64::from(length) / took.processor / 1e6, took.memory));
    print(
        "LRU curve, SHARDS at 1 %",
        first.max(run()?.0),
        memory,
        theirs,
    );
    let (estimate, error) = sampled.faults(size);
    println!("faults of LRU at {size} pages by SHARDS: {estimate:.0} ± {error:.0}");
    Ok(())
}

/// Prints the time of two workloads that read the string from a file and use all cores: twelve policies at eight sizes,
/// and many settings of S3-FIFO.
fn many(string: &ReferenceString, path: &Path, peer: Option<&Peer>) -> Result<(), Failure> {
    let length = string.references() as f64;
    let choices: Vec<Choice> = TWELVE
        .iter()
        .map(|(ours, _)| Choice::parse(ours))
        .collect::<Result<_, _>>()?;
    let sizes: Vec<u32> = (1..=8).map(|part| string.distinct() / 10 * part).collect();
    let (start, wall) = (now(), Instant::now());
    let read = ReferenceString::read(path, None, u64::MAX)?;
    ask(&read, &choices, &sizes, 1, workers())?;
    drop(read);
    let (took, wall) = (now() - start, wall.elapsed().as_secs_f64());
    let runs = length * 96.0 / 1e6;
    println!(
        "12 policies × 8 sizes, from the file: {wall:.1} s, {took:.1} s of processor time ({:.1} Mref/s)",
        runs / took
    );
    if let Some(peer) = peer {
        let names: Vec<&str> = TWELVE
            .iter()
            .map(|(_, theirs)| *theirs)
            .filter(|theirs| !theirs.is_empty())
            .collect();
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let theirs = peer.simulate(path, &names.join(","), &sizes.join(","), workers())?;
        println!(
            "the peer, without CAR: {:.1} s, {:.1} s of processor time: {:.1} and {:.1} times as long",
            theirs.wall,
            theirs.processor,
            theirs.wall / wall,
            theirs.processor / took
        );
    }
    let settings = sweep(
        &Choice::parse("s3-fifo")?,
        "small=0.01:0.5:10,ghost=0.5:2:2",
    )?;
    let start = Instant::now();
    let answer = ask(string, &settings, &[string.distinct() / 10], 1, workers())?;
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

/// Writes the string in libCacheSim's format oracleGeneral, with the next access of each entry, which its Belady policy
/// needs.
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
