//! Kernel features that a trial may need, and the options that enable them.

use std::cmp::Ordering;
use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::Config;
use crate::version;

/// A kernel feature that a scenario, a swap device or a probe needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Swapping pages out to a device or file.
    Swap,
    /// The modelled SSD, which is a null_blk device.
    NullBlk,
    /// The modelled rotating disk: a network block device served by a process in the guest.
    Nbd,
    /// Devices configured through configfs, such as the modelled SSD.
    Configfs,
    /// Compressed swap in memory (zram).
    Zram,
    /// The compressed cache in front of swap (zswap).
    Zswap,
    /// The multi-generational LRU.
    LruGen,
    /// Transparent huge pages.
    Thp,
    /// Explicit huge pages (hugetlb).
    Hugetlb,
    /// Memory compaction.
    Compaction,
    /// Memory cgroups.
    Memcg,
    /// Pressure stall information.
    Psi,
    /// The ext4 filesystem.
    Ext4,
    /// The XFS filesystem.
    Xfs,
    /// The btrfs filesystem.
    Btrfs,
    /// Packet sockets, whose rings allocate blocks of any order.
    Packet,
    /// Tracepoints and tracefs.
    Tracing,
    /// `/proc/PID/pagemap` and `/proc/kpageflags`.
    PageMonitor,
    /// Filesystems in memory.
    Tmpfs,
    /// Device nodes created by the kernel.
    Devtmpfs,
    /// Booting from an initramfs, without a disk.
    Initramfs,
    /// Access to I/O ports from user space, which transfers trials into the guest and results out of it.
    PortAccess,
    /// High-resolution timers, which are finer than the tick.
    HighResTimers,
    /// Loading of kernel modules.
    Modules,
    /// `/proc`, which is needed to read counters and change settings.
    Proc,
    /// `/dev/mem`, through which results leave the guest.
    Devmem,
    /// The event counters of `/proc/vmstat`.
    VmEvents,
    /// A console that works from the start of booting, so that the messages of a failed boot can be seen.
    EarlyPrintk,
    /// The compressor LZ4 in zram.
    ZramLz4,
    /// Writeback of zram: writing its pages to a backing device.
    ZramWriteback,
    /// Recompression of zram: compressing its pages again with a second compressor.
    ZramRecompression,
    /// The shrinker of zswap, which writes cold pages to swap under memory pressure.
    ZswapShrinker,
    /// The switch of a cgroup that disables writeback from zswap (`memory.zswap.writeback`).
    ZswapNoWriteback,
    /// Proactive reclaim from a cgroup, requested through `memory.reclaim`.
    ReclaimRequests,
    /// A limit on a cgroup's compressed memory in zswap (`memory.zswap.max`).
    ZswapMax,
    /// Several CPUs.
    Smp,
    /// Several memory nodes (NUMA).
    Numa,
    /// Memory nodes as described by the firmware.
    AcpiNuma,
    /// Automatic NUMA balancing: moving pages between memory nodes according to hinting faults.
    NumaBalancing,
    /// Memory tiers derived from the latencies and bandwidths that the firmware states (HMAT).
    Hmat,
}

impl Need {
    /// All features that a trial may need.
    pub const ALL: [Self; 40] = [
        Self::Swap,
        Self::NullBlk,
        Self::Nbd,
        Self::Configfs,
        Self::Zram,
        Self::Zswap,
        Self::LruGen,
        Self::Thp,
        Self::Hugetlb,
        Self::Compaction,
        Self::Memcg,
        Self::Psi,
        Self::Ext4,
        Self::Xfs,
        Self::Btrfs,
        Self::Packet,
        Self::Tracing,
        Self::PageMonitor,
        Self::Tmpfs,
        Self::Devtmpfs,
        Self::Initramfs,
        Self::PortAccess,
        Self::HighResTimers,
        Self::Modules,
        Self::Proc,
        Self::Devmem,
        Self::VmEvents,
        Self::EarlyPrintk,
        Self::ZramLz4,
        Self::ZramWriteback,
        Self::ZramRecompression,
        Self::ZswapShrinker,
        Self::ZswapNoWriteback,
        Self::ReclaimRequests,
        Self::ZswapMax,
        Self::Smp,
        Self::Numa,
        Self::AcpiNuma,
        Self::NumaBalancing,
        Self::Hmat,
    ];

