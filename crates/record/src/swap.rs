//! Kinds of swap of a guest: none, zram, a simulated disk, or zswap with a simulated disk.

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::{Nanos, UnitError, nearest};

use crate::disk::{DiskError, DiskSpec};
use crate::text::{exact_time, serde_as_text};

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

    /// Name of the algorithm in the kernel's files and modules.
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

    fn named(name: &str) -> Result<Self, SwapError> {
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
    /// zsmalloc, the default: packs objects of any size. Every kernel has it, and kernels since 6.18 have no other.
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

    /// Name of the allocator in the kernel, and of its module.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zsmalloc => "zsmalloc",
            Self::Zbud => "zbud",
            Self::Z3fold => "z3fold",
        }
    }

    fn named(name: &str) -> Result<Self, SwapError> {
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

/// zswap: a compressed cache in memory, which writes back to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zswap {
    /// The compressor; `None` for the default.
    pub compressor: Option<Compressor>,
    /// The allocator; `None` for the default.
    pub pool: Option<Pool>,
    /// The swap disk that zswap writes back to.
    pub before: SwapDisk,
}

impl Zswap {
    /// The allocator of this zswap; the default if none is specified.
    pub fn pool(self) -> Pool {
        self.pool.unwrap_or_default()
    }

    /// Parses the text after the word `zswap`.
    fn after_word(rest: &str) -> Result<Self, SwapError> {
        let (how, disk) = match rest.split_once('+') {
            Some((how, disk)) => (how, Some(disk)),
            None => (rest, None),
        };
        let before = match disk {
            None => SwapDisk::Ssd(SSD_LATENCY),
            Some(text) => match text.parse()? {
                SwapSpec::Ssd(latency) => SwapDisk::Ssd(latency),
                SwapSpec::Disk(disk) => SwapDisk::Disk(disk),
                _ => return Err(SwapError::Before(text.to_owned())),
            },
        };
        let (compressor, pool) = match how.strip_prefix(':').map(|how| how.split_once(':')) {
            None => (None, None),
            Some(None) => (Some(Compressor::named(&how[1..])?), None),
            Some(Some((compressor, pool))) => (
                Some(Compressor::named(compressor)?),
                Some(Pool::named(pool)?),
            ),
        };
        Ok(Self {
            compressor,
            pool,
            before,
        })
    }
}

impl fmt::Display for Zswap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = "zswap".to_owned();
        // The pool is written after the compressor.
        if let (Some(_), _) | (None, Some(_)) = (self.compressor, self.pool) {
            text.push(':');
            text.push_str(self.compressor.unwrap_or_default().name());
        }
        if let Some(pool) = self.pool {
            text.push(':');
            text.push_str(pool.name());
        }
        f.pad(&format!("{text}+{}", self.before))
    }
}

/// Kind of swap of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwapSpec {
    /// No swap at all.
    None,
    /// zram with this compressor; `None` for the default.
    Zram(Option<Compressor>),
    /// zswap with a simulated disk.
    Zswap(Zswap),
    /// A simulated solid-state disk with this latency per request.
    Ssd(Nanos),
    /// A simulated rotating disk.
    Disk(DiskSpec),
}

/// Default latency of the simulated solid-state disk.
pub const SSD_LATENCY: Nanos = Nanos::from_micros(80);

/// The text forms of swap, for help and messages.
pub const FORMS: &str = "zram, zram:COMPRESSOR (such as zram:zstd), ssd, ssd:LATENCY (such as ssd:80us), disk, disk:SEEK,RATE \
     (such as disk:8ms,40MB/s), zswap:COMPRESSOR:POOL+DISK (such as zswap:zstd:zsmalloc+ssd:80us, the shortest is zswap) or none";

impl SwapSpec {
    /// zram with the default compressor.
    pub const ZRAM: Self = Self::Zram(None);
    /// zswap with the default compressor and the default solid-state disk.
    pub const ZSWAP: Self = Self::Zswap(Zswap {
        compressor: None,
        pool: None,
        before: SwapDisk::Ssd(SSD_LATENCY),
    });

    /// The compressor of zram or zswap; the default if none is specified, and for other kinds of swap.
    pub fn compressor(self) -> Compressor {
        match self {
            Self::Zram(named) => named.unwrap_or_default(),
            Self::Zswap(zswap) => zswap.compressor.unwrap_or_default(),
            Self::None | Self::Ssd(_) | Self::Disk(_) => Compressor::default(),
        }
    }

