//! Formats of the files from which references are read.

use std::fmt;

/// Format of a file of references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// File of references written by pagetide, in any form of its format: text, counts or binary.
    Pagetide,
    /// One ID per line, decimal, or hexadecimal with 0x. Anything after a space or comma is ignored.
    Text,
    /// A table with IDs in one column. If no column is given, the table must have a single column, or a header that
    /// names one of its columns id, page, key, obj_id, object_id or object.
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
