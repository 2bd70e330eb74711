//! Samples with addresses, as `perf script` and `perf mem report --dump-raw-samples` print them.
//!
//! A line of `perf script` has command, thread, CPU, time, period, event and `:`, then the fields selected with `-F`:
//! first the address, then the data source, then the instruction's address, each hexadecimal. A line with only an
//! instruction's address looks like a line with only an address, unless the symbol is printed too. So a line is used
//! only if its address is followed by nothing or by another address. For the tracepoints `exceptions:page_fault_user`
//! and `page_fault_kernel`, the field `address=` is used. A dump of `perf mem` begins with `# PID, TID, IP, ADDR`, and
//! the second number with 0x is the address. If fields are separated by spaces, perf writes `0x016` instead of `0x`
//! before this address; the 016 is removed.
//!
//! Addresses of different processes are not distinguished.
//!
//! Source: `process_event` in `tools/perf/builtin-script.c`, `dump_raw_samples` in `tools/perf/builtin-mem.c` of Linux
//! 6.1, and `perf-script(1)`.

use std::io::BufRead;

use super::head::Head;
use super::lines::{hex, lines, words};
use super::sink::Take;
use crate::error::ReferenceErrorKind;

/// Beginning of a dump of `perf mem`.
const DUMP: &[u8] = b"# PID, TID, IP, ADDR, ";
const EXPECTED: &str =
    "sample with an address, as perf script -F comm,tid,time,event,addr prints it";
/// Minimum number of digits for which a hexadecimal number is taken for an address, and not for a word or a weight.
const MIN_DIGITS: usize = 6;

/// Returns true for a dump of `perf mem`, and for a file whose first line that is not a comment contains a time and an
/// event.
pub(super) fn begins(head: &Head<'_>) -> bool {
    head.is_text && (head.first.starts_with(DUMP) || head.content.is_some_and(is_sample))
}

/// Reads the page of each sample's address.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    let mut dump = false;
    lines(input, take, |line, sink| {
        if line.starts_with(b"#") {
            dump |= line.starts_with(DUMP);
            return Ok(());
        }
        let address = if dump { dumped(line) } else { scripted(line) };
        sink.range(0, address.ok_or(EXPECTED)?, 1, false)
    })
}

fn is_sample(line: &[u8]) -> bool {
    words(line).any(is_time) && fields(line).is_some()
}

/// Returns the address in a line of a `perf mem` dump: the second number with 0x. `None` if the line does not begin
/// with a process ID.
fn dumped(line: &[u8]) -> Option<u64> {
    let mut places = (0..line.len()).filter(|place| line[*place..].starts_with(b"0x"));
    let (_instruction, place) = (places.next()?, places.next()?);
    let digits = &line[place + 2..];
    let end = digits.iter().position(|byte| !byte.is_ascii_hexdigit());
    let digits = &digits[..end.unwrap_or(digits.len())];
    let spoiled = digits.strip_prefix(b"016").filter(|rest| !rest.is_empty());
    line[0]
        .is_ascii_digit()
        .then(|| hex(spoiled.unwrap_or(digits)))?
}

/// Returns the address in a line of `perf script`; `None` if there is none. Examines the fields after the event, or all
/// fields if no event is printed.
fn scripted(line: &[u8]) -> Option<u64> {
    let event = fields(line);
    let mut words = words(event.unwrap_or(line));
    let first = words.next()?;
    if let Some(address) = first.strip_prefix(b"address=") {
        return hex(address);
    }
    let address = bare(first)?;
    let Some(second) = words.next() else {
        return Some(address);
    };
    if event.is_none() {
        return (is_address(second) && words.next().is_none()).then_some(address);
    }
    // If it is followed by a description in words, the first number is a data source.
    if second.starts_with(b"|") {
        return None;
    }
    let followed = is_address(second) || words.any(is_address);
    followed.then_some(address)
}

