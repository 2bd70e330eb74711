//! Scales the sizes of the machine on which an original experiment ran to a share that the campaign uses.

use pagetide_quantity::Bytes;
use pagetide_record::MemorySpec;

use super::error::{FileError, Problem};
use super::table::Table;

/// Scaled sizes are rounded up to a multiple of this number of bytes (a mebibyte), so that users can write them.
const STEP: u64 = 1 << 20;

/// Factor by which the sizes of an original experiment are multiplied, such as 0.25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share(f64);

impl Share {
    /// Reads the factor from the file; `asked` (from `--scale`) replaces it. Returns `None` if the file does not state
    /// the sizes of an original experiment.
    ///
    /// # Errors
    ///
    /// If `--scale` is given but the file states no such sizes, or if the factor is not a positive number.
    pub fn read(top: &Table<'_>, asked: Option<f64>) -> Result<Option<Self>, FileError> {
        const WANTED: &str = "a number above 0, such as 0.25";
        let Some(item) = top.get("scale") else {
            return match asked {
                None => Ok(None),
                Some(_) => Err(top.wrong(Problem::NoScale)),
            };
        };
        let written = item.number(WANTED)?;
        let is_size = |share: f64| share.is_finite() && share > 0.0;
        if !is_size(written) {
            return Err(item.value(&format!("give {WANTED}")));
        }
        match asked {
            Some(asked) if !is_size(asked) => Err(top.wrong(Problem::BadScale {
                scale: asked.to_string(),
            })),
            _ => Ok(Some(Self(asked.unwrap_or(written)))),
        }
    }

    /// True if the file states another factor than this one, or none.
    pub fn is_other_than(self, top: &Table<'_>) -> bool {
        let written = top.get("scale").and_then(|item| item.text());
        written.and_then(|text| text.parse().ok()) != Some(self.0)
    }

    /// Returns the size multiplied by the factor, rounded up to whole mebibytes; unchanged if the factor is 1.
    pub fn of(self, size: Bytes) -> Bytes {
        if (self.0 - 1.0).abs() < f64::EPSILON {
            return size;
        }
        Bytes(size.times(self.0).0.max(1).next_multiple_of(STEP))
    }

    /// Returns a memory size of the original's machine, multiplied by the factor.
    pub fn of_memory(self, memory: MemorySpec) -> MemorySpec {
        match memory {
            MemorySpec::Free(size) => MemorySpec::Free(self.of(size)),
            MemorySpec::Total(size) => MemorySpec::Total(self.of(size)),
        }
    }

    /// Returns the factor as written in a campaign's name: `1`, or `0-125` for `0.125`.
    pub fn in_name(self) -> String {
        self.0.to_string().replace('.', "-")
    }
}
