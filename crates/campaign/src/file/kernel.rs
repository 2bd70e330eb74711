//! Which kernel a variant of a campaign file runs on: one that is named, or one that is built from source.

use super::error::{FileError, Problem};
use super::table::{Item, Table};
use crate::variants::{DEFAULT_SOURCE, built_kernel};

/// What a table says of a kernel that is built from source.
pub struct KernelKeys {
    source: Option<String>,
    config: Option<String>,
    patches: Vec<String>,
    control: bool,
}

impl KernelKeys {
    /// The value of `kernel`.
    pub fn kernel(item: &Item<'_>) -> Result<String, FileError> {
        item.string("a kernel in quotes, such as \"debian:sid\"")
    }

    /// Reads the keys of a table.
    pub fn read(table: &Table<'_>) -> Result<Self, FileError> {
        Ok(Self {
            source: table.text("source", "a source in quotes, such as \"debian:6.12\"")?,
            config: table
                .get("config")
                .map(|item| item.path("a file with options in quotes"))
                .transpose()?,
            patches: match table.get("patch") {
                None => Vec::new(),
                Some(item) => item
                    .list()
                    .iter()
                    .map(|item| item.path("a patch file in quotes, or a list of them"))
                    .collect::<Result<_, _>>()?,
            },
            control: match table.get("control") {
                Some(item) => item.truth()?,
                None => false,
            },
        })
    }

    fn is_empty(&self) -> bool {
        self.source.is_none() && self.config.is_none() && self.patches.is_empty()
    }

    /// The name of the kernel; what is not said here is taken from above.
    pub fn built(&self, above: Option<&Self>) -> String {
        let source = self
            .source
            .as_ref()
            .or(above.and_then(|above| above.source.as_ref()));
        let config = self
            .config
            .as_ref()
            .or(above.and_then(|above| above.config.as_ref()));
        let source = source.map_or(DEFAULT_SOURCE, String::as_str);
        let name = built_kernel(source, config.map(String::as_str), &self.patches);
        if self.control {
            format!("{name},control")
        } else {
            name
        }
    }
}

/// The kernel of a variant: one that is named, one that is built, or that of all.
pub fn kernel_of(table: &Table<'_>, above: &KernelKeys, of_all: &str) -> Result<String, FileError> {
    let keys = KernelKeys::read(table)?;
    match table.get("kernel") {
        Some(item) if keys.is_empty() => KernelKeys::kernel(&item),
        Some(item) => Err(item.wrong(Problem::Conflict {
            key: "kernel",
            other: "source, config or patch",
        })),
        None if keys.is_empty() => Ok(of_all.to_owned()),
        None => Ok(keys.built(Some(above))),
    }
}
