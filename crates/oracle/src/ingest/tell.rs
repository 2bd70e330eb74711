//! Tells a file's format from its beginning.

use super::{FORMS, Form, Format};
use crate::error::Trouble;

/// Bytes that are looked at to tell text from binary data.
const LOOKED_AT: usize = 4096;

/// The beginning of a file.
pub(super) struct Head<'a> {
    /// The bytes, which may be all of the file.
    pub bytes: &'a [u8],
    /// Whether they are text: UTF-8 without control characters.
    pub is_text: bool,
    /// The first line that is not empty, without white space around it; nothing if the bytes are no text.
    pub first: &'a [u8],
    /// The next line that is not empty.
    pub second: Option<&'a [u8]>,
    /// The first line that is neither empty nor begins with `#`.
    pub content: Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, Trouble> {
        let is_text = is_text(&bytes[..bytes.len().min(LOOKED_AT)]);
        let mut lines = bytes
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty());
        let content = lines.clone().find(|line| !line.starts_with(b"#"));
        if bytes.is_empty() || is_text && lines.clone().next().is_none() {
            return Err(Trouble::Empty);
        }
        Ok(Self {
            bytes,
            is_text,
            first: lines.next().filter(|_| is_text).unwrap_or_default(),
            second: lines.next().filter(|_| is_text),
            content: content.filter(|_| is_text),
        })
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // The last character may go on after these bytes.
        Err(error) => error.error_len().is_none(),
    };
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    utf8 && !bytes.iter().any(is_control)
}

/// The one format that a file beginning with these bytes fits.
pub(super) fn tell(bytes: &[u8]) -> Result<Format, Trouble> {
    let head = Head::of(bytes)?;
    let mut fits: Vec<&Form> = FORMS.iter().filter(|form| (form.begins)(&head)).collect();
    if fits.len() > 1 {
        // Most text formats are tables too.
        fits.retain(|form| form.format != Format::Csv(None));
    }
    match fits[..] {
        [] => Err(Trouble::Unknown),
        [form] => Ok(form.format.clone()),
        _ => Err(Trouble::Ambiguous {
            names: fits.iter().map(|form| form.name).collect(),
        }),
    }
}
