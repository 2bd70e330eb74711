//! `pagetide report`: writes a comparison or a record as a web page in one file, to open in a browser or to mail.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use pagetide_compare::Names;
use pagetide_report::html::{self, Assets, PageFile};
use pagetide_store::whole_file;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::{Output, left_out};

/// Write a page with verdicts, figures and provenance, to open in a browser or to mail
///
/// The page is one file and makes no network requests. WHAT is a campaign or a record; A and B are as for `compare`:
/// variants of the last campaign, CAMPAIGN:VARIANT, kernel releases, or records. Without names, the page is about the
/// campaign that ran last.
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
    /// The side that is compared with the baseline A
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
    /// Replace the file if it exists
    #[arg(long, short, help_heading = "Output")]
    force: bool,
    /// Compare even if more than the variant differs
    #[arg(long, requires = "b")]
    anyway: bool,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let names = Names {
        a: args.a.clone(),
        b: args.b.clone(),
        allowed: args.anyway.into(),
    };
    let (comparison, about) = html::subject(&store, &names)?;
    if args.output == Path::new("-") {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let written = html::of_store(&store, &comparison, &about, Assets::Inside, &mut stdout)?;
        stdout.flush()?;
        left_out(&written.omitted);
        return Ok(End::Done);
    }
    if args.output.exists() && !args.force {
        return Err(Usage::error(format!(
            "{} is there already: name another file with -o, or replace it with --force",
            args.output.display()
        )));
    }
    let written = whole_file::write(&args.output, |out| {
        anyhow::Ok(html::of_store(
            &store,
            &comparison,
            &about,
            Assets::Inside,
            out,
        )?)
    })?;
    left_out(&written.omitted);
    let told = PageFile {
        file: &args.output,
        title: &about.title,
        page: written,
    };
    out.show_quoting(&told, || format!("{told}\n"))?;
    Ok(End::Done)
}
