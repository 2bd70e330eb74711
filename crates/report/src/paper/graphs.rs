//! The five graphs of VM Regress's report as text: access time over references, referenced pages over time, age and
//! number of references of present pages, and vmstat over time.

use std::io::{self, Read};

use pagetide_probe::text::{Kind, Source};
use pagetide_quantity::{Nanos, Series};

use crate::draw::clean;
use crate::draw::quantity::count;
use crate::html::accesses::TIME_BITS;

/// Width of a graph in characters.
const ACROSS: usize = 60;
const DOWN: usize = 10;
/// Number of columns for the labels of an axis.
const HEAD: usize = 14;
/// Maximum number of accesses drawn. Of longer logs, only every second, third, … access is drawn.
const MAX: u64 = 1 << 20;
/// Shades from empty to full.
const SHADES: [char; 5] = [' ', '.', ':', '+', '#'];
/// Fields of vmstat that are drawn, if the series contains them.
const VMSTAT: [&str; 8] = [
    "nr_free_pages",
    "pgfault",
    "pgmajfault",
    "pswpin",
    "pswpout",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_direct",
];

/// An access that is drawn in the graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Number of the access, counted from 0.
    pub number: u64,
    /// Start of the access in nanoseconds: the sum of the times of all earlier accesses.
    pub begin: u64,
    /// Duration of the access in nanoseconds.
    pub time: u64,
    /// Index of the accessed page.
    pub page: u64,
}

/// State of a page at the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageState {
    /// True if the page is in memory.
    pub present: bool,
    /// Number of references to any page since the last use of this page.
    pub age: f64,
    /// Number of references to this page.
    pub uses: f64,
}

/// Data for the graphs of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunData {
    /// Accesses in the order in which they happened.
    pub accesses: Vec<Access>,
    /// States of all pages, by page index.
    pub pages: Vec<PageState>,
    /// vmstat over time from the observed pass; `None` if there was no observed pass.
    pub vmstat: Option<Series>,
}

/// Reads a log with `entries` accesses; of a log with more than 2^20, every second, third, … access. Fails if the log
/// is shorter.
pub fn accesses(log: impl Read, entries: u64) -> io::Result<Vec<Access>> {
    let stride = entries.div_ceil(MAX).max(1);
    let mut log = io::BufReader::with_capacity(1 << 16, log);
    let mut all = Vec::new();
    let mut begin = 0_u64;
    for number in 0..entries {
        let mut entry = [0; 8];
        log.read_exact(&mut entry)?;
        let entry = u64::from_le_bytes(entry);
        let time = entry & ((1 << TIME_BITS) - 1);
        if number.is_multiple_of(stride) {
            all.push(Access {
                number,
                begin,
                time,
                page: entry >> TIME_BITS,
            });
        }
        begin = begin.saturating_add(time);
    }
    Ok(all)
}

/// Returns the states of pages from a series with the columns `present`, `age` and `uses`; `None` if a column is
/// missing.
pub fn pages(series: &Series) -> Option<Vec<PageState>> {
    let [present, age, uses] = ["present", "age", "uses"].map(|name| series.column(name));
    let (present, age, uses) = (present?, age?, uses?);
    (0..series.rows())
        .map(|row| {
            Some(PageState {
                present: present.get(row)? > 0.5,
                age: age.get(row)?,
                uses: uses.get(row)?,
            })
        })
        .collect()
}

/// Draws the five graphs. If there is no data for a graph, a line gives the reason.
pub fn graphs(run: &RunData) -> String {
    let mut out = String::new();
    let mut graph = |number: usize, title: &str, text: Option<String>, why: &str| {
        put!(out, "\nGraph {number}: {title}\n");
        if let Some(text) = text {
            out.push_str(&text);
        } else {
            put!(out, "  {why}\n");
        }
    };
    let no_log = "the record has no log of every access";
    graph(
        1,
        "access time over references",
        time_over_references(&run.accesses),
        no_log,
    );
    graph(
        2,
        "page index over time",
        page_over_time(&run.accesses),
        no_log,
    );
    let no_pages = "the record does not tell the state of pages";
    graph(
        3,
        "page age against presence",
        age_and_presence(&run.pages),
        no_pages,
    );
    graph(
        4,
        "reference count against presence",
        uses_and_presence(&run.pages),
        no_pages,
    );
    let vmstat = run.vmstat.as_ref().and_then(vmstat_over_time);
    graph(
        5,
        "vmstat over time",
        vmstat,
        "no pass was observed; run with --observe",
    );
    out
}

