//! Segments: the memory that a process maps.

use serde::{Deserialize, Serialize};

use crate::size::Size;

/// Kind of memory of a segment.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Anonymous memory of one process; children that it forks share it copy on write.
    #[default]
    Anonymous,
    /// Anonymous memory that a process shares with the children that it forks.
    Shared,
    /// A mapped file on the disk of the trial.
    File,
    /// A mapped file in tmpfs, whose pages can be swapped.
    Tmpfs,
}

impl Kind {
    /// All kinds of memory.
    pub const ALL: [Self; 4] = [Self::Anonymous, Self::Shared, Self::File, Self::Tmpfs];

    /// Returns true for files on a disk or in tmpfs, which processes can read and write by system calls.
    pub fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Tmpfs)
    }
}

/// Page size of a segment of anonymous memory.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PageSize {
    /// Small pages only: transparent huge pages are disabled with `MADV_NOHUGEPAGE`.
    #[default]
    Small,
    /// Huge pages if the kernel has them: enabled with `MADV_HUGEPAGE`.
    Huge,
    /// The kernel's default, without a call of madvise(2).
    Default,
}

impl PageSize {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    fn is_small(&self) -> bool {
        *self == Self::Small
    }
}

/// Default content of pages: compressed size of a page as a fraction of its size, as text.
pub(crate) const CONTENT: &str = "0.35";

/// A range of memory that a process maps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Segment {
    /// Name of the segment, by which phases refer to it.
    pub name: String,
    /// Kind of memory of the segment.
    #[serde(default, skip_serializing_if = "is_anonymous")]
    pub kind: Kind,
    /// Size of the segment: a share of the trial's memory, or bytes.
    pub size: Size,
    /// Content of the segment's pages: compressed size of a page as a fraction of its size, or the name of a content
    /// such as `redis`.
    #[serde(default = "content", skip_serializing_if = "is_default_content")]
    pub content: String,
    /// Page size of anonymous memory.
    #[serde(default, skip_serializing_if = "PageSize::is_small")]
    pub pages: PageSize,
    /// True if the segment is filled and locked before the phases begin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// Name of the file of a file or tmpfs segment. Segments with the same file share it. `None` for a file of this
    /// process alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// True if a file on disk is one hole at the start. If false, it starts with the segment's content, none of which
    /// is cached. Must be false for other kinds; a file in tmpfs is always a hole at the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_anonymous(kind: &Kind) -> bool {
    *kind == Kind::Anonymous
}

fn content() -> String {
    CONTENT.to_owned()
}

fn is_default_content(content: &str) -> bool {
    content == CONTENT
}

impl Segment {
    /// Returns a segment with this name, kind and size, and defaults for the rest.
    pub fn new(name: &str, kind: Kind, size: Size) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            size,
            content: content(),
            ..Self::default()
        }
    }
}

impl Segment {
    /// Returns the index of the first page of a part, and of the page after its last one, for a segment of `pages`
    /// pages. A part has at least one page.
    pub fn part_of(pages: u64, part: Option<[f64; 2]>) -> [u64; 2] {
        let Some([begin, end]) = part else {
            return [0, pages];
        };
        let at = |share: f64| {
            let millionths = (share * 1e6).round().clamp(0.0, 1e6);
            // The value is a whole number from 0 to a million.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked above"
            )]
            let millionths = millionths as u64;
            u64::try_from(u128::from(pages) * u128::from(millionths) / 1_000_000).unwrap_or(pages)
        };
        let begin = at(begin).min(pages.saturating_sub(1));
        [begin, at(end).clamp(begin + 1, pages.max(1))]
    }
}

impl Default for Size {
    fn default() -> Self {
        Self::percent(50)
    }
}
