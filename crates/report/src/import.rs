//! Imports results of other tools as records, so that the same rules judge them.
//!
//! An imported record states its origin (`arena.machine` is "imported from …"), so it is never compared with a trial of
//! pagetide by mistake. Data that the source does not contain is left empty, never guessed.

pub mod csv;
mod file;
mod fio;
pub mod format;
mod hyperfine;
mod lkp;
pub mod mmtests;
mod perf;
mod pgbench;
mod phoronix;
mod run;
mod stress_ng;
pub mod tool;
mod xml;
mod ycsb;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use pagetide_compare::version::by_version;
use pagetide_outside::remedy;
use pagetide_quantity::Nanos;
use pagetide_quantity::command::command;
use pagetide_quantity::command::in_backticks;
use pagetide_record::subject::IMPORTED;
use pagetide_record::{
    ArenaKind, ArenaSpec, Maker, MemorySpec, Record, Subject, SwapSpec, Variant,
};
use pagetide_store::{
    CampaignNote, CellNote, Entry, MAX_VARIANTS, Pairing, Store, StoreError, is_campaign_name,
};
use serde::Serialize;

use crate::draw::clean;

/// Maximum size of a file in bytes, after decompression.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of files, or of folders of LKP, in one argument.
const MAX_FILES: usize = 10_000;
/// Maximum number of runs in one import.
const MAX_RUNS: usize = 100_000;
/// Maximum number of metrics in one run.
const MAX_METRICS: usize = 4096;

/// A file or folder to import, as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the variant for all results in the path; `None` if the user gave no name.
    pub variant: Option<String>,
    /// The file or folder to read.
    pub path: PathBuf,
}

/// Reasons why results cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("reading {path} was refused ({source}): {}", remedy(.source, None))]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file or folder contains no results of the expected kind.
    #[error("{path} holds no {what}: {remedy}")]
    Nothing {
        /// Path of the file or folder.
        path: PathBuf,
        /// Description of the results that files of this format hold.
        what: &'static str,
        /// What the user should name instead.
        remedy: &'static str,
    },
    /// A file is too large to be a result.
    #[error("{path} is larger than {} MiB: it is no result of this kind", limit >> 20)]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// There are more items than can be compared.
    #[error(
        "there are more than {most} {what}: import them in parts, each with a --name of its own"
    )]
    Beyond {
        /// Kind of the items, such as "trials".
        what: &'static str,
        /// Maximum number of items.
        most: usize,
    },
    /// A required column is missing.
    #[error(
        "{path} has no column `{column}`: the first line must name scenario, variant, metric, value and what --pair names"
    )]
    NoColumn {
        /// Path of the file.
        path: PathBuf,
        /// Name of the missing column.
        column: String,
    },
    /// A line has no value in the column that pairs trials.
    #[error(
        "{path} line {line}: the column `{column}`, which pairs trials, is empty: fill it in every line"
    )]
    NoBlock {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: u64,
        /// Name of the empty column.
        column: String,
    },
    /// No variant has the name that the user gave for the baseline.
    #[error("there is no variant {name} to be the baseline: there are {known}")]
    NoVariant {
        /// Name given by the user, shortened.
        name: String,
        /// Names of the variants that exist.
        known: String,
    },
    /// A cell cannot be parsed.
    #[error("{path} line {line}: `{text}` in column `{column}` is not {wanted}")]
    BadCell {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: u64,
        /// Name of the column that contains the cell.
        column: &'static str,
        /// The cell's text, shortened.
        text: String,
        /// The expected format, with an example.
        wanted: &'static str,
    },
    /// A metric occurs twice in the same trial.
    #[error(
        "{path} line {line}: metric {metric} of this scenario, variant and seed is there twice: give each run its own seed"
    )]
    Twice {
        /// Path of the file.
        path: PathBuf,
        /// Line number of the second occurrence, counted from 1.
        line: u64,
        /// Name of the metric, shortened.
        metric: String,
    },
    /// The content of a file does not follow its format.
    #[error(
        "{path}{} cannot be read as results of {tool} ({why}): make it anew ({made_by})",
        place(*.line)
    )]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Line number of the error, counted from 1; 0 if the error concerns no single line.
        line: usize,
        /// Name of the format.
        tool: &'static str,
        /// Description of the error, shortened.
        why: String,
        /// The command that makes a file of this format, or a description of such files.
        made_by: &'static str,
    },
    /// A file or folder contains more items than can be imported at once.
    #[error("{path} holds more than {limit} {what}: import fewer at a time")]
    TooMany {
        /// Path of the file or folder.
        path: PathBuf,
        /// Kind of the items, such as "runs".
        what: &'static str,
        /// Maximum number of items.
        limit: usize,
    },
    /// The format of a file or folder cannot be detected from its content.
    #[error(
        "{path} does not tell which tool made it: name the format before the path, such as `fio`; {} lists all",
        in_backticks("import --help")
    )]
    NoFormat {
        /// Path of the file or folder.
        path: PathBuf,
    },
    /// The files of this format name their own variants, but the user gave several paths or a variant name.
    #[error("results of {tool} name their own variants: give one path, without VARIANT=")]
    OneOnly {
        /// Name of the format.
        tool: &'static str,
    },
    /// The user gave one variant name for a file with several variants.
    #[error("{path} holds {variants} variants, which cannot all be {name}: leave out `{name}=`")]
    SeveralVariants {
        /// Path of the file.
        path: PathBuf,
        /// Number of variants in the file.
        variants: usize,
        /// Name given by the user, shortened.
        name: String,
    },
    /// Two paths would give the same variant name.
    #[error("{path} would be the second variant called {name}: name them, as in `OTHER={path}`")]
    OneName {
        /// The second of the two paths.
        path: PathBuf,
        /// The variant name, shortened.
        name: String,
    },
    /// The user stated that variants took turns, but the tool ran each variant several times in a row.
    #[error(
        "{path} holds several runs of each variant in a row, so they took no turns: leave out --interleaved"
    )]
    InARow {
        /// Path of the file with several runs in a row.
        path: PathBuf,
    },
    /// The values of a metric have different units or directions under two variants.
    #[error(
        "metric {metric} of {scenario} is in different units or directions under two variants: measure both alike"
    )]
    MixedUnits {
        /// Name of the metric, shortened.
        metric: String,
        /// Name of the scenario, shortened.
        scenario: String,
    },
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file is not valid CSV.
    #[error(
        "{path} is not readable as CSV ({why}): separate by commas, quote by double quotes, write UTF-8"
    )]
    NoCsv {
        /// Path of the file.
        path: PathBuf,
        /// Error message of the CSV parser.
        why: String,
    },
}

