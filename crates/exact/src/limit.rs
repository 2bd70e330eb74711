//! Checks a trial whose workload is limited by a memory cgroup inside the guest.

use pagetide_quantity::Bytes;
use pagetide_record::Subject;
use pagetide_scenario::Needs;

use crate::error::ExactError;

/// Fails if the scenario cannot run in a memory cgroup, or if the limit is 0 or larger than the machine's memory.
pub fn check(subject: &Subject, needs: &Needs, limit: Bytes) -> Result<(), ExactError> {
    let scenario = || subject.scenario.clone();
    if let Some(why) = needs.own_machine {
        return Err(ExactError::NoGroup {
            scenario: scenario(),
            why,
        });
    }
    let memory = subject.memory.bytes();
    if limit > memory || limit.0 == 0 {
        return Err(ExactError::Limit { limit, memory });
    }
    Ok(())
}
