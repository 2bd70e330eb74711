//! The high-order allocation stress (2010): success of each pass in whole percent with differences in points, times, and
//! the reclaim statistics row for row.

use pagetide_probe::meaning::{ReclaimTable, RowUnit, Section, Value};

use super::{View, lay};
use crate::draw::clean;

/// Passes as the original names them, and our metrics.
const PASSES: [(&str, &str); 3] = [
    ("Pass 1", "success-1"),
    ("Pass 2", "success-2"),
    ("At Rest", "success-rest"),
];

/// Writes the tables.
pub(super) fn table(view: &View) -> String {
    let mut out = format!("STRESS-HIGHALLOC {}\n", view.label());
    let mut rows = vec![[vec![String::new()], view.heads()].concat()];
    for (label, metric) in PASSES {
        if !view.has(metric) {
            continue;
        }
        // The original truncates.
        let whole = |share: f64| (share * 100.0).trunc();
        let means = view.means(metric);
        let first = means.first().copied().flatten();
        let cells = means.iter().map(|mean| match (mean, first) {
            (Some(mean), Some(first)) => {
                format!("{:.2} ({:5.2}%)", whole(*mean), whole(*mean) - whole(first))
            }
            (Some(mean), None) => format!("{:.2}", whole(*mean)),
            (None, _) => "-".to_owned(),
        });
        rows.push(std::iter::once(label.to_owned()).chain(cells).collect());
    }
    out.push_str(&lay(&rows));
    let mut times: Vec<Vec<String>> = Vec::new();
    let mut add = |label: &str, cells: Vec<Option<f64>>| {
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(seconds);
            times.push(std::iter::once(label.to_owned()).chain(cells).collect());
        }
    };
    let (user, system) = (view.means("user"), view.means("system"));
    let both = user
        .iter()
        .zip(system)
        .map(|(user, system)| Some((*user)? + system?));
    add("User/Sys Time Running Test (seconds)", both.collect());
    add("Total Elapsed Time (seconds)", view.means("elapsed"));
    if !times.is_empty() {
        put!(out, "\n{}", lay(&times));
    }
    let tables: Vec<Option<&ReclaimTable>> = (0..view.comparison.columns.len())
        .map(|column| view.extras.reclaim.get(&(view.place, column)))
        .collect();
    if tables.iter().any(Option::is_some) {
        put!(out, "\n{}", reclaim(&view.heads(), &tables));
    }
    out
}

fn seconds(nanos: Option<f64>) -> String {
    nanos.map_or_else(|| "-".to_owned(), |nanos| format!("{:.2}", nanos / 1e9))
}

/// The reclaim statistics of several columns side by side, section by section.
pub fn reclaim(heads: &[String], tables: &[Option<&ReclaimTable>]) -> String {
    let mut out = String::new();
    // All tables have the same rows; the first that is there gives their order.
    let Some(order) = tables.iter().flatten().next() else {
        return out;
    };
    for (section, title) in [
        (Section::Reclaim, "FTrace Reclaim Statistics: vmscan"),
        (Section::Memcg, "Memory cgroups, and reclaim of all kinds"),
        (Section::Compaction, "FTrace Reclaim Statistics: compaction"),
        (Section::Memory, "vmstat"),
    ] {
        let mut rows = vec![[vec![String::new()], heads.to_vec()].concat()];
        for row in order.rows.iter().filter(|row| row.section == section) {
            let cells = tables.iter().map(|table| {
                let value = table.and_then(|table| table.row(row.id));
                value.map_or_else(|| "-".to_owned(), |row| shown(&row.value))
            });
            let name = original(&row.name, row.unit);
            rows.push(std::iter::once(name).chain(cells).collect());
        }
        if rows.len() > 1 {
            if !out.is_empty() {
                out.push('\n');
            }
            put!(out, "{title}\n{}", lay(&rows));
        }
    }
    out
}

/// The original's name of a row, which stands in parentheses at the end of ours; our own where it had none.
fn original(name: &str, unit: RowUnit) -> String {
    let mut depth = 0_usize;
    // From the end back to the parenthesis that the last one closes: the original's name may itself have some.
    let begin = name.char_indices().rev().find_map(|(at, c)| {
        match c {
            ')' => depth += 1,
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (c == '(' && depth == 0).then_some(at)
    });
    let text = match begin {
        Some(at) if name.ends_with(')') => name[at + 1..name.len() - 1].to_owned(),
        _ if unit == RowUnit::Time => format!("{name} (seconds)"),
        _ => name.to_owned(),
    };
    clean(&text, 48, true)
}

/// A value as the original prints it: counts bare, times in seconds, percents with two digits.
fn shown(value: &Value) -> String {
    match value {
        Value::Count(count) => count.to_string(),
        Value::Time(time) if time.0 < 100_000_000 => {
            format!("{:.6}", time.0 as f64 / 1e9)
        }
        Value::Time(time) => format!("{:.2}", time.0 as f64 / 1e9),
        Value::Percent(percent) => format!("{percent:.2}%"),
        Value::NotOnThisKernel(_) => "not told".to_owned(),
        Value::NotObserved(_) | Value::Undefined => "-".to_owned(),
        Value::Invalid(_) => "lost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_originals_names() {
        let name = |text| original(text, RowUnit::Events);
        assert_eq!(name("direct reclaims (Direct reclaims)"), "Direct reclaims");
        assert_eq!(
            name("time in direct reclaim / (user + system) (Percentage Time Spent Direct Reclaim)"),
            "Percentage Time Spent Direct Reclaim"
        );
        assert_eq!(
            name("time stalled (Time stalled direct reclaim (seconds))"),
            "Time stalled direct reclaim (seconds)"
        );
        assert_eq!(name("memcg reclaims"), "memcg reclaims");
        assert_eq!(
            original("time throttled", RowUnit::Time),
            "time throttled (seconds)"
        );
    }
}
