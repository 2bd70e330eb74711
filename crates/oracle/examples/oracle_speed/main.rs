//! How fast the oracle is and how much memory it takes, and how its hits compare with libCacheSim's where that is at hand.
//!
//! Two strings of 20 million references: z, zipf(1.0) over 1,000,000 pages, and p, runs of 512 pages alternating with 512
//! random ones over 200,000; at 10 % and 50 % of their distinct pages. One thread; the figures are million references a
//! second of processor time, ingestion apart in ours and included in the peer's. `PAGETIDE_PEER` names libCacheSim's `cachesim`, built by hand from its
//! public sources; without it, its columns are left out. Memory is what the oracle allocates beyond the string, and of the peer what is
//! resident beyond its mapped file.
//!
//! `oracle_speed [DIVISOR] [PART…]`: a number divides the length of the strings; parts are equal, z, p, policies, curves, many, or
//! the name of a policy.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../tests/counting/mod.rs"]
mod counting;

use pagetide_oracle::{About, Choice, POLICIES, ReferenceString, ask, curve, sweep, workers};
use pagetide_reference::{Pattern, Rng};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

type Failure = Box<dyn std::error::Error>;

/// Policies with their names there. LIRS, 2Q and W-TinyLFU differ by definition, and random by its numbers.
const PEERS: [(&str, &str); 11] = [
    ("lru", "lru"),
    ("fifo", "fifo"),
    ("clock", "clock"),
    ("sieve", "sieve"),
    ("s3-fifo", "s3fifo"),
    ("arc", "arc"),
    ("opt", "belady"),
    ("lirs", "lirs"),
    ("2q", "twoq"),
    ("random", "random"),
    ("w-tinylfu", "wtinylfu"),
];

/// Those whose hits are to be equal, with parameters where there is a choice.
const EQUAL: [(&str, &str); 8] = [
    ("lru", "lru"),
    ("fifo", "fifo"),
    ("clock", "clock"),
    ("sieve", "sieve"),
    ("s3-fifo", "s3fifo"),
    ("arc", "arc"),
    ("opt", "belady"),
    ("lirs(demote=1)", "lirs"),
];

/// What was asked for.
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

    /// Whether a part of `all` is wanted: where none of them is named, all are.
    fn wants(&self, part: &str, all: &[&str]) -> bool {
        let any = self.parts.iter().any(|named| all.contains(&named.as_str()));
        !any || self.parts.iter().any(|named| named == part)
    }
}

const STRINGS: [&str; 2] = ["z", "p"];

fn main() -> Result<(), Failure> {
    let asked = Asked::read();
    let names: Vec<&str> = POLICIES.iter().map(|about| about.name).collect();
    let mut parts = vec!["equal", "policies", "curves", "many"];
    parts.extend(&names);
    let length = 20_000_000 / asked.divisor;
    let folder = tempfile::tempdir()?;
    let peer = std::env::var_os("PAGETIDE_PEER").map(PathBuf::from);
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
            policies(&chosen, &string, &path, peer.as_deref())?;
        }
        if asked.wants("curves", &parts) {
            curves(&string, &path)?;
        }
        if asked.wants("many", &parts) {
            many(&string, &path)?;
        }
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

/// Policies at both sizes, on one thread; ours runs before and after the peer's, and the better counts.
fn policies(
    chosen: &[&'static About],
    string: &ReferenceString,
    path: &Path,
    peer: Option<&Path>,
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
                (Some(peer), Some((_, theirs))) => Some(ask_peer(peer, path, theirs, size)?),
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

/// What the peer said.
struct Theirs {
    /// Million references a second of processor time, its reading of the file included.
    rate: f64,
    /// The miss ratio, to four places.
    misses: f64,
    /// Most resident memory beside its mapped file, in megabytes.
    memory: f64,
}

/// Runs the peer.
fn ask_peer(peer: &Path, path: &Path, policy: &str, size: u32) -> Result<Theirs, Failure> {
    // Processor time, as bash reports it: the machine may have other work.
    let mut child = Command::new("bash")
        .args(["-c", "TIMEFORMAT=%U; time \"$@\"", "bash"])
        .arg(peer)
        .arg(path)
        .args(["oracleGeneral", policy, &size.to_string()])
        .args(["--ignore-obj-size", "1", "--num-thread", "1"])
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut memory = 0.0_f64;
    while child.try_wait()?.is_none() {
        memory = memory.max(anonymous_of_children(child.id()));
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
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
        (Some(seconds), Some(misses)) => {
            let references = std::fs::metadata(path)?.len() as f64 / 24.0;
            Ok(Theirs {
                rate: references / seconds.max(0.001) / 1e6,
                misses,
                memory,
            })
        }
        _ => Err(format!("the peer printed what is not understood: {text}").into()),
    }
}

/// Anonymous memory of a process's children, in megabytes; 0 where that cannot be read.
fn anonymous_of_children(process: u32) -> f64 {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let of = |child: &str| -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    let kilobytes: f64 = children
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(of)
        .sum();
    kilobytes * 1024.0 / 1e6
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
                let ratio = ask_peer(peer, &path, theirs, size)?.misses;
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

fn curves(string: &ReferenceString, path: &Path) -> Result<(), Failure> {
    let references = string.in_memory().unwrap_or_default();
    let length = u32::try_from(references.len())?;
    let start = now();
    let (peak, lru) = counting::peak(|| curve::lru(references, string.pages()));
    println!(
        "LRU curve, all sizes          {:8.1} Mref/s {:7.1} MB",
        rate(length, start),
        peak as f64 / 1e6
    );
    let start = now();
    let (peak, opt) = counting::peak(|| curve::opt(references, string.pages()));
    println!(
        "OPT curve, all sizes          {:8.1} Mref/s {:7.1} MB",
        rate(length, start),
        peak as f64 / 1e6
    );
    let start = now();
    let (peak, sampled) = counting::peak(|| curve::shards_of_file(path, None, 0.01));
    let sampled = sampled?;
    println!(
        "SHARDS 1 %, from the file     {:8.1} Mref/s {:7.1} MB",
        rate(length, start),
        peak as f64 / 1e6
    );
    let size = string.distinct() / 10;
    let (estimate, error) = sampled.faults(size);
    println!(
        "faults at {size} pages: LRU {}, OPT {}, LRU by SHARDS {estimate:.0} ± {error:.0}",
        lru.faults(size),
        opt.faults(size)
    );
    let start = now();
    let string = ReferenceString::read(path, None, u64::MAX)?;
    ask(&string, &[Choice::opt()], &[size], 1, 1)?;
    println!(
        "OPT, one size, from the file  {:8.1} Mref/s",
        rate(length, start)
    );
    Ok(())
}

/// Twelve policies at eight sizes from the file, and settings of S3-FIFO, on all cores.
fn many(string: &ReferenceString, path: &Path) -> Result<(), Failure> {
    let length = f64::from(u32::try_from(string.references())?);
    let choices: Vec<Choice> = POLICIES
        .iter()
        .take(12)
        .map(|about| Choice::default_of(about))
        .collect();
    let sizes: Vec<u32> = (1..=8).map(|part| string.distinct() / 10 * part).collect();
    let start = now();
    let read = ReferenceString::read(path, None, u64::MAX)?;
    ask(&read, &choices, &sizes, 1, workers())?;
    drop(read);
    let took = now() - start;
    println!(
        "12 policies × 8 sizes, from the file {:8.1} Mref/s of all together, {took:.1} s of processor time",
        length * 96.0 / took / 1e6
    );
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
