//! Renders recorded references as tables: kinds, tasks, ranges of addresses, the working set over time, and what the
//! kernel did with the pages; and as a heat map.

use pagetide_profile::{Checks, Damon, Evictions, Kind, Mapping, ReadAhead, Summary};
use pagetide_quantity::Unit;

use crate::draw::clean::clean;
use crate::draw::quantity::{count, number, show};
use crate::draw::{Align, Cell, Grid, Ink, TextStyle};

/// Maximum number of tasks, of ranges and of pages to list.
const MAX_ROWS: usize = 12;
/// Maximum length of a description of memory, in terminal columns.
const MEMORY_CHARS: usize = 60;
/// Shades of a heat map, from no page of a row to all of them.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Shades for terminals without the characters in [`SHADES`].
const ASCII_SHADES: [char; 5] = [' ', '.', ':', '+', '#'];
/// Maximum number of lines of a heat map.
const MAX_LINES: usize = 16;

/// Cell of the heading of a column.
fn head((at, head): (usize, &&str)) -> Cell {
    Cell::new(if at == 0 { Ink::Strong } else { Ink::Faint }, *head)
}

fn grid(heads: &[&str]) -> Grid {
    let mut grid = Grid::new(Align::names_and_numbers(heads.len() - 1));
    grid.row(heads.iter().enumerate().map(head));
    grid
}

/// Returns what is at a page: a place in a file or a kind of memory; "not known" if its mapping was not seen.
fn memory(summary: &Summary, space: u32, page: u64, text_style: &TextStyle) -> String {
    let found = summary.describe(space, page);
    let found = found.as_deref().unwrap_or("not known");
    clean(found, MEMORY_CHARS, text_style.ascii)
}

/// Renders the tables. `record` is the record's ID.
pub fn references(summary: &Summary, record: &str, text_style: &TextStyle) -> String {
    let header = &summary.header;
    let time = |nanos: u64| show(Unit::Nanos, number(nanos), text_style.ascii);
    let mut out = String::new();
    put!(
        out,
        "record {record}: {} references to {} pages in {}; {} pages were written\n",
        count(header.references()),
        count(summary.pages),
        time(header.instructions),
        count(summary.written)
    );
    let each = number(header.bytes) / number(header.recorded.max(1));
    put!(
        out,
        "recorded: {} references in {} bytes, {each:.2} bytes each\n",
        count(header.recorded),
        count(header.bytes)
    );
    if header.is_cut() {
        put!(
            out,
            "The record reached its largest size after {}. The other {} references are counted here, but not shown below.\n",
            time(header.until),
            count(header.references() - header.recorded)
        );
    }
    put!(out, "\n");
    let mut kinds = grid(&["kind", "references"]);
    for kind in Kind::ALL {
        kinds.row([kind.name().to_owned(), count(summary.of_kind(kind))].map(Cell::plain));
    }
    kinds.row(
        [
            "kernel, its own memory (not recorded)".to_owned(),
            count(header.kernel_own),
        ]
        .map(Cell::plain),
    );
    out.push_str(&kinds.draw(text_style, 0));
    put!(out, "\n");
    let mut tasks = grid(&["task", "references"]);
    for task in summary.tasks.iter().take(MAX_ROWS) {
        let name = if task.is_workload {
            "workload".to_owned()
        } else {
            format!("task {}", task.task)
        };
        tasks.row([name, count(task.references)].map(Cell::plain));
    }
    out.push_str(&tasks.draw(text_style, 0));
    put!(out, "\n");
    let mut ranges = Grid::new(Align::names_and_numbers(4).chain([Align::Left]));
    let heads = [
        "addresses",
        "space",
        "pages",
        "used",
        "references",
        "memory",
    ];
    ranges.row(heads.iter().enumerate().map(head));
    for range in summary.ranges.iter().take(MAX_ROWS) {
        let first = format!("{:#x}", range.first << 12);
        let numbers = [range.pages, range.used, range.references].map(count);
        let space = range.space.to_string();
        let what = memory(summary, range.space, range.first, text_style);
        let cells = [first, space].into_iter().chain(numbers).chain([what]);
        ranges.row(cells.map(Cell::plain));
    }
    out.push_str(&ranges.draw(text_style, 0));
    if summary.mappings.is_empty() {
        out.push_str(
            "Files and mappings were not recorded: the record is of an earlier version, or the kernel has no type data \
             (CONFIG_DEBUG_INFO_BTF).\n",
        );
    } else if summary.nameless > 0 {
        put!(
            out,
            "{} of {} pages have no name: they were unmapped in a way that was not seen.\n",
            count(summary.nameless),
            count(summary.pages)
        );
    }
    put!(out, "\n");
    let mut windows = grid(&["from", "working set", "written", "first used", "references"]);
    for window in &summary.windows {
        let numbers = [window.pages, window.written, window.new, window.references];
        let cells = std::iter::once(time(window.start)).chain(numbers.map(count));
        windows.row(cells.map(Cell::plain));
    }
    out.push_str(&windows.draw(text_style, 0));
    put!(out, "\n");
    out.push_str(&paging(summary, text_style));
    if let Some(damon) = &summary.damon {
        draw_damon(&mut out, damon, text_style);
    }
    put!(out, "\n");
    out.push_str(&heat(summary, text_style));
    out
}

