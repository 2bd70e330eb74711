//! Kinds of swap of a guest: none, zram, a simulated disk, zswap with a simulated disk, or several devices ([`tiers`]).

mod parts;
pub mod tiers;

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::{Bytes, Nanos};

use crate::disk::DiskSpec;
use crate::text::serde_as_text;

use tiers::{DeviceKind, SwapDevice, Tier, TierPlace, ZramDevice, ZswapFront};

pub use parts::{Compressor, FORMS, Pool, SSD_LATENCY, SwapDisk, SwapError};
pub use tiers::SwapTiers;

/// zswap: a compressed cache in memory, which writes back to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zswap {
    /// The compressor of zswap; `None` for the default.
    pub compressor: Option<Compressor>,
    /// The allocator of zswap; `None` for the default.
    pub pool: Option<Pool>,
    /// The swap disk to which zswap writes back.
    pub before: SwapDisk,
}

impl Zswap {
    /// Returns the allocator of this zswap; the default if none is specified.
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
        let front = ZswapFront {
            compressor: self.compressor,
            pool: self.pool,
            shrinker: false,
            writeback: true,
        };
        f.pad(&format!("{front}+{}", self.before))
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
    /// Swap on several devices, or on one device with its own settings.
    Tiers(&'static SwapTiers),
}

impl SwapSpec {
    /// zram with the default compressor.
    pub const ZRAM: Self = Self::Zram(None);
    /// zswap with the default compressor and the default solid-state disk.
    pub const ZSWAP: Self = Self::Zswap(Zswap {
        compressor: None,
        pool: None,
        before: SwapDisk::Ssd(SSD_LATENCY),
    });

    /// Returns the compressor of zswap, else of the first zram; the default if none is specified or there is neither.
    pub fn compressor(self) -> Compressor {
        match self {
            Self::Zram(named) => named.unwrap_or_default(),
            Self::Zswap(zswap) => zswap.compressor.unwrap_or_default(),
            Self::Tiers(tiers) => {
                let of_zswap = tiers.zswap.map(|zswap| zswap.compressor);
                let of_zram = || tiers.zrams().next().map(|zram| zram.compressor);
                of_zswap.or_else(of_zram).flatten().unwrap_or_default()
            }
            Self::None | Self::Ssd(_) | Self::Disk(_) => Compressor::default(),
        }
    }

    /// Returns true if all swap is zram, so that nothing is written to a disk.
    pub fn is_zram(self) -> bool {
        match self {
            Self::Zram(_) => true,
            Self::Tiers(tiers) => tiers.only_zram(),
            _ => false,
        }
    }

    /// Returns the swap disk of swap on a single disk, with or without zswap. `None` if swap uses no disk, or if there
    /// are several devices; for these see [`SwapSpec::disks`].
    pub fn on_disk(self) -> Option<SwapDisk> {
        match self {
            Self::None | Self::Zram(_) | Self::Tiers(_) => None,
            Self::Zswap(zswap) => Some(zswap.before),
            Self::Ssd(latency) => Some(SwapDisk::Ssd(latency)),
            Self::Disk(disk) => Some(SwapDisk::Disk(disk)),
        }
    }

    /// Returns true if at least one swap disk is a rotating disk.
    pub fn is_rotational(self) -> bool {
        self.rotating_disks() > 0
    }

    /// Returns the number of rotating disks that swap uses.
    pub fn rotating_disks(self) -> usize {
        match self {
            Self::Tiers(tiers) => tiers.rotating_disks(),
            _ => usize::from(matches!(self.on_disk(), Some(SwapDisk::Disk(_)))),
        }
    }

    /// Returns true for zswap, and for zram with a named compressor. Both need schema version 4.
    pub(crate) fn names_compressor(self) -> bool {
        matches!(self, Self::Zram(Some(_)) | Self::Zswap(_))
    }

    /// Returns true if the swap has several devices, or one device with its own settings, which needs schema version 5.
    pub(crate) fn has_tiers(self) -> bool {
        matches!(self, Self::Tiers(_))
    }
}

impl SwapSpec {
    /// Returns the total size of swap: `asked` if given, otherwise the sum of the devices' sizes, otherwise `default`.
    /// Zero if there is no swap. Fails if the sizes of the devices contradict the result.
    pub fn total(self, asked: Option<Bytes>, default: Bytes) -> Result<Bytes, SwapError> {
        match self {
            Self::None => Ok(Bytes(0)),
            Self::Tiers(tiers) => {
                let total = asked.or(tiers.sum()).unwrap_or(default);
                tiers.sizes(total)?;
                Ok(total)
            }
            _ => Ok(asked.unwrap_or(default)),
        }
    }

    /// Returns all simulated disks of this swap, with their sizes, if all swap together has `total` bytes.
    pub fn disks(self, total: Bytes) -> Vec<(SwapDisk, Bytes)> {
        match self {
            Self::Tiers(tiers) => tiers.disks(total),
            _ => self
                .on_disk()
                .map(|disk| (disk, total))
                .into_iter()
                .collect(),
        }
    }

    /// Returns the tiers of this swap, from the highest to the lowest; empty without swap.
    pub fn tiers(self) -> Vec<Tier> {
        let device = |name: String| Tier {
            name,
            place: TierPlace::Devices(vec![0]),
        };
        match self {
            Self::None => Vec::new(),
            Self::Tiers(tiers) => tiers.tiers(),
            Self::Zswap(zswap) => vec![
                Tier {
                    name: "zswap".to_owned(),
                    place: TierPlace::Zswap,
                },
                device(zswap.before.to_string()),
            ],
            other => vec![device(other.to_string())],
        }
    }

    /// Converts tiers to the equivalent kind of swap without tiers; `None` if there is none.
    fn of_tiers(tiers: &SwapTiers) -> Option<Self> {
        let [
            SwapDevice {
                kind,
                size: None,
                priority: None,
            },
        ] = tiers.devices[..]
        else {
            return None;
        };
        match (tiers.zswap, kind) {
            (None, DeviceKind::Disk(SwapDisk::Ssd(latency))) => Some(Self::Ssd(latency)),
            (None, DeviceKind::Disk(SwapDisk::Disk(disk))) => Some(Self::Disk(disk)),
            (
                None,
                DeviceKind::Zram(ZramDevice {
                    compressor,
                    limit: None,
                    recompress: None,
                    writeback: None,
                }),
            ) => Some(Self::Zram(compressor)),
            (
                Some(ZswapFront {
                    compressor,
                    pool,
                    shrinker: false,
                    writeback: true,
                }),
                DeviceKind::Disk(before),
            ) => Some(Self::Zswap(Zswap {
                compressor,
                pool,
                before,
            })),
            _ => None,
        }
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
            Self::Tiers(tiers) => tiers.fmt(f),
        }
    }
}

impl FromStr for SwapSpec {
    type Err = SwapError;

    fn from_str(text: &str) -> Result<Self, SwapError> {
        match Self::plain(text) {
            Err(_) if tiers::is_meant(text) => {
                let tiers = SwapTiers::parse(text)?;
                Ok(Self::of_tiers(&tiers).unwrap_or_else(|| Self::Tiers(tiers.interned())))
            }
            plain => plain,
        }
    }
}

impl SwapSpec {
    /// Parses a kind of swap that is a word with options.
    fn plain(text: &str) -> Result<Self, SwapError> {
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
