//! The trials of a case as a comparison, for the page about it: those with fresh seeds, and for each variant one more
//! that is observed.

use std::collections::BTreeMap;

use pagetide_arena::Trial;
use pagetide_campaign::{RunError, Site, Tried};
use pagetide_record::Pass;
use pagetide_store::{CampaignNote, CaseNote, CellNote, Entry};

use crate::case::{Case, Shown};
use crate::evidence::Evidence;
use crate::hunt::SEEDS;
use crate::trials::trial;
use crate::workloads::label;

/// The trials of a case, and what the page says about it.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The trials with records, as those of a campaign with one cell. It is not in the store.
    pub note: CampaignNote,
    /// The case as text.
    pub case: CaseNote,
}

impl Case<'_> {
    /// Runs the case as an observed trial under each variant, with the first of its fresh seeds, and its timed trials
    /// that have no record. Returns all of its trials; `None` if stopped. `as_run` is the same case with kernels as its
    /// trials name them. `name` is the name of the hunt in the store.
    pub fn compared(
        &self,
        as_run: &Case<'_>,
        site: &mut Site<'_>,
        name: &str,
    ) -> Result<Option<Compared>, RunError> {
        let find = self.find;
        let (mut trials, mut places) = (Vec::new(), Vec::new());
        for (variant, shown) in as_run.columns().into_iter().enumerate() {
            for (unit, seed) in (0..).zip(find.first_seed..find.first_seed + SEEDS) {
                let timed = trial(&find.case, &shown.variant, seed);
                let observed = Trial {
                    pass: Pass::Observed,
                    ..timed.clone()
                };
                trials.push(timed);
                trials.extend((unit == 0).then_some(observed));
                places.resize(trials.len(), (variant, unit));
            }
        }
        let Some(tried) = site.several(name, &trials)? else {
            return Ok(None);
        };
        let (mut case, mut observed) = (self.text(), BTreeMap::new());
        let mut cell = CellNote {
            primary: Some(self.primary().into_iter().map(str::to_owned).collect()),
            ..CellNote::default()
        };
        let mut note = CampaignNote {
            name: name.to_owned(),
            variants: case.variants.clone(),
            ..CampaignNote::default()
        };
        for ((variant, unit), (trial, tried)) in places.into_iter().zip(trials.iter().zip(tried)) {
            match tried {
                Tried::Ran(record) => {
                    if trial.pass == Pass::Observed {
                        observed.insert(variant, Evidence::of(&record));
                    }
                    note.arena = record.subject.arena.kind;
                    cell.label = record.subject.cell_label();
                    note.entries.push(Entry {
                        key: record.subject.key(),
                        variant,
                        unit,
                        ..Entry::default()
                    });
                }
                Tried::Refused(why) if trial.pass == Pass::Observed => {
                    case.unobserved
                        .push(format!("{}: {why}", note.variants[variant]));
                }
                Tried::Refused(_) => {}
            }
        }
        note.cells.push(cell);
        case.observed = self.observed(&observed);
        Ok(Some(Compared { note, case }))
    }

    /// Returns whether the goal holds in the observed trials too, as a sentence. `evidence` is theirs, by index of the
    /// variant. `None` if single trials cannot tell, or if the hunted variant or the one it is compared with has none.
    fn observed(&self, evidence: &BTreeMap<usize, Evidence>) -> Option<String> {
        if self.goal.seeds() > 1 {
            return None;
        }
        let of = |index: usize| evidence.get(&index).map(std::slice::from_ref);
        let outcome = if self.is_compared {
            self.goal.measure(of(1)?, of(0)?)
        } else {
            self.goal.measure(of(0)?, &[])
        };
        let shown = &outcome.shown;
        Some(match outcome.unusable {
            Some(why) => format!("The observed trials cannot be measured: {why}."),
            None if outcome.holds => format!("In the observed trials the goal holds too: {shown}."),
            None => format!(
                "In the observed trials the goal does not hold ({shown}): they do not show the finding. Observing takes time \
                 and memory, which may be why."
            ),
        })
    }

    /// Returns the case as text. Variants are in the order of [`Self::columns`].
    fn text(&self) -> CaseNote {
        let (find, columns) = (self.find, self.columns());
        let name = |one: &&Shown| one.variant.name.clone();
        let counters = Case::counters(&columns).into_iter();
        CaseNote {
            title: self.title(),
            shown: find.shown.clone(),
            goal: self.goal_sentence(),
            workload: label(&find.case),
            is_smallest: find.is_smallest,
            toml: self.toml(),
            generality: self.generality(),
            death: self.deaths().next(),
            variants: columns.iter().map(name).collect(),
            counters: counters
                .map(|(name, values)| (name.to_owned(), values))
                .collect(),
            ..CaseNote::default()
        }
    }
}
