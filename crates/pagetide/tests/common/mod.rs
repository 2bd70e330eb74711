//! Shared code of the end-to-end tests: the real binary, a separate store for each test, one shared cache.

pub mod rot;
pub mod trial;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use pagetide_testing::{Need, skip};
use tempfile::TempDir;

/// The kernel on which the tests run.
pub const KERNEL: &str = "debian:bookworm/6.12";
/// A workload so small that a trial takes a second.
pub const TINY: [&str; 8] = [
    "--memory",
    "24M",
    "--swap-size",
    "64M",
    "-p",
    "pages=28M",
    "-p",
    "refs=5000",
];
/// A space of `pagetide hunt` that begins with a scan of more than memory, which is slower if swap is read page by
/// page.
pub const SCAN: &str = r#"
memory = ["12M"]
swap = ["ssd"]
processes = 1
groups = 0
kinds = ["anonymous"]

[settings]

[[start]]
process = [{ name = "scan", segment = [{ name = "heap", size = "140%" }], phase = [{ do = "fill", segment = "heap" }, { do = "access", segment = "heap" }] }]
"#;

/// Path of the program.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| assert_cmd::cargo::cargo_bin("pagetide"))
}

/// What is missing for running trials, and the reason.
type Missing = (Need, String);

/// Working folder, store and cache of a test.
pub struct Lab {
    folder: TempDir,
    cache: PathBuf,
}

impl Lab {
    /// A laboratory with an empty store and the shared cache.
    pub fn new() -> Self {
        let cache = std::env::var_os("PAGETIDE_TEST_CACHE").map_or_else(
            || Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"),
            PathBuf::from,
        );
        Self {
            folder: tempfile::tempdir().unwrap(),
            cache,
        }
    }

    /// A laboratory with an empty store and an empty cache.
    pub fn with_own_cache() -> Self {
        let mut lab = Self::new();
        lab.cache = lab.folder.path().join("cache");
        lab
    }

    /// A laboratory that can run trials. `None` if trials cannot run; then the reason is printed.
    pub fn that_runs() -> Option<Self> {
        Self::that_runs_on(KERNEL)
    }

    /// A laboratory that can run trials on this kernel. `None` if trials cannot run; then the reason is printed.
    pub fn that_runs_on(kernel: &str) -> Option<Self> {
        // Whether trials can run is determined once for all tests of a file.
        static ASKED: Mutex<BTreeMap<String, Result<(), Missing>>> = Mutex::new(BTreeMap::new());
        let lab = Self::new();
        let found = ASKED
            .lock()
            .unwrap()
            .entry(kernel.to_owned())
            .or_insert_with(|| lab.can_run(kernel))
            .clone();
        match found {
            Ok(()) => Some(lab),
            Err((need, why)) => {
                skip(need, why);
                None
            }
        }
    }

    /// Adds the kernel to the cache; returns what is missing if trials cannot run.
    fn can_run(&self, kernel: &str) -> Result<(), Missing> {
        if std::process::Command::new("qemu-system-x86_64")
            .arg("--version")
            .output()
            .is_err()
        {
            return Err((Need::Emulator, "QEMU is not installed".to_owned()));
        }
        let output = self.pagetide(["kernel", "add", kernel]).output().unwrap();
        if output.status.success() {
            return Ok(());
        }
        let why = format!("{kernel} cannot be had: {}", text(&output.stderr));
        Err((Need::Kernels, why))
    }