/// Adds a table of counts, each with its name.
fn counts(out: &mut String, head: &str, rows: &[(&str, u64)], text_style: &TextStyle) {
    let mut table = grid(&[head, "number"]);
    for (name, number) in rows {
        table.row([(*name).to_owned(), count(*number)].map(Cell::plain));
    }
    out.push_str(&table.draw(text_style, 0));
}

/// Draws what the kernel did with the pages, and how well it chose.
fn paging(summary: &Summary, text_style: &TextStyle) -> String {
    let (paging, mut out) = (&summary.paging, String::new());
    match &paging.evictions {
        None => out.push_str(
            "Evictions were not recorded: the record is of an earlier version, or the kernel has other functions.\n",
        ),
        Some(evictions) if evictions.judged == 0 && evictions.unknown == 0 => {
            out.push_str("Reclaim evicted none of these pages.\n");
        }
        Some(evictions) => draw_evictions(&mut out, evictions, text_style),
    }
    match &paging.read_ahead {
        None => out.push_str("Reads from swap were not recorded.\n"),
        Some(reads) if reads.ahead == 0 => out.push_str("No page was read ahead from swap.\n"),
        Some(reads) => draw_read_ahead(&mut out, reads, text_style),
    }
    worst(&mut out, summary, text_style);
    match &paging.checks {
        None => {}
        Some(checks) if *checks == Checks::default() => {
            out.push_str("The kernel checked no accessed bit of these pages.\n");
        }
        Some(checks) => draw_checks(&mut out, checks, text_style),
    }
    out
}

fn draw_evictions(out: &mut String, evictions: &Evictions, text_style: &TextStyle) {
    let rows = [
        (
            "all, of pages that were referenced before",
            evictions.judged,
        ),
        ("the page was not referenced again", evictions.not_again),
        (
            "it was referenced again, after all pages that stayed",
            evictions.right,
        ),
        (
            "wrong: a page that stayed was used later, or never",
            evictions.wrong,
        ),
        ("of other pages, not judged", evictions.unknown),
    ];
    counts(out, "evictions", &rows, text_style);
    if evictions.wrong > 0 {
        put!(
            out,
            "At a wrong eviction {:.0} % of the pages that stayed were used later or never (mean). The page was needed again \
             after {} (median).\n",
            100.0 * evictions.later_share,
            show(Unit::Nanos, number(evictions.again_after), text_style.ascii)
        );
    }
    put!(out, "\n");
}

