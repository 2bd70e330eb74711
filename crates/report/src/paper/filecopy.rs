//! mmap copy (2008): seconds of each way to copy, before and after, and their ratio in per cent.

use super::{View, lay};

/// The ways of the original, in its order.
const ORIGINAL: [&str; 6] = [
    "rw-cp",
    "rw-fadv-cp",
    "mm-sync-cp",
    "mm-sync-madv-cp",
    "mw-cp",
    "mw-madv-cp",
];

/// Writes the table; ways that the original did not know follow its six.
pub(super) fn table(view: &View) -> String {
    let mut names: Vec<&str> = ORIGINAL.to_vec();
    for row in &view.cell.metrics {
        if let Some(name) = row.name.strip_prefix("time-")
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    let mut out = format!("{}\n\n", view.label());
    let mut head = vec![String::new()];
    for (index, name) in view.heads().into_iter().enumerate() {
        head.push(name);
        if index > 0 {
            head.push("ratio".to_owned());
        }
    }
    let mut rows = vec![head];
    for name in names {
        let means = view.means(&format!("time-{name}"));
        // A way that was not chosen is no finding; one that a kernel lacks is.
        if means.iter().all(Option::is_none) && !ORIGINAL.contains(&name) {
            continue;
        }
        let first = means.first().copied().flatten();
        let mut row = vec![crate::draw::clean(name, 30, true).replace('-', "_")];
        for (index, mean) in means.into_iter().enumerate() {
            row.push(mean.map_or_else(|| "-".to_owned(), |mean| format!("{:.2}", mean / 1e9)));
            if index > 0 {
                row.push(match (first, mean) {
                    (Some(first), Some(mean)) if first > 0.0 => {
                        format!("{:.2}%", 100.0 * mean / first)
                    }
                    _ => "-".to_owned(),
                });
            }
        }
        rows.push(row);
    }
    out.push_str(&lay(&rows));
    out
}
