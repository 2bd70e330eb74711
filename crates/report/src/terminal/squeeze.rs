//! The smallest memory that is enough: the answer in a sentence, the curve, and what filled memory at that size.

use pagetide_compare::followed::{Follows, VariedSqueezes};
use pagetide_compare::pressure::Pressure;
use pagetide_compare::squeezed::{CUT, Knob, Resident, SqueezeResult};
use pagetide_compare::squeezes::{ComparedSqueezes, MeaningRow, PressureDifference};
use pagetide_compare::tried::TriedSize;
use pagetide_quantity::command::command;
use pagetide_quantity::{Bytes, Unit};
use pagetide_verdict::squeeze::{Answer, Fit, Point};
use pagetide_verdict::waiting::RateConclusion;

use crate::draw::quantity::{show, signed};
use crate::draw::{Align, Ink, TextStyle, grouped, width};
use crate::terminal::list::{Row, list};

/// Renders the whole result of a search for the smallest memory.
pub fn squeeze(squeezed: &SqueezeResult, text_style: &TextStyle) -> String {
    let mut out = String::new();
    put!(
        out,
        "{}\n",
        text_style.ink(Ink::Strong, &sentence(squeezed, text_style.ascii))
    );
    put!(
        out,
        "
{} of {}, {}
",
        squeezed.metric,
        squeezed.cell,
        runs(squeezed.runs)
    );
    out.push_str(&list(&squeezed.curve, text_style));
    if let Some(knee) = squeezed.knee {
        put!(
            out,
            "\nThe curve bends most at {}.\n",
            size(knee, text_style.ascii)
        );
    }
    if let Some(resident) = &squeezed.resident {
        put!(out, "{}\n", in_memory(squeezed, resident, text_style.ascii));
    }
    let meanings = &squeezed.pressure;
    for (name, pressure) in [("some", meanings.some), ("full", meanings.full)] {
        if let Some(found) = pressure {
            put!(
                out,
                "PSI memory {name} of {} % meant {} % slower here, between the nearest of {} sizes.\n",
                number(found.pressure * 100.0),
                number(found.slowdown * 100.0),
                found.points
            );
        }
    }
    for caution in &squeezed.cautions {
        put!(out, "Caution: {caution}.\n");
    }
    if squeezed.curve.iter().any(TriedSize::was_cut) {
        put!(
            out,
            "A run is ended after {CUT} times the time with plenty.\n"
        );
    }
    put!(
        out,
        "Records: `{}`\n",
        command(&["list", "records", "--campaign", &squeezed.campaign])
    );
    out
}

