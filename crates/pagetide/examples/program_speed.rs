//! Measures the speed of users' programs in the exact arena, with the real `pagetide` program.
//!
//! `cargo run --release -p pagetide --example program_speed -- [quick]` prints three results. First: the median time
//! from the start of the emulator to the first instruction of the process that starts the user's program, and to the
//! end of a program of three instructions. Second: virtual seconds per real second, for programs of this machine and
//! for the programs of `campaigns/programs`. Packages of these programs are fetched if they are not in the cache.
//! Third: how the time of a trial grows with memory. Exits with status 1 if a limit is judged and exceeded, or if a
//! program did not run. `quick` means few trials and no packages. Names of campaign files (`sqlite3 redis`) select only
//! the speeds of these campaigns.

// An example may panic if it cannot continue.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use pagetide_testing::bound::bound;
use serde_json::Value;

/// The kernel of trials that do not name one.
const KERNEL: &str = "debian:bookworm/6.12";
/// Maximum median time in milliseconds from the emulator's start to the end of a program of three instructions, which
/// comes after the program's first instruction.
const FIRST_INSTRUCTION: f64 = 200.0;
/// Sizes of memory in MiB; the time of trials may grow proportionally.
const SIZES: [u32; 3] = [64, 256, 1024];
/// Allowed factor above proportional growth, for random variation.
const SLACK: f64 = 1.1;
/// Programs of this machine: name, memory and command.
const PROGRAMS: [(&str, &str, &[&str]); 4] = [
    (
        "dd",
        "32M",
        &["dd", "if=/dev/zero", "of=/dev/null", "bs=48M", "count=4"],
    ),
    ("sort", "12M", &["sort", "numbers"]),
    (
        "perl",
        "16M",
        &[
            "perl",
            "-e",
            "$h{$_} = \"word $_\" for 1 .. 100_000; print scalar keys %h",
        ],
    ),
    (
        "sh",
        "16M",
        &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done",
        ],
    ),
];

/// The program and its store.
struct Tool {
    program: PathBuf,
    store: tempfile::TempDir,
}

/// Measured times of one trial.
struct Trial {
    variant: String,
    /// Time to the first instruction in milliseconds.
    first: f64,
    /// Elapsed time of the trial's scenario in virtual seconds.
    elapsed: f64,
    /// Real time from the first instruction to the end in seconds.
    wall: f64,
    /// Real time of the whole trial in seconds.
    total: f64,
}

impl Tool {
    fn find() -> Self {
        let built = || {
            let own = std::env::current_exe().expect("this program lies somewhere");
            let folder = own.parent().and_then(Path::parent);
            folder
                .expect("examples lie below the program")
                .join("pagetide")
        };
        let store = tempfile::tempdir().expect("a folder for records can be made");
        std::fs::write(store.path().join("numbers"), numbers()).expect("a file can be written");
        Self {
            program: std::env::var_os("PAGETIDE").map_or_else(built, PathBuf::from),
            store,
        }
    }

