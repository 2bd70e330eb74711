//! The page map of this process, read over mappings of the workload into memory that stays.

use pagetide_system::pagemap::{self, Entry};

use crate::error::Stop;
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;

/// Entries read at a time: 8 KiB.
const BATCH: usize = 1024;

/// This process's page map.
pub(crate) struct PageMap {
    map: pagemap::PageMap,
    buffer: LockedBuffer<u64>,
}

impl PageMap {
    /// Opens it.
    pub(crate) fn open() -> Result<Self, Stop> {
        Ok(Self {
            map: pagemap::PageMap::open()
                .map_err(Stop::system("cannot read /proc/self/pagemap"))?,
            buffer: LockedBuffer::new(BATCH)?,
        })
    }

    /// Calls `each` with every page of `mapping` in ascending order.
    pub(crate) fn each(
        &mut self,
        mapping: &Mapping,
        each: impl FnMut(u64, Entry),
    ) -> Result<(), Stop> {
        let address = mapping.start().addr();
        self.map
            .each(address, mapping.pages(), &mut self.buffer, each)
            .map_err(Stop::system("cannot read /proc/self/pagemap"))
    }
}
