//! Whether a campaign is of no use as it is: all trials of its first seeds are invalid, for one cause.
//!
//! A single valid trial, or another cause, and it goes on: then there is something to compare. So it does where some trials died and
//! others did not, for deaths are compared too.

use pagetide_record::{Invalid, Record};

/// Fewest trials that tell that a cause holds for all.
const FEWEST: u64 = 4;
/// The same where chance may have a part: trials that ran out of memory die with some seeds and not with others.
const FEWEST_DEATHS: u64 = 16;

/// A campaign that was ended, since its first trials were all invalid for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Futile {
    /// Seeds with which each variant ran in each cell.
    pub seeds: u32,
    /// Trials with these seeds.
    pub trials: u64,
    /// Trials that are left out.
    pub left: u64,
    /// Why the first of them is invalid.
    pub why: String,
}

impl Futile {
    /// What a user should know of it.
    pub fn sentence(&self) -> String {
        let of = match self.seeds {
            1 => "the first seed".to_owned(),
            many => format!("the first {many} seeds"),
        };
        format!(
            "stopped, for all {} trials with {of} are invalid for one reason: {}; --keep-going runs the {} that are left all the same",
            self.trials, self.why, self.left
        )
    }
}

/// What was seen so far of the first seeds' trials.
#[derive(Clone, Debug)]
pub(crate) struct Futility {
    /// Timed trials of a block.
    block: u64,
    /// Blocks in all.
    blocks: u32,
    /// Trials seen by block, as far as these may matter.
    seen: Vec<u64>,
    /// The first cause, and the words of its first trial.
    cause: Option<(String, bool, String)>,
    /// Whether it is settled that the campaign goes on.
    is_settled: bool,
}

impl Futility {
    /// Nothing is seen yet of a campaign with so many timed trials a block; no campaign is ended where `keep_going`.
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

    /// Of trials that nobody judges.
    pub fn of_search() -> Self {
        Self::new(1, 0, true)
    }

    /// Whether a trial of this block matters: one of a later block does not, nor does any once it is settled.
    pub fn asks(&self, block: u32) -> bool {
        !self.is_settled && (block as usize) < self.seen.len()
    }

    /// Takes note of a timed trial of a block that is asked for.
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

    /// Why the campaign should end, where it should: all trials of enough blocks were seen and something is left to run.
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

/// What two trials share that are invalid for one cause: the kind of it, and what it is about where that is in a user's hand.
fn cause(why: &Invalid) -> String {
    let about = match why {
        Invalid::SettingDidNotStick { name, .. } | Invalid::SettingRefused { name, .. } => name,
        Invalid::Full { what, .. } | Invalid::WrongCount { what, .. } => what,
        _ => "",
    };
    format!("{:?} {about}", std::mem::discriminant(why))
}

/// Whether the trial ran out of memory.
fn is_death(why: &Invalid) -> bool {
    match why {
        Invalid::OutOfMemory { .. } | Invalid::OutOfLimit { .. } => true,
        Invalid::Panic { reason } => reason.to_lowercase().contains("memory"),
        _ => false,
    }
}
