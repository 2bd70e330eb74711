//! `pagetide ideal`: how far from the best possible?

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use pagetide_oracle::{
    About, Answer, Choice, Format, Line, POLICIES, Trace, ask, curve, known, sweep, workers,
};
use pagetide_quantity::{Bytes, PAGE_SIZE};
use pagetide_report::draw::Align;
use pagetide_report::terminal::Row;
use pagetide_scenario::Context;
use serde::Serialize;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Say how many faults an ideal policy would have, and textbook policies, with the same references and memory
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Files may hold one id a line, a trace of valgrind's lackey, libCacheSim's oracleGeneral, or what `pagetide references`
writes; compressed by gzip, xz or zstd or not.

Examples:
  pagetide ideal smooth-sin-random --memory 64M
  pagetide ideal 3f2a
  pagetide ideal trace.oracleGeneral.zst --pages 100000 --policy lru,s3-fifo,opt
  pagetide ideal trace.txt --curve
  pagetide ideal trace.txt --pages 5000 --sweep small=0.01:0.5:50,ghost=0.5:2:4 --policy s3-fifo
  pagetide ideal --policies")]
pub struct Args {
    /// A scenario, a record or a file of references
    #[arg(
        value_name = "SCENARIO|RECORD|FILE",
        required_unless_present = "policies"
    )]
    what: Option<String>,
    /// Memory, as a size; several give a line each [default: the scenario's or the record's]
    #[arg(long, value_name = "SIZE")]
    memory: Vec<Bytes>,
    /// Memory, as a number of pages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pages: Vec<u32>,
    /// Policies with their parameters, such as lru or s3-fifo(small=0.05), or all
    #[arg(long, value_name = "NAME[,…]", default_value = "all")]
    policy: String,
    /// Try every combination of these parameters' values, as in small=0.01:0.5:50,ghost=1
    #[arg(long, value_name = "RANGES")]
    sweep: Option<String>,
    /// Faults of LRU and OPT at every size, in one pass each
    #[arg(long)]
    curve: bool,
    /// With --curve: estimate LRU's from this share of the pages, with error bars, for files of any length
    #[arg(long, value_name = "SHARE", requires = "curve")]
    sample: Option<f64>,
    /// Parameter of the scenario, such as refs=100000
    #[arg(long, short, value_name = "KEY=VALUE")]
    param: Vec<String>,
    /// Seed of the scenario's references
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Count faults in this many windows of equal length too, for --json
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    windows: u32,
    /// How the file holds its references [default: told from its contents]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
    /// Memory for references; longer strings are kept in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    hold: Bytes,
    /// List the policies with their parameters and sources
    #[arg(long)]
    policies: bool,
}

fn format(text: &str) -> Result<Format, String> {
    let found = Format::NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, format)| *format).ok_or_else(|| {
        let names: Vec<&str> = Format::NAMES.iter().map(|(name, _)| *name).collect();
        format!("give one of {}", names.join(", "))
    })
}

/// A policy in the list of policies.
#[derive(Serialize)]
struct PolicyRow {
    policy: &'static str,
    summary: &'static str,
    parameters: Vec<String>,
    source: &'static str,
}

impl Row for PolicyRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("policy", Align::Left),
        ("what it does", Align::Left),
        ("parameters", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.policy.to_owned(),
            self.summary.to_owned(),
            self.parameters.join(", "),
        ]
    }
}

impl PolicyRow {
    fn of(about: &'static About) -> Self {
        Self {
            policy: about.name,
            summary: about.summary,
            parameters: about
                .parameters
                .iter()
                .map(|p| format!("{}={}", p.name, p.default))
                .collect(),
            source: about.source,
        }
    }
}

/// A line of the answer as a row.
#[derive(Serialize)]
struct LineRow(Line);

impl Row for LineRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("memory", Align::Right),
        ("policy", Align::Left),
        ("faults", Align::Right),
        ("of references", Align::Right),
        ("headroom", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        use pagetide_report::draw::{count, grouped};
        let line = &self.0;
        vec![
            count(u64::from(line.pages)),
            line.policy.clone(),
            count(line.faults),
            format!("{} %", grouped(line.share * 100.0, 2)),
            if line.headroom.is_finite() {
                grouped(line.headroom, 3)
            } else {
                "∞".to_owned()
            },
        ]
    }
}

