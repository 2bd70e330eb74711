//! swapbench's readstats (2009): average read and write time of a process, and the change relative to the first file.

use super::{View, lay};

/// Writes the table.
pub(super) fn table(view: &View) -> String {
    let mut out = format!("{}\n\n", view.label());
    let (reads, writes) = (view.means("read-mean"), view.means("write-mean"));
    let mut rows = vec![
        ["", "average read", "average write", "read", "write"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (index, head) in view.heads().into_iter().enumerate() {
        let of = |means: &[Option<f64>]| means.get(index).copied().flatten();
        let seconds = |mean: Option<f64>| {
            mean.map_or_else(|| "-".to_owned(), |mean| format!("{:.6}", mean / 1e9))
        };
        let change = |means: &[Option<f64>]| match (means.first().copied().flatten(), of(means)) {
            (Some(first), Some(mean)) if index > 0 && first > 0.0 => {
                format!("{:+.0}%", (mean / first - 1.0) * 100.0)
            }
            _ => String::new(),
        };
        rows.push(vec![
            head,
            seconds(of(&reads)),
            seconds(of(&writes)),
            change(&reads),
            change(&writes),
        ]);
    }
    out.push_str(&lay(&rows));
    out
}
