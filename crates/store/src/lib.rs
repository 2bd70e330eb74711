//! The store: the folder that holds all records.
//!
//! ```text
//! STORE/format                  version of this layout
//! STORE/incoming/               records being written (PID-….part), and complete ones to be moved to `records`
//! STORE/records/ab/ID.record    records, in folders named by the first two digits of their IDs
//! STORE/campaigns/ID.json       the trials that a campaign consists of
//! STORE/batches/NAME/           trials that run on a cluster
//! STORE/runs/NAME.json          progress of a campaign's last run, or how it ended
//! STORE/index.sqlite            index of the records; can be rebuilt from them, and is elsewhere on a network file system
//! ```
//!
//! Other crates add files of their own, such as `calibration-ARENA.json`, `squeeze/NAME.json` and `bisect/NAME.log`.
//!
//! A record is written to `incoming`, added to the index, then moved to `records`. If the process is killed in between,
//! its files remain in `incoming`. The next process that opens the store adds and moves the complete records in it. It
//! removes the incomplete ones whose writers no longer run.
//!
//! [`whole_file`] writes files outside the store, such as web pages, so that they are never incomplete.
//!
//! Several processes may use a store at the same time. SQLite's write-ahead log and a busy timeout serialise them.
//!
//! Arenas, statistics and reports are not part of this crate. Begin reading at [`Store`].

mod case_note;
mod catch_up;
mod database;
mod error;
mod files;
mod index;
mod many;
mod merge;
mod names;
mod note;
mod proof;
mod read_only;
mod remove;
mod report;
mod row;
mod running;
mod schema;
mod select;
mod short;
mod store;
pub mod whole_file;

pub use case_note::CaseNote;
pub use error::{StoreError, at};
pub use files::deposit;
pub use merge::{Conflict, Merge};
pub use names::Names;
pub use note::{
    CampaignLock, CampaignNote, CellNote, Entry, MAX_NOTE_BYTES, MAX_VARIANTS, Pairing,
    is_campaign_name,
};
pub use pagetide_quantity::command::shell;
pub use remove::Removal;
pub use report::{DamagedFile, StoreReport};
pub use row::{CellInfo, Row};
pub use running::{RunEnd, RunState, RunningTrial};
pub use schema::FORMAT;
pub use select::{Filter, Point};
pub use short::short;
pub use store::Store;
