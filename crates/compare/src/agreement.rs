//! Compares the effects of one campaign that ran in several arenas, metric by metric, and decides whether the arenas
//! agree.
//!
//! Only effects are compared across arenas, because arenas share no records. An effect is the difference between a
//! variant and the baseline in one arena, with its interval.

use std::fmt;

use pagetide_quantity::{Direction, Unit};
use pagetide_record::{ArenaKind, Subject, SwapSpec};
use pagetide_store::{CampaignNote, Store};
use pagetide_verdict::judgement::EffectKind;
use pagetide_verdict::{Judgement, Verdict};
use serde::Serialize;

use crate::comparison::{Cell, Comparison, MetricRow};
use crate::error::CompareError;
use crate::limit::group_limit;
use crate::select::{campaign, compare_note};

/// Suffixes that distinguish the names of one campaign's runs in several arenas: `x-host` is `x` in the host arena.
const ENDINGS: [&str; 3] = ["", "-host", "-vm"];

/// Distance from 1. If the whole interval of a ratio lies within it, an inconclusive effect counts as none, and two
/// such effects agree. The margins of verdicts are smaller, but an arena with noise would need hundreds of repeats for
/// them.
const SMALL: f64 = 0.10;

/// The effects of one campaign in several arenas.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// The arenas, the exact one first.
    pub arenas: Vec<ArenaSide>,
    /// One row for each metric of each cell and variant that has an effect in at least two arenas. Contains primary
    /// metrics only, unless all were asked for, and only variants that ran in the first arena.
    pub rows: Vec<AgreementRow>,
    /// Labels of cells that exist in one arena only.
    pub alone: Vec<String>,
}

/// One arena of the comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArenaSide {
    /// Kind of the arena.
    pub arena: ArenaKind,
    /// ID of the campaign's run in this arena.
    pub campaign: String,
    /// Release of the baseline's kernel; empty without records.
    pub kernel: String,
}

/// One metric of one cell and variant in all arenas.
#[derive(Clone, Debug, Serialize)]
pub struct AgreementRow {
    /// Label of the cell in the first arena that has it.
    pub cell: String,
    /// Name of the variant that is compared with the baseline.
    pub variant: String,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: Unit,
    /// Whether lower or higher values are better.
    pub direction: Direction,
    /// The effect in each arena, in the order of [`Agreement::arenas`]; `None` if the arena has no estimate of it.
    pub effects: Vec<Option<ArenaEffect>>,
    /// Whether the effects have the same sign in all arenas.
    pub sign: Agrees,
    /// True if the intervals of all effects have a common value, so that the effect may have the same size everywhere.
    /// `None` if an effect has no interval, or if ratios and differences are mixed.
    pub same_size: Option<bool>,
    /// Differences between the arenas that may cause a disagreement; empty if `same_size` is true, if it is `None` and
    /// all signs agree, or if no such difference is known.
    pub reasons: Vec<String>,
}

/// Effect of a variant in one arena.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ArenaEffect {
    /// Number of trials of the variant, or of its sampling units if trials are repeated within a unit.
    pub trials: u64,
    /// Whether the numbers are ratios or differences.
    pub kind: EffectKind,
    /// The estimated effect: a ratio, or a difference in the unit of the metric.
    pub estimate: f64,
    /// Lower end of the interval; `None` without an interval.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` without an interval.
    pub high: Option<f64>,
    /// Sign of the effect.
    pub sign: Sign,
}

/// Sign of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// The variant's value is significantly larger than the baseline's.
    More,
    /// The variant's value is significantly smaller than the baseline's.
    Less,
    /// The values are identical or equivalent, or the verdict is inconclusive and the interval of the ratio lies within
    /// 10 % of 1.
    None,
    /// The sign is unknown: the verdict is invalid or confounded, there is no interval, the interval contains effects
    /// of both signs, or the verdict is inconclusive and the effect may be larger than 10 % or is not a ratio.
    Open,
}

/// Whether the arenas agree in the sign of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agrees {
    /// All arenas have the same sign, or effects so small that their signs do not matter.
    Yes,
    /// The sign differs between at least two arenas, and their intervals have no common value or cannot be compared.
    No,
    /// No two arenas disagree, but a sign is unknown, or two signs differ although the intervals have a common value.
    Open,
}

