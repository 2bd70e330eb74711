//! The page of a finding: the report about the trials of its case with fresh seeds, with one more trial of each variant
//! that is observed.

use std::path::Path;

use anyhow::{Result, anyhow};
use pagetide_arena::Trial;
use pagetide_campaign::{Campaign, Tried};
use pagetide_compare::show_note;
use pagetide_hunt::hunt::SEEDS;
use pagetide_hunt::{Case, label, trial};
use pagetide_record::Pass;
use pagetide_report::html::{Assets, of_store};
use pagetide_report::{About, CaseText};
use pagetide_store::{CampaignNote, CellNote, Entry, whole_file};

use crate::lab::StoreArgs;
use crate::session::Session;

/// Name of the file in the folder of a finding.
pub(super) const FILE: &str = "page.html";

/// The trials of a case, and how they are compared.
struct Asked {
    trials: Vec<Trial>,
    /// Index of the variant and of the seed of each trial.
    places: Vec<(usize, u32)>,
}

impl Asked {
    /// Returns the trials of a case: those of each variant with fresh seeds, which have records, and an observed one
    /// with the first of the seeds.
    fn of(case: &Case<'_>) -> Self {
        let (mut trials, mut places) = (Vec::new(), Vec::new());
        for (column, shown) in case.columns().into_iter().enumerate() {
            for (unit, seed) in (0..).zip(case.find.first_seed..case.find.first_seed + SEEDS) {
                let timed = trial(&case.find.case, &shown.variant, seed);
                let observed = Trial {
                    pass: Pass::Observed,
                    ..timed.clone()
                };
                trials.push(timed);
                trials.extend((unit == 0).then_some(observed));
                places.resize(trials.len(), (column, unit));
            }
        }
        Self { trials, places }
    }
}

/// Runs the observed trials of a case and writes its page into `folder`. `case` names kernels as the user did, and
/// `as_run` as its trials need them. If the page cannot be written, an old one in its place is deleted.
pub(super) fn write(
    (session, places): (&Session<'_>, &StoreArgs),
    campaign: &Campaign,
    (case, as_run): (&Case<'_>, &Case<'_>),
    folder: &Path,
) -> Result<()> {
    let path = folder.join(FILE);
    let written = try_write((session, places), campaign, (case, as_run), &path);
    if written.is_err() {
        // There may be no old page.
        let _ = std::fs::remove_file(&path);
    }
    written
}

fn try_write(
    (session, places): (&Session<'_>, &StoreArgs),
    campaign: &Campaign,
    (case, as_run): (&Case<'_>, &Case<'_>),
    path: &Path,
) -> Result<()> {
    let asked = Asked::of(as_run);
    let tried = session.search(
        campaign,
        |mut site| site.several(&campaign.name, &asked.trials),
        Option::is_none,
    )?;
    let tried = tried.ok_or_else(|| anyhow!("the hunt was stopped"))?;
    let names: Vec<String> = case
        .columns()
        .iter()
        .map(|one| one.variant.name.clone())
        .collect();
    let mut note = CampaignNote {
        name: campaign.name.clone(),
        arena: campaign.arena,
        variants: names.clone(),
        cells: vec![CellNote {
            primary: Some(case.primary().into_iter().map(str::to_owned).collect()),
            ..CellNote::default()
        }],
        ..CampaignNote::default()
    };
    let mut unobserved = Vec::new();
    for ((column, unit), (trial, tried)) in
        asked.places.into_iter().zip(asked.trials.iter().zip(tried))
    {
        match tried {
            Tried::Ran(record) => {
                note.cells[0].label = record.subject.cell_label();
                note.entries.push(Entry {
                    key: record.subject.key(),
                    variant: column,
                    unit,
                    ..Entry::default()
                });
            }
            Tried::Refused(why) if trial.pass == Pass::Observed => {
                unobserved.push(format!("{}: {why}", names[column]));
            }
            Tried::Refused(_) => {}
        }
    }
    let store = places.store()?;
    let comparison = show_note(&store, &note)?;
    let about = About {
        title: case.title(),
        command: "pagetide run case.toml".to_owned(),
        case: Some(text(case, unobserved)),
        ..About::default()
    };
    whole_file::write(path, |out| {
        anyhow::Ok(of_store(&store, &comparison, &about, Assets::Inside, out)?)
    })?;
    Ok(())
}

/// Returns the first section of the page.
fn text(case: &Case<'_>, unobserved: Vec<String>) -> CaseText {
    let find = case.find;
    let columns = case.columns();
    let counters = Case::counters(&columns).into_iter();
    CaseText {
        title: case.title(),
        shown: find.shown.clone(),
        goal: case.goal_sentence(),
        workload: label(&find.case),
        is_smallest: find.is_smallest,
        toml: case.toml(),
        generality: case.generality(),
        death: case.deaths().next(),
        variants: columns.iter().map(|one| one.variant.name.clone()).collect(),
        counters: counters
            .map(|(name, values)| (name.to_owned(), values))
            .collect(),
        unobserved,
    }
}
