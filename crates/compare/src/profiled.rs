//! Profiled passes: exact accounts of the difference between two trials with the same seed.

use std::collections::HashMap;

use pagetide_profile::{Account, PROFILE, Profile, ProfileError, account};
use pagetide_record::record::SectionInfo;
use pagetide_record::{FileError, Pass, Record, RecordReader, Subject, TraceRing};
use pagetide_store::{Row, Store, StoreError, short};
use serde::Serialize;

pub use pagetide_profile::{ANNOTATION, REFERENCES};

use crate::comparison::{Side, TrialRef};
use crate::observation::partner;

/// Note on an account of a kernel without names.
const NO_LIST: &str = "a kernel of the profiled passes has no list of its functions (CONFIG_KALLSYMS): its time is \"not grouped\", and \
    what was waited for is not known";

/// Why the profile of a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfiledError {
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The blob with the profile cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content of the blob is not a profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// A profiled pass, and the check that its results equal those of the timed pass.
#[derive(Clone, Debug)]
pub struct ProfiledPass {
    /// ID of the profiled record.
    pub record: String,
    /// Random seed of the trial.
    pub seed: u64,
    /// Instruction counts of the pass.
    pub profile: Profile,
    /// Check against the timed pass of the same trial.
    pub proof: Proof,
}

/// Result of the check that a profiled pass has the same results as the timed pass of the same trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Digest of the profiled pass's results, without the profile, recorded references and annotation.
    pub digest: String,
    /// Digest of the timed pass's results; `None` if the store has no timed pass of this trial.
    pub timed: Option<String>,
    /// Number of counted instructions minus the time on the guest's clock in nanoseconds. Zero if the count is exact.
    pub gap: i64,
}

impl Proof {
    /// True if the results of both passes are bit-identical, and all instructions were counted.
    pub fn holds(&self) -> bool {
        self.gap == 0 && self.timed.as_ref() == Some(&self.digest)
    }

    /// Returns a sentence that states which results were compared, and whether they are equal.
    pub fn sentence(&self) -> String {
        let counted = match self.gap {
            0 => "instructions and waits add up to the time to the nanosecond".to_owned(),
            gap => format!("instructions and waits miss the time by {gap} ns"),
        };
        let compared = match &self.timed {
            Some(timed) if *timed == self.digest => format!(
                "the results equal those of the timed pass to the bit (digest {})",
                short(timed)
            ),
            Some(timed) => format!(
                "the results differ from those of the timed pass (digests {} and {})",
                short(&self.digest),
                short(timed)
            ),
            None => "the store has no timed pass to compare the results with".to_owned(),
        };
        format!("{compared}; {counted}")
    }
}

/// Returns the digest of a record's results without the profile, recorded references and annotation. It equals the
/// digest of an equal timed pass.
fn digest_without_profile(record: &Record) -> String {
    let own = [PROFILE, REFERENCES, ANNOTATION];
    let others = |section: &&SectionInfo| !own.contains(&section.name.as_str());
    let sections: Vec<SectionInfo> = record.sections.iter().filter(others).cloned().collect();
    Record::digest_of(&record.results, &sections)
}

/// True if the results of two records are bit-identical, apart from what only profiled passes have.
pub fn same_results(a: &Record, b: &Record) -> bool {
    digest_without_profile(a) == digest_without_profile(b)
}

/// Returns the records of the profiled passes of a record's trial, newest first.
fn passes(store: &Store, row: &Row) -> Result<Vec<Row>, StoreError> {
    let key = Subject {
        pass: Pass::Profiled,
        trace_ring: TraceRing::default(),
        ..row.subject()
    }
    .key();
    store.by_keys(&[key])
}

fn has_blob(record: &Record, name: &str) -> bool {
    let is_wanted = |section: &SectionInfo| section.kind == "blob" && section.name == name;
    record.sections.iter().any(is_wanted)
}

/// True if this record itself contains recorded references.
pub fn has_references(record: &Record) -> bool {
    has_blob(record, REFERENCES)
}

/// Returns the newest record of a profiled pass of a record's trial that has recorded references; `None` if there is
/// none.
pub fn with_references(store: &Store, row: &Row) -> Result<Option<RecordReader>, StoreError> {
    for row in passes(store, row)? {
        let reader = store.load(&row.id)?;
        if has_references(reader.record()) {
            return Ok(Some(reader));
        }
    }
    Ok(None)
}

/// True if a record's trial had a profiled pass, whose scenario may not have ended.
pub fn was_profiled(store: &Store, row: &Row) -> Result<bool, StoreError> {
    let is_profiled = row.subject().pass == Pass::Profiled;
    Ok(is_profiled || !passes(store, row)?.is_empty())
}

