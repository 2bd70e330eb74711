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
mod xml;
mod ycsb;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use pagetide_compare::version::by_version;
use pagetide_outside::remedy;
use pagetide_quantity::Nanos;
use pagetide_quantity::command::command;
use pagetide_record::subject::IMPORTED;
use pagetide_record::{
    ArenaKind, ArenaSpec, Maker, MemorySpec, Record, Subject, SwapSpec, Variant,
};
use pagetide_store::{
    CampaignNote, CellNote, Entry, MOST_VARIANTS, Pairing, Store, StoreError, is_campaign_name,
};
use serde::Serialize;

use crate::draw::clean;

/// Largest file that is read, decompressed.
const MOST_BYTES: u64 = 64 << 20;
/// Most files or folders of one argument.
const MOST_FILES: usize = 10_000;
/// Most runs of one import.
const MOST_RUNS: usize = 100_000;
/// Most metrics of one run.
const MOST_METRICS: usize = 4096;

/// What a user names to be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The variant that it holds, if the user said so.
    pub variant: Option<String>,
    /// The file or folder.
    pub path: PathBuf,
}

/// Why something cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("reading {path} was refused ({source}): {}", remedy(.source, None))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file or folder contains nothing of this kind.
    #[error("{path} holds no {what}: {remedy}")]
    Nothing {
        /// The file or folder.
        path: PathBuf,
        /// What was expected.
        what: &'static str,
        /// What to give instead.
        remedy: &'static str,
    },
    /// A file is too large to be a result.
    #[error("{path} is larger than {} MiB: it is no result of this kind", limit >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// There are more items than can be compared.
    #[error(
        "there are more than {most} {what}: import them in parts, each with a --name of its own"
    )]
    Beyond {
        /// Of what.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// A required column is missing.
    #[error(
        "{path} has no column `{column}`: the first line must name scenario, variant, metric, value and what --pair names"
    )]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// A line has no value in the column that pairs trials.
    #[error(
        "{path} line {line}: the column `{column}`, which pairs trials, is empty: fill it in every line"
    )]
    NoBlock {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// The column.
        column: String,
    },
    /// There is no variant of this name.
    #[error("there is no variant {name} to be the baseline: there are {known}")]
    NoVariant {
        /// The name given, shortened.
        name: String,
        /// The variants that exist.
        known: String,
    },
    /// A cell cannot be parsed.
    #[error("{path} line {line}: `{text}` in column `{column}` is not {wanted}")]
    BadCell {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// The cell's text, shortened.
        text: String,
        /// The expected format, with an example.
        wanted: &'static str,
    },
    /// The same metric of the same trial occurs twice.
    #[error(
        "{path} line {line}: metric {metric} of this scenario, variant and seed is there twice: give each run its own seed"
    )]
    Twice {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// The metric, shortened.
        metric: String,
    },
    /// A file is not what its format demands.
    #[error(
        "{path}{} cannot be read as results of {tool} ({why}): make it anew ({made_by})",
        place(*.line)
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1; 0 if no line is to blame.
        line: usize,
        /// The format.
        tool: &'static str,
        /// What is wrong, cut.
        why: String,
        /// What makes such files.
        made_by: &'static str,
    },
    /// There is more than anything sensible.
    #[error("{path} holds more than {limit} {what}: import fewer at a time")]
    TooMany {
        /// The file or folder.
        path: PathBuf,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The format cannot be told from the content.
    #[error(
        "{path} does not tell which tool made it: name the format before the path, such as `fio`; `pagetide import --help` lists all"
    )]
    NoFormat {
        /// The file or folder.
        path: PathBuf,
    },
    /// A format that names its own variants was given several paths, or a name.
    #[error("results of {tool} name their own variants: give one path, without VARIANT=")]
    OneOnly {
        /// The format.
        tool: &'static str,
    },
    /// One name was given to several variants.
    #[error("{path} holds {variants} variants, which cannot all be {name}: leave out `{name}=`")]
    SeveralVariants {
        /// The file.
        path: PathBuf,
        /// How many.
        variants: usize,
        /// The name.
        name: String,
    },
    /// Two paths have the same name.
    #[error("{path} would be the second variant called {name}: name them, as in `OTHER={path}`")]
    OneName {
        /// The second path.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// Turns were claimed where the tool takes none.
    #[error(
        "{path} holds several runs of each variant in a row, so they took no turns: leave out --interleaved"
    )]
    InARow {
        /// The file.
        path: PathBuf,
    },
    /// A metric has two units.
    #[error(
        "metric {metric} of {scenario} is in different units or directions under two variants: measure both alike"
    )]
    MixedUnits {
        /// The metric, cut.
        metric: String,
        /// The scenario, cut.
        scenario: String,
    },
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file is not valid CSV.
    #[error(
        "{path} is not readable as CSV ({why}): separate by commas, quote by double quotes, write UTF-8"
    )]
    NoCsv {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        why: String,
    },
}

