//! Escapes text for manual pages in roff.

/// Escapes backslashes and hyphens for roff, and the first character of lines that roff would read as requests.
pub fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| {
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}")
        } else {
            line.to_owned()
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_becomes_a_request() {
        assert_eq!(roff(".so x\n'a-b\\c\n"), "\\&.so x\n\\&'a\\-b\\ec\n");
        assert_eq!(roff("a.b"), "a.b");
    }
}
