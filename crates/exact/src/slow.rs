//! The modelled clock of a machine with slow memory nodes. A plugin in the emulator counts accesses to slow nodes, and
//! each access has a price.
//!
//! Every access to memory takes the same time on the exact clock, so this clock cannot distinguish a slow node from a
//! fast one. The plugin (`plugin/nodes.rs`) counts the accesses of programs to slow nodes. After the trial, the number
//! of accesses is multiplied by the latency of the slow nodes and added to the exact time. The result is a metric of
//! its own. The exact clock, and all that the guest sees, are unchanged.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};

use pagetide_quantity::{Direction, Metric, MetricDef, Nanos, Unit};
use pagetide_record::Subject;
use pagetide_record::record::Results;

use crate::emulator::Emulator;
use crate::error::{ExactError, io};
use crate::machine::{MachineSpec, low_memory};
use crate::memory;

/// Bytes of the plugin's shared object. Source: `build/object.rs`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/nodes.so"));
/// First number of the file of counts: the bytes "pgnodes\0".
const MAGIC: u64 = 0x0073_6564_6f6e_6770;
/// First version of QEMU that passes the physical address of an access to a plugin. Earlier versions pass a sum: the
/// `ram_addr_t` offset of the accessed RAM block, plus the offset of the access in the guest's memory. Source: QEMU
/// `plugins/api.c`, `qemu_plugin_hwaddr_phys_addr`.
const TELLS_PHYSICAL: (u32, u32) = (8, 2);

/// Definition of the metric `slow-accesses`.
const ACCESSES: MetricDef = MetricDef::of(
    "slow-accesses",
    Unit::Count,
    Direction::Lower,
    "accesses of programs to slow memory nodes that miss a cache of 64 lines, the last one at each position within a page",
);
/// Definition of the metric `modelled-time`.
const MODELLED: MetricDef = MetricDef::of(
    "modelled-time",
    Unit::Nanos,
    Direction::Lower,
    "exact time of the scenario plus the stated latency for each access to a slow memory node; a model, which no other metric contains",
);

/// How often programs accessed memory during a scenario. Accesses that hit the plugin's cache of 64 lines do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accesses {
    /// Number of accesses to slow nodes.
    pub slow: u64,
    /// Number of accesses to all nodes.
    pub all: u64,
}

/// The plugin that counts the accesses of one trial to slow nodes.
#[derive(Debug)]
pub struct SlowCounter {
    object: File,
    counts: File,
    ranges: Vec<[u64; 2]>,
}

impl SlowCounter {
    /// Prepares the plugin for this machine and emulator; `None` if the machine has no slow node.
    pub fn new(machine: &MachineSpec, emulator: &Emulator) -> Result<Option<Self>, ExactError> {
        let is_physical = emulator.is_at_least(TELLS_PHYSICAL);
        let ranges = ranges(machine, is_physical);
        if ranges.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            object: memory::holding("pagetide-nodes", OBJECT)?,
            counts: memory::anonymous("accesses")?,
            ranges,
        }))
    }

    /// Returns the arguments that make an emulator load the plugin.
    pub fn arguments(&self) -> [String; 2] {
        let [object, counts] = self.fds().map(memory::path);
        let slow = self
            .ranges
            .iter()
            .map(|[from, to]| format!(",slow={from}-{to}"));
        let value = format!("file={object},out={counts}{}", slow.collect::<String>());
        ["-plugin".to_owned(), value]
    }

    /// Returns the file descriptors that the emulator must inherit.
    pub fn fds(&self) -> [RawFd; 2] {
        [&self.object, &self.counts].map(AsRawFd::as_raw_fd)
    }

    /// Reads the counts of the plugin; `None` if the scenario did not end.
    pub fn accesses(mut self) -> Result<Option<Accesses>, ExactError> {
        let fault = || io("reading", "the counts of accesses to slow memory");
        let mut bytes = [0; 24];
        self.counts.seek(SeekFrom::Start(0)).map_err(fault())?;
        if self.counts.read_exact(&mut bytes).is_err() {
            return Ok(None);
        }
        let (numbers, _) = bytes.as_chunks::<8>();
        let [magic, slow, all] = std::array::from_fn(|at| u64::from_le_bytes(numbers[at]));
        if magic != MAGIC || slow > all {
            return Err(fault()(std::io::Error::other("they contradict themselves")));
        }
        Ok(Some(Accesses { slow, all }))
    }
}