impl ImportError {
    /// True if the user's words are to blame, not a file.
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

/// A line as errors name it.
fn place(line: usize) -> String {
    match line {
        0 => String::new(),
        line => format!(" line {line}"),
    }
}

/// Records of others, and what pairs them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The records.
    pub records: Vec<Record>,
    /// For each record, the key that records of other variants must share to be paired with it. Unused if `paired_by`
    /// is `None`.
    pub blocks: Vec<String>,
    /// Name of the key, such as `seed`; `None` if trials are not paired.
    pub paired_by: Option<String>,
    /// True if records with the same key are pairs even if they were recorded in different sessions.
    pub lasting: bool,
    /// Why the first variant is the baseline, if neither start times nor the user decide that.
    pub first: &'static str,
    /// A file that holds several runs of a variant in a row, so that variants cannot have taken turns.
    pub in_a_row: Option<PathBuf>,
}

/// Result of an import.
#[derive(Clone, Debug, Serialize)]
pub struct ImportSummary {
    /// The campaign created from the results.
    pub campaign: String,
    /// Number of records.
    pub records: usize,
    /// Its variants, the baseline first.
    pub variants: Vec<String>,
    /// The baseline with its reason, and what pairs trials.
    pub pairing: Option<Pairing>,
}

impl Display for ImportSummary {
    /// Writes a few lines, the last one without a line break.
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
    /// Adds the records to a store as a campaign with this name.
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

/// Name for a campaign, derived from a file or folder.
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
    /// The baseline, if the user named one.
    pub baseline: Option<&'a str>,
    /// True if the variants took turns.
    pub interleaved: bool,
    /// The command that imports the records.
    pub command: &'a str,
}

/// Makes a campaign of imported records, so that `compare` finds their variants by name. The first variant is the
/// baseline: the one named by the user, otherwise the earliest, otherwise the first in the input. The campaign is
/// written to the records. Each record gets a sampling unit, the same one for records that are a pair. `generation` is
/// one more than that of the last campaign with this name in the store, 1 for the first.
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
    // In the order of time, so that similarity between consecutive trials can be detected.
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

/// Fails if a metric has another unit or direction in another record of its cell.
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

/// The names of all variants, the baseline first, and why it is that.
fn variants(batch: &Batch, claims: Claims<'_>) -> Result<(Vec<String>, String), ImportError> {
    let mut begun: Vec<(String, Nanos)> = Vec::new();
    for record in &batch.records {
        let (name, started) = (&record.subject.variant.name, record.wall.started);
        match begun.iter_mut().find(|(known, _)| known == name) {
            Some((_, first)) => *first = started.min(*first),
            None => begun.push((name.clone(), started)),
        }
        if begun.len() > MOST_VARIANTS {
            return Err(ImportError::Beyond {
                what: "variants",
                most: MOST_VARIANTS,
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

/// Index of a text in a list; a new text is appended.
fn position(list: &mut Vec<String>, text: &str) -> usize {
    list.iter()
        .position(|known| known == text)
        .unwrap_or_else(|| {
            list.push(text.to_owned());
            list.len() - 1
        })
}

/// A record of an imported trial, still without results.
fn record(source: &str, scenario: &str, mut variant: Variant, seed: u64) -> Record {
    // Names are not part of a trial's identity, so the digest must distinguish imported kernels.
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
            // Memory and swap are unknown; zero and none stand for that.
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
