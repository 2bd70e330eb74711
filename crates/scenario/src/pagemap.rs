//! Reads the page map of this process (`/proc/self/pagemap`) for mappings of the workload, into a locked buffer.

use pagetide_system::pagemap::{self, Entry};

use crate::error::Stop;
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;

/// Number of entries read at once; they take 8 KiB.
const BATCH: usize = 1024;

/// The open page map of this process, with a buffer for its entries.
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

    /// Calls `each` with every page of `mapping` and its entry, in ascending order. Fails if the page map cannot be
    /// read.
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
