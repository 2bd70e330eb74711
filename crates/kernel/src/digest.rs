//! SHA-256 digests, which name kernels.

use std::fmt::{self, Display, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest in lower-case hexadecimal. The digest of a kernel covers its image, configuration and modules.
///
/// The kernel's digest is the SHA-256 of the output of `sha256sum` for these files, sorted by path. To check it by
/// hand, run this in the kernel's folder:
/// `find image config modules -type f | LC_ALL=C sort | xargs sha256sum | sha256sum`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest(String);

/// Error for a string that is not 64 lower-case hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no digest: give 64 hexadecimal digits")]
pub struct NoDigest(String);

impl Digest {
    /// Returns the SHA-256 digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex(&Sha256::digest(bytes)))
    }

    /// Returns the digest of files, each given as path and SHA-256 in hexadecimal. The order of the files does not
    /// matter.
    pub(crate) fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_unstable();
        let mut hasher = Sha256::new();
        for (path, sum) in files {
            hasher.update(format!("{sum}  {path}\n"));
        }
        Self(hex(&hasher.finalize()))
    }

    /// Returns the digest as a string of 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first 12 digits of the digest, which are enough to tell kernels apart in a table.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

/// Formats bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

impl Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = NoDigest;

    fn try_from(text: String) -> Result<Self, NoDigest> {
        let lower_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if text.len() == 64 && text.bytes().all(lower_hex) {
            Ok(Self(text))
        } else {
            Err(NoDigest(text))
        }
    }
}

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        Self::try_from(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_digested_as_sha256sum_lists_them_whatever_their_order() {
        let empty = Digest::of(b"").to_string();
        let listing = format!("{empty}  config\n{empty}  image\n");
        let files = [("image", empty.as_str()), ("config", empty.as_str())];
        assert_eq!(Digest::of_files(files), Digest::of(listing.as_bytes()));
    }

    #[test]
    fn text_that_is_no_digest_is_refused() {
        assert!("abc".parse::<Digest>().is_err());
        assert!("Z".repeat(64).parse::<Digest>().is_err());
        assert!("../".repeat(22).parse::<Digest>().is_err());
        assert!("a".repeat(64).parse::<Digest>().is_ok());
    }
}
