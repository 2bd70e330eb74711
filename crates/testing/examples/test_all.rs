//! Runs every test and prints the time of each: `make test-all`. Arguments select the tests whose names contain one of
//! them.
//!
//! Programs whose tests need no guest run one process for all their tests, as with `cargo test`. Each test of the
//! program `guests` runs in a separate process, so that its time is measured; as many run in parallel as there are
//! processors. Tests marked `#[ignore = "test-all"]` run here. Tests ignored for another reason are started by other
//! tests or write golden files.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Instant;

/// Beginning of the attribute that marks tests which only this program runs.
const MARK: &str = "#[ignore = \"test-all";
/// Name of the test program whose tests boot guests.
const GUESTS: &str = "guests";

/// A test process to start: a test program with arguments.
struct Job {
    /// Name of the job in the output: the program, and the test if the job runs only one test.
    name: String,
    program: PathBuf,
    /// Folder of the program's crate; cargo runs the tests in this folder.
    folder: PathBuf,
    arguments: Vec<String>,
}

/// Sums over the results of all test programs.
#[derive(Default)]
struct Sum {
    passed: usize,
    failed: usize,
    /// Names of the jobs in which a test failed.
    faults: Vec<String>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    let marked = marked(&root.join("crates"))?;
    let mut queue = VecDeque::new();
    for (program, folder) in programs(&root)? {
        queue.extend(jobs(&program, &folder, &marked, &words)?);
    }
    // Tests with guests start first, because they take longest.
    queue
        .make_contiguous()
        .sort_by_key(|job| !job.name.starts_with(GUESTS));
    if queue.is_empty() {
        return Err(format!("no test has a name with {}", words.join(" or ")).into());
    }
    let skips = root.join("target/skips");
    let _ = fs::remove_file(&skips);
    let (queue, sum) = (Mutex::new(queue), Mutex::new(Sum::default()));
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = next(&queue) {
                    run(&job, &skips, &sum);
                }
            });
        }
    });
    let skipped = fs::read_to_string(&skips).unwrap_or_default();
    let skipped: BTreeSet<&str> = skipped.lines().collect();
    for line in &skipped {
        println!("skipped: {}", line.replace('\t', ": "));
    }
    let sum = sum.into_inner().map_err(|_| "a thread panicked")?;
    let tests: BTreeSet<&str> = skipped
        .iter()
        .filter_map(|line| line.split('\t').next())
        .collect();
    println!(
        "{} passed, {} failed, {} skipped",
        sum.passed.saturating_sub(tests.len()),
        sum.failed,
        tests.len()
    );
    for fault in &sum.faults {
        println!("failed: {fault}");
    }
    Ok(ExitCode::from(u8::from(!sum.faults.is_empty())))
}

fn next(queue: &Mutex<VecDeque<Job>>) -> Option<Job> {
    queue.lock().ok()?.pop_front()
}

/// Builds all test programs. Returns the path of each program and the folder of its crate.
fn programs(root: &Path) -> Result<Vec<(PathBuf, PathBuf)>, Box<dyn Error>> {
    // cargo is started by its name, as make starts it. If it were started by the path in the variable CARGO, it would
    // build everything again.
    let output = Command::new("cargo")
        .args([
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--test",
            "*",
            "--no-run",
        ])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("the tests could not be built".into());
    }
    let text = String::from_utf8(output.stdout)?;
    let tests = text
        .lines()
        .filter(|line| line.contains("\"test\":true},\"features\""));
    let value = |line: &str, key: &str| {
        let (_, rest) = line.split_once(&format!("\"{key}\":\""))?;
        Some(PathBuf::from(rest.split_once('"')?.0))
    };
    let programs = tests.filter_map(|line| {
        let folder = value(line, "manifest_path")?.parent()?.to_owned();
        Some((value(line, "executable")?, folder))
    });
    let mut programs: Vec<(PathBuf, PathBuf)> = programs.collect();
    programs.sort();
    Ok(programs)
}