impl ImportError {
    /// True if the format, a path, a variant's name or `--interleaved` on the command line is wrong. A wrong name of
    /// the baseline or column is not included.
    pub fn is_user_error(&self) -> bool {
        matches!(
            self,
            Self::NoFormat { .. }
                | Self::OneOnly { .. }
                | Self::SeveralVariants { .. }
                | Self::OneName { .. }
                | Self::InARow { .. }
        )
    }
}

/// Returns a line number as text for an error message, such as ` line 7`; empty for line 0.
fn place(line: usize) -> String {
    match line {
        0 => String::new(),
        line => format!(" line {line}"),
    }
}

/// Records from another tool, with the keys that pair trials.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The imported records, in the order of the input.
    pub records: Vec<Record>,
    /// For each record, a key; records of different variants with equal keys are a pair. Unused if `paired_by` is
    /// `None`.
    pub blocks: Vec<String>,
    /// Name of the key, such as `seed`; `None` if trials are not paired.
    pub paired_by: Option<String>,
    /// True if records with the same key are pairs even if they were recorded in different sessions.
    pub lasting: bool,
    /// Reason why the first variant of the input is the baseline if neither the user nor start times determine it.
    pub first: &'static str,
    /// Path of a file with several runs of a variant in a row, which shows that variants did not take turns; `None` if
    /// there is no such file.
    pub in_a_row: Option<PathBuf>,
}

/// Summary of the data that an import added to the store.
#[derive(Clone, Debug, Serialize)]
pub struct ImportSummary {
    /// ID of the campaign that was created from the results.
    pub campaign: String,
    /// Number of imported records.
    pub records: usize,
    /// Names of the variants, the baseline first.
    pub variants: Vec<String>,
    /// Reason for the choice of the baseline, and the rule that pairs trials; `None` if they are not known.
    pub pairing: Option<Pairing>,
}