/// A point of a curve.
#[derive(Serialize)]
struct Point {
    pages: u32,
    lru: f64,
    /// Standard error of LRU's faults where they are estimated.
    lru_error: Option<f64>,
    opt: Option<u64>,
}

impl Row for Point {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("memory", Align::Right),
        ("lru faults", Align::Right),
        ("opt faults", Align::Right),
        ("headroom of lru", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        use pagetide_report::draw::{count, grouped};
        let error = |error| format!(" ± {}", grouped(error, 0));
        vec![
            count(u64::from(self.pages)),
            grouped(self.lru, 0) + &self.lru_error.map(error).unwrap_or_default(),
            self.opt.map(count).unwrap_or_default(),
            self.opt
                .map(|opt| grouped(pagetide_oracle::headroom(self.lru, opt as f64), 3))
                .unwrap_or_default(),
        ]
    }
}

/// Answers.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    if args.policies {
        let rows: Vec<PolicyRow> = POLICIES.iter().map(|about| PolicyRow::of(about)).collect();
        out.list(&rows, "there are no policies")?;
        return Ok(End::Done);
    }
    let what = args.what.as_deref().unwrap_or_default();
    if let Some(rate) = args.sample {
        return sampled(args, Path::new(what), rate, out);
    }
    let question = Question::of(args, what, places)?;
    if args.curve {
        return curves(&question.trace, out);
    }
    let choices = choices(args)?;
    let answer = ask(
        &question.trace,
        &choices,
        &question.sizes,
        args.windows,
        workers(),
    )?;
    show(&question, &answer, out)?;
    Ok(End::Done)
}

/// The references, and the sizes that are asked for.
struct Question {
    trace: Trace,
    sizes: Vec<u32>,
    /// Faults of the kernel, where a record is asked about, and its variant.
    measured: Option<(f64, String)>,
}

fn pages(memory: Bytes) -> u32 {
    u32::try_from(memory.0 / PAGE_SIZE)
        .unwrap_or(u32::MAX)
        .max(1)
}

impl Question {
    fn of(args: &Args, what: &str, places: &StoreArgs) -> Result<Self> {
        let mut sizes: Vec<u32> = args.memory.iter().map(|memory| pages(*memory)).collect();
        sizes.extend(&args.pages);
        if Path::new(what).is_file() {
            let trace = Trace::read(Path::new(what), args.format, args.hold.0 / 4)?;
            if sizes.is_empty() && !args.curve {
                return Err(Usage::error(format!(
                    "{what} says nothing of memory: give --memory SIZE, --pages N or --curve"
                )));
            }
            return Ok(Self {
                trace,
                sizes,
                measured: None,
            });
        }
        if let Ok(definition) = pagetide_scenario::find(what) {
            let memory = args
                .memory
                .first()
                .copied()
                .unwrap_or(definition.default_memory);
            let memory = args
                .pages
                .first()
                .map_or(memory, |n| Bytes(u64::from(*n) * PAGE_SIZE));
            if sizes.is_empty() {
                sizes.push(pages(memory));
            }
            let trace = scenario(args, what, memory)?;
            return Ok(Self {
                trace,
                sizes,
                measured: None,
            });
        }
        let store = places.store()?;
        let row = store.find(what).with_context(|| {
            format!("`{what}` is no file, no scenario (`pagetide list scenarios`) and no record")
        })?;
        let reader = store.load(&row.id)?;
        let record = reader.record();
        let subject = &record.subject;
        if sizes.is_empty() {
            sizes.push(pages(subject.memory.bytes()));
        }
        let trace = known(
            &subject.scenario,
            subject.as_written,
            &subject.params,
            subject.seed,
        )?;
        let faults = record
            .results
            .metrics
            .iter()
            .find(|metric| metric.name == "major-faults");
        let measured = faults
            .and_then(|metric| metric.value.number())
            .map(|faults| (faults, subject.variant.name.clone()));
        Ok(Self {
            trace,
            sizes,
            measured,
        })
    }
}