    /// True if the swap is zram, so that nothing is written to a disk.
    pub fn is_zram(self) -> bool {
        matches!(self, Self::Zram(_))
    }

    /// The swap disk, with or without zswap; `None` if swap uses no disk.
    pub fn on_disk(self) -> Option<SwapDisk> {
        match self {
            Self::None | Self::Zram(_) => None,
            Self::Zswap(zswap) => Some(zswap.before),
            Self::Ssd(latency) => Some(SwapDisk::Ssd(latency)),
            Self::Disk(disk) => Some(SwapDisk::Disk(disk)),
        }
    }

    /// True if the swap disk is a rotating disk.
    pub fn is_rotational(self) -> bool {
        matches!(self.on_disk(), Some(SwapDisk::Disk(_)))
    }

    /// True if a compressor or pool is specified, which needs schema version 4.
    pub(crate) fn names_compressor(self) -> bool {
        matches!(self, Self::Zram(Some(_)) | Self::Zswap(_))
    }
}

impl Default for SwapSpec {
    fn default() -> Self {
        Self::ZRAM
    }
}

impl fmt::Display for SwapSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Zram(None) => f.pad("zram"),
            Self::Zram(Some(compressor)) => f.pad(&format!("zram:{}", compressor.name())),
            Self::Zswap(zswap) => zswap.fmt(f),
            Self::Ssd(latency) => SwapDisk::Ssd(*latency).fmt(f),
            Self::Disk(disk) => disk.fmt(f),
        }
    }
}

/// Reasons why a text is not a kind of swap.
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
        /// Names of all compressors, as a list in text.
        known: String,
        /// The compressor name most similar to the unknown one.
        suggestion: String,
    },
    /// There is no pool with this name.
    #[error("`{name}` is not a pool of zswap: use one of {known}{suggestion}")]
    Pool {
        /// The unknown pool name.
        name: String,
        /// Names of all pools, as a list in text.
        known: String,
        /// The pool name most similar to the unknown one.
        suggestion: String,
    },
    /// The kind of swap after `zswap+` is not a disk, but zswap needs one.
    #[error(
        "zswap needs a disk behind it, and `{0}` is not one: write zswap+ssd:80us or zswap+disk:8ms,40MB/s"
    )]
    Before(String),
    /// The latency cannot be parsed as a time.
    #[error(transparent)]
    Latency(#[from] UnitError),
    /// The text of a rotating disk cannot be parsed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl FromStr for SwapSpec {
    type Err = SwapError;

    fn from_str(text: &str) -> Result<Self, SwapError> {
        let unknown = || SwapError::Unknown(text.to_owned());
        let end = text.find([':', '+', ',']).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let is_zswap_end = rest.is_empty() || rest.starts_with([':', '+']);
        match word {
            "none" | "zram" | "ssd" if rest.is_empty() => Ok(match word {
                "none" => Self::None,
                "zram" => Self::ZRAM,
                _ => Self::Ssd(SSD_LATENCY),
            }),
            "zswap" if is_zswap_end => Ok(Self::Zswap(Zswap::after_word(rest)?)),
            _ if word.starts_with("disk") => Ok(Self::Disk(text.parse()?)),
            _ => match (word, rest.strip_prefix(':').ok_or_else(unknown)?) {
                ("zram", name) => Ok(Self::Zram(Some(Compressor::named(name)?))),
                ("ssd", latency) => Ok(Self::Ssd(latency.parse()?)),
                _ => Err(unknown()),
            },
        }
    }
}

