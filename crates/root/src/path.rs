//! Paths inside a root.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::RootError;

/// Maximum length of a path or of a link's target, in bytes: half of Linux's limit (`PATH_MAX`). While an image is
/// made, each path is below a folder of this machine, which needs the other half.
pub(crate) const MAX_PATH: usize = 2048;
/// Maximum number of components in a path.
pub(crate) const MAX_DEPTH: usize = 128;

/// Returns true if a path has more bytes or components than allowed.
pub(crate) fn is_too_long(path: &[u8]) -> bool {
    path.len() > MAX_PATH || path.split(|byte| *byte == b'/').count() > MAX_DEPTH + 1
}

/// A path inside a root: it begins with `/` and has no `.`, `..` or empty components, so it cannot lead out of the
/// root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RootPath(String);

impl RootPath {
    /// Converts `text` to a path inside the root. A relative path refers to `base`. Fails if the path is not allowed
    /// inside a root.
    pub fn new(text: &str, base: &str) -> Result<Self, RootError> {
        let bad = |why| RootError::BadPath {
            path: shortened(text),
            why,
        };
        // The length is checked before any work that is proportional to it.
        if is_too_long(text.as_bytes()) {
            return Err(bad(TOO_LONG));
        }
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        if text.chars().any(char::is_control) {
            return Err(bad("it has control characters"));
        }
        let mut path = if text.starts_with('/') {
            String::new()
        } else {
            base.to_owned()
        };
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(bad("it leads upwards, write it without `..`")),
                part if part.len() > 255 => {
                    return Err(bad("a part of it is longer than 255 bytes"));
                }
                part => {
                    path.push('/');
                    path.push_str(part);
                }
            }
        }
        if path.is_empty() {
            path.push('/');
        }
        if is_too_long(path.as_bytes()) {
            return Err(bad(TOO_LONG));
        }
        Ok(Self(path))
    }

    /// Returns the range of all paths below this folder, as start (included) and end (excluded) in the order of paths.
    pub(crate) fn below(&self) -> [Self; 2] {
        let folder = self.0.trim_end_matches('/');
        // In ASCII, `0` is the character after `/`.
        ["/", "0"].map(|end| Self(format!("{folder}{end}")))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the parent folder; `None` for the root itself.
    pub fn parent(&self) -> Option<Self> {
        let (folder, name) = self.0.rsplit_once('/')?;
        (!name.is_empty()).then(|| Self(if folder.is_empty() { "/" } else { folder }.to_owned()))
    }

    /// Returns the last component of the path.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path `more`, taken as relative to this one. Fails if the result is not allowed.
    pub fn join(&self, more: &str) -> Result<Self, RootError> {
        Self::new(more.trim_start_matches('/'), self.0.trim_end_matches('/'))
    }

    /// Returns true if the path is `folder` or below it.
    pub fn is_below(&self, folder: &str) -> bool {
        let rest = self.0.strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Reason why a path that is too long is refused.
const TOO_LONG: &str = "it has more than 2048 bytes or 128 folders";
/// Maximum number of characters of a path in a message.
const SHOWN: usize = 80;

/// Returns the path as text, cut if it is too long for a message.
pub(crate) fn shortened(path: &str) -> String {
    match path.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

impl fmt::Display for RootPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_inside_is_absolute_and_never_leads_upwards() {
        let path = |text| RootPath::new(text, "/work").map(|path| path.to_string());
        assert_eq!(path("numbers").unwrap(), "/work/numbers");
        assert_eq!(path("./a//b/").unwrap(), "/work/a/b");
        assert_eq!(path("/usr//bin/./sort").unwrap(), "/usr/bin/sort");
        assert_eq!(path("/").unwrap(), "/");
        for bad in ["..", "../x", "/usr/../etc", "a/..", "", "a\nb", "\0"] {
            assert!(path(bad).is_err(), "{bad:?}");
        }
        let path = RootPath::new("/work/a", "").unwrap();
        assert!(path.is_below("/work") && !path.is_below("/wor"));
        assert_eq!(path.parent().unwrap().as_str(), "/work");
        assert_eq!(path.parent().unwrap().parent().unwrap().as_str(), "/");
        assert!(RootPath::new("/", "").unwrap().parent().is_none());
    }
}
