//! What the kernel executed in profiled trials: functions of memory management, and the lines that a patch changes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pagetide_profile::{Coverage, Profile, is_memory_management};
use serde::Serialize;

/// Maximum number of functions or lines that a sentence names.
const NAMED: usize = 5;

/// What the kernel executed in one trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executed {
    /// Release of the kernel. Kernels of one release have the same functions, except for what a patch changes.
    pub release: String,
    /// Instructions of each function of memory management that ran, without those of functions that it called.
    pub functions: BTreeMap<String, u64>,
    /// How often the lines that a patch changes were executed; `None` if the kernel was not built with a patch.
    pub patch: Option<Coverage>,
}

impl Executed {
    /// Reads what a trial executed from its profile.
    pub fn of(profile: Profile, release: &str) -> Self {
        let mut functions = BTreeMap::new();
        let all = profile.functions.into_iter();
        for function in all.filter(|one| one.instructions > 0 && is_memory_management(one)) {
            *functions.entry(function.name).or_default() += function.instructions;
        }
        Self {
            release: release.to_owned(),
            functions,
            patch: profile.coverage,
        }
    }

    /// True if nothing of the patch ran: none of its lines with code, nor a function around its changes. False if the
    /// kernel has no patch, or if nothing is known of its code.
    pub fn missed_patch(&self) -> bool {
        self.patch.as_ref().is_some_and(|patch| {
            let is_known = !patch.lines.is_empty() || !patch.functions.is_empty();
            is_known
                && patch.lines.iter().all(|line| line.executed == 0)
                && patch.functions.iter().all(|function| function.calls == 0)
        })
    }

    /// True if the patch cannot have had an effect: nothing of it ran, and all that it changes is code whose execution is
    /// counted. A changed declaration or macro, for example, can act on code elsewhere.
    pub fn is_as_without_patch(&self) -> bool {
        let is_all = |patch: &Coverage| patch.without_code == 0 && patch.left_out.is_empty();
        self.missed_patch() && self.patch.as_ref().is_some_and(is_all)
    }
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
