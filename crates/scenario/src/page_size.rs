//! Page size of a workload's anonymous memory.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Pages};

use crate::attempt::thp_settings;
use crate::definition::Needs;
use crate::error::Stop;
use crate::mapping::Mapping;
use crate::params::choice;

/// Size of a huge page on x86-64.
const HUGE: Bytes = Bytes::from_mib(2);

choice! {
    /// Page size of a workload's anonymous memory.
    pub(crate) enum PageSize {
        /// Base pages. Huge pages are disabled with madvise, because their availability depends on chance.
        Small = "small",
        /// Huge pages where available, enabled with madvise.
        Huge = "huge",
        /// The kernel's default page size, without madvise.
        Default = "default",
    }
}

impl PageSize {
    /// Maps anonymous memory with this page size.
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

    /// Returns what this page size needs from the arena.
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
