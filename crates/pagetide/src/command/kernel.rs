//! `pagetide kernel`: the kernels in the cache.

use anyhow::{Context as _, Result};
use clap::Subcommand;
use pagetide_kernel::{Cache, FORMS, Freshness, Kernel, KernelRef, Need};
use pagetide_quantity::Bytes;
use pagetide_report::draw::Align;
use pagetide_report::terminal::Row;
use serde::Serialize;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::{Output, say};

/// Fetch, list, show and remove kernels
#[derive(clap::Args, Debug)]
#[command(after_long_help = forms())]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Fetch kernels into the cache
    Add {
        /// How the kernel is named; without any, the three that a first run compares
        #[arg(value_name = "KERNEL")]
        kernels: Vec<String>,
        /// Ask the archive again, although it is here
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
    /// Show a kernel: where it came from, and what it can do
    Show {
        /// How the kernel is named
        #[arg(value_name = "KERNEL")]
        kernel: String,
        /// Read all of it again and compare it with its digest
        #[arg(long)]
        verify: bool,
    },
}

/// What kernels may be called, for help.
fn forms() -> String {
    let mut text = "A kernel is named as:\n".to_owned();
    for (form, meaning) in FORMS {
        put!(text, "  {form}\n      {meaning}\n");
    }
    text
}

/// Does it.
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
            let freshness = if refresh {
                Freshness::Refresh
            } else {
                Freshness::Pinned
            };
            let cache = places.kernels()?;
            let mut added = Vec::new();
            let mut missing = Vec::new();
            for reference in references {
                match cache.resolve(&reference, freshness, &mut |step| say(&step.to_string())) {
                    Ok(kernel) => added.push(KernelRow::of(&cache, &kernel)?),
                    Err(why) => missing.push((reference, why)),
                }
            }
            out.list(&added, "nothing was added")?;
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
                let kernel = find(&cache, &name)?;
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
            let kernel = find(&cache, &kernel)?;
            if verify {
                cache.verify(&kernel)?;
            }
            show(&cache, &kernel, verify, out)?;
        }
    }
    Ok(End::Done)
}

/// The kernel of a name, which must be in the cache already.
fn find(cache: &Cache, name: &str) -> Result<Kernel> {
    if let Some(kernel) = cache.find(name)? {
        return Ok(kernel);
    }
    let reference: KernelRef = name.parse()?;
    cache.pinned(&reference).ok_or_else(|| {
        Usage::error(format!(
            "kernel `{name}` is not in the cache: `pagetide kernel list` shows those that are, `pagetide kernel add \
             {name}` fetches it"
        ))
    })
}

#[derive(Serialize)]
struct KernelRow {
    release: String,
    digest: String,
    names: Vec<String>,
    packages: Vec<String>,
    modules: usize,
    size: Bytes,
}

impl KernelRow {
    fn of(cache: &Cache, kernel: &Kernel) -> Result<Self> {
        let mut names = cache.references_to(&kernel.digest);
        if names.is_empty() {
            names.push(kernel.origin.reference.clone());
        }
        Ok(Self {
            release: kernel.release.clone(),
            digest: kernel.digest.to_string(),
            names,
            packages: kernel.origin.packages.clone(),
            modules: kernel.modules,
            size: Bytes(kernel.size()?),
        })
    }
}

impl Row for KernelRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("release", Align::Left),
        ("digest", Align::Left),
        ("named", Align::Left),
        ("modules", Align::Right),
        ("size", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.release.clone(),
            self.digest.get(..12).unwrap_or(&self.digest).to_owned(),
            self.names.join(", "),
            self.modules.to_string(),
            self.size.to_string(),
        ]
    }
}

/// Lists the kernels in the cache.
pub fn list(places: &StoreArgs, out: Output) -> Result<()> {
    let cache = places.kernels()?;
    let rows = cache
        .list()?
        .iter()
        .map(|kernel| KernelRow::of(&cache, kernel))
        .collect::<Result<Vec<_>>>()?;
    out.list(&rows, "no kernels: `pagetide kernel add` fetches some")
}

/// What a scenario or variant may need of a kernel, in the order shown.
const NEEDS: [Need; 13] = [
    Need::Initramfs,
    Need::Devtmpfs,
    Need::PortAccess,
    Need::Swap,
    Need::Zram,
    Need::NullBlk,
    Need::Nbd,
    Need::LruGen,
    Need::Thp,
    Need::Zswap,
    Need::Ext4,
    Need::Tracing,
    Need::Packet,
];

fn show(cache: &Cache, kernel: &Kernel, verified: bool, out: Output) -> Result<()> {
    let listed = KernelRow::of(cache, kernel)?;
    let lacks = kernel.lacks(&NEEDS)?;
    if out.json {
        let lacks: Vec<String> = lacks.iter().map(ToString::to_string).collect();
        return out.json(&serde_json::json!({
            "kernel": listed,
            "banner": kernel.banner,
            "build-id": kernel.build_id.known(),
            "lacks": lacks,
            "verified": verified,
        }));
    }
    let mut text = format!(
        "release   {}\nbanner    {}\nbuild id  {}\ndigest    {}\nnamed     {}\nsize      {}, {} modules\n",
        kernel.release,
        kernel.banner,
        kernel.build_id.known().unwrap_or("not in the image"),
        kernel.digest,
        listed.names.join(", "),
        listed.size,
        kernel.modules,
    );
    for package in &kernel.origin.packages {
        put!(text, "package   {package}\n");
    }
    for missing in &lacks {
        put!(text, "lacks     {missing}\n");
    }
    if lacks.is_empty() {
        text.push_str("lacks     nothing that a scenario needs\n");
    }
    if verified {
        text.push_str("verified  content and digest agree\n");
    }
    out.quoting(&text)
}
