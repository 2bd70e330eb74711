//! A comparison on its way out: in which format, with what beside it, and with which exit code.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, IsTerminal, Write};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use pagetide_compare::explain::explain;
use pagetide_compare::{Comparison, FailOn, tails};
use pagetide_quantity::Histogram;
use pagetide_record::{ArenaKind, Machine, Record};
use pagetide_report::seed::{Extras, cpu_time};
use pagetide_report::terminal;
use pagetide_report::terminal::show::{Presence, presence};
use pagetide_report::terminal::{Options, presence_maps, verdicts};
use pagetide_report::{
    About, csv, html, json, kcidb, ktap, mail, markdown, openmetrics, parquet, seed,
};
use pagetide_store::Store;

use crate::command::calibrate::Kept;
use crate::exit::{End, Usage};
use crate::output::{Output, say};
use crate::when::now;

/// How verdicts are shown and what they mean for the exit code.
#[derive(Args, Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct JudgedArgs {
    /// Format of the verdicts [default: a table for the terminal]
    #[arg(
        long = "as",
        value_name = "FORMAT",
        conflicts_with = "json",
        help_heading = "Output"
    )]
    pub format: Option<Format>,
    /// Show metrics without a difference too
    #[arg(long, help_heading = "Output")]
    pub all: bool,
    /// Draw the latency histograms of the variants
    #[arg(long, help_heading = "Output")]
    pub pictures: bool,
    /// Judge the quantiles of all accesses, p50 to p99.99, by a bootstrap over trials
    #[arg(long, help_heading = "Output")]
    pub tails: bool,
    /// Submitting system of a KCIDB report
    #[arg(
        long,
        value_name = "NAME",
        default_value = "pagetide",
        help_heading = "Output"
    )]
    pub origin: String,
    /// What makes the exit code other than 0: regressed (1), or that and inconclusive (3) [default: inconclusive]
    #[arg(long, value_name = "VERDICT", help_heading = "Output")]
    pub fail_on: Option<Failing>,
    /// Exit with 0 whatever the verdict
    #[arg(long, conflicts_with = "fail_on", help_heading = "Output")]
    pub exit_zero: bool,
}

/// Formats of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Table for the terminal
    Table,
    /// Plain text of 75 columns, ready for a mailing list
    Mail,
    /// The tables of the five systems that came before, in their own shapes
    Seed,
    /// Everything, with the records each number comes from
    Json,
    /// A row for each cell, metric and variant
    Csv,
    /// A row for each record and metric
    Samples,
    /// For an issue or a wiki
    Markdown,
    /// KTAP version 1
    Ktap,
    /// KCIDB 5.3
    Kcidb,
    /// OpenMetrics text
    Openmetrics,
    /// Parquet of the samples, as bytes: send it to a file
    Parquet,
    /// One page to open in a browser or to mail: send it to a file
    Html,
}

/// Verdicts that make a command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Failing {
    /// A regression alone
    Regressed,
    /// A regression, and what is inconclusive or invalid
    Inconclusive,
}

impl Format {
    /// Whether it says why, which takes reading every record.
    const fn explains(self) -> bool {
        matches!(
            self,
            Self::Table | Self::Mail | Self::Json | Self::Markdown | Self::Html
        )
    }
}

impl JudgedArgs {
    fn fail_on(&self) -> FailOn {
        match self.fail_on {
            _ if self.exit_zero => FailOn::Nothing,
            Some(Failing::Regressed) => FailOn::Regressed,
            Some(Failing::Inconclusive) | None => FailOn::Inconclusive,
        }
    }

    fn format(&self, out: Output) -> Format {
        match self.format {
            Some(format) => format,
            None if out.json => Format::Json,
            None => Format::Table,
        }
    }

    /// Whether what is written is for a person at a terminal.
    pub fn is_table(&self, out: Output) -> bool {
        self.format(out) == Format::Table
    }