    /// Returns the kernel option that enables the feature in current releases. For a certain release, see
    /// [`Self::option_in`].
    pub fn option(self) -> &'static str {
        match self {
            Self::Swap => "CONFIG_SWAP",
            Self::NullBlk => "CONFIG_BLK_DEV_NULL_BLK",
            Self::Nbd => "CONFIG_BLK_DEV_NBD",
            Self::Configfs => "CONFIG_CONFIGFS_FS",
            Self::Zram => "CONFIG_ZRAM",
            Self::Zswap => "CONFIG_ZSWAP",
            Self::LruGen => "CONFIG_LRU_GEN",
            Self::Thp => "CONFIG_TRANSPARENT_HUGEPAGE",
            Self::Hugetlb => "CONFIG_HUGETLBFS",
            Self::Compaction => "CONFIG_COMPACTION",
            Self::Memcg => "CONFIG_MEMCG",
            Self::Psi => "CONFIG_PSI",
            Self::Ext4 => "CONFIG_EXT4_FS",
            Self::Xfs => "CONFIG_XFS_FS",
            Self::Btrfs => "CONFIG_BTRFS_FS",
            Self::Packet => "CONFIG_PACKET",
            Self::Tracing => "CONFIG_EVENT_TRACING",
            Self::PageMonitor => "CONFIG_PROC_PAGE_MONITOR",
            Self::Tmpfs => "CONFIG_TMPFS",
            Self::Devtmpfs => "CONFIG_DEVTMPFS",
            Self::Initramfs => "CONFIG_BLK_DEV_INITRD",
            Self::PortAccess => "CONFIG_X86_IOPL_IOPERM",
            Self::HighResTimers => "CONFIG_HIGH_RES_TIMERS",
            Self::Modules => "CONFIG_MODULES",
            Self::Proc => "CONFIG_PROC_FS",
            Self::Devmem => "CONFIG_DEVMEM",
            Self::VmEvents => "CONFIG_VM_EVENT_COUNTERS",
            Self::EarlyPrintk => "CONFIG_EARLY_PRINTK",
            Self::ZramLz4 => "CONFIG_ZRAM_BACKEND_LZ4",
            Self::ZramWriteback => "CONFIG_ZRAM_WRITEBACK",
            Self::ZramRecompression => "CONFIG_ZRAM_MULTI_COMP",
            Self::ZswapShrinker => "CONFIG_ZSWAP_SHRINKER_DEFAULT_ON (of any value, since 6.8)",
            Self::ZswapNoWriteback => "CONFIG_MEMCG with memory.zswap.writeback (since 6.8)",
            Self::ReclaimRequests => "CONFIG_MEMCG with memory.reclaim (since 5.19)",
            Self::ZswapMax => "CONFIG_ZSWAP with memory.zswap.max (since 5.19)",
            Self::Smp => "CONFIG_SMP",
            Self::Numa => "CONFIG_NUMA",
            Self::AcpiNuma => "CONFIG_ACPI_NUMA",
            Self::NumaBalancing => "CONFIG_NUMA_BALANCING",
            Self::Hmat => "CONFIG_ACPI_HMAT with tiers of the memory present at boot (since 6.10)",
        }
    }

    /// Returns what does not work without the feature, as the subject of a sentence.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Swap => "swapping",
            Self::NullBlk => "the modelled SSD",
            Self::Nbd => "the modelled disk",
            Self::Configfs => "setting up the modelled SSD",
            Self::Zram => "swap on zram",
            Self::Zswap => "zswap",
            Self::LruGen => "the MGLRU setting",
            Self::Thp => "a scenario with transparent huge pages",
            Self::Hugetlb => "a scenario with explicit huge pages",
            Self::Compaction => "a scenario with compaction",
            Self::Memcg => "a memory limit",
            Self::Psi => "the pressure probe",
            Self::Ext4 => "a scenario with files on ext4",
            Self::Xfs => "a scenario with files on XFS",
            Self::Btrfs => "a scenario with files on btrfs",
            Self::Packet => "allocation through packet rings",
            Self::Tracing => "the tracepoint probe",
            Self::PageMonitor => "the page map probe",
            Self::Tmpfs => "a scenario with files in memory",
            Self::Devtmpfs => "the guest's device nodes",
            Self::Initramfs => "booting the guest",
            Self::PortAccess => "talking with the guest",
            Self::HighResTimers => "an exact device latency",
            Self::Modules => "loading modules",
            Self::Proc => "the guest's own view of itself",
            Self::Devmem => "the guest's results",
            Self::VmEvents => "the counters of reclaim",
            Self::EarlyPrintk => "the last words of a guest that dies",
            Self::ZramLz4 => "compressing in zram",
            Self::ZramWriteback => "the writeback of zram",
            Self::ZramRecompression => "the recompression of zram",
            Self::ZswapShrinker => "the shrinker of zswap",
            Self::ZswapNoWriteback => "zswap without writeback",
            Self::ReclaimRequests => "a request to reclaim from a memory group",
            Self::ZswapMax => "a group's limit in zswap",
            Self::Smp => "a machine with several CPUs",
            Self::Numa | Self::AcpiNuma => "a machine with several memory nodes",
            Self::NumaBalancing => "the setting kernel.numa_balancing",
            Self::Hmat => "a slow memory tier",
        }
    }

    /// Returns the name of the feature's module, as for `modprobe`. The module must be loaded if the feature is not
    /// built in. `None` if the feature has no module.
    pub fn module(self) -> Option<&'static str> {
        match self {
            Self::NullBlk => Some("null_blk"),
            Self::Nbd => Some("nbd"),
            Self::Configfs => Some("configfs"),
            Self::Zram => Some("zram"),
            Self::Ext4 => Some("ext4"),
            Self::Xfs => Some("xfs"),
            Self::Btrfs => Some("btrfs"),
            Self::Packet => Some("af_packet"),
            _ => None,
        }
    }

    /// Returns the kernel option that enables the feature in this release. Before 6.12 zram used the compressors of the
    /// crypto API.
    pub fn option_in(self, release: &str) -> &'static str {
        match self {
            Self::ZramLz4 if version::compare(release, ZRAM_BRINGS_ITS_OWN) == Ordering::Less => {
                "CONFIG_CRYPTO_LZ4"
            }
            _ => self.option(),
        }
    }

    /// Checks that a kernel with this release and configuration has the feature. If not, the error names the missing
    /// option.
    pub fn check(self, release: &str, config: &Config) -> Result<(), MissingOption> {
        let since = |first: &str| version::compare(release, first) != Ordering::Less;
        let is_recent = || since(ZSWAP_SHRINKS);
        let has = match self {
            // The shrinker's build option only sets the default. The parameter exists even without the option.
            Self::ZswapShrinker => config.get("CONFIG_ZSWAP").is_on() && is_recent(),
            Self::ZswapNoWriteback => {
                let options = ["CONFIG_ZSWAP", "CONFIG_MEMCG"];
                options.iter().all(|option| config.get(option).is_on()) && is_recent()
            }
            Self::ReclaimRequests => config.get("CONFIG_MEMCG").is_on() && since(GROUPS_RECLAIM),
            Self::ZswapMax => {
                let options = ["CONFIG_ZSWAP", "CONFIG_MEMCG"];
                options.iter().all(|option| config.get(option).is_on()) && since(GROUPS_RECLAIM)
            }
            Self::Hmat => {
                config.get("CONFIG_ACPI_HMAT").is_on()
                    && version::compare(release, TIERS_AT_BOOT) != Ordering::Less
            }
            _ => config.get(self.option_in(release)).is_on(),
        };
        if has {
            Ok(())
        } else {
            Err(MissingOption {
                need: self,
                release: release.to_owned(),
            })
        }
    }
}

