//! The machine that a workload asks for.

use std::collections::BTreeMap;

use pagetide_quantity::Bytes;
use pagetide_record::{FileSystem, FilesOn, MemorySpec, SwapSpec};
use serde::{Deserialize, Serialize};

/// The machine that a workload asks for. A campaign may set other values, which take precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Machine {
    /// Amount of memory available to the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySpec>,
    /// Kind of swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapSpec>,
    /// Total size of all swap devices.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "bytes")]
    pub swap_size: Option<Bytes>,
    /// Device on which the files are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_on: Option<FilesOn>,
    /// File system of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<FileSystem>,
    /// Kernel settings such as `vm.swappiness`. They apply if the kernel has them and the variant does not set them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl Machine {
    /// Returns the machine with its settings only, without sizes and devices; `None` if there are no settings.
    pub(crate) fn only_settings(self) -> Option<Self> {
        (!self.settings.is_empty()).then_some(Self {
            settings: self.settings,
            ..Self::default()
        })
    }
}

/// Serde functions for an optional size that is written as text.
mod bytes {
    use pagetide_quantity::Bytes;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::ref_option, reason = "the signature that serde calls")]
    pub(super) fn serialize<S: Serializer>(
        size: &Option<Bytes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match size {
            Some(size) => serializer.collect_str(&crate::Size::Bytes(*size)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Some).map_err(Error::custom)
    }
}
