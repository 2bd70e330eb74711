//! The store: where records live.
//!
//! ```text
//! STORE/format                  version of this layout
//! STORE/incoming/               records being written (PID-….part) and complete ones not yet in their place
//! STORE/records/ab/ID.record    records, by the first two digits of their identity
//! STORE/campaigns/ID.json       which trials a campaign consists of
//! STORE/runs/NAME.json          how the last run of a campaign stands
//! STORE/index.sqlite            index over the records; can be made anew from them
//! ```
//!
//! A record is written in `incoming`, entered into the index, then moved to its place. Whoever is killed in between
//! leaves at most a file in `incoming`, which is nearly always empty: the next process to open the store looks there
//! alone, enters and moves what is complete, and removes what is not and whose writer is gone.
//!
//! [`whole_file`] writes what leaves the store, such as pages, so that no half of it is ever there.
//!
//! Any number of processes may use a store at once; SQLite's write-ahead log and a busy timeout order them.
//!
//! This crate knows nothing of arenas, statistics or reports. Begin reading at [`Store`].

mod catch_up;
mod error;
mod many;
mod names;
mod note;
mod proof;
mod read_only;
mod remove;
mod row;
mod running;
mod schema;
mod select;
mod shell;
mod store;
pub mod whole_file;

pub use error::StoreError;
pub use names::Names;
pub use note::{CampaignLock, CampaignNote, CellNote, Entry, Pairing, is_campaign_name};
pub use remove::Removal;
pub use row::{CellInfo, Row};
pub use running::{RunEnd, RunState, RunningTrial};
pub use select::{Filter, Point};
pub use shell::shell;
pub use store::{DamagedFile, FORMAT, Store, StoreReport};
