//! Table of the formats that can be imported. The help texts are generated from it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::file::{self, Text};
use super::run::{self, Found, Run};
use super::tool::Tool;
use super::{
    Batch, ImportError, Source, csv, fio, hyperfine, lkp, mmtests, perf, pgbench, phoronix,
    stress_ng, ycsb,
};

/// A format that can be imported.
#[derive(Debug)]
pub struct Format {
    /// Tool whose results have this format.
    pub tool: Tool,
    /// Name of the file that is read in a folder; `None` if all files are read.
    only: Option<&'static str>,
    /// Function that returns true if a text looks like a file of this format.
    is_in: fn(&str) -> bool,
    /// Function that reads results in this format.
    reader: Reader,
}

/// Function that reads the files in and below a folder; returns each file with its runs.
type ReadFolder = fn(&Path, &'static Tool) -> Result<Vec<(PathBuf, Vec<Run>)>, ImportError>;

/// How results in a format are read.
#[derive(Debug)]
enum Reader {
    /// Reads one file. The second argument is true if this is the only file and the user named no variant.
    Files(fn(&Text<'_>, bool) -> Result<Vec<Run>, ImportError>),
    /// Reads a folder, and returns the files below it with their runs.
    Folders(ReadFolder),
    /// Reads one file or folder that contains the names of its variants and the keys that pair trials.
    Whole(fn(&Path, Option<&str>) -> Result<Batch, ImportError>),
}

/// Always returns false; for formats that are detected from a folder, not from the text of a file.
fn never(_: &str) -> bool {
    false
}

/// All formats that can be imported.
pub static FORMATS: [Format; 10] = [
    Format {
        tool: Tool {
            name: "csv",
            help: "table of comma-separated values, a line for each trial and metric",
            made_by: "columns scenario, variant, metric, value",
            in_a_row: false,
        },
        only: None,
        is_in: csv::is_in,
        reader: Reader::Whole(csv::import),
    },
    Format {
        tool: Tool {
            name: "fio",
            help: "JSON of fio",
            made_by: "fio --output-format=json --output=FILE",
            in_a_row: false,
        },
        only: None,
        is_in: fio::is_in,
        reader: Reader::Files(fio::read),
    },
    Format {
        tool: Tool {
            name: "hyperfine",
            help: "JSON of hyperfine",
            made_by: "hyperfine --export-json FILE",
            in_a_row: true,
        },
        only: None,
        is_in: hyperfine::is_in,
        reader: Reader::Files(hyperfine::read),
    },
    Format {
        tool: Tool {
            name: "lkp",
            help: "folders of LKP with matrix.json or stats.json",
            made_by: "lkp run JOB",
            in_a_row: false,
        },
        only: None,
        is_in: never,
        reader: Reader::Folders(lkp::read),
    },
    Format {
        tool: Tool {
            name: "mmtests",
            help: "folder of the logs of mmtests",
            made_by: "run-mmtests.sh",
            in_a_row: false,
        },
        only: None,
        is_in: never,
        reader: Reader::Whole(|path, _| mmtests::import(path)),
    },
    Format {
        tool: Tool {
            name: "perf",
            help: "counters of perf stat, as CSV or JSON",
            made_by: "perf stat -x, -o FILE, or perf stat -j -o FILE",
            in_a_row: false,
        },
        only: None,
        is_in: perf::is_in,
        reader: Reader::Files(|file, _| perf::read(file)),
    },
    Format {
        tool: Tool {
            name: "pgbench",
            help: "text of pgbench",
            made_by: "pgbench > FILE",
            in_a_row: false,
        },
        only: None,
        is_in: pgbench::is_in,
        reader: Reader::Files(|file, _| pgbench::read(file)),
    },
    Format {
        tool: Tool {
            name: "phoronix",
            help: "composite.xml of the Phoronix Test Suite",
            made_by: "phoronix-test-suite batch-run TEST",
            in_a_row: true,
        },
        only: Some("composite.xml"),
        is_in: phoronix::is_in,
        reader: Reader::Files(|file, _| phoronix::read(file)),
    },
    Format {
        tool: Tool {
            name: "stress-ng",
            help: "YAML of stress-ng",
            made_by: "stress-ng --metrics --yaml FILE",
            in_a_row: false,
        },
        only: None,
        is_in: stress_ng::is_in,
        reader: Reader::Files(|file, _| stress_ng::read(file)),
    },
    Format {
        tool: Tool {
            name: "ycsb",
            help: "text of YCSB",
            made_by: "ycsb run DATABASE -P WORKLOAD > FILE",
            in_a_row: false,
        },
        only: None,
        is_in: ycsb::is_in,
        reader: Reader::Files(|file, _| ycsb::read(file)),
    },
];

impl Format {
    /// Returns the format with this name; `None` if the name is unknown.
    pub fn named(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.tool.name == name)
    }

    /// Detects the format of a file or folder from its content; except for folders of mmtests and LKP, from the text of
    /// the folder's first file. Fails if no format or several formats match.
    pub fn of(path: &Path) -> Result<&'static Self, ImportError> {
        let unknown = || ImportError::NoFormat {
            path: path.to_owned(),
        };
        if path.is_dir() {
            let called = |name| Self::named(name).ok_or_else(unknown);
            if mmtests::is_in(path) {
                return called("mmtests");
            }
            if lkp::is_in(path) {
                return called("lkp");
            }
        }
        let named = FORMATS.iter().find_map(|format| format.only);
        let first = file::files(path, named)?.swap_remove(0);
        let text = file::text(&first)?;
        let mut fitting = FORMATS.iter().filter(|format| (format.is_in)(&text));
        match (fitting.next(), fitting.next()) {
            (Some(format), None) => Ok(format),
            _ => Err(unknown()),
        }
    }

    /// Reads all files and folders that the user named. `pair` is the name of the column that pairs trials, used only
    /// for CSV.
    pub fn import(
        &'static self,
        sources: &[Source],
        pair: Option<&str>,
    ) -> Result<Batch, ImportError> {
        let read = match &self.reader {
            Reader::Whole(read) => {
                return match sources {
                    [
                        Source {
                            variant: None,
                            path,
                        },
                    ] => read(path, pair),
                    _ => Err(ImportError::OneOnly {
                        tool: self.tool.name,
                    }),
                };
            }
            Reader::Folders(read) => {
                let mut found = Vec::new();
                for source in sources {
                    for (path, runs) in read(&source.path, &self.tool)? {
                        found.push(Found { source, path, runs });
                    }
                }
                return run::batch(&self.tool, found);
            }
            Reader::Files(read) => read,
        };
        let mut files = Vec::new();
        for source in sources {
            for path in file::files(&source.path, self.only)? {
                files.push((source, path));
            }
        }
        let is_alone = matches!(&*files, [(Source { variant: None, .. }, _)]);
        let mut found = Vec::new();
        for (source, path) in files {
            let runs = read(&Text::read(&path, &self.tool)?, is_alone)?;
            found.push(Found { source, path, runs });
        }
        run::batch(&self.tool, found)
    }
}

/// Returns the formats as text for help, one line for each format.
pub fn table() -> String {
    let mut text = String::new();
    for format in &FORMATS {
        let _ = writeln!(
            text,
            "  {:<10} {} ({})",
            format.tool.name, format.tool.help, format.tool.made_by
        );
    }
    text
}
