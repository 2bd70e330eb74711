//! Formats of the files from which references are read.

use std::fmt;

/// File format of references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// File of references written by pagetide, in any of the three forms of its format.
    Pagetide,
    /// One id per line, decimal or hexadecimal with 0x. Anything after a space or comma is ignored.
    Text,
    /// A table with ids in one column. If no column is given, the table has only one column, or its header names the
    /// column id, page, key or object.
    Csv(Option<Column>),
    /// Output of `valgrind --tool=lackey --trace-mem=yes`; pages of 4 KiB.
    Lackey,
    /// Output of DynamoRIO's drmemtrace view tool or of its memtrace samples; pages of 4 KiB.
    DynamoRio,
    /// Output of `perf script` or `perf mem report --dump-raw-samples`; pages of 4 KiB.
    Perf,
    /// Output of `damo report access --raw_form`; pages of 4 KiB.
    Damo,
    /// libCacheSim's binary format oracleGeneral with 24 bytes per entry: time, id, size, next access.
    OracleGeneral,
    /// libCacheSim's binary format lcs, which has a header.
    Lcs,
    /// Block requests from VMware's vscsiStats, binary; pages of 4 KiB.
    Vscsi,
    /// Block requests from the MSR Cambridge traces, CSV; pages of 4 KiB.
    Msr,
    /// Requests from Twitter's cache traces, CSV; each key is a page.
    Twitter,
}

/// Which column of a table contains the ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Name of the column in the header.
    Name(String),
    /// Number of the column, counted from 1.
    Number(usize),
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}
