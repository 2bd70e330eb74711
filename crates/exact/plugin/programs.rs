//! Finds the functions of programs: compares the code that the guest executes with the executable parts of the files of
//! the program's root.
//!
//! The plugin does not know where the guest has mapped which file, and different programs may use the same addresses. So
//! each translated block is compared with the files' bytes. A place at which one block of a file was found is tried
//! first for the next blocks.

use alloc::vec::Vec;

use crate::format::MAGIC;
use crate::span::Span;

/// Minimum size in bytes of a block for which all files are searched. A shorter block could match by chance.
const MIN_BYTES: usize = 8;
/// Size of a page. Files are mapped in whole pages.
const PAGE: u64 = 4096;

/// An executable part of a file, which is mapped as a whole.
struct Segment {
    /// Address of the first byte as written in the file.
    start: u64,
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// Mapping of a segment: the difference between its addresses in the guest and in the file.
#[derive(Clone, Copy)]
struct Mapping {
    segment: usize,
    bias: u64,
}

/// The executable parts of all files, and the mappings found so far.
#[derive(Default)]
pub struct Programs {
    segments: Vec<Segment>,
    mappings: Vec<Mapping>,
}

/// The file and mapping to which a block of code belongs.
#[derive(Clone, Copy)]
pub struct FileOrigin(Mapping);

impl Programs {
    /// Parses the file of programs, whose format is in `src/profiler.rs`. Function numbers must be below `functions`.
    /// `None` if the file is damaged.
    pub fn read(bytes: &[u8], functions: usize) -> Option<Self> {
        let mut at = 0;
        let mut number = |bytes: &[u8]| {
            let found = bytes.get(at..at + 8)?.try_into().ok()?;
            at += 8;
            Some(u64::from_le_bytes(found))
        };
        (number(bytes)? == MAGIC).then_some(())?;
        let mut segments = Vec::new();
        for _ in 0..number(bytes)? {
            let (start, size, count) = (number(bytes)?, number(bytes)?, number(bytes)?);
            let mut spans = Vec::new();
            for _ in 0..count {
                let (start, what) = (number(bytes)?, number(bytes)?);
                spans.push(Span::new(start, what));
                ((spans.last()?.function as usize) < functions).then_some(())?;
            }
            segments.push((start, size as usize, spans));
        }
        let mut code = bytes.get(at..)?;
        let mut programs = Self::default();
        for (start, size, spans) in segments {
            let (own, rest) = code.split_at_checked(size)?;
            code = rest;
            programs.segments.push(Segment {
                start,
                bytes: own.to_vec(),
                spans,
            });
        }
        Some(programs)
    }

    /// True if there are no files of programs.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// File and mapping of the block at `address` that consists of the bytes `code`; `None` if it belongs to no file,
    /// or possibly to several, or if it is too short to tell.
    pub fn place(&mut self, address: u64, code: &[u8]) -> Option<FileOrigin> {
        let known = self.mappings.iter().find(|mapping| {
            let segment = &self.segments[mapping.segment];
            segment.has(address.wrapping_sub(mapping.bias), code)
        });
        if let Some(known) = known {
            return Some(FileOrigin(*known));
        }
        if code.len() < MIN_BYTES {
            return None;
        }
        let mut found = None;
        for (at, segment) in self.segments.iter().enumerate() {
            let first = segment.start.wrapping_add(address.wrapping_sub(segment.start) % PAGE);
            let end = segment.start + segment.bytes.len() as u64;
            for own in (first..end).step_by(PAGE as usize) {
                if segment.has(own, code) {
                    if found.is_some() {
                        return None;
                    }
                    found = Some(Mapping {
                        segment: at,
                        bias: address.wrapping_sub(own),
                    });
                }
            }
        }
        self.mappings.extend(found);
        found.map(FileOrigin)
    }

    /// Address as written in the file of an address near a block of this place.
    pub const fn address_in_file(&self, FileOrigin(mapping): FileOrigin, address: u64) -> u64 {
        address.wrapping_sub(mapping.bias)
    }

    /// Function at an address near a block of this place, and the function's flags if the address is its start. `None`
    /// if the address is outside of the file's executable part.
    pub fn function(&self, FileOrigin(mapping): FileOrigin, address: u64) -> Option<(u32, u32)> {
        let segment = &self.segments[mapping.segment];
        let own = address.wrapping_sub(mapping.bias);
        let offset = own.checked_sub(segment.start)?;
        (offset < segment.bytes.len() as u64).then_some(())?;
        Span::find(&segment.spans, own)
    }
}

impl Segment {
    /// True if the bytes at an address as written in the file are `code`.
    fn has(&self, address: u64, code: &[u8]) -> bool {
        let offset = address.wrapping_sub(self.start);
        offset < self.bytes.len() as u64
            && self.bytes.get(offset as usize..).is_some_and(|bytes| bytes.starts_with(code))
    }
}
