//! The tier of swap in which each page of a mapping lies: zswap, a swap device, or the backing device of zram.
//!
//! `/proc/self/pagemap` names the swap area of a page. But no file of the kernel tells whether zswap still holds the
//! page or has written it to the disk. So the disk is read with `O_DIRECT`, and its blocks are compared with the
//! content of the pages: if the block of a page does not contain the content, the page is in zswap. Each disk is read
//! once for each snapshot, outside of timed accesses. For zram, `/sys/kernel/debug/zram/zramN/block_state` tells
//! whether a page has been written to the backing device.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use pagetide_record::swap::tiers::TierPlace;
use pagetide_record::wire::{Frame, Kind};
use pagetide_system::{scan, swaps};

use crate::error::Stop;
use crate::fill::Filler;
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;
use crate::number;
use crate::page::PAGE;
use crate::pagemap::PageMap;
use crate::trial::Trial;

/// Stands for a page that is neither in memory nor in swap, or whose tier is unknown.
const UNKNOWN: u8 = u8::MAX;
/// Number of pages read from a disk at once. A larger buffer would take memory from the workload.
const PAGES_AT_ONCE: usize = 16;
/// Maximum number of words of a page that may differ from the content that the page was filled with. References write
/// single words.
const WRITTEN_WORDS: usize = 16;

/// A swap area used by the trial.
struct Area {
    /// Number of the tier of pages on this area, from 1; 0 is memory.
    tier: u8,
    /// The swap area, open for reading, if zswap is in front of it; otherwise `None`.
    disk: Option<File>,
    /// Path of zram's `block_state`, and tier of the pages that zram has written to its backing device; `None` without
    /// a backing device.
    written_back: Option<(String, u8)>,
}

/// Finds the tier of each page of a mapping. The tables are in the output region, so they take no memory from the
/// workload.
pub(crate) struct Tiers<'m> {
    areas: Vec<Area>,
    /// Tier of pages in zswap; `None` without zswap.
    zswap: Option<u8>,
    /// Buffer for blocks read from a disk, or for text read from `block_state`.
    blocks: LockedBuffer<u8>,
    /// Buffer for the content that a page is expected to have.
    content: LockedBuffer<u8>,
    /// For each page, its swap area plus one and its offset there, as one 64-bit number; 0 if it is not in swap.
    entries: Frame<'m>,
    /// Tier of each page, one byte a page: 0 for memory, [`UNKNOWN`] if it is not known.
    found: Frame<'m>,
    /// For each slot of a swap area, the index of its page plus one, as a 32-bit number; 0 if it is unused.
    slots: Frame<'m>,
}

impl<'m> Tiers<'m> {
    /// Opens the swap areas and allocates tables for a mapping of `pages` pages. `None` if swap has fewer than two
    /// tiers. Also `None`, with a note in the outcome, if the output region is too small. Fails if a swap area cannot
    /// be opened.
    pub(crate) fn new(trial: &mut Trial<'m>, pages: u64) -> Result<Option<Self>, Stop> {
        let (swap, total) = (trial.subject.swap, trial.subject.swap_size);
        let tiers = swap.tiers();
        if tiers.len() < 2 {
            return Ok(None);
        }
        let numbered = |at: usize| u8::try_from(at + 1).unwrap_or(UNKNOWN);
        let find = |is: &dyn Fn(&TierPlace) -> bool| {
            tiers.iter().position(|tier| is(&tier.place)).map(numbered)
        };
        let zswap = find(&|place| *place == TierPlace::Zswap);
        let mut areas = Vec::new();
        for (at, path) in swaps::areas().iter().enumerate() {
            let tier = find(&|place| matches!(place, TierPlace::Devices(all) if all.contains(&at)));
            let disk = zswap.map(|_| open(path)).transpose()?;
            // Only zram has a backing device.
            let backing = find(&|place| *place == TierPlace::Backing(at));
            let written_back = backing.map(|tier| {
                let name = path.rsplit('/').next().unwrap_or(path);
                let state = format!("/sys/kernel/debug/zram/{name}/block_state");
                (state, tier)
            });
            areas.push(Area {
                tier: tier.unwrap_or(UNKNOWN),
                disk,
                written_back,
            });
        }
        let region = &trial.place.region;
        let pages = number::index(pages);
        let frame = |name: &str, size: usize| region.frame(Kind::Blob, name, size);
        // No swap area has more slots than the number of pages of all swap.
        let slots = number::index(total.pages().0 + 1);
        // The frames are never finished, so that readers ignore them.
        let frames = (
            frame("tier-entries", pages * 8),
            frame("tiers", pages),
            frame("tier-slots", slots * 4),
        );
        let (Ok(entries), Ok(found), Ok(slots)) = frames else {
            trial.note("the output region is too small to record the tier of every page");
            return Ok(None);
        };
        Ok(Some(Self {
            areas,
            zswap,
            blocks: LockedBuffer::new(PAGES_AT_ONCE * PAGE)?,
            content: LockedBuffer::new(PAGE)?,
            entries,
            found,
            slots,
        }))
    }

