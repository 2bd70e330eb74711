//! `pagetide list`: scenarios, kernels, records and campaigns.

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use pagetide_campaign::file;
use pagetide_quantity::Nanos;
use pagetide_report::date::ago;
use pagetide_report::draw::{Align, Ink, clean};
use pagetide_report::terminal::{RecordRow, Row};
use pagetide_scenario::Definition;
use pagetide_scenario::guide::{self, Paragraph};
use pagetide_store::{Filter, Store, StoreError};
use serde::Serialize;

use crate::command::kernel;
use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::{Output, say};
use crate::vocabulary::vocabulary;

/// Folder in which ready-to-run campaign files lie.
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
    /// Workloads, with what each asks
    Scenarios {
        /// With parameters, metrics, origin and what was wrong with the original
        #[arg(long)]
        long: bool,
        /// This one alone
        scenario: Option<String>,
    },
    /// Kernels in the cache
    Kernels,
    /// Records in the store, the newest last
    Records {
        /// Of this scenario alone
        #[arg(long, value_name = "NAME")]
        scenario: Option<String>,
        /// Of this variant alone
        #[arg(long, value_name = "NAME")]
        variant: Option<String>,
        /// Of this campaign alone
        #[arg(long, value_name = "NAME")]
        campaign: Option<String>,
        /// Of this kernel release alone
        #[arg(long, value_name = "RELEASE")]
        release: Option<String>,
        /// Invalid ones alone
        #[arg(long)]
        invalid: bool,
        /// At most so many, the newest
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Campaigns in the store, and campaign files in the folder `campaigns`
    Campaigns,
}

/// Lists.
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
struct Scenario {
    name: &'static str,
    summary: &'static str,
    docs: &'static str,
    origin: &'static str,
    repaired: &'static str,
    params: &'static [pagetide_scenario::Param],
    metrics: &'static [pagetide_quantity::MetricDef],
    has_as_written: bool,
}

impl Row for Scenario {
    const HEADS: &'static [(&'static str, Align)] =
        &[("scenario", Align::Left), ("what it asks", Align::Left)];

    fn cells(&self) -> Vec<String> {
        vec![self.name.to_owned(), self.summary.to_owned()]
    }
}

fn scenarios(long: bool, only: Option<&str>, out: Output) -> Result<()> {
    let only = only.map(pagetide_scenario::find).transpose()?;
    let definitions: Vec<&Definition> = match only {
        Some(definition) => vec![definition],
        None => pagetide_scenario::list().to_vec(),
    };
    if (long || only.is_some()) && !out.json {
        let texts = definitions.iter().map(|d| describe(d, out));
        return out.text(&texts.collect::<String>());
    }
    let rows: Vec<Scenario> = definitions
        .into_iter()
        .map(|definition| Scenario {
            name: definition.name,
            summary: definition.summary,
            docs: definition.docs,
            origin: definition.origin,
            repaired: definition.repaired,
            params: definition.params,
            metrics: definition.metrics,
            has_as_written: definition.has_as_written,
        })
        .collect();
    out.list(&rows, "there are no scenarios")
}

/// A scenario in full, wrapped to the terminal.
fn describe(definition: &Definition, out: Output) -> String {
    let mut text = String::new();
    for Paragraph {
        indent,
        text: words,
    } in guide::describe(definition)
    {
        if indent == 0 {
            put!(text, "{}\n", out.look.ink(Ink::Strong, &words));
            continue;
        }
        let room = out.look.width.clamp(40, 100).saturating_sub(indent);
        for line in clean::wrap(&words, room, out.look.ascii) {
            put!(text, "{:indent$}{line}\n", "");
        }
    }
    text.push('\n');
    text
}

fn records(store: &Store, filter: &Filter, out: Output) -> Result<()> {
    let rows: Vec<RecordRow> = store.select(filter)?.into_iter().map(RecordRow).collect();
    out.list(&rows, "no records: `pagetide run` makes some")?;
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

#[derive(Serialize)]
struct CampaignRow {
    name: String,
    place: String,
    variants: Vec<String>,
    cells: usize,
    trials: usize,
    started: Option<Nanos>,
}

impl Row for CampaignRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("campaign", Align::Left),
        ("where", Align::Left),
        ("variants", Align::Left),
        ("cells", Align::Right),
        ("trials", Align::Right),
        ("started", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.place.clone(),
            self.variants.join(", "),
            self.cells.to_string(),
            self.trials.to_string(),
            self.started.map_or_else(|| "-".to_owned(), ago),
        ]
    }
}

fn campaigns(store: &Store, out: Output) -> Result<()> {
    let mut rows = Vec::new();
    for id in store.campaigns()? {
        let note = match store.campaign(&id) {
            Ok(Some(note)) => note,
            Ok(None) => continue,
            // One damaged note does not hide the others.
            Err(error @ StoreError::Note { .. }) => {
                say(&format!("campaign {id} is left out: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        rows.push(CampaignRow {
            name: id,
            place: "store".to_owned(),
            variants: note.variants,
            cells: note.cells.len(),
            trials: note.entries.len(),
            started: Some(note.started),
        });
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
    out.list(&rows, "no campaigns: `pagetide run` makes one")
}
