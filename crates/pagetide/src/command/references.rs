//! `pagetide ideal references`: writes a reference string, or reads and converts one.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use anyhow::Result;
use pagetide_reference::{Form, Pattern, Source};
use pagetide_store::whole_file;

use crate::exit::{End, Usage};
use crate::output::Output;

/// Write the references of a pattern, or read a file of references back and convert it
#[derive(clap::Args, Debug)]
#[command(after_long_help = patterns())]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Args {
    /// A pattern, or file:PATH to read references back
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,
    /// Number of pages
    #[arg(long, value_name = "N")]
    pages: Option<u32>,
    /// Number of references
    #[arg(long, value_name = "M")]
    refs: Option<u64>,
    /// Seed of random choices
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The pattern in its original form, including its errors
    #[arg(long)]
    as_written: bool,
    /// Write one page index per line, in order
    #[arg(long, conflicts_with_all = ["counts", "binary"])]
    text: bool,
    /// Write `page count` lines, one for every page
    #[arg(long, conflicts_with = "binary")]
    counts: bool,
    /// Write the compact form, for file:PATH in scenarios
    #[arg(long)]
    binary: bool,
    /// Write to this file, in the compact form unless another one is chosen
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Returns the list of the reference patterns for the help text.
fn patterns() -> String {
    let mut text = "Patterns:\n".to_owned();
    for about in pagetide_reference::catalogue() {
        put!(text, "{about}");
    }
    text.push_str(
        "\nExamples:\n  pagetide ideal references smooth-sin --pages 25000 --refs 2000000 --counts\n  \
         pagetide ideal references zipf(1.1) --pages 5000 --refs 100000 --seed 7 -o zipf.refs\n  \
         pagetide ideal references file:zipf.refs --counts\n",
    );
    text
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, out: Output) -> Result<End> {
    let Some(name) = &args.pattern else {
        return Err(Usage::error(
            "no pattern is named: `pagetide ideal references --help` lists them",
        ));
    };
    let wanted = match (args.text, args.counts, args.binary || args.output.is_some()) {
        (true, ..) => Some(Form::Text),
        (_, true, _) => Some(Form::Counts),
        (_, _, true) => Some(Form::Binary),
        _ => None,
    };
    let mut pattern: Pattern = name.parse()?;
    if args.as_written {
        pattern = pattern.as_written();
    }
    let source = Source::of(pattern, args.pages, args.refs, args.seed)?;
    let Some(form) = wanted else {
        let facts = source.facts()?;
        out.show(&facts, || {
            format!("{facts}; --text, --counts or -o FILE write them\n")
        })?;
        return Ok(End::Done);
    };
    match &args.output {
        Some(path) => {
            whole_file::write(path, |out| anyhow::Ok(source.write(form, out)?))?;
        }
        None => source.write(form, &mut BufWriter::new(io::stdout().lock()))?,
    }
    Ok(End::Done)
}
