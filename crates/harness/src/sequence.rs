//! The sequence of steps of a trial, the same in any arena: settings, counters, the workload, counters, report.
//!
//! An arena supplies the steps that differ between arenas ([`Steps`]): how settings are applied, how an observer is
//! started, and how the workload runs. Their order, and what a failed step means for the trial, is defined here.

use std::collections::BTreeMap;

use pagetide_record::Counters;
use pagetide_record::outcome::{Invalid, Warning};
use pagetide_system::clock::monotonic;

use crate::counters::{self, CounterSet, Idle, Moment};
use crate::judgement::{Readings, Report};

/// Settings of the machine during a trial, with its facts and warnings.
#[derive(Debug, Default)]
pub struct MachineState {
    /// Value of each recorded setting by name, as read back after the trial's settings were applied.
    pub settings: BTreeMap<String, String>,
    /// Why settings of the trial could not be applied; the trial then does not run.
    pub refused: Vec<Invalid>,
    /// Facts about the machine by name.
    pub facts: BTreeMap<String, String>,
    /// Warnings about the machine.
    pub warnings: Vec<Warning>,
}

/// The steps of a trial that differ between arenas. [`run`] calls them in this order, but [`Self::counters`] last. An
/// error is a sentence, which becomes the reason why the trial is invalid.
pub trait Steps {
    /// Applies the settings of the trial and reads them back.
    fn apply(&mut self) -> MachineState;

    /// Starts the observer of an observed trial, and sets free memory to its value at the start. Called even if
    /// settings were refused.
    fn prepare(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Waits for the start of the trial. After it returns, nothing but the trial may run.
    fn wait_for_start(&mut self) {}

    /// Starts recording by the observer.
    fn begin_observing(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Runs the workload to its end. Returns the reasons why its results must not be used.
    fn workload(&mut self) -> Vec<Invalid>;

    /// Returns facts that are known only after the workload has ended.
    fn facts(&mut self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Returns further counters by source, such as those of a memory cgroup that did not exist before the trial.
    fn counters(&mut self) -> BTreeMap<String, Counters> {
        BTreeMap::new()
    }

    /// Stops recording by the observer. Not called if [`Self::begin_observing`] failed.
    fn stop_observing(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Waits until the observer has written everything. Called after the [`CounterSet`] has been read, but not if
    /// [`Self::stop_observing`] failed or was not called.
    fn end_observing(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Runs a trial and adds its results to `report`. `idle` are idle counters read earlier; no processor may have been
/// idle since then. It is `None` if idle processors are normal on this machine.
pub fn run(
    steps: &mut impl Steps,
    mut counters: CounterSet,
    idle: Option<Idle>,
    report: &mut Report,
) {
    let results = &mut report.results;
    let state = steps.apply();
    results.invalid.extend(state.refused);
    results.settings = state.settings;
    results.facts = state.facts;
    results.warnings = state.warnings;
    if let Err(why) = steps.prepare() {
        results.invalid.push(Invalid::Scenario { why });
        return;
    }
    if !results.invalid.is_empty() {
        return;
    }
    steps.wait_for_start();
    let started = monotonic();
    let before = match counters.before() {
        Ok(before) => before,
        Err(why) => {
            let why = why.to_string();
            results.invalid.push(Invalid::Scenario { why });
            return;
        }
    };
    let observing = steps.begin_observing();
    results.invalid.extend(steps.workload());
    results.facts.extend(steps.facts());
    let stopped = observing.and_then(|()| steps.stop_observing());
    let idle_after = counters::idle();
    let counted = counters.after();
    let observed = stopped.and_then(|()| steps.end_observing());
    let mut failed = |why: String| results.invalid.push(Invalid::Scenario { why });
    if let Err(why) = observed {
        failed(why);
    }
    let after = match counted {
        Ok((after, counters)) => {
            results.counters = counters;
            results.counters.extend(steps.counters());
            after
        }
        Err(why) => {
            failed(why.to_string());
            Moment::default()
        }
    };
    report.ran = Some(Readings {
        started,
        ended: monotonic(),
        before,
        after,
        idle_before: idle,
        idle_after,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_probe::Scope;

    /// Steps for tests, which record the names of the called ones and fail at one of them.
    #[derive(Default)]
    struct Scripted {
        called: Vec<&'static str>,
        fails: &'static str,
    }

    impl Scripted {
        fn step(&mut self, name: &'static str) -> Result<(), String> {
            self.called.push(name);
            if self.fails == name {
                return Err(format!("{name} failed"));
            }
            Ok(())
        }
    }

    impl Steps for Scripted {
        fn apply(&mut self) -> MachineState {
            let mut state = MachineState::default();
            if self.step("apply").is_err() {
                state.refused.push(Invalid::NoReclaim);
            }
            state
        }
        fn prepare(&mut self) -> Result<(), String> {
            self.step("prepare")
        }
        fn wait_for_start(&mut self) {
            let _ = self.step("wait");
        }
        fn begin_observing(&mut self) -> Result<(), String> {
            self.step("begin")
        }
        fn workload(&mut self) -> Vec<Invalid> {
            let _ = self.step("workload");
            Vec::new()
        }
        fn stop_observing(&mut self) -> Result<(), String> {
            self.step("stop")
        }
        fn end_observing(&mut self) -> Result<(), String> {
            self.step("end")
        }
    }

    /// Runs the steps; the step called `fails` fails. Returns the names of the called steps, the number of reasons why
    /// the trial is invalid, and whether the scenario ran.
    fn ran(fails: &'static str) -> (Vec<&'static str>, usize, bool) {
        let mut steps = Scripted {
            fails,
            ..Scripted::default()
        };
        let mut report = Report::default();
        run(
            &mut steps,
            CounterSet::open(&Scope::default()),
            None,
            &mut report,
        );
        let count = report.results.invalid.len();
        (steps.called, count, report.ran.is_some())
    }

    #[test]
    fn the_steps_come_in_order_and_a_failed_one_ends_what_needs_it() {
        let all = [
            "apply", "prepare", "wait", "begin", "workload", "stop", "end",
        ];
        assert_eq!(ran(""), (all.to_vec(), 0, true));
        assert_eq!(ran("apply"), (all[..2].to_vec(), 1, false));
        assert_eq!(ran("prepare"), (all[..2].to_vec(), 1, false));
        assert_eq!(ran("begin"), (all[..5].to_vec(), 1, true));
        assert_eq!(ran("stop"), (all[..6].to_vec(), 1, true));
    }
}
