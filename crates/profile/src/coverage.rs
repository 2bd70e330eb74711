//! Coverage of a patch: how often a trial executed the lines and functions that the patch changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A changed line with code, and how often it was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredLine {
    /// Path of the file below the top of the source.
    pub file: String,
    /// Number of the line in the patched file, from 1.
    pub line: u32,
    /// Text of the line, without indentation.
    pub text: String,
    /// Number of executions: the largest count of an instruction that belongs to the line.
    pub executed: u64,
}

/// A function that contains a change, and how often it was called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredFunction {
    /// Name of the function that contains the change after inlining.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
}

/// How often the lines that a patch changes were executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Lines with code, sorted by file and line number.
    pub lines: Vec<CoveredLine>,
    /// Functions that contain these lines, and functions from which the patch only removes lines.
    pub functions: Vec<CoveredFunction>,
    /// Number of changed lines without code of their own: comments, declarations, braces, macros.
    pub without_code: u64,
    /// Changed files whose lines could not be found in the built kernel, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Coverage {
    /// Lines that were never executed.
    pub fn missed(&self) -> impl Iterator<Item = &CoveredLine> {
        self.lines.iter().filter(|line| line.executed == 0)
    }

    /// Adds the counts of another trial with the same kernel.
    pub fn add(&mut self, other: &Self) {
        let mut lines: BTreeMap<(&str, u32), u64> = BTreeMap::new();
        for line in &other.lines {
            *lines.entry((&line.file, line.line)).or_default() += line.executed;
        }
        for line in &mut self.lines {
            line.executed += lines
                .get(&(line.file.as_str(), line.line))
                .copied()
                .unwrap_or(0);
        }
        for function in &mut self.functions {
            let found = other
                .functions
                .iter()
                .find(|other| other.name == function.name);
            function.calls += found.map_or(0, |found| found.calls);
        }
    }

    /// Returns a sentence that says how many of the changed lines were executed in `trials` trials.
    pub fn sentence(&self, trials: usize) -> String {
        let plural = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let (all, missed) = (self.lines.len(), self.missed().count());
        let here = plural(trials, "profiled trial", "profiled trials");
        let changed = plural(all, "line of code", "lines of code");
        let ran = match (all, missed) {
            (0, _) if self.functions.is_empty() => {
                "your patch adds no line of code of its own".to_owned()
            }
            (0, _) => {
                let called = self.functions.iter().filter(|function| function.calls > 0);
                format!(
                    "your patch adds no line of code of its own; {} of {} that it changes ran in {here}",
                    called.count(),
                    plural(self.functions.len(), "function", "functions")
                )
            }
            (_, 0) => format!("your patch changes {changed}, and all ran in {here}"),
            (_, missed) if missed == all => {
                format!("your patch changes {changed}, and none ran in {here}")
            }
            (_, 1) => format!("your patch changes {changed}, 1 was never executed in {here}"),
            (_, missed) => {
                format!("your patch changes {changed}, {missed} were never executed in {here}")
            }
        };
        let mut text = ran;
        for why in &self.left_out {
            text.push_str("; not known: ");
            text.push_str(why);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(counts: &[u64]) -> Coverage {
        let line = |(at, executed): (u32, &u64)| CoveredLine {
            file: "mm/vmscan.c".to_owned(),
            line: at,
            executed: *executed,
            ..CoveredLine::default()
        };
        Coverage {
            lines: (1..).zip(counts).map(line).collect(),
            ..Coverage::default()
        }
    }

    #[test]
    fn the_sentence_counts_the_lines_that_no_trial_executed() {
        let mut all = coverage(&[3, 0, 0]);
        assert_eq!(
            all.sentence(1),
            "your patch changes 3 lines of code, 2 were never executed in 1 profiled trial"
        );
        all.add(&coverage(&[0, 7, 0]));
        assert_eq!(
            all.sentence(2),
            "your patch changes 3 lines of code, 1 was never executed in 2 profiled trials"
        );
        assert_eq!(all.lines[1].executed, 7);
        let mut nothing = coverage(&[]);
        let sentence = "your patch adds no line of code of its own";
        assert_eq!(nothing.sentence(1), sentence);
        nothing.functions.push(CoveredFunction {
            name: "shrink_list".to_owned(),
            calls: 3,
        });
        assert_eq!(
            nothing.sentence(1),
            format!("{sentence}; 1 of 1 function that it changes ran in 1 profiled trial")
        );
        let none = coverage(&[0]);
        assert!(none.sentence(1).contains("1 line of code, and none ran"));
        let all = coverage(&[1, 2]);
        assert!(all.sentence(1).contains("and all ran"));
    }
}
