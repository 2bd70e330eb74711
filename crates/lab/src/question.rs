//! Input of `pagetide ideal`: memory references of a scenario, a record or a file, and sizes of memory.

use std::path::Path;

use pagetide_compare::profiled::with_references;
use pagetide_oracle::{
    Format, ReferenceError, ReferenceString, UnknownReferences, known, memory_at_hand,
};
use pagetide_quantity::command::in_backticks;
use pagetide_quantity::{Bytes, PAGE_SIZE};
use pagetide_record::Record;
use pagetide_scenario::{Context, ScenarioError};
use pagetide_store::{Store, StoreError};
use thiserror::Error;

use crate::recorded::{self, RecordedStringError};

/// Why memory references are not available.
#[derive(Debug, Error)]
pub enum QuestionError {
    /// The name is neither a scenario, nor a record, nor a file.
    #[error("`{what}` is no file, no scenario (`pagetide list scenarios`) and no record")]
    Nothing {
        /// The name, as the user gave it.
        what: String,
        /// The store's error from the search for a record.
        source: StoreError,
    },
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A file of memory references cannot be read.
    #[error("{0}")]
    File(#[from] ReferenceError),
    /// The memory references of this scenario are not known.
    #[error("{0}")]
    Unknown(#[from] UnknownReferences),
    /// A record's references cannot be computed from its parameters, and its trial did not record them.
    #[error(
        "{source}, and the trial of record {record} recorded none: {} records them",
        in_backticks("run SCENARIO --references")
    )]
    NotRecorded {
        /// ID of the record.
        record: String,
        /// Why the references cannot be computed from the parameters.
        source: UnknownReferences,
    },
    /// The user asked for recorded references, but the record's trial did not record any.
    #[error(
        "the trial of record {record} recorded no references: {} records them",
        in_backticks("run SCENARIO --references")
    )]
    NoneRecorded {
        /// ID of the record.
        record: String,
    },
    /// Recorded references cannot be used.
    #[error("{0}")]
    Recorded(#[from] RecordedStringError),
    /// The parameters are not valid for the scenario.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
}

/// A request for memory references, from the command line.
#[derive(Clone, Debug, Default)]
pub struct ReferencesQuestion {
    /// Name of a scenario, ID of a record, or path of a file.
    pub what: String,
    /// Sizes of memory, in bytes; empty if the user gave none.
    pub memory: Vec<Bytes>,
    /// Sizes of memory, in pages; empty if the user gave none.
    pub pages: Vec<u32>,
    /// Names and values of the scenario's parameters.
    pub params: Vec<(String, String)>,
    /// Random seed for the scenario's references.
    pub seed: u64,
    /// Format of a file of references; `None` to detect it from the contents.
    pub format: Option<Format>,
    /// Maximum memory for the references, in bytes; `None` for a quarter of the available memory, at most 4 GiB.
    pub hold: Option<Bytes>,
    /// True if writes must be distinguished from reads.
    pub writes: bool,
    /// True to use the references that a record's trial recorded, even if they can be computed from its parameters.
    pub recorded: bool,
}

/// Memory references, and the sizes of memory for which to compute faults.
pub struct KnownReferences {
    /// The memory references, in order.
    pub string: ReferenceString,
    /// Sizes of memory in pages; empty if `what` is a file and no size was given.
    pub sizes: Vec<u32>,
    /// The record that was named; `None` for a scenario or a file.
    pub record: Option<Box<Record>>,
    /// Sentence for the user on recorded references; `None` if the references were computed.
    pub recorded: Option<String>,
}

impl ReferencesQuestion {
    /// Returns all given sizes in pages: first those in bytes, then those in pages.
    pub fn sizes(&self) -> Vec<u32> {
        let memory = self.memory.iter().map(|memory| in_pages(*memory));
        memory.chain(self.pages.iter().copied()).collect()
    }

