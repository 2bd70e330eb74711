//! Statistics of reclaim and block I/O from observed trials, row by row.

use pagetide_compare::Observation;
use pagetide_probe::block::Direction;
use pagetide_probe::meaning::{Row, Section, Value};
use pagetide_quantity::Unit;

use super::Input;
use super::escape::text;
use super::meaning::meaning;
use crate::about;
use crate::draw::quantity::{Scale, count};

/// Maximum length of a name in a table, in characters.
const NAME_CHARS: usize = 160;
/// Maximum length of an explanation, in characters.
const WHY_CHARS: usize = 300;

/// Writes the observations of a cell: first the rows that differ between variants (all rows if only one variant was
/// observed); all other rows are in a collapsed part. Writes nothing if no variant was observed.
pub(crate) fn section(input: &Input<'_>, place: usize, out: &mut String) {
    let seen: Vec<(usize, &Observation)> = (0..input.comparison.columns.len())
        .filter_map(|column| Some((column, input.sources.observed.get(&(place, column))?)))
        .collect();
    if seen.is_empty() {
        return;
    }
    out.push_str(
        "<section class=\"reclaim\"><h4>What reclaim did</h4>\n<p class=\"params\">From the trace of one observed trial of each \
         variant. What a row means shows where the pointer rests on it, and stands at the end of the page. A mark stands where trace and vmstat disagree by more than 1 %; its reason, where one is known, is below.</p>\n",
    );
    let names: Vec<String> = seen
        .iter()
        .map(|(column, _)| text(about::name(input.comparison, *column), NAME_CHARS))
        .collect();
    // All observations have the same rows, so those of the first are used.
    let rows = seen.first().map_or(&[][..], |(_, first)| &first.table.rows);
    let of = |id| {
        seen.iter()
            .map(move |(_, one)| one.table.row(id).map(|row| shown(&row.value)))
    };
    let differs = |row: &&Row| {
        let mut values = of(row.id);
        let first = values.next();
        seen.len() < 2 || values.any(|value| Some(value) != first)
    };
    let (changed, same): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(differs);
    if !changed.is_empty() {
        table(&changed, &seen, &names, out);
    }
    if !same.is_empty() {
        put!(
            out,
            "<details><summary>{} rows are the same for all variants</summary>\n",
            same.len()
        );
        table(&same, &seen, &names, out);
        out.push_str("</details>\n");
    }
    disagreements(&seen, &names, out);
    devices(&seen, &names, out);
    out.push_str("</section>\n");
}

const fn title(section: Section) -> &'static str {
    match section {
        Section::Reclaim => "Direct reclaim and kswapd",
        Section::Memcg => "Memory cgroups, and reclaim of all kinds",
        Section::Compaction => "Compaction and migration",
        Section::Memory => "Swap, refaults and faults",
    }
}

fn begin(label: &str, heads: &[String], first: &str, out: &mut String) {
    put!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><table><thead><tr><th scope=\"col\">{first}</th>"
    );
    for head in heads {
        put!(out, "<th scope=\"col\" class=\"number\">{head}</th>");
    }
    out.push_str("</tr></thead>\n");
}

