//! Errors of parsing a pattern and of generating its string.

use std::path::PathBuf;

use thiserror::Error;

use crate::limits::{MAX_PAGES, MAX_REFS};

/// Reasons why a pattern cannot generate a string.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StringError {
    /// The range has no pages.
    #[error("cannot make references over 0 pages: give a range of at least {least} page(s)")]
    NoPages {
        /// Minimum number of pages for this pattern.
        least: u32,
    },
    /// The range is too small for the pattern.
    #[error("cannot make {pattern} references over {pages} page(s): give at least {least}")]
    TooFewPages {
        /// Name of the pattern.
        pattern: &'static str,
        /// Requested number of pages.
        pages: u32,
        /// Minimum number of pages for this pattern.
        least: u32,
    },
    /// The range is larger than [`MAX_PAGES`].
    #[error("cannot make references over {pages} pages: give at most {MAX_PAGES}")]
    TooManyPages {
        /// Requested number of pages.
        pages: u32,
    },
    /// The requested number of references is zero.
    #[error("cannot make a string of 0 references: give at least 1")]
    NoRefs,
    /// The number of references is more than [`MAX_REFS`], as requested or with the original's overshoot.
    #[error("cannot make a string of {refs} references: give at most {MAX_REFS}")]
    TooManyRefs {
        /// Requested number of references.
        refs: u64,
    },
    /// A parameter of the pattern is out of bounds. Possible only for a pattern built in code, because parsing checks
    /// bounds.
    #[error(transparent)]
    Parameter(#[from] PatternError),
    /// The pattern names a file of references, which this function does not open.
    #[error(
        "cannot make the references of {path}: they are read, not made; read the file or its compact form"
    )]
    InFile {
        /// Path of the file of references.
        path: PathBuf,
    },
}

/// Reasons why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PatternError {
    /// No pattern has this name.
    #[error("cannot use pattern \"{given}\": {hint}")]
    Unknown {
        /// The unknown pattern name.
        given: String,
        /// A similar name, or all names.
        hint: String,
    },
    /// The pattern has no parameter with this name.
    #[error("cannot set \"{given}\" of pattern {pattern}: {hint}")]
    UnknownParameter {
        /// Name of the pattern.
        pattern: &'static str,
        /// The unknown parameter name.
        given: String,
        /// A similar name, or all names.
        hint: String,
    },
    /// More values were given than the pattern has parameters.
    #[error("cannot use value \"{given}\" of pattern {pattern}: {hint}")]
    TooManyValues {
        /// Name of the pattern.
        pattern: &'static str,
        /// The first value for which there is no parameter.
        given: String,
        /// The pattern's parameters, as text.
        hint: String,
    },
    /// A parameter was set more than once.
    #[error("cannot set {parameter} of pattern {pattern} twice: keep one")]
    Twice {
        /// Name of the pattern.
        pattern: &'static str,
        /// Name of the parameter.
        parameter: &'static str,
    },
    /// A value cannot be parsed.
    #[error("cannot set {parameter} of pattern {pattern} to \"{given}\": give {bounds}")]
    NotAValue {
        /// Name of the pattern.
        pattern: &'static str,
        /// Name of the parameter.
        parameter: &'static str,
        /// The value, as given.
        given: String,
        /// The allowed values, in words.
        bounds: String,
    },
    /// The value of a parameter is out of bounds.
    #[error("cannot set {parameter} of pattern {pattern} to {value}: give {bounds}")]
    OutOfBounds {
        /// Name of the pattern.
        pattern: &'static str,
        /// Name of the parameter.
        parameter: &'static str,
        /// The value, as given.
        value: f64,
        /// The allowed values, in words.
        bounds: String,
    },
    /// The parentheses of a pattern do not match.
    #[error("cannot read pattern \"{given}\": write it as name or name(value, parameter=value)")]
    Parentheses {
        /// The text of the pattern, as given.
        given: String,
    },
    /// The text is `file:` without a path.
    #[error("cannot read references from \"file:\": name the file, as in file:trace.txt")]
    NoPath,
}
