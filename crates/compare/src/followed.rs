//! Tests whether the memory that a program needs grows with one of its settings, such as the heap size of a runtime.

use pagetide_quantity::Bytes;
use pagetide_verdict::squeeze::Answer;
use serde::Serialize;

use crate::squeezed::SqueezeResult;
use crate::squeezes::VariantSqueeze;

/// A setting bounds the memory of a program if the needed memory grows by at least this share of the growth of the
/// setting.
const BOUNDING: f64 = 0.5;

/// Searches for the smallest memory that a program needs, one for each value of a word of the program's command line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariedSqueezes {
    /// Name of the word that differs.
    pub key: String,
    /// One search for each value of the word, in the order on the command line.
    pub searches: Vec<VariedSqueeze>,
    /// Growth of the needed memory with the setting; `None` if a value is not a size, if all values are equal, or if a
    /// search found no sufficient memory.
    pub follows: Option<Follows>,
}

/// The search with one value of the word that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariedSqueeze {
    /// Value of the word.
    pub value: String,
    /// Result of the search with this value.
    pub squeeze: SqueezeResult,
}

impl VariantSqueeze {
    /// Converts the search of a variant to the search with this value of the word.
    pub fn varied(self, value: &str) -> VariedSqueeze {
        VariedSqueeze {
            value: value.to_owned(),
            squeeze: self.squeeze,
        }
    }
}

/// Growth of the needed memory with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Follows {
    /// Difference between the largest and the smallest value of the setting.
    pub setting: Bytes,
    /// Difference between the memory needed with these two values, in bytes; negative if less memory is needed with the
    /// larger value.
    pub need: f64,
    /// True if the setting bounds the program's memory: the needed memory never falls, and it grows by at least half of
    /// the setting's growth.
    pub is_bounded: bool,
}

/// Returns the smallest memory found to be enough, in bytes; `None` if there is none.
fn enough(squeeze: &SqueezeResult) -> Option<u64> {
    match &squeeze.answer {
        Answer::Never { enough } | Answer::AtMost { enough } | Answer::Between { enough, .. } => {
            Some(enough.size)
        }
        Answer::PlentyDied { .. } | Answer::NothingTried => None,
    }
}

/// Computes the growth of the needed memory from points (setting, needed memory), both in bytes. `None` if all settings
/// are equal.
fn follow(mut points: Vec<(u64, u64)>) -> Option<Follows> {
    points.sort_unstable();
    let (first, last) = (points.first()?, points.last()?);
    if first.0 == last.0 {
        return None;
    }
    let never_falls = points.windows(2).all(|two| two[0].1 <= two[1].1);
    let setting = last.0 - first.0;
    let need = last.1 as f64 - first.1 as f64;
    Some(Follows {
        setting: Bytes(setting),
        need,
        is_bounded: never_falls && need >= setting as f64 * BOUNDING,
    })
}

impl VariedSqueezes {
    /// Collects searches, one for each value of the word `key`, and computes how much the needed memory grows with that
    /// value.
    pub fn of(key: String, searches: Vec<VariedSqueeze>) -> Self {
        let point = |one: &VariedSqueeze| {
            // Runtimes also accept sizes with lower-case units.
            let setting: Bytes = one.value.to_uppercase().parse().ok()?;
            Some((setting.0, enough(&one.squeeze)?))
        };
        let points: Option<Vec<(u64, u64)>> = searches.iter().map(point).collect();
        Self {
            key,
            follows: points.and_then(follow),
            searches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_need_that_rises_with_the_setting_is_bounded_by_it_and_one_that_stays_is_not() {
        let rising = vec![
            (64 * MIB, 70 * MIB),
            (16 * MIB, 24 * MIB),
            (32 * MIB, 40 * MIB),
        ];
        let found = follow(rising).unwrap();
        assert!(found.is_bounded, "{found:?}");
        assert_eq!(found.setting, Bytes(48 * MIB));
        let flat = follow(vec![(16 * MIB, 24 * MIB), (64 * MIB, 25 * MIB)]).unwrap();
        assert!(!flat.is_bounded, "{flat:?}");
        let falls = vec![
            (16 * MIB, 24 * MIB),
            (32 * MIB, 20 * MIB),
            (64 * MIB, 70 * MIB),
        ];
        assert!(!follow(falls).unwrap().is_bounded);
        assert_eq!(follow(vec![(MIB, MIB)]), None);
    }
}
