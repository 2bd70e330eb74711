//! Plans a trial on this machine: limits of its cgroup, swap, and settings. A trial that this machine cannot run is
//! refused here, before anything is changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pagetide_arena::{Trial, host};
use pagetide_harness::{range, settings};
use pagetide_quantity::Bytes;
use pagetide_record::swap::SSD_LATENCY;
use pagetide_record::text::exact_size;
use pagetide_record::{FilesSpec, MemorySpec, Pass, Subject, SwapDisk, SwapSpec, Zswap};
use pagetide_scenario::Needs;
use pagetide_system::swaps;
use rustix::process::geteuid;

use crate::group::Limits;
use crate::hierarchy::Hierarchy;
use crate::refusal::Refusal;

/// Memory limit and swap area of a trial together may be at most 1 / `PART` of the available memory.
const PART: u64 = 4;
/// Names in a request that stand for the running kernel.
const RUNNING: [&str; 2] = ["", "running"];
/// Name of the setting that each cgroup of version 1 has.
const SWAPPINESS: &str = "vm.swappiness";

/// Kind of swap of a trial on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SwapPlan {
    /// No swap: the cgroup's swap limit is zero.
    None,
    /// A loop device on a file in the work folder, which is on a disk.
    Loop,
    /// A free zram device with this compressor.
    Zram(String),
    /// The swap areas that the machine already has, which other processes use too.
    Existing,
}

/// What a prepared trial needs of this machine.
#[derive(Clone, Debug)]
pub(crate) struct TrialPlan {
    pub(crate) needs: Needs,
    pub(crate) limits: Limits,
    pub(crate) swap: SwapPlan,
    /// Settings of the whole machine, by name.
    pub(crate) settings: BTreeMap<String, String>,
}

/// Returns the memory limit of the cgroup for a request: the requested limit, else that of the user's program, else the
/// requested memory. Fails if the total memory of a machine is requested instead.
pub(crate) fn limit_of(trial: &Trial) -> Result<Bytes, Refusal> {
    if let Some(limit) = trial.limit {
        return Ok(limit);
    }
    let of_program = trial.params.get("limit").and_then(|text| text.parse().ok());
    if let Some(limit) = of_program.filter(|limit: &Bytes| limit.0 > 0) {
        return Ok(limit);
    }
    match trial.memory {
        MemorySpec::Free(size) => Ok(size),
        MemorySpec::Total(_) => Err(Refusal::TotalMemory),
    }
}

/// Fails if the request names a kernel, boot argument, pass, number of CPUs, memory nodes or place for files that
/// trials on the running kernel cannot have.
pub(crate) fn check(trial: &Trial) -> Result<(), Refusal> {
    let variant = &trial.variant;
    let other = Some(&variant.kernel).filter(|kernel| !RUNNING.contains(&kernel.as_str()));
    if let Some(asked) = other.or(variant.boot.first()) {
        return Err(Refusal::OtherKernel {
            asked: asked.clone(),
        });
    }
    if trial.pass == Pass::Profiled {
        return Err(Refusal::Profiled);
    }
    if !trial.cpus.is_default() {
        return Err(Refusal::Processors);
    }
    if !trial.nodes.is_default() {
        return Err(Refusal::Nodes {
            asked: trial.nodes.to_string(),
        });
    }
    if trial.files_on != FilesSpec::default() {
        return Err(Refusal::Files {
            asked: trial.files_on.to_string(),
        });
    }
    Ok(())
}

/// Returns the plan of a trial with this subject. `may_change` is true if settings of the whole machine may be changed.
/// Fails if this machine cannot run the trial.
pub(crate) fn plan(
    subject: &Subject,
    needs: Needs,
    hierarchy: &Hierarchy,
    may_change: bool,
) -> Result<TrialPlan, Refusal> {
    if let Some(why) = needs.own_machine {
        let scenario = subject.scenario.clone();
        return Err(Refusal::OwnMachine { scenario, why });
    }
    if needs.groups {
        let scenario = subject.scenario.clone();
        let why = "it makes control groups of its own";
        return Err(Refusal::OwnMachine { scenario, why });
    }
    let is_version_1 = matches!(hierarchy, Hierarchy::Version1 { .. });
    let limit = subject.room();
    let (swap, of_swap) = swap(subject.swap)?;
    let size = if swap == SwapPlan::None {
        Bytes(0)
    } else {
        subject.swap_size
    };
    let available = host::available();
    if (limit.0 + size.0).saturating_mul(PART) > available.0 {
        return Err(Refusal::TooLarge {
            limit,
            swap: size,
            available,
        });
    }
    let of_program = |name: &str| {
        let size: Bytes = subject.params.get(name)?.parse().ok()?;
        (size.0 > 0).then_some(size)
    };
    let mut limits = Limits {
        high: of_program("high"),
        swap_max: of_program("swap-max"),
        ..Limits::of(limit)
    };
    if swap == SwapPlan::None {
        limits.swap_max = Some(Bytes(0));
    }
    if is_version_1 && limits.high.is_some() {
        return Err(Refusal::Version1 { option: "--high" });
    }
    let mut settings = subject.variant.settings.clone();
    for (name, value) in &settings {
        known(name, value)?;
    }
    if is_version_1 && let Some(value) = settings.remove(SWAPPINESS) {
        limits.swappiness = value.parse().ok();
    }
    settings.extend(of_swap);
    // Settings that the scenario needs and the variant does not set. A setting that has its value already is skipped.
    for (name, value) in &needs.settings {
        let now = settings::path(name).and_then(|path| fs::read_to_string(path).ok());
        let is_set = settings.contains_key(name);
        if let Some(now) = now.filter(|_| !is_set)
            && !pagetide_record::setting::means(now.trim(), value)
        {
            settings.insert(name.clone(), value.clone());
        }
    }
    if !may_change && !settings.is_empty() {
        let names: Vec<&str> = settings.keys().map(String::as_str).collect();
        return Err(Refusal::GlobalSetting {
            names: names.join(", "),
        });
    }
    if !settings.is_empty() && !geteuid().is_root() {
        return Err(Refusal::Root {
            what: "changing settings".to_owned(),
            instead: "",
        });
    }
    Ok(TrialPlan {
        needs,
        limits,
        swap,
        settings,
    })
}

