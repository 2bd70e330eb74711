//! `pagetide list`: lists scenarios, kernels, records and campaigns.

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use pagetide_campaign::file;
use pagetide_lab::vocabulary;
use pagetide_quantity::command::in_backticks;
use pagetide_report::draw::Align;
use pagetide_report::terminal::{CampaignRow, RecordRow, Row};
use pagetide_scenario::{Definition, guide};
use pagetide_store::{Filter, Store, StoreError};
use serde::Serialize;

use crate::command::kernel;
use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::{Output, say};

/// Folder of campaign files to list, in the working directory.
const CAMPAIGNS: &str = "campaigns";

/// List what there is: scenarios, kernels, records or campaigns
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide list scenarios --long
  pagetide list records --scenario swapbench --json")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Workloads, each with the question that it asks
    Scenarios {
        /// With parameters, metrics, origin and errors of the original
        #[arg(long)]
        long: bool,
        /// Only this scenario
        scenario: Option<String>,
    },
    /// Kernels in the cache
    Kernels,
    /// Records in the store, the newest first
    Records {
        /// Only records of this scenario
        #[arg(long, value_name = "NAME")]
        scenario: Option<String>,
        /// Only records of this variant
        #[arg(long, value_name = "NAME")]
        variant: Option<String>,
        /// Only records of this campaign
        #[arg(long, value_name = "NAME")]
        campaign: Option<String>,
        /// Only records of this kernel release
        #[arg(long, value_name = "RELEASE")]
        release: Option<String>,
        /// Only invalid records
        #[arg(long)]
        invalid: bool,
        /// Show only this number of records, the newest ones
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Campaigns in the store, and campaign files in the folder `campaigns`
    Campaigns,
}

/// Runs the command and returns how it ended.
pub fn run(args: Args, places: &StoreArgs, out: Output) -> Result<End> {
    match args.what {
        What::Scenarios { long, scenario } => scenarios(long, scenario.as_deref(), out)?,
        What::Kernels => kernel::list(places, out)?,
        What::Records {
            scenario,
            variant,
            campaign,
            release,
            invalid,
            limit,
        } => {
            if let Some(name) = &scenario {
                pagetide_scenario::find(name)?;
            }
            let filter = Filter {
                scenario,
                variant,
                campaign,
                release,
                valid: invalid.then_some(false),
                limit: Some(limit),
                ..Filter::default()
            };
            records(&places.store()?, &filter, out)?;
        }
        What::Campaigns => campaigns(&places.store()?, out)?,
    }
    Ok(End::Done)
}

#[derive(Serialize)]
struct ScenarioRow(&'static Definition);

impl Row for ScenarioRow {
    const HEADS: &'static [(&'static str, Align)] =
        &[("scenario", Align::Left), ("what it asks", Align::Left)];

    fn cells(&self) -> Vec<String> {
        vec![self.0.name.to_owned(), self.0.summary.to_owned()]
    }
}

fn scenarios(long: bool, only: Option<&str>, out: Output) -> Result<()> {
    let only = only.map(pagetide_scenario::find).transpose()?;
    let definitions: Vec<&'static Definition> = match only {
        Some(definition) => vec![definition],
        None => pagetide_scenario::list().to_vec(),
    };
    if (long || only.is_some()) && !out.json {
        let text = |definition| {
            let paragraphs = guide::describe(definition).into_iter();
            let lines = paragraphs.map(|part| (part.indent, part.text));
            pagetide_report::terminal::paragraphs(lines, &out.text_style)
        };
        let texts = definitions.into_iter().map(text);
        return out.text(&texts.collect::<String>());
    }
    let rows: Vec<ScenarioRow> = definitions.into_iter().map(ScenarioRow).collect();
    out.list(&rows, "there are no scenarios")
}

fn records(store: &Store, filter: &Filter, out: Output) -> Result<()> {
    let rows: Vec<RecordRow> = store.select(filter)?.into_iter().map(RecordRow).collect();
    out.list(
        &rows,
        &format!(
            "no records: {} makes some",
            in_backticks("run campaigns/quick.toml")
        ),
    )?;
    let all = store.count(&Filter {
        limit: None,
        ..filter.clone()
    })?;
    let hidden = all.saturating_sub(rows.len() as u64);
    if hidden > 0 && !out.json {
        out.text(&format!("and {hidden} older ones: --limit shows more\n"))?;
    }
    Ok(())
}

fn campaigns(store: &Store, out: Output) -> Result<()> {
    let mut rows = Vec::new();
    for id in store.campaigns()? {
        let note = match store.campaign(&id) {
            Ok(Some(note)) => note,
            Ok(None) => continue,
            // A damaged note must not hide the other campaigns.
            Err(error @ StoreError::Note { .. }) => {
                say(&format!("campaign {id} is left out: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        rows.push(CampaignRow::from(note));
    }
    for (path, campaign) in file::find(Path::new(CAMPAIGNS), &vocabulary()) {
        let cells = campaign.cells().count();
        rows.push(CampaignRow {
            place: path.display().to_string(),
            variants: campaign.variants.iter().map(|v| v.name.clone()).collect(),
            cells,
            trials: usize::try_from(campaign.trial_count()).unwrap_or(usize::MAX),
            started: None,
            name: campaign.name,
        });
    }
    out.list(
        &rows,
        &format!(
            "no campaigns: {} makes one",
            in_backticks("run campaigns/quick.toml")
        ),
    )
}
