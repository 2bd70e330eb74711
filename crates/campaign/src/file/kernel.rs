//! Reads the kernel of a variant in a campaign file: an existing kernel by name, or one built from source.

use super::error::{FileError, Problem};
use super::table::{Item, Table};
use crate::variants::{DEFAULT_SOURCE, built_kernel};

/// The keys that describe a kernel to be built from source.
pub struct KernelKeys {
    source: Option<String>,
    config: Option<String>,
    patches: Vec<String>,
    control: bool,
}

impl KernelKeys {
    /// Reads the value of the key `kernel`.
    pub fn kernel(item: &Item<'_>) -> Result<String, FileError> {
        item.string("a kernel in quotes, such as \"debian:sid\"")
    }

    /// Reads the keys that describe a kernel to be built from source. Fails if `control` is true without `patch`.
    pub fn read(table: &Table<'_>) -> Result<Self, FileError> {
        let control = match table.get("control") {
            Some(item) if item.truth()? && table.get("patch").is_none() => {
                return Err(item.wrong(Problem::Value {
                    key: "control".to_owned(),
                    value: "true".to_owned(),
                    why: "it is built in the place of a patch: give that `patch` too".to_owned(),
                }));
            }
            Some(item) => item.truth()?,
            None => false,
        };
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
            control,
        })
    }

    fn is_empty(&self) -> bool {
        self.source.is_none() && self.config.is_none() && self.patches.is_empty()
    }

    /// Returns the name of the kernel to be built with these keys. Source and configuration are taken from `above` if
    /// not given here.
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

/// Returns the kernel of a variant: the kernel named in the table, else the kernel to be built with the table's keys,
/// else the file's default `of_all`. Fails if the table has both kinds of keys.
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
