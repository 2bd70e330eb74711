//! A reference string from a pattern or a file, which has been checked and can be written in any form.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::file::{
    FileError, FileSummary, Form, check_file, open_file, write_binary, write_counts, write_text,
};
use crate::limits::MAX_PAGES;
use crate::pattern::{Pattern, StringError};
use crate::references::tally;
use crate::{Rng, STRINGS};

/// A reference string that has been checked. Its references can be read any number of times.
#[derive(Clone, Debug)]
pub struct Source {
    origin: Origin,
    pages: u32,
    refs: u64,
}

#[derive(Clone, Debug)]
enum Origin {
    Pattern {
        pattern: Pattern,
        /// Requested number of references. The original form of a pattern may generate more.
        asked: u64,
        seed: u64,
    },
    File {
        path: PathBuf,
        form: Form,
    },
}

/// Summary of a reference string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StringFacts {
    /// Text of the pattern, or `file:PATH`.
    pub pattern: String,
    /// Number of pages in the range.
    pub pages: u32,
    /// Number of references in the string.
    pub refs: u64,
    /// Seed of the pattern; `None` if the string comes from a file.
    pub seed: Option<u64>,
    /// Form of the file; `None` if the string comes from a pattern.
    pub form: Option<Form>,
    /// Number of pages with at least one reference.
    pub pages_referenced: usize,
    /// Number of references to the most referenced page.
    pub most_references_of_a_page: u32,
    /// Names and versions of patterns and random generator; `None` if the string comes from a file.
    pub generator: Option<String>,
}

impl Display for StringFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} references over {} pages, {} of them referenced, at most {} times",
            self.pattern,
            self.refs,
            self.pages,
            self.pages_referenced,
            self.most_references_of_a_page
        )?;
        match &self.generator {
            Some(generator) => write!(f, "\nmade by {generator}"),
            None => Ok(()),
        }
    }
}

