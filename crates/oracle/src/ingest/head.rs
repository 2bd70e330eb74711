//! Beginning of a file, by which its format is detected.

use crate::error::ReferenceErrorKind;

/// Number of bytes examined to tell text from binary data.
const LOOKED_AT: usize = 4096;

/// The beginning of a file, prepared for detection of the format.
pub(super) struct Head<'a> {
    /// The bytes; in a short file, all of its bytes.
    pub bytes: &'a [u8],
    /// True if the first [`LOOKED_AT`] bytes are text: UTF-8 without control characters other than white space.
    pub is_text: bool,
    /// The first line that is not empty, without surrounding white space; empty if the file is not text.
    pub first: &'a [u8],
    /// The second line that is not empty; `None` if there is none or the file is not text.
    pub second: Option<&'a [u8]>,
    /// The first line that is neither empty nor begins with `#`; `None` if there is none or the file is not text.
    pub content: Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    pub fn of(bytes: &'a [u8]) -> Result<Self, ReferenceErrorKind> {
        let is_text = is_text(&bytes[..bytes.len().min(LOOKED_AT)]);
        let mut lines = bytes
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty());
        let content = lines.clone().find(|line| !line.starts_with(b"#"));
        if bytes.is_empty() || is_text && lines.clone().next().is_none() {
            return Err(ReferenceErrorKind::Empty);
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
        // The last character may continue beyond these bytes.
        Err(error) => error.error_len().is_none(),
    };
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    utf8 && !bytes.iter().any(is_control)
}
