//! The probe for any [`Source`].

use std::path::Path;

use pagetide_quantity::{Column, Nanos, Sampler, Unit};
use pagetide_system::Counters;

use super::file::TextFile;
use super::source::Source;
use crate::ProbeError;
use crate::probe::{Probe, ProbeResult};

/// The probe for one source: its open files, its numbers before the trial, and selected numbers over time.
#[derive(Debug)]
pub struct Text {
    /// Name of the source in the record.
    name: String,
    parts: Vec<Part>,
    row: Vec<u64>,
    series: Option<Sampler>,
}

/// One open file of the source.
#[derive(Debug)]
struct Part {
    prefix: &'static str,
    file: TextFile,
    before: Counters,
    /// Indices of the numbers that are sampled over time.
    columns: Vec<usize>,
}

impl Text {
    /// Opens all files of a source in its owner's folder. Stores at most `capacity` samples; 0 means that no samples
    /// are stored. Fails if a file is missing.
    pub fn open(
        source: &'static Source,
        folder: &Path,
        capacity: usize,
    ) -> Result<Self, ProbeError> {
        let mut heads = Vec::new();
        let mut parts = Vec::new();
        for (prefix, path) in source.files {
            let file = TextFile::open(&folder.join(path), source.syntax)?;
            let mut columns = Vec::new();
            for (at, key) in file.latest().keys().enumerate() {
                let name = format!("{prefix}{key}");
                if source.over_time.is_empty() || source.over_time.contains(&name.as_str()) {
                    let unit = source.key(&name).map_or(Unit::Count, |key| key.unit);
                    heads.push(Column { name, unit });
                    columns.push(at);
                }
            }
            parts.push(Part {
                prefix,
                before: file.latest().clone(),
                file,
                columns,
            });
        }
        Ok(Self {
            name: source.name.to_owned(),
            row: Vec::with_capacity(heads.len()),
            parts,
            series: (capacity > 0).then(|| Sampler::new(heads, capacity)),
        })
    }

    /// Returns this probe with another name for the record.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        Self { name, ..self }
    }
}

impl Probe for Text {
    fn name(&self) -> &str {
        &self.name
    }

    fn before(&mut self) -> Result<(), ProbeError> {
        for part in &mut self.parts {
            part.before.copy(part.file.sample()?);
        }
        Ok(())
    }

    fn sample(&mut self, time: Nanos) -> Result<(), ProbeError> {
        let Some(series) = &mut self.series else {
            return Ok(());
        };
        self.row.clear();
        for part in &mut self.parts {
            let values = part.file.sample()?.values();
            let kept = part
                .columns
                .iter()
                .map(|at| values.get(*at).copied().unwrap_or(0));
            self.row.extend(kept);
        }
        series.push(time, &self.row);
        Ok(())
    }

    fn after(mut self: Box<Self>) -> Result<ProbeResult, ProbeError> {
        let mut counters = Vec::new();
        for part in &mut self.parts {
            let now = part.file.sample()?;
            for (at, (key, after)) in now.iter().enumerate() {
                let before = part.before.get_near(at, key).unwrap_or(0);
                counters.push((format!("{}{key}", part.prefix), [before, after]));
            }
        }
        Ok(ProbeResult {
            counters,
            series: self.series.map(|series| series.into_series(&self.name)),
        })
    }
}

#[cfg(test)]
mod tests {
    use pagetide_system::Syntax;

    use super::*;
    use crate::text::{Key, Owner};

    static TWO: Source = Source {
        name: "two",
        of: Owner::Machine,
        files: &[("a-", "a"), ("b-", "b")],
        syntax: Syntax::KeyValue,
        over_time: &["b-x", "b-none"],
        keys: &[Key {
            name: "b-x",
            unit: Unit::Pages,
            kind: crate::text::Kind::Gauge,
            meaning: "",
        }],
    };

    #[test]
    fn numbers_of_several_files_are_told_before_after_and_over_time() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        write("a", "x 1\n");
        write("b", "w 5\nx 6\n");
        let mut probe = Box::new(Text::open(&TWO, root.path(), 8).unwrap());
        probe.before().unwrap();
        probe.sample(Nanos(1)).unwrap();
        write("b", "w 5\nx 9\nnew 2\n");
        probe.sample(Nanos(2)).unwrap();
        let finding = probe.after().unwrap();
        let pairs: Vec<_> = finding
            .counters
            .iter()
            .map(|(name, pair)| (name.as_str(), *pair))
            .collect();
        assert_eq!(
            pairs,
            [
                ("a-x", [1, 1]),
                ("b-w", [5, 5]),
                ("b-x", [6, 9]),
                ("b-new", [0, 2])
            ]
        );
        let series = finding.series.unwrap();
        assert_eq!(
            (series.name.as_str(), series.rows(), series.columns.len()),
            ("two", 2, 2)
        );
        assert_eq!(
            (series.columns[1].0.name.as_str(), series.columns[1].0.unit),
            ("b-x", Unit::Pages)
        );
        assert_eq!(series.column("b-x").unwrap().get(1), Some(9.0));
    }

    #[test]
    fn files_of_a_single_number_are_named_by_the_list_of_files() {
        static SINGLE: Source = Source {
            name: "single",
            of: Owner::Machine,
            files: &[("full_scans", "full"), ("pages_collapsed", "pages")],
            syntax: Syntax::Columns(&[""]),
            over_time: &[],
            keys: &[],
        };
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("full"), "4\n").unwrap();
        std::fs::write(root.path().join("pages"), "7\n").unwrap();
        let probe = Box::new(Text::open(&SINGLE, root.path(), 0).unwrap());
        let found = probe.after().unwrap();
        assert_eq!(
            found.counters,
            [
                ("full_scans".to_owned(), [4, 4]),
                ("pages_collapsed".to_owned(), [7, 7])
            ]
        );
    }

    #[test]
    fn a_missing_file_is_said_and_not_taken_for_zeros() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), "x 1\n").unwrap();
        let error = Text::open(&TWO, root.path(), 8).unwrap_err();
        assert!(matches!(error, ProbeError::Unsupported { .. }), "{error}");
    }
}