/// Renders searches for the smallest memory that suffices, one for each value of a word of the program's command line:
/// the result of each search, and whether the needed memory grows with the word's value.
pub fn varied(all: &VariedSqueezes, text_style: &TextStyle) -> String {
    let mut out = String::new();
    if let Some(follows) = &all.follows {
        let sentence = follow(&all.key, follows, text_style.ascii);
        put!(out, "{}\n\n", text_style.ink(Ink::Strong, &sentence));
    }
    for one in &all.searches {
        put!(out, "{} = {}\n", all.key, one.value);
        out.push_str(&squeeze(&one.squeeze, text_style));
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Renders the searches of several variants: whether pressure has the same meaning for each variant, then the result of
/// each search.
pub fn compared(all: &ComparedSqueezes, text_style: &TextStyle) -> String {
    let mut out = String::new();
    let names: Vec<&str> = all
        .searches
        .iter()
        .map(|one| one.variant.as_str())
        .collect();
    for sentence in differences(all) {
        put!(out, "{}\n", text_style.ink(Ink::Strong, &sentence));
    }
    for kind in Pressure::ALL {
        let rows: Vec<&MeaningRow> = all.meanings.iter().filter(|m| m.kind == kind).collect();
        if rows.is_empty() {
            continue;
        }
        put!(
            out,
            "\nslower at PSI memory {} of, between the nearest sizes\n",
            kind.name()
        );
        let wide = names.iter().map(|name| width(name)).max().unwrap_or(0);
        put!(out, "{:wide$}", "");
        for row in &rows {
            put!(
                out,
                "  {:>8}",
                format!("{} %", number(row.pressure * 100.0))
            );
        }
        out.push('\n');
        for (place, name) in names.iter().enumerate() {
            put!(out, "{name}{:1$}", "", wide - width(name));
            for row in &rows {
                let value = row.slowdowns[place];
                let text = value.map_or_else(String::new, |value| percent(value, text_style.ascii));
                put!(
                    out,
                    "  {:1$}{text}",
                    "",
                    8_usize.saturating_sub(width(&text))
                );
            }
            out.push('\n');
        }
    }
    for one in &all.searches {
        put!(out, "\n{}\n", one.variant);
        out.push_str(&squeeze(&one.squeeze, text_style));
    }
    out
}

/// Returns a sentence for each kind of pressure and each variant after the first, on whether the same pressure means
/// the same slowdown as on the first variant.
pub fn differences(all: &ComparedSqueezes) -> Vec<String> {
    let name = |place: usize| {
        let one = all.searches.get(place);
        one.map_or("", |one| one.variant.as_str())
    };
    let sentence = |difference: &PressureDifference| {
        let (kind, a, b) = (difference.kind.name(), name(0), name(difference.variant));
        let Some(found) = difference.found else {
            let why = difference.why.map(|why| why.to_string());
            return format!(
                "Whether PSI memory {kind} means the same slowdown on {b} as on {a} is not decided: {}.",
                why.unwrap_or_default()
            );
        };
        let times = format!("{:.2} times", found.ratio);
        let [low, high] = found.interval;
        let interval = format!("95 %: {low:.2} to {high:.2}");

        match found.finding {
            RateConclusion::Differ => format!(
                "PSI memory {kind} does not mean the same on {b} as on {a}: the same share of time waited goes with {times} the \
                 slowdown ({interval})."
            ),
            RateConclusion::Same => format!(
                "PSI memory {kind} means the same on {b} as on {a}: the same share of time waited goes with {times} the slowdown \
                 ({interval})."
            ),
            RateConclusion::Open => format!(
                "Whether PSI memory {kind} means the same slowdown on {b} as on {a} is not decided: the same share of time waited \
                 goes with {times} the slowdown ({interval})."
            ),
        }
    };
    all.differences.iter().map(sentence).collect()
}

/// Returns a sentence that states how the need for memory depends on a setting.
fn follow(key: &str, follows: &Follows, ascii: bool) -> String {
    let setting = size(follows.setting.0, ascii);
    let need = show(Unit::Bytes, follows.need.abs(), ascii);
    let change = if follows.need < 0.0 { "less" } else { "more" };
    if follows.is_bounded {
        format!(
            "The program is bounded by the {key} setting: with {setting} more of {key} it needs {need} more. Choose {key} first, then the \
             memory for it."
        )
    } else {
        format!(
            "The program is not bounded by the {key} setting: with {setting} more of {key} it needs {need} {change}."
        )
    }
}

/// Returns a message for a search that was stopped after `runs` runs.
pub fn stopped(runs: u32, most: u32) -> String {
    format!("stopped after {runs} of at most {most} runs; the same command goes on from here")
}

/// Describes the result of one tested size in one line.
pub fn point_text(point: &Point) -> String {
    let size = Bytes(point.size);
    let seeds = match point.seeds {
        1 => "1 seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    };
    match (&point.died, point.slowdown) {
        (Some(why), _) => format!("{size}: it {why} ({seeds})"),
        (None, Some(slowdown)) => format!("{size}: {:+.1} % ({seeds})", slowdown * 100.0),
        (None, None) => format!("{size}: nothing ({seeds})"),
    }
}

fn runs(number: u32) -> String {
    match number {
        1 => "1 run".to_owned(),
        number => format!("{number} runs"),
    }
}

/// Formats a size as text, in the unit that suits it best.
fn size(bytes: u64, ascii: bool) -> String {
    show(Unit::Bytes, bytes as f64, ascii)
}

/// Returns the smallest size that is enough, or why none is known, in one sentence or two.
pub fn sentence(squeezed: &SqueezeResult, ascii: bool) -> String {
    let design = &squeezed.design;
    let within = format!(
        "at most {} % slower than with {}",
        number(design.within * 100.0),
        size(design.plenty, ascii)
    );
    let what = match squeezed.knob {
        Knob::Memory => "memory",
        Knob::Limit => "limit",
    };
    let of = |end: &pagetide_verdict::squeeze::End| {
        let sure = if end.is_sure || design.seeds < 2 {
            ""
        } else {
            " (one seed alone)"
        };
        format!("{}{sure}", size(end.size, ascii))
    };
    match &squeezed.answer {
        Answer::PlentyDied { why } => format!(
            "Even with {} it does not come to an end that counts ({why}): mend that, or raise --memory.",
            size(design.plenty, ascii)
        ),
        Answer::NothingTried => {
            "Nothing smaller than plenty could be tried: lower --least, or raise --memory."
                .to_owned()
        }
        Answer::Never { enough } => format!(
            "{} of {what} is enough, the smallest size that was tried: it is {within}. Whether less is enough is not known: \
             lower --least.",
            of(enough)
        ),
        Answer::AtMost { enough } => format!(
            "{} of {what} is enough: it is {within}. Whether less is enough the seeds leave open.",
            of(enough)
        ),
        Answer::Between { too_small, enough } => {
            let why = match &too_small.died {
                Some(why) => format!("with {} it {why}", of(too_small)),
                None => format!("{} is too little", of(too_small)),
            };
            format!("{} of {what} is enough: it is {within}; {why}.", of(enough))
        }
    }
}

/// Formats a number with at most two decimals, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Describes what filled memory at the smallest size that is enough.
fn in_memory(squeezed: &SqueezeResult, resident: &Resident, ascii: bool) -> String {
    let at = match &squeezed.answer {
        Answer::Never { enough } | Answer::AtMost { enough } | Answer::Between { enough, .. } => {
            size(enough.size, ascii)
        }
        Answer::PlentyDied { .. } | Answer::NothingTried => String::new(),
    };
    let group = resident.group.filter(|_| squeezed.knob == Knob::Limit);
    in_memory_at(&at, resident, group, ascii)
}

/// Describes what filled the machine's memory at one size, and the memory cgroup if the size is its limit.
fn in_memory_at(at: &str, resident: &Resident, group: Option<Bytes>, ascii: bool) -> String {
    let size = |bytes: Bytes| size(bytes.0, ascii);
    let machine = format!(
        "At {at}, when most is in use: {} anonymous, {} of files, {} of the kernel's for them, {} other (zram, processors' own \
         lists); of the whole machine, seed 1.",
        size(resident.anon),
        size(resident.file),
        size(resident.kernel),
        size(resident.rest)
    );
    match group {
        Some(group) => format!(
            "{machine} The limit counts the program's own group, which held at most {}; the rest is of processes outside it.",
            size(group)
        ),
        None => machine,
    }
}

fn percent(value: f64, ascii: bool) -> String {
    let digits = if value.abs() < 0.1 { 2 } else { 0 };
    format!("{} %", signed(value * 100.0, digits, ascii))
}

/// Returns the texts of the cells in the row of a tested size.
pub(crate) fn cells(tried: &TriedSize, ascii: bool) -> Vec<String> {
    let (point, means) = (&tried.point, &tried.means);
    let count = |value: Option<f64>| value.map_or_else(String::new, |value| grouped(value, 0));
    let share = |value: Option<f64>| {
        value.map_or_else(String::new, |value| {
            format!("{} %", grouped(value * 100.0, 1))
        })
    };
    let said = match (point.fit, &point.died) {
        (_, Some(why)) => why.clone(),
        (Fit::Within, _) => "enough".to_owned(),
        (Fit::TooSlow | Fit::Died, _) => "too slow".to_owned(),
        (Fit::Open, _) => "open".to_owned(),
    };
    vec![
        size(point.size, ascii),
        point
            .slowdown
            .map_or_else(String::new, |value| percent(value, ascii)),
        point.interval.map_or_else(String::new, |[low, high]| {
            format!("{} to {}", percent(low, ascii), percent(high, ascii))
        }),
        point.seeds.to_string(),
        count(means.refaults),
        count(means.swapped_out),
        share(means.psi_some),
        share(means.psi_full),
        said,
    ]
}

impl Row for TriedSize {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("memory", Align::Right),
        ("slower", Align::Right),
        ("95 %", Align::Left),
        ("seeds", Align::Right),
        ("refaults", Align::Right),
        ("swapped out", Align::Right),
        ("PSI some", Align::Right),
        ("PSI full", Align::Right),
        ("", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        cells(self, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_machine_beyond_the_limit_is_distinguished_from_what_the_limit_counts() {
        let kib = |count: u64| Bytes(count << 10);
        let resident = Resident {
            anon: kib(21_289),
            file: kib(300),
            kernel: kib(100),
            rest: kib(0),
            group: Some(kib(20_736)),
        };
        let text = in_memory_at("20.25 MiB", &resident, resident.group, true);
        let (machine, group) = text.split_once(" The limit counts ").unwrap();
        assert!(
            machine.contains("20.79 MiB anonymous") && machine.contains("whole machine"),
            "{machine}"
        );
        assert!(
            group.contains("held at most 20.25 MiB") && group.contains("outside it"),
            "{group}"
        );
        // If the size of the machine's memory is searched, there is no memory cgroup.
        let text = in_memory_at("20.25 MiB", &resident, None, true);
        assert_eq!(text, machine);
    }
}
