//! Makes names and logs harmless: they cannot control a terminal, imitate a line of output, or flood it.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

/// Separator between the parts of a label.
const JOINT: &str = " · ";
/// Minimum number of columns for the workload in a shortened label.
const MIN_WORKLOAD: usize = 16;

/// Returns the number of terminal columns that a text takes.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// True for characters that have an effect instead of a shape: controls, line separators, and invisible characters that
/// reorder, join or hide text (Unicode categories Cc, Zl and Zp, most of Cf, tags, fillers, variation selectors).
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the ASCII replacement for one of the few characters outside ASCII that are used in pagetide's own labels;
/// `None` for all other characters.
const fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        'µ' | 'μ' => "u",
        '·' => "/",
        '–' | '—' | '\u{2212}' => "-",
        '…' => "...",
        '≥' => ">=",
        '≤' => "<=",
        '×' => "x",
        '±' => "+-",
        '→' => "->",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        _ => return None,
    })
}

/// Appends one character. A character that would control the terminal is escaped; if `ascii`, a character outside ASCII
/// is replaced or escaped.
fn push(out: &mut String, c: char, ascii: bool) {
    match c {
        _ if ascii && plain(c).is_some() => out.push_str(plain(c).unwrap_or_default()),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        '\x1b' => out.push_str("\\e"),
        _ if is_unsafe(c) || (ascii && !c.is_ascii()) => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        _ => out.push(c),
    }
}

/// Returns the text as one line of at most `limit` columns: control characters are escaped; longer text, and text with
/// more than four characters without width in a row, is cut and ends with `…` (`...` in ASCII).
pub fn clean(text: &str, limit: usize, ascii: bool) -> String {
    let mut out = String::new();
    let mut columns = 0;
    // A run of characters without width could be endless.
    let mut marks = 0;
    let dots = if ascii { "..." } else { "…" };
    let room = limit.saturating_sub(width(dots));
    // Length of `out` in bytes up to which the text and the dots fit into the limit.
    let mut fits = 0;
    for c in text.chars() {
        let before = out.len();
        push(&mut out, c, ascii);
        let wide = width(&out[before..]);
        marks = if wide == 0 { marks + 1 } else { 0 };
        columns += wide;
        if columns > limit || marks > 4 {
            out.truncate(fits);
            out.push_str(dots);
            return out;
        }
        if columns <= room {
            fits = out.len();
        }
    }
    out
}

/// Returns a cell's label cut to `limit` columns. The part before the memory is cut first, so that cells that differ
/// only in their machine can be distinguished. If fewer than 16 columns would remain for it, the end is cut instead.
pub fn clean_label(text: &str, limit: usize, ascii: bool) -> String {
    let (workload, machine) = match text.find(JOINT) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let machine = clean(machine, limit, ascii);
    let room = limit.saturating_sub(width(&machine));
    if room < MIN_WORKLOAD {
        return clean(text, limit, ascii);
    }
    clean(workload, room, ascii) + &machine
}

/// Returns the text of several lines: line breaks are kept; everything else that could control a terminal is escaped.
pub fn harmless(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(escaped).collect();
    lines.join("\n")
}

/// Returns text for formats without a length limit: control characters are escaped, nothing is cut.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c, false);
    }
    out
}

/// Wraps text at spaces into lines of at most `limit` columns; words that are longer get a line of their own and are
/// cut. Returns at least one line, which is empty for a text without words.
pub fn wrap(text: &str, limit: usize, ascii: bool) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut columns = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let word = clean(word, limit, ascii);
        let wide = width(&word);
        let Some(line) = lines.last_mut() else {
            break;
        };
        if columns > 0 && columns + 1 + wide > limit {
            lines.push(word);
            columns = wide;
        } else {
            if columns > 0 {
                line.push(' ');
                columns += 1;
            }
            line.push_str(&word);
            columns += wide;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(clean("a\x1b[31mb\n", 80, false), "a\\e[31mb\\n");
        assert_eq!(clean("x\u{9b}2J", 80, false), "x\\u{9b}2J");
        assert_eq!(clean("safe\u{202e}gnp", 80, false), "safe\\u{202e}gnp");
        assert_eq!(clean("a · 3 µs", 80, true), "a / 3 us");
        assert_eq!(clean("naïve", 80, true), "na\\u{ef}ve");
    }

    #[test]
    fn a_long_label_keeps_its_machine() {
        let label = format!(
            "program command={} · 192M · none · files on xfs",
            "x".repeat(99)
        );
        let cut = clean_label(&label, 60, false);
        assert_eq!(
            cut,
            "program command=xxxxxxxxxxxxxx… · 192M · none · files on xfs"
        );
        assert_eq!(width(&cut), 60);
        assert_eq!(clean_label(&label, 20, false), "program command=xxx…");
        assert_eq!(
            clean_label("linear · 64M · zram", 60, false),
            "linear · 64M · zram"
        );
        assert_eq!(
            clean_label("linear · 64M · zram", 60, true),
            "linear / 64M / zram"
        );
    }

    #[test]
    fn a_megabyte_of_text_is_cut_to_its_column() {
        let huge = "x".repeat(1 << 20);
        assert_eq!(clean(&huge, 10, false), "xxxxxxxxx…");
        assert_eq!(clean(&huge, 10, true), "xxxxxxx...");
        assert_eq!(clean("0123456789", 10, false), "0123456789");
        let marks = format!("a{}", "\u{301}".repeat(1 << 20));
        assert!(clean(&marks, 10, false).len() < 30);
        let wide = "漢".repeat(100);
        assert!(width(&clean(&wide, 9, false)) <= 9);
    }

    #[test]
    fn wrapped_lines_keep_their_limit_and_every_word() {
        let text = "one instruction is one nanosecond; caches are not modelled";
        let lines = wrap(text, 20, false);
        assert!(lines.iter().all(|line| width(line) <= 20), "{lines:?}");
        assert_eq!(lines.join(" "), text);
    }
}
