//! A prepared trial: its kernel and machine are known, and checks have shown that it can run.

use std::collections::BTreeMap;
use std::sync::Arc;

use pagetide_guest::spec::{BootSpec, ModuleSpec};
use pagetide_kernel::Kernel;
use pagetide_record::nodes::{MemoryPolicy, POLICY, SLOW_LATENCY};
use pagetide_record::{FileSystem, MemorySpec, NodesSpec, Subject};
use pagetide_root::Root;
use pagetide_scenario::Needs;

use crate::disks::ssds;
use crate::emulator::Emulator;
use crate::error::ExactError;
use crate::machine::{MachineSpec, REGION, TRACE, spare};
use crate::making::Maker;
use crate::recipe::Recipe;

/// Intermediate results of preparing a trial.
pub(crate) struct Preparation {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) needs: Needs,
    pub(crate) machine: MachineSpec,
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) maker: Option<Maker>,
}

impl Preparation {
    /// Returns the inputs that determine the snapshot for this subject with these modules. `guest` is the digest of the
    /// guest's program.
    pub(crate) fn recipe(
        &self,
        subject: &Subject,
        guest: &str,
        modules: Vec<ModuleSpec>,
    ) -> Recipe {
        let (machine, needs) = (&self.machine, &self.needs);
        let boot = BootSpec {
            region_at: machine.region_at,
            region_size: REGION.0,
            trace_at: machine.region_at + REGION.0,
            trace_size: TRACE.0,
            spare: spare(machine.cpus),
            modules,
            real_time: machine.timing.is_real(),
            ssd: ssds(subject, needs),
            nodes: nodes_of_guest(subject),
            swap: subject.swap,
            swap_size: subject.swap_size,
            compressor: subject.swap.compressor().name().to_owned(),
            filesystem: needs.filesystem,
            files_on: subject.files_on,
            root: needs.root.clone(),
            maker: self.maker.as_ref().map(|maker| maker.spec.clone()),
            cpus: machine.cpus,
            free: match subject.memory {
                MemorySpec::Free(free) => Some(free),
                MemorySpec::Total(_) => None,
            },
            intended: subject.memory.bytes(),
        };
        Recipe {
            kernel: self.kernel.digest.to_string(),
            emulator: self.emulator.version.clone(),
            guest: guest.to_owned(),
            arguments: machine.arguments(),
            boot,
        }
    }
}

/// Returns the nodes with the default latency for slow nodes. The snapshot must not depend on the stated latency, which
/// only prices accesses after the trial.
fn nodes_of_guest(subject: &Subject) -> NodesSpec {
    let nodes = subject.nodes.clone();
    nodes
        .with_latency(SLOW_LATENCY)
        .unwrap_or_else(|_| subject.nodes.clone())
}

/// Fails if the settings contain an invalid memory policy, or one that names a node which the machine does not have.
pub(crate) fn fits_policy(
    settings: &BTreeMap<String, String>,
    nodes: &NodesSpec,
) -> Result<(), ExactError> {
    let Some(text) = settings.get(POLICY) else {
        return Ok(());
    };
    let policy: MemoryPolicy = text.parse()?;
    let count = nodes.all().len().max(1);
    if policy.nodes() >> count == 0 {
        return Ok(());
    }
    Err(ExactError::NoSuchNode {
        policy: text.clone(),
        count,
    })
}

/// Fails if the memory differs from the sum over the nodes.
pub(crate) fn agrees(memory: MemorySpec, nodes: &NodesSpec) -> Result<(), ExactError> {
    match nodes.sum() {
        Some(sum) if memory != MemorySpec::Free(sum) => Err(ExactError::NodesAndMemory {
            memory,
            nodes: nodes.clone(),
            sum: MemorySpec::Free(sum),
        }),
        _ => Ok(()),
    }
}

/// Fails if the files of a root on tmpfs are larger than the memory. The kernel would swap them out, which would
/// distort the program's results.
pub(crate) fn fits(root: &Root, subject: &Subject) -> Result<(), ExactError> {
    if subject.files_on.system != FileSystem::Tmpfs {
        return Ok(());
    }
    let (files, memory) = (root.in_memory()?, subject.memory.bytes());
    if files > memory {
        return Err(ExactError::RootInMemory { files, memory });
    }
    Ok(())
}
