//! mmap copy (2008): seconds of each way to copy, before and after, and their ratio in per cent.

use super::{PUBLISHED, View, lay};

/// The ways of copying in the order of the original, with the published seconds before and after.
const ORIGINAL: [(&str, f64, f64); 6] = [
    ("rw-cp", 59.32, 58.60),
    ("rw-fadv-cp", 57.96, 57.96),
    ("mm-sync-cp", 69.97, 61.68),
    ("mm-sync-madv-cp", 69.41, 62.54),
    ("mw-cp", 61.69, 63.11),
    ("mw-madv-cp", 61.35, 61.31),
];

/// Returns the table of one cell. The six ways of the original come first, then all other ways.
pub(super) fn table(view: &View) -> String {
    let mut names: Vec<&str> = ORIGINAL.iter().map(|(name, ..)| *name).collect();
    for row in &view.cell.metrics {
        if let Some(name) = row.name.strip_prefix("time-")
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    let mut out = format!(
        "mmap copy (2008): {}\nseconds of a copy, mean over the runs\n\n",
        view.label()
    );
    let mut head = vec![String::new()];
    for (index, name) in view.heads().into_iter().enumerate() {
        head.push(name);
        if index > 0 {
            head.push("ratio".to_owned());
        }
    }
    head.extend(PUBLISHED.map(str::to_owned));
    head.push("ratio".to_owned());
    let mut rows = vec![head];
    for name in names {
        let metric = format!("time-{name}");
        let original = ORIGINAL.iter().find(|(known, ..)| *known == name);
        // A way that was not run is omitted. A way that the kernel does not support is shown with the reason.
        if original.is_none() && !view.has(&metric) {
            continue;
        }
        let first = view.mean(&metric, 0);
        let mut row = vec![crate::draw::clean(name, 30, true).replace('-', "_")];
        for column in view.columns() {
            let mean = view.mean(&metric, column);
            row.push(match mean {
                Some(mean) => format!("{:.2}", mean / 1e9),
                None => why(view, &metric, column).to_owned(),
            });
            if column > 0 {
                row.push(ratio(first, mean));
            }
        }
        if let Some((_, before, after)) = original {
            row.extend([format!("{before:.2}"), format!("{after:.2}")]);
            row.push(ratio(Some(*before), Some(*after)));
        }
        rows.push(row);
    }
    out.push_str(&lay(&rows));
    out
}

/// Returns the time after the change divided by the time before the change, in per cent; empty if a time is missing or
/// the time before is 0.
fn ratio(before: Option<f64>, after: Option<f64>) -> String {
    match (before, after) {
        (Some(before), Some(after)) if before > 0.0 => format!("{:.2}%", 100.0 * after / before),
        _ => String::new(),
    }
}

/// Returns the reason for a missing time in one word. A way without a row was not selected for the run.
fn why(view: &View, metric: &str, column: usize) -> &'static str {
    match view.why(metric, column) {
        "unmeasured" => "unchosen",
        other => other,
    }
}
