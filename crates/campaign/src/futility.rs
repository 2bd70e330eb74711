//! Detects a campaign that is useless as it is: all trials of its first seeds are invalid for the same reason.
//!
//! The campaign continues after a single valid trial or another reason, because then there is something to compare. It
//! also continues if some trials died and others did not, because deaths are compared too.

use pagetide_record::{Invalid, Record};

/// Fewest trials that show that a reason applies to all.
const FEWEST: u64 = 4;
/// As [`FEWEST`], if chance may play a part: running out of memory may depend on the seed.
const FEWEST_DEATHS: u64 = 16;

/// Report on a campaign that was ended because its first trials were all invalid for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Futile {
    /// Number of seeds with which each variant ran in each cell.
    pub seeds: u32,
    /// Number of trials with these seeds.
    pub trials: u64,
    /// Number of trials that were not run.
    pub left: u64,
    /// Why the first trial is invalid.
    pub why: String,
}

impl Futile {
    /// A sentence for the user.
    pub fn sentence(&self) -> String {
        let of = match self.seeds {
            1 => "the first seed".to_owned(),
            many => format!("the first {many} seeds"),
        };
        format!(
            "stopped, because all {} trials with {of} are invalid for one reason: {}; --keep-going runs the remaining {} anyway",
            self.trials, self.why, self.left
        )
    }
}

/// Trials of the first seeds so far.
#[derive(Clone, Debug)]
pub(crate) struct Futility {
    /// Number of timed trials in a block.
    block: u64,
    /// Total number of blocks.
    blocks: u32,
    /// Number of trials seen in each block that may matter.
    seen: Vec<u64>,
    /// The first reason, whether it is a death, and the message of its first trial.
    cause: Option<(String, bool, String)>,
    /// Whether it is certain that the campaign continues.
    is_settled: bool,
}

impl Futility {
    /// Starts for a campaign with `block` timed trials in a block. With `keep_going`, the campaign is never ended.
    pub fn new(block: usize, blocks: u32, keep_going: bool) -> Self {
        let block = (block as u64).max(1);
        let most = FEWEST_DEATHS.div_ceil(block).min(u64::from(blocks));
        Self {
            block,
            blocks,
            seen: vec![0; usize::try_from(most).unwrap_or(0)],
            cause: None,
            is_settled: keep_going,
        }
    }

    /// For the trials of a search, which is never ended.
    pub fn of_search() -> Self {
        Self::new(1, 0, true)
    }

    /// True if a trial of this block matters: false for later blocks, and once it is certain that the campaign
    /// continues.
    pub fn asks(&self, block: u32) -> bool {
        !self.is_settled && (block as usize) < self.seen.len()
    }

    /// Takes a timed trial of a block for which [`Futility::asks`] is true.
    pub fn saw(&mut self, block: u32, record: &Record) {
        if !self.asks(block) {
            return;
        }
        let Some(first) = record.results.invalid.first() else {
            self.is_settled = true;
            return;
        };
        let cause = cause(first);
        match &self.cause {
            Some((known, ..)) if *known != cause => self.is_settled = true,
            Some(_) => {}
            None => {
                let why = record.why_invalid().unwrap_or_default();
                self.cause = Some((cause, is_death(first), why));
            }
        }
        self.seen[block as usize] += 1;
    }

    /// Returns a report if the campaign should end: all trials of enough blocks are invalid for one reason, and some
    /// trials are left.
    pub fn verdict(&self) -> Option<Futile> {
        let (_, is_death, why) = self.cause.as_ref().filter(|_| !self.is_settled)?;
        let fewest = if *is_death { FEWEST_DEATHS } else { FEWEST };
        let wanted = u32::try_from(fewest.div_ceil(self.block)).ok()?;
        let whole = self.seen.iter().take(wanted as usize);
        let is_whole = whole.len() == wanted as usize && whole.clone().all(|n| *n >= self.block);
        let left = u64::from(self.blocks.saturating_sub(wanted)) * self.block;
        (is_whole && left > 0).then(|| Futile {
            seeds: wanted,
            trials: u64::from(wanted) * self.block,
            left,
            why: why.clone(),
        })
    }
}

/// A key that is equal for trials that are invalid for the same reason: the kind of reason, and the object that the
/// user can change.
fn cause(why: &Invalid) -> String {
    let about = match why {
        Invalid::SettingDidNotStick { name, .. } | Invalid::SettingRefused { name, .. } => name,
        Invalid::Full { what, .. } | Invalid::WrongCount { what, .. } => what,
        _ => "",
    };
    format!("{:?} {about}", std::mem::discriminant(why))
}

/// True if the trial ran out of memory.
fn is_death(why: &Invalid) -> bool {
    match why {
        Invalid::OutOfMemory { .. } | Invalid::OutOfLimit { .. } => true,
        Invalid::Panic { reason } => reason.to_lowercase().contains("memory"),
        _ => false,
    }
}
