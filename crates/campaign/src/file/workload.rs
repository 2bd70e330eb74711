//! Reads `[workload]`: a workload that the campaign file itself describes, so that no other file is needed.

use std::path::Path;

use pagetide_outside::FileOrigin;
use pagetide_record::{FilesSpec, MemorySpec};
use pagetide_workload::{Machine, Workload, WorkloadError};

use super::defaults::FileDefaults;
use super::error::{FileError, Problem};
use super::table::{Source, Table};
use super::vocabulary::Vocabulary;
use crate::campaign::ScenarioSpec;
use crate::program::WORKLOAD;

/// Maximum size in bytes of a file with a workload, the same as for a campaign file.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the table `[workload]` of a campaign file; `None` if the file has none.
pub fn of_file(source: Source<'_>, top: &Table<'_>) -> Result<Option<Workload>, FileError> {
    let Some(item) = top.get(WORKLOAD) else {
        return Ok(None);
    };
    Workload::from_campaign(source.text).map_err(|error| {
        let message = error.to_string();
        match error {
            WorkloadError::Text {
                line: Some(line),
                why,
            } => FileError::Wrong {
                file: source.file.to_owned(),
                line,
                problem: Box::new(Problem::Workload { message: why }),
            },
            _ => item.wrong(Problem::Workload { message }),
        }
    })
}

/// Reads a workload from a file of its own, or from the table `[workload]` of a campaign file. Returns the workload's
/// name, which is the file's name without its extension, and the workload.
pub fn read_workload(path: &Path) -> Result<(String, Workload), FileError> {
    let bytes = pagetide_outside::read(path, FileOrigin::Named, MAX_BYTES).map_err(|source| {
        FileError::Unreadable {
            path: path.to_owned(),
            source,
        }
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let wrong = |line: usize, message: String| FileError::Wrong {
        file: path.display().to_string(),
        line,
        problem: Box::new(Problem::Workload { message }),
    };
    // A case is a campaign file with its workload in a table. Its variants are not used here.
    let is_case = text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("[workload]") || line.starts_with("[[workload.")
    });
    let read = if is_case {
        Workload::from_campaign(&text).map(Option::unwrap_or_default)
    } else {
        Workload::from_toml(&text)
    };
    let workload = read.map_err(|error| match error {
        WorkloadError::Text {
            line: Some(line),
            why,
        } => wrong(line, why),
        other => wrong(1, other.to_string()),
    })?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok((name.into_owned(), workload))
}

impl FileDefaults {
    /// Sets missing keys to the values of the machine that the workload file describes, if any.
    pub(super) fn or_machine(mut self, machine: Option<&Machine>) -> Self {
        let Some(machine) = machine else {
            return self;
        };
        if self.memory.is_empty() {
            self.memory.extend(machine.memory);
        }
        if self.swap.is_empty() {
            self.swap.extend(machine.swap);
        }
        self.swap_size = self.swap_size.or(machine.swap_size);
        self.files_on = self.files_on.or(machine.files_on);
        self.fs = self.fs.or(machine.fs);
        self
    }

    /// Returns the scenario of a file that describes a workload and names no scenario.
    pub(super) fn of_workload(&self, vocabulary: &Vocabulary) -> ScenarioSpec {
        let known = vocabulary.scenario(WORKLOAD);
        let has = |metric: &String| known.is_none_or(|words| words.metrics.contains(metric));
        ScenarioSpec {
            name: WORKLOAD.to_owned(),
            primary: self.primary_of(has),
            ..self.spec()
        }
    }
}

impl ScenarioSpec {
    /// Sets the scenario's parameters so that it runs this workload, with `name` as its label. Parameters that are
    /// already given keep their values.
    pub(crate) fn describe(&mut self, name: &str, workload: &Workload) {
        let mut set = |key: &str, value: String| {
            self.params.entry(key.to_owned()).or_insert(vec![value]);
        };
        set("case", name.to_owned());
        set(WORKLOAD, workload.canonical());
    }

    /// Sets missing values of the scenario to those of the machine that the workload file describes.
    pub(crate) fn on_machine(&mut self, machine: &Machine) {
        if self.memory.is_empty() {
            self.memory.extend::<Option<MemorySpec>>(machine.memory);
        }
        if self.swap.is_empty() {
            self.swap.extend(machine.swap);
        }
        self.swap_size = self.swap_size.or(machine.swap_size);
        if self.files_on == FilesSpec::default() {
            self.files_on = FilesSpec::default().with(machine.fs, machine.files_on);
        }
    }
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Bytes;