impl fmt::Display for Agrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Open => "open",
        })
    }
}

impl Sign {
    fn of(judgement: &Judgement, kind: EffectKind, interval: Option<(f64, f64)>) -> Self {
        let null = kind.null();
        match (&judgement.verdict, interval) {
            (Verdict::Identical | Verdict::Equivalent, _) => Self::None,
            (Verdict::Invalid { .. } | Verdict::Confounded { .. }, _) | (_, None) => Self::Open,
            (Verdict::Inconclusive { .. }, Some((low, high))) => {
                if kind == EffectKind::Ratio && is_small(low, high) {
                    Self::None
                } else {
                    Self::Open
                }
            }
            (_, Some((low, _))) if low >= null => Self::More,
            (_, Some((_, high))) if high <= null => Self::Less,
            _ => Self::Open,
        }
    }
}

impl ArenaEffect {
    fn of(judgement: &Judgement) -> Option<Self> {
        // Identical records have no effect to estimate.
        let Some(effect) = judgement.effect else {
            return (judgement.verdict == Verdict::Identical).then(|| Self {
                trials: judgement.b.map_or(0, |summary| summary.n),
                kind: EffectKind::Ratio,
                estimate: 1.0,
                low: Some(1.0),
                high: Some(1.0),
                sign: Sign::None,
            });
        };
        let interval = effect
            .interval
            .map(|interval| (interval.low, interval.high));
        Some(Self {
            trials: judgement.b.map_or(0, |summary| summary.n),
            kind: effect.kind,
            estimate: effect.estimate,
            low: interval.map(|interval| interval.0),
            high: interval.map(|interval| interval.1),
            sign: Sign::of(judgement, effect.kind, interval),
        })
    }
}

impl ArenaEffect {
    /// True if the interval of a ratio lies within [`SMALL`] of 1. For a difference, or without an interval, true if
    /// the sign is [`Sign::None`].
    fn is_small(&self) -> bool {
        match (self.kind, self.low, self.high) {
            (EffectKind::Ratio, Some(low), Some(high)) => is_small(low, high),
            _ => self.sign == Sign::None,
        }
    }

    /// Returns whether this effect has the same sign as another.
    fn agrees(&self, other: &Self) -> Agrees {
        if self.sign == other.sign && self.sign != Sign::Open {
            return Agrees::Yes;
        }
        if self.is_small() && other.is_small() {
            return Agrees::Yes;
        }
        let is_open = [self, other].iter().any(|effect| effect.sign == Sign::Open);
        if is_open || common(&[Some(*self), Some(*other)]) == Some(true) {
            return Agrees::Open;
        }
        Agrees::No
    }
}

/// True if an interval of ratios lies within [`SMALL`] of 1.
fn is_small(low: f64, high: f64) -> bool {
    low >= 1.0 - SMALL && high <= 1.0 + SMALL
}

impl Agrees {
    /// Compares every two effects: `No` if two disagree, else `Open` if it is open whether two agree, else `Yes`.
    fn of(effects: &[Option<ArenaEffect>]) -> Self {
        let all: Vec<&ArenaEffect> = effects.iter().flatten().collect();
        let mut worst = Self::Yes;
        for (place, one) in all.iter().enumerate() {
            for other in &all[place + 1..] {
                match one.agrees(other) {
                    Self::No => return Self::No,
                    Self::Open => worst = Self::Open,
                    Self::Yes => {}
                }
            }
        }
        worst
    }
}

/// Compares the effects of a campaign in the arenas in which it ran. `names` has one campaign for each arena. A single
/// name `x` stands for `x`, `x-host` and `x-vm`. An empty list stands for the name of the campaign that ran last.
/// Metrics that are primary in no arena are included only with `all`. Fails if a campaign is unknown, or if the
/// campaign ran in one arena only.
pub fn agreement(store: &Store, names: &[String], all: bool) -> Result<Agreement, CompareError> {
    let mut notes: Vec<CampaignNote> = match names {
        [] => arenas_of(store, &campaign(store, None)?)?,
        [one] => arenas_of(store, &campaign(store, Some(one))?)?,
        several => several
            .iter()
            .map(|name| campaign(store, Some(name)))
            .collect::<Result<_, _>>()?,
    };
    notes.sort_by_key(|note| note.arena as u8);
    if let [only] = notes.as_slice() {
        return Err(CompareError::OneArena {
            campaign: only.id(),
            arena: only.arena,
        });
    }
    let comparisons = notes
        .iter()
        .map(|note| compare_note(store, note))
        .collect::<Result<Vec<_>, _>>()?;
    let arenas = notes.iter().zip(&comparisons).map(side).collect();
    Ok(of_comparisons(arenas, &comparisons, all))
}