    /// Runs the program and returns its output; an error with the reason if the program failed.
    fn call(&self, words: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.program)
            .args(words)
            .env("PAGETIDE_STORE", self.store.path().join("store"))
            .current_dir(self.store.path())
            .output()
            .map_err(|why| format!("starting {}: {why}", self.program.display()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = said
            .lines()
            .rev()
            .find(|line| line.starts_with("pagetide: "));
        Err(last.unwrap_or(&said).trim().to_owned())
    }

    /// Runs trials one after the other and returns their times.
    fn trials(&self, name: &str, words: &[&str]) -> Result<Vec<Trial>, String> {
        // The command line of a program comes last.
        let at = words
            .iter()
            .position(|word| *word == "--")
            .unwrap_or(words.len());
        let mut common = vec!["--jobs", "1", "--exit-zero", "--cache-limit", "20G"];
        // A campaign file contains its name.
        if at < words.len() {
            common.extend(["--name", name]);
        }
        self.call(&[&["run"], &words[..at], &common, &words[at..]].concat())?;
        let list = self.call(&[
            "list",
            "records",
            "--campaign",
            name,
            "--limit",
            "100",
            "--json",
        ])?;
        let list: Vec<Value> = serde_json::from_str(&list).map_err(|why| why.to_string())?;
        list.iter()
            .map(|row| self.trial(row["id"].as_str().unwrap_or_default()))
            .collect()
    }

    fn trial(&self, id: &str) -> Result<Trial, String> {
        let record = self.call(&["show", id, "--json"])?;
        let record: Value = serde_json::from_str(&record).map_err(|why| why.to_string())?;
        let seconds = |value: &Value| value.as_f64().unwrap_or(f64::NAN) / 1e9;
        let (wall, results) = (&record["wall"], &record["results"]);
        if results["invalid"]
            .as_array()
            .is_none_or(|why| !why.is_empty())
        {
            return Err(format!("invalid: {}", results["invalid"]));
        }
        Ok(Trial {
            variant: record["subject"]["variant"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            first: seconds(&wall["to_first_instruction"]) * 1e3,
            elapsed: seconds(&results["elapsed"]),
            wall: seconds(&wall["scenario"]),
            total: seconds(&wall["total"]),
        })
    }
}

/// Returns text with the numbers from 1 to 120,010 in pseudo-random order, one a line.
fn numbers() -> String {
    let mut lines = String::new();
    for n in 1..120_011_u64 {
        let _ = writeln!(lines, "{:012}", n * 7919 % 120_011);
    }
    lines
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A program of three instructions that exits immediately. Source: elf(5), exit(2).
fn that_ends() -> Vec<u8> {
    // exit(0): mov eax, 60; xor edi, edi; syscall.
    const CODE: [u8; 9] = [0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];
    const BASE: u64 = 0x40_0000;
    const HEADERS: u16 = 64 + 56;
    let (entry, size) = (
        BASE + u64::from(HEADERS),
        u64::from(HEADERS) + CODE.len() as u64,
    );
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // ET_EXEC, EM_X86_64, the version; one program header after this one.
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for word in [entry, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0; 4]);
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // PT_LOAD, readable and executable.
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0, BASE, BASE, size, size, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(CODE);
    file
}

/// Measures the time to the first instruction of a user's program. Returns false if the limit is judged and exceeded.
///
/// Records do not contain the time of this instruction. It comes after the first instruction of the process that starts
/// the program, which is recorded. It comes before the end of the program, which has only three instructions here. The
/// limit applies to this end.
fn first_instruction(tool: &Tool, trials: u32) -> bool {
    let path = tool.store.path().join("ends");
    std::fs::write(&path, that_ends()).expect("a file can be written");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, everybody).expect("a file can be made a program");
    let seeds = trials.to_string();
    let words = [
        "--kernel", KERNEL, "--memory", "64M", "--seeds", &seeds, "--", "./ends",
    ];
    match tool.trials("first", &words) {
        Ok(all) => {
            let starter = median(all.iter().map(|trial| trial.first).collect());
            let ends: Vec<f64> = all.iter().map(|t| t.first + t.wall * 1e3).collect();
            let most = ends.iter().copied().fold(0.0, f64::max);
            let end = median(ends);
            println!(
                "from the emulator's start to a program's first instruction, {trials} trials:"
            );
            println!("  no sooner than {starter:.0} ms in the median: then what starts it begins");
            println!(
                "  no later than {end:.0} ms in the median, {most:.0} ms at most: then a program of three instructions has \
                 ended"
            );
            bound(
                "a program's first instruction",
                end,
                FIRST_INSTRUCTION,
                "ms",
            )
        }
        Err(why) => failed("first instruction", &why),
    }
}

fn failed(what: &str, why: &str) -> bool {
    println!("{what}: {why}");
    false
}

fn speed(name: &str, trial: &Trial) {
    println!(
        "  {name:22} {:>9.3} s {:>9.3} s {:>8.2}",
        trial.elapsed,
        trial.wall,
        trial.elapsed / trial.wall
    );
}

/// Measures virtual seconds per real second; returns true if all programs ran.
fn speeds(tool: &Tool, packages: bool, asked: &[String]) -> bool {
    println!("program                   virtual        wall    ratio");
    let mut all_ran = true;
    for (name, memory, command) in PROGRAMS.into_iter().filter(|_| asked.is_empty()) {
        let options = [
            "--kernel", KERNEL, "--seeds", "1", "--memory", memory, "--file", "numbers", "--",
        ];
        match tool.trials(name, &[&options, command].concat()) {
            Ok(trials) => trials.iter().for_each(|trial| speed(name, trial)),
            Err(why) => all_ran = failed(name, &why),
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/programs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| packages && path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    let is_asked_for = |name: &String| {
        let named = |file: &PathBuf| file.file_stem().is_some_and(|stem| stem == name.as_str());
        files.iter().any(named)
    };
    if let Some(name) = asked.iter().find(|name| !is_asked_for(name)) {
        return failed(name, "there is no such file in campaigns/programs");
    }
    for file in files {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !asked.is_empty() && !asked.contains(&name) {
            continue;
        }
        let path = file.display().to_string();
        match tool.trials(&format!("program-{name}"), &[&path, "--seeds", "1"]) {
            Ok(mut trials) => {
                trials.sort_by(|a, b| a.variant.cmp(&b.variant));
                for trial in &trials {
                    speed(&format!("{name}, {}", trial.variant), trial);
                }
            }
            Err(why) => all_ran = failed(&name, &why),
        }
    }
    all_ran
}

/// Measures the time of a trial for increasing sizes of memory. The program fills and reads a buffer of 1.5 times the
/// memory, twice. Returns false if a trial fails, or if the growth is judged and too large.
fn growth(tool: &Tool) -> bool {
    println!("memory     trial     by memory");
    let mut first = None;
    let mut is_kept = true;
    for mib in SIZES {
        let (memory, buffer) = (format!("{mib}M"), format!("bs={}M", mib + mib / 2));
        let words = [
            "--kernel", KERNEL, "--seeds", "1", "--memory", &memory, "--",
        ];
        let command = ["dd", "if=/dev/zero", "of=/dev/null", &buffer, "count=2"];
        let trial = tool.trials(&format!("growth-{mib}"), &[&words[..], &command].concat());
        let time = match trial.as_deref() {
            Ok([trial]) => trial.total,
            Ok(_) => return failed(&memory, "no single trial"),
            Err(why) => return failed(&memory, why),
        };
        let (least, start) = *first.get_or_insert((mib, time));
        let share = time / start / f64::from(mib / least);
        println!("{memory:6} {time:>8.2} s {share:>9.2} of proportion");
        is_kept &= bound(
            &format!("a trial at {memory}, of its share"),
            share,
            SLACK,
            "",
        );
    }
    is_kept
}

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_quick = asked.iter().any(|word| word == "quick");
    let tool = Tool::find();
    let is_kept = if asked.is_empty() || is_quick {
        let first = first_instruction(&tool, if is_quick { 3 } else { 20 });
        let all_ran = speeds(&tool, !is_quick, &[]);
        first & all_ran & growth(&tool)
    } else {
        speeds(&tool, true, &asked)
    };
    if is_kept {
        ExitCode::SUCCESS
    } else {
        println!("a limit is not kept, or a program did not run");
        ExitCode::FAILURE
    }
}
