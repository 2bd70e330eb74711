//! Options of the command line that define what a campaign runs.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use pagetide_campaign::{Adjustment, Observe, Request, VariantChange, Vary, pair};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{CpusSpec, FileSystem, FilesOn, MemorySpec, NodesSpec, SwapSpec, TraceRing};
use pagetide_source::Series;

use crate::accept_args::AcceptArgs;

/// Options that define a campaign.
#[derive(Args, Clone, Debug, Default)]
pub struct CampaignArgs {
    #[command(flatten)]
    compared: VariantArgs,
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    pub accept: AcceptArgs,
}

/// Options for the variants that are compared.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What is compared")]
struct VariantArgs {
    /// Kernel to run on; each additional one is another variant [default: debian:bookworm/6.12]
    #[arg(long, value_name = "K")]
    kernel: Vec<String>,
    /// Setting of every variant, such as vm.swappiness=10 or lru_gen/enabled=0
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Boot argument of every variant
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    boot: Vec<String>,
    /// Another variant: the first one with these settings changed; also kernel=K, patch=FILE, boot=ARG, swap=KIND,
    /// swap-size=SIZE and name=NAME
    #[arg(long, value_name = "KEY=VALUE[,…]")]
    vs: Vec<VariantChange>,
    /// Values of a setting, or of `kernel`, `boot`, `swap` or `swap-size`: one variant for each value. Values of
    /// `memory`, `limit` or `cpus`: one cell for each value. Several --vary are combined; the first variant is the
    /// baseline. Use --set for settings of all variants
    #[arg(long, value_name = "KEY=V1,V2[,…]")]
    vary: Vec<Vary>,
    /// Patch to judge: a file, a mailbox or a folder; several form one series. Builds the source with and without it
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    patch: Vec<String>,
    /// Judge every prefix of the series: the first patch, the first two, and so on
    #[arg(long, requires = "patch")]
    each: bool,
    /// Source to build: debian:6.12, debian:SUITE/SERIES, or a git tree as DIR or DIR@REVISION [default with patches:
    /// debian:6.12]
    #[arg(long, value_name = "SOURCE", conflicts_with = "kernel")]
    source: Option<String>,
    /// File with kernel configuration options, set in addition to pagetide's own; or `debian` for the configuration of
    /// Debian's kernels
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    config: Option<String>,
    /// Omit the control: the source with a nop at the place of the patch, which shows the effect of moving code
    #[arg(long, requires = "patch")]
    no_control: bool,
}

/// Options for the workloads.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workload")]
struct WorkloadArgs {
    /// File with the workload of the scenario `workload`; docs/workload.md has every key
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Parameter of the scenario, such as pages=2*memory; several values of one make a matrix
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = pair)]
    param: Vec<(String, String)>,
    /// Memory available to the workload, or total:SIZE for the whole machine [default: the scenario's, 64M for most]
    #[arg(long, value_name = "SIZE")]
    memory: Vec<MemorySpec>,
    /// Memory nodes with the free memory of each, such as 64M,64M. The first has the processor. 64M,256M:slow makes the
    /// second a slow tier, 64M,256M:slow:LATENCY with another latency. --memory is the sum and may be left out
    /// [default: one node]
    #[arg(long, value_name = "SIZE,SIZE[:slow][,…]", conflicts_with_all = ["scale", "sizes"])]
    nodes: Option<NodesSpec>,
    /// Latency of an access to a slow node on the modelled clock, which is never mixed with the exact one [default:
    /// 300ns]
    #[arg(long, value_name = "TIME", requires = "nodes")]
    slow_latency: Option<Nanos>,
    /// Swap device: zram[:COMPRESSOR], ssd[:LATENCY], disk[:SEEK][,RATE] (such as disk:8ms,40MB/s),
    /// zswap[:COMPRESSOR[:POOL]][+DISK] (such as zswap:zstd+ssd:80us), none, or several devices with sizes and
    /// priorities (such as zram:8M@100,ssd@10). zram also takes limit=SIZE, recompress=COMPRESSOR and writeback=DISK.
    /// zswap also takes shrinker and no-writeback. file:SIZE+DISK is a swap file. Several --swap create cells; to
    /// compare kinds of swap, use --vs swap=KIND [default: zram]
    #[arg(long, value_name = "KIND")]
    swap: Vec<SwapSpec>,
    /// Size of all swap devices together [default: three times the memory, or the sum of the devices' sizes]
    #[arg(long, value_name = "SIZE")]
    swap_size: Option<Bytes>,
    /// Device for files, if there are any: ssd, null (takes no time) or disk[:SEEK][,RATE] such as disk:8ms,20MB/s
    /// [default: ssd]
    #[arg(long, visible_alias = "disk", value_name = "KIND")]
    files_on: Option<FilesOn>,
    /// File system for the scenario's files or for your own program: ext4, xfs, btrfs or tmpfs [default: ext4]
    #[arg(long, value_name = "KIND")]
    fs: Option<FileSystem>,
    /// CPUs of the machine, 1 to 8, which take turns of 5 us; 4:10us is four with turns of 10 us. Several values create
    /// cells. More than one CPU needs QEMU 8.1 or later (`pagetide emulator add`) [default: 1]
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    cpus: Vec<CpusSpec>,
    /// Run the scenario as its original did, including its errors
    #[arg(long)]
    as_written: bool,
    /// Scale relative to the machine of the original: sets the memory and all sizes that depend on it. Replaces the
    /// scale of a campaign file
    #[arg(long, value_name = "SHARE", conflicts_with = "memory")]
    scale: Option<f64>,
    /// Memory sizes, separated by commas: compares the variants at each size and says whether the effect is the same at
    /// all sizes
    #[arg(
        long,
        value_name = "SIZE,SIZE[,…]",
        value_delimiter = ',',
        conflicts_with_all = ["memory", "scale"]
    )]
    sizes: Vec<MemorySpec>,
}

