//! What the kernel executed in profiled trials: functions of memory management, and the lines that a patch changes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pagetide_profile::{Coverage, Profile, is_memory_management};
use pagetide_record::Subject;
use serde::Serialize;

/// Maximum number of functions or lines that a sentence names.
const NAMED: usize = 5;

/// What the kernel executed in one trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executed {
    /// Release of the kernel. Kernels of one release have the same functions, except for what a patch changes.
    pub release: String,
    /// Boot arguments, settings and swap of the trial.
    pub options: Vec<String>,
    /// Instructions of each function of memory management that ran, without those of functions that it called.
    pub functions: BTreeMap<String, u64>,
    /// How often the lines that a patch changes were executed; `None` if the kernel was not built with a patch.
    pub patch: Option<Coverage>,
}

impl Executed {
    /// Reads what a trial executed from the trial's subject and profile.
    pub fn of(subject: &Subject, profile: Profile) -> Self {
        let mut functions = BTreeMap::new();
        let all = profile.functions.into_iter();
        for function in all.filter(|one| one.instructions > 0 && is_memory_management(one)) {
            *functions.entry(function.name).or_default() += function.instructions;
        }
        let settings = subject.variant.settings.iter();
        let settings = settings.map(|(name, value)| format!("{name}={value}"));
        let mut options: Vec<String> = settings.chain(subject.variant.boot.clone()).collect();
        options.push(format!("swap={} of {}", subject.swap, subject.swap_size));
        Self {
            release: subject.variant.kernel.release.clone(),
            options,
            functions,
            patch: profile.coverage,
        }
    }

    /// True if a patch alone distinguishes this trial from `other`, and nothing of the patch ran: no changed line with
    /// code, and no function around a change. False if some of the patch's code was not found, or if the patch has none.
    pub fn missed_patch(&self, other: &Self) -> bool {
        let is_missed = |one: &Self| one.patch.as_ref().is_none_or(is_missed);
        self.is_alike_but_for_patch(other)
            && self.patch.is_some()
            && is_missed(self)
            && is_missed(other)
    }

    /// True if [`Executed::missed_patch`], and each changed line has code. Then the patch cannot be the cause of a
    /// difference. A changed declaration or macro, by contrast, can act on code elsewhere.
    pub fn is_same_code(&self, other: &Self) -> bool {
        let patches = [self, other].into_iter().flat_map(|one| &one.patch);
        let is_all_code = patches.map(|patch| patch.without_code).sum::<u64>() == 0;
        self.missed_patch(other) && is_all_code
    }

    fn is_alike_but_for_patch(&self, other: &Self) -> bool {
        self.release == other.release && self.options == other.options
    }
}

/// True if all code of the patch is known and none of it ran.
fn is_missed(patch: &Coverage) -> bool {
    patch.left_out.is_empty()
        && (!patch.lines.is_empty() || !patch.functions.is_empty())
        && patch.lines.iter().all(|line| line.executed == 0)
        && patch.functions.iter().all(|function| function.calls == 0)
}

/// What the trials of the hunted variant executed over a whole hunt.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reached {
    /// Number of trials of which it is known what they executed.
    pub trials: u64,
    /// Number of these trials after which no function ran that had not run before.
    pub last_new: u64,
    /// Functions of memory management that ran in any of them, with the number of trials in which each ran.
    pub functions: BTreeMap<String, u64>,
    /// How often the lines that a patch changes were executed, in all trials together; `None` if the kernel was not
    /// built with a patch.
    pub patch: Option<Coverage>,
    /// Why functions are not known, as a sentence; `None` if they are.
    pub unknown: Option<String>,
}

impl Reached {
    /// Adds a trial.
    pub fn add(&mut self, executed: &Executed) {
        self.trials += 1;
        for name in executed.functions.keys() {
            let count = self.functions.entry(name.clone()).or_default();
            if *count == 0 {
                self.last_new = self.trials;
            }
            *count += 1;
        }
        match (&mut self.patch, &executed.patch) {
            (Some(all), Some(one)) => all.add(one),
            (all @ None, Some(one)) => *all = Some(one.clone()),
            (_, None) => {}
        }
    }

    /// Returns sentences for the user: how many functions ran, and what of the patch never ran.
    pub fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(why) = &self.unknown {
            all.push(why.clone());
        }
        if self.trials == 0 {
            return all;
        }
        let trials = match self.trials {
            1 => "1 profiled trial".to_owned(),
            count => format!("{count} profiled trials"),
        };
        all.push(format!(
            "functions of memory management that ran: {} in {trials}; none was new after {} of them",
            self.functions.len(),
            self.last_new
        ));
        let Some(patch) = &self.patch else {
            return all;
        };
        let count = usize::try_from(self.trials).unwrap_or(usize::MAX);
        all.push(patch.sentence(count));
        let functions = patch.functions.iter();
        let idle = functions.filter(|function| function.calls == 0);
        let idle: Vec<String> = idle.map(|function| function.name.clone()).collect();
        if !idle.is_empty() {
            let idle = listed(&idle);
            all.push(format!("no trial ran {idle}, which the patch changes"));
        }
        let missed = patch.missed();
        let missed: Vec<String> = missed
            .map(|line| format!("{}:{} {}", line.file, line.line, line.text))
            .collect();
        if !missed.is_empty() {
            all.push(format!("lines that never ran: {}", listed(&missed)));
        }
        all
    }
}

/// Returns the first [`NAMED`] names, and the number of the others.
fn listed(names: &[String]) -> String {
    let first = names.iter().take(NAMED).cloned();
    let mut text = first.collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        let _ = write!(text, " and {} more", names.len() - NAMED);
    }
    text
}
