//! The reader of files of references, for all forms.

use std::io::BufRead;
use std::iter::FusedIterator;

use super::binary::{MAGIC, Steps, wait};
use super::error::ReadError;
use super::form::Form;
use super::text::Lines;

/// Iterator over the references in a stream of any form. The form is determined from the first bytes.
///
/// Ends after the first error. A stream without references is an error.
#[derive(Debug)]
pub struct Reader<R> {
    form: Form,
    source: Source<R>,
    ended: bool,
}

#[derive(Debug)]
enum Source<R> {
    Lines(Lines<R>),
    Steps(Steps<R>),
}

impl<R: BufRead> Reader<R> {
    /// Determines the form of the stream from its first bytes. Page indices must be below `pages`; others are errors
    /// while reading.
    pub fn new(mut input: R, pages: u32) -> Result<Self, ReadError> {
        wait(&mut input)?;
        let (form, source) = match input.fill_buf()?.first() {
            None => return Err(ReadError::Empty),
            Some(&first) if first == MAGIC[0] => {
                (Form::Binary, Source::Steps(Steps::new(input, pages)?))
            }
            Some(_) => {
                let lines = Lines::new(input, pages)?;
                (lines.form(), Source::Lines(lines))
            }
        };
        Ok(Self {
            form,
            source,
            ended: false,
        })
    }

    /// Returns the form of the stream, as determined from its first bytes.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Writes the next references to the start of `batch` and returns their number. It is less than the length of
    /// `batch` only at the end of the stream.
    pub fn fill(&mut self, batch: &mut [u32]) -> Result<usize, ReadError> {
        for (filled, place) in batch.iter_mut().enumerate() {
            match self.next() {
                Some(page) => *place = page?,
                None => return Ok(filled),
            }
        }
        Ok(batch.len())
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<u32, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let page = match &mut self.source {
            Source::Lines(lines) => lines.next_page(),
            Source::Steps(steps) => steps.next_page(),
        };
        self.ended = !matches!(page, Ok(Some(_)));
        page.transpose()
    }
}

impl<R: BufRead> FusedIterator for Reader<R> {}