    /// Writes a comparison and says how the command ends.
    pub fn show(
        &self,
        store: &Store,
        comparison: &Comparison,
        title: String,
        command: String,
        out: Output,
    ) -> Result<End> {
        let format = self.format(out);
        let mut comparison = comparison.clone();
        if format.explains() {
            comparison.explanations = explain(store, &comparison)?;
        }
        let comparison = &comparison;
        let is_parquet = self.format == Some(Format::Parquet);
        if is_parquet && io::stdout().is_terminal() {
            return Err(Usage::error(
                "Parquet is no text for a terminal: send it to a file, as in `--as parquet > samples.parquet`",
            ));
        }
        let mut about = About {
            title,
            command,
            machine: machine(store, comparison),
            access: BTreeMap::new(),
        };
        if self.pictures && format == Format::Table {
            about.access = access(store, comparison)?;
        }
        let mut text = match format {
            Format::Table => {
                let options = Options {
                    all: self.all,
                    pictures: self.pictures,
                };
                verdicts(comparison, &about, options, &out.look)
            }
            Format::Mail => mail::mail(comparison, &about),
            Format::Seed => seed::seed(comparison, &extras(store, comparison)?),
            Format::Json => json::comparison(comparison, &about),
            Format::Csv => written(|bytes| csv::judgements(bytes, comparison))?,
            Format::Samples => {
                let records = records(store, comparison)?;
                written(|bytes| csv::samples(bytes, &records))?
            }
            Format::Markdown => markdown::markdown(comparison, &about),
            Format::Ktap => ktap::ktap(comparison, &about),
            Format::Kcidb => kcidb::kcidb(comparison, &about, &self.origin),
            Format::Openmetrics => openmetrics::openmetrics(comparison, Some(now())),
            Format::Parquet => {
                // Its writer must be one that other threads may hold, which standard output is not.
                let mut bytes = Vec::new();
                parquet::samples(&mut bytes, &records(store, comparison)?)?;
                io::stdout().lock().write_all(&bytes)?;
                String::new()
            }
            Format::Html => {
                page(store, comparison, &about)?;
                String::new()
            }
        };
        if self.pictures && format == Format::Table {
            let maps = maps(store, comparison)?;
            text.push_str(&presence_maps(comparison, &maps, &out.look));
        }
        if self.tails && format == Format::Table {
            let found = tails(store, comparison)?;
            text.push_str(&terminal::tails(comparison, &found, &out.look));
        }
        out.text(&text)?;
        if format == Format::Table
            && let Some(kept) = Kept::read(store, ArenaKind::default())?
        {
            out.text(&format!("{}\n", kept.line()))?;
        }
        Ok(End::of(comparison, self.fail_on()))
    }
}

/// What a writer of bytes wrote, as text.
fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), csv::CsvError>) -> Result<String> {
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    String::from_utf8(bytes).context("writing a table of comma-separated values")
}

/// Identities of the valid records of each cell and column.
fn identities(comparison: &Comparison) -> impl Iterator<Item = ((usize, usize), &str)> {
    comparison
        .cells
        .iter()
        .enumerate()
        .flat_map(|(cell, group)| {
            group
                .sides
                .iter()
                .enumerate()
                .flat_map(move |(column, side)| {
                    let ids = side.trials.iter().map(|trial| trial.record.as_str());
                    ids.map(move |id| ((cell, column), id))
                })
        })
}

/// The machine of the first record; an unknown one where its file cannot be read, which the numbers do not need.
fn machine(store: &Store, comparison: &Comparison) -> Machine {
    identities(comparison)
        .next()
        .and_then(|(_, id)| store.load(id).ok())
        .map(|reader| reader.record().wall.machine.clone())
        .unwrap_or_default()
}

fn records(store: &Store, comparison: &Comparison) -> Result<Vec<Record>> {
    identities(comparison)
        .map(|(_, id)| Ok(store.load(id)?.into_record()))
        .collect()
}

fn access(store: &Store, comparison: &Comparison) -> Result<BTreeMap<(usize, usize), Histogram>> {
    let mut all: BTreeMap<(usize, usize), Histogram> = BTreeMap::new();
    for (place, id) in identities(comparison) {
        let record = store.load(id)?.into_record();
        if let Some(histogram) = record.results.histograms.get("access") {
            all.entry(place).or_default().merge(histogram);
        }
    }
    Ok(all)
}

fn extras(store: &Store, comparison: &Comparison) -> Result<Extras> {
    let mut extras = Extras::default();
    for (place, id) in identities(comparison) {
        if let Some(time) = cpu_time(&store.load(id)?)? {
            extras.cpu.entry(place).or_default().push(time);
        }
    }
    Ok(extras)
}

/// The last presence map of the first trial of each cell and column.
fn maps(store: &Store, comparison: &Comparison) -> Result<BTreeMap<(usize, usize), Presence>> {
    let mut all = BTreeMap::new();
    for (place, id) in identities(comparison) {
        if !all.contains_key(&place)
            && let Some(map) = presence(&store.load(id)?)?.pop()
        {
            all.insert(place, map);
        }
    }
    Ok(all)
}

/// Writes the comparison as a page.
fn page(store: &Store, comparison: &Comparison, about: &About) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = html::of_store(store, comparison, about, html::Assets::Inside, &mut out)?;
    out.flush()?;
    for what in written.omitted {
        say(&format!("not on the page: {what}"));
    }
    Ok(())
}
