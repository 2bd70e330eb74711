//! JSON that is safe to print: characters that control a terminal or reorder text are escaped; nothing is lost.

use std::io::{self, Write};

use pagetide_compare::Comparison;
use pagetide_record::Machine;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::about::About;
use crate::draw::clean::is_unsafe;

/// A JSON formatter that also escapes control and reordering characters that JSON permits unescaped.
struct SafeFormatter<F>(F);

/// Forwards calls that do not concern strings to the inner formatter.
macro_rules! hand_on {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {
        $(fn $name<W: ?Sized + io::Write>(&mut self, writer: &mut W $(, $arg: $type)*) -> io::Result<()> {
            self.0.$name(writer $(, $arg)*)
        })*
    };
}

impl<F: Formatter> Formatter for SafeFormatter<F> {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut from = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_unsafe(*c)) {
            writer.write_all(&fragment.as_bytes()[from..at])?;
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            from = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[from..])
    }

    hand_on! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

/// Writes a value as indented JSON to `writer`.
pub fn write_pretty(writer: impl io::Write, value: &impl Serialize) -> serde_json::Result<()> {
    let mut serializer =
        serde_json::Serializer::with_formatter(writer, SafeFormatter(PrettyFormatter::new()));
    value.serialize(&mut serializer)
}

/// Formats a value as indented JSON with a line break at the end. Values of this crate can always be serialized; a map
/// whose keys are not strings would give `null`.
pub fn pretty(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    if write_pretty(&mut out, value).is_err() {
        out = b"null".to_vec();
    }
    out.push(b'\n');
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a JSON object whose first member, named `list`, is a list of rows, followed by the members of the value that
/// `run` returns. Each row is written when `run` passes it on, so that rows need not be kept in memory. If `run` fails,
/// its error is returned and the JSON is incomplete.
pub fn streamed<T: Serialize, W: Serialize, E>(
    mut out: impl Write,
    list: &str,
    run: impl FnOnce(&mut dyn FnMut(&T)) -> Result<W, E>,
) -> io::Result<Result<(), E>> {
    write!(out, "{{\n  {}: [", string(list))?;
    let (mut first, mut written) = (true, Ok(()));
    let whole = run(&mut |row| {
        if written.is_ok() {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            let row = serde_json::to_string(row).unwrap_or_default();
            written = write!(out, "{comma}\n    {row}");
        }
    });
    written?;
    let whole = match whole {
        Ok(whole) => pretty(&whole),
        Err(why) => return Ok(Err(why)),
    };
    let rest = whole.trim_start_matches('{').trim_start();
    write!(out, "\n  ],\n  {rest}")?;
    out.flush()?;
    Ok(Ok(()))
}

/// Returns a text as a JSON string on one line.
pub(crate) fn string(text: &str) -> String {
    let mut out = Vec::new();
    if write_pretty(&mut out, &text).is_err() {
        out = b"\"\"".to_vec();
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Version of the format of a comparison's JSON. Adding a field does not increase it; changing or removing one does.
pub const VERSION: u32 = 1;

/// A comparison preceded by name and version of the format.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    title: &'a str,
    command: &'a str,
    machine: &'a Machine,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Formats a comparison as JSON with all data, including the details of every judgement.
pub fn comparison(comparison: &Comparison, about: &About) -> String {
    pretty(&Document {
        format: "pagetide-comparison",
        version: VERSION,
        title: &about.title,
        command: &about.command,
        machine: &about.machine,
        comparison,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_whole_and_cannot_steer_a_terminal() {
        let text = "a\u{9b}31m\u{202e}b\x1b\"\\\u{e0001}\u{7f}ü";
        let json = pretty(&[text]);
        assert!(json.chars().all(|c| c == '\n' || !is_unsafe(c)), "{json:?}");
        assert!(json.contains("ü"));
        let back: Vec<String> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, [text]);
    }

    #[test]
    fn it_is_indented_like_any_other_json() {
        assert_eq!(
            pretty(&serde_json::json!({"a": [1, 2.5], "b": {}})),
            "{\n  \"a\": [\n    1,\n    2.5\n  ],\n  \"b\": {}\n}\n"
        );
    }
}
