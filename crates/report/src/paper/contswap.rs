//! contswap (2009): mean and standard deviation of swap-in, user, system and total time over the runs.

use super::{View, clock, head, lay, row, seconds};

/// Returns the table of one cell in the layout of contswap.
pub(super) fn table(view: &View) -> String {
    let mut out = format!(
        "contswap (2009): {}\nmean and (standard deviation) over the runs\n\n",
        view.label()
    );
    let runs = view.columns().map(|column| view.trials(column).to_string());
    let mut rows = vec![head(view), row("runs", runs.collect(), ["5", "5"])];
    let cells =
        |metric: &str, show: fn(f64) -> String, cpu: Option<fn(&super::extras::CpuTime) -> u64>| {
            view.columns()
                .map(|column| {
                    let centre = view.centre(metric, column);
                    let found = centre.map(|centre| (centre.mean, centre.deviation));
                    match found.or_else(|| of_processes(view, column, cpu?)) {
                        Some((mean, Some(deviation))) => {
                            format!("{} ({})", show(mean), seconds(deviation))
                        }
                        Some((mean, None)) => format!("{} (single)", show(mean)),
                        None => view.why(metric, column).to_owned(),
                    }
                })
                .collect::<Vec<_>>()
        };
    rows.push(row(
        "swap-in",
        cells("swap-in", seconds, None),
        ["74.97s (0.38s)", "45.26s (0.68s)"],
    ));
    rows.push(row(
        "user",
        cells("user", seconds, Some(|cpu| cpu.user.0)),
        ["0.52s", "0.53s"],
    ));
    rows.push(row(
        "system",
        cells("system", seconds, Some(|cpu| cpu.system.0)),
        ["291.07s (3.28s)", "250.47s (5.17s)"],
    ));
    rows.push(row(
        "total",
        cells("total", clock, None),
        ["2m52.66s", "2m45.93s"],
    ));
    // The original did not measure the contiguity of swap, which is the cause.
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    rows.push(row(
        "contiguity",
        view.shown("contiguity", percent),
        ["", ""],
    ));
    out.push_str(&lay(&rows));
    out
}

/// Returns the mean and standard deviation over trials of user or system time in nanoseconds, from the kernel's
/// accounting for each process; `None` if the column's records have none.
fn of_processes(
    view: &View,
    column: usize,
    part: fn(&super::extras::CpuTime) -> u64,
) -> Option<(f64, Option<f64>)> {
    let times = view.extras.cpu.get(&(view.place, column))?;
    let numbers: Vec<f64> = times.iter().map(|time| part(time) as f64).collect();
    let mean = pagetide_verdict::number::mean(&numbers).ok()?;
    let deviation = pagetide_verdict::number::standard_deviation(&numbers).ok()?;
    Some((mean, deviation))
}
