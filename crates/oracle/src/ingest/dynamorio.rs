//! Memory traces printed by DynamoRIO: by the view tool of drmemtrace, and by the samples memtrace_simple and
//! memtrace_x86.
//!
//! A record of the view tool is `RECORD INSTRUCTION: W0.T1 KIND SIZE byte(s) @ 0xADDRESS …`. The number after W is the
//! workload, and each workload has its own address space. Fetched instructions, reads and writes are references;
//! prefetches, flushes and markers are ignored. The samples print `ADDRESS: SIZE, r` (or `w`, or an instruction's
//! name), and `INSTRUCTION,r,SIZE,ADDRESS`.
//!
//! Source: `clients/drcachesim/tools/view.cpp`, the section "Human-Readable View" of
//! `clients/drcachesim/docs/drcachesim.dox.in`, `api/samples/memtrace_simple.c` and `api/samples/memtrace_x86.c` of
//! <https://github.com/DynamoRIO/dynamorio>.

use std::io::BufRead;

use super::head::Head;
use super::lines::{decimal, hex, lines, words};
use super::sink::Take;
use crate::error::ReferenceErrorKind;

const SIMPLE: &[u8] = b"Format: <data address>: <data size>, <(r)ead/(w)rite/opcode>";
const X86: &[u8] = b"Format: <instr address>,<(r)ead/(w)rite>,<data size>,<data address>";
const VIEW: &[u8] = b"Output format:";
/// How lines of the view tool begin that are not records.
const AROUND: [&[u8]; 4] = [VIEW, b"<--record#->", b"------", b"View tool results:"];
const EXPECTED: &str = "record as DynamoRIO prints it";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    space: u64,
    address: u64,
    bytes: u64,
    write: bool,
}

/// Content of a line.
enum Line {
    Access(Access),
    /// The line contains no reference.
    Other,
}

/// Function that parses a line. Returns `None` if the line does not match the format.
type Parse = fn(&[u8]) -> Option<Line>;

pub(super) fn begins(head: &Head<'_>) -> bool {
    let first = head.first;
    head.is_text && ([SIMPLE, X86, VIEW].contains(&first) || view(first).is_some())
}

/// Reads the pages of all memory accesses.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    let mut parse: Parse = view;
    lines(input, take, |line, sink| {
        match line {
            SIMPLE => parse = simple,
            X86 => parse = x86,
            _ => {
                if let Line::Access(access) = parse(line).ok_or(EXPECTED)? {
                    sink.range(access.space, access.address, access.bytes, access.write)?;
                }
            }
        }
        Ok(())
    })
}

fn view(line: &[u8]) -> Option<Line> {
    if AROUND.iter().any(|around| line.starts_with(around)) {
        return Some(Line::Other);
    }
    let mut words = words(line);
    decimal(words.next()?)?;
    let instruction = words.next()?;
    if instruction == b":" {
        // A trace ends with the number of instructions.
        return words
            .eq([&b"total"[..], b"instructions"])
            .then_some(Line::Other);
    }
    decimal(instruction.strip_suffix(b":")?)?;
    let space = workload(words.next()?)?;
    let kind = words.next()?;
    let byte_of_instruction = kind.len() == 2 && hex(kind).is_some();
    if kind.starts_with(b"<") || byte_of_instruction {
        return Some(Line::Other);
    }
    let bytes = decimal(words.next()?)?;
    if words.next()? != b"byte(s)" || words.next()? != b"@" {
        return None;
    }
    let address = hex(words.next()?)?;
    // The instruction, or its kind, must follow: otherwise the line may have been cut within the address.
    words.next()?;
    let write = match kind {
        b"ifetch" | b"read" => false,
        b"write" => true,
        _ => return Some(Line::Other),
    };
    Some(Line::Access(Access {
        space,
        address,
        bytes,
        write,
    }))
}

/// Returns the workload number of a thread such as `W0.T1`; `None` if the text does not match or the number is too
/// large. Threads without a workload, as older versions print them, belong to workload 0.
fn workload(thread: &[u8]) -> Option<u64> {
    let Some(rest) = thread.strip_prefix(b"W") else {
        decimal(thread.strip_prefix(b"T").unwrap_or(thread))?;
        return Some(0);
    };
    let dot = rest.iter().position(|byte| *byte == b'.')?;
    decimal(rest[dot + 1..].strip_prefix(b"T")?)?;
    decimal(&rest[..dot]).filter(|workload| *workload < super::sink::MAX_SPACES as u64)
}

fn simple(line: &[u8]) -> Option<Line> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let mut rest = line[colon + 1..].split(|byte| *byte == b',');
    let address = hex(&line[..colon])?;
    let bytes = decimal(rest.next()?.trim_ascii())?;
    let kind = rest.next().filter(|kind| !kind.trim_ascii().is_empty())?;
    rest.next().is_none().then_some(Line::Access(Access {
        space: 0,
        address,
        bytes,
        write: kind.trim_ascii() == b"w",
    }))
}

fn x86(line: &[u8]) -> Option<Line> {
    let mut fields = line.split(|byte| *byte == b',');
    hex(fields.next()?)?;
    let write = match fields.next()? {
        b"r" => false,
        b"w" => true,
        _ => return None,
    };
    let bytes = decimal(fields.next()?.trim_ascii())?;
    let address = hex(fields.next()?.trim_ascii())?;
    fields.next().is_none().then_some(Line::Access(Access {
        space: 0,
        address,
        bytes,
        write,
    }))
}