fn draw_read_ahead(out: &mut String, reads: &ReadAhead, text_style: &TextStyle) {
    let rows = [
        ("for a page fault", reads.for_fault),
        ("ahead", reads.ahead),
        ("ahead, and used", reads.used),
        ("ahead, and read again before it was used", reads.wasted),
        ("ahead, and not used until the end", reads.unused),
    ];
    counts(out, "pages read from swap", &rows, text_style);
    put!(out, "\n");
}

/// Lists the pages with the most wrong evictions and wasted reads, if there are any.
fn worst(out: &mut String, summary: &Summary, text_style: &TextStyle) {
    let is_bad = |row: &&pagetide_profile::PageRow| row.wrong + row.wasted > 0;
    let mut rows = summary.paging.pages.iter().filter(is_bad).peekable();
    if rows.peek().is_none() {
        return;
    }
    let mut pages = Grid::new(Align::names_and_numbers(5).chain([Align::Left]));
    let heads = [
        "page",
        "space",
        "evicted",
        "wrong",
        "read ahead",
        "in vain",
        "memory",
    ];
    pages.row(heads.iter().enumerate().map(head));
    for row in rows.take(MAX_ROWS) {
        let address = format!("{:#x}", row.page << 12);
        let numbers = [row.evicted, row.wrong, row.read_ahead, row.wasted];
        let numbers = numbers.map(|number| count(u64::from(number)));
        let what = memory(summary, row.space, row.page, text_style);
        let cells = [address, row.space.to_string()].into_iter().chain(numbers);
        let cells = cells.chain([what]);
        pages.row(cells.map(Cell::plain));
    }
    out.push_str(&pages.draw(text_style, 0));
    put!(out, "\n");
}

fn draw_checks(out: &mut String, checks: &Checks, text_style: &TextStyle) {
    let rows = [
        ("set, and the page had been referenced", checks.young_used),
        ("set, but it had not", checks.young_unused),
        ("not set, but it had been referenced", checks.old_used),
        ("not set, and it had not", checks.old_unused),
    ];
    counts(
        out,
        "accessed bits that the kernel checked",
        &rows,
        text_style,
    );
    put!(
        out,
        "precision {}, recall {}; a set bit was seen {} after the first reference (median)\n",
        percent(checks.precision()),
        percent(checks.recall()),
        show(Unit::Nanos, number(checks.lag), text_style.ascii)
    );
}

/// Draws how well DAMON saw which pages were referenced.
fn draw_damon(out: &mut String, damon: &Damon, text_style: &TextStyle) {
    let each = damon.intervals.max(1);
    let rows = [
        ("regions", damon.regions / each),
        (
            "pages of programs in regions with accesses",
            damon.claimed / each,
        ),
        ("pages that were referenced", damon.referenced / each),
        ("pages that were both", damon.both / each),
    ];
    put!(out, "\n");
    let head = format!("DAMON, mean of {} intervals", count(damon.intervals));
    counts(out, &head, &rows, text_style);
    put!(
        out,
        "precision {}, recall {}; accesses were seen {} after the first reference (median)\n",
        percent(damon.precision()),
        percent(damon.recall()),
        show(Unit::Nanos, number(damon.lag), text_style.ascii)
    );
    out.push_str(
        "DAMON does not flush cached translations, and the emulated CPU caches more of them than a real one: it sees less here.\n",
    );
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(
        || "unknown".to_owned(),
        |share| format!("{:.1} %", 100.0 * share),
    )
}

