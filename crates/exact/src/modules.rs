//! Kernel modules that a guest loads, and parameters of built-in drivers.

use pagetide_guest::spec::ModuleSpec;
use pagetide_kernel::{Kernel, KernelError, Need, Setting};
use pagetide_record::{Subject, SwapSpec};
use pagetide_scenario::Needs;

use crate::able;
use crate::disks::{has_ssd, ssd_params, ssds, turning_disks};
use crate::error::ExactError;
use crate::features::{has_file, need_of};
use crate::recipe::Files;

/// Returns the names of the modules that a machine needs, in loading order, and the modules' files.
pub(crate) fn modules(
    kernel: &Kernel,
    subject: &Subject,
    needs: &Needs,
) -> Result<(Vec<ModuleSpec>, Files), ExactError> {
    let mut modules = Vec::new();
    // A kernel without packet sockets is not refused here: the scenario reports it.
    if needs.packet && kernel.require(Need::Packet).is_ok() {
        modules.extend(kernel.modules_for(&["af_packet"])?);
    }
    let compressor = subject.swap.compressor().name();
    match subject.swap {
        SwapSpec::Zram(_) => modules.extend(kernel.zram_modules(Some(compressor))?),
        SwapSpec::Zswap(zswap) => {
            modules.extend(kernel.zswap_modules(compressor, zswap.pool().name())?);
        }
        SwapSpec::Tiers(tiers) => {
            if let Some(front) = tiers.zswap {
                modules.extend(kernel.zswap_modules(compressor, front.pool().name())?);
            }
            for compressor in able::compressors(tiers) {
                modules.extend(kernel.zram_modules(Some(compressor))?);
            }
            if has_file(tiers) {
                modules.extend(kernel.modules_for(&["ext4"])?);
                modules.extend(kernel.modules_for(&["crc32c_generic"]).unwrap_or_default());
            }
        }
        SwapSpec::None | SwapSpec::Ssd(_) | SwapSpec::Disk(_) => {}
    }
    let disk = ssds(subject, needs);
    if disk.is_some() || has_ssd(subject) {
        modules.extend(kernel.modules_for(&["null_blk"])?);
    }
    if needs.filesystem.is_some()
        && let Some(module) = need_of(subject.files_on.system).module()
    {
        modules.extend(kernel.modules_for(&[module])?);
        // File systems need this module for checksums. Debian's plain kernels have it, but no file system lists it
        // as a dependency.
        modules.extend(kernel.modules_for(&["crc32c_generic"]).unwrap_or_default());
    }
    let turning = turning_disks(subject);
    if turning > 0 {
        modules.extend(kernel.modules_for(&["nbd"])?);
        // A kernel without this scheduler keeps its own default.
        modules.extend(kernel.modules_for(&["mq_deadline"]).unwrap_or_default());
    }
    let mut specs: Vec<ModuleSpec> = Vec::new();
    let mut files = Vec::new();
    for module in modules {
        if specs.iter().any(|known| known.name == module.name) {
            continue;
        }
        let file = format!("/modules/{}.ko", module.name);
        let params = match module.name.as_str() {
            // For swap on several devices, the guest creates each simulated disk itself.
            "null_blk" => disk.as_ref().map_or("nr_devices=0".to_owned(), ssd_params),
            "zram" => format!("num_devices={}", zrams(subject.swap)),
            "nbd" => format!("nbds_max={turning} max_part=0"),
            _ => String::new(),
        };
        files.push((file.clone(), module.bytes));
        specs.push(ModuleSpec {
            name: module.name,
            file,
            params,
        });
    }
    Ok((specs, files))
}

/// Returns the boot arguments of a trial's kernel. A built-in driver of simulated disks takes its parameters from these
/// arguments; a module gets them when it is loaded.
pub(crate) fn boot_arguments(
    kernel: &Kernel,
    subject: &Subject,
    needs: &Needs,
) -> Result<Vec<String>, KernelError> {
    let mut arguments = subject.variant.boot.clone();
    if let Some(disk) = ssds(subject, needs)
        && kernel.config()?.get("CONFIG_BLK_DEV_NULL_BLK") == Setting::Yes
    {
        let of_driver = ssd_params(&disk);
        let of_driver = of_driver
            .split_whitespace()
            .map(|word| format!("null_blk.{word}"));
        arguments.extend(of_driver);
    }
    let zrams = zrams(subject.swap);
    if zrams > 1 && kernel.config()?.get("CONFIG_ZRAM") == Setting::Yes {
        arguments.push(format!("zram.num_devices={zrams}"));
    }
    Ok(arguments)
}

/// Returns the number of zram devices that the guest must have; 1 if swap is not on several devices.
fn zrams(swap: SwapSpec) -> usize {
    match swap {
        SwapSpec::Tiers(tiers) => tiers.zrams().count(),
        _ => 1,
    }
}
