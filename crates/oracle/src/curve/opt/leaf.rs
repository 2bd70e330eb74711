//! A leaf: 64 sizes, through which a time is passed in one step with wide registers.
//!
//! If its own time is early enough (not later than the start of an interval), each size keeps the earlier of its own
//! time and the time carried to it, and the later one is carried on. So the time carried to a size is the latest
//! early-enough time of the sizes before it. A prefix maximum computes it for all sizes in a few steps.

use crate::wide::Registers;

/// Number of sizes in a leaf.
pub(super) const SIZES: usize = 64;
/// Stands for "no token". It is later than any time that is searched for.
pub(super) const NONE: i16 = i16::MAX;
/// Number of sizes in one register.
const LANES: usize = 16;

/// For each size, one time: that at which the token became free that this size has and the next smaller size does not
/// have. Times count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(32))]
pub(super) struct Leaf(pub [i16; SIZES]);

impl Leaf {
    pub const EMPTY: Self = Self([NONE; SIZES]);

    /// Replaces the latest time at or before `until` by `given`, if `given` is earlier. A `given` of 0 stands for no
    /// token. Returns the index of the first size that changed, or `None` if none did.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    pub fn pass<R: Registers>(&mut self, given: i16, until: i16, _: R) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if R::WIDE {
            // SAFETY: the processor has AVX2, as the caller proved.
            return unsafe { self.pass_wide(given, until) };
        }
        let mut carried = given;
        let mut first = None;
        for (size, time) in self.0.iter_mut().enumerate() {
            if *time <= until && *time > carried {
                std::mem::swap(time, &mut carried);
                first = first.or(Some(size));
            }
        }
        first
    }

    /// Serves an interval that begins at `until` and ends at `now` with the smallest size that has a token for it.
    /// Returns the index of this size, or `None` if no size has one.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    pub fn serve<R: Registers>(&mut self, until: i16, now: i16, registers: R) -> Option<usize> {
        let size = self.pass(0, until, registers)?;
        self.0[size] = now;
        Some(size)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    fn pass_wide(&mut self, given: i16, until: i16) -> Option<usize> {
        use std::arch::x86_64::{
            __m256i, _mm256_alignr_epi8, _mm256_andnot_si256, _mm256_blendv_epi8,
            _mm256_cmpgt_epi16, _mm256_load_si256, _mm256_max_epi16, _mm256_movemask_epi8,
            _mm256_permute2x128_si256, _mm256_set1_epi16, _mm256_shuffle_epi8, _mm256_slli_si256,
            _mm256_store_si256,
        };
        let mut carried = _mm256_set1_epi16(given);
        let until = _mm256_set1_epi16(until);
        let last_of_half = _mm256_set1_epi16(0x0f0e);
        let mut changed = [0; SIZES / LANES];
        let lanes = self.0.as_chunks_mut::<LANES>().0;
        for (lanes, changed) in lanes.iter_mut().zip(&mut changed) {
            let place: *mut __m256i = lanes.as_mut_ptr().cast();
            // SAFETY: these are the bytes of a register, and a leaf begins at a multiple of them.
            let times = unsafe { _mm256_load_si256(place) };
            let early = _mm256_andnot_si256(_mm256_cmpgt_epi16(times, until), times);
            // This is the maximum up to each size: first within each half of the register, then with the lower half
            // carried to the upper.
            let mut most = _mm256_max_epi16(early, _mm256_slli_si256::<2>(early));
            most = _mm256_max_epi16(most, _mm256_slli_si256::<4>(most));
            most = _mm256_max_epi16(most, _mm256_slli_si256::<8>(most));
            let ends = _mm256_shuffle_epi8(most, last_of_half);
            most = _mm256_max_epi16(most, _mm256_permute2x128_si256::<0x08>(ends, ends));
            let lower = _mm256_permute2x128_si256::<0x08>(most, most);
            let before = _mm256_max_epi16(_mm256_alignr_epi8::<14>(most, lower), carried);
            let used = _mm256_cmpgt_epi16(early, before);
            // SAFETY: these are the bytes of a register, and a leaf begins at a multiple of the size of a register.
            unsafe { _mm256_store_si256(place, _mm256_blendv_epi8(times, before, used)) };
            *changed = _mm256_movemask_epi8(used).cast_unsigned();
            let ends = _mm256_shuffle_epi8(most, last_of_half);
            carried = _mm256_max_epi16(carried, _mm256_permute2x128_si256::<0x11>(ends, ends));
        }
        // The mask has two bits for each size.
        let place = changed.iter().position(|bits| *bits != 0)?;
        Some(place * LANES + changed[place].trailing_zeros() as usize / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wide::{Plain, Wide};

    #[test]
    fn wide_registers_pass_what_one_size_after_the_other_does() {
        let Some(wide) = Wide::at_hand() else { return };
        let mut rng = pagetide_reference::Rng::new(4);
        let mut draw = |most: u32| i16::try_from(rng.below_u32(most)).unwrap();
        for span in [4, 70, 32_767] {
            for _ in 0..3000 {
                let mut leaf = Leaf::EMPTY;
                for time in leaf.0.iter_mut().take(usize::try_from(draw(65)).unwrap()) {
                    *time = 1 + draw(span);
                }
                let (given, until) = (draw(span), draw(span));
                let mut other = leaf;
                let first = leaf.pass(given, until, Plain);
                assert_eq!(other.pass(given, until, wide), first);
                assert_eq!(other, leaf);
            }
        }
    }
}
