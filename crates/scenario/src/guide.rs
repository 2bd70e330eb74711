//! Reference documentation of all scenarios, generated from their definitions: `docs/scenarios.md`, the manual page,
//! and text for the terminal.

use std::fmt::Write;

use pagetide_quantity::{Direction, roff};

use crate::definition::Definition;
use crate::registry;

/// First lines of `docs/scenarios.md`.
const HEAD: &str = "\
<!-- Made by `cargo run -p pagetide-scenario --example guide`, not by hand. -->

# Scenarios

All workloads with their parameters and metrics. Metrics in bold decide a comparison. `pagetide list scenarios NAME` prints
one of them, `pagetide man scenarios` all.
";

/// Returns the definitions in the order of the registry. Neighbours with equal parameters, such as all patterns, are in
/// one group.
fn families() -> Vec<Vec<&'static Definition>> {
    let mut families: Vec<Vec<&'static Definition>> = Vec::new();
    for definition in registry::list() {
        match families.last_mut() {
            Some(family) if family[0].params == definition.params => family.push(definition),
            _ => families.push(vec![definition]),
        }
    }
    families
}

/// Returns a sentence that lists the parameter defaults which `--as-written` changes.
fn brought_back(definition: &Definition) -> String {
    let changed: Vec<String> = definition
        .params
        .iter()
        .filter_map(|param| Some(format!("{}={}", param.name, param.as_written?)))
        .collect();
    format!("With --as-written: {}.", changed.join(", "))
}

/// Returns the content of `docs/scenarios.md`, in Markdown.
pub fn markdown() -> String {
    let mut text = HEAD.to_owned();
    for family in families() {
        let first = family[0];
        let _ = write!(
            text,
            "\n## {}\n\n_{}._\n\n",
            first.name,
            capital(first.summary)
        );
        let _ = writeln!(text, "{}\n", first.docs);
        let _ = writeln!(text, "{}\n", memory(first));
        let _ = writeln!(text, "Origin: {}\n", first.origin);
        if !first.repaired.is_empty() {
            let _ = writeln!(
                text,
                "Corrected here: {} {}\n",
                first.repaired,
                brought_back(first)
            );
        }
        if family.len() > 1 {
            text.push_str("| scenario | description | defaults that differ |\n|---|---|---|\n");
            for definition in &family[1..] {
                let presets: Vec<String> = definition
                    .presets
                    .iter()
                    .map(|(name, value)| format!("`{name}={value}`"))
                    .collect();
                let _ = writeln!(
                    text,
                    "| `{}` | {} | {} |",
                    definition.name,
                    cell(definition.summary),
                    cell(&presets.join(" "))
                );
            }
            text.push('\n');
        }
        text.push_str("| parameter | default | takes | meaning |\n|---|---|---|---|\n");
        for param in first.params {
            let (default, written) = (
                first.default_of(param, false),
                first.default_of(param, true),
            );
            let mut value = format!("`{default}`");
            if first.has_as_written && written != default {
                let _ = write!(value, ", as written `{written}`");
            }
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} |",
                param.name,
                cell(&value),
                cell(&param.bounds()),
                cell(param.help)
            );
        }
        text.push_str("\n| metric | better | meaning |\n|---|---|---|\n");
        for metric in first.metrics {
            let name = if metric.primary {
                format!("**{}**", metric.name)
            } else {
                metric.name.to_owned()
            };
            let _ = writeln!(
                text,
                "| {name} | {} | {} |",
                better(metric.direction),
                cell(metric.help)
            );
        }
    }
    text
}