/// Returns this run of a campaign `x`, and the latest runs named `x`, `x-host` and `x-vm` if they ran in another arena.
fn arenas_of(store: &Store, note: &CampaignNote) -> Result<Vec<CampaignNote>, CompareError> {
    let endings = || ENDINGS.iter().filter(|ending| !ending.is_empty());
    let base = endings().find_map(|ending| note.name.strip_suffix(ending));
    let base = base.unwrap_or(&note.name);
    let mut found = Vec::new();
    for ending in ENDINGS {
        let name = format!("{base}{ending}");
        if name == note.name {
            found.push(note.clone());
        } else if let Some(other) = store.latest_of(&name)?
            && other.arena != note.arena
        {
            found.push(other);
        }
    }
    Ok(found)
}

fn side((note, comparison): (&CampaignNote, &Comparison)) -> ArenaSide {
    let first = comparison.columns.first();
    let variant = first.and_then(|column| column.variant.as_ref());
    ArenaSide {
        arena: note.arena,
        campaign: note.id(),
        kernel: variant.map_or_else(String::new, |variant| variant.kernel.release.clone()),
    }
}

/// Compares the effects of comparisons, one for each arena.
fn of_comparisons(arenas: Vec<ArenaSide>, comparisons: &[Comparison], all: bool) -> Agreement {
    let mut rows = Vec::new();
    let mut alone = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for cell in comparisons.iter().flat_map(|comparison| &comparison.cells) {
        let key = key(cell);
        if seen.contains(&key) {
            continue;
        }
        let same: Vec<Option<&Cell>> = comparisons
            .iter()
            .map(|comparison| comparison.cells.iter().find(|cell| self::key(cell) == key))
            .collect();
        seen.push(key);
        if same.iter().flatten().count() < 2 {
            alone.push(cell.label.clone());
            continue;
        }
        rows.extend(of_cell(cell, &same, &arenas, comparisons, all));
    }
    Agreement {
        arenas,
        rows,
        alone,
    }
}

/// Returns the key that is equal for the same cell in several arenas: the cell's label without what only one arena has:
/// latencies of simulated disks, and names of this machine's devices.
fn key(cell: &Cell) -> String {
    let Some(subject) = &cell.subject else {
        return cell.label.clone();
    };
    let kind = match subject.swap {
        SwapSpec::Ssd(_) => "ssd".to_owned(),
        other => other.to_string(),
    };
    cell.label.replace(&subject.swap_label(), &kind)
}

/// Returns the rows of one cell. `same` has the cell in each arena; `None` if the arena lacks it.
fn of_cell(
    cell: &Cell,
    same: &[Option<&Cell>],
    arenas: &[ArenaSide],
    comparisons: &[Comparison],
    all: bool,
) -> Vec<AgreementRow> {
    let mut rows = Vec::new();
    let mut names: Vec<(&str, &MetricRow)> = Vec::new();
    for row in same.iter().flatten().flat_map(|cell| &cell.metrics) {
        if (all || row.primary) && !names.iter().any(|(name, _)| *name == row.name) {
            names.push((&row.name, row));
        }
    }
    let columns = comparisons[0].columns.iter().skip(1);
    for variant in columns.map(|column| &column.name) {
        for (name, metric) in &names {
            let effects: Vec<Option<ArenaEffect>> = same
                .iter()
                .zip(comparisons)
                .map(|(cell, comparison)| effect_of((*cell)?, comparison, variant, name))
                .collect();
            if effects.iter().flatten().count() < 2 {
                continue;
            }
            let sign = Agrees::of(&effects);
            let same_size = common(&effects);
            let is_alike = sign == Agrees::Yes && same_size != Some(false);
            let subjects: Vec<Option<&Subject>> = same
                .iter()
                .map(|cell| cell.and_then(|cell| cell.subject.as_ref()))
                .collect();
            let changed = changed_settings(comparisons, variant);
            let reasons = if is_alike || (sign == Agrees::Open && same_size == Some(true)) {
                Vec::new()
            } else {
                reasons(arenas, &subjects, metric.unit, &changed)
            };
            rows.push(AgreementRow {
                cell: key(cell),
                variant: variant.clone(),
                metric: (*name).to_owned(),
                unit: metric.unit,
                direction: metric.direction,
                effects,
                sign,
                same_size,
                reasons,
            });
        }
    }
    rows
}

