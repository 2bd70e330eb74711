//! The high-order allocation stress (2010): success of each pass in whole percent with differences in percentage
//! points, times, and the rows of reclaim statistics.

use pagetide_probe::meaning::{ReclaimTable, RowId, RowUnit, Section, Value};

use super::{View, head, lay, row};
use crate::draw::clean;

/// Passes with the original's names, pagetide's metrics, and the published whole percentages.
const PASSES: [(&str, &str, [f64; 2]); 3] = [
    ("Pass 1", "success-1", [90.0, 89.0]),
    ("Pass 2", "success-2", [91.0, 91.0]),
    ("At Rest", "success-rest", [94.0, 94.0]),
];

/// The published reclaim table, before and after: "Use compaction to reduce a dependency on lumpy reclaim", linux-mm,
/// 11 November 2010.
const RECLAIM: [(RowId, [&str; 2]); 24] = [
    (RowId::DirectReclaims, ["673", "468"]),
    (RowId::DirectScanned, ["60521", "108221"]),
    (RowId::DirectReclaimed, ["37300", "67114"]),
    (RowId::DirectWriteFileAsync, ["1459", "3825"]),
    (RowId::DirectWriteAnonAsync, ["7989", "10694"]),
    (RowId::DirectWriteFileSync, ["0", "0"]),
    (RowId::DirectWriteAnonSync, ["92", "53"]),
    (RowId::WakeKswapdRequests, ["823", "11681"]),
    (RowId::KswapdWakeups, ["608", "558"]),
    (RowId::KswapdScanned, ["4509407", "3682736"]),
    (RowId::KswapdReclaimed, ["2278056", "2176076"]),
    (RowId::KswapdWriteFileAsync, ["58446", "46853"]),
    (RowId::KswapdWriteAnonAsync, ["696616", "410210"]),
    (RowId::KswapdWriteFileSync, ["0", "0"]),
    (RowId::KswapdWriteAnonSync, ["0", "0"]),
    (RowId::TimeStalled, ["139.75", "128.09"]),
    (RowId::TimeKswapdAwake, ["833.03", "669.29"]),
    (RowId::TotalScanned, ["4569928", "3790957"]),
    (RowId::TotalReclaimed, ["2315356", "2243190"]),
    (RowId::ReclaimedOfScanned, ["50.67%", "59.17%"]),
    (RowId::WrittenOfScanned, ["16.73%", "12.44%"]),
    (RowId::FileWrittenOfScanned, ["1.31%", "1.34%"]),
    (RowId::TimeInDirectReclaim, ["4.00%", "3.70%"]),
    (RowId::TimeKswapdAwakeShare, ["40.59%", "36.10%"]),
];

/// Returns the tables of one cell: success, times, latencies and reclaim statistics.
pub(super) fn table(view: &View) -> String {
    let mut out = format!("STRESS-HIGHALLOC (2010): {}\n\n", view.label());
    let mut rows = vec![head(view)];
    for (label, metric, published) in PASSES {
        // The original truncates percentages instead of rounding them.
        let whole = |share: f64| (share * 100.0).trunc();
        let first = view.mean(metric, 0);
        let cells = view.shown(metric, |mean| match first {
            Some(first) => percents(whole(mean), whole(first)),
            None => format!("{:.2}", whole(mean)),
        });
        let published = published.map(|percent| percents(percent, published[0]));
        let published = [published[0].as_str(), published[1].as_str()];
        rows.push(row(label, cells, published));
    }
    out.push_str(&lay(&rows));
    put!(out, "\n{}", times(view));
    put!(out, "\n{}", latencies(view));
    let tables: Vec<Result<&ReclaimTable, &'static str>> = view
        .columns()
        .map(|column| {
            let place = (view.place, column);
            let why = view.extras.no_reclaim.get(&place).copied();
            let table = view.extras.reclaim.get(&place);
            table.ok_or(why.unwrap_or("unobserved"))
        })
        .collect();
    put!(out, "\n{}", reclaim(&head(view), &tables));
    out
}

/// Formats a whole percentage, and its difference from the first value in percentage points.
fn percents(value: f64, first: f64) -> String {
    format!("{value:.2} ({:5.2}%)", value - first)
}

