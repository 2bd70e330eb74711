//! Twitter's cache traces: CSV of time, key, key size, value size, client, operation and time to live.
//!
//! Each key is one object, whatever its size. The operations get and gets read, all others write. Keys may contain
//! commas.
//!
//! Source: the README of <https://github.com/twitter/cache-trace>, and J. Yang, Y. Yue and R. Vinayak, "A large scale
//! analysis of hundreds of in-memory cache clusters at Twitter", OSDI 2020.

use std::io::BufRead;

use super::csv::id_of_word;
use super::head::Head;
use super::lines::{decimal, lines};
use super::sink::Take;
use crate::error::ReferenceErrorKind;

const OPERATIONS: [&[u8]; 11] = [
    b"get", b"gets", b"set", b"add", b"replace", b"cas", b"append", b"prepend", b"delete", b"incr",
    b"decr",
];
const EXPECTED: &str =
    "request of Twitter's traces (time, key, two sizes, client, operation, time to live)";

/// Parses a request: its key, and true if it writes. `None` if the line has another format.
fn request(line: &[u8]) -> Option<(&[u8], bool)> {
    let mut from_the_end = line.rsplitn(6, |byte| *byte == b',');
    let _time_to_live = decimal(from_the_end.next()?)?;
    let operation = from_the_end.next()?;
    let known = OPERATIONS.iter().position(|known| *known == operation)?;
    for _client_and_sizes in 0..3 {
        decimal(from_the_end.next()?)?;
    }
    let rest = from_the_end.next()?;
    let comma = rest.iter().position(|byte| *byte == b',')?;
    decimal(&rest[..comma])?;
    let key = &rest[comma + 1..];
    (!key.is_empty()).then_some((key, known > 1))
}

pub(super) fn begins(head: &Head<'_>) -> bool {
    head.is_text && request(head.first).is_some()
}

/// Reads all requests. The id of an object is a hash of its key.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    lines(input, take, |line, sink| {
        let (key, write) = request(line).ok_or(EXPECTED)?;
        sink.object(id_of_word(key), write);
        Ok(())
    })
}