/// The first release whose zram contains its own compressors (drivers/block/zram/Kconfig).
const ZRAM_BRINGS_ITS_OWN: &str = "6.12";
/// First release in which zswap has a shrinker, and cgroups can disable its writeback (mm/zswap.c, mm/memcontrol.c).
const ZSWAP_SHRINKS: &str = "6.8";
/// First release in which cgroups have `memory.reclaim` and `memory.zswap.max` (mm/memcontrol.c).
const GROUPS_RECLAIM: &str = "5.19";

/// First release that assigns memory present at boot to a tier by the firmware's table of latencies (mm/memory-tiers.c,
/// `memory_tier_late_init`). Before, only memory that a driver adds later can be in a lower tier.
const TIERS_AT_BOOT: &str = "6.10";

impl Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.purpose())
    }
}

/// A kernel option that is needed, but not set.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{} needs {}, which {release} was built without: choose another kernel, or build this one with it", need.purpose(), need.option_in(release))]
pub struct MissingOption {
    /// The feature that needs the option.
    pub need: Need,
    /// Release of the kernel.
    pub release: String,
}

/// All needed options that a kernel lacks; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingOptions(pub Vec<MissingOption>);

impl Display for MissingOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, more) = match self.0.as_slice() {
            [] => return Ok(()),
            [one] => return one.fmt(f),
            [first, more @ ..] => (first, more),
        };
        let name = |missing: &MissingOption| {
            let option = missing.need.option_in(&missing.release);
            format!("{option} ({})", missing.need)
        };
        write!(f, "{} was built without {}", first.release, name(first))?;
        for (place, missing) in more.iter().enumerate() {
            let and = if place + 1 == more.len() { " and" } else { "," };
            write!(f, "{and} {}", name(missing))?;
        }
        f.write_str(": choose another kernel, or build this one with them")
    }
}

