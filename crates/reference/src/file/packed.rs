//! The binary form in memory, read without copying.

use super::binary::{HEADER, Header, Step, TRAILER, check_trailer};
use super::error::{Position, ReadError};
use crate::generate::Generator;

/// Bytes of the binary form, checked once from end to end, so that reading references from them cannot fail.
///
/// Nothing is copied. The references of a file are passed in this form to a guest, which cannot open the file. If the
/// bytes are too large to hold in memory, use a [`Reader`](super::Reader) over a stream instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedFile<'a> {
    steps: &'a [u8],
    header: Header,
    highest: u32,
}

impl<'a> PackedFile<'a> {
    /// Checks header, steps, page range and checksum. Fails if one is wrong or a page index is not below `pages`.
    pub fn new(bytes: &'a [u8], pages: u32) -> Result<Self, ReadError> {
        let header = Header::read(bytes)?;
        let mut rest = &bytes[HEADER..];
        let mut given = 0;
        let mut page = 0;
        let mut highest = 0;
        while given < header.refs {
            let (step, length) = Step::take(rest, Position::Reference(given + 1))?;
            rest = &rest[length..];
            // The first and the last page of a run are bounds for all its pages.
            for walked in [1, step.times] {
                let reached = i64::try_from(walked)
                    .ok()
                    .and_then(|walked| step.distance.checked_mul(walked))
                    .and_then(|way| i64::from(page).checked_add(way))
                    .and_then(|reached| u32::try_from(reached).ok())
                    .filter(|&reached| reached < header.pages);
                let Some(reached) = reached else {
                    return Err(ReadError::Damaged {
                        what: "a step leads outside the file's own range",
                    });
                };
                if reached >= pages {
                    return Err(ReadError::OutOfRange {
                        place: Position::Reference(given + walked),
                        page: reached.to_string(),
                        pages,
                    });
                }
                highest = highest.max(reached);
                if walked == step.times {
                    page = reached;
                    break;
                }
            }
            given += step.times;
        }
        if given > header.refs {
            return Err(ReadError::Damaged {
                what: "a step goes on beyond the last reference",
            });
        }
        let (summed, trailer) = bytes.split_at(bytes.len() - rest.len());
        check_trailer(
            trailer,
            crc32fast::hash(summed),
            Position::Reference(header.refs),
        )?;
        Ok(Self {
            steps: &bytes[HEADER..bytes.len() - TRAILER],
            header,
            highest,
        })
    }

    /// Returns the number of references in the file.
    pub fn refs(&self) -> u64 {
        self.header.refs
    }

    /// Returns the number of pages in the smallest range that contains all references: the highest page index plus one.
    pub fn pages(&self) -> u32 {
        self.highest + 1
    }
}

/// A position in the references of a [`PackedFile`]. After the last reference it continues with the first.
#[derive(Debug, Clone)]
pub(crate) struct PackedReferences<'a> {
    packed: PackedFile<'a>,
    rest: &'a [u8],
    page: u32,
    step: Step,
}

impl<'a> PackedReferences<'a> {
    pub(crate) fn new(packed: PackedFile<'a>) -> Self {
        Self {
            packed,
            rest: packed.steps,
            page: 0,
            step: Step {
                distance: 0,
                times: 0,
            },
        }
    }
}

impl Generator for PackedReferences<'_> {
    #[inline]
    fn next_page(&mut self) -> u32 {
        if self.step.times == 0 {
            if self.rest.is_empty() {
                self.rest = self.packed.steps;
                self.page = 0;
            }
            // `PackedFile::new` has already checked every step.
            if let Some((step, length)) = Step::read(self.rest) {
                self.step = step;
                self.rest = &self.rest[length..];
            }
        }
        self.step.times = self.step.times.saturating_sub(1);
        self.page = u32::try_from(i64::from(self.page) + self.step.distance).unwrap_or(0);
        self.page
    }
}