    /// Finds the current tier of each page of `mapping`. `filler` generated the content of the pages; `None` if the
    /// content is not known. Then the tier of a page on a swap area behind zswap is not known.
    pub(crate) fn look(
        &mut self,
        mapping: &Mapping,
        page_map: &mut PageMap,
        filler: Option<&Filler>,
    ) -> Result<(), Stop> {
        let entries = self.entries.body().as_chunks_mut::<8>().0;
        let tiers = self.found.body();
        let areas = &self.areas;
        page_map.each(mapping, |page, entry| {
            let page = number::index(page);
            // Stores the index of the swap area plus one in the upper half, and the offset in the lower half. Stores 0
            // for a page that is not in swap.
            let place = entry.place();
            let area = place.and_then(|(area, _)| areas.get(number::index(area)));
            tiers[page] = match (entry.present(), area) {
                (true, _) => 0,
                (false, Some(area)) => area.tier,
                (false, None) => UNKNOWN,
            };
            let word = place.map_or(0, |(area, offset)| (area + 1) << 32 | offset);
            entries[page] = word.to_le_bytes();
        })?;
        for at in 0..self.areas.len() {
            if self.areas[at].disk.is_some() {
                self.look_on_disk(at, filler)?;
            }
            if self.areas[at].written_back.is_some() {
                self.look_behind_zram(at)?;
            }
        }
        Ok(())
    }

    /// Returns a function from the index of a page to the tier that the last call of `look` found; −1 if it is not
    /// known.
    pub(crate) fn found(&mut self) -> impl Fn(usize) -> i64 {
        let tiers: &[u8] = self.found.body();
        move |page| match tiers.get(page) {
            None | Some(&UNKNOWN) => -1,
            Some(tier) => i64::from(*tier),
        }
    }

    /// Fills the table of slots for a swap area: which page is in each slot. Returns the number of slots up to the last
    /// one in use.
    fn fill_slots(&mut self, area: usize) -> usize {
        let slots = self.slots.body();
        slots.fill(0);
        let slots = slots.as_chunks_mut::<4>().0;
        let entries = self.entries.body().as_chunks::<8>().0;
        let mut end = 0;
        for (page, word) in (1_u32..).zip(entries) {
            let word = u64::from_le_bytes(*word);
            let offset = number::index(word & 0xffff_ffff);
            if word >> 32 == area as u64 + 1
                && let Some(slot) = slots.get_mut(offset)
            {
                *slot = page.to_le_bytes();
                end = end.max(offset + 1);
            }
        }
        end
    }

    /// Returns the index of the page in a slot; `None` for an unused slot.
    fn page_in(&mut self, slot: usize) -> Option<usize> {
        let slots = self.slots.body().as_chunks::<4>().0;
        let page = u32::from_le_bytes(*slots.get(slot)?);
        number::index(u64::from(page)).checked_sub(1)
    }

