//! Checks the request for a search, and chooses its sizes.

use pagetide_arena::VariantSpec;
use pagetide_compare::squeezed::Knob;
use pagetide_quantity::{Bytes, Nanos};

use super::{Design, MAX_RUNS, Squeeze};
use crate::campaign::{Campaign, Observe, ScenarioSpec, Until};
use crate::program::PROGRAM;
use crate::vary::Vary;

/// Default number of seeds.
const SEEDS: u32 = 3;
/// Maximum number of seeds. More seeds would leave too few runs for sizes.
const MAX_SEEDS: u32 = 4;
/// Unit of the sizes tried, in bytes; all sizes are multiples of it.
const STEP_BYTES: u64 = 64 << 10;
/// The search ends when the gap between the sizes "too small" and "enough" is at most this fraction of the smaller.
const RESOLUTION: f64 = 0.02;
/// Default ratio of the largest to the smallest size tried.
const RANGE: u64 = 16;
/// Default time limit of a program, equal to the scenario's default.
const TIME_LIMIT: Nanos = Nanos::from_secs(600);

/// Parses a share such as `5%` or `0.05`.
///
/// # Errors
///
/// If the text is not a share, or is below 0.1 % or above 1000 %. The error is a sentence.
pub fn share(text: &str) -> Result<f64, String> {
    let share = crate::file::defaults::share(text.trim());
    share
        .filter(|share| (0.001..=10.0).contains(share))
        .ok_or_else(|| "give a share from 0.1 % to 1000 %, such as 5%".to_owned())
}

/// Options of a search, in addition to the campaign.
#[derive(Clone, Debug)]
pub struct SqueezeRequest {
    /// Acceptable slowdown relative to the largest size, as a fraction (0.05 is 5 %).
    pub within: f64,
    /// Which size is varied; `None` for the default: the memory limit for a user's program, the machine's memory for
    /// any other scenario.
    pub knob: Option<Knob>,
    /// Smallest size tried; `None` for a sixteenth of the largest.
    pub least: Option<Bytes>,
    /// Memory limit of the program; `None` if the user set none.
    pub limit: Option<Bytes>,
    /// Time limit of the program; `None` if the user set none.
    pub time_limit: Option<Nanos>,
}

/// What the search needs to know about a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioFacts<'a> {
    /// Name of the scenario's first primary metric.
    pub primary: Option<&'a str>,
    /// Names of the scenario's parameters with their defaults.
    pub defaults: Vec<(&'a str, &'a str)>,
}

/// Why a search is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SqueezeError {
    /// The campaign has several cells.
    #[error(
        "squeeze answers for one workload at a time, and here are {cells}: give one size, one kind of swap and one value of each \
         parameter"
    )]
    Several {
        /// Number of cells.
        cells: usize,
    },
    /// `--vary` gives several values of a word of the program, and the campaign has several variants too.
    #[error(
        "squeeze compares variants or values of {{{key}}}, not both at once, and here are {variants} variants: give one kernel and no --vs, \
         or leave --vary out"
    )]
    VariantsAndWord {
        /// The varied word, without braces.
        key: String,
        /// Number of variants.
        variants: usize,
    },
    /// The key given with `--vary` is not a word in the program's command or environment, or several keys are given.
    #[error(
        "squeeze varies one word of your program: write {{{key}}} where its value goes, as in \
         `squeeze --vary heap=16M,64M … -- java -Xmx{{heap}} …`; for settings, run squeeze once with each --set"
    )]
    NotAWord {
        /// The key given with `--vary`.
        key: String,
    },
    /// Options were given that plan the runs of a campaign (`--until-sure`, `--observe`). A search plans its own runs.
    #[error(
        "--until-sure and --observe cannot be used with squeeze, which plans its own runs: leave them out"
    )]
    OwnPlan,
    /// Too many seeds were given.
    #[error(
        "{seeds} seeds leave too few of {MAX_RUNS} runs for sizes: give --seeds 1 to {MAX_SEEDS}"
    )]
    Seeds {
        /// Number of seeds given.
        seeds: u32,
    },
    /// The limit of a memory cgroup is to be varied, but the scenario runs without one.
    #[error(
        "--by limit is for a program of your own, and {scenario} runs without a memory group: use --by memory"
    )]
    NoGroup {
        /// Name of the scenario.
        scenario: String,
    },
    /// `--limit` gives a fixed memory limit, although the limit is what is searched.
    #[error(
        "--limit is what is searched: say with --memory how much is plenty, and leave --limit out"
    )]
    LimitGiven,
    /// No size lies between the smallest and the largest size.
    #[error(
        "there is nothing between {least} and {plenty} to search: lower --least, or raise --memory"
    )]
    NothingBetween {
        /// Smallest size to try, in bytes.
        least: Bytes,
        /// Largest size to try ("plenty"), in bytes.
        plenty: Bytes,
    },
}

/// Returns the varied word of the user's program: text that occurs as `{WORD}` in the program's command or environment.
/// `None` if nothing is varied.
///
/// # Errors
///
/// If several keys are varied, or one that does not occur there.
pub fn varied_word<'a>(
    mut all: Vec<Vary>,
    texts: impl Iterator<Item = &'a mut String>,
) -> Result<Option<Vary>, SqueezeError> {
    match all.pop() {
        Some(vary) if !all.is_empty() || !vary.is_word_of(texts) => {
            Err(SqueezeError::NotAWord { key: vary.key })
        }
        vary => Ok(vary),
    }
}