impl Display for ImportSummary {
    /// Writes the summary as a few lines, the last one without a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variants = self.variants.join(", ");
        writeln!(f, "{} records of {variants} are in the store", self.records)?;
        if let (Some(pairing), Some(baseline)) = (&self.pairing, self.variants.first()) {
            let pairs = match &pairing.paired_by {
                Some(what) => format!("trials are paired by {what}"),
                None => "nothing pairs the trials (--pair COLUMN)".to_owned(),
            };
            write!(f, "Baseline is {baseline}, {}; {pairs}.", pairing.baseline)?;
        }
        let campaign = &self.campaign;
        write!(
            f,
            "\nNext:\n  {}\n  {}",
            command(&["compare", campaign.as_str()]),
            command(&["list", "records", "--campaign", campaign.as_str()])
        )
    }
}

impl Batch {
    /// Adds the records to a store as a new run of the campaign with this name.
    pub fn add(
        mut self,
        store: &mut Store,
        name: &str,
        claims: Claims<'_>,
    ) -> Result<ImportSummary, ImportError> {
        let last = store.latest_of(name)?;
        let generation = last.map_or(1, |note| note.generation.max(1) + 1);
        let note = note(name, generation, &mut self, claims)?;
        store.add_all(&mut self.records)?;
        store.note(&note)?;
        Ok(ImportSummary {
            campaign: note.id(),
            records: self.records.len(),
            variants: note.variants,
            pairing: note.imported,
        })
    }
}

/// Returns the name for a campaign, derived from the name of a file or folder; `imported` if that gives no valid name.
pub fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let clean: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(80)
        .collect();
    let clean = clean.trim_matches('-');
    if is_campaign_name(clean) {
        clean.to_owned()
    } else {
        "imported".to_owned()
    }
}

/// Information from the user about imported records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claims<'a> {
    /// Name of the baseline; `None` if the user did not name one.
    pub baseline: Option<&'a str>,
    /// True if the user stated that the variants took turns.
    pub interleaved: bool,
    /// Command line that imports the records.
    pub command: &'a str,
}

/// Makes a campaign of imported records, so that `compare` finds their variants by name. The first variant is the
/// baseline: the one named by the user, otherwise the earliest if all start times are known, otherwise the first in the
/// input. The campaign's ID is written into the records. Each record gets a sampling unit, which is the same for both
/// records of a pair. `generation` is one more than that of the last campaign with this name in the store, 1 for the
/// first. Fails if the records contradict the user's claims or each other, or if there are too many variants.
pub fn note(
    name: &str,
    generation: u32,
    batch: &mut Batch,
    claims: Claims<'_>,
) -> Result<CampaignNote, ImportError> {
    if let Some(path) = batch.in_a_row.as_ref().filter(|_| claims.interleaved) {
        return Err(ImportError::InARow { path: path.clone() });
    }
    are_alike(&batch.records)?;
    let (variants, baseline) = variants(batch, claims)?;
    let records = &mut batch.records;
    let mut note = CampaignNote {
        name: name.to_owned(),
        generation,
        fresh: true,
        started: records
            .iter()
            .map(|record| record.wall.started)
            .min()
            .unwrap_or_default(),
        arena: ArenaKind::Host,
        command: claims.command.to_owned(),
        variants,
        imported: Some(Pairing {
            paired_by: batch.paired_by.clone(),
            lasting: batch.lasting,
            interleaved: claims.interleaved,
            baseline,
        }),
        ..CampaignNote::default()
    };
    let id = note.id();
    let mut cells: BTreeMap<String, usize> = BTreeMap::new();
    // Units by cell and block, the next unit of each cell, and the number of records of each cell, variant and unit.
    let mut units: BTreeMap<(usize, String), u32> = BTreeMap::new();
    let mut sizes: BTreeMap<usize, u32> = BTreeMap::new();
    let mut taken: BTreeMap<(usize, usize, u32), u32> = BTreeMap::new();
    // Records are sorted by time, so that similarity between consecutive trials can be detected.
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|&place| records[place].wall.started);
    for place in order {
        let record = &mut records[place];
        let subject = &record.subject;
        let variant = position(&mut note.variants, &subject.variant.name);
        let cell = *cells.entry(subject.cell()).or_insert_with(|| {
            note.cells.push(CellNote {
                label: subject.cell_label(),
                ..CellNote::default()
            });
            note.cells.len() - 1
        });
        let block = match &batch.paired_by {
            Some(_) => batch.blocks[place].clone(),
            None => place.to_string(),
        };
        let unit = *units.entry((cell, block)).or_insert_with(|| {
            let size = sizes.entry(cell).or_default();
            *size += 1;
            *size - 1
        });
        let repetition = taken.entry((cell, variant, unit)).or_default();
        note.entries.push(Entry {
            key: subject.key(),
            cell,
            variant,
            unit,
            repetition: *repetition,
        });
        record.wall.unit = unit;
        record.wall.repetition = *repetition;
        record.wall.campaign.clone_from(&id);
        *repetition += 1;
    }
    Ok(note)
}

