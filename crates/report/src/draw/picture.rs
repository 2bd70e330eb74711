//! Small pictures in text: a latency histogram, a presence map.

use pagetide_quantity::{Histogram, Nanos};

use super::clean::{clean, width, wrap};
use super::quantity;
use super::text_style::{Ink, TextStyle};

/// Block characters from empty to full in eighths, for the end of a bar.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Quantiles printed under a histogram.
const QUANTILES: [(f64, &str); 5] = [
    (0.5, "p50"),
    (0.9, "p90"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

/// Returns a bar whose length is `share` (0 to 1) of `room` columns. Every share above zero is visible.
pub fn bar(share: f64, room: usize, text_style: &TextStyle) -> String {
    let units = if text_style.ascii { 1.0 } else { 8.0 };
    let full = room as f64 * units;
    let mut length = (share.clamp(0.0, 1.0) * full).round();
    if share > 0.0 {
        length = length.max(1.0).min(full);
    }
    let mut out = String::new();
    let mut left = length;
    while left >= units {
        out.push_str(text_style.or("█", "#"));
        left -= units;
    }
    for (eighths, text) in EIGHTHS.iter().enumerate().skip(1) {
        if !text_style.ascii && (left - eighths as f64).abs() < 0.5 {
            out.push_str(text);
        }
    }
    out
}

/// Returns the rows of a histogram: the smallest value of each row and the number of values. A row covers a power of
/// two, or a part of it if all values lie close together.
fn rows(histogram: &Histogram) -> Vec<(u64, u64)> {
    let span = histogram.max.max(1).ilog2() - histogram.min.max(1).ilog2();
    // Above 64, the log-linear histogram has 32 buckets for each power of two.
    let parts: u32 = match span {
        0 => 8,
        1 | 2 => 4,
        3..=5 => 2,
        _ => 1,
    };
    let mut rows: Vec<(u64, u64)> = Vec::new();
    let start = |value: u64| -> u64 {
        if value < 64 {
            // Small values have separate buckets. Above them, each power of two is one row.
            return if value == 0 { 0 } else { 1 << value.ilog2() };
        }
        let exponent = value.ilog2();
        let width = (1_u64 << exponent) / u64::from(parts);
        value / width * width
    };
    let next = |row: u64| -> u64 {
        if row == 0 {
            1
        } else if row < 64 {
            row * 2
        } else {
            row.saturating_add((1_u64 << row.ilog2()) / u64::from(parts))
        }
    };
    for (index, count) in &histogram.buckets {
        let row = start(Histogram::bounds(*index).0);
        while let Some((last, _)) = rows.last().copied() {
            if last >= row {
                break;
            }
            // Empty rows in between are drawn, because gaps are informative.
            let following = next(last);
            if following <= last {
                break;
            }
            rows.push((following, 0));
        }
        match rows.last_mut() {
            Some((last, sum)) if *last == row => *sum += count,
            _ => rows.push((row, *count)),
        }
    }
    rows
}

/// Maximum number of consecutive empty rows that are drawn individually.
const EMPTY: usize = 2;

/// Draws a histogram of nanoseconds: a row for each power of two (or a part of it if values lie close together), then
/// the quantiles. The length of a bar is proportional to the square root of the row's count, so that tails are visible.
/// Each line is indented by two spaces.
pub fn histogram(histogram: &Histogram, text_style: &TextStyle) -> String {
    if histogram.count == 0 {
        return "  no values\n".to_owned();
    }
    let rows = rows(histogram);
    let largest = rows.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let heads: Vec<String> = rows.iter().map(|(low, _)| time(*low, text_style)).collect();
    let head = heads.iter().map(|text| width(text)).max().unwrap_or(0);
    let counts: Vec<String> = rows.iter().map(|(_, n)| quantity::count(*n)).collect();
    let number = counts.iter().map(String::len).max().unwrap_or(0);
    let room = text_style
        .width
        .saturating_sub(2 + head + 3 + number + 2)
        .min(60);
    let mut out = String::new();
    let mut index = 0;
    while index < rows.len() {
        let empty = rows[index..].iter().take_while(|(_, n)| *n == 0).count();
        if empty > EMPTY {
            put!(
                out,
                "  {:>head$} {}\n",
                text_style.or("⋮", ":"),
                text_style.ink(Ink::Faint, text_style.or("│", "|"))
            );
            index += empty;
            continue;
        }
        let share = (rows[index].1 as f64 / largest as f64).sqrt();
        let drawn = bar(share, room, text_style);
        let pad = " ".repeat(head - width(&heads[index]));
        let gap = " ".repeat(room - width(&drawn));
        put!(
            out,
            "  {pad}{} {}{drawn}{gap}  {:>number$}\n",
            heads[index],
            text_style.ink(Ink::Faint, text_style.or("│", "|")),
            counts[index],
        );
        index += 1;
    }
    let mut named: Vec<String> = QUANTILES
        .iter()
        .map(|(q, name)| format!("{name} {}", time(histogram.quantile(*q), text_style)))
        .collect();
    named.push(format!("max {}", time(histogram.max, text_style)));
    let remark = "bars grow with the square root of the count";
    for text in [named.join(", ").as_str(), remark] {
        for line in wrap(text, text_style.width.saturating_sub(2), text_style.ascii) {
            put!(out, "  {}\n", text_style.ink(Ink::Faint, &line));
        }
    }
    out
}

/// Formats a time of this many nanoseconds as short text with its unit.
fn time(nanos: u64, text_style: &TextStyle) -> String {
    clean(&Nanos(nanos).to_string(), 20, text_style.ascii)
}

/// Dots of a braille cell by column and row, as bits of the Unicode block U+2800.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
/// Shades for ASCII, from empty to full.
const SHADES: [char; 5] = [' ', '.', ':', '+', '#'];

/// Maximum number of lines of a presence map.
const LINES: usize = 8;

/// Draws a map of the pages of a mapping that are in memory, starting with page 0 at the left of the first line. A
/// braille dot is a page that is present. If there are more pages than places for dots, it is a group of pages of which
/// at least half are present. In ASCII, a character stands for a page or group, darker the more of it is present. Each
/// line is indented by two spaces and begins with its first page number.
pub fn presence(present: &[bool], text_style: &TextStyle) -> String {
    if present.is_empty() {
        return "  no pages\n".to_owned();
    }
    let head = quantity::count(present.len() as u64).len();
    let room = text_style
        .width
        .saturating_sub(2 + head + 2 + 2)
        .clamp(8, 96);
    // A character has two columns and four rows of dots. It holds eight consecutive pages, so that neighbouring pages
    // stay together.
    let cell = if text_style.ascii { 1 } else { 8 };
    let capacity = room * LINES * cell;
    let group = present.len().div_ceil(capacity);
    let groups: Vec<f64> = present
        .chunks(group)
        .map(|pages| pages.iter().filter(|p| **p).count() as f64 / pages.len() as f64)
        .collect();
    let mut out = String::new();
    for (line, chunk) in groups.chunks(room * cell).enumerate() {
        let mut text = String::new();
        for share in chunk.chunks(cell) {
            text.push(if text_style.ascii {
                shade(share[0])
            } else {
                braille(share)
            });
        }
        let first = quantity::count((line * room * cell * group) as u64);
        put!(
            out,
            "  {} {}{text}{}\n",
            text_style.ink(Ink::Faint, &format!("{first:>head$}")),
            text_style.ink(Ink::Faint, text_style.or("▕", "|")),
            text_style.ink(Ink::Faint, text_style.or("▏", "|")),
        );
    }
    let here = present.iter().filter(|p| **p).count();
    let dot = match (group, text_style.ascii) {
        (1, false) => "a dot is a page".to_owned(),
        (n, false) => format!("a dot is {n} pages, at least half of them present"),
        (1, true) => "# is a present page".to_owned(),
        (n, true) => format!("a character is {n} pages, from none present (blank) to all (#)"),
    };
    let text = format!(
        "{} of {} pages present ({:.1} %); {dot}",
        quantity::count(here as u64),
        quantity::count(present.len() as u64),
        100.0 * here as f64 / present.len() as f64
    );
    for line in wrap(&text, text_style.width.saturating_sub(2), text_style.ascii) {
        put!(out, "  {}\n", text_style.ink(Ink::Faint, &line));
    }
    out
}

/// Returns one of five shade characters for a share from 0 to 1: blank for 0, `#` for all.
fn shade(share: f64) -> char {
    let edges = [0.0, 0.25, 0.5, 0.999_999];
    SHADES[edges.iter().filter(|edge| share > **edge).count()]
}

/// Returns a braille character with a dot for each of up to eight shares that is at least a half, the left column
/// first.
fn braille(shares: &[f64]) -> char {
    let mut bits = 0x2800;
    for (index, share) in shares.iter().take(8).enumerate() {
        if *share >= 0.5 {
            bits |= DOTS[index / 4][index % 4];
        }
    }
    char::from_u32(bits).unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: impl IntoIterator<Item = u64>) -> Histogram {
        values.into_iter().collect()
    }

    #[test]
    fn every_value_of_a_histogram_is_in_exactly_one_row() {
        for values in [
            vec![5, 70, 71, 1_000_000],
            (100..200).collect::<Vec<u64>>(),
            vec![0, u64::MAX],
            vec![90_000; 40],
        ] {
            let n = values.len() as u64;
            let rows = rows(&sample(values));
            assert_eq!(rows.iter().map(|(_, count)| count).sum::<u64>(), n);
            assert!(rows.windows(2).all(|w| w[0].0 < w[1].0), "{rows:?}");
        }
    }

    #[test]
    fn a_presence_map_shows_every_page_in_both_alphabets() {
        let pages: Vec<bool> = (0..64).map(|i| i % 2 == 0).collect();
        let drawn = presence(&pages, &TextStyle::plain(80));
        // Pages 0, 2, 4 and 6 are dots 1, 3, 4 and 6.
        assert!(drawn.contains("\u{282d}"), "{drawn}");
        assert!(drawn.contains("32 of 64 pages present (50.0 %)"), "{drawn}");
        let ascii = TextStyle {
            ascii: true,
            ..TextStyle::plain(80)
        };
        let drawn = presence(&pages, &ascii);
        assert!(drawn.is_ascii(), "{drawn}");
        assert!(drawn.contains("# # # #"), "{drawn}");
    }

    #[test]
    fn pictures_keep_within_the_width() {
        let histogram_of = sample((0..100_000).map(|i| 60 + i * i / 1000));
        let pages = vec![true; 1_000_000];
        for width in [40, 80, 120] {
            for ascii in [false, true] {
                let text_style = TextStyle {
                    ascii,
                    ..TextStyle::plain(width)
                };
                let map = presence(&pages, &text_style);
                let bars = histogram(&histogram_of, &text_style);
                for line in map.lines().chain(bars.lines()) {
                    assert!(super::width(line) <= width, "{width}: {line}");
                }
            }
        }
    }
}
