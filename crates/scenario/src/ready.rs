//! Detects when a server is ready: a listening port, a line of output, or an existing file.

use std::fs;
use std::path::Path;

use regex_lite::Regex;

use crate::running::RunningProgram;

/// State of a listening socket in `/proc/net/tcp`. Source: kernel `Documentation/networking/proc_net_tcp.rst`.
const LISTENS: &str = "0A";
/// How to write a condition, for error messages.
const FORM: &str = "write 'port N', 'line REGEX' or 'file PATH', as in --ready 'port 6379'";

/// Condition under which a server is ready.
#[derive(Clone, Debug)]
pub(crate) enum Ready {
    /// A process listens on this TCP port.
    Port(u16),
    /// A line of the server's standard output or standard error matches this expression.
    Line(Regex),
    /// This file exists. The path is in the server's root.
    File(String),
}

impl Ready {
    /// Parses `port N`, `line REGEX` or `file PATH`. The error says what is wrong.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.trim().split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        match (kind, rest) {
            ("port" | "line" | "file", "") => Err(format!("`{text}` ends too soon: {FORM}")),
            ("port", number) => match number.parse() {
                Ok(0) | Err(_) => Err(format!("`{number}` is no port: give 1 to 65535")),
                Ok(port) => Ok(Self::Port(port)),
            },
            ("line", pattern) => {
                // The expression is matched against each line separately.
                let compiled = Regex::new(&format!("(?m:{pattern})"));
                compiled
                    .map(Self::Line)
                    .map_err(|why| format!("the expression of `{text}` cannot be read: {why}"))
            }
            ("file", path) => Ok(Self::File(path.to_owned())),
            _ => Err(format!(
                "`{text}` says not when the server is ready: {FORM}"
            )),
        }
    }

    /// Returns true if the server is ready. `has_written` is true if the server wrote output since the last call.
    /// `root` is its root directory, and `folder` its working directory in the root.
    pub(crate) fn is_there(
        &self,
        server: &RunningProgram,
        has_written: bool,
        root: &Path,
        folder: &str,
    ) -> bool {
        match self {
            Self::Port(port) => ["tcp", "tcp6"].iter().any(|table| {
                let text = fs::read_to_string(format!("/proc/net/{table}"));
                text.is_ok_and(|text| listens(&text, *port))
            }),
            Self::Line(regex) => {
                has_written
                    && [&server.output, &server.errors]
                        .iter()
                        .any(|capture| regex.is_match(&capture.text()))
            }
            Self::File(path) => {
                // Symbolic links are not followed, because they would be resolved outside of the root.
                let inside = Path::new(folder).join(path);
                let inside = inside.strip_prefix("/").unwrap_or(&inside);
                fs::symlink_metadata(root.join(inside)).is_ok()
            }
        }
    }
}

/// Returns true if a table of sockets (as in `/proc/net/tcp`) has one that listens on this port.
fn listens(table: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().is_some_and(|word| word.ends_with(&end));
        local && words.nth(1) == Some(LISTENS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_a_line_or_a_file_is_read_and_nothing_else() {
        assert!(matches!(Ready::read("port 6379"), Ok(Ready::Port(6379))));
        assert!(
            matches!(Ready::read("file /run/x y"), Ok(Ready::File(path)) if path == "/run/x y")
        );
        let Ok(Ready::Line(line)) = Ready::read("line ^ready on [0-9]+$") else {
            panic!("no line")
        };
        assert!(line.is_match("first\nready on 80\nlast") && !line.is_match("not ready on 80"));
        for (wrong, word) in [
            ("port", "too soon"),
            ("port 0", "no port"),
            ("port 65536", "no port"),
            ("port x", "no port"),
            ("line", "too soon"),
            ("line (", "cannot be read"),
            ("6379", "port N"),
            ("", "port N"),
        ] {
            let said = Ready::read(wrong).unwrap_err();
            assert!(
                said.contains(word) && !said.contains('\n'),
                "{wrong}: {said}"
            );
        }
    }

    #[test]
    fn a_socket_counts_only_if_it_listens_on_that_very_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000
   1: 0100007F:0050 0100007F:18EC 01 00000000:00000000
   2: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000";
        assert!(listens(table, 6379) && listens(table, 8080));
        assert!(!listens(table, 80), "it is connected, and listens not");
        assert!(!listens(table, 6380) && !listens("", 6379));
    }
}
