//! Parts of a kind of swap: compressors, pools and disks. Also the errors of parsing a kind of swap.

use std::fmt;

use pagetide_quantity::{Nanos, UnitError, nearest};

use crate::disk::{DiskError, DiskSpec};
use crate::text::exact_time;

/// Default latency of the simulated solid-state disk.
pub const SSD_LATENCY: Nanos = Nanos::from_micros(80);

/// The text forms of swap, for help and error messages.
pub const FORMS: &str = "zram, zram:COMPRESSOR (such as zram:zstd), ssd, ssd:LATENCY (such as ssd:80us), disk, disk:SEEK,RATE \
     (such as disk:8ms,40MB/s), zswap:COMPRESSOR:POOL+DISK (such as zswap:zstd:zsmalloc+ssd:80us, the shortest is zswap), several \
     devices with sizes and priorities (such as zram:8M@100,ssd@10) or none";

/// A compression algorithm of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compressor {
    /// LZ4, the default: fast, and built in or a module in every kernel since 6.1.
    #[default]
    Lz4,
    /// LZ4 with a more thorough search.
    Lz4hc,
    /// Zstandard.
    Zstd,
    /// LZO (kernel name `lzo`).
    Lzo,
    /// LZO with run-length encoding of zeros (kernel name `lzo-rle`).
    LzoRle,
    /// DEFLATE (kernel name `deflate`).
    Deflate,
    /// The 842 algorithm, designed for compression in hardware.
    Eight42,
}

impl Compressor {
    /// All compression algorithms.
    pub const ALL: [Self; 7] = [
        Self::Lz4,
        Self::Lz4hc,
        Self::Zstd,
        Self::Lzo,
        Self::LzoRle,
        Self::Deflate,
        Self::Eight42,
    ];

    /// Returns the name of the algorithm in the kernel's files and modules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Lz4hc => "lz4hc",
            Self::Zstd => "zstd",
            Self::Lzo => "lzo",
            Self::LzoRle => "lzo-rle",
            Self::Deflate => "deflate",
            Self::Eight42 => "842",
        }
    }

    /// Returns the compressor called `name`. The error lists all names and suggests a similar one.
    pub(super) fn named(name: &str) -> Result<Self, SwapError> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            SwapError::Compressor {
                name: name.to_owned(),
                known: names.join(", "),
                suggestion: suggestion(name, names),
            }
        })
    }
}

/// Allocator of the compressed pages of zswap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pool {
    /// zsmalloc, the default: packs objects of any size. Every kernel has it, and kernels since 6.15 have no other.
    #[default]
    Zsmalloc,
    /// zbud: two objects per page. Removed after kernel 6.14.
    Zbud,
    /// z3fold: three objects per page. Removed after kernel 6.14.
    Z3fold,
}

impl Pool {
    /// All allocators of zswap.
    pub const ALL: [Self; 3] = [Self::Zsmalloc, Self::Zbud, Self::Z3fold];

    /// Returns the name of the allocator in the kernel, and of its module.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zsmalloc => "zsmalloc",
            Self::Zbud => "zbud",
            Self::Z3fold => "z3fold",
        }
    }

    /// Returns the allocator called `name`. The error lists all names and suggests a similar one.
    pub(super) fn named(name: &str) -> Result<Self, SwapError> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            SwapError::Pool {
                name: name.to_owned(),
                known: names.join(", "),
                suggestion: suggestion(name, names),
            }
        })
    }
}

fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or(String::new(), |near| format!(", did you mean `{near}`?"))
}

/// A simulated disk for swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwapDisk {
    /// A solid-state disk with this latency per request.
    Ssd(Nanos),
    /// A simulated rotating disk.
    Disk(DiskSpec),
}

impl fmt::Display for SwapDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssd(latency) => f.pad(&format!("ssd:{}", exact_time(*latency))),
            Self::Disk(disk) => disk.fmt(f),
        }
    }
}

/// Why a text is not a kind of swap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SwapError {
    /// There is no kind of swap with this name.
    #[error("`{0}` is no kind of swap: use {FORMS}")]
    Unknown(String),
    /// There is no compressor with this name.
    #[error("`{name}` is not a compressor of swap: use one of {known}{suggestion}")]
    Compressor {
        /// The unknown compressor name.
        name: String,
        /// List of the names of all compressors, as text.
        known: String,
        /// Text that suggests the most similar compressor name; empty if none is similar.
        suggestion: String,
    },
    /// There is no pool with this name.
    #[error("`{name}` is not a pool of zswap: use one of {known}{suggestion}")]
    Pool {
        /// The unknown pool name.
        name: String,
        /// List of the names of all pools, as text.
        known: String,
        /// Text that suggests the most similar pool name; empty if none is similar.
        suggestion: String,
    },
    /// The kind of swap after `zswap+` is not a disk, but zswap needs a disk.
    #[error(
        "zswap needs a disk behind it, and `{0}` is not one: write zswap+ssd:80us or zswap+disk:8ms,40MB/s"
    )]
    Before(String),
    /// A priority is not a number that the kernel accepts.
    #[error(
        "`{0}` is not a priority of swap: give a whole number from 0 to 32767, such as zram:8M@100,ssd@10"
    )]
    Priority(String),
    /// An option of a device occurs twice.
    #[error("`{device}` has two values for its {part}: keep one")]
    Twice {
        /// Text of the device with the option.
        device: String,
        /// Name of the option.
        part: &'static str,
    },
    /// A device or a limit is smaller than the minimum of 1 MiB.
    #[error("a swap device or a limit of {0} is too small: give at least 1M")]
    Small(String),
    /// The sizes of the devices contradict the total size of swap.
    #[error(
        "the swap devices have sizes of {given} together, but all swap has {total} (devices without a size: {open}, each needs 1M): \
         change a size, or give --swap-size"
    )]
    Sizes {
        /// Sum of the sizes of the devices that have one.
        given: String,
        /// Total size of swap.
        total: String,
        /// Number of devices without a size.
        open: u64,
    },
    /// A swap file is larger than its disk.
    #[error(
        "a swap file of {file} does not fit on a disk of {disk}: make the file smaller, or leave out the size of its disk"
    )]
    LargerThanDisk {
        /// Size of the swap file.
        file: String,
        /// Size of the disk that the swap file is on.
        disk: String,
    },
    /// A size is given for the disk of a swap file, but this size follows from the size of the file.
    #[error(
        "the disk of a swap file is as large as the file needs: give the size to the file, as in file:64M+ssd, instead of `{0}`"
    )]
    FileDisk(String),
    /// zram has a writeback option that names no backing device.
    #[error(
        "the writeback of zram needs a disk that it writes to, and `{0}` names none: end it with writeback=ssd or writeback=disk:8ms,40MB/s:64M"
    )]
    Backing(String),
    /// zswap is in front of a zram device.
    #[error(
        "zswap in front of zram would compress pages twice: use zswap+ssd, or zram:8M@100,ssd@10"
    )]
    ZswapOnZram,
    /// There are more devices than a guest can have.
    #[error("{0} swap devices are more than the 8 that a trial can have: name fewer")]
    ManyDevices(usize),
    /// The latency of a disk is not a time.
    #[error(transparent)]
    Latency(#[from] UnitError),
    /// The text does not describe a rotating disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
