//! The tables of the index.
//!
//! The index contains only data that can be read from the record files and their folders, so it can be deleted. Values
//! that repeat are stored once: the cell (a [`Subject`](pagetide_record::Subject) without variant, seed, command line
//! and guest program), the variant, and long texts.
//!
//! A metric's definition belongs to a scenario, and values are ordered by definition first. So a history reads adjacent
//! rows, and a comparison reads a few definitions for a few hundred records. Rows and values have checksums
//! ([`crate::proof`]). For each folder of records, the index has the modification time that the folder had at the last
//! check ([`crate::catch_up`]).

use std::time::Duration;

use rusqlite::Connection;

/// Version of the tables. An index with tables of another version is rebuilt from the record files.
pub(crate) const VERSION: i64 = 3;

const TABLES: &str = "
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE cell (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    scenario TEXT NOT NULL,
    subject TEXT NOT NULL
);
CREATE TABLE variant (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    spec TEXT NOT NULL UNIQUE
);
CREATE TABLE record (
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    cell INTEGER NOT NULL REFERENCES cell,
    variant INTEGER NOT NULL REFERENCES variant,
    cmdline INTEGER NOT NULL REFERENCES text,
    guest INTEGER NOT NULL REFERENCES text,
    campaign INTEGER NOT NULL REFERENCES text,
    seed INTEGER NOT NULL,
    unit INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    started INTEGER NOT NULL,
    wall INTEGER NOT NULL,
    elapsed INTEGER NOT NULL,
    invalid INTEGER REFERENCES text,
    accident INTEGER NOT NULL,
    warnings INTEGER NOT NULL,
    metrics INTEGER NOT NULL,
    proof INTEGER NOT NULL
);
CREATE INDEX record_key ON record (key);
CREATE INDEX record_cell ON record (cell, started);
CREATE INDEX record_campaign ON record (campaign);
CREATE INDEX record_started ON record (started);
CREATE TABLE definition (
    id INTEGER PRIMARY KEY,
    scenario TEXT NOT NULL,
    name TEXT NOT NULL,
    head TEXT NOT NULL,
    UNIQUE (scenario, name, head)
);
CREATE TABLE metric (
    definition INTEGER NOT NULL,
    record INTEGER NOT NULL,
    value REAL,
    absent INTEGER REFERENCES text,
    proof INTEGER NOT NULL,
    PRIMARY KEY (definition, record)
) WITHOUT ROWID;
CREATE TABLE damaged (path BLOB PRIMARY KEY, why TEXT NOT NULL);
CREATE TABLE folder (name TEXT PRIMARY KEY, changed INTEGER NOT NULL);
";

/// Names of all tables; tables that refer to others come first, so that they can be dropped in this order.
const NAMES: [&str; 8] = [
    "metric",
    "definition",
    "record",
    "variant",
    "cell",
    "text",
    "damaged",
    "folder",
];

/// Returns the version of the tables in an open index; 0 for a new index.
pub(crate) fn version(index: &Connection) -> rusqlite::Result<i64> {
    index.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Drops all tables and creates them empty. The caller must have opened a transaction.
pub(crate) fn create(index: &Connection) -> rusqlite::Result<()> {
    for name in NAMES {
        index.execute_batch(&format!("DROP TABLE IF EXISTS {name}"))?;
    }
    index.execute_batch(TABLES)?;
    index.pragma_update(None, "user_version", VERSION)
}

/// Version of the store's layout that this program writes. Stores with a later version are refused.
pub const FORMAT: u32 = 1;

/// Maximum time that a process waits for a lock of the index that another process holds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
