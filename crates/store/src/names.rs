//! Names that a store holds, for a shell to complete.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{Filter, Store, StoreError};

/// Newest records that are looked at.
const NEWEST: u32 = 500;
/// Digits of a record's identity that tell it from others.
const DIGITS: usize = 12;

/// Names in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Campaigns.
    pub campaigns: BTreeSet<String>,
    /// Variants of the newest records.
    pub variants: BTreeSet<String>,
    /// First digits of the newest records.
    pub records: BTreeSet<String>,
}

impl Names {
    /// Those of the store in this folder; none where there is no such folder, which is not made.
    pub fn of(folder: &Path) -> Result<Self, StoreError> {
        if folder.exists() {
            Store::open(folder)?.names()
        } else {
            Ok(Self::default())
        }
    }

    /// All of them, in one set.
    pub fn all(self) -> BTreeSet<String> {
        let of_records = self.variants.into_iter().chain(self.records);
        self.campaigns.into_iter().chain(of_records).collect()
    }
}

impl Store {
    /// What campaigns, variants and records are called.
    pub fn names(&self) -> Result<Names, StoreError> {
        let mut names = Names::default();
        for id in self.campaigns()? {
            // A damaged note has no name.
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
            names
                .records
                .extend(row.id.get(..DIGITS).map(str::to_owned));
        }
        Ok(names)
    }
}