    use super::*;
    use crate::file::{ScenarioWords, parse};
    use crate::request::Request;

    const CASE: &str = r#"
name = "writer"
kernel = "debian:bookworm/6.12"
swap = "none"

[workload]
machine = { memory = "12M", swap = "ssd:80us", files-on = "disk:8ms,20MB/s" }

[[workload.process]]
name = "writer"
segment = [{ name = "log", kind = "file", size = "50%", empty = true }]
phase = [{ do = "fill", segment = "log", by = "call" }]
"#;

    fn vocabulary() -> Vocabulary {
        let words = ScenarioWords {
            params: ["case", "workload"].map(str::to_owned).into(),
            metrics: vec!["time".to_owned()],
            default_memory: Bytes::from_mib(16),
            ..ScenarioWords::default()
        };
        Vocabulary {
            kernel: "debian:sid".to_owned(),
            scenarios: [(WORKLOAD.to_owned(), words)].into(),
            ..Vocabulary::default()
        }
    }

    #[test]
    fn a_file_that_describes_its_workload_stands_alone() {
        let campaign = parse("case.toml", CASE, &vocabulary()).unwrap();
        let [spec] = &campaign.scenarios[..] else {
            panic!("{:?}", campaign.scenarios)
        };
        assert_eq!(spec.params["case"], ["writer"]);
        let workload = Workload::from_canonical(&spec.params[WORKLOAD][0]).unwrap();
        assert_eq!(workload.processes[0].name, "writer");
        // Values above all tables take precedence over the workload's own machine.
        assert_eq!(spec.memory, ["12M".parse().unwrap()]);
        assert_eq!(spec.swap, ["none".parse().unwrap()]);
        assert_eq!(campaign.variants.len(), 1);
        assert_eq!(campaign.variants[0].name, "6.12");
        let cells: Vec<_> = campaign.cells().collect();
        assert_eq!(
            cells[0].label(),
            "workload writer · 12M · none · files on disk:8ms,20MB/s"
        );
    }

    #[test]
    fn a_file_that_describes_its_workload_may_describe_the_whole_machine() {
        let machine = "cpus = 2\nlimit = \"8M\"\nnodes = \"16M,32M:slow\"\n";
        let text = CASE.replace(
            "[workload]\nmachine = {",
            &format!("{machine}[workload]\n# {{"),
        );
        let campaign = parse("case.toml", &text, &vocabulary()).unwrap();
        let spec = &campaign.scenarios[0];
        assert_eq!(spec.cpus, ["2".parse().unwrap()]);
        assert_eq!(spec.limit, [Bytes::from_mib(8)]);
        assert_eq!(spec.nodes, "16M,32M:slow".parse().unwrap());
        assert_eq!(spec.memory, ["48M".parse().unwrap()]);
    }

    #[test]
    fn a_mistake_in_the_workload_has_its_line() {
        let told = |from: &str, to: &str| {
            let text = CASE.replace(from, to);
            parse("case.toml", &text, &vocabulary())
                .unwrap_err()
                .to_string()
        };
        let message = told("50%", "50$");
        assert!(
            message.contains("case.toml") && message.contains("11"),
            "{message}"
        );
        let message = told("\"log\", by", "\"lag\", by");
        assert!(message.contains("did you mean \"log\"?"), "{message}");
    }

    #[test]
    fn a_case_runs_on_other_variants_and_a_workload_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("case.toml");
        std::fs::write(&path, CASE).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let request = Request {
            kernels: vec!["debian:bookworm".to_owned(), "debian:sid".to_owned()],
            ..Request::default()
        };
        let other = request
            .campaign(std::slice::from_ref(&path), &vocabulary())
            .unwrap();
        assert_eq!(other.variants.len(), 2);
        assert_ne!(other.name, "writer", "other variants are another campaign");
        assert_eq!(other.scenarios[0].params["case"], ["writer"]);
        let request = Request {
            workload: Some(path.into()),
            ..Request::default()
        };
        let same = request
            .campaign(&[WORKLOAD.to_owned()], &vocabulary())
            .unwrap();
        assert_eq!(same.scenarios[0].params["case"], ["case"]);
        assert_eq!(same.scenarios[0].memory, ["12M".parse().unwrap()]);
        assert_eq!(
            same.scenarios[0].params[WORKLOAD],
            other.scenarios[0].params[WORKLOAD]
        );
    }
}