/// Writes user plus system time, and elapsed time.
fn times(view: &View) -> String {
    let seconds = |nanos: f64| format!("{:.2}", nanos / 1e9);
    let both = view.columns().map(|column| {
        match (view.mean("user", column), view.mean("system", column)) {
            (Some(user), Some(system)) => seconds(user + system),
            (None, _) => view.why("user", column).to_owned(),
            (_, None) => view.why("system", column).to_owned(),
        }
    });
    let elapsed = view.columns().map(|column| {
        let all = view.extras.elapsed.get(&(view.place, column));
        let numbers: Vec<f64> = all
            .into_iter()
            .flatten()
            .map(|time| time.0 as f64)
            .collect();
        match pagetide_verdict::number::mean(&numbers) {
            Ok(mean) => seconds(mean),
            Err(_) => view.why("elapsed", column).to_owned(),
        }
    });
    lay(&[
        head(view),
        row(
            "User/Sys Time Running Test (seconds)",
            both.collect(),
            ["3356.15", "3336.46"],
        ),
        row(
            "Total Elapsed Time (seconds)",
            elapsed.collect(),
            ["2052.07", "1853.79"],
        ),
    ])
}

/// Writes mean and standard deviation of the time of an attempt, separately for successes and failures.
fn latencies(view: &View) -> String {
    let mut rows = vec![head(view)];
    for (label, mean, deviation) in [
        (
            "Latency of successes (ms)",
            "success-mean",
            "success-deviation",
        ),
        (
            "Latency of failures (ms)",
            "failure-mean",
            "failure-deviation",
        ),
    ] {
        let cells = view.columns().map(|column| {
            let of = |metric| view.mean(metric, column).map(|nanos| nanos / 1e6);
            match (of(mean), of(deviation)) {
                (Some(mean), Some(deviation)) => format!("{mean:.3} ({deviation:.3})"),
                (Some(mean), None) => format!("{mean:.3} (single)"),
                (None, _) => view.why(mean, column).to_owned(),
            }
        });
        rows.push(row(label, cells.collect(), ["", ""]));
    }
    format!(
        "Mean and (standard deviation) over attempts\n{}",
        lay(&rows)
    )
}

/// Returns the reclaim statistics of several columns next to each other, by section. A column without a table has the
/// reason in one word. If no column has a table, returns a sentence that says so.
fn reclaim(head: &[String], tables: &[Result<&ReclaimTable, &'static str>]) -> String {
    let mut out = String::new();
    // All tables have the same rows; the first table determines their order.
    let Some(order) = tables.iter().flatten().next() else {
        return "FTrace Reclaim Statistics: no trial was observed; run with --observe\n".to_owned();
    };
    for (section, title) in [
        (Section::Reclaim, "FTrace Reclaim Statistics: vmscan"),
        (Section::Memcg, "Memory cgroups, and reclaim of all kinds"),
        (Section::Compaction, "FTrace Reclaim Statistics: compaction"),
        (Section::Memory, "vmstat"),
    ] {
        let mut rows = vec![head.to_vec()];
        for line in order.rows.iter().filter(|row| row.section == section) {
            let cells = tables.iter().map(|table| match table {
                Ok(table) => table
                    .row(line.id)
                    .map_or_else(|| "absent".to_owned(), |row| shown(&row.value)),
                Err(why) => (*why).to_owned(),
            });
            let published = RECLAIM.iter().find(|(id, _)| *id == line.id);
            let published = published.map_or(["", ""], |(_, figures)| *figures);
            // The parentheses in this row's name do not contain the original's name.
            let name = if line.id == RowId::OnRequestReclaimed {
                clean(&line.name, 48, true)
            } else {
                original(&line.name, line.unit)
            };
            rows.push(row(&name, cells.collect(), published));
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

/// Returns the original's name of a row, which is in parentheses at the end of pagetide's name. If the original has no
/// such row, returns pagetide's name, followed by `(seconds)` for a time.
fn original(name: &str, unit: RowUnit) -> String {
    let mut depth = 0_usize;
    // Searches backwards for the parenthesis that the last one closes, because the original's name may itself contain
    // parentheses.
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

/// Formats a value as the original prints it: plain counts, times in seconds with two decimals (six below 0.1 s),
/// percentages with two decimals. Without a value, the reason in one word.
fn shown(value: &Value) -> String {
    match value {
        Value::Count(count) => count.to_string(),
        Value::Time(time) if time.0 < 100_000_000 => {
            format!("{:.6}", time.0 as f64 / 1e9)
        }
        Value::Time(time) => format!("{:.2}", time.0 as f64 / 1e9),
        Value::Percent(percent) => format!("{percent:.2}%"),
        Value::NotOnThisKernel(_) => "unsupported".to_owned(),
        Value::NotObserved(_) => "unobserved".to_owned(),
        Value::Undefined => "undefined".to_owned(),
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