/// Checks that a campaign suits a search for the smallest memory, and sets the default number of seeds. The campaign
/// must have one cell. It may have several variants, unless the search varies `word` in the program's command or
/// environment.
///
/// # Errors
///
/// If the campaign has several cells, several variants beside `word`, too many seeds, a sequential plan, or an observed
/// pass.
pub fn check_searchable(campaign: &mut Campaign, word: Option<&Vary>) -> Result<(), SqueezeError> {
    if let Until::Enough(seeds) = &mut campaign.sampling.until {
        *seeds = SEEDS;
    }
    let (variants, cells) = (campaign.variants.len(), campaign.cell_count());
    if cells != 1 {
        return Err(SqueezeError::Several { cells });
    }
    if let Some(word) = word.filter(|_| variants != 1) {
        let key = word.key.clone();
        return Err(SqueezeError::VariantsAndWord { key, variants });
    }
    // The default for observing is meant for comparisons of trials, not for a search.
    if campaign.observe == Observe::default_for(variants) {
        campaign.observe = Observe::None;
    }
    let is_sequential = matches!(campaign.sampling.until, Until::Sure { .. });
    if is_sequential || campaign.observe != Observe::None {
        return Err(SqueezeError::OwnPlan);
    }
    let seeds = campaign.sampling.until.cap();
    if seeds > MAX_SEEDS {
        return Err(SqueezeError::Seeds { seeds });
    }
    Ok(())
}

/// Returns a pair for each variant: its name, and the campaign with this variant alone. From the second variant on, the
/// campaign's name includes the variant's. `value` is the value of the varied word of the program, if any, and becomes
/// part of the campaign's name.
pub fn by_variant(campaign: &Campaign, value: Option<&str>) -> Vec<(String, Campaign)> {
    let word = |text: &str| -> String {
        let own = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        text.chars().filter(own).take(40).collect()
    };
    let alone = |(place, variant): (usize, &VariantSpec)| {
        let mut one = campaign.clone();
        one.variants = vec![variant.clone()];
        if let Some(value) = value {
            one.name = format!("{}-{}", one.name, word(value));
        }
        if place > 0 {
            one.name = format!("{}-{}-{}", one.name, place + 1, word(&variant.name));
        }
        (variant.name.clone(), one)
    };
    campaign.variants.iter().enumerate().map(alone).collect()
}

impl SqueezeRequest {
    /// Creates the search for a campaign that passed [`check_searchable`].
    ///
    /// # Errors
    ///
    /// If the size to vary cannot be searched.
    pub fn search(
        &self,
        campaign: Campaign,
        facts: &ScenarioFacts<'_>,
    ) -> Result<Squeeze, SqueezeError> {
        let spec = &campaign.scenarios[0];
        let is_program = spec.name == PROGRAM;
        let knob = match self.knob {
            Some(Knob::Limit) if !is_program => {
                return Err(SqueezeError::NoGroup {
                    scenario: spec.name.clone(),
                });
            }
            None if is_program => Knob::Limit,
            None => Knob::Memory,
            Some(knob) => knob,
        };
        if knob == Knob::Limit && self.limit.is_some() {
            return Err(SqueezeError::LimitGiven);
        }
        let memory = spec.memory.first().copied().unwrap_or_default().bytes().0;
        let plenty = memory / STEP_BYTES * STEP_BYTES;
        let least = self.least.map_or(plenty / RANGE, |least| least.0);
        let least = least.next_multiple_of(STEP_BYTES).max(STEP_BYTES);
        if least >= plenty {
            return Err(SqueezeError::NothingBetween {
                least: Bytes(least),
                plenty: Bytes(plenty),
            });
        }
        let time_limit = self.time_limit.unwrap_or(TIME_LIMIT);
        Ok(Squeeze {
            knob,
            metric: spec
                .deciding_metric(facts.primary.unwrap_or_default())
                .to_owned(),
            pins: pins(spec, &facts.defaults),
            time_limit: is_program.then(|| ("time-limit".to_owned(), time_limit)),
            design: Design {
                plenty,
                least,
                step: STEP_BYTES,
                within: self.within,
                seeds: campaign.sampling.until.cap(),
                // One run is reserved for observing.
                runs: MAX_RUNS - 1,
                resolution: RESOLUTION,
            },
            campaign,
        })
    }
}

/// Returns the names of the parameters whose given text, or else default, depends on the size of memory or swap, or on
/// the scale.
fn pins(spec: &ScenarioSpec, defaults: &[(&str, &str)]) -> Vec<String> {
    let depends = |text: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        words.any(|word| matches!(word, "memory" | "swap" | "scale"))
    };
    let text = |(name, default): &(&str, &str)| {
        let given = spec.params.get(*name).and_then(|values| values.first());
        given.map_or((*default).to_owned(), String::clone)
    };
    defaults
        .iter()
        .filter(|param| depends(&text(param)))
        .map(|(name, _)| (*name).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_with_and_without_a_percent_sign() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share(" 0.25 "), Ok(0.25));
        for wrong in ["", "%", "five", "-5%", "0", "NaN", "2000%"] {
            assert!(share(wrong).unwrap_err().contains("such as 5%"), "{wrong}");
        }
    }

    #[test]
    fn parameters_that_follow_from_the_memory_are_pinned_and_others_are_not() {
        let defaults = [("size", "0.5 * memory"), ("operations", "20000")];
        let mut spec = ScenarioSpec::default();
        assert_eq!(pins(&spec, &defaults), ["size"]);
        spec.params
            .insert("size".to_owned(), vec!["48M".to_owned()]);
        assert!(pins(&spec, &defaults).is_empty());
    }
}
