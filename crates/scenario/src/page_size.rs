//! What pages the anonymous memory of a workload has.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Pages};

use crate::attempt::thp_settings;
use crate::definition::Needs;
use crate::error::Stop;
use crate::mapping::Mapping;
use crate::params::choice;

/// Size of a huge page.
const HUGE: Bytes = Bytes::from_mib(2);

choice! {
    /// What pages the anonymous memory of a workload has.
    pub(crate) enum PageSize {
        /// Single pages: huge ones are advised against, because whether one is available depends on chance.
        Small = "small",
        /// Huge pages wherever the kernel finds one, by advice.
        Huge = "huge",
        /// What the kernel gives to memory without advice.
        Default = "default",
    }
}

impl PageSize {
    /// Maps anonymous memory with such pages.
    pub(crate) fn map(self, pages: Pages) -> Result<Mapping, Stop> {
        match self {
            Self::Small => Mapping::anonymous(pages),
            Self::Huge => {
                let mapping = Mapping::aligned(pages, HUGE.0)?;
                mapping.advise(libc::MADV_HUGEPAGE);
                Ok(mapping)
            }
            Self::Default => Mapping::without_advice(pages),
        }
    }

    /// What such pages need of the arena.
    pub(crate) fn needs(self) -> Needs {
        let huge = self == Self::Huge;
        Needs {
            thp: huge,
            settings: if huge {
                thp_settings(HUGE)
            } else {
                BTreeMap::new()
            },
            ..Needs::default()
        }
    }
}
