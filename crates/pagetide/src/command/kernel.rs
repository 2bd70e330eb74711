//! `pagetide kernel`: fetches, lists, shows and removes kernels of the cache.

use anyhow::{Context as _, Result};
use clap::Subcommand;
use pagetide_kernel::{Cache, Freshness, Kernel, KernelListing, KernelRef, Step, Stop, forms};
use pagetide_lab::Interrupt;
use pagetide_quantity::command::in_backticks;
use pagetide_report::{draw::Align, terminal::Row};
use pagetide_store::short;
use serde::Serialize;

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::{Output, say};

/// Fetch, list, show and remove kernels
#[derive(clap::Args, Debug)]
#[command(after_long_help = format!("A kernel is named as:\n{}", forms()))]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Fetch kernels into the cache
    Add {
        /// Name of the kernel [default: three kernels: Debian 12's 6.1 and 6.12, and the newest of sid]
        #[arg(value_name = "KERNEL")]
        kernels: Vec<String>,
        /// Ask the archive again, even if the kernel is in the cache
        #[arg(long)]
        refresh: bool,
    },
    /// List the kernels in the cache
    List,
    /// Remove kernels from the cache
    Remove {
        /// Release, label, or start of the digest
        #[arg(required = true, value_name = "KERNEL")]
        kernels: Vec<String>,
    },
    /// Show a kernel: its origin and its features
    Show {
        /// Name of the kernel
        #[arg(value_name = "KERNEL")]
        kernel: String,
        /// Read the whole kernel again and check its digest
        #[arg(long)]
        verify: bool,
    },
}

/// Runs the command and returns how it ended.
pub fn run(args: Args, places: &StoreArgs, out: Output) -> Result<End> {
    match args.what {
        What::Add { kernels, refresh } => {
            let references = if kernels.is_empty() {
                pagetide_kernel::defaults().to_vec()
            } else {
                kernels
                    .iter()
                    .map(|name| name.parse())
                    .collect::<Result<Vec<KernelRef>, _>>()?
            };
            let stop = Stop::by(Interrupt::listen()?.flag());
            let cache = places.kernels()?.stopping_by(stop);
            let watch = &mut |step: &Step| say(&step.to_string());
            let (added, mut missing) =
                cache.resolve_all(references, Freshness::new(refresh), watch);
            out.list(&rows(&cache, &added)?, "nothing was added")?;
            if let Some((last, reason)) = missing.pop() {
                for (reference, why) in missing {
                    say(&format!("{reference} was not added: {why}"));
                }
                return Err(reason).with_context(|| format!("{last} was not added"));
            }
        }
        What::List => list(places, out)?,
        What::Remove { kernels } => {
            let cache = places.kernels()?;
            for name in kernels {
                let kernel = cache.present(&name)?;
                cache.remove(&kernel.digest)?;
                if !out.json {
                    out.quoting(&format!(
                        "removed {} {}\n",
                        kernel.release,
                        kernel.digest.short()
                    ))?;
                }
            }
        }
        What::Show { kernel, verify } => {
            let cache = places.kernels()?;
            let details = cache.details(&cache.present(&kernel)?, verify)?;
            out.show_quoting(&details, || format!("{details}\n"))?;
        }
    }
    Ok(End::Done)
}

#[derive(Serialize)]
struct KernelRow(KernelListing);

impl Row for KernelRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("release", Align::Left),
        ("digest", Align::Left),
        ("named", Align::Left),
        ("modules", Align::Right),
        ("size", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        let kernel = &self.0;
        let digest = &kernel.digest;
        vec![
            kernel.release.clone(),
            short(digest).to_owned(),
            kernel.names.join(", "),
            kernel.modules.to_string(),
            kernel.size.to_string(),
        ]
    }
}

/// Lists the kernels in the cache.
pub fn list(places: &StoreArgs, out: Output) -> Result<()> {
    let cache = places.kernels()?;
    let kernels = rows(&cache, &cache.list()?)?;
    out.list(
        &kernels,
        &format!(
            "no kernels: {} fetches one",
            in_backticks("kernel add debian:bookworm")
        ),
    )
}

fn rows(cache: &Cache, kernels: &[Kernel]) -> Result<Vec<KernelRow>> {
    let row = |kernel| Ok(KernelRow(cache.listing(kernel)?));
    kernels.iter().map(row).collect()
}
