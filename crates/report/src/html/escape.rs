//! Escapes names and logs: markup in them is shown as text.

use crate::draw::escaped;

/// Maximum length of a text, in characters; the rest is cut.
pub(crate) const LONG: usize = 4000;

/// Escapes text for element content and quoted attributes. The text is cut to `limit` characters, and a remark about
/// the cut is added; control characters are shown as escapes.
pub(crate) fn text(raw: &str, limit: usize) -> String {
    let cut: String = raw.chars().take(limit).collect();
    let more = raw.len() > cut.len();
    let mut out = String::with_capacity(cut.len() + 16);
    for c in escaped(&cut).chars() {
        push(&mut out, c);
    }
    if more {
        put!(out, " … (cut, {} bytes in all)", raw.len());
    }
    out
}

/// Escapes one of pagetide's own sentences, cut to `limit` characters. Text between backquotes becomes a `<code>`
/// element, unless the number of backquotes is odd.
pub(crate) fn prose(raw: &str, limit: usize) -> String {
    let escaped = text(raw, limit);
    if escaped.matches('`').count() % 2 == 1 {
        return escaped;
    }
    let mut out = String::with_capacity(escaped.len() + 32);
    for (nth, part) in escaped.split('`').enumerate() {
        if nth > 0 {
            out.push_str(if nth % 2 == 1 { "<code>" } else { "</code>" });
        }
        out.push_str(part);
    }
    out
}

/// Escapes text of several lines, cut to `limit` characters. Line breaks are kept.
pub(crate) fn lines(raw: &str, limit: usize) -> String {
    let cut: String = raw.chars().take(limit).collect();
    let all: Vec<String> = cut.split('\n').map(|line| text(line, limit)).collect();
    let mut out = all.join("\n");
    if raw.len() > cut.len() {
        put!(out, "\n… (cut, {} bytes in all)", raw.len());
    }
    out
}

fn push(out: &mut String, c: char) {
    match c {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_controls_become_text() {
        assert_eq!(
            text("<img src=x onerror='a&b'>\u{1b}[2J\u{202e}", 100),
            "&lt;img src=x onerror=&#39;a&amp;b&#39;&gt;\\e[2J\\u{202e}"
        );
    }

    #[test]
    fn text_between_backquotes_is_code_and_still_escaped() {
        assert_eq!(
            prose("`--sizes <a>` asks", 100),
            "<code>--sizes &lt;a&gt;</code> asks"
        );
        assert_eq!(prose("a ` b", 100), "a ` b");
    }

    #[test]
    fn a_megabyte_is_cut_and_says_so() {
        let shown = text(&"x".repeat(1 << 20), 100);
        assert!(shown.len() < 150);
        assert!(shown.ends_with("(cut, 1048576 bytes in all)"));
    }
}
