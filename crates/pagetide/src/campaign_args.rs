//! The options that say what a campaign runs.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use pagetide_campaign::{Adjustment, Observe, Request, VariantChange, pair};
use pagetide_quantity::Bytes;
use pagetide_record::{FilesSpec, MemorySpec, SwapSpec, TraceRing};
use pagetide_source::Series;

use crate::command::compare::AcceptArgs;

/// What a command line may say of a campaign.
#[derive(Args, Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct CampaignArgs {
    /// Kernel to run on; several make a variant each [default: debian:bookworm/6.12]
    #[arg(long, value_name = "K", help_heading = "What is compared")]
    pub kernel: Vec<String>,
    /// Setting of every variant, such as vm.swappiness=10 or lru_gen/enabled=0
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = "What is compared")]
    pub set: Vec<(String, String)>,
    /// Boot argument of every variant
    #[arg(
        long,
        value_name = "ARG",
        allow_hyphen_values = true,
        help_heading = "What is compared"
    )]
    pub boot: Vec<String>,
    /// One more variant: the first one with these settings changed; also kernel=K, patch=FILE, boot=ARG
    /// and name=NAME
    #[arg(long, value_name = "KEY=VALUE[,…]", help_heading = "What is compared")]
    pub vs: Vec<VariantChange>,
    /// Patch to be judged: a file, a mailbox or a folder; several make one series. Builds the source
    /// with and without it
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "kernel",
        help_heading = "What is compared"
    )]
    pub patch: Vec<String>,
    /// Judge every beginning of the series: the first patch, the first two, and so on
    #[arg(long, requires = "patch", help_heading = "What is compared")]
    pub each: bool,
    /// Source that is built: debian:6.12, debian:SUITE/SERIES, or a git tree as DIR or DIR@REVISION
    /// [default with patches: debian:6.12]
    #[arg(
        long,
        value_name = "SOURCE",
        conflicts_with = "kernel",
        help_heading = "What is compared"
    )]
    pub source: Option<String>,
    /// Options of the built kernels' configuration, set beside our own
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "kernel",
        help_heading = "What is compared"
    )]
    pub config: Option<String>,
    /// Leave out the control: the source with a nop in the patch's place, which shows what moving code alone does
    #[arg(long, requires = "patch", help_heading = "What is compared")]
    pub no_control: bool,
    /// Parameter of the scenario, such as pages=2*memory; several values of one make a matrix
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = pair, help_heading = "Workload")]
    pub param: Vec<(String, String)>,
    /// Memory free to the workload, or total:SIZE for the whole machine [default: the scenario's, 64M
    /// for most]
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub memory: Vec<MemorySpec>,
    /// Where to swap to: zram, ssd, ssd:LATENCY, disk[:SEEK][,RATE] (such as disk:8ms,40MB/s) or none [default: zram]
    #[arg(long, value_name = "KIND", help_heading = "Workload")]
    pub swap: Vec<SwapSpec>,
    /// Size of the swap device [default: three times the memory]
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub swap_size: Option<Bytes>,
    /// What files lie on, where the scenario has some: ssd, or disk[:SEEK][,RATE] such as disk:8ms,20MB/s [default: ssd]
    #[arg(long, value_name = "KIND", help_heading = "Workload")]
    pub files_on: Option<FilesSpec>,
    /// Run the scenario as its original did, faults included
    #[arg(long, help_heading = "Workload")]
    pub as_written: bool,
    /// Size relative to the original's machine; chooses the memory, and all else follows
    #[arg(
        long,
        value_name = "SHARE",
        conflicts_with = "memory",
        help_heading = "Workload"
    )]
    pub scale: Option<f64>,
    /// Seeds for each variant [default: 8, or as many as the primary metrics need]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Sampling")]
    pub seeds: Option<u32>,
    /// First seed; the others follow it
    #[arg(long, value_name = "SEED", help_heading = "Sampling")]
    pub first_seed: Option<u64>,
    /// Go on until every primary metric is decided, at most to --seeds [default then: 40]
    #[arg(long, help_heading = "Sampling")]
    pub until_sure: bool,
    /// Of how many seeds trials also run with all probes, to tell why: a number, none, first or all
    /// [default: 3 where variants are compared, else none]
    #[arg(
        long,
        value_name = "SEEDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "3",
        value_parser = which,
        help_heading = "Sampling"
    )]
    pub observe: Option<Observe>,
    /// Ring buffer of observed trials, a power of two: a smaller one loses events [default: 4M]
    #[arg(long, value_name = "SIZE", help_heading = "Sampling")]
    pub trace_ring: Option<TraceRing>,
    /// Name of the campaign in the store [default: made of what is run]
    #[arg(long, value_name = "NAME", help_heading = "Sampling")]
    pub name: Option<String>,
    /// Sizes of memory, with commas between: the same question at each, and whether the effect holds
    #[arg(
        long,
        value_name = "SIZE,SIZE[,…]",
        value_delimiter = ',',
        conflicts_with_all = ["memory", "scale"],
        help_heading = "Workload"
    )]
    pub sizes: Vec<MemorySpec>,
    #[command(flatten)]
    pub accept: AcceptArgs,
}

/// Reads which trials are observed.
fn which(text: &str) -> Result<Observe, String> {
    if let Some((_, observe)) = Observe::WORDS.iter().find(|(word, _)| *word == text) {
        return Ok(*observe);
    }
    match text.parse() {
        Ok(seeds) if seeds > 0 => Ok(Observe::Seeds(seeds)),
        _ => Err("give a number of seeds, none, first or all".to_owned()),
    }
}

impl CampaignArgs {
    /// The same without the command line.
    pub fn request(&self) -> Result<Request> {
        let args = self.clone();
        let each = if args.each {
            let paths: Vec<PathBuf> = args.patch.iter().map(PathBuf::from).collect();
            Some(Series::read(&paths)?.patches.len())
        } else {
            None
        };
        Ok(Request {
            kernels: args.kernel,
            settings: args.set,
            boot: args.boot,
            changes: args.vs,
            patches: args.patch,
            each,
            source: args.source,
            config: args.config,
            no_control: args.no_control,
            params: args.param,
            as_written: args.as_written,
            scale: args.scale,
            name: args.name,
            adjustment: Adjustment {
                memory: args.memory,
                sizes: args.sizes,
                swap: args.swap,
                swap_size: args.swap_size,
                files_on: args.files_on,
                seeds: args.seeds,
                first_seed: args.first_seed,
                until_sure: args.until_sure,
                observe: args.observe,
                trace_ring: args.trace_ring,
                accept: args.accept.accept,
            },
        })
    }
}