/// Names of the test functions marked with [`MARK`] in all sources of a folder.
fn marked(folder: &Path) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            names.extend(marked(&path)?);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path)?;
            let after = text.split(MARK).skip(1);
            let functions = after.filter_map(|rest| rest.split_once("fn ")?.1.split('(').next());
            names.extend(functions.map(str::to_owned));
        }
    }
    Ok(names)
}

/// The jobs for one test program. A job runs all its tests, except that each test of the program [`GUESTS`] and each
/// marked test is a separate job.
fn jobs(
    program: &Path,
    folder: &Path,
    marked: &BTreeSet<String>,
    words: &[String],
) -> Result<Vec<Job>, Box<dyn Error>> {
    let file = program.file_stem().unwrap_or_default().to_string_lossy();
    let name = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
    let list = |option: &[&str]| -> Result<BTreeSet<String>, Box<dyn Error>> {
        let output = Command::new(program)
            .args(["--list", "--format", "terse"])
            .args(option)
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(tests.map(str::to_owned).collect())
    };
    let ignored = list(&["--ignored"])?;
    let is_marked =
        |test: &String| marked.contains(test.rsplit("::").next().unwrap_or(test.as_str()));
    let is_wanted = |test: &String| {
        let full = format!("{name} {test}");
        words.is_empty() || words.iter().any(|word| full.contains(word))
    };
    let all = list(&[])?;
    let wanted: Vec<&String> = all
        .iter()
        .filter(|test| is_wanted(test) && (!ignored.contains(*test) || is_marked(test)))
        .collect();
    let one = |test: &String| Job {
        name: format!("{name} {test}"),
        program: program.to_owned(),
        folder: folder.to_owned(),
        arguments: vec![
            "--exact".to_owned(),
            "--include-ignored".to_owned(),
            test.clone(),
        ],
    };
    if name == GUESTS {
        return Ok(wanted.into_iter().map(one).collect());
    }
    let (long, short): (Vec<&String>, Vec<&String>) =
        wanted.into_iter().partition(|test| ignored.contains(*test));
    let mut jobs: Vec<Job> = long.into_iter().map(one).collect();
    if !short.is_empty() {
        jobs.push(Job {
            name: name.to_owned(),
            program: program.to_owned(),
            folder: folder.to_owned(),
            arguments: std::iter::once("--exact".to_owned())
                .chain(short.into_iter().cloned())
                .collect(),
        });
    }
    Ok(jobs)
}

/// Runs a job, prints its time and adds its result to `sum`. The output of a failed job is printed too.
fn run(job: &Job, skips: &Path, sum: &Mutex<Sum>) {
    let start = Instant::now();
    let output = Command::new(&job.program)
        .args(&job.arguments)
        .current_dir(&job.folder)
        .env("PAGETIDE_SKIPS", skips)
        .env("PAGETIDE_FUZZ_SECONDS", "2")
        .output();
    let took = start.elapsed().as_secs_f64();
    let (text, is_good) = match output {
        Ok(output) => (
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
            output.status.success(),
        ),
        Err(why) => (format!("starting {}: {why}", job.program.display()), false),
    };
    let count = |word: &str| -> usize {
        text.lines()
            .filter_map(|line| line.strip_prefix("test result: "))
            .filter_map(|line| {
                let (before, _) = line.split_once(&format!(" {word};"))?;
                before.rsplit(' ').next()?.parse::<usize>().ok()
            })
            .sum()
    };
    println!(
        "{took:7.1} s  {}  {}",
        if is_good { "ok    " } else { "FAILED" },
        job.name
    );
    if !is_good {
        println!("{text}");
    }
    if let Ok(mut sum) = sum.lock() {
        sum.passed += count("passed");
        sum.failed += count("failed");
        if !is_good {
            sum.faults.push(job.name.clone());
        }
    }
}