impl std::error::Error for MissingOptions {}

/// Returns the kernel option that builds a module. For a module that is not listed here, the option is guessed from the
/// module's name, and the text says so.
pub fn option_of_module(name: &str) -> String {
    let name = name.replace('-', "_");
    if let Some(need) = Need::ALL
        .into_iter()
        .find(|need| need.module() == Some(name.as_str()))
    {
        return need.option().to_owned();
    }
    let option = match name.as_str() {
        "zsmalloc" => "CONFIG_ZSMALLOC",
        "lzo" | "lzo_rle" => "CONFIG_CRYPTO_LZO",
        "lz4" => "CONFIG_CRYPTO_LZ4",
        "lz4hc" => "CONFIG_CRYPTO_LZ4HC",
        "zstd" => "CONFIG_CRYPTO_ZSTD",
        "deflate" => "CONFIG_CRYPTO_DEFLATE",
        "842" => "CONFIG_CRYPTO_842",
        "zbud" => "CONFIG_ZBUD",
        "z3fold" => "CONFIG_Z3FOLD",
        "loop" => "CONFIG_BLK_DEV_LOOP",
        "mq_deadline" => "CONFIG_MQ_IOSCHED_DEADLINE",
        "virtio_blk" => "CONFIG_VIRTIO_BLK",
        "virtio_pci" => "CONFIG_VIRTIO_PCI",
        "qemu_fw_cfg" => "CONFIG_FW_CFG_SYSFS",
        "brd" => "CONFIG_BLK_DEV_RAM",
        _ => return format!("CONFIG_{} (a guess by its name)", name.to_uppercase()),
    };
    option.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_option_is_named_together_with_what_needs_it() {
        let config = Config::parse("CONFIG_SWAP=y\nCONFIG_ZRAM=m\n");
        assert_eq!(Need::Swap.check("6.1.0", &config), Ok(()));
        assert_eq!(Need::Zram.check("6.1.0", &config), Ok(()));
        let missing = Need::LruGen
            .check("6.1.0", &config)
            .unwrap_err()
            .to_string();
        assert!(
            missing.contains("CONFIG_LRU_GEN")
                && missing.contains("MGLRU")
                && missing.contains("6.1.0"),
            "{missing}"
        );
    }

    #[test]
    fn all_that_is_missing_is_named_in_one_sentence() {
        let config = Config::parse("CONFIG_SWAP=y\nCONFIG_CRYPTO_LZ4=m\n");
        let missing = |release: &str, needs: &[Need]| {
            let check = |need: &Need| need.check(release, &config).err();
            MissingOptions(needs.iter().filter_map(check).collect()).to_string()
        };
        let text = missing(
            "6.12.3-mine",
            &[Need::Swap, Need::Devmem, Need::Proc, Need::ZramLz4],
        );
        assert_eq!(
            text,
            "6.12.3-mine was built without CONFIG_DEVMEM (the guest's results), CONFIG_PROC_FS (the guest's own view of itself) \
             and CONFIG_ZRAM_BACKEND_LZ4 (compressing in zram): choose another kernel, or build this one with them"
        );
        // Up to 6.11 zram uses the compressors of the crypto API.
        let text = missing("6.1.0", &[Need::ZramLz4, Need::EarlyPrintk]);
        assert!(
            text.starts_with("the last words of a guest that dies needs CONFIG_EARLY_PRINTK"),
            "{text}"
        );
    }

    #[test]
    fn a_kernel_without_cpus_nodes_or_tiers_at_boot_is_refused_by_name() {
        let why = |need: Need, release: &str, config: &str| {
            let missing = need.check(release, &Config::parse(config)).err();
            missing.map(|why| why.to_string()).unwrap_or_default()
        };
        let all = "CONFIG_SMP=y\nCONFIG_NUMA=y\nCONFIG_ACPI_NUMA=y\nCONFIG_ACPI_HMAT=y\n";
        for need in [Need::Smp, Need::Numa, Need::AcpiNuma, Need::Hmat] {
            assert_eq!(why(need, "6.12.117-cloud", all), "");
            let text = why(need, "6.12.117-mine", "# CONFIG_NUMA is not set\n");
            assert!(
                text.contains("6.12.117-mine") && text.contains("CONFIG_"),
                "{text}"
            );
        }
        let text = why(Need::Hmat, "6.1.0-50-cloud-amd64", all);
        assert!(
            text.contains("since 6.10") && text.contains("a slow memory tier"),
            "{text}"
        );
    }

    #[test]
    fn what_zram_and_zswap_can_do_beyond_compressing_is_asked_for_by_name() {
        let config = Config::parse(
            "CONFIG_ZRAM=m\nCONFIG_ZRAM_WRITEBACK=y\nCONFIG_ZSWAP=y\nCONFIG_MEMCG=y\n\
             # CONFIG_ZSWAP_SHRINKER_DEFAULT_ON is not set\n# CONFIG_ZRAM_MULTI_COMP is not set\n",
        );
        let why = |need: Need, release: &str| {
            need.check(release, &config)
                .err()
                .map(|why| why.to_string())
        };
        for need in [
            Need::ZswapShrinker,
            Need::ZswapNoWriteback,
            Need::ZramWriteback,
        ] {
            assert_eq!(why(need, "7.2.13-cloud"), None);
        }
        assert_eq!(why(Need::ZramWriteback, "6.1.0"), None);
        let text = why(Need::ZswapShrinker, "6.1.0-50-cloud-amd64").unwrap();
        assert!(
            text.contains("CONFIG_ZSWAP_SHRINKER_DEFAULT_ON") && text.contains("6.8"),
            "{text}"
        );
        let text = why(Need::ZswapNoWriteback, "6.7.1").unwrap();
        assert!(text.contains("memory.zswap.writeback"), "{text}");
        for need in [Need::ReclaimRequests, Need::ZswapMax] {
            assert_eq!(why(need, "5.19.0"), None);
            let text = why(need, "5.15.12").unwrap();
            assert!(text.contains("since 5.19"), "{text}");
        }
        let text = why(Need::ZramRecompression, "7.2.13").unwrap();
        assert!(
            text.starts_with("the recompression of zram needs CONFIG_ZRAM_MULTI_COMP"),
            "{text}"
        );
    }

    #[test]
    fn every_need_has_its_own_option_and_purpose() {
        let options: std::collections::BTreeSet<_> =
            Need::ALL.iter().map(|need| need.option()).collect();
        assert_eq!(options.len(), Need::ALL.len());
        assert!(options.iter().all(|option| option.starts_with("CONFIG_")));
    }

    #[test]
    fn modules_are_traced_to_the_option_that_builds_them() {
        assert_eq!(option_of_module("null-blk"), "CONFIG_BLK_DEV_NULL_BLK");
        assert_eq!(option_of_module("lzo-rle"), "CONFIG_CRYPTO_LZO");
        assert!(option_of_module("frob").starts_with("CONFIG_FROB"));
    }
}
