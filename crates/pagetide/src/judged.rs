//! Output of a comparison: its format, additional parts, and the exit code.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pagetide_compare::bisected::BisectResult;
use pagetide_compare::{Comparison, FailOn, Overall};
use pagetide_report::format::{self, Style};
use pagetide_report::paper;
use pagetide_report::terminal::Options;
use pagetide_report::{About, Format};
use pagetide_store::Store;

use crate::exit::{End, Usage};
use crate::output::{Output, left_out};

/// Options for the output of verdicts and for their influence on the exit code.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct JudgedArgs {
    /// Format of the verdicts [default: a table for the terminal]
    #[arg(
        long = "as",
        value_name = "FORMAT",
        value_parser = formats(),
        conflicts_with = "json"
    )]
    pub format: Option<Format>,
    /// Also show metrics without a difference; in a mail, every metric in full
    #[arg(long)]
    pub all: bool,
    /// Draw the latency histograms of the variants
    #[arg(long)]
    pub pictures: bool,
    /// Judge the quantiles of all accesses, p50 to p99.99, by a bootstrap over trials
    #[arg(long)]
    pub tails: bool,
    /// Submitting system of a KCIDB report
    #[arg(long, value_name = "NAME", default_value = "pagetide")]
    pub origin: String,
    /// Verdicts with an exit code other than 0: regressed (1), or that and inconclusive (3) [default: inconclusive]
    #[arg(long, value_name = "VERDICT", value_parser = failing())]
    pub fail_on: Option<FailOn>,
    /// Exit with 0 for every verdict
    #[arg(long, conflicts_with = "fail_on")]
    pub exit_zero: bool,
}

impl JudgedArgs {
    fn fail_on(&self) -> FailOn {
        let failing = self.fail_on.unwrap_or_default();
        if self.exit_zero {
            FailOn::Nothing
        } else {
            failing
        }
    }

    fn format(&self, out: Output) -> Format {
        match self.format {
            Some(format) => format,
            None if out.json => Format::Json,
            None => Format::Table,
        }
    }

    /// Returns true if the output format is the table for a terminal.
    pub fn is_table(&self, out: Output) -> bool {
        self.format(out) == Format::Table
    }

    /// Returns true if the output format is the papers' tables. They need no second variant, because they contain no
    /// judgement.
    pub fn is_paper(&self) -> bool {
        self.format == Some(Format::Paper)
    }

    /// Fails if the requested output format has no table for one of these scenarios. `pagetide run` calls this before
    /// anything runs, and [`Self::show`] with the scenarios of the records.
    pub fn check<'a>(&self, scenarios: impl IntoIterator<Item = &'a str>) -> Result<()> {
        if self.is_paper() {
            paper::check(scenarios).map_err(|why| Usage::error(why.to_string()))?;
        }
        Ok(())
    }

    /// Returns the result of a command that has nothing to judge, which counts as invalid.
    pub fn nothing(&self) -> End {
        match Overall::Invalid.exit_code(self.fail_on()) {
            0 => End::Done,
            _ => End::Open,
        }
    }

    /// Writes a comparison and returns the command's result. If the comparison belongs to a bisection, writes its
    /// result `found` too.
    pub fn show(
        &self,
        store: &Store,
        comparison: &Comparison,
        found: Option<&BisectResult>,
        title: String,
        command: String,
        out: Output,
    ) -> Result<End> {
        let format = self.format(out);
        let about = About {
            title,
            command,
            ..About::default()
        };
        let style = Style {
            text_style: out.text_style,
            options: Options {
                all: self.all,
                pictures: self.pictures,
            },
            tails: self.tails,
            origin: self.origin.clone(),
        };
        let recorded = comparison
            .cells
            .iter()
            .filter_map(|cell| cell.subject.as_ref());
        self.check(recorded.map(|subject| subject.scenario.as_str()))?;
        let mut stdout = BufWriter::new(io::stdout().lock());
        let omitted = match found {
            Some(found) => format::write_bisect(format, &style, store, found, about, &mut stdout)?,
            None => format::write(format, &style, store, comparison, about, &mut stdout)?,
        };
        stdout.flush()?;
        left_out(&omitted);
        Ok(End::of(comparison, self.fail_on()))
    }
}

/// Returns a parser for the name of an output format. `seed`, the former name of the format `paper`, gives an error
/// that states the new name.
fn formats() -> impl TypedValueParser<Value = Format> {
    let words = Format::WORDS.map(|(_, word, help)| PossibleValue::new(word).help(help));
    let old = PossibleValue::new("seed").hide(true);
    PossibleValuesParser::new(words.into_iter().chain([old])).try_map(|word| {
        Format::of(&word).ok_or("these tables are called paper now: write --as paper")
    })
}

/// Returns a parser for the verdicts that lead to an exit code other than 0.
fn failing() -> impl TypedValueParser<Value = FailOn> {
    let inconclusive = "A regression, and what is inconclusive or invalid";
    let words = [
        ("regressed", "A regression alone"),
        ("inconclusive", inconclusive),
    ];
    let words = words.map(|(word, help)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(words).map(|word| match word.as_str() {
        "regressed" => FailOn::Regressed,
        _ => FailOn::Inconclusive,
    })
}