/// Returns the manual page `pagetide-scenarios(7)` in groff_man(7) format.
pub fn man() -> String {
    let mut page = String::from(
        ".TH pagetide-scenarios 7\n.SH NAME\npagetide\\-scenarios \\- workloads that pagetide runs\n",
    );
    for definition in registry::list() {
        let _ = writeln!(page, ".SH {}", roff(&definition.name.to_uppercase()));
        let mut paragraph = |words: &str| {
            let _ = writeln!(page, "{}\n.PP", roff(words));
        };
        paragraph(definition.docs);
        paragraph(&memory(definition));
        paragraph(&format!("Origin: {}", definition.origin));
        if !definition.repaired.is_empty() {
            let back = brought_back(definition);
            paragraph(&format!("Corrected: {} {back}", definition.repaired));
        }
        page.push_str("Parameters:\n");
        for param in definition.params {
            let default = definition.default_of(param, false);
            let _ = writeln!(
                page,
                ".TP\n\\fB{}\\fR\n{}",
                roff(param.name),
                roff(&format!(
                    "{} ({}, default {default})",
                    param.help,
                    param.bounds()
                ))
            );
        }
        page.push_str(".PP\nMetrics:\n");
        for metric in definition.metrics {
            let _ = writeln!(
                page,
                ".TP\n\\fB{}\\fR\n{}",
                roff(metric.name),
                roff(metric.help)
            );
        }
    }
    page
}

/// One paragraph of a scenario's description for the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paragraph {
    /// Number of spaces before each line of the paragraph.
    pub indent: usize,
    /// Text of the paragraph, not yet wrapped.
    pub text: String,
}

/// Returns the full description of a scenario as paragraphs, which the caller wraps. The first paragraph is the name.
pub fn describe(definition: &Definition) -> Vec<Paragraph> {
    let mut all = Vec::new();
    let mut add = |indent: usize, text: String| all.push(Paragraph { indent, text });
    add(0, definition.name.to_owned());
    for part in definition.docs.split("\n\n") {
        add(2, part.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    add(2, memory(definition));
    add(2, format!("Origin: {}", definition.origin));
    if !definition.repaired.is_empty() {
        let back = brought_back(definition);
        add(2, format!("Corrected: {} {back}", definition.repaired));
    }
    let quoted = |value: &'static str| if value.is_empty() { "none" } else { value };
    add(2, "Parameters".to_owned());
    for param in definition.params {
        let default = definition.default_of(param, false);
        let written = definition.default_of(param, true);
        let mut value = format!("{}, default {}", param.bounds(), quoted(default));
        if definition.has_as_written && written != default {
            let _ = write!(value, ", as written {}", quoted(written));
        }
        add(4, format!("{} ({value})", param.name));
        add(8, param.help.to_owned());
    }
    add(2, "Metrics".to_owned());
    for metric in definition.metrics {
        let decides = if metric.primary { ", decides" } else { "" };
        let better = match metric.direction {
            Direction::Lower => "lower is better",
            Direction::Higher => "higher is better",
            Direction::Neutral => "neither is better",
        };
        add(4, format!("{} ({better}{decides})", metric.name));
        add(8, metric.help.to_owned());
    }
    all
}

/// Returns the default memory of a trial and the memory of the original's machine, as text.
pub fn memory(definition: &Definition) -> String {
    format!(
        "Memory: {} by default. The machine of the original had {}; --scale is relative to it.",
        definition.default_memory, definition.original_memory
    )
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

const fn better(direction: Direction) -> &'static str {
    match direction {
        Direction::Lower => "lower",
        Direction::Higher => "higher",
        Direction::Neutral => "neither",
    }
}

/// Escapes text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_as_the_definitions_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md");
        assert!(
            std::fs::read_to_string(path).unwrap() == markdown(),
            "stale: cargo run -p pagetide-scenario --example guide"
        );
    }

    #[test]
    fn every_form_has_every_scenario_parameter_and_metric() {
        let (chapter, page) = (markdown(), man());
        for definition in registry::list() {
            assert!(chapter.contains(definition.name) && page.contains(&roff(definition.docs)));
            let paragraphs = describe(definition);
            let text: Vec<&str> = paragraphs.iter().map(|p| p.text.as_str()).collect();
            for param in definition.params {
                assert!(chapter.contains(&format!("| `{}` |", param.name)));
                assert!(page.contains(&format!("\\fB{}\\fR", roff(param.name))));
                assert!(text.contains(&param.help));
            }
            for metric in definition.metrics {
                assert!(chapter.contains(&cell(metric.help)) && page.contains(&roff(metric.help)));
                assert!(text.contains(&metric.help));
            }
        }
        assert!(
            page.lines()
                .all(|line| !line.starts_with('\'') && !line.is_empty())
        );
    }
}
