//! Removes campaigns and records from the store.
//!
//! The campaigns' notes and progress are removed first, then the files of the records, then the rows of the index. If
//! the process is killed in between, some records belong to no campaign. That is valid, and they can be removed by
//! naming the records themselves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use pagetide_quantity::{Bytes, nearest};
use serde::Serialize;

use crate::error::StoreError;
use crate::files::remove_if_present;
use crate::note::{self, CampaignNote};
use crate::running;
use crate::store::Store;

/// Campaigns and records that are, or would be, removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Removal {
    /// IDs of campaigns. Each run of a campaign has its own ID.
    pub campaigns: Vec<String>,
    /// IDs of records, sorted.
    pub records: Vec<String>,
    /// Total size of the record files.
    pub size: Bytes,
    /// Number of records of these campaigns that are kept because other campaigns use them too.
    pub shared: usize,
}

impl Removal {
    /// Returns text for the user: "removed …" if `is_done`, else "would remove …".
    pub fn text(&self, is_done: bool) -> String {
        let campaigns = match self.campaigns.as_slice() {
            [] => String::new(),
            [one] => format!("campaign {one}, "),
            many => format!("campaigns {}, ", many.join(", ")),
        };
        let word = if is_done { "removed" } else { "would remove" };
        let (records, size) = (self.records.len(), self.size);
        let mut text = format!("{word} {campaigns}{records} records ({size})\n");
        if self.shared > 0 {
            text.push_str(&self.shared.to_string());
            text.push_str(" records stay: other campaigns have them too\n");
        }
        text
    }
}

impl Store {
    /// Lists what [`Self::remove`] would remove. A campaign's name stands for all its runs and for the records that no
    /// other campaign uses. A record is named by the first digits of its ID.
    ///
    /// # Errors
    ///
    /// If a name is neither a campaign nor a record, if several records have the same prefix, or if the store cannot be
    /// read.
    pub fn removal(&self, names: &[String]) -> Result<Removal, StoreError> {
        let mut notes: BTreeMap<String, CampaignNote> = BTreeMap::new();
        for id in self.campaigns()? {
            if let Some(note) = self.campaign(&id)? {
                notes.insert(id, note);
            }
        }
        let mut removal = Removal::default();
        let mut records = BTreeSet::new();
        for name in names {
            let runs = notes.values().filter(|note| note.name == *name);
            let runs: Vec<String> = runs.map(CampaignNote::id).collect();
            if runs.is_empty() {
                let row = self.find(name).map_err(|error| match error {
                    StoreError::Unknown { prefix } => StoreError::Neither {
                        nearest: nearest(&prefix, notes.keys().map(String::as_str)),
                        name: prefix,
                    },
                    other => other,
                })?;
                records.insert(row.id);
            }
            removal.campaigns.extend(runs);
        }
        let (gone, kept): (Vec<&CampaignNote>, Vec<&CampaignNote>) = notes
            .values()
            .partition(|note| removal.campaigns.contains(&note.id()));
        let keys = |notes: &[&CampaignNote]| -> HashSet<String> {
            let entries = notes.iter().flat_map(|note| &note.entries);
            entries.map(|entry| entry.key.clone()).collect()
        };
        let kept = keys(&kept);
        let gone: Vec<String> = keys(&gone).into_iter().collect();
        for row in self.by_keys(&gone)? {
            if kept.contains(&row.key) {
                removal.shared += 1;
            } else {
                records.insert(row.id);
            }
        }
        for id in &records {
            let data = std::fs::metadata(self.path(id));
            removal.size.0 += data.map_or(0, |data| data.len());
        }
        removal.records = records.into_iter().collect();
        removal.campaigns.sort_unstable();
        removal.campaigns.dedup();
        Ok(removal)
    }

    /// Removes the listed campaigns and records. If one of the campaigns is running, nothing is removed.
    ///
    /// # Errors
    /// [`StoreError::Running`] for a running campaign, [`StoreError::ReadOnly`], and errors of removing files.
    pub fn remove(&mut self, removal: &Removal) -> Result<(), StoreError> {
        if let Some(why) = self.why_read_only() {
            let path = self.folder().to_owned();
            return Err(StoreError::ReadOnly { path, why });
        }
        let mut runs = Vec::new();
        for id in &removal.campaigns {
            runs.extend(self.campaign(id)?);
        }
        let names: BTreeSet<&str> = runs.iter().map(|note| note.name.as_str()).collect();
        let locks = names
            .iter()
            .map(|name| self.lock_campaign(name))
            .collect::<Result<Vec<_>, _>>()?;
        // The last run is removed first: without its predecessor, a later run could not be found.
        let mut last_first: Vec<&CampaignNote> = runs.iter().collect();
        last_first.sort_by_key(|note| Reverse(note.generation));
        for note in last_first {
            note::remove(&self.folder().join("campaigns"), &note.id())?;
        }
        for name in names {
            running::remove(&self.folder().join("runs"), name)?;
        }
        for id in &removal.records {
            remove_if_present(&self.path(id))?;
        }
        drop(locks);
        self.catch_up()
    }
}
