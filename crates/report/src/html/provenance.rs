//! Origin of the figures: everything needed to repeat the comparison and to check that the result is the same.

use pagetide_compare::Comparison;

use super::Input;
use super::escape::{LONG, lines, text};
use crate::about;

/// Maximum length of a kernel log, in characters.
const LOG_CHARS: usize = 20_000;

/// Writes the section: command, machine, variants with kernels and settings, arenas, and digests.
pub(crate) fn section(input: &Input<'_>, out: &mut String) {
    let (comparison, about) = (input.comparison, input.about);
    out.push_str("<section id=\"provenance\" aria-labelledby=\"provenance-title\">\n<h2 id=\"provenance-title\">Where this comes from</h2>\n");
    if !about.command.is_empty() {
        put!(
            out,
            "<p>To repeat it:</p><pre tabindex=\"0\">{}</pre>\n",
            text(&about.command, LONG)
        );
    }
    let machine = &about.machine;
    if !machine.cpu.is_empty() || !machine.kernel.is_empty() {
        pairs(
            out,
            "Machine",
            [
                ("processor", machine.cpu.clone()),
                ("processors", machine.cpus.to_string()),
                ("memory", machine.memory.to_string()),
                ("host kernel", machine.kernel.clone()),
                ("host system", machine.system.clone()),
            ],
        );
    }
    for (place, column) in comparison.columns.iter().enumerate() {
        let name = format!("Variant {}", about::name(comparison, place));
        let Some(variant) = &column.variant else {
            pairs(out, &name, [("records", "none yet".to_owned())]);
            continue;
        };
        let kernel = &variant.kernel;
        pairs(
            out,
            &name,
            [
                ("kernel", format!("{} {}", kernel.release, kernel.version)),
                ("kernel from", kernel.source.clone()),
                ("build id", kernel.build_id.clone().unwrap_or_default()),
                ("image digest", kernel.digest.clone()),
                ("settings asked for", about::settings(column)),
                (
                    "trials",
                    format!(
                        "{} valid, {} invalid, {} to come",
                        column.valid, column.invalid, column.pending
                    ),
                ),
            ],
        );
        read_back(input, place, out);
    }
    arenas(comparison, out);
    digests(comparison, out);
    out.push_str("</section>\n");
}

/// Writes data from the record of a variant's first trial: settings read back, facts, counters, command and kernel log.
/// Writes nothing if there is no such record or it cannot be read.
fn read_back(input: &Input<'_>, column: usize, out: &mut String) {
    let Some(trial) = input
        .comparison
        .cells
        .iter()
        .find_map(|cell| cell.sides.get(column)?.trials.first())
    else {
        return;
    };
    let Ok(reader) = (input.open)(&trial.record) else {
        return;
    };
    let record = reader.into_record();
    let results = record.results;
    let owned =
        |map: std::collections::BTreeMap<String, String>| map.into_iter().collect::<Vec<_>>();
    for (title, all) in [
        ("Settings, read back", owned(results.settings)),
        ("Facts of the machine inside", owned(results.facts)),
    ] {
        if !all.is_empty() {
            put!(out, "<details><summary>{title}</summary>\n");
            let all = all
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone()));
            pairs(out, "", all);
            out.push_str("</details>\n");
        }
    }
    for (source, counters) in &results.counters {
        let changed = crate::counters::changed(source, counters);
        if !changed.is_empty() {
            let title = format!("Counters of {source} in its first trial");
            put!(out, "<details><summary>{}</summary>\n", text(&title, 100));
            pairs(
                out,
                "",
                changed
                    .iter()
                    .map(|change| (change.name, change.text(false))),
            );
            out.push_str("</details>\n");
        }
    }
    let command = record.maker.command;
    if !command.is_empty() {
        put!(
            out,
            "<details><summary>Command of its first trial</summary><pre tabindex=\"0\">{}</pre></details>\n",
            text(&command, LONG)
        );
    }
    if !results.kernel_log.is_empty() {
        put!(
            out,
            "<details><summary>Kernel log of its first trial</summary><pre tabindex=\"0\">{}</pre></details>\n",
            lines(&results.kernel_log, LOG_CHARS)
        );
    }
}

fn arenas(comparison: &Comparison, out: &mut String) {
    let mut seen = Vec::new();
    for subject in comparison
        .cells
        .iter()
        .filter_map(|cell| cell.subject.as_ref())
    {
        let arena = &subject.arena;
        if seen.contains(&arena) {
            continue;
        }
        seen.push(arena);
        pairs(
            out,
            &format!("Arena {}", arena.kind),
            [
                ("emulator", arena.emulator.clone()),
                ("machine type", arena.machine.clone()),
                ("processor model", arena.cpu.clone()),
                ("kernel command line", arena.cmdline.clone()),
                ("guest program", arena.guest.clone()),
            ],
        );
    }
}

/// Writes the IDs and digests of the records of all valid trials.
fn digests(comparison: &Comparison, out: &mut String) {
    out.push_str("<details><summary>Records and digests</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Records\"><table><thead><tr><th scope=\"col\">variant</th><th scope=\"col\">cell</th><th scope=\"col\">seed</th><th scope=\"col\">record</th><th scope=\"col\">digest</th></tr></thead><tbody>\n");
    for cell in &comparison.cells {
        for (place, side) in cell.sides.iter().enumerate() {
            for trial in &side.trials {
                put!(
                    out,
                    "<tr><td>{}</td><td>{}</td><td class=\"number\">{}</td><td><code>{}</code></td><td><code>{}</code></td></tr>\n",
                    text(about::name(comparison, place), 60),
                    text(&cell.label, 80),
                    trial.seed,
                    text(&trial.record, 40),
                    text(&trial.digest, 80)
                );
            }
        }
    }
    out.push_str("</tbody></table></div>\n<p><code>pagetide show RECORD</code> prints a record, <code>pagetide show RECORD --series NAME</code> and <code>--blob NAME</code> its raw data.</p></details>\n");
}

/// Writes names and values; empty values are left out.
fn pairs<'a>(out: &mut String, title: &str, all: impl IntoIterator<Item = (&'a str, String)>) {
    if !title.is_empty() {
        put!(out, "<h3>{}</h3>\n", text(title, 100));
    }
    out.push_str("<dl>\n");
    for (name, value) in all {
        if !value.trim().is_empty() {
            put!(
                out,
                "<dt>{}</dt><dd>{}</dd>\n",
                text(name, 100),
                text(&value, LONG)
            );
        }
    }
    out.push_str("</dl>\n");
}