fn effect_of(
    cell: &Cell,
    comparison: &Comparison,
    variant: &str,
    metric: &str,
) -> Option<ArenaEffect> {
    let column = comparison
        .columns
        .iter()
        .position(|column| column.name == variant)?;
    let row = cell.metrics.iter().find(|row| row.name == metric)?;
    let judgement = row.judgements.get(column.checked_sub(1)?)?.as_ref()?;
    ArenaEffect::of(judgement)
}

/// True if the intervals have a common value; `None` if an effect has no interval, or if ratios and differences are
/// mixed.
fn common(effects: &[Option<ArenaEffect>]) -> Option<bool> {
    let mut low = f64::NEG_INFINITY;
    let mut high = f64::INFINITY;
    let kind = effects.iter().flatten().next()?.kind;
    for effect in effects.iter().flatten() {
        if effect.kind != kind {
            return None;
        }
        low = low.max(effect.low?);
        high = high.min(effect.high?);
    }
    Some(low <= high)
}

/// Returns the names of the settings that differ between a variant and the baseline in the first arena, sorted.
fn changed_settings(comparisons: &[Comparison], variant: &str) -> Vec<String> {
    let settings = |comparison: &Comparison, name: Option<&str>| {
        let mut columns = comparison.columns.iter();
        let column = columns.find(|column| name.is_none_or(|name| column.name == name));
        column
            .and_then(|column| column.variant.as_ref())
            .map(|variant| variant.settings.clone())
            .unwrap_or_default()
    };
    let Some(first) = comparisons.first() else {
        return Vec::new();
    };
    let (a, b) = (settings(first, None), settings(first, Some(variant)));
    let names = a.keys().chain(b.keys());
    let mut names: Vec<String> = names
        .filter(|name| a.get(*name) != b.get(*name))
        .cloned()
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Scenarios with several processes, for which [`reasons`] names the single processor of the exact arena.
const SEVERAL: [&str; 8] = [
    "contswap",
    "swapbench",
    "usemem",
    "kv",
    "filecopy",
    "neighbours",
    "launches",
    "proactive",
];

/// Returns the differences between the arenas that can change a metric with this unit, in a fixed order. `changed` has
/// the names of the settings in which the variant differs from the baseline.
fn reasons(
    arenas: &[ArenaSide],
    subjects: &[Option<&Subject>],
    unit: Unit,
    changed: &[String],
) -> Vec<String> {
    let mut found = Vec::new();
    let of = |kind: ArenaKind| {
        let place = arenas.iter().position(|side| side.arena == kind)?;
        subjects.get(place).copied().flatten()
    };
    let (exact, host) = (of(ArenaKind::Exact), of(ArenaKind::Host));
    if let (Some(exact), Some(_)) = (exact, host)
        && group_limit(exact).is_none()
    {
        found.push(
            "the exact trials ran in no memory group (--limit), so the whole machine reclaimed"
                .to_owned(),
        );
        if exact.swap.is_zram() {
            found.push(
                "zram's compressed pages lie inside the exact machine's memory, and outside of the group on the host".to_owned(),
            );
        }
    }
    let kernels: Vec<&str> = arenas.iter().map(|side| side.kernel.as_str()).collect();
    if kernels
        .windows(2)
        .any(|pair| series(pair[0]) != series(pair[1]))
    {
        found.push(format!("the kernels differ ({})", kernels.join(", ")));
    }
    let is_time = matches!(unit, Unit::Nanos | Unit::BytesPerSecond);
    let disk = exact.is_some_and(|subject| subject.swap.on_disk().is_some());
    if disk
        && changed
            .iter()
            .any(|name| name == "vm.page-cluster" || name.starts_with("swap/"))
    {
        found.push("read-ahead of the real disk merges and reorders requests".to_owned());
    }
    if disk && is_time {
        found.push(
            "the real device has no fixed latency, and other processes use its queue too"
                .to_owned(),
        );
    }
    if exact.is_some_and(|subject| {
        !subject.cpus.are_several() && SEVERAL.contains(&subject.scenario.as_str())
    }) {
        found.push(
            "one processor in the exact arena: processes do not reclaim at the same time"
                .to_owned(),
        );
    }
    if is_time {
        found.push("caches and TLBs are not modelled in exact time".to_owned());
    }
    found
}

/// First two numbers of a kernel release, such as `6.12`.
fn series(release: &str) -> String {
    let parts: Vec<&str> = release.split(['.', '-']).take(2).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(sign: Sign, low: f64, high: f64) -> Option<ArenaEffect> {
        Some(ArenaEffect {
            trials: 8,
            kind: EffectKind::Ratio,
            estimate: f64::midpoint(low, high),
            low: Some(low),
            high: Some(high),
            sign,
        })
    }

    #[test]
    fn arenas_agree_if_all_signs_are_sure_and_the_same() {
        let more = effect(Sign::More, 1.2, 1.4);
        let less = effect(Sign::Less, 0.5, 0.7);
        let none = effect(Sign::None, 0.99, 1.01);
        let open = effect(Sign::Open, 0.9, 1.3);
        assert_eq!(Agrees::of(&[more, more]), Agrees::Yes);
        assert_eq!(Agrees::of(&[none, none, none]), Agrees::Yes);
        assert_eq!(Agrees::of(&[more, less]), Agrees::No);
        assert_eq!(Agrees::of(&[more, none]), Agrees::No);
        let small = effect(Sign::Less, 0.94, 0.98);
        assert_eq!(Agrees::of(&[small, none]), Agrees::Yes, "both are small");
        assert_eq!(Agrees::of(&[small, more]), Agrees::No);
        assert_eq!(Agrees::of(&[more, open]), Agrees::Open);
        assert_eq!(Agrees::of(&[more, open, less]), Agrees::No);
        assert_eq!(common(&[more, open]), Some(true));
        assert_eq!(common(&[more, less]), Some(false));
        let without = Some(ArenaEffect {
            low: None,
            ..more.unwrap()
        });
        assert_eq!(common(&[more, without]), None);
    }

    #[test]
    fn what_the_exact_arena_lacks_is_named_for_times_and_several_processes() {
        let side = |arena, kernel: &str| ArenaSide {
            arena,
            campaign: "c".to_owned(),
            kernel: kernel.to_owned(),
        };
        let arenas = [
            side(ArenaKind::Exact, "6.12.1-cloud"),
            side(ArenaKind::Host, "6.18.4"),
        ];
        let subject = |limit: Option<u64>| Subject {
            scenario: "swapbench".to_owned(),
            swap: "ssd".parse().unwrap(),
            limit: limit.map(pagetide_quantity::Bytes::from_mib),
            ..Subject::default()
        };
        let (alone, host) = (subject(None), subject(Some(64)));
        let setting = ["vm.page-cluster".to_owned()];
        let found = reasons(&arenas, &[Some(&alone), Some(&host)], Unit::Nanos, &setting);
        let text = found.join("; ");
        for word in [
            "--limit",
            "6.18.4",
            "read-ahead",
            "latency",
            "one processor",
            "caches",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let found = reasons(&arenas, &[Some(&host), Some(&host)], Unit::Count, &[]);
        assert_eq!(found.len(), 2, "kernels and processors: {found:?}");
        // A program in a group of its own.
        let mut program = subject(None);
        program
            .params
            .insert("limit".to_owned(), "8388608".to_owned());
        let found = reasons(&arenas, &[Some(&program), Some(&host)], Unit::Count, &[]);
        assert!(!found.join("; ").contains("--limit"), "{found:?}");
        // Programs without a limit have the parameter too.
        program.params.insert("limit".to_owned(), "0".to_owned());
        let found = reasons(&arenas, &[Some(&program), Some(&host)], Unit::Count, &[]);
        assert!(found.join("; ").contains("--limit"), "{found:?}");
    }
}
