//! Mails with patches, as written by `git format-patch`, `b4 am` and mail archives, or a diff without a mail header.

/// One message of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Decoded subject on one line; empty if the message has no subject.
    pub subject: String,
    /// Decoded body.
    pub body: Vec<u8>,
}

/// Maximum length of a separator line in bytes; an address has at most 254.
const MAX_SEPARATOR: usize = 1_000;

/// Splits an mbox into its messages. Any other file is returned as one message.
pub fn messages(text: &[u8]) -> Vec<Message> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let mut parts: Vec<Vec<&[u8]>> = Vec::new();
    let mut after_blank = true;
    for line in lines {
        if after_blank && is_separator(line) {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(line);
        } else {
            parts.push(vec![line]);
        }
        after_blank = line.iter().all(u8::is_ascii_whitespace);
    }
    parts.iter().map(|part| message(part)).collect()
}

/// Returns true if a line separates messages of an mbox: `From SENDER DATE` (RFC 4155). git writes a commit hash as the
/// sender.
fn is_separator(line: &[u8]) -> bool {
    if !line.starts_with(b"From ") || line.len() > MAX_SEPARATOR {
        return false;
    }
    let text = String::from_utf8_lossy(line);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.first() == Some(&"From")
        && words.len() >= 6
        && words.iter().any(|word| {
            let parts: Vec<&str> = word.split(':').collect();
            parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
        })
}

/// Parses one message. Removes the `>` that an mbox puts before lines that begin with `From `.
fn message(lines: &[&[u8]]) -> Message {
    let has_header = lines.first().is_some_and(|line| is_field(line));
    let end = if has_header {
        lines
            .iter()
            .position(|line| line.iter().all(u8::is_ascii_whitespace))
            .unwrap_or(lines.len())
    } else {
        0
    };
    let (header, body) = lines.split_at(end);
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in header {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        match (fields.last_mut(), text.split_once(':')) {
            (Some((_, value)), _) if text.starts_with([' ', '\t']) => {
                value.push(' ');
                value.push_str(text.trim_start());
            }
            (_, Some((name, value))) => {
                fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            _ => {}
        }
    }
    let field = |name: &str| {
        fields
            .iter()
            .find_map(|(known, value)| (known == name).then_some(value.as_str()))
            .unwrap_or_default()
    };
    let mut raw = Vec::new();
    for line in body {
        let quoted = line.iter().take_while(|byte| **byte == b'>').count();
        let is_marked = quoted > 0
            && line
                .get(quoted..)
                .is_some_and(|rest| rest.starts_with(b"From "));
        raw.extend_from_slice(line.get(usize::from(is_marked)..).unwrap_or_default());
    }
    let body = match field("content-transfer-encoding")
        .to_ascii_lowercase()
        .as_str()
    {
        "quoted-printable" => unquoted(&raw, false),
        "base64" => unbased(&raw),
        _ => raw,
    };
    // Lines of mails end with CR LF, but lines of kernel sources do not.
    let body = if has_header {
        without_returns(body)
    } else {
        body
    };
    Message {
        subject: decoded(field("subject")),
        body,
    }
}

/// Returns true if a line is a header field, such as `Subject: …`.
fn is_field(line: &[u8]) -> bool {
    let name: Vec<u8> = line
        .iter()
        .copied()
        .take_while(|byte| *byte != b':')
        .collect();
    name.len() < line.len()
        && !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        // `diff:` or a path begins with a small letter. Some mail programs write such header fields too, but they are
        // not needed.
        && name.first().is_some_and(u8::is_ascii_uppercase)
}

fn without_returns(body: Vec<u8>) -> Vec<u8> {
    if !body.windows(2).any(|two| two == b"\r\n") {
        return body;
    }
    let mut out = Vec::with_capacity(body.len());
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(text) => {
                out.extend_from_slice(text);
                out.push(b'\n');
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// Decodes quoted-printable text (RFC 2045, 6.7). In headers, an underscore is a space (RFC 2047, 4.2).
fn unquoted(text: &[u8], in_header: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'=' if rest.starts_with(b"\r\n") => rest = &rest[2..],
            b'=' if rest.starts_with(b"\n") => rest = &rest[1..],
            b'=' => match rest.get(..2).and_then(hex) {
                Some(value) => {
                    out.push(value);
                    rest = rest.get(2..).unwrap_or_default();
                }
                None => out.push(b'='),
            },
            b'_' if in_header => out.push(b' '),
            _ => out.push(byte),
        }
    }
    out
}

fn hex(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Decodes base64 text (RFC 4648); invalid characters are skipped.
fn unbased(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    out
}

/// Decodes the encoded words of a subject (RFC 2047) as UTF-8, even if another charset is stated, and removes control
/// characters.
fn decoded(text: &str) -> String {
    let mut out: Vec<u8> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("=?") {
        let word = rest[at + 2..].splitn(4, '?').collect::<Vec<_>>();
        let (&[_, encoding, inner, after], true) = (&word[..], word.len() == 4) else {
            break;
        };
        let Some(after) = after.strip_prefix('=') else {
            break;
        };
        let before = &rest[..at];
        // White space between two encoded words is not part of the text.
        if out.is_empty() || !before.trim().is_empty() {
            out.extend_from_slice(before.as_bytes());
        }
        out.extend(if encoding.eq_ignore_ascii_case("b") {
            unbased(inner.as_bytes())
        } else {
            unquoted(inner.as_bytes(), true)
        });
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&out)
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_mbox_is_split_at_its_messages_and_a_line_of_prose_is_no_message() {
        let text = "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH 1/2] one\n\nFrom now on it works.\n>From here\n\n\
                    From mboxrd@z Thu Jan  1 00:00:00 1970\nSubject: [PATCH 2/2]\n two\n\nbody\n";
        let found = messages(text.as_bytes());
        let subjects: Vec<&str> = found.iter().map(|m| m.subject.as_str()).collect();
        assert_eq!(subjects, ["[PATCH 1/2] one", "[PATCH 2/2] two"]);
        assert_eq!(
            String::from_utf8_lossy(&found[0].body),
            "\nFrom now on it works.\nFrom here\n\n"
        );
    }

    #[test]
    fn a_bare_diff_is_one_message_without_a_subject() {
        let found = messages(b"--- a/x\n+++ b/x\n");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].subject.as_str(), found[0].body.len()), ("", 16));
    }

    #[test]
    fn transfer_encodings_and_encoded_subjects_are_decoded() {
        let quoted = "Subject: =?utf-8?q?mm=3A_caf=C3=A9?=\n =?UTF-8?B?IG9r?=\nContent-Transfer-Encoding: quoted-printable\n\n\
                      a=3Db=\nc\n";
        let found = &messages(quoted.as_bytes())[0];
        assert_eq!(found.subject, "mm: café ok");
        assert_eq!(String::from_utf8_lossy(&found.body), "\na=bc\n");
        let based =
            "Subject: x\nContent-Transfer-Encoding: base64\r\n\r\nLS0tIGEveA0KKysrIGIveA0K\r\n";
        let found = &messages(based.as_bytes())[0];
        assert_eq!(String::from_utf8_lossy(&found.body), "--- a/x\n+++ b/x\n");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = messages(&text);
        }

        #[test]
        fn no_subject_makes_it_panic(text in "(=\\?utf-8\\?[qb]\\?[^ ]{0,9}\\?=| |=\\?|é){0,6}") {
            let _ = decoded(&text);
        }
    }
}