    /// Path of the test's folder, which is deleted at the end of the test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Path of the store.
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Path of the cache.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// The program with these arguments, ready to run.
    pub fn pagetide<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .env("PAGETIDE_STORE", self.store())
            .env("PAGETIDE_CACHE", &self.cache)
            .env_remove("PAGETIDE_QEMU")
            .env("COLUMNS", "120")
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.folder());
        command
    }

    /// Runs the program, which must exit with this code. Returns its standard output and standard error.
    pub fn ends<S: AsRef<OsStr>>(
        &self,
        code: i32,
        arguments: impl IntoIterator<Item = S>,
    ) -> (String, String) {
        told(&self.pagetide(arguments).output().unwrap(), code)
    }

    /// Runs the program, which must fail, whether the request or the machine is at fault. Returns its standard output
    /// and standard error.
    pub fn ends_badly<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> (String, String) {
        let output = self.pagetide(arguments).output().unwrap();
        let code = output.status.code().unwrap_or(0);
        assert!(matches!(code, 2 | 4), "{code}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }

    /// Asserts that a run with this kind of swap on this kernel is refused in one sentence that contains these words,
    /// and that it leaves nothing behind. The store must be empty.
    pub fn refuses(&self, kernel: &str, swap: &str, words: &[&str]) {
        let asked = [
            "run", "linear", "--memory", "8M", "--seeds", "1", "--kernel", kernel, "--swap", swap,
        ];
        let output = self.pagetide(asked).output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{swap}");
        one_sentence(&text(&output.stderr), words);
        assert!(self.leftovers().is_empty(), "{swap}");
        assert_eq!(self.records(), 0, "{swap}");
    }

    /// Imports the campaign `r`: 16 records of a scenario `build` with the variants `old` and `new`. Returns the output
    /// as JSON.
    pub fn import_of_two_variants(&self) -> String {
        let mut table = "scenario,variant,metric,value,seed,unit,direction\n".to_owned();
        for seed in 1..=8 {
            for (variant, value) in [("old", 100), ("new", 80)] {
                let value = value * 10 + seed;
                let line = format!("build,{variant},time,{value},{seed},nanos,lower\n");
                table.push_str(&line);
            }
        }
        std::fs::write(self.folder().join("r.csv"), table).unwrap();
        self.ends(0, ["import", "csv", "r.csv", "--json"]).0
    }

    /// Number of records in the store.
    pub fn records(&self) -> usize {
        let (out, _) = self.ends(0, ["list", "records", "--json", "--limit", "1000"]);
        let records: Vec<serde_json::Value> = serde_json::from_str(&out).unwrap();
        records.len()
    }

    /// At most `count` records in full, the newest first.
    pub fn newest(&self, count: usize) -> Vec<serde_json::Value> {
        let json = |words: &[&str]| -> serde_json::Value {
            let (out, _) = self.ends(0, words);
            serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
        };
        let list = json(&["list", "records", "--json"]);
        let ids = list.as_array().unwrap().iter().take(count);
        ids.map(|row| json(&["show", row["id"].as_str().unwrap(), "--json"]))
            .collect()
    }

    /// Starts the program without waiting for its end.
    pub fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Child {
        std::process::Command::new(program())
            .args(arguments)
            .env("PAGETIDE_STORE", self.store())
            .env("PAGETIDE_CACHE", &self.cache)
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.folder())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Paths of records that are being written.
    pub fn incoming(&self) -> Vec<PathBuf> {
        entries(&self.store().join("incoming"))
    }

    /// Paths of incomplete files in the store.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let mut left = self.incoming();
        left.extend(
            entries(&self.store().join("campaigns"))
                .into_iter()
                .filter(|path| path.extension().is_some_and(|ending| ending != "json")),
        );
        left
    }

    /// Paths of snapshots that any running test is making.
    pub fn in_the_making(&self) -> Vec<PathBuf> {
        let mut found = entries(&self.cache.join("snapshots"));
        found.retain(|path| path.extension().is_some_and(|ending| ending == "making"));
        found
    }
}

/// The number of a metric of a record.
pub fn metric(record: &serde_json::Value, name: &str) -> f64 {
    let metrics = record["results"]["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|metric| metric["name"] == name);
    let metric = metric.unwrap_or_else(|| panic!("no {name} in {metrics:?}"));
    let value = &metric["value"];
    value
        .as_f64()
        .or_else(|| value["number"].as_f64())
        .unwrap_or_else(|| panic!("{metric}"))
}

/// Checks the exit code and returns standard output and standard error.
pub fn told(output: &Output, code: i32) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "standard output:\n{out}\nstandard error:\n{err}"
    );
    (out, err)
}

/// Asserts that a text has exactly one line that begins with `pagetide: `, and that this line contains these words.
pub fn one_sentence(said: &str, words: &[&str]) {
    let lines: Vec<&str> = said
        .lines()
        .filter(|l| l.starts_with("pagetide: "))
        .collect();
    assert_eq!(lines.len(), 1, "one sentence, not {said:?}");
    let sentence = lines[0];
    // Text within backticks is quoted unchanged, such as the last messages of a kernel.
    let own: String = sentence.split('`').step_by(2).collect();
    assert!(!own.contains("error:"), "{sentence}");
    assert!(!own.to_lowercase().contains("failed to"), "{sentence}");
    assert!(!said.contains("panicked"), "{said}");
    for word in words {
        assert!(sentence.contains(word), "`{word}` is not in: {sentence}");
    }
}

/// Converts bytes to text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map_or_else(
        |_| Vec::new(),
        |entries| entries.flatten().map(|entry| entry.path()).collect(),
    )
}

/// Process ids of emulators whose parent is this process.
pub fn emulators_of(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for path in entries(Path::new("/proc")) {
        let Some(pid) = path
            .file_name()
            .and_then(|name| name.to_str()?.parse::<u32>().ok())
        else {
            continue;
        };
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        let is_child = status.lines().any(|line| {
            line.strip_prefix("PPid:")
                .is_some_and(|ppid| ppid.trim() == parent.to_string())
        });
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if is_child && name.starts_with("qemu") {
            found.push(pid);
        }
    }
    found
}

/// Process ids of emulators that run a trial, among the children of a process. Emulators that boot a guest are left
/// out.
pub fn trials_of(parent: u32) -> Vec<u32> {
    let mut found = emulators_of(parent);
    found.retain(|pid| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments
            .split(|byte| *byte == 0)
            .any(|argument| argument == b"-incoming")
    });
    found
}

/// True if a process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// Waits until `holds` returns true; panics with `what` after `limit`.
pub fn wait_until(what: &str, limit: Duration, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < limit,
            "{what} did not come within {limit:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