/// Writes the rows of all variants next to each other, by section, in the order of the first variant.
fn table(rows: &[&Row], seen: &[(usize, &Observation)], names: &[String], out: &mut String) {
    begin("Reclaim table", names, "row", out);
    let mut section = None;
    for row in rows {
        if section != Some(row.section) {
            let open = if section.is_some() { "</tbody>\n" } else { "" };
            section = Some(row.section);
            put!(
                out,
                "{open}<tbody><tr><th scope=\"colgroup\" colspan=\"{}\" class=\"part\">{}</th></tr>\n",
                names.len() + 1,
                title(row.section)
            );
        }
        put!(
            out,
            "<tr><th scope=\"row\" title=\"{}\">{}</th>",
            text(&row_text(row), WHY_CHARS),
            text(&row.name, NAME_CHARS)
        );
        for (_, observation) in seen {
            match observation.table.row(row.id) {
                Some(row) => cell(row, out),
                None => out.push_str("<td></td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// Returns the meaning of a row, followed by its vmstat counters and its note.
fn row_text(row: &Row) -> String {
    let counters = row.check.as_ref().map(|check| check.counters.join(" + "));
    let mut all = vec![meaning(row.id).to_owned()];
    all.extend(
        counters
            .filter(|names| !names.is_empty())
            .map(|names| format!("In vmstat: {names}.")),
    );
    all.extend(row.note.as_ref().map(|note| format!("Note: {note}.")));
    all.join(" ")
}

/// Writes the meaning of all rows, once per page, for readers without a pointing device; nothing if no cell was
/// observed.
pub(crate) fn glossary(input: &Input<'_>, out: &mut String) {
    let Some(first) = input.sources.observed.values().next() else {
        return;
    };
    out.push_str(
        "<details id=\"rows\"><summary>What the rows of the reclaim tables mean</summary>\n<dl>\n",
    );
    for row in &first.table.rows {
        put!(
            out,
            "<dt>{}</dt><dd>{}</dd>\n",
            text(&row.name, NAME_CHARS),
            text(meaning(row.id), WHY_CHARS)
        );
    }
    out.push_str("</dl></details>\n");
}

fn cell(row: &Row, out: &mut String) {
    let mark = if row.check.as_ref().is_some_and(|check| check.disagrees) {
        " <abbr title=\"trace and vmstat disagree\">≠</abbr>"
    } else {
        ""
    };
    let class = match row.value {
        Value::NotOnThisKernel(_) | Value::NotObserved(_) | Value::Invalid(_) => "",
        _ => " class=\"number\"",
    };
    put!(
        out,
        "<td{class}>{}{mark}</td>",
        text(&shown(&row.value), WHY_CHARS)
    );
}

/// Formats a value of the reclaim table as text, or the reason why there is no value; `–` for an undefined value.
fn shown(value: &Value) -> String {
    match value {
        Value::Count(number) => count(*number),
        Value::Time(_) => {
            let nanos = value.number().unwrap_or(0.0);
            Scale::of(Unit::Nanos, nanos).show(nanos, false)
        }
        Value::Percent(percent) => format!("{percent:.2} %"),
        Value::NotOnThisKernel(why) | Value::NotObserved(why) | Value::Invalid(why) => why.clone(),
        Value::Undefined => "–".to_owned(),
    }
}

/// Writes where trace and vmstat disagree, with the known reasons.
fn disagreements(seen: &[(usize, &Observation)], names: &[String], out: &mut String) {
    let all: Vec<String> = seen
        .iter()
        .zip(names)
        .flat_map(|((_, observation), name)| {
            observation.table.disagreements().filter_map(move |row| {
                let check = row.check.as_ref()?;
                let reason = check.reason.as_deref().unwrap_or("no reason is known");
                Some(format!(
                    "<li>{name}, {}: {} in the trace, {} in vmstat ({}): {}</li>\n",
                    text(&row.name, NAME_CHARS),
                    count(check.traced),
                    count(check.counter),
                    text(&check.counters.join(" + "), WHY_CHARS),
                    text(reason, WHY_CHARS)
                ))
            })
        })
        .collect();
    if !all.is_empty() {
        put!(
            out,
            "<details><summary>Where trace and vmstat disagree</summary><ul>\n{}</ul></details>\n",
            all.concat()
        );
    }
}

/// Writes the requests to each device, and the estimated time that they would have taken on a disk with seek times.
fn devices(seen: &[(usize, &Observation)], names: &[String], out: &mut String) {
    if seen.iter().all(|(_, one)| one.blocks.devices.is_empty()) {
        return;
    }
    out.push_str("<h5>Block I/O</h5>\n");
    let heads = [
        "device",
        "reads",
        "read",
        "sequential",
        "writes",
        "written",
        "sequential",
        "the same on a disk of 2009",
    ]
    .map(str::to_owned);
    begin("Block I/O", &heads, "variant", out);
    out.push_str("<tbody>\n");
    for ((_, observation), name) in seen.iter().zip(names) {
        for device in &observation.blocks.devices {
            let way = |way: &Direction| {
                let share = way.sequential as f64 / way.requests.max(1) as f64 * 100.0;
                format!(
                    "<td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{share:.1} %</td>",
                    count(way.requests),
                    pagetide_quantity::Bytes(way.bytes.0)
                )
            };
            let nanos = device.modelled.total().0 as f64;
            put!(
                out,
                "<tr><th scope=\"row\">{name}</th><td>{}</td>{}{}<td class=\"number\">{}</td></tr>\n",
                device.device,
                way(&device.sums.reads),
                way(&device.sums.writes),
                Scale::of(Unit::Nanos, nanos).show(nanos, false)
            );
        }
    }
    out.push_str("</tbody></table></div>\n");
}
