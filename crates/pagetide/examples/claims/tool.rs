//! Calls the program as a user does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The kernel of all trials.
pub const KERNEL: &str = "debian:bookworm/6.12";

/// The program and its store.
pub struct Tool {
    program: PathBuf,
    store: PathBuf,
}

impl Tool {
    /// The program at `$PAGETIDE`, or the program built together with this example.
    pub fn find() -> Self {
        let built = || {
            let own = std::env::current_exe().expect("this program lies somewhere");
            let folder = own.parent().and_then(|examples| examples.parent());
            folder
                .expect("examples lie below the program")
                .join("pagetide")
        };
        let program = std::env::var_os("PAGETIDE").map_or_else(built, PathBuf::from);
        let beside = || program.with_file_name("claims-store");
        let store = std::env::var_os("PAGETIDE_STORE").map_or_else(beside, PathBuf::from);
        Self { program, store }
    }

    /// Runs the program and returns its output. `None` if it failed; then its messages are printed.
    fn call(&self, words: &[&str]) -> Option<String> {
        let output = Command::new(&self.program)
            .args(words)
            .env("PAGETIDE_STORE", &self.store)
            .output()
            .unwrap_or_else(|why| panic!("starting {}: {why}", self.program.display()));
        if output.status.success() {
            return String::from_utf8(output.stdout).ok();
        }
        let words = words.join(" ");
        println!(
            "pagetide {words}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        None
    }

    /// Runs a campaign with `words` and returns its comparison; `None` if it failed.
    pub fn run(&self, name: &str, words: &[&str]) -> Option<Value> {
        serde_json::from_str(&self.run_alone(name, words)?).ok()
    }

    /// Runs a campaign with `words`, which may have a single variant and so nothing to compare. Returns its output;
    /// `None` if it failed.
    pub fn run_alone(&self, name: &str, words: &[&str]) -> Option<String> {
        let common = [
            "--kernel",
            KERNEL,
            "--jobs",
            "1",
            "--exit-zero",
            "--name",
            name,
        ];
        self.call(&[&["run"], words, &common, &["--as", "json"]].concat())
    }

    /// Returns the comparison of two sides with different cells; `None` if it failed.
    pub fn compare(&self, a: &str, b: &str) -> Option<Value> {
        let out = self.call(&["compare", a, b, "--anyway", "--exit-zero", "--as", "json"])?;
        serde_json::from_str(&out).ok()
    }

    /// Returns the explanations by cell; empty if the command failed. `sides` is one campaign, or two sides with
    /// options.
    pub fn explain(&self, sides: &[&str]) -> Vec<Value> {
        let out = self.call(&[&["compare", "--why", "--json"], sides].concat());
        out.and_then(|out| serde_json::from_str(&out).ok())
            .unwrap_or_default()
    }
}

/// The rows of the first cell, with name, verdict and estimate for the last column.
pub fn rows(comparison: &Value) -> Vec<Row> {
    let rows = comparison["cells"][0]["metrics"].as_array();
    rows.into_iter()
        .flatten()
        .filter_map(|row| {
            let judgement = row["judgements"].as_array()?.last()?;
            Some(Row {
                name: row["name"].as_str()?.to_owned(),
                primary: row["primary"].as_bool()?,
                verdict: judgement["verdict"].as_str()?.to_owned(),
                estimate: judgement["effect"]["estimate"].as_f64().unwrap_or(f64::NAN),
            })
        })
        .collect()
}

/// Values of a metric in the first cell: one pair for each seed, with the values in the first and the last column.
pub fn pairs(comparison: &Value, name: &str) -> Vec<[f64; 2]> {
    let rows = comparison["cells"][0]["metrics"].as_array();
    let row = rows.into_iter().flatten().find(|row| row["name"] == name);
    let columns: Vec<BTreeMap<u64, f64>> = row
        .and_then(|row| row["values"].as_array())
        .into_iter()
        .flatten()
        .map(|column| {
            let values = column["values"].as_array();
            let value = |pair: &Value| Some((pair[0].as_u64()?, pair[1].as_f64()?));
            values.into_iter().flatten().filter_map(value).collect()
        })
        .collect();
    let (Some(a), Some(b)) = (columns.first(), columns.last()) else {
        return Vec::new();
    };
    let both = a.iter().filter_map(|(seed, a)| Some([*a, *b.get(seed)?]));
    both.collect()
}

/// A metric with its judgement.
pub struct Row {
    pub name: String,
    pub primary: bool,
    pub verdict: String,
    pub estimate: f64,
}

impl Row {
    /// True if the verdict claims that one side is better.
    pub fn claims(&self) -> bool {
        ["improved", "regressed"].contains(&self.verdict.as_str())
    }
}

/// The causes in explanations, in their order: mechanism, and effect in nanoseconds. Causes of the time come first,
/// then those of counts, whose effect is not a number.
pub fn causes(explained: &[Value]) -> Vec<(String, f64)> {
    explained
        .iter()
        .flat_map(|one| {
            let all = |name: &str| one["explanation"][name].as_array().into_iter().flatten();
            let found = one["explanation"]["answer"] == "explained";
            let findings = all("findings").filter(move |_| found);
            findings.chain(all("leads").filter(|lead| lead["of"].is_string()))
        })
        .filter_map(|cause| {
            let mechanism = cause["mechanism"].as_str()?.to_owned();
            Some((mechanism, cause["effect"].as_f64().unwrap_or(f64::NAN)))
        })
        .collect()
}
