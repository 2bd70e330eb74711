//! `pagetide ideal`: shows the faults of an optimal policy and of textbook policies.

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use pagetide_campaign::pair;
use pagetide_lab::ReferencesQuestion;
use pagetide_oracle::{Format, ReferenceString, WriteCost, ask_costing, choices, curve, workers};
use pagetide_quantity::Bytes;
use pagetide_report::terminal::ideal::{IdealView, Measurement, policies};
use pagetide_store::Store;

use crate::command::{atlas, model, references};
use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Show the faults of an ideal policy, and of textbook policies, with the same references and memory
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = "\
Formats of files, told from their contents or named with --format; compressed by gzip, xz or zstd or not:
  pagetide        what `pagetide ideal references` writes
  text            one id a line, decimal or with 0x
  csv, csv:COLUMN a table with commas, semicolons, tabs or spaces; the column with the ids by name or number
  lackey          valgrind --tool=lackey --trace-mem=yes
  dynamorio       the view of drmemtrace, memtrace_simple, memtrace_x86
  perf            perf script -F comm,tid,time,event,addr; perf mem report -D
  damo            damo report access --raw_form: all pages of a region with accesses, once a snapshot
  oracle-general, lcs, vscsi
                  binary traces as libCacheSim reads them
  msr             CSV of MSR Cambridge
  twitter         CSV of Twitter's caches; a key is a page
An id is a page. Addresses, and the block requests of vscsi and msr with their offset and size, become pages of
4 KiB: a request of several pages is several references.

Examples:
  pagetide ideal smooth-sin-random --memory 64M
  pagetide ideal 3f2a
  pagetide ideal trace.oracleGeneral.zst --pages 100000 --policy lru,s3-fifo,opt
  pagetide ideal trace.txt --curve
  pagetide ideal requests.csv --format csv:lbn --pages 5000
  pagetide ideal trace.txt --pages 5000 --sweep small=0.01:0.5:50,ghost=0.5:2:4 --policy s3-fifo
  pagetide ideal --policies
  pagetide ideal atlas
  pagetide ideal model rmap")]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// A scenario, a record or a file of references
    #[arg(
        value_name = "SCENARIO|RECORD|FILE",
        required_unless_present = "policies"
    )]
    what: Option<String>,
    /// Memory as a size; several are allowed [default: the scenario's or the record's]
    #[arg(long, value_name = "SIZE")]
    memory: Vec<Bytes>,
    /// Memory as a number of pages; several are allowed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pages: Vec<u32>,
    /// Policies with their parameters, such as lru or s3-fifo(small=0.05), or all
    #[arg(long, value_name = "NAME[,…]", default_value = "all")]
    policy: String,
    /// Try all combinations of these parameters' values, as in small=0.01:0.5:50,ghost=1
    #[arg(long, value_name = "RANGES")]
    sweep: Option<String>,
    /// Faults of LRU and OPT at every size, in one pass each
    #[arg(long)]
    curve: bool,
    /// With --curve: estimate LRU's curve from this share of the pages, with error bars, for files of any length
    #[arg(long, value_name = "SHARE", requires = "curve")]
    sample: Option<f64>,
    /// Also count evictions of dirty pages as this number of faults each, and state a lower bound of the cost
    #[arg(long, value_name = "W", allow_hyphen_values = true, conflicts_with_all = ["curve", "policies"])]
    write_cost: Option<WriteCost>,
    /// Parameter of the scenario, such as refs=100000
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = pair)]
    param: Vec<(String, String)>,
    /// Seed of the scenario's references
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Also count faults in this number of windows of equal length, for --json
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    windows: u32,
    /// Format of the file [default: detected from its content]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Memory for references; longer strings use a temporary file [default: a quarter of the available, at most 4G]
    #[arg(long, value_name = "SIZE")]
    hold: Option<Bytes>,
    /// Use the references that the record's trial recorded (`run --references`), also if they follow from its
    /// parameters
    #[arg(long)]
    recorded: bool,
    /// List the policies with their parameters and sources
    #[arg(long)]
    policies: bool,
}

/// Subcommands of `ideal` with options of their own.
#[derive(Subcommand, Debug)]
enum Other {
    References(references::Args),
    Atlas(atlas::Args),
    Model(model::Args),
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    match &args.other {
        Some(Other::References(args)) => return references::run(args, out),
        Some(Other::Atlas(args)) => return atlas::run(args, places, out),
        Some(Other::Model(args)) => return model::run(args, out),
        None => {}
    }
    if args.policies {
        out.list(&policies(), "there are no policies")?;
        return Ok(End::Done);
    }
    let question = args.question();
    if let Some(rate) = args.sample {
        return sampled(&question, rate, out);
    }
    if !args.curve && question.is_open() {
        return Err(Usage::error(format!(
            "{} says nothing of memory: give --memory SIZE, --pages N or --curve",
            question.what
        )));
    }
    let folder = places.store_folder()?;
    let known = question.references(|| Store::open(&folder))?;
    if args.curve {
        return curves(&known.string, out);
    }
    let choices = choices(&args.policy, args.sweep.as_deref())?;
    let (string, sizes, cost) = (&known.string, &known.sizes, args.write_cost);
    let answer = ask_costing(string, &choices, sizes, args.windows, workers(), cost)?;
    // The kernel's faults are counted during the scenario's own references only, a part of the recorded ones.
    let record = known.record.as_deref().filter(|_| known.recorded.is_none());
    let measured = record.and_then(Measurement::of);
    let shown = IdealView::of(answer, measured).with_recorded(known.recorded);
    out.show(&shown, || shown.draw(&out.text_style))?;
    Ok(End::Done)
}

impl Args {
    fn question(&self) -> ReferencesQuestion {
        ReferencesQuestion {
            what: self.what.clone().unwrap_or_default(),
            memory: self.memory.clone(),
            pages: self.pages.clone(),
            params: self.param.clone(),
            seed: self.seed,
            format: self.format.clone(),
            hold: self.hold,
            writes: self.write_cost.is_some(),
            recorded: self.recorded,
        }
    }
}

fn curves(string: &ReferenceString, out: Output) -> Result<End> {
    let Some(points) = curve::points(string, out.json) else {
        return Err(Usage::error(
            "the string is too long for an exact curve in this much memory: raise --hold, or estimate it with --sample 0.01",
        ));
    };
    out.list(&points, "there is no reference")?;
    Ok(End::Done)
}

fn sampled(question: &ReferencesQuestion, rate: f64, out: Output) -> Result<End> {
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(Usage::error(format!(
            "--sample {rate} is no share: give a number above 0, up to 1"
        )));
    }
    let curve = curve::shards_of_file(Path::new(&question.what), question.format.clone(), rate)?;
    let points = curve.points(&question.sizes());
    out.list(&points, "there is no reference")?;
    Ok(End::Done)
}