/// Draws which pages were used when: a line for each part of the used pages, and a column for each window.
fn heat(summary: &Summary, text_style: &TextStyle) -> String {
    let rows = &summary.heat;
    let each = rows.len().div_ceil(MAX_LINES).max(1);
    let shades = if text_style.ascii {
        ASCII_SHADES
    } else {
        SHADES
    };
    let pages = summary.row_pages * each as u64;
    let mut out = format!(
        "used pages in the order of their addresses, {} a line, over time; the shade is the share that is referenced\n",
        count(pages)
    );
    for (line, part) in rows.chunks(each).enumerate() {
        let before = line as u64 * pages;
        let whole = summary.pages.saturating_sub(before).min(pages).max(1);
        out.push('|');
        for window in 0..summary.windows.len() {
            let used: u64 = part.iter().map(|row| u64::from(row[window])).sum();
            let steps = shades.len() as u64 - 1;
            let shade = (used * steps).div_ceil(whole).min(steps);
            out.push(shades[usize::try_from(shade).unwrap_or(0)]);
        }
        // The memory at the start of a line is that of the whole line or of its first pages.
        let mapping = summary.row_mappings.get(line * each).copied().flatten();
        let mapping = mapping.and_then(|mapping| summary.mappings.get(mapping));
        let title = mapping.map_or("", Mapping::title);
        if title.is_empty() {
            out.push_str("|\n");
        } else {
            let title = clean(title, MEMORY_CHARS, text_style.ascii);
            put!(out, "| {title}\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use pagetide_profile::{Header, Paging, Window};

    use super::*;

    #[test]
    fn the_map_shows_when_each_part_of_the_pages_was_used() {
        let window = |pages| Window {
            pages,
            ..Window::default()
        };
        let summary = Summary {
            header: Header {
                instructions: 2000,
                until: 1500,
                recorded: 8,
                counts: [9, 0, 0, 0, 0],
                bytes: 4,
                ..Header::default()
            },
            pages: 6,
            windows: vec![window(4), window(3)],
            heat: vec![vec![4, 1], vec![0, 2]],
            row_pages: 4,
            ..Summary::default()
        };
        let text = references(&summary, "3f2a", &TextStyle::plain(80));
        assert!(text.contains("|█░|\n| █|\n"), "{text}");
        assert!(text.contains("0.50 bytes each"), "{text}");
        assert!(text.contains("The other 1 references"), "{text}");
        assert!(text.contains("Evictions were not recorded"), "{text}");
    }

    #[test]
    fn what_did_not_happen_is_said_in_a_sentence_and_what_did_in_a_table() {
        let text_style = TextStyle::plain(80);
        let mut summary = Summary {
            mappings: vec![Mapping {
                first: 0x70,
                pages: 16,
                name: "/usr/bin/sort".to_owned(),
                ..Mapping::default()
            }],
            ..Summary::default()
        };
        summary.paging = Paging {
            evictions: Some(Evictions::default()),
            read_ahead: Some(ReadAhead::default()),
            checks: Some(Checks::default()),
            ..Paging::default()
        };
        let text = paging(&summary, &text_style);
        for sentence in ["evicted none", "No page was read ahead", "no accessed bit"] {
            assert!(text.contains(sentence), "{text}");
        }
        summary.paging.evictions = Some(Evictions {
            judged: 70,
            wrong: 40,
            not_again: 30,
            later_share: 0.25,
            again_after: 3_000_000,
            ..Evictions::default()
        });
        summary.paging.read_ahead = Some(ReadAhead {
            ahead: 9,
            used: 7,
            wasted: 2,
            ..ReadAhead::default()
        });
        summary.paging.checks = Some(Checks {
            young_used: 3,
            old_used: 1,
            ..Checks::default()
        });
        let row = |page, wrong| pagetide_profile::PageRow {
            page,
            wrong,
            evicted: 40,
            ..pagetide_profile::PageRow::default()
        };
        summary.paging.pages = vec![row(0x7f, 40), row(0x80, 0)];
        let text = paging(&summary, &text_style);
        for part in [
            "25 %",
            "after 3.0",
            "precision 100.0 %, recall 75.0 %",
            "0x7f000",
            "/usr/bin/sort+0xf000",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("0x80000"), "{text}");
    }
}
