//! Profiled passes: exact accounts of the difference between two trials with the same seed.

use pagetide_profile::{Account, PROFILE, Profile, ProfileError, account};
use pagetide_record::record::SectionInfo;
use pagetide_record::{FileError, Pass, Record, Subject, TraceRing};
use pagetide_store::{Row, Store, StoreError};
use serde::Serialize;

use crate::comparison::{Side, TrialRef};
use crate::observation::partner;

/// Reason why the profile of a record cannot be used.
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
    /// Identity of the profiled record.
    pub record: String,
    /// Random seed of the trial.
    pub seed: u64,
    /// Instruction counts of the pass.
    pub profile: Profile,
    /// Check against the timed pass of the same trial.
    pub proof: Proof,
}

/// Check that a profiled pass has the same results as the timed pass of the same trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Digest of the profiled pass's results, without the profile itself.
    pub digest: String,
    /// Digest of the timed pass's results; `None` if the store has no timed pass of this trial.
    pub timed: Option<String>,
    /// Number of counted instructions minus the time on the guest's clock in nanoseconds. Zero if the count is exact.
    pub gap: i64,
}

impl Proof {
    /// True if the results of both passes are equal, bit for bit, and all instructions were counted.
    pub fn holds(&self) -> bool {
        self.gap == 0 && self.timed.as_ref() == Some(&self.digest)
    }

    /// Sentence that says what was compared, and the result.
    pub fn sentence(&self) -> String {
        let short = |digest: &str| digest.get(..12).unwrap_or(digest).to_owned();
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

/// Digest of a record's results without the profile. It equals the digest of an equal timed pass.
fn digest_without_profile(record: &Record) -> String {
    let others = |section: &&SectionInfo| section.name != PROFILE;
    let sections: Vec<SectionInfo> = record.sections.iter().filter(others).cloned().collect();
    Record::digest_of(&record.results, &sections)
}

/// The profiled pass of a record's trial: the record itself, or the record of another pass of the same trial. `None` if
/// the trial was not profiled, or if its scenario did not end.
pub fn profiled(store: &Store, row: &Row) -> Result<Option<ProfiledPass>, ProfiledError> {
    let row = if row.subject().pass == Pass::Profiled {
        row.clone()
    } else {
        let key = Subject {
            pass: Pass::Profiled,
            trace_ring: TraceRing::default(),
            ..row.subject()
        }
        .key();
        // Rows are sorted newest first.
        match store.by_keys(&[key])?.into_iter().next() {
            Some(row) => row,
            None => return Ok(None),
        }
    };
    let reader = store.load(&row.id)?;
    let record = reader.record();
    let has_profile = |section: &SectionInfo| section.kind == "blob" && section.name == PROFILE;
    if !record.sections.iter().any(has_profile) {
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
    /// Identities of the profiled records of the two sides.
    pub records: [String; 2],
    /// The difference of the times, split by its causes.
    pub account: Account,
    /// For each side, the check that its results equal those of the timed pass.
    pub proofs: [Proof; 2],
    /// For each seed that is profiled on both sides: the seed, and the change of the elapsed time in nanoseconds.
    pub each: Vec<(u64, i64)>,
}

/// Exact account of the difference between two sides, in the first seed that is profiled on both sides; `None` if there
/// is no such seed. Adds a note for each profile that cannot be used.
pub(crate) fn seed_account(
    store: &Store,
    [a, b]: [&Side; 2],
    notes: &mut Vec<String>,
) -> Option<SeedAccount> {
    let mut read = |trial: &TrialRef| {
        let found = store.find(&trial.record).map_err(ProfiledError::from);
        match found.and_then(|row| profiled(store, &row)) {
            Ok(pass) => pass,
            Err(why) => {
                notes.push(format!(
                    "the profile of seed {} was left out: {why}",
                    trial.seed
                ));
                None
            }
        }
    };
    let mut first: Option<SeedAccount> = None;
    let mut each = Vec::new();
    for own in &a.trials {
        let Some(other) = b.trials.iter().find(|other| other.seed == own.seed) else {
            continue;
        };
        if each.iter().any(|(seed, _)| *seed == own.seed) {
            continue;
        }
        let (Some(x), Some(y)) = (read(own), read(other)) else {
            continue;
        };
        let account = account(&x.profile, &y.profile);
        each.push((own.seed, account.change()));
        first.get_or_insert(SeedAccount {
            seed: own.seed,
            records: [x.record, y.record],
            account,
            proofs: [x.proof, y.proof],
            each: Vec::new(),
        });
    }
    first.map(|first| SeedAccount { each, ..first })
}
