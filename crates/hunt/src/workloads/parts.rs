//! Parts of a workload: its machine, and words for its segments and phases.

use pagetide_quantity::Bytes;
use pagetide_workload::{Machine, Phase, Workload};

/// Returns the machine of a workload. If it has none, a default machine is added first.
pub(super) fn machine(workload: &mut Workload) -> &mut Machine {
    workload.machine.get_or_insert_with(Machine::default)
}

/// Returns the memory of the workload's machine.
pub(super) fn memory(workload: &Workload) -> Bytes {
    let machine = workload.machine.as_ref();
    let memory = machine.and_then(|machine| machine.memory);
    memory.unwrap_or_default().bytes()
}

/// Word for a kind of segment, in one-line descriptions.
pub(super) fn kind_word(kind: pagetide_workload::Kind) -> &'static str {
    use pagetide_workload::Kind;
    match kind {
        Kind::Anonymous => "anonymous",
        Kind::Shared => "shared",
        Kind::File => "file",
        Kind::Tmpfs => "tmpfs",
    }
}

/// One-line description of a phase.
pub(super) fn phase_words(phase: &Phase) -> String {
    match phase {
        Phase::Access(access) => {
            let verb = match access.writes {
                writes if writes <= 0.0 => "read",
                writes if writes >= 1.0 => "write",
                _ => "read and write",
            };
            format!("{verb} {} {}", access.count, access.pattern)
        }
        Phase::Advise { advice, .. } => {
            let word = serde_json::to_string(advice).unwrap_or_default();
            word.trim_matches('"').to_owned()
        }
        Phase::Repeat { times, phases } => {
            let inner: Vec<String> = phases.iter().map(phase_words).collect();
            format!("{times} times ({})", inner.join(", "))
        }
        Phase::Fork { count, phases } => {
            let inner: Vec<String> = phases.iter().map(phase_words).collect();
            format!("fork {count} ({})", inner.join(", "))
        }
        other => other.word().to_owned(),
    }
}