/// Options for the number of trials.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Sampling")]
struct SamplingArgs {
    /// Seeds for each variant [default: 8, or as many as the primary metrics need]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// First seed; each further seed is the previous one plus 1
    #[arg(long, value_name = "SEED")]
    first_seed: Option<u64>,
    /// Add seeds until every primary metric is decided, up to --seeds [default then: 40]
    #[arg(long)]
    until_sure: bool,
    /// Seeds whose trials also run with all probes, to explain results: a number of seeds, none, first or all [default:
    /// 3 if variants are compared, otherwise none]
    #[arg(
        long,
        value_name = "SEEDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "3"
    )]
    observe: Option<Observe>,
    /// Seeds whose trials run once more with instructions counted by function. The counts are exact and do not change
    /// times. Give a number of seeds, none, first or all [default: 1 with --patch, otherwise none]
    #[arg(
        long,
        value_name = "SEEDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1"
    )]
    profile: Option<Observe>,
    /// Also record every reference to a page of a program in profiled trials, for `pagetide profile RECORD
    /// --references` and `pagetide ideal RECORD`; without --profile, those of the first seed are profiled
    #[arg(long)]
    references: bool,
    /// Size of the trace ring buffer in observed trials, a power of two; a small one loses events [default: 4M]
    #[arg(long, value_name = "SIZE")]
    trace_ring: Option<TraceRing>,
    /// Name of the campaign in the store [default: derived from what is run]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl CampaignArgs {
    /// Removes and returns the values of `--vary`, for commands that do not make variants of them.
    pub fn take_vary(&mut self) -> Vec<Vary> {
        std::mem::take(&mut self.compared.vary)
    }

    /// Returns the name of the campaign; `None` if `--name` was not given.
    pub fn name(&self) -> Option<&str> {
        self.sampling.name.as_deref()
    }

    /// Returns the names of the kernels given with `--kernel`.
    pub fn kernels(&self) -> &[String] {
        &self.compared.kernel
    }

    /// Converts the options to a request, which does not depend on the command line.
    pub fn request(&self) -> Result<Request> {
        let Self {
            compared,
            workload,
            sampling,
            accept,
        } = self.clone();
        let each = if compared.each {
            let paths: Vec<PathBuf> = compared.patch.iter().map(PathBuf::from).collect();
            Some(Series::read(&paths)?.patches.len())
        } else {
            None
        };
        let nodes = match (workload.nodes, workload.slow_latency) {
            (Some(nodes), Some(latency)) => Some(nodes.with_latency(latency)?),
            (nodes, _) => nodes,
        };
        Ok(Request {
            kernels: compared.kernel,
            settings: compared.set,
            boot: compared.boot,
            changes: compared.vs,
            vary: compared.vary,
            patches: compared.patch,
            each,
            source: compared.source,
            config: compared.config,
            no_control: compared.no_control,
            workload: workload.workload,
            params: workload.param,
            as_written: workload.as_written,
            scale: workload.scale,
            name: sampling.name,
            adjustment: Adjustment {
                memory: workload.memory,
                limit: Vec::new(),
                arena: None,
                sizes: workload.sizes,
                nodes,
                swap: workload.swap,
                swap_size: workload.swap_size,
                files_on: workload.files_on,
                cpus: workload.cpus,
                fs: workload.fs,
                seeds: sampling.seeds,
                first_seed: sampling.first_seed,
                until_sure: sampling.until_sure,
                observe: sampling.observe,
                profile: sampling.profile,
                references: sampling.references,
                trace_ring: sampling.trace_ring,
                accept: accept.accept,
            },
        })
    }
}
