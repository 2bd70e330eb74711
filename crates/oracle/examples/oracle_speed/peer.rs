//! Runs other simulators, which must be built by hand, and reads the results that they print.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// The programs of libCacheSim.
pub struct Peer {
    cachesim: PathBuf,
    /// Name that the installed libCacheSim uses for the S3-FIFO of the paper.
    s3_fifo: &'static str,
}

/// Names of the paper's S3-FIFO in libCacheSim. Versions of 2025 call it `s3fifov0` and use `s3fifo` for another
/// policy. Later versions call it `s3fifo`.
const S3_FIFO: [&str; 2] = ["s3fifov0", "s3fifo"];

/// Results of libCacheSim for one policy at one size.
pub struct Theirs {
    /// Million references per second of processor time, including reading the file.
    pub rate: f64,
    /// Miss ratio, to four decimal places.
    pub misses: f64,
    /// Peak resident memory without the mapped file, in megabytes.
    pub memory: f64,
}

/// Resource usage and output of a program.
pub struct Took {
    /// Wall time in seconds.
    pub wall: f64,
    /// Processor time in seconds.
    pub processor: f64,
    /// Peak resident memory without mapped files, in megabytes.
    pub memory: f64,
    /// Standard output of the program.
    pub output: String,
}

impl Peer {
    /// Finds the programs of libCacheSim at the path in `PAGETIDE_PEER`; `None` if the variable is not set. Runs
    /// libCacheSim once on the short string of references at `path`, to find out its name of the paper's S3-FIFO.
    pub fn at_hand(path: &Path) -> Result<Option<Self>, Failure> {
        let Some(cachesim) = std::env::var_os("PAGETIDE_PEER").map(PathBuf::from) else {
            return Ok(None);
        };
        let mut why = None;
        for s3_fifo in S3_FIFO {
            let peer = Self {
                cachesim: cachesim.clone(),
                s3_fifo,
            };
            match peer.policy(path, S3_FIFO[0], 20) {
                Ok(_) => {
                    println!("libCacheSim calls S3-FIFO {s3_fifo}");
                    return Ok(Some(peer));
                }
                Err(failure) => why = Some(failure),
            }
        }
        why.map_or(Ok(None), Err)
    }

    /// Simulates one policy with memory of `size` pages.
    pub fn policy(&self, path: &Path, policy: &str, size: u32) -> Result<Theirs, Failure> {
        let took = self.simulate(path, policy, &size.to_string(), 1)?;
        let text = &took.output;
        let after = |word: &str| -> Option<f64> {
            let rest = &text[text.rfind(word)? + word.len()..];
            let word = rest.split_whitespace().next()?;
            word.trim_matches(',').parse().ok()
        };
        let misses = after("cache size").and(after("miss ratio"));
        let misses =
            misses.ok_or_else(|| format!("the peer printed what is not understood: {text}"))?;
        let references = std::fs::metadata(path)?.len() as f64 / 24.0;
        Ok(Theirs {
            rate: references / took.processor.max(0.001) / 1e6,
            misses,
            memory: took.memory,
        })
    }

    /// Simulates several policies at several sizes on `workers` threads. `policies` and `sizes` are lists with commas.
    pub fn simulate(
        &self,
        path: &Path,
        policies: &str,
        sizes: &str,
        workers: usize,
    ) -> Result<Took, Failure> {
        let mut command = timed(&self.cachesim);
        let policies = policies.replace(S3_FIFO[0], self.s3_fifo);
        command
            .arg(path)
            .args(["oracleGeneral", &policies, sizes])
            .args(["--ignore-obj-size", "1", "--num-thread"])
            .arg(workers.to_string());
        run(command)
    }

    /// Estimates the LRU curve up to `pages` pages from a fraction `rate` of the pages; `None` if `mrcProfiler` was not
    /// built.
    pub fn shards(&self, path: &Path, rate: f64, pages: u32) -> Result<Option<Took>, Failure> {
        let profiler = self.cachesim.with_file_name("mrcProfiler");
        if !profiler.exists() {
            return Ok(None);
        }
        let mut command = timed(&profiler);
        command
            .arg(path)
            .args(["oracleGeneral", "--algo=LRU", "--profiler=SHARDS"])
            .arg(format!("--profiler-params=FIX_RATE,{rate},42"))
            // If sizes were given as fractions of the pages, the program would read the file twice.
            .arg(format!("--size=1000B,{pages}B,100"))
            .arg("--ignore-obj-size");
        run(command).map(Some)
    }
}

/// Returns the path in `PAGETIDE_TREE`; `None` if the variable is not set.
///
/// It names `cache_sim_sugumar_tree` of ScaleOPT's sources, which finds the OPT curve by the tree of Sugumar and
/// Abraham. It must be built by hand.
pub fn tree() -> Option<OsString> {
    std::env::var_os("PAGETIDE_TREE")
}

/// Runs the program that [`tree`] found, which computes the OPT curve of a text file with one page per line.
pub fn tree_curve(program: &OsStr, path: &Path) -> Result<Took, Failure> {
    let mut command = timed(Path::new(program));
    command.arg(path).arg("1");
    run(command)
}

/// Returns a command that runs `program` and then prints the processor time used, in seconds, on standard error.
fn timed(program: &Path) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["-c", "TIMEFORMAT='%U %S'; time \"$@\"", "bash"])
        .arg(program);
    command
}

fn run(mut command: Command) -> Result<Took, Failure> {
    let (output, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let start = Instant::now();
    let mut child = command
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(errors.try_clone()?)
        .spawn()?;
    let mut memory = 0.0_f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        memory = memory.max(anonymous_of_children(child.id()));
        std::thread::sleep(Duration::from_millis(5));
    };
    let wall = start.elapsed().as_secs_f64();
    let (output, errors) = (text_of(output)?, text_of(errors)?);
    if !status.success() {
        return Err(format!("the peer failed ({status}): {output}{errors}").into());
    }
    // Before the times, libCacheSim prints a colour escape sequence that ends in m.
    let last = errors.lines().next_back().unwrap_or_default();
    let words = last
        .rsplit('m')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let seconds: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    if seconds.len() != 2 {
        return Err(format!("the peer ended without its times: {output}{errors}").into());
    }
    Ok(Took {
        wall,
        processor: seconds.iter().sum(),
        memory,
        output,
    })
}

fn text_of(mut file: File) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the anonymous memory of the children of a process, in megabytes; 0 if it cannot be read.
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