/// Returns an error if a metric has different units or directions in two records of the same scenario and parameters.
fn are_alike(records: &[Record]) -> Result<(), ImportError> {
    let mut known = BTreeMap::new();
    for record in records {
        let cell = (&record.subject.scenario, &record.subject.params);
        for metric in &record.results.metrics {
            let kind = (metric.unit, metric.direction);
            if *known.entry((cell, &metric.name)).or_insert(kind) != kind {
                return Err(ImportError::MixedUnits {
                    metric: clean(&metric.name, 60, false),
                    scenario: clean(&record.subject.scenario, 60, false),
                });
            }
        }
    }
    Ok(())
}

/// Returns the names of all variants, the baseline first, and the reason for the choice of the baseline. Fails if there
/// are more than [`MAX_VARIANTS`], or none has the name that the user gave for the baseline.
fn variants(batch: &Batch, claims: Claims<'_>) -> Result<(Vec<String>, String), ImportError> {
    let mut begun: Vec<(String, Nanos)> = Vec::new();
    for record in &batch.records {
        let (name, started) = (&record.subject.variant.name, record.wall.started);
        match begun.iter_mut().find(|(known, _)| known == name) {
            Some((_, first)) => *first = started.min(*first),
            None => begun.push((name.clone(), started)),
        }
        if begun.len() > MAX_VARIANTS {
            return Err(ImportError::Beyond {
                what: "variants",
                most: MAX_VARIANTS,
            });
        }
    }
    let mut why = batch.first;
    if begun.iter().all(|(_, first)| *first > Nanos(0)) {
        begun.sort_by(|x, y| x.1.cmp(&y.1).then_with(|| by_version(&x.0, &y.0)));
        why = "the first by time";
    }
    let mut names: Vec<String> = begun.into_iter().map(|(name, _)| name).collect();
    if let Some(wanted) = claims.baseline {
        let Some(place) = names.iter().position(|name| name == wanted) else {
            return Err(ImportError::NoVariant {
                name: clean(wanted, 80, false),
                known: clean(&names.join(", "), 400, false),
            });
        };
        names[..=place].rotate_right(1);
        why = "as asked for";
    }
    Ok((names, why.to_owned()))
}

/// Returns the index of a text in a list; a new text is appended.
fn position(list: &mut Vec<String>, text: &str) -> usize {
    list.iter()
        .position(|known| known == text)
        .unwrap_or_else(|| {
            list.push(text.to_owned());
            list.len() - 1
        })
}

/// Creates the record of an imported trial, without results yet.
fn record(source: &str, scenario: &str, mut variant: Variant, seed: u64) -> Record {
    // Names are not part of a trial's key, so the digest must distinguish imported kernels.
    variant.kernel.digest = format!("imported as {}", variant.name);
    Record {
        subject: Subject {
            scenario: scenario.to_owned(),
            seed,
            variant,
            arena: ArenaSpec {
                kind: ArenaKind::Host,
                machine: format!("{IMPORTED}{source}"),
                ..ArenaSpec::default()
            },
            // Memory and swap are unknown; the value zero and the kind "none" stand for unknown.
            memory: MemorySpec::Total(pagetide_quantity::Bytes(0)),
            swap: SwapSpec::None,
            ..Subject::default()
        },
        maker: Maker {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: String::new(),
        },
        ..Record::default()
    }
}
