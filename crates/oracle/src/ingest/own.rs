//! Reference files of pagetide itself, in the forms that the crate `reference` can read.

use std::io::BufRead;

use pagetide_reference::{Form, MAX_PAGES, Reader};

use super::head::Head;
use super::lines::{decimal, words};
use super::sink::Take;
use crate::error::ReferenceErrorKind;

/// Returns true if the file is in pagetide's binary form, or if its first line consists of two decimal numbers: a page
/// and a count.
pub(super) fn begins(head: &Head<'_>) -> bool {
    if head.is_text {
        return words(head.first).count() == 2
            && words(head.first).all(|word| decimal(word).is_some());
    }
    Reader::new(head.bytes, MAX_PAGES).is_ok_and(|reader| reader.form() == Form::Binary)
}

/// Reads the page number of each reference.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    let mut reader = Reader::new(input, MAX_PAGES)?;
    let mut pages = [0; 1024];
    loop {
        let filled = reader.fill(&mut pages)?;
        let ids: Vec<u64> = pages[..filled].iter().copied().map(u64::from).collect();
        take(&ids, &[])?;
        if filled < pages.len() {
            return Ok(());
        }
    }
}
