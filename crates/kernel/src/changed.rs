//! Code that a patch changed in a built kernel: the changed lines, and the instructions compiled from them.

use std::path::PathBuf;

use pagetide_outside::{FileOrigin, read, replace};
use serde::{Deserialize, Serialize};

use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::names;

/// Maximum size of the file with changed code, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Position of an instruction in a kernel: a function, and the distance from the function's start in bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodePlace {
    /// Name of the function as in `/proc/kallsyms`.
    pub function: String,
    /// Distance of the instruction from the start of the function, in bytes.
    pub offset: u64,
}

/// A line that a patch adds or changes, and its instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLine {
    /// Path of the file, relative to the top folder of the source.
    pub file: String,
    /// Number of the line in the patched file, from 1.
    pub line: u32,
    /// Text of the line, without indentation.
    pub text: String,
    /// Positions of all instructions of the line. A line that the compiler inlined several times has instructions in
    /// each copy.
    pub places: Vec<CodePlace>,
}

/// Code that a patch changed in a built kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedCode {
    /// Changed lines that have instructions, sorted by file and line.
    pub lines: Vec<ChangedLine>,
    /// Functions that contain these lines, or places where the patch removes lines.
    pub functions: Vec<String>,
    /// Number of changed lines that have no instructions, or consist of braces and `else` or `do` alone.
    pub without_code: u64,
    /// Changed files and functions whose lines could not be found in the kernel, each with the reason.
    pub left_out: Vec<String>,
}

impl Kernel {
    fn changed_path(&self) -> PathBuf {
        self.folder().join(names::CHANGED)
    }

    /// Returns the code that the kernel's patch changed. `None` if the kernel was not built with a patch, if it was
    /// built by a version of pagetide that did not store the changed code, or if the file cannot be read.
    pub fn changed_code(&self) -> Option<ChangedCode> {
        let bytes = read(&self.changed_path(), FileOrigin::Own, MAX_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Stores the code that the kernel's patch changed. Replaces the stored code of an earlier patch that led to the
    /// same kernel.
    pub fn set_changed_code(&self, code: &ChangedCode) -> Result<(), KernelError> {
        let path = self.changed_path();
        let bytes = serde_json::to_vec(code).unwrap_or_default();
        replace(&path, &bytes).map_err(KernelError::cache("writing", &path))
    }
}
