//! Notes on the verdicts of a cell as sentences, the same for every format.

use pagetide_compare::notes::{ColumnNotes, Comparability, Deaths, OPTION, OtherDifference};
use pagetide_compare::{Comparison, MetricRow};
use pagetide_verdict::Verdict;

use crate::about::{self, BASELINE};
use crate::draw::{Ink, TextStyle, clean};
use crate::kinds;
use crate::sentence::Sentence;
use crate::terminal::effect;

/// Maximum length of a name, in columns.
const NAME_CHARS: usize = 40;
const VALUE_CHARS: usize = 60;
/// Maximum number of differences named in a sentence, unless they confound the result.
const NAMED: usize = 6;
/// Maximum number of build options of the kernels named in a sentence, unless they confound the result.
const NAMED_OPTIONS: usize = 12;

/// Returns all notes on the verdicts of a cell: on kinds of swap, then for each column on identical results, deaths,
/// other differences, and settings that cannot have acted.
pub fn sentences(comparison: &Comparison, cell: usize, text_style: &TextStyle) -> Vec<Sentence> {
    let mut all = Vec::new();
    all.extend(kinds::sentence(comparison, cell, text_style.ascii));
    for column in about::others(comparison) {
        all.extend(twin(comparison, cell, column, text_style));
        let Some(notes) = comparison.column_notes(cell, column) else {
            continue;
        };
        let name = clean(
            about::name(comparison, column),
            NAME_CHARS,
            text_style.ascii,
        );
        let of = match comparison.columns.len() {
            0..=2 => String::new(),
            _ => format!(" ({name})"),
        };
        if let Some(deaths) = &notes.deaths {
            all.extend(dying(comparison, deaths, column, text_style));
        }
        all.extend(differing(notes, &of, text_style));
        all.extend(idle(notes, &of, text_style));
    }
    all
}

/// Returns a sentence if every trial of a column has the same metrics as the trial with the same seed in an earlier
/// column; otherwise `None`. Also `None` if the earlier column is the baseline and every verdict is "identical".
fn twin(
    comparison: &Comparison,
    cell: usize,
    column: usize,
    text_style: &TextStyle,
) -> Option<Sentence> {
    let cell = comparison.cells.get(cell)?;
    let same = cell.same_as(column)?;
    let is_identical = |row: &MetricRow| {
        let judgement = about::judgement(row, column);
        judgement.is_none_or(|judgement| judgement.verdict == Verdict::Identical)
    };
    // If the earlier column is the baseline, every row already has the verdict "identical".
    if same == BASELINE && cell.metrics.iter().all(is_identical) {
        return None;
    }
    let name = |column: usize| {
        clean(
            about::name(comparison, column),
            NAME_CHARS,
            text_style.ascii,
        )
    };
    let with = match cell.sides.get(column)?.trials.len() {
        1 => "the only seed".to_owned(),
        many => format!("each of {many} seeds"),
    };
    let table = cell.twin(column).map_or_else(String::new, |twin| {
        format!("; its table is that of {}", name(twin))
    });
    Some(Sentence {
        ink: Ink::Unsure,
        text: format!(
            "{} did the same as {}, every metric alike, with {with}{table}.",
            name(column),
            name(same)
        ),
    })
}

fn dying(
    comparison: &Comparison,
    deaths: &Deaths,
    column: usize,
    text_style: &TextStyle,
) -> Vec<Sentence> {
    let name = |column: usize| {
        clean(
            about::name(comparison, column),
            NAME_CHARS,
            text_style.ascii,
        )
    };
    let sides = [BASELINE, column].map(name);
    let died: u64 = deaths.died.iter().sum();
    let early: u64 = deaths.early.iter().sum();
    let how = if early == died {
        "was killed with memory to spare"
    } else {
        "ran out of memory"
    };
    let count = |side: usize| {
        let of = format!("in {}", deaths.share(side));
        match deaths.early[side] {
            some if some > 0 && early < died => format!("{of} ({some} with memory to spare)"),
            _ => of,
        }
    };
    let mark =
        effect::verdict(&deaths.verdict, text_style).draw(&TextStyle::plain(text_style.width));
    let shared = if (deaths.p_adjusted - deaths.p).abs() > 1e-12 {
        format!(
            ", {} among all cells where trials died",
            probability(deaths.p_adjusted)
        )
    } else {
        String::new()
    };
    let mark = if text_style.ascii {
        deaths.verdict.to_string()
    } else {
        mark
    };
    let mut all = vec![Sentence {
        ink: effect::ink(&deaths.verdict),
        text: format!(
            "{} {how} {}, {} {} (Fisher's exact test: p = {}{shared}): {mark}.",
            sides[0],
            count(0),
            sides[1],
            count(1),
            probability(deaths.p),
        ),
    }];
    let told = |text: &Option<String>, head: &str| {
        let text = clean(text.as_ref()?, 400, text_style.ascii);
        Some(Sentence {
            ink: Ink::Faint,
            text: format!("{head}: {text}."),
        })
    };
    for (side, name) in sides.iter().enumerate() {
        let memory = format!("When {name} died, memory was");
        all.extend(told(&deaths.made_of[side], &memory));
        let reclaim = format!("Reclaim in {name} until then");
        all.extend(told(&deaths.reclaim[side], &reclaim));
    }
    all
}