/// Returns the part of a line after the event; `None` if there is no event. The event is the first word after the time
/// that ends with a colon, or the first such word of the line if there is no time.
fn fields(line: &[u8]) -> Option<&[u8]> {
    let mut found = None;
    let mut timed = false;
    let mut begin = 0;
    for word in line.split(u8::is_ascii_whitespace) {
        let end = begin + word.len();
        if is_time(word) {
            (timed, found) = (true, None);
        } else if word.len() > 1 && word.ends_with(b":") && found.is_none() {
            found = Some(&line[end..]);
            if timed {
                break;
            }
        }
        begin = end + 1;
    }
    found
}

/// Returns true for a time in a sample: seconds with a fraction, followed by a colon.
fn is_time(word: &[u8]) -> bool {
    let Some(number) = word.strip_suffix(b":") else {
        return false;
    };
    let mut parts = number.split(|byte| *byte == b'.');
    let digits = |part: Option<&[u8]>| {
        part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    };
    digits(parts.next()) && digits(parts.next()) && parts.next().is_none()
}

/// Parses an address as perf prints it: hexadecimal, without 0x.
fn bare(word: &[u8]) -> Option<u64> {
    super::lines::number(word, 16)
}

fn is_address(word: &[u8]) -> bool {
    word.len() >= MIN_DIGITS && bare(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_an_instruction_with_its_symbol() {
        let lines: [(&[u8], Option<u64>); 14] = [
            (b"t  3924  1137.038707:  1 page-faults:  ffffffff817554ea elf_load+0x28a ([kernel.kallsyms])", None),
            (b"t  3924  1137.038707:  1 page-faults:  55f71746a018 [unknown] (/tmp/t) ffffffff817554ea elf_load+0x28a ([k])", Some(0x55f7_1746_a018)),
            (b"Web Content 7/9 [001] 7.5: page-faults:u: 7ff421a7b110", Some(0x7ff4_21a7_b110)),
            (b"a:b 12: c 39 11.0: 1 cpu/mem-loads,ldlat=30/P: ffff8881 5080021 |OP LOAD|LVL L1 hit| 10 7f12345 f+0x1", Some(0xffff_8881)),
            (b"t 39 11.0: 1 cpu/mem-loads/P: 5080021 |OP LOAD|LVL L1 hit|SNP None 7f12345 f+0x1", None),
            (b"t 39 [000] 11.0: exceptions:page_fault_user: address=0x7f5e4e3a0000 ip=0x7f error_code=0x6", Some(0x7f5e_4e3a_0000)),
            (b"t 39 [000] 11.0: exceptions:page_fault_user: address=_start ip=0x7f", None),
            (b"55f71746a018", Some(0x55f7_1746_a018)),
            (b"55f71746a018 ffffffff817554ea", Some(0x55f7_1746_a018)),
            (b"55f71746a018 elf_load", None),
            (b"t 39 11.0: page-faults:", None),
            (b"t 39 11.0:", None),
            (b"\t    7ff421a61b70 _start+0x0 (/usr/lib/ld.so)", None),
            (b"", None),
        ];
        for (line, address) in lines {
            assert_eq!(scripted(line), address, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn the_address_of_a_dump_is_its_second_number_without_what_perf_puts_before_the_first() {
        assert_eq!(
            dumped(b"39  39 0xffffffff817554ea 0x01655f71746a018     0 0x1e05080021 [k]:f"),
            Some(0x55f7_1746_a018)
        );
        assert_eq!(
            dumped(b"39 39 0xffffffff817554ea 0x16abc 0 0x1e05080021 [k]:f"),
            Some(0x16abc)
        );
        assert_eq!(
            dumped(b"39,39,0xffffffff817554ea,0x7ff421a7b110,0,0x1e,x:y"),
            Some(0x7ff4_21a7_b110)
        );
        assert_eq!(dumped(b"39,39,0x0,0x0,0,0x1e,x:y"), Some(0));
        assert_eq!(dumped(b"39 39 0xffffffff817554ea"), None);
        assert_eq!(dumped(b"x 0x1 0x2"), None);
    }
}