/// The references of a scenario at this memory.
fn scenario(args: &Args, name: &str, memory: Bytes) -> Result<Trace> {
    let mut given = BTreeMap::new();
    for pair in &args.param {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Usage::error(format!("`{pair}` is no parameter: write it as KEY=VALUE"))
        })?;
        given.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    let context = Context {
        memory,
        swap_size: Bytes(memory.0.saturating_mul(1000)),
        cpus: 1,
    };
    let params = pagetide_scenario::resolve(name, false, None, &given, &context)?;
    let definition = pagetide_scenario::find(name)?;
    Ok(known(definition.name, false, &params, args.seed)?)
}

/// The policies that were asked for, with every setting of a sweep.
fn choices(args: &Args) -> Result<Vec<Choice>> {
    let mut choices = Vec::new();
    if args.policy == "all" {
        choices.extend(POLICIES.iter().map(|about| Choice::default_of(about)));
    } else {
        // Commas within parentheses belong to parameters.
        let mut depth = 0;
        let names = args.policy.split(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        });
        for name in names {
            choices.push(Choice::parse(name)?);
        }
    }
    let Some(ranges) = &args.sweep else {
        return Ok(choices);
    };
    match choices.as_slice() {
        [one] => Ok(sweep(one, ranges)?),
        _ => Err(Usage::error(
            "--sweep tries one policy's parameters: name it with --policy",
        )),
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    measured_faults: Option<f64>,
    measured_headroom: Option<f64>,
}

fn show(question: &Question, answer: &Answer, out: Output) -> Result<()> {
    use pagetide_report::draw::{count, grouped};
    let opt = answer.lines.iter().find(|line| line.policy == "opt");
    let measured = question
        .measured
        .as_ref()
        .zip(opt)
        .map(|((faults, name), opt)| {
            (
                *faults,
                name,
                opt.faults,
                pagetide_oracle::headroom(*faults, opt.faults as f64),
            )
        });
    if out.json {
        return out.json(&Shown {
            answer,
            measured_faults: measured.map(|measured| measured.0),
            measured_headroom: measured.map(|measured| measured.3),
        });
    }
    let mut text = format!(
        "{} references to {} pages",
        count(answer.references),
        count(u64::from(answer.distinct))
    );
    if answer.lead > 0 {
        put!(
            text,
            ", after filling {} pages in order",
            count(u64::from(answer.lead))
        );
    }
    out.text(&format!("{text}\n\n"))?;
    let rows: Vec<LineRow> = answer.lines.iter().cloned().map(LineRow).collect();
    out.list(&rows, "nothing was asked for")?;
    if let Some((faults, name, best, headroom)) = measured {
        out.text(&format!(
            "\n{name}: {} major faults, {} possible: headroom {}\n",
            grouped(faults, 0),
            count(best),
            grouped(headroom, 3)
        ))?;
    }
    Ok(())
}

fn curves(trace: &Trace, out: Output) -> Result<End> {
    let Some(references) = trace.in_memory() else {
        return Err(Usage::error(
            "the string is too long for an exact curve in this much memory: raise --hold, or estimate it with --sample 0.01",
        ));
    };
    let lru = curve::lru(references, trace.pages()).without_lead(trace.lead());
    let opt = curve::opt(references, trace.pages()).without_lead(trace.lead());
    let most = lru.enough().max(opt.enough());
    let sizes = if out.json {
        (1..=most).collect()
    } else {
        curve::shown_sizes(most)
    };
    let rows: Vec<Point> = sizes
        .into_iter()
        .map(|pages| Point {
            pages,
            lru: lru.faults(pages) as f64,
            lru_error: None,
            opt: Some(opt.faults(pages)),
        })
        .collect();
    out.list(&rows, "there is no reference")?;
    Ok(End::Done)
}

fn sampled(args: &Args, path: &Path, rate: f64, out: Output) -> Result<End> {
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(Usage::error(format!(
            "--sample {rate} is no share: give a number above 0, up to 1"
        )));
    }
    let curve = curve::shards_of_file(path, args.format, rate)?;
    let mut sizes: Vec<u32> = args.memory.iter().map(|memory| pages(*memory)).collect();
    sizes.extend(&args.pages);
    if sizes.is_empty() {
        sizes = curve::shown_sizes(curve.enough());
    }
    let rows: Vec<Point> = sizes
        .into_iter()
        .map(|pages| {
            let (faults, error) = curve.faults(pages);
            Point {
                pages,
                lru: faults,
                lru_error: Some(error),
                opt: None,
            }
        })
        .collect();
    out.list(&rows, "there is no reference")?;
    Ok(End::Done)
}
