//! Fetches the three default kernels (Debian 12's 6.1 and 6.12, and the newest of sid), or the named ones, and prints
//! their details:
//! `cargo run -p pagetide-kernel --example fetch_defaults [KERNEL…]`.

use std::process::ExitCode;
use std::time::Instant;

use pagetide_kernel::{Cache, Freshness, KernelError, KernelRef, Need, cache_root, defaults};

fn main() -> ExitCode {
    match fetch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn fetch() -> Result<(), KernelError> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let references = if named.is_empty() {
        defaults().to_vec()
    } else {
        named
            .iter()
            .map(|text| text.parse())
            .collect::<Result<Vec<KernelRef>, _>>()?
    };
    let cache = Cache::open(cache_root()?)?;
    for reference in references {
        let start = Instant::now();
        let kernel = cache.resolve(&reference, Freshness::Pinned, &mut |step| {
            eprintln!("  {step}");
        })?;
        println!("{reference}: {} in {:.1?}", kernel.label(), start.elapsed());
        println!("  release   {}", kernel.release);
        println!("  banner    {}", kernel.banner);
        println!("  build id  {:?}", kernel.build_id);
        println!("  digest    {}", kernel.digest);
        println!("  packages  {}", kernel.origin.packages.join(" "));
        println!(
            "  size      {} bytes, {} modules",
            kernel.size()?,
            kernel.modules
        );
        let start = Instant::now();
        for (what, modules) in [
            ("null_blk", kernel.modules_for(&["null_blk"])?),
            ("zram", kernel.zram_modules(None)?),
            ("ext4", kernel.modules_for(&["ext4"])?),
        ] {
            let names: Vec<String> = modules
                .iter()
                .map(|module| format!("{} ({} bytes)", module.name, module.bytes.len()))
                .collect();
            println!(
                "  {what:9} {}",
                if names.is_empty() {
                    "built in".to_owned()
                } else {
                    names.join(", ")
                }
            );
        }
        println!("  modules read in {:.1?}", start.elapsed());
        for need in Need::ALL {
            if let Err(missing) = kernel.require(need) {
                println!("  lacks     {missing}");
            }
        }
    }
    Ok(())
}
