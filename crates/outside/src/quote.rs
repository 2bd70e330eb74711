//! Shortens long quotations in messages.

use std::borrow::Cow;

/// Maximum number of characters in one word of a message. Paths may have 4,096 characters; those that users type are
/// shorter than this limit.
const WORD_CHARS: usize = 300;
/// Maximum number of characters in a message.
const TEXT_CHARS: usize = 4_000;
/// Text that replaces the part that was cut.
const GAP: &str = "[…]";

/// Returns a message without the middle of its long parts. First each word with more than 300 characters is cut,
/// counting the white space after it. Then the whole message is cut if it still has more than 4,000 characters.
/// Beginning and end are kept, because they state what was attempted and the remedy.
pub fn shortened(text: &str) -> Cow<'_, str> {
    // A text of at most this many bytes contains no word that is too long.
    if text.len() <= WORD_CHARS {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        out.push_str(&cut(word, WORD_CHARS));
        // The middle of a long text is cut in any case, so from here on only the last part of the text is collected.
        if out.len() > 16 * TEXT_CHARS {
            out = cut(&out, TEXT_CHARS).into_owned();
        }
    }
    Cow::Owned(cut(&out, TEXT_CHARS).into_owned())
}

/// Returns a text of which the middle is cut out if it has more than `most` characters.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let half = most / 2;
    let after = text.char_indices().nth(half).map_or(0, |(at, _)| at);
    let before = text.char_indices().nth_back(half - 1);
    let before = before.map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{}{GAP}{}", &text[..after], &text[before..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_megabyte_of_garbage_is_cut_and_what_stands_around_it_is_kept() {
        let garbage = "x".repeat(1 << 20);
        let said = format!("unknown key `{garbage}` in the file: known are a, b");
        let cut = shortened(&said);
        assert!(cut.chars().count() < 400, "{}", cut.len());
        assert!(cut.starts_with("unknown key `xxx"), "{cut}");
        assert!(cut.ends_with("xxx` in the file: known are a, b"), "{cut}");
    }

    #[test]
    fn many_short_words_are_cut_as_a_whole() {
        let said = format!("start {} end", "ä b\n".repeat(1 << 18));
        let cut = shortened(&said);
        assert!(cut.chars().count() <= TEXT_CHARS + 10, "{}", cut.len());
        assert!(cut.starts_with("start ä b") && cut.ends_with(" end"));
    }

    #[test]
    fn a_message_of_usual_length_is_left_as_it_is() {
        let path = format!("reading /{}/x stopped", "folder/".repeat(40));
        for said in ["", "reading x stopped", &path] {
            assert_eq!(shortened(said), said);
        }
    }
}