/// Returns the profiled pass of a record's trial: the record itself if it is profiled, otherwise the newest profiled
/// record of the trial. `None` if the trial was not profiled, or if its scenario did not end.
pub fn profiled(store: &Store, row: &Row) -> Result<Option<ProfiledPass>, ProfiledError> {
    let row = if row.subject().pass == Pass::Profiled {
        row.clone()
    } else {
        match passes(store, row)?.into_iter().next() {
            Some(row) => row,
            None => return Ok(None),
        }
    };
    let reader = store.load(&row.id)?;
    let record = reader.record();
    if !has_blob(record, PROFILE) {
        return Ok(None);
    }
    let profile = Profile::read(reader.blob(PROFILE)?)?;
    let timed = partner(store, &row)?.map(|timed| timed.digest);
    Ok(Some(ProfiledPass {
        record: row.id,
        seed: record.subject.seed,
        proof: Proof {
            digest: digest_without_profile(record),
            timed,
            gap: profile.gap(),
        },
        profile,
    }))
}

/// Exact account of the difference between two trials with the same seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeedAccount {
    /// Random seed of both trials.
    pub seed: u64,
    /// IDs of the profiled records of the two sides.
    pub records: [String; 2],
    /// The difference of the times, split by its causes.
    pub account: Account,
    /// For each side, the check that its results equal those of the timed pass.
    pub proofs: [Proof; 2],
    /// Each seed that is profiled on both sides, with the change of its elapsed time in nanoseconds.
    pub each: Vec<(u64, i64)>,
}

/// Reads the exact accounts of one cell. Each profiled pass of the baseline is read only once for all columns.
pub(crate) struct Accountant<'a> {
    store: &'a Store,
    baseline: &'a Side,
    /// Results of [`pass_of`] for trials of the baseline, by the ID of the trial's record.
    passes: HashMap<&'a str, Result<Option<ProfiledPass>, String>>,
}

impl<'a> Accountant<'a> {
    /// Creates a reader for a cell with this baseline. Reads nothing yet.
    pub fn new(store: &'a Store, baseline: &'a Side) -> Self {
        Self {
            store,
            baseline,
            passes: HashMap::new(),
        }
    }

    /// Returns the exact account of the difference between the baseline and another side, in the first seed that is
    /// profiled on both sides; `None` if there is no such seed. Adds a note for each profile that cannot be used.
    pub fn account(&mut self, side: &Side, notes: &mut Vec<String>) -> Option<SeedAccount> {
        let mut first: Option<SeedAccount> = None;
        let mut each = Vec::new();
        for own in &self.baseline.trials {
            let Some(other) = side.trials.iter().find(|other| other.seed == own.seed) else {
                continue;
            };
            if each.iter().any(|(seed, _)| *seed == own.seed) {
                continue;
            }
            let own_pass = self.passes.entry(&own.record);
            let own_pass = own_pass.or_insert_with(|| pass_of(self.store, own));
            let other_pass = pass_of(self.store, other);
            let [x, y] = [own_pass, &other_pass].map(|pass| match pass {
                Ok(pass) => pass.as_ref(),
                Err(note) => {
                    notes.push(note.clone());
                    None
                }
            });
            let (Some(x), Some(y)) = (x, y) else {
                continue;
            };
            let is_nameless = [x, y].iter().any(|pass| pass.profile.is_without_list());
            if is_nameless && !notes.iter().any(|note| note == NO_LIST) {
                notes.push(NO_LIST.to_owned());
            }
            let change = y.profile.elapsed.wrapping_sub(x.profile.elapsed);
            each.push((own.seed, change.cast_signed()));
            first.get_or_insert_with(|| SeedAccount {
                seed: own.seed,
                records: [x, y].map(|pass| pass.record.clone()),
                account: account(&x.profile, &y.profile),
                proofs: [x, y].map(|pass| pass.proof.clone()),
                each: Vec::new(),
            });
        }
        first.map(|first| SeedAccount { each, ..first })
    }
}

/// Returns the profiled pass of a trial; `None` if the trial was not profiled. Fails with a note for the user if the
/// profile cannot be used.
fn pass_of(store: &Store, trial: &TrialRef) -> Result<Option<ProfiledPass>, String> {
    let found = store.find(&trial.record).map_err(ProfiledError::from);
    found
        .and_then(|row| profiled(store, &row))
        .map_err(|why| format!("the profile of seed {} was left out: {why}", trial.seed))
}
