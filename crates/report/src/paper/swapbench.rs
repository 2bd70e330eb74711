//! swapbench's readstats (2009): average read and write time of a process, the times of each process, and the change
//! relative to the first variant.

use super::{ProcessTimes, View, lay};

/// Published average read and write times in seconds, before and after.
const PUBLISHED: [(&str, f64, f64); 2] = [
    ("published before", 0.560_072, 0.560_866),
    ("published after", 0.433_929, 0.430_475),
];

/// Returns the table of one cell in the layout of swapbench's readstats.
pub(super) fn table(view: &View) -> String {
    let mut out = format!(
        "swapbench (2009): {}\nreadstats: seconds, mean over processes and runs\n\n",
        view.label()
    );
    let mut rows = vec![
        ["", "average read", "average write", "read", "write"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let cell = |metric: &str, column: usize| match view.mean(metric, column) {
        Some(mean) => seconds(mean),
        None => view.why(metric, column).to_owned(),
    };
    let against_first = |metric: &str, column: usize| match column {
        0 => String::new(),
        _ => change(view.mean(metric, 0), view.mean(metric, column)),
    };
    for (column, head) in view.heads().into_iter().enumerate() {
        rows.push(vec![
            head,
            cell("read-mean", column),
            cell("write-mean", column),
            against_first("read-mean", column),
            against_first("write-mean", column),
        ]);
    }
    let [(_, read, write), _] = PUBLISHED;
    for (place, (label, reads, writes)) in PUBLISHED.into_iter().enumerate() {
        let against_first = |first: f64, second: f64| match place {
            0 => String::new(),
            _ => change(Some(first), Some(second)),
        };
        rows.push(vec![
            label.to_owned(),
            format!("{reads:.6}"),
            format!("{writes:.6}"),
            against_first(read, reads),
            against_first(write, writes),
        ]);
    }
    out.push_str(&lay(&rows));
    if let Some(processes) = processes(view) {
        put!(out, "\n{processes}");
    }
    out
}

/// Returns a table with a row for each process; `None` if no record has data of processes.
fn processes(view: &View) -> Option<String> {
    let of = |column: usize| {
        view.extras
            .processes
            .get(&(view.place, column))
            .map_or(&[][..], Vec::as_slice)
    };
    let most = view.columns().map(|column| of(column).len()).max()?;
    if most == 0 {
        return None;
    }
    let mut head = vec!["process".to_owned()];
    for (column, name) in view.heads().into_iter().enumerate() {
        head.extend([format!("{name}: read"), "write".to_owned()]);
        if column > 0 {
            head.extend(["read".to_owned(), "write".to_owned()]);
        }
    }
    let mut rows = vec![head];
    for process in 0..most {
        let mut row = vec![process.to_string()];
        let first = of(0).get(process).copied().unwrap_or_default();
        for column in view.columns() {
            let ProcessTimes { read, write } = of(column).get(process).copied().unwrap_or_default();
            let cell = |time: Option<f64>| time.map_or_else(|| "unrun".to_owned(), seconds);
            row.extend([cell(read), cell(write)]);
            if column > 0 {
                row.extend([change(first.read, read), change(first.write, write)]);
            }
        }
        rows.push(row);
    }
    Some(lay(&rows))
}

/// Formats nanoseconds as seconds in the format of the original's readstats, with six decimals.
fn seconds(nanos: f64) -> String {
    format!("{:.6}", nanos / 1e9)
}

/// Returns the change from the first to the second value in whole per cent, negative if the second is smaller. Empty if
/// a value is missing or the first is 0.
fn change(first: Option<f64>, second: Option<f64>) -> String {
    match (first, second) {
        (Some(first), Some(second)) if first > 0.0 => {
            format!("{:+.0}%", (second / first - 1.0) * 100.0)
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_time_is_a_negative_change() {
        assert_eq!(change(Some(0.560_072), Some(0.433_929)), "-23%");
        assert_eq!(change(Some(2.0), Some(3.0)), "+50%");
        assert_eq!(change(None, Some(3.0)), "");
    }
}