/// Returns a sentence on each column whose number of deaths differs significantly from that of the baseline. The
/// terminal prints these sentences before the table. [`sentences`] returns them too.
pub fn sure_deaths(comparison: &Comparison, cell: usize, text_style: &TextStyle) -> Vec<Sentence> {
    let mut all = Vec::new();
    for column in about::others(comparison) {
        let deaths = comparison.deaths(cell, column);
        if let Some(deaths) = deaths.filter(|deaths| deaths.verdict.is_difference()) {
            all.extend(
                dying(comparison, deaths, column, text_style)
                    .into_iter()
                    .take(1),
            );
        }
    }
    all
}

/// Returns the deaths of a column, compared with the baseline, in all cells where trials of either died.
fn all_deaths(comparison: &Comparison, column: usize) -> Vec<&Deaths> {
    let of_column = comparison.notes.iter().filter(|b| b.column == column);
    of_column.filter_map(|b| b.deaths.as_ref()).collect()
}

/// Returns the deaths that decide over all cells: the first regression, otherwise the first other significant
/// difference. `None` if no difference is significant.
fn deciding<'a>(all: &[&'a Deaths]) -> Option<&'a Deaths> {
    let first = |is: fn(&Verdict) -> bool| all.iter().find(|deaths| is(&deaths.verdict)).copied();
    first(|verdict| *verdict == Verdict::Regressed).or_else(|| first(Verdict::is_difference))
}

/// Returns the verdict on the deaths of a column, over all cells: a regression if any cell has one, else the first
/// other significant difference. `None` if no cell has a significant difference.
pub(crate) fn deaths_verdict(comparison: &Comparison, column: usize) -> Option<&Verdict> {
    deciding(&all_deaths(comparison, column)).map(|deaths| &deaths.verdict)
}

/// Returns the deaths of a column in a few words for a summary, such as "deaths 6 of 8 against 0 of 8, regressed";
/// `None` if no trial died.
pub(crate) fn deaths_of(comparison: &Comparison, column: usize) -> Option<String> {
    let all = all_deaths(comparison, column);
    let shown = deciding(&all).or(all.first().copied())?;
    let more = match all.len() {
        1 => String::new(),
        many => format!(", in one of {many} cells where trials died"),
    };
    let [a, b] = [0, 1].map(|side| shown.share(side));
    Some(format!("deaths {b} against {a}, {}{more}", shown.verdict))
}

/// Formats a p-value with two decimals from 0.1 on, with three below, and in exponential form below 0.001.
fn probability(p: f64) -> String {
    match p {
        p if p >= 0.1 => format!("{p:.2}"),
        p if p >= 0.001 => format!("{p:.3}"),
        p => format!("{p:.1e}"),
    }
}

fn differing(notes: &ColumnNotes, of: &str, text_style: &TextStyle) -> Vec<Sentence> {
    let of_standing = |wanted: Comparability| -> Vec<&OtherDifference> {
        notes
            .also
            .iter()
            .filter(|also| also.standing == wanted)
            .collect()
    };
    let text = |also: &OtherDifference| {
        format!(
            "{} {} against {}",
            clean(&also.what, NAME_CHARS, text_style.ascii),
            clean(&also.a, VALUE_CHARS, text_style.ascii),
            clean(&also.b, VALUE_CHARS, text_style.ascii)
        )
    };
    let mut all = Vec::new();
    let confounding = of_standing(Comparability::Confounds);
    if !confounding.is_empty() {
        let mut kinds: Vec<&str> = confounding
            .iter()
            .filter_map(|also| Some(also.kind?.word()))
            .collect();
        kinds.dedup();
        let kinds: Vec<String> = kinds
            .iter()
            .map(|kind| format!("--accept {kind}"))
            .collect();
        let list: Vec<String> = confounding.into_iter().map(text).collect();
        all.push(Sentence {
            ink: Ink::Unsure,
            text: format!(
                "Confounded{of}: {}. Nobody asked for that, and it can change the result: make it equal, ask for it as part of \
                 a variant, or accept it with {}.",
                list.join("; "),
                kinds.join(" ")
            ),
        });
    }
    for (standing, head) in [
        (Comparability::Accepted, "Also differs, and is accepted"),
        (
            Comparability::Follows,
            "Also differs, as what was asked for brings it about",
        ),
        (
            Comparability::Inert,
            "Also differs, and cannot act on this workload",
        ),
        (Comparability::Minor, "Also differs"),
    ] {
        let (built, others): (Vec<&OtherDifference>, Vec<&OtherDifference>) = of_standing(standing)
            .into_iter()
            .partition(|also| also.what.starts_with(OPTION));
        for (head, list, most) in [
            (head, others, NAMED),
            ("Kernels built differently", built, NAMED_OPTIONS),
        ] {
            if list.is_empty() {
                continue;
            }
            let more = match list.len().saturating_sub(most) {
                0 => String::new(),
                more => format!("; and {more} more, which --as json lists"),
            };
            let list: Vec<String> = list.into_iter().take(most).map(text).collect();
            all.push(Sentence {
                ink: Ink::Faint,
                text: format!("{head}{of}: {}{more}.", list.join("; ")),
            });
        }
    }
    if !notes.unknown.is_empty() {
        all.push(Sentence {
            ink: Ink::Faint,
            text: format!(
                "Not recorded, so it may differ unseen{of}: {}.",
                notes.unknown.join(", ")
            ),
        });
    }
    all
}

