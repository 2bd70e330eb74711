//! Counts how often the lines that a kernel's patch changed are executed.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_kernel::{ChangedCode, ChangedLine};
use pagetide_profile::{
    AnnotatedInstruction, Annotation, Coverage, CoveredFunction, CoveredLine, Profile, SourceLine,
};

use crate::profiler::Range;

/// Changed lines of a kernel with the addresses of their instructions in a guest.
#[derive(Debug)]
pub struct Watched {
    code: ChangedCode,
    /// For each line of `code.lines`, the addresses of its instructions.
    addresses: Vec<Vec<u64>>,
}

impl Watched {
    /// Finds the addresses of changed code. `ranges` contains the functions of the guest's kernel. A line is dropped if
    /// none of its functions has exactly one address there. Every function without exactly one address is listed in
    /// `left_out`.
    pub fn new(mut code: ChangedCode, ranges: &[Range]) -> Self {
        let mut starts: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        for range in ranges {
            starts
                .entry(range.name.as_str())
                .and_modify(|start| *start = None)
                .or_insert(Some(range.start));
        }
        let mut unknown: BTreeSet<String> = BTreeSet::new();
        let (mut lines, mut addresses) = (Vec::new(), Vec::new());
        for line in std::mem::take(&mut code.lines) {
            let mut found = Vec::new();
            for place in &line.places {
                match starts.get(place.function.as_str()) {
                    Some(Some(start)) => found.push(start + place.offset),
                    Some(None) => {
                        unknown.insert(format!(
                            "{} is the name of several functions",
                            place.function
                        ));
                    }
                    // A module that is not loaded, or code that is discarded after boot.
                    None => {
                        unknown.insert(format!("{} is not in memory", place.function));
                    }
                }
            }
            if !found.is_empty() {
                lines.push(line);
                addresses.push(found);
            }
        }
        code.lines = lines;
        code.left_out.extend(unknown);
        Self { code, addresses }
    }

    /// Returns the addresses of all instructions of the lines, in ascending order.
    pub fn addresses(&self) -> Vec<u64> {
        let all: BTreeSet<u64> = self.addresses.iter().flatten().copied().collect();
        all.into_iter().collect()
    }

    /// Adds the source line to each annotated instruction that belongs to a changed line.
    pub fn add_lines(&self, annotation: &mut Annotation) {
        for (line, addresses) in self.code.lines.iter().zip(&self.addresses) {
            let ChangedLine {
                file, line, text, ..
            } = line;
            let of_line = |one: &&mut AnnotatedInstruction| addresses.contains(&one.address);
            for instruction in annotation.lines.iter_mut().filter(of_line) {
                instruction.source = Some(SourceLine {
                    file: file.clone(),
                    line: *line,
                    text: text.clone(),
                });
            }
        }
    }

    /// Returns how often each changed line was executed, which is the maximum over its instructions, and how often each
    /// changed function was called. `executed` contains the number of executions of each instruction.
    pub fn coverage(&self, profile: &Profile, executed: &BTreeMap<u64, u64>) -> Coverage {
        let lines = self.code.lines.iter().zip(&self.addresses);
        let lines = lines.map(|(line, addresses)| {
            let counts = addresses.iter().filter_map(|address| executed.get(address));
            let ChangedLine {
                file, line, text, ..
            } = line.clone();
            CoveredLine {
                file,
                line,
                text,
                executed: counts.max().copied().unwrap_or(0),
            }
        });
        let calls = |name: &String| {
            let found = profile.functions.iter().filter(|one| one.name == *name);
            found.map(|one| one.calls).sum()
        };
        let functions = self.code.functions.iter().map(|name| CoveredFunction {
            name: name.clone(),
            calls: calls(name),
        });
        Coverage {
            lines: lines.collect(),
            functions: functions.collect(),
            without_code: self.code.without_code,
            left_out: self.code.left_out.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use pagetide_kernel::CodePlace;

    use super::*;

    fn line(at: u32, function: &str, offset: u64) -> ChangedLine {
        let place = CodePlace {
            function: function.to_owned(),
            offset,
        };
        ChangedLine {
            line: at,
            places: vec![place],
            ..ChangedLine::default()
        }
    }

    #[test]
    fn lines_are_counted_at_their_addresses_and_ambiguous_ones_are_said() {
        let code = ChangedCode {
            lines: vec![
                line(7, "shrink_list", 16),
                line(8, "shrink_list", 20),
                line(9, "twice", 4),
                line(10, "__init_code", 4),
            ],
            ..ChangedCode::default()
        };
        let range = |start: u64, name: &str| Range {
            start,
            name: name.to_owned(),
            module: None,
        };
        let ranges = [
            range(100, "shrink_list"),
            range(200, "twice"),
            range(300, "twice"),
        ];
        let watched = Watched::new(code, &ranges);
        assert_eq!(watched.addresses(), [116, 120]);
        let executed = BTreeMap::from([(116, 5), (120, 0)]);
        let coverage = watched.coverage(&Profile::new(), &executed);
        let found: Vec<_> = coverage
            .lines
            .iter()
            .map(|line| (line.line, line.executed))
            .collect();
        assert_eq!(found, [(7, 5), (8, 0)]);
        assert_eq!(
            coverage.left_out,
            [
                "__init_code is not in memory",
                "twice is the name of several functions"
            ]
        );
    }
}
