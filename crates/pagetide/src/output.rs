//! Standard output: tables with the right look, JSON, and formats of others. A closed reader is the caller's to see.

use std::io::{self, Write};

use anyhow::Result;
use pagetide_outside::shortened;
use pagetide_report::Look;
use pagetide_report::draw::clean::harmless;
use pagetide_report::terminal::{Row, list, list_json};
use serde::Serialize;

/// Says one thing on standard error: progress, a warning, an error. Whatever it quotes is cut where nobody would read it, and
/// cannot steer the terminal; where nobody can read it nothing happens.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(&shortened(text)));
}

/// Says what is not on a page; the page says so too.
pub fn left_out(omitted: &[String]) {
    for what in omitted {
        say(&format!("not on the page: {what}"));
    }
}

/// Where and how a command writes.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Colours, width and characters.
    pub look: Look,
    /// Whether tables are written as JSON.
    pub json: bool,
}

impl Output {
    /// Standard output as it is; `ascii` keeps to ASCII.
    pub fn new(json: bool, ascii: bool) -> Self {
        Self {
            look: Look::of_stdout(ascii),
            json,
        }
    }

    /// Writes text as it is.
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

    /// Writes text without colours that quotes names of others.
    pub fn quoting(&self, text: &str) -> Result<()> {
        self.text(&harmless(text))
    }

    /// Writes a list as a table or as JSON; `none` is said instead of a table without rows.
    pub fn list<T: Row>(&self, rows: &[T], none: &str) -> Result<()> {
        if self.json {
            self.text(&list_json(rows))
        } else if rows.is_empty() {
            self.text(&format!("{none}\n"))
        } else {
            self.text(&list(rows, &self.look))
        }
    }

    /// Writes a value as JSON, or else the text that a person reads instead.
    pub fn show(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if self.json {
            self.json(value)
        } else {
            self.text(&text())
        }
    }

    /// The same with a text without colours that quotes names of others.
    pub fn show_quoting(
        &self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        self.show(value, || harmless(&text()))
    }

    /// Writes any value as JSON.
    pub fn json(&self, value: &impl Serialize) -> Result<()> {
        self.text(&pagetide_report::json::pretty(value))
    }
}