    /// True if no size of memory is known: none was given, and `what` is a file.
    pub fn is_open(&self) -> bool {
        self.sizes().is_empty() && Path::new(&self.what).is_file()
    }

    /// Returns the requested references and sizes. `store` is called only if a record is named. Fails if `what` is not
    /// known, or if its references are not.
    pub fn references(
        &self,
        store: impl FnOnce() -> Result<Store, StoreError>,
    ) -> Result<KnownReferences, QuestionError> {
        let mut sizes = self.sizes();
        if Path::new(&self.what).is_file() {
            let read = if self.writes {
                ReferenceString::read_with_writes
            } else {
                ReferenceString::read
            };
            let string = read(Path::new(&self.what), self.format.clone(), self.most())?;
            return Ok(KnownReferences {
                string,
                sizes,
                record: None,
                recorded: None,
            });
        }
        let (string, own, record, recorded) = match pagetide_scenario::find(&self.what) {
            Ok(definition) => {
                let memory = match (self.memory.first(), self.pages.first()) {
                    (_, Some(pages)) => Bytes(u64::from(*pages) * PAGE_SIZE),
                    (Some(memory), None) => *memory,
                    (None, None) => definition.default_memory,
                };
                (self.of_scenario(memory)?, memory, None, None)
            }
            Err(_) => self.of_record(&store()?)?,
        };
        if sizes.is_empty() {
            sizes.push(in_pages(own));
        }
        Ok(KnownReferences {
            string,
            sizes,
            record,
            recorded,
        })
    }

    /// Returns the maximum number of references that fit into the memory for them.
    fn most(&self) -> u64 {
        let hold = self.hold.map(|hold| hold.0);
        hold.unwrap_or_else(|| (memory_at_hand() / 4).min(4 << 30)) / 4
    }

    /// Returns the references of the scenario, with parameters for this memory.
    fn of_scenario(&self, memory: Bytes) -> Result<ReferenceString, QuestionError> {
        let context = Context {
            memory,
            swap_size: Bytes(memory.0.saturating_mul(1000)),
            cpus: 1,
        };
        let given = self.params.iter().cloned().collect();
        let params = pagetide_scenario::resolve(&self.what, false, None, &given, &context)?;
        let definition = pagetide_scenario::find(&self.what)?;
        Ok(known(definition.name, false, &params, self.seed)?)
    }

    /// Returns the references of a record's trial, the memory of the trial, and the record. Uses recorded references if
    /// the references cannot be computed from the trial's parameters, or if the user asks for recorded ones; then also
    /// returns a sentence on them.
    fn of_record(&self, store: &Store) -> Result<OfRecord, QuestionError> {
        let row = store
            .find(&self.what)
            .map_err(|source| QuestionError::Nothing {
                what: self.what.clone(),
                source,
            })?;
        let record = store.load(&row.id)?.into_record();
        let subject = &record.subject;
        let (name, memory) = (&subject.scenario, subject.room());
        let known = known(name, subject.as_written, &subject.params, subject.seed);
        let (string, sentence) = match known {
            Ok(string) if !self.recorded => (string, None),
            other => {
                let Some(found) = with_references(store, &row)? else {
                    let record = row.id;
                    return Err(match other {
                        Ok(_) => QuestionError::NoneRecorded { record },
                        Err(source) => QuestionError::NotRecorded { record, source },
                    });
                };
                let (string, header) = recorded::string(&found, self.most(), self.writes)?;
                (string, Some(recorded::sentence(&header)))
            }
        };
        Ok((string, memory, Some(Box::new(record)), sentence))
    }
}

/// References, the memory of a trial, its record, and a sentence on recorded references.
type OfRecord = (ReferenceString, Bytes, Option<Box<Record>>, Option<String>);

fn in_pages(memory: Bytes) -> u32 {
    u32::try_from(memory.pages().0).unwrap_or(u32::MAX).max(1)
}