serde_as_text!(SwapSpec);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> SwapSpec {
        text.parse().unwrap()
    }

    #[test]
    fn every_kind_survives_its_text_form_and_plain_zram_keeps_its_own() {
        let mut texts: Vec<String> = ["none", "zram", "ssd:80us", "ssd:2ms", "ssd:80800ns"]
            .into_iter()
            .chain(["disk:8ms,40MB/s", "zswap+ssd:80us", "zswap+disk:4ms,20MB/s"])
            .map(str::to_owned)
            .collect();
        for compressor in Compressor::ALL.map(Compressor::name) {
            texts.push(format!("zram:{compressor}"));
            texts.push(format!("zswap:{compressor}+ssd:2ms"));
            for pool in Pool::ALL.map(Pool::name) {
                texts.push(format!("zswap:{compressor}:{pool}+disk:8ms,40MB/s"));
            }
        }
        let mut all: Vec<SwapSpec> = Vec::new();
        for text in &texts {
            let swap = parse(text);
            assert_eq!(swap.to_string(), *text);
            let json = serde_json::to_string(&swap).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<SwapSpec>(&json).unwrap(), swap);
            assert!(!all.contains(&swap), "{text} is another's");
            all.push(swap);
        }
        assert_eq!(SwapSpec::default(), parse("zram"));
        assert_eq!(parse("ssd"), SwapSpec::Ssd(Nanos(80_000)));
        assert_eq!(parse("disk"), SwapSpec::Disk(DiskSpec::default()));
        assert_eq!(parse("zswap"), SwapSpec::ZSWAP);
        assert_eq!(parse("zswap+ssd"), SwapSpec::ZSWAP);
        assert_eq!(parse("zswap:zstd").to_string(), "zswap:zstd+ssd:80us");
        let unnamed = SwapSpec::Zswap(Zswap {
            compressor: None,
            pool: Some(Pool::Zbud),
            before: SwapDisk::Ssd(SSD_LATENCY),
        });
        assert_eq!(unnamed.to_string(), "zswap:lz4:zbud+ssd:80us");
    }

    #[test]
    fn what_is_no_swap_is_refused_by_the_part_that_is_wrong() {
        let why = |text: &str| text.parse::<SwapSpec>().unwrap_err().to_string();
        for text in [
            "",
            " ",
            ":",
            "+",
            "floppy",
            "ZRAM",
            "zram ",
            " zram",
            "zramlz4",
            "zram+ssd",
            "zram,lz4",
            "none:",
            "none:lz4",
            "ssd+zram",
            "zswapssd",
            "zswap,zstd",
            "zswap ",
            "zram\n",
            "zram\u{1b}[31m",
            "zram\0",
            "tape:80us",
        ] {
            let why = why(text);
            assert!(
                why.contains("is no kind of swap: use zram, zram:COMPRESSOR"),
                "{text:?}: {why}"
            );
        }
        for text in [
            "zram:",
            "zram:ztsd",
            "zram:LZ4",
            "zram:lz4:zbud",
            "zram:lz4,3",
            "zram::",
            "zram:lz4\n",
            "zram:../../etc",
            "zswap:",
            "zswap::zbud",
            "zswap:+ssd",
            "zswap:lzfour+disk",
            "zswap:zstd,zsmalloc+ssd",
            "zram:zstd ",
        ] {
            let why = why(text);
            assert!(
                why.contains("is not a compressor of swap: use one of lz4, lz4hc, zstd"),
                "{text:?}: {why}"
            );
        }
        assert!(why("zram:ztsd").ends_with("did you mean `zstd`?"));
        for text in [
            "zswap:lz4:",
            "zswap:lz4:zbut",
            "zswap:lz4:zbud:zbud",
            "zswap:lz4:zbud,ssd",
        ] {
            let why = why(text);
            assert!(
                why.contains("is not a pool of zswap: use one of zsmalloc, zbud, z3fold"),
                "{text:?}: {why}"
            );
        }
        for text in [
            "zswap+none",
            "zswap+zram",
            "zswap+zram:zstd",
            "zswap:lz4+zswap+ssd",
        ] {
            assert!(
                why(text).starts_with("zswap needs a disk behind it"),
                "{text:?}: {}",
                why(text)
            );
        }
        for text in [
            "zswap+",
            "zswap+tape",
            "zswap+ssd:80",
            "zswap:lz4+disk:8",
            "ssd:",
            "disk:8ms,40",
            "ssd:80us+ssd:80us",
        ] {
            assert!(text.parse::<SwapSpec>().is_err(), "{text:?}");
        }
        assert!(why("floppy").contains("disk:8ms,40MB/s"));
    }

    #[test]
    fn what_compresses_and_what_is_written_to_are_told_apart() {
        assert_eq!(parse("zram").compressor(), Compressor::Lz4);
        assert_eq!(parse("zram:zstd").compressor(), Compressor::Zstd);
        assert_eq!(parse("zswap:lzo-rle").compressor(), Compressor::LzoRle);
        assert!(parse("zram:zstd").is_zram() && !parse("zswap").is_zram());
        assert_eq!(parse("zram:zstd").on_disk(), None);
        assert_eq!(
            parse("zswap+ssd:2ms").on_disk(),
            Some(SwapDisk::Ssd(Nanos(2_000_000)))
        );
        assert!(parse("zswap+disk").is_rotational() && parse("disk").is_rotational());
        assert!(!parse("zswap").is_rotational() && !parse("zram").is_rotational());
    }
}
