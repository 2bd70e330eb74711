//! Holds single scattered pages, so that free memory is fragmented.
//!
//! The original aged a machine for minutes until its memory was fragmented. Holding scattered pages has this effect at
//! once and to a defined degree: compaction can move these pages, but reclaim cannot free them.

use pagetide_quantity::{Bytes, Pages};

use crate::error::Stop;
use crate::fill::Filler;
use crate::mapping::Mapping;
use crate::number;

/// Fraction of the memory over which pages are scattered. Filling all of it would start reclaim.
const SPAN: f64 = 0.85;
/// `MADV_DONTNEED_LOCKED` of Linux 5.18 (include/uapi/asm-generic/mman-common.h).
const MADV_DONTNEED_LOCKED: libc::c_int = 24;

/// Locked pages scattered over the memory, freed on drop.
pub(crate) struct ScatteredPages(#[expect(dead_code, reason = "held, not looked at")] Mapping);

impl ScatteredPages {
    /// Holds a fraction `share` of the memory, which must be above 0. Fails if the memory cannot be mapped or locked.
    pub(crate) fn hold(share: f64, memory: Bytes, filler: &Filler) -> Result<Self, Stop> {
        let span = Pages(number::floor(memory.pages().0 as f64 * SPAN));
        let step = number::floor(SPAN / share).max(2);
        let mapping = Mapping::anonymous(span)?;
        // Base pages are used, because neighbouring ones are allocated in sequence.
        mapping.advise(libc::MADV_NOHUGEPAGE);
        mapping.lock()?;
        mapping.fill(filler, 0, span.0);
        let mut page = 0;
        while page < span.0 {
            let rest = (step - 1).min(span.0 - page - 1);
            if rest > 0 && !mapping.advise_part(page + 1, rest, MADV_DONTNEED_LOCKED) {
                return Err(Stop::last(
                    "cannot give back locked pages by MADV_DONTNEED_LOCKED, which Linux has since 5.18",
                ));
            }
            page += step;
        }
        Ok(Self(mapping))
    }
}
