//! Kinds of swap as variants: names of the variants, and the reasons why some campaigns cannot compare kinds of swap.

use pagetide_arena::VariantSpec;
use pagetide_quantity::Bytes;
use pagetide_record::swap::SSD_LATENCY;
use pagetide_record::{DiskSpec, MemorySpec, SwapSpec};

use crate::campaign::Campaign;

/// Kind and size of swap of a cell. Variants without their own kind or size use it.
#[derive(Clone, Debug, Default)]
pub struct CellSwap {
    /// Kind of swap of the cell.
    pub kind: SwapSpec,
    /// Size of the cell's swap device; `None` for the arena's default.
    pub size: Option<Bytes>,
}

impl CellSwap {
    /// Returns the kind and size of swap that a variant has in this cell: its own, or else those of the cell.
    pub(crate) fn of(&self, variant: &VariantSpec) -> (SwapSpec, Option<Bytes>) {
        (
            variant.swap.unwrap_or(self.kind),
            variant.swap_size.or(self.size),
        )
    }
}

/// Returns a sentence for each group of swap devices of the campaign that have the same priority, without repetition.
/// The kernel takes slots from such devices in turn, so none is a tier above the others.
pub fn striped(campaign: &Campaign) -> Vec<String> {
    let of_scenarios = campaign.scenarios.iter().flat_map(|one| one.swap.iter());
    let of_variants = campaign.variants.iter().filter_map(|one| one.swap.as_ref());
    let mut found = Vec::new();
    for kind in of_scenarios.chain(of_variants) {
        let SwapSpec::Tiers(tiers) = kind else {
            continue;
        };
        for rank in tiers.ranks().iter().filter(|rank| rank.len() > 1) {
            let names: Vec<String> = rank
                .iter()
                .map(|at| tiers.devices[*at].to_string())
                .collect();
            let text = format!(
                "{} have one priority, so the kernel stripes them: neither is a tier above the other",
                names.join(" and ")
            );
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
}

/// True if the variant has its own kind or size of swap.
pub(crate) fn has_own(variant: &VariantSpec) -> bool {
    variant.swap.is_some() || variant.swap_size.is_some()
}

/// Returns the short name of a kind of swap. Parameters of its disk are left out if they are the defaults: `zswap+ssd`
/// for `zswap+ssd:80us`.
pub(crate) fn short(kind: &SwapSpec) -> String {
    let disk = SwapSpec::Disk(DiskSpec::default()).to_string();
    let ssd = SwapSpec::Ssd(SSD_LATENCY).to_string();
    let text = kind.to_string();
    text.replace(&disk, "disk").replace(&ssd, "ssd")
}

/// Formats a swap size in the form that the command line accepts.
pub(crate) fn size_text(size: Bytes) -> String {
    MemorySpec::Free(size).to_string()
}

/// Reason why kinds of swap cannot be compared as variants. The user sees this message unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwapConflict {
    /// A scenario has several kinds of swap, and a variant has its own kind.
    #[error(
        "{scenario} has {kinds} kinds of swap, which make cells, and variant `{variant}` has one of its own, which is compared: give \
         the scenario one kind, which the variants without swap= have"
    )]
    Cells {
        /// Name of the scenario.
        scenario: String,
        /// Number of the scenario's kinds of swap.
        kinds: usize,
        /// Name of the first variant with its own kind of swap.
        variant: String,
    },
    /// Two variants have the same kernel, settings, boot arguments and swap.
    #[error(
        "variants `{a}` and `{b}` have the same kernel, settings and swap ({swap}): leave one out, or give it another swap= or \
         swap-size="
    )]
    Same {
        /// Name of the first of the two variants.
        a: String,
        /// Name of the second of the two variants.
        b: String,
        /// Kind of swap of both variants.
        swap: String,
    },
}

impl Campaign {
    /// True if variants have their own kinds of swap, so that the kind is not part of a cell.
    pub(crate) fn compares_kinds(&self) -> bool {
        self.variants.iter().any(|variant| variant.swap.is_some())
    }

    /// True if variants have their own kinds or sizes of swap.
    pub(crate) fn compares_swap(&self) -> bool {
        self.variants.iter().any(has_own)
    }

    /// Returns the number of different kinds and sizes of swap among the variants, at least 1.
    pub(crate) fn swaps_of_variants(&self) -> usize {
        let mut seen = Vec::new();
        for variant in &self.variants {
            let own = (variant.swap, variant.swap_size);
            if !seen.contains(&own) {
                seen.push(own);
            }
        }
        seen.len().max(1)
    }

    /// Fails if two variants are the same, or if a scenario has several kinds of swap and a variant has its own kind.
    /// Always succeeds if no variant has its own kind or size of swap.
    pub fn check_swap(&self) -> Result<(), SwapConflict> {
        if !self.compares_swap() {
            return Ok(());
        }
        let with_kind = self.variants.iter().find(|variant| variant.swap.is_some());
        for scenario in &self.scenarios {
            if let Some(variant) = with_kind
                && scenario.swap.len() > 1
            {
                return Err(SwapConflict::Cells {
                    scenario: scenario.name.clone(),
                    kinds: scenario.swap.len(),
                    variant: variant.name.clone(),
                });
            }
            let cell = CellSwap {
                kind: scenario.swap.first().copied().unwrap_or_default(),
                size: scenario.swap_size,
            };
            for (place, b) in self.variants.iter().enumerate() {
                let is_same = |a: &&VariantSpec| {
                    (has_own(a) || has_own(b))
                        && cell.of(a) == cell.of(b)
                        && (&a.kernel, &a.boot, &a.settings) == (&b.kernel, &b.boot, &b.settings)
                };
                if let Some(a) = self.variants[..place].iter().find(is_same) {
                    return Err(SwapConflict::Same {
                        a: a.name.clone(),
                        b: b.name.clone(),
                        swap: short(&cell.of(b).0),
                    });
                }
            }
        }
        Ok(())
    }
}
