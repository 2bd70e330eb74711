//! Applies settings to the running machine, reads them back, and restores them through the journal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pagetide_harness::MachineFate;
use pagetide_harness::settings::{self, Settings};
use pagetide_record::outcome::Invalid;

use crate::change::{Change, Left, SettingFile};
use crate::error::HostError;
use crate::journal::{Entry, Journal};

/// Settings that were applied. On drop, each setting that still has the tool's value gets its old value back.
#[derive(Debug)]
#[must_use = "settings are restored when this is dropped"]
pub struct Applied {
    /// Value of each setting, by name, as read back after it was applied.
    pub read: BTreeMap<String, String>,
    /// Settings that could not be applied, each with the reason.
    pub refused: Vec<Invalid>,
    entries: Vec<Entry>,
    journal: Journal,
}

/// Applies settings and reads each of them back. Refuses a setting that cannot be read, because its old value could not
/// be restored.
pub fn apply(journal: &Journal, wanted: &BTreeMap<String, String>) -> Result<Applied, HostError> {
    // Old values are read through the access that restores on drop. Values are written through the access that does not
    // restore, because the journal restores them.
    let restoring = Settings::of_machine(MachineFate::Continues);
    let mut refused = Vec::new();
    let mut readable = wanted.clone();
    readable.retain(|name, _| {
        let is_readable = restoring.read(name).is_some();
        if !is_readable {
            refused.push(Invalid::SettingRefused {
                name: name.clone(),
                why: "it cannot be read, so it could not be restored".to_owned(),
            });
        }
        is_readable
    });
    let ours: BTreeMap<PathBuf, &String> = readable
        .iter()
        .filter_map(|(name, value)| Some((settings::path(name)?, value)))
        .collect();
    let files: Vec<SettingFile> = restoring
        .before(&readable)
        .into_iter()
        .map(|(path, old)| SettingFile {
            ours: ours.get(&path).map(|value| (*value).clone()),
            path,
            old,
        })
        .collect();
    let mut entries = Vec::new();
    if !files.is_empty() {
        entries.push(journal.record(Change::Settings { files })?);
    }
    let mut applied = Settings::of_machine(MachineFate::Ends).apply(&readable);
    refused.append(&mut applied.refused);
    Ok(Applied {
        read: std::mem::take(&mut applied.read),
        refused,
        entries,
        journal: journal.clone(),
    })
}

impl Applied {
    /// Restores the settings. Returns those that could not be restored.
    pub fn restore(mut self) -> Vec<Left> {
        let entries = std::mem::take(&mut self.entries);
        self.journal.undo(&entries)
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        // What could not be restored stays in the journal.
        self.journal.undo(&self.entries);
    }
}
