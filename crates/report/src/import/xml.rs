//! A strict reader of XML with only elements and text. Attributes and document types are refused. Only the five
//! entities of XML 1.0 and numeric character references are accepted.

/// A piece of an XML document.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// Start of an element with this name.
    Begin(&'a str),
    /// Text between tags, unchanged.
    Text(&'a str),
    /// End of the innermost open element.
    End,
}

/// Reads an XML document piece by piece. Each error is one sentence.
pub(super) struct Reader<'a> {
    rest: &'a str,
    open: Vec<&'a str>,
    /// True if an element without content has begun; its end is the next piece.
    is_empty: bool,
    is_done: bool,
}

/// Maximum nesting depth of elements.
const DEEPEST: usize = 16;

impl<'a> Reader<'a> {
    /// Creates a reader of this text.
    pub fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            open: Vec::new(),
            is_empty: false,
            is_done: false,
        }
    }

    /// Returns the text that has not been read yet.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// Returns the next piece; comments and processing instructions are skipped. `None` at the end of the text, after
    /// the outermost element.
    pub fn next(&mut self) -> Result<Option<Piece<'a>>, &'static str> {
        if self.is_empty {
            self.is_empty = false;
            return Ok(Some(self.close()));
        }
        loop {
            if let Some(rest) = self.rest.strip_prefix("<!--") {
                let (_, rest) = rest.split_once("-->").ok_or("a comment has no end")?;
                self.rest = rest;
            } else if let Some(rest) = self.rest.strip_prefix("<?") {
                let (_, rest) = rest.split_once("?>").ok_or("an instruction has no end")?;
                self.rest = rest;
            } else if let Some(rest) = self.rest.strip_prefix("</") {
                let (name, rest) = rest.split_once('>').ok_or("a tag has no end")?;
                if self.open.last() != Some(&name.trim_end()) {
                    return Err("a tag ends an element that did not begin last");
                }
                self.rest = rest;
                return Ok(Some(self.close()));
            } else if let Some(rest) = self.rest.strip_prefix('<') {
                return self.begin(rest);
            } else if self.open.is_empty() {
                let trimmed = self.rest.trim_start();
                if trimmed.is_empty() {
                    return if self.is_done {
                        Ok(None)
                    } else {
                        Err("it ends before its content")
                    };
                }
                if !trimmed.starts_with('<') {
                    return Err("text stands outside of all elements");
                }
                self.rest = trimmed;
            } else {
                let end = self.rest.find('<').ok_or("it ends inside an element")?;
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                return Ok(Some(Piece::Text(text)));
            }
        }
    }

    fn begin(&mut self, rest: &'a str) -> Result<Option<Piece<'a>>, &'static str> {
        let (tag, rest) = rest.split_once('>').ok_or("a tag has no end")?;
        let (name, is_empty) = match tag.strip_suffix('/') {
            Some(name) => (name.trim_end(), true),
            None => (tag.trim_end(), false),
        };
        let is_name = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if name.is_empty() || !is_name {
            return Err(
                "a tag is no plain element (attributes, sections and document types are not read)",
            );
        }
        if self.is_done {
            return Err("an element stands after the outermost");
        }
        if self.open.len() >= DEEPEST {
            return Err("its elements lie too deep");
        }
        self.open.push(name);
        self.is_empty = is_empty;
        self.rest = rest;
        Ok(Some(Piece::Begin(name)))
    }

    fn close(&mut self) -> Piece<'a> {
        self.open.pop();
        self.is_done = self.open.is_empty();
        Piece::End
    }
}

/// Returns text with entities replaced by their characters.
pub(super) fn plain(text: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (name, after) = after.split_once(';').ok_or("an entity has no end")?;
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => by_number(name).ok_or("an entity is not known")?,
        });
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the character of a numeric reference such as `#13` or `#x41`; `None` if there is no such character.
fn by_number(name: &str) -> Option<char> {
    let digits = name.strip_prefix('#')?;
    let number = match digits.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    char::from_u32(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Result<usize, &'static str> {
        let mut reader = Reader::new(text);
        let mut count = 0;
        while reader.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    #[test]
    fn elements_and_text_are_read_and_nothing_else() {
        assert_eq!(
            pieces("<?xml version=\"1.0\"?><!--c--><a><b>x</b><c/></a>\n"),
            Ok(7)
        );
        for wrong in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a/>x",
            "<a x=\"1\"/>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a/>",
            "<a><![CDATA[x]]></a>",
            "<a><!-- </a>",
            "<>",
        ] {
            assert!(pieces(wrong).is_err(), "{wrong}");
        }
        assert!(pieces(&"<a>".repeat(100)).is_err());
        assert_eq!(plain("a &amp; b&#x21;").as_deref(), Ok("a & b!"));
        for wrong in ["&", "&b;", "&#xd800;", "&#99999999999;"] {
            assert!(plain(wrong).is_err(), "{wrong}");
        }
    }
}
