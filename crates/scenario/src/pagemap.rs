//! The page map of this process, read for mappings of the workload into a locked buffer.

use pagetide_system::pagemap::{self, Entry};

use crate::error::Stop;
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;

/// Number of entries read at once: 8 KiB.
const BATCH: usize = 1024;

/// The page map of this process.
pub(crate) struct PageMap {
    map: pagemap::PageMap,
    buffer: LockedBuffer<u64>,
}

impl PageMap {
    /// Opens the page map. Fails if it cannot be read.
    pub(crate) fn open() -> Result<Self, Stop> {
        Ok(Self {
            map: pagemap::PageMap::open()
                .map_err(Stop::system("cannot read /proc/self/pagemap"))?,
            buffer: LockedBuffer::new(BATCH)?,
        })
    }

    /// Calls `each` with every page of `mapping`, in ascending order.
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
