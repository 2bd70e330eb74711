//! A described workload as a C file that runs on any machine.

use std::path::{Path, PathBuf};

use pagetide_campaign::{Campaign, FileError, ScenarioSpec, WORKLOAD, read_workload};
use pagetide_quantity::Bytes;
use pagetide_record::MemorySpec;
use pagetide_workload::{CaseMachine, Machine, Workload, WorkloadError, c_file};
use thiserror::Error;

use crate::vocabulary::vocabulary;

/// Default memory of a workload for its C file, the same as for the scenario `workload`.
const MEMORY: Bytes = Bytes::from_mib(16);

/// Why a workload cannot be written as a C file.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The file cannot be read, or is wrong.
    #[error("{0}")]
    File(#[from] FileError),
    /// The campaign file describes no workload.
    #[error(
        "cannot write {0} as C: it describes no workload, add a table [workload] (docs/workload.md)"
    )]
    NoWorkload(PathBuf),
    /// The workload does not fit its machine.
    #[error("cannot write {case} as C: {why}")]
    Machine {
        /// Name of the case.
        case: String,
        /// Why the workload does not fit.
        why: WorkloadError,
    },
}

/// Returns the C file for the workload that `path` describes, which is a campaign file, or a file that contains only a
/// workload. `memory` replaces the memory given in the file. Fails if the file describes no workload, or if the
/// workload does not fit the memory.
pub fn case_in_c(path: &Path, memory: Option<Bytes>) -> Result<String, CaseError> {
    let of_campaign = pagetide_campaign::read_campaign(path, &vocabulary()).ok();
    if of_campaign
        .as_ref()
        .is_some_and(|campaign| of_workload(campaign).is_none())
    {
        return Err(CaseError::NoWorkload(path.to_owned()));
    }
    let (name, workload) = read_workload(path)?;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let spec = of_campaign.as_ref().and_then(of_workload);
    let own = workload.machine.clone().unwrap_or_default();
    let given = spec.and_then(|spec| spec.memory.first().copied());
    let given = given.or(own.memory).map(MemorySpec::bytes);
    let memory = memory.or(given).unwrap_or(MEMORY);
    fits(&workload, memory).map_err(|why| CaseError::Machine {
        case: name.clone(),
        why,
    })?;
    let machine = CaseMachine {
        name,
        about: about(&text),
        memory,
        swap: swap(spec, &own),
        files: files(spec, &own),
        settings: settings(of_campaign.as_ref(), &own),
    };
    Ok(c_file(&workload, &machine, &|content| {
        pagetide_scenario::compressed_share(content).unwrap_or(1.0)
    }))
}

fn of_workload(campaign: &Campaign) -> Option<&ScenarioSpec> {
    campaign.scenarios.iter().find(|spec| spec.name == WORKLOAD)
}

/// Fails if the workload exceeds a bound of the language at this size of memory. The swap is not known, so the
/// workload's memory is not checked.
fn fits(workload: &Workload, memory: Bytes) -> Result<(), WorkloadError> {
    workload.needed(memory, Bytes(u64::MAX)).map(drop)
}

/// Returns the comment at the top of a file, without the `#` characters.
fn about(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.starts_with('#'));
    let lines: Vec<&str> = lines
        .map(|line| line.trim_start_matches('#').trim())
        .collect();
    lines.join("\n")
}

fn swap(spec: Option<&ScenarioSpec>, own: &Machine) -> String {
    let given = spec
        .and_then(|spec| spec.swap.first().copied())
        .or(own.swap);
    let size = spec.and_then(|spec| spec.swap_size).or(own.swap_size);
    let kind = given.unwrap_or_default().to_string();
    match size {
        Some(size) => format!("{kind} ({size})"),
        None => kind,
    }
}

fn files(spec: Option<&ScenarioSpec>, own: &Machine) -> String {
    let (fs, on) = match spec {
        Some(spec) => (spec.files_on.system, spec.files_on.on),
        None => (own.fs.unwrap_or_default(), own.files_on.unwrap_or_default()),
    };
    format!(", files on {fs} on {on}")
}

/// Returns the settings of the workload and of the campaign's first variant.
fn settings(campaign: Option<&Campaign>, own: &Machine) -> Vec<(String, String)> {
    let mut all = own.settings.clone();
    if let Some(first) = campaign.and_then(|campaign| campaign.variants.first()) {
        all.extend(first.settings.clone());
    }
    all.into_iter().collect()
}
