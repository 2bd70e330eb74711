//! `pagetide references`: writes a reference string, and reads one back.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use pagetide_reference::{
    FileSummary, Form, MAX_PAGES, Pattern, Rng, STRINGS, check_file, open_file, tally,
    write_binary, write_counts, write_text,
};
use serde::Serialize;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
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

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum As {
    Text,
    Counts,
    Binary,
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

/// Facts of a string, where no form is asked for.
#[derive(Serialize)]
struct Facts {
    pattern: String,
    pages: u32,
    refs: u64,
    seed: Option<u64>,
    form: Option<String>,
    pages_referenced: usize,
    most_references_of_a_page: u32,
    generator: String,
}

/// Writes or reads.
pub fn run(args: &Args, _: &StoreArgs, out: Output) -> Result<End> {
    let Some(name) = &args.pattern else {
        return Err(Usage::error(
            "no pattern is named: `pagetide references --help` lists them",
        ));
    };
    let wanted = match (args.text, args.counts, args.binary || args.output.is_some()) {
        (true, ..) => Some(As::Text),
        (_, true, _) => Some(As::Counts),
        (_, _, true) => Some(As::Binary),
        _ => None,
    };
    let mut pattern: Pattern = name.parse()?;
    if args.as_written {
        pattern = pattern.as_written();
    }
    let source = match pattern.path() {
        Some(path) => Source::file(path, args)?,
        None => Source::pattern(pattern, args)?,
    };
    let Some(form) = wanted else {
        source.facts(out)?;
        return Ok(End::Done);
    };
    match &args.output {
        Some(path) => {
            let wrote = || -> Result<()> {
                let mut file = BufWriter::new(File::create(path)?);
                source.write(form, &mut file)?;
                file.flush()?;
                Ok(())
            };
            wrote().with_context(|| format!("writing {}", path.display()))?;
        }
        None => source.write(form, &mut BufWriter::new(io::stdout().lock()))?,
    }
    Ok(End::Done)
}

/// Where the references come from.
enum Source {
    Pattern {
        pattern: Pattern,
        pages: u32,
        refs: u64,
        seed: u64,
    },
    File {
        path: PathBuf,
        pages: u32,
        found: FileSummary,
    },
}

impl Source {
    fn pattern(pattern: Pattern, args: &Args) -> Result<Self> {
        let (Some(pages), Some(refs)) = (args.pages, args.refs) else {
            return Err(Usage::error(
                "a pattern needs a range and a length: give --pages N and --refs M",
            ));
        };
        pattern.check(pages, refs)?;
        Ok(Self::Pattern {
            pattern,
            pages,
            refs,
            seed: args.seed,
        })
    }

    fn file(path: &Path, args: &Args) -> Result<Self> {
        let found = check_file(path, args.pages.unwrap_or(MAX_PAGES))?;
        if let Some(refs) = args.refs.filter(|refs| *refs != found.refs) {
            return Err(Usage::error(format!(
                "{} holds {} references, not {refs}: leave --refs out",
                path.display(),
                found.refs
            )));
        }
        Ok(Self::File {
            path: path.to_owned(),
            pages: args.pages.unwrap_or(found.pages),
            found,
        })
    }

    /// Hands the references on one by one. A file was read through once before, so it has nothing wrong in it; where
    /// it changed in between, that is told at the end.
    fn each<T>(&self, take: impl FnOnce(&mut dyn Iterator<Item = u32>) -> T) -> Result<T> {
        match self {
            Self::Pattern {
                pattern,
                pages,
                refs,
                seed,
            } => Ok(take(&mut pattern.references(*pages, *refs, *seed)?)),
            Self::File { path, pages, .. } => {
                let mut failure = None;
                let mut all = open_file(path, *pages)?
                    .map_while(|page| page.map_err(|error| failure = Some(error)).ok());
                let taken = take(&mut all);
                drop(all);
                match failure {
                    Some(error) => {
                        Err(error).with_context(|| format!("reading {}", path.display()))
                    }
                    None => Ok(taken),
                }
            }
        }
    }

    const fn pages(&self) -> u32 {
        match self {
            Self::Pattern { pages, .. } | Self::File { pages, .. } => *pages,
        }
    }

    fn refs(&self) -> Result<u64> {
        Ok(match self {
            Self::Pattern {
                pattern,
                pages,
                refs,
                ..
            } => pattern.total(*pages, *refs)?,
            Self::File { found, .. } => found.refs,
        })
    }

    fn tally(&self) -> Result<Vec<u32>> {
        match self {
            Self::Pattern {
                pattern,
                pages,
                refs,
                seed,
            } => Ok(pattern.counts(*pages, *refs, *seed)?),
            Self::File { pages, .. } => self.each(|all| tally(all, *pages)),
        }
    }

    fn write(&self, form: As, out: &mut dyn Write) -> Result<()> {
        match form {
            As::Text => self.each(|all| write_text(out, all))??,
            As::Counts => write_counts(out, &self.tally()?)?,
            As::Binary => {
                let (pages, refs) = (self.pages(), self.refs()?);
                self.each(|all| write_binary(out, pages, refs, all))??;
            }
        }
        Ok(())
    }

    fn facts(&self, out: Output) -> Result<()> {
        let counts = self.tally()?;
        let (pattern, seed, form) = match self {
            Self::Pattern { pattern, seed, .. } => (pattern.to_string(), Some(*seed), None),
            Self::File { path, found, .. } => {
                let form: Form = found.form;
                (
                    format!("file:{}", path.display()),
                    None,
                    Some(form.to_string()),
                )
            }
        };
        let facts = Facts {
            pattern,
            pages: self.pages(),
            refs: self.refs()?,
            seed,
            form,
            pages_referenced: counts.iter().filter(|count| **count > 0).count(),
            most_references_of_a_page: counts.iter().copied().max().unwrap_or(0),
            generator: format!("{STRINGS}, {}", Rng::NAME),
        };
        if out.json {
            return out.json(&facts);
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
}
