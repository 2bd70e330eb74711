//! Names in a store, for shell completion.

use std::collections::BTreeSet;
use std::path::Path;

use crate::short::short;
use crate::{Filter, Store, StoreError};

/// Maximum number of records, newest first, whose names are offered for completion.
const NEWEST: u32 = 500;

/// Names in a store that a shell can complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names of all campaigns, except those whose files are damaged.
    pub campaigns: BTreeSet<String>,
    /// Names of the variants of the newest 500 records.
    pub variants: BTreeSet<String>,
    /// The first 12 digits of the IDs of the newest 500 records.
    pub records: BTreeSet<String>,
}

impl Names {
    /// Returns the names in the store at `folder`. If there is no such folder, returns no names and does not create it.
    pub fn of(folder: &Path) -> Result<Self, StoreError> {
        if folder.exists() {
            Store::open(folder)?.names()
        } else {
            Ok(Self::default())
        }
    }

    /// Returns all names in one set.
    pub fn all(self) -> BTreeSet<String> {
        let of_records = self.variants.into_iter().chain(self.records);
        self.campaigns.into_iter().chain(of_records).collect()
    }
}

impl Store {
    /// Returns the names of all campaigns, and those of the newest records and their variants.
    pub fn names(&self) -> Result<Names, StoreError> {
        let mut names = Names::default();
        for id in self.campaigns()? {
            // A campaign whose file is damaged is left out.
            names
                .campaigns
                .extend(self.campaign(&id).ok().flatten().map(|note| note.name));
        }
        let newest = Filter {
            limit: Some(NEWEST),
            ..Filter::default()
        };
        for row in self.select(&newest)? {
            names.variants.insert(row.variant.name.clone());
            names.records.insert(short(&row.id).to_owned());
        }
        Ok(names)
    }
}