/// Adds the metrics of slow nodes to the results. If `accesses` is `None`, they are added as missing.
pub fn add(results: &mut Results, subject: &Subject, accesses: Option<Accesses>) {
    let Some(latency) = subject.nodes.all().iter().find_map(|node| node.slow) else {
        return;
    };
    let Some(accesses) = accesses else {
        let why = "the scenario did not end";
        let absent = [&ACCESSES, &MODELLED].map(|metric| Metric::absent(metric, why));
        results.metrics.extend(absent);
        return;
    };
    let price = Nanos(accesses.slow.saturating_mul(latency.0));
    let modelled = results.elapsed.saturating_add(price);
    results.metrics.extend([
        Metric::new(&ACCESSES, accesses.slow as f64),
        Metric::new(&MODELLED, modelled.0 as f64),
    ]);
    let fact = ("accesses".to_owned(), accesses.all.to_string());
    results.facts.extend([fact]);
}

/// Returns the address ranges of the slow nodes in the form that the emulator passes to a plugin: physical addresses if
/// `is_physical` is true, otherwise sums as described at [`TELLS_PHYSICAL`].
fn ranges(machine: &MachineSpec, is_physical: bool) -> Vec<[u64; 2]> {
    let mut ranges = Vec::new();
    let low = low_memory(machine.memory.0);
    let mut from = 0;
    for node in &machine.nodes {
        let to = from + node.memory.0;
        if node.is_slow && !is_physical {
            // Memories follow each other in the order of the nodes, without gaps, because sizes are multiples of 4 MiB.
            ranges.push([2 * from, from + to]);
        } else if node.is_slow {
            let above = (4 << 30) - low;
            let parts = [[from, to.min(low)], [from.max(low) + above, to + above]];
            ranges.extend(parts.into_iter().filter(|[from, to]| from < to));
        }
        from = to;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Bytes;
    use pagetide_record::{MemorySpec, SwapSpec};

    use super::*;

    fn machine(nodes: &str) -> MachineSpec {
        let nodes: pagetide_record::NodesSpec = nodes.parse().unwrap();
        let memory = MemorySpec::Free(nodes.sum().unwrap());
        MachineSpec::new(memory, SwapSpec::None, Bytes(0), None, &[]).with_nodes(&nodes)
    }

    #[test]
    fn slow_memory_is_where_the_emulator_says_it_is() {
        let small = machine("64M,256M:slow,64M");
        let [first, second, _] = [0, 1, 2].map(|at| small.nodes[at].memory.0);
        assert_eq!(ranges(&small, true), [[first, first + second]]);
        assert_eq!(ranges(&small, false), [[2 * first, 2 * first + second]]);
        assert!(ranges(&machine("64M,64M"), true).is_empty());
        // Memory beyond the hole below 4 GiB continues at 4 GiB.
        let large = machine("1G,3G:slow");
        let [first, second] = [0, 1].map(|at| large.nodes[at].memory.0);
        let found = ranges(&large, true);
        assert_eq!(found[0], [first, 2 << 30]);
        assert_eq!(found[1], [4 << 30, (4 << 30) + first + second - (2 << 30)]);
    }

    #[test]
    fn accesses_are_priced_beside_the_exact_time_and_only_on_slow_nodes() {
        let metrics = |nodes: &str| {
            let subject = Subject {
                nodes: nodes.parse().unwrap(),
                ..Subject::default()
            };
            let mut results = Results {
                elapsed: Nanos(1_000),
                ..Results::default()
            };
            add(&mut results, &subject, Some(Accesses { slow: 10, all: 30 }));
            assert_eq!(results.elapsed, Nanos(1_000));
            let values = results.metrics.into_iter();
            values
                .map(|metric| (metric.name, metric.value.number()))
                .collect::<Vec<_>>()
        };
        assert!(metrics("64M,64M").is_empty());
        let named = |name: &str, value| (name.to_owned(), Some(value));
        assert_eq!(
            metrics("64M,64M:slow"),
            [
                named("slow-accesses", 10.0),
                named("modelled-time", 4_000.0)
            ]
        );
        assert_eq!(
            metrics("64M,64M:slow:1us")[1],
            named("modelled-time", 11_000.0)
        );
    }
}
