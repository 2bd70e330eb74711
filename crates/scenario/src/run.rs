//! Runs a scenario.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pagetide_record::{Invalid, Subject};

use crate::registry;
use crate::trial::{Outcome, Trial, TrialContext};

/// Runs the scenario of `subject`, whose parameters must have been resolved by [`crate::resolve`]. An error or a panic
/// is not returned to the caller: it becomes a reason in the outcome why the trial is invalid.
pub fn run<'a>(subject: &'a Subject, place: TrialContext<'a>) -> Outcome {
    let definition = match registry::find(&subject.scenario) {
        Ok(definition) => definition,
        Err(error) => {
            return Outcome {
                invalid: vec![Invalid::Scenario {
                    why: error.to_string(),
                }],
                ..Outcome::default()
            };
        }
    };
    let mut trial = Trial::begin(subject, place, definition.metrics);
    let result = catch_unwind(AssertUnwindSafe(|| {
        (definition.run)(&subject.params, &mut trial)
    }));
    match result {
        Ok(Ok(())) => {}
        Ok(Err(stop)) => trial.outcome.invalid.push(stop.into_invalid()),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no reason given");
            trial.outcome.invalid.push(Invalid::Scenario {
                why: format!("it panicked ({text}), please report it"),
            });
        }
    }
    trial.end()
}
