//! `pagetide report`: a comparison or a record as one page to open in a browser or to mail.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use pagetide_campaign::shell;
use pagetide_compare::{CompareError, Comparison, compare_two, show_campaign};
use pagetide_quantity::Bytes;
use pagetide_report::About;
use pagetide_report::html::{self, Assets, PageSummary, single};
use pagetide_store::{Store, StoreError};
use serde::Serialize;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::{Output, say};
use crate::whole_file;

/// Write a page with verdicts, figures and provenance, to open in a browser or to mail
///
/// The page is one file and asks the network for nothing. WHAT is a campaign or a record; A and B are what `compare`
/// takes: variants of the last campaign, CAMPAIGN:VARIANT, kernel releases, or records. With nothing named, the page is
/// about the campaign that ran last.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide report
  pagetide report quick -o quick.html
  pagetide report mglru-off mglru-on
  pagetide report 3f2a -o - | gzip > record.html.gz")]
pub struct Args {
    /// A campaign or a record; with B, the baseline
    #[arg(value_name = "WHAT|A")]
    a: Option<String>,
    /// What is set against A
    b: Option<String>,
    /// File to write; - for standard output
    #[arg(
        long,
        short,
        value_name = "FILE",
        default_value = "report.html",
        help_heading = "Output"
    )]
    output: PathBuf,
    /// Replace the file if it is there
    #[arg(long, short, help_heading = "Output")]
    force: bool,
    /// Compare what differs in more than the variant
    #[arg(long, requires = "b")]
    anyway: bool,
}

/// What was written, for `--json`.
#[derive(Serialize)]
struct Summary<'a> {
    file: &'a Path,
    title: &'a str,
    bytes: u64,
    accesses: u64,
    omitted: &'a [String],
}

/// Writes it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let (comparison, about) = subject(args, &store)?;
    if args.output == Path::new("-") {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let written = html::of_store(&store, &comparison, &about, Assets::Inside, &mut stdout)?;
        stdout.flush()?;
        left_out(&written);
        return Ok(End::Done);
    }
    let written = into_file(&args.output, args.force, |out| {
        Ok(html::of_store(
            &store,
            &comparison,
            &about,
            Assets::Inside,
            out,
        )?)
    })?;
    left_out(&written);
    if out.json {
        out.json(&Summary {
            file: &args.output,
            title: &about.title,
            bytes: written.bytes,
            accesses: written.accesses,
            omitted: &written.omitted,
        })?;
    } else {
        let accesses = match written.accesses {
            0 => String::new(),
            n => format!(", {n} single accesses to zoom into"),
        };
        out.quoting(&format!(
            "{}: {}, {}{accesses}\n",
            args.output.display(),
            about.title,
            Bytes(written.bytes)
        ))?;
    }
    Ok(End::Done)
}

/// What the page is about, with its title and the command that makes it again.
fn subject(args: &Args, store: &Store) -> Result<(Comparison, About)> {
    let about = |title: String, command: String| About {
        title,
        command,
        ..About::default()
    };
    let words = |command: &str| {
        let mut words = vec!["pagetide".to_owned(), command.to_owned()];
        words.extend(args.a.iter().chain(&args.b).cloned());
        if args.anyway {
            words.push("--anyway".to_owned());
        }
        shell(&words)
    };
    match (&args.a, &args.b) {
        (Some(a), Some(b)) => {
            let mut comparison = compare_two(store, a, b, args.anyway)?;
            let title = html::with_names(&mut comparison);
            Ok((comparison, about(title, words("report"))))
        }
        (Some(name), None) if name.contains(':') => Err(Usage::error(format!(
            "`{name}` is one side: name the other as well, as in `pagetide report {name} OTHER`"
        ))),
        (name, _) => match show_campaign(store, name.as_deref()) {
            Ok(comparison) => {
                let title = comparison.campaign.clone();
                Ok((
                    comparison,
                    about(title.unwrap_or_else(|| "Campaign".into()), words("report")),
                ))
            }
            Err(error @ CompareError::NoCampaign { .. }) => {
                let prefix = name.as_deref().unwrap_or_default();
                match store.find(prefix) {
                    Ok(row) => {
                        let record = store.load(&row.id)?.into_record();
                        let title = html::title(&record);
                        Ok((single(&record), about(title, record.maker.command)))
                    }
                    // It was meant as a campaign, or as a record: say both.
                    Err(StoreError::Unknown { .. }) => Err(anyhow::Error::new(error)
                        .context(format!("`{prefix}` is no record either"))),
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        },
    }
}

/// Lets `write` fill a file that is either whole or not there. A file in its place is kept unless `force`.
fn into_file(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<PageSummary>,
) -> Result<PageSummary> {
    if path.exists() && !force {
        return Err(Usage::error(format!(
            "{} is there already: name another file with -o, or replace it with --force",
            path.display()
        )));
    }
    whole_file::write(path, write)
}

/// Tells what is not on the page; the page says so too.
fn left_out(written: &PageSummary) {
    for what in &written.omitted {
        say(&format!("not on the page: {what}"));
    }
}
