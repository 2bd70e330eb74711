//! Primary metrics of a campaign in the host arena: counts and processor time, because wall-clock times vary with the
//! machine's load.

use pagetide_record::ArenaKind;

use crate::campaign::{Campaign, Observe};
use crate::file::Vocabulary;

/// Name of the kernel that runs on this machine, the only one of the host arena.
pub const RUNNING: &str = "running";
/// Names of the metrics that decide in the host arena, in addition to the scenario's own counts.
pub const DECIDING: [&str; 2] = ["major-faults", "system"];

/// Adapts a campaign to the host arena. Scenarios for which the user named no primary metrics are decided by their
/// counts and by processor time. No trial is observed unless `observe` requests it.
pub(crate) fn suit(campaign: &mut Campaign, vocabulary: &Vocabulary, observe: Option<Observe>) {
    debug_assert_eq!(campaign.arena, ArenaKind::Host);
    if observe.is_none() {
        campaign.observe = Observe::None;
    }
    for scenario in &mut campaign.scenarios {
        let words = vocabulary.scenario(&scenario.name);
        scenario.primary.get_or_insert_with(|| {
            let counts = words.map_or_else(Vec::new, |words| words.primary_counts.clone());
            let usual = DECIDING.map(str::to_owned);
            let mut all = counts;
            all.extend(usual);
            all.dedup();
            all
        });
    }
}
