//! Reference count, age and presence of every page, stored in the output region, which uses no memory of the workload.

use pagetide_quantity::Unit;
use pagetide_record::tier_pages::COLUMN as TIER;
use pagetide_record::wire::{Frame, Kind};

use crate::bulk::{Column, write_series};
use crate::error::Stop;
use crate::mapping::Mapping;
use crate::number;
use crate::pagemap::PageMap;
use crate::tiers::Tiers;
use crate::trial::Trial;

/// Number and time of the references to each page, stored in the output region, which uses no memory of the workload.
pub(crate) struct Uses<'m> {
    pages: usize,
    frame: Option<Frame<'m>>,
}

impl<'m> Uses<'m> {
    pub(crate) fn new(trial: &mut Trial<'m>, pages: u64) -> Self {
        let pages = number::index(pages);
        // The frame is never finished, so that readers ignore it.
        let mut frame = trial.place.region.frame(Kind::Blob, "uses", pages * 8).ok();
        match &mut frame {
            Some(frame) => frame.body().fill(0),
            None => trial.note("the output region is too small to record the age and use of pages"),
        }
        Self { pages, frame }
    }

    /// Returns one word for each page. Its upper half is the index of the last reference to the page, from 1; its lower
    /// half is the number of references. Empty if there was no space in the region.
    fn words(&mut self) -> &mut [[u8; 8]] {
        self.frame
            .as_mut()
            .map(|frame| frame.body().as_chunks_mut::<8>().0)
            .unwrap_or_default()
    }

    pub(crate) fn add(&mut self, batch: &[u32], done: u64) {
        let words = self.words();
        if words.is_empty() {
            return;
        }
        for (page, now) in batch.iter().zip(done + 1..) {
            let word = &mut words[*page as usize];
            let uses = u64::from_le_bytes(*word) & 0xffff_ffff;
            *word = (now << 32 | (uses + 1)).to_le_bytes();
        }
    }

    /// Stores presence, age and number of references of every page as the series `pages-MOMENT`, and returns their
    /// sums. `done` is the number of references so far. `tiers` contains the tier of every page; `None` if swap has a
    /// single tier.
    pub(crate) fn snapshot(
        &mut self,
        trial: &mut Trial<'_>,
        mapping: &Mapping,
        page_map: &mut PageMap,
        tiers: Option<&mut Tiers<'_>>,
        moment: u64,
        done: u64,
    ) -> Result<PageUses, Stop> {
        let mut found = PageUses::default();
        let pages = self.pages;
        // A frame with one byte for each page, which is 1 if the page is in memory.
        let mut frame = trial.place.region.frame(Kind::Blob, "presence", pages).ok();
        let mut present = frame.as_mut().map(Frame::body).unwrap_or_default();
        let words = self.words();
        if words.is_empty() || present.is_empty() {
            present = &mut [];
        }
        page_map.each(mapping, |page, entry| {
            let page = number::index(page);
            let here = entry.present();
            if let Some(byte) = present.get_mut(page) {
                *byte = u8::from(here);
            }
            let word = words.get(page).map_or(0, |word| u64::from_le_bytes(*word));
            found.add(here, done - (word >> 32), word & 0xffff_ffff);
        })?;
        if present.is_empty() {
            return Ok(found);
        }
        let word = |row: usize| u64::from_le_bytes(words[row]);
        let mut page = |row: usize| number::signed(row as u64);
        let mut present = |row: usize| i64::from(present[row]);
        let mut age = |row: usize| number::signed(done - (word(row) >> 32));
        let mut uses = |row: usize| number::signed(word(row) & 0xffff_ffff);
        let mut tier = tiers.map(Tiers::found);
        let mut columns: Vec<Column<'_>> = vec![
            ("page", Unit::Pages, &mut page),
            ("present", Unit::Count, &mut present),
            ("age", Unit::Count, &mut age),
            ("uses", Unit::Count, &mut uses),
        ];
        if let Some(tier) = &mut tier {
            columns.push((TIER, Unit::Count, tier));
        }
        let name = format!("pages-{moment}");
        let written = write_series(&trial.place.region, &name, pages, &mut columns);
        if !written {
            trial.note("the output region is too small for the state of every page");
        }
        Ok(found)
    }
}

/// For absent pages: number, sum of ages and sum of reference counts; then the same for pages in memory.
#[derive(Default)]
pub(crate) struct PageUses {
    pages: [u64; 2],
    ages: [u64; 2],
    uses: [u64; 2],
}

impl PageUses {
    pub(crate) fn add(&mut self, present: bool, age: u64, uses: u64) {
        let side = usize::from(present);
        self.pages[side] += 1;
        self.ages[side] += age;
        self.uses[side] += uses;
    }

    pub(crate) fn report(&self, trial: &mut Trial<'_>) {
        let [absent, present] = self.pages;
        trial.metric("present", present as f64 / (absent + present) as f64);
        for (side, name) in [(0, "absent"), (1, "present")] {
            let pages = self.pages[side];
            let (age, uses) = (format!("age-{name}"), format!("uses-{name}"));
            if pages == 0 {
                let why = format!("no page is {name}");
                trial.absent(&age, &why);
                trial.absent(&uses, &why);
            } else {
                trial.metric(&age, self.ages[side] as f64 / pages as f64);
                trial.metric(&uses, self.uses[side] as f64 / pages as f64);
            }
        }
    }
}
