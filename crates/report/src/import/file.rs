//! Reads files of results completely, within limits.

use std::fmt::Display;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use pagetide_compare::version::by_version;
use pagetide_outside::FileOrigin;

use super::tool::Tool;
use super::{ImportError, MAX_BYTES, MAX_FILES};
use crate::draw::clean;

/// The text of a file, with the data that error messages need.
pub(super) struct Text<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Tool that made the imported file.
    pub tool: &'static Tool,
    /// Text of the file; bytes that are not UTF-8 are replaced.
    pub content: String,
}

impl<'a> Text<'a> {
    /// Reads a file. If its name ends in `.gz`, it is decompressed.
    pub fn read(path: &'a Path, tool: &'static Tool) -> Result<Self, ImportError> {
        Ok(Self {
            path,
            tool,
            content: text(path)?,
        })
    }

    /// Returns the error that the file cannot be read in its format, with a reason. `line` counts from 1; 0 means no
    /// single line.
    pub fn bad(&self, line: usize, why: impl Display) -> ImportError {
        ImportError::Malformed {
            path: self.path.to_owned(),
            line,
            tool: self.tool.name,
            why: clean(&why.to_string(), 300, false),
            made_by: self.tool.made_by,
        }
    }

    /// Parses a finite number; fails if the text is none. `what` names the number in the error.
    pub fn number(&self, line: usize, what: &str, text: &str) -> Result<f64, ImportError> {
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.bad(
                line,
                format_args!(
                    "{} is `{}`, not a finite number",
                    clean(what, 60, false),
                    clean(text, 40, false)
                ),
            )),
        }
    }
}

/// Reads the bytes of a file. If its name ends in `.gz`, it is decompressed. Fails if there are more than
/// [`MAX_BYTES`].
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, ImportError> {
    let io = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    let file = pagetide_outside::open(path, FileOrigin::Named).map_err(io)?;
    let mut bytes = Vec::new();
    let read = if path.extension().is_some_and(|end| end == "gz") {
        flate2::read::MultiGzDecoder::new(file)
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
    } else {
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)
    };
    read.map_err(io)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ImportError::TooLarge {
            path: path.to_owned(),
            limit: MAX_BYTES,
        });
    }
    Ok(bytes)
}

/// Reads the text of a file; bytes that are not UTF-8 are replaced.
pub(super) fn text(path: &Path) -> Result<String, ImportError> {
    let bytes = bytes(path)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Returns the entries of a folder, sorted as versions: `run9` before `run10`. Names that begin with a dot are left
/// out.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let io = |source| ImportError::Io {
        path: folder.to_owned(),
        source,
    };
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        all.push(entry.path());
        if all.len() > MAX_FILES {
            return Err(ImportError::TooMany {
                path: folder.to_owned(),
                what: "files",
                limit: MAX_FILES,
            });
        }
    }
    all.sort_by(|a, b| by_version(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(all)
}

/// Returns the files to read for an argument: the file itself, or, for a folder, its file named `only`. If `only` is
/// `None` or the folder has no such file, all files of the folder, without its subfolders, sorted as versions.
pub(super) fn files(path: &Path, only: Option<&str>) -> Result<Vec<PathBuf>, ImportError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    if let Some(file) = only
        .map(|name| path.join(name))
        .filter(|file| file.is_file())
    {
        return Ok(vec![file]);
    }
    let mut all = entries(path)?;
    all.retain(|path| path.is_file());
    if all.is_empty() {
        return Err(ImportError::Nothing {
            path: path.to_owned(),
            what: "files of results",
            remedy: "give the files, or a folder that holds nothing else",
        });
    }
    Ok(all)
}
