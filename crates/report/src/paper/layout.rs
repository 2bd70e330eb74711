//! Renders the tables in the layout of the papers.

use super::view::View;

/// Renders a table as text. The first column is left-aligned and all others are right-aligned. Columns are as wide as
/// their content.
pub(crate) fn lay(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |index: usize| {
        rows.iter()
            .filter_map(|row| row.get(index))
            .map(|text| crate::draw::width(text))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, text) in row.iter().enumerate() {
            let space = " ".repeat(widths[index] - crate::draw::width(text));
            if index == 0 {
                put!(line, "{text}{space}");
            } else {
                put!(line, "  {space}{text}");
            }
        }
        put!(out, "{}\n", line.trim_end());
    }
    out
}

/// Formats nanoseconds as minutes and seconds with two decimals, as the originals print long times: `2m52.66s`;
/// `45.26s` below a minute.
pub(crate) fn clock(nanos: f64) -> String {
    let hundredths = (nanos / 1e7).round();
    let minutes = (hundredths / 6000.0).floor();
    let rest = (hundredths - 6000.0 * minutes) / 100.0;
    if minutes < 1.0 {
        return format!("{rest:.2}s");
    }
    format!("{minutes:.0}m{rest:05.2}s")
}

/// Formats nanoseconds as seconds with two decimals, also above a minute: `74.97s`.
pub(crate) fn seconds(nanos: f64) -> String {
    format!("{:.2}s", nanos / 1e9)
}

/// Returns the first row of a table: an empty cell, the names of the columns, and the two headings in [`PUBLISHED`].
pub(crate) fn head(view: &View) -> Vec<String> {
    let published = PUBLISHED.map(str::to_owned).to_vec();
    [vec![String::new()], view.heads(), published].concat()
}

/// Returns one row of a table: the label, a cell for each column, and the two published values.
pub(crate) fn row(label: &str, cells: Vec<String>, published: [&str; 2]) -> Vec<String> {
    let published = published.map(str::to_owned).to_vec();
    [vec![label.to_owned()], cells, published].concat()
}

/// Headings of the two columns that contain values published in the paper.
pub(crate) const PUBLISHED: [&str; 2] = ["published before", "published after"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_minutes_with_leading_zeros_and_others_plain_seconds() {
        assert_eq!(clock(45.26e9), "45.26s");
        assert_eq!(clock(172.66e9), "2m52.66s");
        assert_eq!(clock(0.0512e9), "0.05s");
        assert_eq!(clock(125.07e9), "2m05.07s");
        assert_eq!(clock(59.999e9), "1m00.00s");
        assert_eq!(seconds(74.97e9), "74.97s");
        assert_eq!(seconds(291.07e9), "291.07s");
    }
}
