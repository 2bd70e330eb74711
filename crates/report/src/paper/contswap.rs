//! contswap (2009): mean and standard deviation of swap-in, user, system and total time over the runs.

use super::{View, clock, lay};

/// Writes the table.
pub(super) fn table(view: &View) -> String {
    let runs = view.trials();
    let mut out = format!(
        "{}\n{runs} runs, mean and (standard deviation)\n\n",
        view.label()
    );
    let mut rows = vec![[vec![String::new()], view.heads()].concat()];
    let from_metric = |name: &str| -> Columns {
        view.centres(name)
            .into_iter()
            .map(|centre| centre.map(|c| (c.mean, c.deviation.unwrap_or(0.0))))
            .collect()
    };
    for (name, cells) in [
        ("swap-in", from_metric("swap-in")),
        (
            "user",
            either(from_metric("user"), cpu(view, |cpu| cpu.user.0)),
        ),
        (
            "system",
            either(from_metric("system"), cpu(view, |cpu| cpu.system.0)),
        ),
        ("total", from_metric("total")),
    ] {
        let cells = cells.into_iter().map(|cell| match cell {
            Some((mean, deviation)) => format!("{} ({:.2}s)", clock(mean), deviation / 1e9),
            None => "-".to_owned(),
        });
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    // The cause, which the original could not see.
    let cells = view.means("contiguity").into_iter().map(|share| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0))
    });
    rows.push(
        std::iter::once("contiguity".to_owned())
            .chain(cells)
            .collect(),
    );
    out.push_str(&lay(&rows));
    out
}

/// Mean and deviation of each column, where it has them.
type Columns = Vec<Option<(f64, f64)>>;

/// What the first has, else what the second has.
fn either(first: Columns, second: Columns) -> Columns {
    first
        .into_iter()
        .zip(second)
        .map(|(first, second)| first.or(second))
        .collect()
}

/// Mean and deviation of one part of the processor time.
fn cpu(view: &View, part: impl Fn(&super::CpuTime) -> u64) -> Columns {
    (0..view.comparison.columns.len())
        .map(|column| {
            let times = view.extras.cpu.get(&(view.place, column))?;
            let numbers: Vec<f64> = times.iter().map(|time| part(time) as f64).collect();
            let mean = pagetide_verdict::number::mean(&numbers).ok()?;
            let deviation = pagetide_verdict::number::standard_deviation(&numbers).ok()?;
            Some((mean, deviation.unwrap_or(0.0)))
        })
        .collect()
}
