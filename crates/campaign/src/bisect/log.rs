//! Writes the steps of a search in the format of `git bisect log`, as input for `git bisect replay`.

use std::fmt::Write;

use pagetide_compare::bisected::{BisectStep, Version};

use super::History;

/// Returns the text of the log for these steps, the first of which is the bad version. `first` has the versions that
/// may be the first bad one, according to the result of the search.
pub fn log(history: &History, steps: &[BisectStep], first: &[Version]) -> String {
    let mut text = String::from("git bisect start\n");
    let mut line = |word: &str, version: &Version| {
        let _ = writeln!(
            text,
            "# {word}: [{}] {}\ngit bisect {word} {}",
            version.id, version.what, version.id
        );
    };
    let (bad, tried) = match steps {
        [bad, tried @ ..] => (Some(&bad.version), tried),
        [] => (None, steps),
    };
    if let Some(bad) = bad {
        line("bad", bad);
    }
    line("good", &history.versions[history.good]);
    for step in tried {
        line(step.mark.word(), &step.version);
    }
    match first {
        [] => {}
        [only] => {
            let _ = writeln!(text, "# first bad commit: [{}] {}", only.id, only.what);
        }
        several => {
            text.push_str("# only skipped commits left to test\n");
            for version in several {
                let _ = writeln!(
                    text,
                    "# possible first bad commit: [{}] {}",
                    version.id, version.what
                );
            }
        }
    }
    text
}
