//! Command lines of this program, as written into records and messages.

use crate::host::RUNNING;
use crate::swaps::short;
use pagetide_arena::Trial;
use pagetide_record::text::exact_size;
use pagetide_record::{FileSystem, Maker};
use pagetide_store::shell;

/// Returns the [`Maker`] of a trial's record: pagetide's version, and the command that repeats the trial.
pub fn maker(trial: &Trial) -> Maker {
    let variant = &trial.variant;
    let mut words = vec!["pagetide".to_owned(), "run".into(), trial.scenario.clone()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    let is_host = variant.kernel == RUNNING;
    if is_host {
        option("--on", "host".to_owned());
    } else {
        option("--kernel", variant.kernel.clone());
    }
    for argument in &variant.boot {
        option("--boot", argument.clone());
    }
    for (name, value) in &variant.settings {
        option("--set", format!("{name}={value}"));
    }
    for (name, value) in &trial.params {
        option("--param", format!("{name}={value}"));
    }
    option("--memory", trial.memory.to_string());
    if !trial.nodes.is_default() {
        option("--nodes", trial.nodes.to_string());
    }
    if let Some(limit) = trial.limit {
        option("--limit", exact_size(limit));
    }
    // On the host the latency is that of the disk, so that of the simulated one is left out.
    let swap = if is_host {
        short(&trial.swap)
    } else {
        trial.swap.to_string()
    };
    option("--swap", swap);
    if let Some(size) = trial.swap_size {
        option("--swap-size", size.0.to_string());
    }
    if let Some(disk) = trial.files_on.disk() {
        option("--files-on", disk.to_string());
    }
    if trial.files_on.system != FileSystem::default() {
        option("--fs", trial.files_on.system.to_string());
    }
    if !trial.cpus.is_default() {
        option("--cpus", trial.cpus.to_string());
    }
    if !trial.trace_ring.is_default() {
        option("--trace-ring", trial.trace_ring.to_string());
    }
    option("--first-seed", trial.seed.to_string());
    option("--seeds", "1".into());
    if is_host && !variant.settings.is_empty() {
        words.push("--change-this-machine".into());
    }
    if trial.as_written {
        words.push("--as-written".into());
    }
    Maker {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell(&words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_in_a_record_names_all_that_was_given() {
        let mut trial = Trial {
            scenario: "linear".into(),
            seed: 7,
            as_written: true,
            ..Trial::default()
        };
        trial.variant.kernel = "debian:sid".into();
        trial
            .variant
            .settings
            .insert("vm.swappiness".into(), "1".into());
        let command = maker(&trial).command;
        assert_eq!(
            command,
            "pagetide run linear --kernel debian:sid --set vm.swappiness=1 --memory 64M --swap zram --first-seed 7 \
             --seeds 1 --as-written"
        );
    }
}
