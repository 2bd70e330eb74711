//! `pagetide references`: writes a reference string, and reads one back.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use anyhow::Result;
use pagetide_reference::{Form, Pattern, Source, StringFacts};

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;
use crate::whole_file;

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
    /// Number of pages the references range over
    #[arg(long, value_name = "N")]
    pages: Option<u32>,
    /// Number of references
    #[arg(long, value_name = "M")]
    refs: Option<u64>,
    /// Seed of what is random
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The original's form, faults included
    #[arg(long)]
    as_written: bool,
    /// One page index a line, in order
    #[arg(long, conflicts_with_all = ["counts", "binary"])]
    text: bool,
    /// `page count` a line, for every page
    #[arg(long, conflicts_with = "binary")]
    counts: bool,
    /// The compact form, for file:PATH in scenarios
    #[arg(long)]
    binary: bool,
    /// Write into this file, in the compact form unless another is asked for
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The patterns, for help.
fn patterns() -> String {
    let mut text = "Patterns:\n".to_owned();
    for about in pagetide_reference::catalogue() {
        put!(text, "  {}\n      {}\n", about.name, about.summary);
        for parameter in about.parameters {
            put!(
                text,
                "      {}: {} ({}, default {})\n",
                parameter.name,
                parameter.help,
                parameter.bounds(),
                parameter.default
            );
        }
    }
    text.push_str(
        "\nExamples:\n  pagetide references smooth-sin --pages 25000 --refs 2000000 --counts\n  \
         pagetide references zipf(1.1) --pages 5000 --refs 100000 --seed 7 -o zipf.refs\n  \
         pagetide references file:zipf.refs --counts\n",
    );
    text
}

/// Writes or reads.
pub fn run(args: &Args, _: &StoreArgs, out: Output) -> Result<End> {
    let Some(name) = &args.pattern else {
        return Err(Usage::error(
            "no pattern is named: `pagetide references --help` lists them",
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
    let source = source(args, pattern)?;
    let Some(form) = wanted else {
        show(&source.facts()?, out)?;
        return Ok(End::Done);
    };
    match &args.output {
        Some(path) => {
            whole_file::write(path, |out| Ok(source.write(form, out)?))?;
        }
        None => source.write(form, &mut BufWriter::new(io::stdout().lock()))?,
    }
    Ok(End::Done)
}

/// The string that is asked for.
fn source(args: &Args, pattern: Pattern) -> Result<Source> {
    if let Some(path) = pattern.path() {
        let source = Source::file(path, args.pages)?;
        return match args.refs {
            Some(refs) if refs != source.refs() => Err(Usage::error(format!(
                "{} holds {} references, not {refs}: leave --refs out",
                path.display(),
                source.refs()
            ))),
            _ => Ok(source),
        };
    }
    let (Some(pages), Some(refs)) = (args.pages, args.refs) else {
        return Err(Usage::error(
            "a pattern needs a range and a length: give --pages N and --refs M",
        ));
    };
    Ok(Source::pattern(pattern, pages, refs, args.seed)?)
}

/// Shows what there is to say about a string.
fn show(facts: &StringFacts, out: Output) -> Result<()> {
    if out.json {
        return out.json(facts);
    }
    out.text(&format!(
        "{}: {} references over {} pages, {} of them referenced, at most {} times\nmade by {}; --text, --counts or \
         -o FILE write them\n",
        facts.pattern,
        facts.refs,
        facts.pages,
        facts.pages_referenced,
        facts.most_references_of_a_page,
        facts.generator
    ))
}