    /// Assigns pages of a swap area to the tier of zswap if the disk does not contain their content. Without `filler`,
    /// their tier becomes unknown. Fails if the disk cannot be read.
    fn look_on_disk(&mut self, area: usize, filler: Option<&Filler>) -> Result<(), Stop> {
        let end = self.fill_slots(area);
        for from in (0..end).step_by(PAGES_AT_ONCE) {
            let count = PAGES_AT_ONCE.min(end - from);
            if (from..from + count).all(|slot| self.page_in(slot).is_none()) {
                continue;
            }
            if let (Some(disk), Some(_)) = (&self.areas[area].disk, filler) {
                let at = from as u64 * PAGE as u64;
                disk.read_exact_at(&mut self.blocks[..count * PAGE], at)
                    .map_err(Stop::system("cannot read a swap area"))?;
            }
            for slot in from..from + count {
                let Some(page) = self.page_in(slot) else {
                    continue;
                };
                let block = (slot - from) * PAGE;
                let is_here = filler.and_then(|filler| {
                    filler.write(&mut self.content, page as u64);
                    // The kernel keeps pages of zeros nowhere, and an unused block has zeros too.
                    let is_zero = self.content.iter().all(|byte| *byte == 0);
                    let block = &self.blocks[block..block + PAGE];
                    (!is_zero).then(|| is_like(block, &self.content))
                });
                let tier = match is_here {
                    Some(true) => continue,
                    Some(false) => self.zswap.unwrap_or(UNKNOWN),
                    None => UNKNOWN,
                };
                // A page in memory may also have a copy in swap; its tier stays 0.
                if let Some(known) = self.found.body().get_mut(page)
                    && *known != 0
                {
                    *known = tier;
                }
            }
        }
        Ok(())
    }

    /// Assigns pages that zram has written to its backing device to the tier of that device. Fails if `block_state`
    /// cannot be read.
    fn look_behind_zram(&mut self, area: usize) -> Result<(), Stop> {
        self.fill_slots(area);
        let Some((path, tier)) = self.areas[area].written_back.clone() else {
            return Ok(());
        };
        let attempt = || Stop::system(format!("cannot read {path}"));
        let mut file = File::open(&path).map_err(attempt())?;
        let mut held = 0;
        loop {
            let read = file.read(&mut self.blocks[held..]).map_err(attempt())?;
            let filled = held + read;
            if read == 0 {
                return Ok(());
            }
            // The last line may be incomplete.
            let whole = self.blocks[..filled]
                .iter()
                .rposition(|byte| *byte == b'\n');
            let whole = whole.map_or(0, |at| at + 1);
            let mut start = 0;
            while start < whole {
                let line = &self.blocks[start..whole];
                let length = line
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .unwrap_or(line.len());
                let slot = written_back(&line[..length]);
                start += length + 1;
                let page = slot.and_then(|slot| self.page_in(slot));
                if let Some(page) = page
                    && let Some(known) = self.found.body().get_mut(page)
                    && *known != 0
                {
                    *known = tier;
                }
            }
            self.blocks.copy_within(whole..filled, 0);
            held = filled - whole;
        }
    }
}

/// Opens a swap area for reading with `O_DIRECT`, which does not use the page cache.
fn open(path: &str) -> Result<File, Stop> {
    File::options()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .map_err(Stop::system(format!("cannot open the swap area {path}")))
}

/// Returns true if a block equals the content of a page, except for at most [`WRITTEN_WORDS`] words, which references
/// may have written.
fn is_like(block: &[u8], content: &[u8]) -> bool {
    let words = block
        .as_chunks::<8>()
        .0
        .iter()
        .zip(content.as_chunks::<8>().0);
    words.filter(|(a, b)| a != b).count() <= WRITTEN_WORDS
}

/// Returns the slot in a line of `block_state` if zram has written the page of the slot to the backing device;
/// otherwise `None`. A line contains the slot, a time and flags; the flag `w` means written back. Source: kernel
/// `drivers/block/zram/zram_drv.c`, `read_block_state`.
fn written_back(line: &[u8]) -> Option<usize> {
    let mut words = scan::words(line);
    let slot = scan::number(words.next()?)?;
    let flags = words.nth(1)?;
    flags.contains(&b'w').then(|| number::index(slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_was_written_back_is_told_by_its_flag() {
        assert_eq!(
            written_back(b"         300     75.033841 .wh...\n"),
            Some(300)
        );
        assert_eq!(written_back(b"         301     63.806904 s....."), None);
        assert_eq!(written_back(b"         302"), None);
        assert_eq!(written_back(b""), None);
    }

    #[test]
    fn a_block_is_recognised_although_references_wrote_words_of_the_page() {
        let filler = Filler::new(&crate::content::Content::Share(0.35), 1).unwrap();
        let (mut page, mut other) = (vec![0; PAGE], vec![0; PAGE]);
        filler.write(&mut page, 7);
        filler.write(&mut other, 8);
        assert!(!is_like(&other, &page) && !is_like(&vec![0; PAGE], &page));
        let mut written = page.clone();
        written[64..72].fill(0xff);
        assert!(is_like(&written, &page));
    }
}
