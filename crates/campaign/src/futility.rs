//! Detects a campaign that cannot give results: all trials of its first seeds are invalid for the same reason.
//!
//! One valid trial or a second reason is enough for the campaign to continue, because then there is something to
//! compare. The campaign also continues if only some trials run out of memory, because such deaths are compared too.

use pagetide_record::{Invalid, Record};

/// Minimum number of trials from which a common reason is concluded.
const MIN_PAIRS: u64 = 4;
/// Minimum number of trials from which a common reason is concluded if that reason is running out of memory, which may
/// depend on the seed.
const MIN_DEATHS: u64 = 16;

/// Report on a campaign that was ended because its first trials were all invalid for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Futile {
    /// Number of seeds that every variant has run in every cell.
    pub seeds: u32,
    /// Number of trials with these seeds.
    pub trials: u64,
    /// Number of planned trials that were not run.
    pub left: u64,
    /// Reason why the first trial is invalid.
    pub why: String,
}

impl Futile {
    /// Returns a sentence for the user that says why the campaign was stopped.
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

/// State of the detection: the trials of the first seeds so far.
#[derive(Clone, Debug)]
pub(crate) struct Futility {
    /// Number of timed trials in a block.
    block: u64,
    /// Total number of blocks in the campaign.
    blocks: u32,
    /// Number of trials recorded so far in each of the first blocks.
    seen: Vec<u64>,
    /// Cause of the first trial's invalidity: a key of the reason, true if the reason is running out of memory, and the
    /// message. `None` before the first trial.
    cause: Option<(String, bool, String)>,
    /// True if it is certain that the campaign continues.
    is_settled: bool,
}

impl Futility {
    /// Creates the state for a campaign with `block` timed trials in each of `blocks` blocks. With `keep_going`, the
    /// campaign is never ended early.
    pub fn new(block: usize, blocks: u32, keep_going: bool) -> Self {
        let block = (block as u64).max(1);
        let most = MIN_DEATHS.div_ceil(block).min(u64::from(blocks));
        Self {
            block,
            blocks,
            seen: vec![0; usize::try_from(most).unwrap_or(0)],
            cause: None,
            is_settled: keep_going,
        }
    }

    /// Creates the state for a search, which is never ended early.
    pub fn of_search() -> Self {
        Self::new(1, 0, true)
    }

    /// True if a trial of this block can still end the campaign early. False for later blocks, and once it is certain
    /// that the campaign continues.
    pub fn asks(&self, block: u32) -> bool {
        !self.is_settled && (block as usize) < self.seen.len()
    }

    /// Adds the record of a timed trial. Ignored unless [`Futility::asks`] is true for its block.
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
                self.cause = Some((cause, first.is_death(), why));
            }
        }
        self.seen[block as usize] += 1;
    }

    /// Returns a report if the campaign should end: all trials of enough blocks are invalid for the same reason, and
    /// trials are left to run. Else `None`.
    pub fn verdict(&self) -> Option<Futile> {
        let (_, is_death, why) = self.cause.as_ref().filter(|_| !self.is_settled)?;
        let fewest = if *is_death { MIN_DEATHS } else { MIN_PAIRS };
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

/// Returns the key that is equal for trials invalid for the same reason. Consists of the kind of reason and the object
/// that the user can change.
fn cause(why: &Invalid) -> String {
    let about = match why {
        Invalid::SettingDidNotStick { name, .. } | Invalid::SettingRefused { name, .. } => name,
        Invalid::Full { what, .. } | Invalid::WrongCount { what, .. } => what,
        _ => "",
    };
    format!("{:?} {about}", std::mem::discriminant(why))
}
