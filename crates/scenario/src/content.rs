//! What pages contain: a fraction of random bytes, or a mixture of pages like those of a program's memory.
//!
//! The mixtures were fitted to the memory of real programs, see `docs/notes/contents.md`.

mod kinds;
mod mixture;
mod stream;

use pagetide_quantity::nearest;

use crate::expr::{self, Names};

pub(crate) use kinds::KINDS;
pub(crate) use mixture::{Class, MAX_CLASSES, Mixture};

/// Name of the content whose pages do not compress. As a value of the parameter `content`, it is the same as the number
/// 1.
const RANDOM: &str = "random";
/// Prefix of the name of a mixture of pages of zeros and pages of random bytes, as in `zeros:30%`.
const ZEROS: &str = "zeros:";

/// Content of the pages of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Content {
    /// Every page compresses to this fraction of its size. If the fraction is 0, all bytes are zero.
    Share(f64),
    /// Number of pages in a thousand that contain only zeros. The other pages do not compress.
    Zeros(u16),
    /// Pages that compress like the memory of a real program.
    Like(&'static Mixture),
}

impl Content {
    /// Parses a content in canonical form: a number, a name, or `zeros:` with a percentage. `None` for other texts.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if let Some(share) = text.strip_prefix(ZEROS) {
            let share: f64 = share.strip_suffix('%')?.parse().ok()?;
            return Some(Self::Zeros(thousandths(share / 100.0)?));
        }
        let like = KINDS.iter().find(|kind| kind.name == text).map(Self::Like);
        like.or_else(|| text.parse().ok().map(Self::Share))
    }
}

/// Returns a fraction as a whole number of thousandths; `None` if it is not from 0 to 1.
fn thousandths(share: f64) -> Option<u16> {
    let whole = crate::number::floor(share * 1000.0 + 0.5);
    u16::try_from(whole)
        .ok()
        .filter(|&whole| share >= 0.0 && whole <= 1000)
}

/// Returns the canonical text of a content that is given by name, such as `redis` or `zeros:30%`. `None` if `text` is a
/// number or an expression. Fails if the share of zeros is not from 0 to 1, or if `text` is a single word that is
/// neither a content nor in `names`.
pub(crate) fn named(text: &str, names: &Names) -> Result<Option<String>, String> {
    let text = text.trim();
    if text == RANDOM {
        return Ok(Some("1".to_owned()));
    }
    if let Some(share) = text.strip_prefix(ZEROS) {
        let value = expr::evaluate(share, names)?;
        let whole = Some(value)
            .filter(|value| (value.bytes, value.nanos) == (0, 0))
            .and_then(|value| thousandths(value.value))
            .ok_or_else(|| format!("a share of zeros is from 0 to 1, as in {ZEROS}30%"))?;
        return Ok(Some(format!("{ZEROS}{}%", f64::from(whole) / 10.0)));
    }
    if let Some(kind) = KINDS.iter().find(|kind| kind.name == text) {
        return Ok(Some(kind.name.to_owned()));
    }
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.contains(|sign: char| !sign.is_ascii_alphanumeric() && sign != '-')
        && !names.contains_key(text);
    if !is_word {
        return Ok(None);
    }
    let hint = nearest(text, KINDS.iter().map(|kind| kind.name).chain([RANDOM]));
    Err(hint.map_or_else(
        || format!("no content is named {text}"),
        |near| format!("no content is named {text}, did you mean {near}?"),
    ))
}

/// Returns the names of all contents, for messages and help.
pub(crate) fn names() -> String {
    let names = KINDS.iter().map(|kind| kind.name);
    let mut all: Vec<&str> = names.chain([RANDOM]).collect();
    all.push("zeros:SHARE");
    all.join(", ")
}

/// Returns the compression ratio of this content with lz4: compressed size / original size. `None` if `text` is not the
/// canonical text of a content.
pub fn compressed_share(text: &str) -> Option<f64> {
    Some(match Content::read(text)? {
        Content::Share(share) => share,
        Content::Zeros(share) => 1.0 - f64::from(share) / 1000.0,
        Content::Like(kind) => f64::from(kind.compressed[0]) / 1000.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mixture_is_whole_and_can_be_named() {
        for kind in &KINDS {
            let pages: u16 = kind.classes.iter().map(|class| class.pages).sum();
            assert_eq!(pages, 1000, "{}", kind.name);
            assert!(kind.classes.len() <= MAX_CLASSES, "{}", kind.name);
            assert!(kind.classes.iter().all(|class| class.pages > 0));
            assert!(names().contains(kind.name));
            assert_eq!(Content::read(kind.name), Some(Content::Like(kind)));
        }
    }

    #[test]
    fn contents_are_numbers_expressions_or_names() {
        let names = Names::from([("half".to_owned(), expr::Quantity::number(0.5))]);
        let named = |text| named(text, &names);
        assert_eq!(named("0.35"), Ok(None));
        assert_eq!(named("half"), Ok(None));
        assert_eq!(named("half / 2"), Ok(None));
        assert_eq!(named(" redis "), Ok(Some("redis".to_owned())));
        assert_eq!(named("random"), Ok(Some("1".to_owned())));
        assert_eq!(named("zeros:30%"), Ok(Some("zeros:30%".to_owned())));
        assert_eq!(named("zeros:0.125"), Ok(Some("zeros:12.5%".to_owned())));
        assert!(named("rediss").unwrap_err().contains("did you mean redis?"));
        assert!(named("zeros:3").unwrap_err().contains("from 0 to 1"));
        assert!(named("zeros:1M").unwrap_err().contains("from 0 to 1"));
        assert_eq!(Content::read("zeros:12.5%"), Some(Content::Zeros(125)));
        assert_eq!(Content::read("zeros:101%"), None);
        assert_eq!(compressed_share("zeros:25%"), Some(0.75));
        assert_eq!(compressed_share("0.35"), Some(0.35));
        assert!(compressed_share("text") > compressed_share("redis"));
        assert_eq!(compressed_share("swap"), None);
    }
}