/// Why a string cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file does not contain the requested number of references.
    #[error("{} holds {found} references, not {asked}: leave --refs out", .path.display())]
    OtherLength {
        /// Path of the file of references.
        path: PathBuf,
        /// Number of references in the file.
        found: u64,
        /// Requested number of references.
        asked: u64,
    },
    /// A pattern without a file was given without a range or without a number of references.
    #[error("a pattern needs a range and a length: give --pages N and --refs M")]
    NoLength,
    /// The pattern cannot generate the string.
    #[error(transparent)]
    Pattern(#[from] StringError),
    /// The file cannot be read, or it changed after it was checked.
    #[error(transparent)]
    File(#[from] FileError),
    /// The references cannot be written to the output.
    #[error("writing the references")]
    Write(#[from] io::Error),
}

impl SourceError {
    /// Returns true if the user's request was invalid; false if a file cannot be read or written.
    pub fn is_user_error(&self) -> bool {
        matches!(
            self,
            Self::OtherLength { .. } | Self::NoLength | Self::Pattern(_)
        )
    }
}

impl Source {
    /// Returns the string of a pattern. If the pattern names a file, range and length default to those of the file, and
    /// the call fails if another length is requested. Without a file, fails if `pages` or `refs` is `None`.
    pub fn of(
        pattern: Pattern,
        pages: Option<u32>,
        refs: Option<u64>,
        seed: u64,
    ) -> Result<Self, SourceError> {
        if let Some(path) = pattern.path() {
            let source = Self::file(path, pages)?;
            return match refs {
                Some(asked) if asked != source.refs => Err(SourceError::OtherLength {
                    path: path.to_owned(),
                    found: source.refs,
                    asked,
                }),
                _ => Ok(source),
            };
        }
        match (pages, refs) {
            (Some(pages), Some(refs)) => Ok(Self::pattern(pattern, pages, refs, seed)?),
            _ => Err(SourceError::NoLength),
        }
    }

    /// Returns the string that `pattern` generates. Fails if there is none. `pattern` must not be [`Pattern::File`].
    pub fn pattern(
        pattern: Pattern,
        pages: u32,
        refs: u64,
        seed: u64,
    ) -> Result<Self, StringError> {
        pattern.check(pages, refs)?;
        Ok(Self {
            refs: pattern.total(pages, refs)?,
            pages,
            origin: Origin::Pattern {
                pattern,
                asked: refs,
                seed,
            },
        })
    }

    /// Returns the string in a file. Reads the file once to check it. Page indices must be below `pages`; `None` stands
    /// for the smallest range that contains all of them.
    pub fn file(path: &Path, pages: Option<u32>) -> Result<Self, FileError> {
        let FileSummary {
            form,
            refs,
            pages: smallest,
        } = check_file(path, pages.unwrap_or(MAX_PAGES))?;
        let path = path.to_owned();
        Ok(Self {
            origin: Origin::File { path, form },
            pages: pages.unwrap_or(smallest),
            refs,
        })
    }

    /// Returns the number of references in the string.
    pub fn refs(&self) -> u64 {
        self.refs
    }

    /// Calls `take` with an iterator over all references and returns the result. Fails if the file changed since it was
    /// checked.
    fn each<T>(
        &self,
        take: impl FnOnce(&mut dyn Iterator<Item = u32>) -> T,
    ) -> Result<T, SourceError> {
        match &self.origin {
            Origin::Pattern {
                pattern,
                asked,
                seed,
            } => Ok(take(&mut pattern.references(self.pages, *asked, *seed)?)),
            Origin::File { path, .. } => {
                let mut failure = None;
                let mut all = open_file(path, self.pages)?
                    .map_while(|page| page.map_err(|error| failure = Some(error)).ok());
                let taken = take(&mut all);
                drop(all);
                match failure {
                    Some(reason) => Err(FileError::new(path, reason).into()),
                    None => Ok(taken),
                }
            }
        }
    }

    /// Returns the number of references of each page, in page order. Fails if the file changed since it was checked.
    pub fn tally(&self) -> Result<Vec<u32>, SourceError> {
        match &self.origin {
            Origin::Pattern {
                pattern,
                asked,
                seed,
            } => Ok(pattern.counts(self.pages, *asked, *seed)?),
            Origin::File { .. } => self.each(|all| tally(all, self.pages)),
        }
    }

    /// Writes all references to `out` in the given form.
    pub fn write(&self, form: Form, out: &mut dyn Write) -> Result<(), SourceError> {
        match form {
            Form::Text => self.each(|all| write_text(out, all))??,
            Form::Counts => write_counts(out, &self.tally()?)?,
            Form::Binary => self.each(|all| write_binary(out, self.pages, self.refs, all))??,
        }
        Ok(())
    }

    /// Computes the summary of the string. Reads all references.
    pub fn facts(&self) -> Result<StringFacts, SourceError> {
        let counts = self.tally()?;
        let (pattern, seed, form) = match &self.origin {
            Origin::Pattern { pattern, seed, .. } => (pattern.to_string(), Some(*seed), None),
            Origin::File { path, form } => (format!("file:{}", path.display()), None, Some(*form)),
        };
        Ok(StringFacts {
            pattern,
            pages: self.pages,
            refs: self.refs,
            seed,
            form,
            pages_referenced: counts.iter().filter(|count| **count > 0).count(),
            most_references_of_a_page: counts.iter().copied().max().unwrap_or(0),
            generator: seed.map(|_| format!("{STRINGS}, {}", Rng::NAME)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_written_in_any_form_reads_back_with_the_same_counts() {
        let folder = tempfile::tempdir().unwrap();
        let pattern: Pattern = "zipf(1.1)".parse().unwrap();
        let source = Source::pattern(pattern, 50, 1000, 7).unwrap();
        for form in [Form::Text, Form::Counts, Form::Binary] {
            let path = folder.path().join(form.to_string());
            let mut file = std::fs::File::create(&path).unwrap();
            source.write(form, &mut file).unwrap();
            let back = Source::file(&path, Some(50)).unwrap();
            assert_eq!(back.refs(), 1000);
            assert_eq!(back.tally().unwrap(), source.tally().unwrap(), "{form}");
            assert_eq!(back.facts().unwrap().form, Some(form));
        }
    }
}