/// Returns the index of a value on a scale with `of` steps from the smallest to the largest value, counted from 0.
fn place(value: f64, [low, high]: [f64; 2], of: usize) -> usize {
    let share = if high > low {
        (value - low) / (high - low)
    } else {
        0.0
    };
    // The product is a number from 0 to a few dozen.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let place = (share.clamp(0.0, 1.0) * of as f64) as usize;
    place.min(of - 1)
}

/// Returns a shade character for a share from 0 to 1: `.` above 0, `:` above 5 %, `+` above 20 %, `#` above 50 %.
fn shade(share: f64) -> char {
    let edges = [0.0, 0.05, 0.2, 0.5];
    SHADES[edges.iter().filter(|edge| share > **edge).count()]
}

/// Draws a density plot of points, each with its column and its line from the bottom. Each column is normalized
/// separately: the shade of a character is its share of the column's points. `top` and `bottom` label the ends of the
/// vertical axis.
fn density(points: impl Iterator<Item = (usize, usize)>, top: &str, bottom: &str) -> String {
    let mut cells = vec![[0_u64; DOWN]; ACROSS];
    for (across, up) in points {
        cells[across][up] += 1;
    }
    let mut out = String::new();
    for up in (0..DOWN).rev() {
        let head = match up {
            0 => bottom,
            _ if up == DOWN - 1 => top,
            _ => "",
        };
        let line: String = cells
            .iter()
            .map(|column| shade(column[up] as f64 / column.iter().sum::<u64>().max(1) as f64))
            .collect();
        put!(out, "  {:>HEAD$} |{line}|\n", clean(head, HEAD, true));
    }
    out
}

/// Returns the line below a graph with the labels of both ends of its axis.
fn below(begin: &str, end: &str) -> String {
    let room = ACROSS.saturating_sub(begin.len() + end.len());
    format!("  {:>HEAD$}  {begin}{}{end}\n", "", " ".repeat(room))
}

fn time(nanos: u64) -> String {
    clean(&Nanos(nanos).to_string(), HEAD, true)
}

/// Draws access times over references; `None` without accesses. The time axis is logarithmic, because most times are a
/// thousandth of the longest.
fn time_over_references(accesses: &[Access]) -> Option<String> {
    let last = accesses.last()?.number;
    let times = || accesses.iter().map(|access| access.time.max(1));
    let (least, most) = (times().min()?, times().max()?);
    let scale = [(least as f64).ln(), (most as f64).ln()];
    let points = accesses.iter().map(|access| {
        let across = place(access.number as f64, [0.0, last as f64], ACROSS);
        (across, place((access.time.max(1) as f64).ln(), scale, DOWN))
    });
    let drawn = density(points, &time(most), &time(least));
    Some(drawn + &below("first", &format!("{}th reference", count(last + 1))))
}

fn page_over_time(accesses: &[Access]) -> Option<String> {
    let end = accesses.last()?.begin;
    let most = accesses.iter().map(|access| access.page).max()?;
    let points = accesses.iter().map(|access| {
        let across = place(access.begin as f64, [0.0, end as f64], ACROSS);
        (across, place(access.page as f64, [0.0, most as f64], DOWN))
    });
    let drawn = density(points, &format!("page {}", count(most)), "page 0");
    Some(drawn + &below("start", &time(end)))
}

