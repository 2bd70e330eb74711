//! Standard output: tables for the terminal, JSON, and exchange formats. The caller handles closed output.

use std::io::{self, Write};

use anyhow::Result;
use pagetide_outside::shortened;
use pagetide_report::TextStyle;
use pagetide_report::draw::clean::harmless;
use pagetide_report::terminal::{Row, list, list_json};
use serde::Serialize;

/// Prints a message to standard error: progress, a warning or an error. Quoted text is shortened, and control
/// characters in it are escaped. Failures to write are ignored.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(&shortened(text)));
}

/// Prints one message for each piece of data that could not be shown on an HTML page. The HTML page contains the same
/// messages.
pub fn left_out(omitted: &[String]) {
    for what in omitted {
        say(&format!("not on the page: {what}"));
    }
}

/// Standard output of a command, and how to write to it.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Colours, width and character set.
    pub text_style: TextStyle,
    /// True if lists and values are written as JSON.
    pub json: bool,
}

impl Output {
    /// Creates the output for standard output; `ascii` restricts it to ASCII.
    pub fn new(json: bool, ascii: bool) -> Self {
        Self {
            text_style: TextStyle::of_stdout(ascii),
            json,
        }
    }

    /// Writes text unchanged.
    #[expect(
        clippy::unused_self,
        reason = "it is written to this output, whatever its look"
    )]
    pub fn text(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// Writes text without colours that quotes untrusted names. Control characters in it are escaped.
    pub fn quoting(&self, text: &str) -> Result<()> {
        self.text(&harmless(text))
    }

    /// Writes a list as a table or as JSON. If the list is empty, the text `none` replaces the table.
    pub fn list<T: Row>(&self, rows: &[T], none: &str) -> Result<()> {
        if self.json {
            self.text(&list_json(rows))
        } else if rows.is_empty() {
            self.text(&format!("{none}\n"))
        } else {
            self.text(&list(rows, &self.text_style))
        }
    }

    /// Writes a value as JSON if `--json` was given, otherwise writes the text.
    pub fn show(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if self.json {
            self.json(value)
        } else {
            self.text(&text())
        }
    }

    /// Like [`Self::show`], for a text without colours that quotes untrusted names. Control characters in it are
    /// escaped.
    pub fn show_quoting(
        &self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        self.show(value, || harmless(&text()))
    }

    /// Writes a value as JSON.
    pub fn json(&self, value: &impl Serialize) -> Result<()> {
        self.text(&pagetide_report::json::pretty(value))
    }
}
