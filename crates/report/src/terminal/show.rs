//! One record in full: its origin, its results, and warnings.

use pagetide_quantity::{ColumnData, Direction, Value};
use pagetide_record::subject::memory_label;
use pagetide_record::{ArenaKind, FileError, Record, RecordReader};

use crate::about::EXACT_CAVEAT;
use crate::draw::clean::wrap;
use crate::draw::quantity::{self, count};
use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean, picture};

/// Maximum number of counters shown for each source.
const MAX_COUNTERS: usize = 12;
/// Maximum number of lines shown from the kernel log.
const LOG_LINES: usize = 12;
/// Maximum number of lines shown from a program's output.
const OUTPUT_LINES: usize = 20;
/// Maximum number of lines of a single value.
const VALUE_LINES: usize = 6;
/// Maximum number of settings, facts and parameters listed.
const MAX_LISTED: usize = 80;

/// Presence of a mapping's pages in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Name of the series that contains the pages.
    pub name: String,
    /// True for each page that was present, starting with page 0.
    pub pages: Vec<bool>,
}

/// Reads every series of a record that has a column `present`. If the series has a column `page`, this is the number of
/// the page in a row; otherwise the rows are the pages in order.
pub fn presence(reader: &RecordReader) -> Result<Vec<Presence>, FileError> {
    let names: Vec<String> = reader.series_names().map(str::to_owned).collect();
    let mut maps = Vec::new();
    for name in names {
        let series = reader.series(&name)?;
        let Some(present) = series.column("present") else {
            continue;
        };
        let mut pages = vec![false; present.len()];
        for row in 0..present.len() {
            let at = match series.column("page") {
                Some(ColumnData::Int(index)) => index
                    .get(row)
                    .and_then(|page| usize::try_from(*page).ok())
                    .unwrap_or(row),
                _ => row,
            };
            // An index beyond the rows comes from a damaged record and must not cause a large allocation.
            if let Some(page) = pages.get_mut(at) {
                *page = present.get(row).is_some_and(|value| value > 0.0);
            }
        }
        maps.push(Presence { name, pages });
    }
    Ok(maps)
}

/// The record has no section of this kind and name.
#[derive(Debug, thiserror::Error)]
#[error("the record has no {kind} `{name}`: {known}")]
pub struct NoSection {
    kind: &'static str,
    name: String,
    /// Names of the sections that the record has.
    known: String,
}

/// Returns an error if a record has no section of this kind (such as `series` or `blob`) and name.
pub fn has_section(reader: &RecordReader, kind: &'static str, name: &str) -> Result<(), NoSection> {
    let sections = reader.record().sections.iter();
    let names: Vec<&str> = sections
        .filter(|section| section.kind == kind)
        .map(|section| section.name.as_str())
        .collect();
    if names.contains(&name) {
        return Ok(());
    }
    Err(NoSection {
        kind,
        name: name.to_owned(),
        known: match names.as_slice() {
            [] => "it has none".to_owned(),
            names => format!("it has {}", names.join(", ")),
        },
    })
}

/// Renders a record. `presence` comes from [`presence()`].
pub fn show(record: &Record, presence: &[Presence], text_style: &TextStyle) -> String {
    let mut page = Page {
        text_style: *text_style,
        out: String::new(),
    };
    page.head(record);
    page.verdict_on_trial(record);
    page.metrics(record);
    page.output(record);
    page.counters(record);
    page.pictures(record, presence);
    page.made(record);
    page.log(record);
    page.wall(record);
    page.out
}

struct Page {
    text_style: TextStyle,
    out: String,
}

impl Page {
    fn line(&mut self, ink: Ink, text: &str) {
        self.out.push_str(&self.text_style.ink(ink, text));
        self.out.push('\n');
    }

    fn title(&mut self, text: &str) {
        self.out.push('\n');
        self.line(Ink::Strong, text);
    }

    fn wrapped(&mut self, ink: Ink, text: &str, indent: usize) {
        for line in wrap(text, self.text_style.width - indent, self.text_style.ascii) {
            self.out.push_str(&" ".repeat(indent));
            self.line(ink, &line);
        }
    }

    fn clean(&self, text: &str, limit: usize) -> String {
        clean(text, limit, self.text_style.ascii)
    }