/// Draws one line for each tenth of the range of ages: the number of pages, and the share of these pages that is
/// present. `None` if the pages are unknown.
fn age_and_presence(pages: &[PageState]) -> Option<String> {
    let most = pages.iter().map(|page| page.age).fold(0.0, f64::max);
    if pages.is_empty() {
        return None;
    }
    let mut bins = [[0_u64; 2]; DOWN];
    for page in pages {
        bins[place(page.age, [0.0, most], DOWN)][usize::from(page.present)] += 1;
    }
    let mut out = format!(
        "  {:>HEAD$}  present, of pages last used so many references ago\n",
        "age below"
    );
    for (number, [absent, present]) in (1..).zip(bins) {
        let edge = (most * f64::from(number) / DOWN as f64).round();
        let all = absent + present;
        let share = present as f64 / all.max(1) as f64;
        let filled = if all == 0 {
            0
        } else {
            place(share, [0.0, 1.0], 41)
        };
        // The value is not larger than the number of references.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let edge = count(edge as u64);
        let told = if all == 0 {
            "no pages".to_owned()
        } else {
            format!("{:.1} % of {}", share * 100.0, count(all))
        };
        put!(out, "  {edge:>HEAD$} |{:<40}| {told}\n", "#".repeat(filled));
    }
    Some(out)
}

/// Draws the curve of reference counts over pages; the area below is filled according to the share of present pages.
/// `None` if the pages are unknown.
fn uses_and_presence(pages: &[PageState]) -> Option<String> {
    if pages.is_empty() {
        return None;
    }
    let columns: Vec<(f64, f64)> = (0..ACROSS.min(pages.len()))
        .map(|column| {
            let width = ACROSS.min(pages.len());
            let part = &pages[column * pages.len() / width..(column + 1) * pages.len() / width];
            let of = |value: fn(&PageState) -> f64| {
                part.iter().map(value).sum::<f64>() / part.len().max(1) as f64
            };
            (
                of(|page| page.uses),
                of(|page| f64::from(u8::from(page.present))),
            )
        })
        .collect();
    let most = columns.iter().map(|(uses, _)| *uses).fold(0.0, f64::max);
    let mut out = String::new();
    for up in (0..DOWN).rev() {
        let line: String = columns
            .iter()
            .map(|(uses, present)| {
                let top = place(*uses, [0.0, most], DOWN);
                let full = (present * (top + 1) as f64).round();
                if up == top {
                    '*'
                } else if up < top && ((up + 1) as f64) <= full {
                    '#'
                } else {
                    ' '
                }
            })
            .collect();
        let head = match up {
            0 => "0".to_owned(),
            _ if up == DOWN - 1 => format!("{most:.1} uses"),
            _ => String::new(),
        };
        put!(out, "  {head:>HEAD$} |{line}|\n");
    }
    out.push_str(&below(
        "page 0",
        &format!("page {}", count(pages.len() as u64 - 1)),
    ));
    put!(
        out,
        "  * mean references of a page; # under it: the share of them that is present\n"
    );
    Some(out)
}

/// Draws one line for each field in [`VMSTAT`]: its growth over time, or its largest values if it is not cumulative.
/// `None` if the series has no times or none of these fields.
fn vmstat_over_time(series: &Series) -> Option<String> {
    let times = series.column("time")?;
    let rows = series.rows();
    let end = times.get(rows.checked_sub(1)?)?;
    let source = Source::named("vmstat");
    let mut out = String::new();
    for name in VMSTAT {
        let Some(values) = series.column(name) else {
            continue;
        };
        let is_amount = source
            .and_then(|source| source.key(name))
            .is_some_and(|key| key.kind == Kind::Gauge);
        let mut columns = [0.0_f64; ACROSS];
        for row in usize::from(!is_amount)..rows {
            let (Some(time), Some(value)) = (times.get(row), values.get(row)) else {
                continue;
            };
            let column = &mut columns[place(time, [0.0, end], ACROSS)];
            if is_amount {
                *column = column.max(value);
            } else {
                *column += (value - values.get(row - 1).unwrap_or(value)).max(0.0);
            }
        }
        let most = columns.iter().copied().fold(0.0, f64::max);
        let line: String = columns
            .iter()
            .map(|value| shade(if most > 0.0 { value / most } else { 0.0 }))
            .collect();
        put!(out, "  {:>HEAD$} |{line}|\n", clean(name, HEAD, true));
    }
    if out.is_empty() {
        return None;
    }
    // Nanoseconds below 2^53, never negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let end = time(end.max(0.0) as u64);
    out.push_str(&below("start", &end));
    put!(
        out,
        "  # over half of the line's largest, + a fifth, : a twentieth, . less\n"
    );
    Some(out)
}
