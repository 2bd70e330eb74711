//! A valid trial that was run in the exact arena, with its record.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Lab, text};

/// Options of the guest in these trials. Two snapshots of a kernel are enough: one with a file system and one without.
const GUEST: [&str; 6] = ["--memory", "24M", "--swap-size", "64M", "--seeds", "1"];
/// Maximum memory of the harness in bytes.
const HARNESS: f64 = 4.0 * 1024.0 * 1024.0;

/// A valid trial with its record.
pub struct Done<'a> {
    lab: &'a Lab,
    /// The trial's record as JSON.
    pub record: Value,
    id: String,
}

/// Runs scenarios with these arguments on a kernel; returns the trials in the order of the store.
pub fn run_on<'a>(lab: &'a Lab, kernel: &str, arguments: &[&str]) -> Vec<Done<'a>> {
    let before = ids(lab);
    let guest = ["--kernel", kernel];
    lab.ends(0, [&["run"], arguments, &guest, &GUEST].concat());
    let new = ids(lab).into_iter().filter(|id| !before.contains(id));
    new.map(|id| Done::read(lab, id)).collect()
}

fn ids(lab: &Lab) -> Vec<String> {
    let (out, _) = lab.ends(0, ["list", "records", "--json", "--limit", "100"]);
    let records: Vec<Value> = serde_json::from_str(&out).unwrap();
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    records.iter().map(id).collect()
}

impl<'a> Done<'a> {
    fn read(lab: &'a Lab, id: String) -> Self {
        let (out, _) = lab.ends(0, ["show", &id, "--json"]);
        let record: Value = serde_json::from_str(&out).unwrap();
        let done = Self { lab, record, id };
        let results = &done.record["results"];
        assert_eq!(
            results["invalid"],
            Value::Array(Vec::new()),
            "{}",
            done.name()
        );
        let harness = done.metric("harness");
        assert!(harness > 0.0 && harness <= HARNESS, "harness: {harness}");
        done
    }

    /// ID of the trial's record.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Scenario and parameters, for messages.
    pub fn name(&self) -> String {
        let subject = &self.record["subject"];
        format!("{} {}", subject["scenario"], subject["params"])
    }

    /// Value of a metric as JSON: a number, or the reason why there is none.
    pub fn value(&self, name: &str) -> &Value {
        let metrics = self.record["results"]["metrics"].as_array().unwrap();
        let found = metrics.iter().find(|metric| metric["name"] == name);
        &found.unwrap_or_else(|| panic!("{} has no metric {name}", self.name()))["value"]
    }

    /// The number of a metric; panics if there is none.
    pub fn metric(&self, name: &str) -> f64 {
        let value = self.value(name);
        value["number"]
            .as_f64()
            .unwrap_or_else(|| panic!("{}: {name} is {value}", self.name()))
    }

    /// The number of a metric that counts, as an integer.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked"
    )]
    pub fn count(&self, name: &str) -> u64 {
        let value = self.metric(name);
        assert!(value >= 0.0 && value.fract() == 0.0, "{name}: {value}");
        value as u64
    }

    /// Value of a parameter.
    pub fn param(&self, name: &str) -> &str {
        self.record["subject"]["params"][name].as_str().unwrap()
    }

    /// Growth of a counter of `/proc/vmstat`; zero if the kernel does not have it.
    pub fn vmstat(&self, name: &str) -> u64 {
        let counter = &self.record["results"]["counters"]["vmstat"]["values"][name];
        let at = |index: usize| counter[index].as_u64().unwrap_or(0);
        at(1) - at(0)
    }

    /// The columns of a series by name.
    pub fn series(&self, name: &str) -> BTreeMap<String, Vec<f64>> {
        let (out, _) = self.lab.ends(0, ["show", &self.id, "--series", name]);
        let mut lines = out.lines();
        let heads: Vec<&str> = lines.next().unwrap().split(',').map(plain).collect();
        let mut columns: BTreeMap<String, Vec<f64>> = heads
            .iter()
            .map(|head| ((*head).to_owned(), Vec::new()))
            .collect();
        for line in lines {
            for (head, cell) in heads.iter().zip(line.split(',')) {
                let column = columns.get_mut(*head).unwrap();
                column.push(cell.parse().unwrap_or_else(|_| panic!("{name}: {cell}")));
            }
        }
        columns
    }

    /// The values of one column of a series.
    pub fn column(&self, series: &str, column: &str) -> Vec<f64> {
        let mut columns = self.series(series);
        columns
            .remove(column)
            .unwrap_or_else(|| panic!("{series} has {:?}", columns.keys()))
    }

    /// Content of a blob of the record.
    pub fn blob(&self, name: &str) -> Vec<u8> {
        let mut show = self.lab.pagetide(["show", &self.id, "--blob", name]);
        let output = show.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        output.stdout
    }

    /// Page indices of the access log, in the order of the accesses.
    pub fn log(&self, name: &str) -> Vec<u64> {
        let bytes = self.blob(name);
        let entries = bytes.as_chunks::<8>().0.iter();
        entries
            .map(|entry| u64::from_le_bytes(*entry) >> 36)
            .collect()
    }

    /// Number of values in a histogram of the record.
    pub fn histogram_count(&self, name: &str) -> u64 {
        self.record["results"]["histograms"][name]["count"]
            .as_u64()
            .unwrap()
    }
}

/// The name of a column without its unit.
fn plain(head: &str) -> &str {
    head.split(" (").next().unwrap_or(head)
}