fn idle(notes: &ColumnNotes, of: &str, text_style: &TextStyle) -> Option<Sentence> {
    let all: Vec<String> = notes
        .inert
        .iter()
        .map(|inert| {
            format!(
                "{} ({})",
                clean(&inert.setting, NAME_CHARS, text_style.ascii),
                clean(&inert.why, 200, text_style.ascii)
            )
        })
        .collect();
    (!all.is_empty()).then(|| Sentence {
        ink: Ink::Unsure,
        text: format!("Cannot have acted{of}: {}.", all.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use pagetide_compare::notes::{InertSetting, Kind};
    use pagetide_compare::{Column, Overall};

    use super::*;

    fn comparison(notes: ColumnNotes) -> Comparison {
        let column = |name: &str| Column {
            name: name.to_owned(),
            variant: None,
            valid: 0,
            invalid: 0,
            pending: 0,
            paired: true,
            swap: String::new(),
        };
        Comparison {
            campaign: None,
            baseline: None,
            columns: vec![column("classic"), column("mglru")],
            cells: Vec::new(),
            alpha: 0.05,
            look: None,
            overall: Overall::Invalid,
            cautions: Vec::new(),
            notes: vec![notes],
            kinds: Vec::new(),
            explanations: Vec::new(),
        }
    }

    fn texts(notes: ColumnNotes) -> Vec<String> {
        let comparison = comparison(ColumnNotes { column: 1, ..notes });
        let all = sentences(&comparison, 0, &TextStyle::plain(200));
        all.into_iter().map(|sentence| sentence.text).collect()
    }

    #[test]
    fn a_side_that_ran_out_of_memory_is_reported_with_counts_test_and_content_of_memory() {
        let deaths = Deaths {
            died: [4, 0],
            trials: [4, 4],
            p: 0.028_571,
            p_adjusted: 0.028_571,
            verdict: Verdict::Improved,
            made_of: [Some("24 MB anonymous".to_owned()), None],
            reclaim: [Some("90 pages scanned".to_owned()), None],
            ..Deaths::default()
        };
        let early = Deaths {
            early: [4, 0],
            ..deaths.clone()
        };
        let some = Deaths {
            early: [3, 0],
            ..deaths.clone()
        };
        let notes = ColumnNotes {
            deaths: Some(deaths),
            ..ColumnNotes::default()
        };
        assert_eq!(
            texts(notes),
            [
                "classic ran out of memory in 4 of 4, mglru in 0 of 4 (Fisher's exact test: p = 0.029): ✓ improved.",
                "When classic died, memory was: 24 MB anonymous.",
                "Reclaim in classic until then: 90 pages scanned."
            ]
        );
        for (deaths, start) in [
            (
                early,
                "classic was killed with memory to spare in 4 of 4, mglru in 0 of 4 (",
            ),
            (
                some,
                "classic ran out of memory in 4 of 4 (3 with memory to spare), mglru in 0 of 4 (",
            ),
        ] {
            let notes = ColumnNotes {
                deaths: Some(deaths),
                ..ColumnNotes::default()
            };
            let texts = texts(notes);
            assert!(texts[0].starts_with(start), "{texts:?}");
        }
    }

    #[test]
    fn a_confounding_difference_is_reported_with_a_remedy_and_an_inert_setting_with_its_reason() {
        let also = |what: &str, kind, standing| OtherDifference {
            what: what.to_owned(),
            kind,
            a: "never".to_owned(),
            b: "always".to_owned(),
            standing,
        };
        let notes = ColumnNotes {
            also: vec![
                also(
                    "thp/enabled",
                    Some(Kind::HugePages),
                    Comparability::Confounds,
                ),
                also("lru_gen/enabled", None, Comparability::Minor),
                also("CONFIG_KASAN", None, Comparability::Minor),
            ],
            inert: vec![InertSetting {
                setting: "vm.swappiness".to_owned(),
                why: "there is no swap".to_owned(),
            }],
            ..ColumnNotes::default()
        };
        let texts = texts(notes);
        assert!(
            texts[0].starts_with("Confounded: thp/enabled never against always."),
            "{texts:?}"
        );
        assert!(
            texts[0].ends_with("or accept it with --accept huge-pages."),
            "{texts:?}"
        );
        assert_eq!(
            texts[1],
            "Also differs: lru_gen/enabled never against always."
        );
        assert_eq!(
            texts[2],
            "Kernels built differently: CONFIG_KASAN never against always."
        );
        assert_eq!(
            texts[3],
            "Cannot have acted: vm.swappiness (there is no swap)."
        );
    }
}