    /// Renders names and values in two columns, without empty values and at most [`MAX_LISTED`] of them. Long values
    /// are wrapped within their column; very long values are cut.
    fn pairs<'a>(&mut self, pairs: impl IntoIterator<Item = (&'a str, String)>) {
        let mut grid = Grid::new([Align::Left, Align::Left]);
        let all: Vec<(&str, String)> = pairs
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let head = all
            .iter()
            .map(|(name, _)| crate::draw::width(&self.clean(name, 36)))
            .max()
            .unwrap_or(0);
        let room = self.text_style.width.saturating_sub(2 + head + 2).max(12);
        let more = all.len().saturating_sub(MAX_LISTED);
        for (name, value) in all.iter().take(MAX_LISTED) {
            // The kernel separates the parts of a setting with tabs.
            let value = self.clean(&value.replace('\t', " "), room * VALUE_LINES);
            for (index, line) in wrap(&value, room, self.text_style.ascii)
                .into_iter()
                .enumerate()
            {
                let name = if index == 0 {
                    self.clean(name, 36)
                } else {
                    String::new()
                };
                grid.row([Cell::new(Ink::Faint, name), Cell::plain(line)]);
            }
        }
        let text = grid.draw(&self.text_style, 2);
        self.out.push_str(&text);
        if more > 0 {
            self.line(
                Ink::Faint,
                &format!("  and {more} more; --json has them all"),
            );
        }
    }

    fn head(&mut self, record: &Record) {
        let subject = &record.subject;
        let dot = self.text_style.or(" · ", " / ");
        let title = format!("{} · seed {}", subject.cell_label(), subject.seed);
        let title = self.clean(&title, self.text_style.width);
        self.line(Ink::Strong, &title);
        let text = format!(
            "variant {}{dot}kernel {}{dot}{} arena, {} pass",
            self.clean(&subject.variant.name, 40),
            self.clean(&subject.variant.kernel.release, 40),
            subject.arena.kind,
            subject.pass,
        );
        self.wrapped(Ink::Plain, &text, 0);
        let id = format!("record {}", record.id());
        self.line(Ink::Faint, &id);
    }

    fn verdict_on_trial(&mut self, record: &Record) {
        if !record.is_valid() {
            self.title("Invalid: these numbers are not used");
            for reason in &record.results.invalid {
                let text = self.clean(&reason.to_string(), 500);
                self.wrapped(Ink::Broken, &text, 2);
            }
        }
        if !record.results.warnings.is_empty() {
            self.title("Warnings");
            for warning in &record.results.warnings {
                let text = self.clean(&warning.to_string(), 500);
                self.wrapped(Ink::Unsure, &text, 2);
            }
        }
    }

    /// Renders the growth of the counters of each source, and the values of gauges before and after the trial; the
    /// largest change comes first.
    fn counters(&mut self, record: &Record) {
        for (source, counters) in &record.results.counters {
            let changed = crate::counters::changed(source, counters);
            if changed.is_empty() {
                continue;
            }
            let title = format!("Counters of {}", self.clean(source, 40));
            self.title(&title);
            let ascii = self.text_style.ascii;
            let shown = changed.iter().take(MAX_COUNTERS);
            self.pairs(shown.map(|change| (change.name, change.text(ascii))));
            if changed.len() > MAX_COUNTERS {
                let more = changed.len() - MAX_COUNTERS;
                self.line(
                    Ink::Faint,
                    &format!("  and {more} more; --json has them all"),
                );
            }
        }
    }

    fn metrics(&mut self, record: &Record) {
        if record.results.metrics.is_empty() {
            return;
        }
        self.title("Metrics");
        let mut grid = Grid::new([Align::Left, Align::Right, Align::Left]);
        let mut metrics: Vec<_> = record.results.metrics.iter().collect();
        // The sort is stable: primary and other metrics each stay in the order of the scenario.
        metrics.sort_by_key(|metric| !metric.primary);
        let mut absent = Vec::new();
        for metric in metrics {
            let name = self.clean(&metric.name, 32);
            let remark = match (metric.primary, metric.direction) {
                (true, Direction::Lower) => "primary, lower is better",
                (true, Direction::Higher) => "primary, higher is better",
                (true, Direction::Neutral) => "primary",
                (false, Direction::Lower) => "lower is better",
                (false, Direction::Higher) => "higher is better",
                (false, Direction::Neutral) => "",
            };
            let value = match &metric.value {
                Value::Number(value) => quantity::show(metric.unit, *value, self.text_style.ascii),
                Value::Absent(why) => {
                    absent.push(format!("{name}: {}", self.clean(why, 200)));
                    self.text_style.or("–", "-").to_owned()
                }
            };
            let ink = if metric.primary {
                Ink::Strong
            } else {
                Ink::Plain
            };
            grid.row([
                Cell::plain(name),
                Cell::new(ink, value),
                Cell::new(Ink::Faint, remark),
            ]);
        }
        let text = grid.draw(&self.text_style, 2);
        self.out.push_str(&text);
        for text in absent {
            self.wrapped(Ink::Faint, &text, 2);
        }
        if record.subject.arena.kind == ArenaKind::Exact {
            self.wrapped(Ink::Faint, EXACT_CAVEAT, 2);
        }
    }

    fn pictures(&mut self, record: &Record, presence: &[Presence]) {
        for (name, histogram) in &record.results.histograms {
            let name = self.clean(name, 40);
            let n = count(histogram.count);
            self.title(&format!("Histogram `{name}`, {n} values"));
            let text = picture::histogram(histogram, &self.text_style);
            self.out.push_str(&text);
        }
        for map in presence {
            let name = self.clean(&map.name, 40);
            self.title(&format!("Presence `{name}`"));
            let text = picture::presence(&map.pages, &self.text_style);
            self.out.push_str(&text);
        }
    }

    fn made(&mut self, record: &Record) {
        let subject = &record.subject;
        let kernel = &subject.variant.kernel;
        let (results, maker) = (&record.results, &record.maker);
        if !subject.params.is_empty() {
            self.title("Parameters");
            self.pairs(subject.params.iter().map(|(k, v)| (k.as_str(), v.clone())));
        }
        if !results.settings.is_empty() {
            self.title("Settings, read back");
            self.pairs(
                results
                    .settings
                    .iter()
                    .map(|(k, v)| (k.as_str(), v.clone())),
            );
        }
        if !results.facts.is_empty() {
            self.title("Facts of the machine inside");
            self.pairs(results.facts.iter().map(|(k, v)| (k.as_str(), v.clone())));
        }
        self.title("Made by");
        let sections: Vec<String> = record
            .sections
            .iter()
            .map(|section| format!("{} ({})", section.name, section.size))
            .collect();
        // The version string of an image begins with the release.
        let version = if kernel.version.starts_with(&kernel.release) {
            kernel.version.clone()
        } else {
            format!("{} {}", kernel.release, kernel.version)
        };
        let halts = results
            .halts
            .as_ref()
            .map_or_else(String::new, |halts| match halts.times() {
                0 => "never, while it was measured".to_owned(),
                n => format!("{n} times while it was measured"),
            });
        let files = (!subject.files_on.is_default()).then(|| subject.files_on.to_string());
        let cpus = subject.cpus.are_several().then(|| {
            let (count, turn) = (subject.cpus.count, subject.cpus.turn);
            format!("{count}, in turns of {turn}")
        });
        let ring = (!subject.trace_ring.is_default()).then(|| subject.trace_ring.to_string());
        self.pairs([
            ("pagetide", maker.version.clone()),
            ("command", maker.command.clone()),
            ("kernel", version),
            ("kernel from", kernel.source.clone()),
            ("build id", kernel.build_id.clone().unwrap_or_default()),
            ("image digest", kernel.digest.clone()),
            ("boot", subject.variant.boot.join(" ")),
            ("command line", subject.arena.cmdline.clone()),
            ("emulator", subject.arena.emulator.clone()),
            ("machine", subject.arena.machine.clone()),
            ("processor", subject.arena.cpu.clone()),
            ("CPUs", cpus.unwrap_or_default()),
            ("memory", memory_label(subject.memory, subject.limit)),
            ("nodes", subject.nodes.to_string()),
            (
                "swap",
                format!("{} of {}", subject.swap_label(), subject.swap_size),
            ),
            ("files on", files.unwrap_or_default()),
            ("trace ring", ring.unwrap_or_default()),
            ("elapsed", results.elapsed.to_string()),
            ("CPU halted", halts),
            ("digest", record.digest.clone()),
            ("sections", sections.join(", ")),
        ]);
    }

    /// Renders the last lines of what a trial's programs wrote.
    fn output(&mut self, record: &Record) {
        for (name, title) in [
            ("stdout", "Standard output"),
            ("stderr", "Standard error"),
            ("server-stdout", "Standard output of the server"),
            ("server-stderr", "Standard error of the server"),
            ("beside-stdout", "Standard output of the program beside it"),
            ("beside-stderr", "Standard error of the program beside it"),
        ] {
            let text = record.results.texts.get(name).map_or("", String::as_str);
            let lines: Vec<&str> = text.lines().collect();
            if lines.is_empty() {
                continue;
            }
            let left_out = lines.len().saturating_sub(OUTPUT_LINES);
            if left_out > 0 {
                self.title(&format!(
                    "{title}, the last {OUTPUT_LINES} of {} lines (--json has all that was kept)",
                    lines.len()
                ));
            } else {
                self.title(title);
            }
            for line in &lines[left_out..] {
                let text = self.clean(line, self.text_style.width - 2);
                self.line(Ink::Plain, &format!("  {text}"));
            }
        }
    }

    fn log(&mut self, record: &Record) {
        let lines: Vec<&str> = record.results.kernel_log.lines().collect();
        if lines.is_empty() {
            return;
        }
        self.title("Kernel log, last lines");
        for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
            let text = self.clean(line, self.text_style.width - 2);
            self.line(Ink::Faint, &format!("  {text}"));
        }
    }

    fn wall(&mut self, record: &Record) {
        let wall = &record.wall;
        self.title("Wall clock and machine (outside the digest)");
        let machine = &wall.machine;
        let cpus = match machine.cpus {
            0 => machine.cpu.clone(),
            n => format!("{n} x {}", machine.cpu),
        };
        self.pairs([
            ("started", crate::date::utc(wall.started)),
            (
                "to first instruction",
                wall.to_first_instruction.to_string(),
            ),
            ("scenario", wall.scenario.to_string()),
            ("to stored", wall.to_stored.to_string()),
            ("total", wall.total.to_string()),
            ("side by side", wall.side_by_side.to_string()),
            ("campaign", wall.campaign.clone()),
            ("machine", cpus),
            ("machine memory", machine.memory.to_string()),
            (
                "machine system",
                format!("{} {}", machine.system, machine.kernel),
            ),
        ]);
    }
}
