//! Capabilities of the reader's terminal: width, colours, Unicode.

use std::io::IsTerminal;

/// Width in columns if neither the terminal nor the environment variable `COLUMNS` gives it.
const WIDTH_CHARS: usize = 100;
/// Minimum width of any layout in columns.
const NARROWEST_CHARS: usize = 40;

/// How text is rendered: width, colours and characters. Derived from the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    /// Available width in columns.
    pub width: usize,
    /// True if colours may be used.
    pub colour: bool,
    /// True if only ASCII may be used.
    pub ascii: bool,
}

/// Style of a piece of text, which determines its colour and weight. The text must be understandable without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// Normal text.
    #[default]
    Plain,
    /// Headings and names.
    Strong,
    /// Less important text.
    Faint,
    /// An improvement.
    Good,
    /// A regression.
    Bad,
    /// An undecided result.
    Unsure,
    /// An unusable result.
    Broken,
}

impl Ink {
    /// Returns the escape sequence that starts this style (ECMA-48, select graphic rendition).
    const fn start(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Bad => "\x1b[1;31m",
            Self::Unsure => "\x1b[33m",
            Self::Broken => "\x1b[35m",
        }
    }
}

impl TextStyle {
    /// Creates a style of this width in columns, with Unicode and without colours.
    pub const fn plain(width: usize) -> Self {
        Self {
            width,
            colour: false,
            ascii: false,
        }
    }

    /// Creates the style for standard output; `ascii` is the user's option `--ascii`.
    pub fn of_stdout(ascii: bool) -> Self {
        let stdout = std::io::stdout();
        let terminal = stdout.is_terminal().then(|| {
            rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col))
        });
        Self::of(|name| std::env::var(name).ok(), terminal, ascii)
    }

    /// Creates the style derived from environment variables and from `terminal`, the width of the terminal: `None` if
    /// the output is not a terminal, zero if the terminal does not report its width. Colours require a terminal and
    /// respect `NO_COLOR` (<https://no-color.org>). Unicode is used if the first of `LC_ALL`, `LC_CTYPE` and `LANG`
    /// that is set, as in POSIX, names UTF-8. A terminal `dumb` gets neither.
    pub fn of(env: impl Fn(&str) -> Option<String>, terminal: Option<usize>, ascii: bool) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").as_deref() == Some("dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|n| set(n));
        let unicode = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        let columns = set("COLUMNS").and_then(|text| text.parse().ok());
        Self {
            width: terminal
                .filter(|width| *width > 0)
                .or(columns)
                .unwrap_or(WIDTH_CHARS)
                .max(NARROWEST_CHARS),
            colour: terminal.is_some() && set("NO_COLOR").is_none() && !dumb,
            ascii: ascii || dumb || !unicode,
        }
    }

    /// Returns the text in this style, with escape sequences if colours may be used.
    pub fn ink(&self, ink: Ink, text: &str) -> String {
        if !self.colour || ink == Ink::Plain || text.is_empty() {
            text.to_owned()
        } else {
            format!("{}{text}\x1b[0m", ink.start())
        }
    }

    /// Returns the first text if Unicode may be used, otherwise the second.
    pub const fn or<'a>(&self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.ascii { ascii } else { unicode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_style(vars: &[(&str, &str)], terminal: Option<usize>) -> TextStyle {
        let find = |name: &str| {
            vars.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        };
        TextStyle::of(find, terminal, false)
    }

    #[test]
    fn colours_appear_on_a_terminal_only_and_heed_no_color() {
        assert!(text_style(&[], Some(80)).colour);
        assert!(!text_style(&[], None).colour);
        assert!(!text_style(&[("NO_COLOR", "1")], Some(80)).colour);
        assert!(
            text_style(&[("NO_COLOR", "")], Some(80)).colour,
            "an empty NO_COLOR counts as not set"
        );
        assert!(!text_style(&[("TERM", "dumb")], Some(80)).colour);
    }

    #[test]
    fn the_locale_that_counts_decides_on_unicode() {
        assert!(!text_style(&[("LANG", "en_GB.UTF-8")], Some(80)).ascii);
        assert!(text_style(&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")], Some(80)).ascii);
        assert!(!text_style(&[("LC_ALL", "C.utf8")], Some(80)).ascii);
        assert!(
            text_style(&[], Some(80)).ascii,
            "POSIX's default locale is ASCII"
        );
        let forced = TextStyle::of(|_| Some("C.UTF-8".to_owned()), Some(80), true);
        assert!(forced.ascii);
    }

    #[test]
    fn the_width_is_the_terminals_then_columns_then_a_default() {
        assert_eq!(text_style(&[("COLUMNS", "60")], Some(120)).width, 120);
        assert_eq!(text_style(&[("COLUMNS", "60")], None).width, 60);
        assert_eq!(text_style(&[], Some(0)).width, WIDTH_CHARS);
        assert_eq!(text_style(&[], Some(3)).width, NARROWEST_CHARS);
    }
}