/// Fails if a setting does not exist on this machine, or if no kernel accepts the value.
fn known(name: &str, value: &str) -> Result<(), Refusal> {
    let refuse = |why: String| {
        Err(Refusal::NoSetting {
            name: name.to_owned(),
            why,
        })
    };
    if let Some((least, greatest)) = range::exceeded(name, value) {
        return refuse(format!(
            "`{value}` is not within {least} to {greatest}, which the kernel accepts"
        ));
    }
    match settings::path(name) {
        None => refuse("its name is of no known form".to_owned()),
        Some(path) => match fs::read_to_string(&path) {
            Ok(_) => Ok(()),
            Err(why) => refuse(format!("{}: {why}", path.display())),
        },
    }
}

/// Returns the trial's swap on this machine for a requested kind of swap, and the settings of the whole machine that it
/// needs. Fails if this machine cannot provide it. Without root, any kind of swap means the areas that the machine
/// already has.
fn swap(kind: SwapSpec) -> Result<(SwapPlan, BTreeMap<String, String>), Refusal> {
    let refuse = |why: &str| {
        Err(Refusal::Swap {
            swap: kind.to_string(),
            why: why.to_owned(),
        })
    };
    if kind == SwapSpec::None {
        return Ok((SwapPlan::None, BTreeMap::new()));
    }
    if !geteuid().is_root() {
        return if swaps::areas().is_empty() {
            Err(Refusal::Root {
                what: format!("--swap {kind}"),
                instead: ", switch on swap, or give --swap none",
            })
        } else {
            Ok((SwapPlan::Existing, BTreeMap::new()))
        };
    }
    match kind {
        SwapSpec::None => Ok((SwapPlan::None, BTreeMap::new())),
        SwapSpec::Zram(_) => {
            let name = kind.compressor().name();
            has_compressor(name, kind)?;
            Ok((SwapPlan::Zram(name.to_owned()), BTreeMap::new()))
        }
        SwapSpec::Ssd(SSD_LATENCY) => Ok((SwapPlan::Loop, BTreeMap::new())),
        SwapSpec::Zswap(cache) if cache.before == SwapDisk::Ssd(SSD_LATENCY) => {
            Ok((SwapPlan::Loop, zswap(cache)))
        }
        SwapSpec::Ssd(_) | SwapSpec::Disk(_) | SwapSpec::Zswap(_) => refuse(
            "a disk has the latency of this machine's disk, which is --swap ssd, or zswap+ssd",
        ),
        SwapSpec::Tiers(_) => {
            refuse("swap on several devices exists in the arena exact only; use zram, ssd or zswap")
        }
    }
}

/// Returns the settings that enable zswap.
fn zswap(cache: Zswap) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([("zswap/enabled".to_owned(), "Y".to_owned())]);
    if let Some(compressor) = cache.compressor {
        all.insert("zswap/compressor".to_owned(), compressor.name().to_owned());
    }
    if let Some(pool) = cache.pool {
        all.insert("zswap/zpool".to_owned(), pool.name().to_owned());
    }
    all
}

/// Fails if the device `zram0` does not exist, or does not list the compressor.
fn has_compressor(name: &str, kind: SwapSpec) -> Result<(), Refusal> {
    let listed = fs::read_to_string(Path::new("/sys/block/zram0/comp_algorithm"));
    let listed = listed.unwrap_or_default();
    let known: Vec<&str> = listed
        .split_whitespace()
        .map(|word| word.trim_matches(['[', ']']))
        .collect();
    if known.contains(&name) {
        return Ok(());
    }
    let why = if known.is_empty() {
        "there is no zram device: run `modprobe zram` as root".to_owned()
    } else {
        format!("this kernel's zram compresses by {}", known.join(", "))
    };
    Err(Refusal::Swap {
        swap: kind.to_string(),
        why,
    })
}

/// Returns facts about a plan, for the record.
pub(crate) fn facts(plan: &TrialPlan) -> BTreeMap<String, String> {
    let swap = match &plan.swap {
        SwapPlan::None => "none".to_owned(),
        SwapPlan::Loop => "a loop device on the disk of the work folder".to_owned(),
        SwapPlan::Zram(compressor) => format!("zram with {compressor}"),
        SwapPlan::Existing => "the machine's own, shared with others".to_owned(),
    };
    let mut facts = BTreeMap::from([
        ("limit".to_owned(), exact_size(plan.limits.max)),
        ("swap-device".to_owned(), swap),
    ]);
    if let Some(swappiness) = plan.limits.swappiness {
        facts.insert("group-swappiness".to_owned(), swappiness.to_string());
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_nodes_are_those_of_this_machine_and_others_are_refused() {
        assert!(check(&Trial::default()).is_ok());
        let trial = Trial {
            nodes: "16M,16M:slow".parse().unwrap(),
            ..Trial::default()
        };
        let why = check(&trial).unwrap_err().to_string();
        assert!(
            why.contains("not 16M,16M:slow") && why.contains("exact"),
            "{why}"
        );
    }
}
