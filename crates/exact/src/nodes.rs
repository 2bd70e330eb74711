//! The memory nodes of the emulated machine: their sizes, and the emulator's arguments for them.
//!
//! A machine with one node has one memory, and no arguments for nodes. With several nodes:
//! - The first node has all processors, the memory for the kernel and the harness, and the content of simulated disks.
//! - Each further node has the workload's share and what the kernel needs for the node itself.
//! - A slow node is slow by the firmware's tables only: a larger distance (SLIT), a larger latency and a smaller
//!   bandwidth (HMAT). From these the kernel makes a lower memory tier. The emulator itself is equally fast on all nodes.
//!
//! The figures in the tables are fixed. They do not depend on the latency that prices an access to a slow node, so a
//! change of the price changes nothing that the guest sees.

use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;
use pagetide_record::NodesSpec;

use crate::machine::{MachineNode, MachineSpec, region_at};

/// Memory that the kernel needs on each node except the first for the node's own structures. What the kernel does not
/// use is locked as ballast.
const OVERHEAD: Bytes = Bytes::from_mib(24);
/// Sizes of nodes are multiples of this size, because the kernel manages memory in blocks of up to 4 MiB.
const STEP_BYTES: u64 = 4 << 20;

/// Distance between two fast nodes, and between a slow node and any other node. A node's distance to itself is 10.
/// Source: ACPI, table SLIT.
const DISTANCES: [u32; 2] = [20, 28];
/// Latency of a read or write in nanoseconds, of a fast node and of a slow node. Source: ACPI, table HMAT.
const LATENCIES: [u32; 2] = [100, 300];
/// Bandwidth in bytes per second, of a fast node and of a slow node.
const BANDWIDTHS: [&str; 2] = ["100G", "25G"];

impl MachineSpec {
    /// Returns this machine with its memory divided into nodes, or unchanged if it has one node. The number of CPUs
    /// must be set before, because it determines the memory of the first node.
    #[must_use]
    pub fn with_nodes(mut self, nodes: &NodesSpec) -> Self {
        let Some((_, others)) = nodes.all().split_first() else {
            return self;
        };
        let step = |bytes: u64| Bytes(bytes.next_multiple_of(STEP_BYTES));
        let free: u64 = others.iter().map(|node| node.free.0).sum();
        self.nodes = vec![MachineNode {
            memory: step(self.memory.0 - free),
            is_slow: false,
        }];
        self.nodes.extend(others.iter().map(|node| {
            let bare = node.free.0 + OVERHEAD.0;
            MachineNode {
                // The kernel needs a struct page of 64 bytes per page.
                memory: step(bare + bare / 60),
                is_slow: node.slow.is_some(),
            }
        }));
        let memory = self.nodes.iter().map(|node| node.memory.0).sum();
        self.memory = Bytes(memory);
        self.region_at = region_at(memory);
        self
    }

    /// Returns the sizes of the files with the guest's memory, one for each node.
    pub fn memories(&self) -> Vec<Bytes> {
        if self.nodes.is_empty() {
            return vec![self.memory];
        }
        self.nodes.iter().map(|node| node.memory).collect()
    }

    /// Returns the part of the emulator's machine option that depends on the nodes.
    pub(crate) fn memory_option(&self) -> &'static str {
        match self.nodes.iter().any(|node| node.is_slow) {
            true => "hmat=on,",
            false if self.nodes.is_empty() => "memory-backend=ram,",
            false => "",
        }
    }

    /// Returns the arguments of the emulator for the nodes; empty if the machine has one node.
    pub(crate) fn node_arguments(&self) -> Vec<String> {
        let is_tiered = self.nodes.iter().any(|node| node.is_slow);
        let mut values = Vec::new();
        for at in 0..self.nodes.len() {
            let processor = match (at, self.cpus.count) {
                (0, 0..=1) => ",cpus=0".to_owned(),
                (0, count) => format!(",cpus=0-{}", count - 1),
                _ => String::new(),
            };
            let initiator = if is_tiered { ",initiator=0" } else { "" };
            let memory = memory_name(at);
            values.push(format!(
                "node,nodeid={at}{processor},memdev={memory}{initiator}"
            ));
        }
        for (from, one) in self.nodes.iter().enumerate() {
            for (to, other) in self.nodes.iter().enumerate().skip(from + 1) {
                let distance = DISTANCES[usize::from(one.is_slow || other.is_slow)];
                values.push(format!("dist,src={from},dst={to},val={distance}"));
            }
        }
        for (at, node) in self.nodes.iter().enumerate().filter(|_| is_tiered) {
            let (latency, bandwidth) = (
                LATENCIES[usize::from(node.is_slow)],
                BANDWIDTHS[usize::from(node.is_slow)],
            );
            let of = format!("hmat-lb,initiator=0,target={at},hierarchy=memory");
            values.extend([
                format!("{of},data-type=access-latency,latency={latency}"),
                format!("{of},data-type=access-bandwidth,bandwidth={bandwidth}"),
            ]);
        }
        values
            .into_iter()
            .flat_map(|value| ["-numa".to_owned(), value])
            .collect()
    }
}

/// Returns the name of the memory of the node with this number: the emulator's object, and the file in a snapshot.
pub fn memory_name(at: usize) -> String {
    match at {
        0 => "ram".to_owned(),
        at => format!("ram{at}"),
    }
}

/// Returns the paths of the files with the guest's memory in a snapshot's folder, if the machine has `count` nodes.
pub fn memory_paths(folder: &Path, count: usize) -> Vec<PathBuf> {
    (0..count).map(|at| folder.join(memory_name(at))).collect()
}

#[cfg(test)]
mod tests {
    use pagetide_record::{CpusSpec, MemorySpec, SwapSpec};

    use super::*;

    fn machine(nodes: &str) -> (MachineSpec, MachineSpec) {
        let nodes: NodesSpec = nodes.parse().unwrap();
        let memory = MemorySpec::Free(nodes.sum().unwrap());
        let size = Bytes::from_mib(200);
        let plain = MachineSpec::new(memory, SwapSpec::ZRAM, size, None, &[]);
        (plain.clone(), plain.with_nodes(&nodes))
    }

    #[test]
    fn the_first_node_has_the_kernel_and_each_other_node_its_own_share() {
        let (plain, divided) = machine("64M,256M:slow");
        let [first, second] = &divided.nodes[..] else {
            panic!("{divided:?}")
        };
        assert!(first.memory.0 > (64 + 100) << 20 && first.memory.0 < (64 + 160) << 20);
        assert!(second.memory.0 >= (256 + 24) << 20 && second.is_slow);
        assert_eq!(divided.memory.0, first.memory.0 + second.memory.0);
        assert!(divided.memory > plain.memory);
        let arguments = divided.arguments().join(" ");
        for part in [
            "hmat=on",
            "-numa node,nodeid=0,cpus=0,memdev=ram,initiator=0",
            "-numa node,nodeid=1,memdev=ram1,initiator=0",
            "-numa dist,src=0,dst=1,val=28",
            "target=1,hierarchy=memory,data-type=access-latency,latency=300",
        ] {
            assert!(arguments.contains(part), "{part}: {arguments}");
        }
        assert!(!arguments.contains("memory-backend=ram"));
    }

    #[test]
    fn all_cpus_are_on_the_first_node_with_the_memory_that_they_need() {
        let (plain, divided) = machine("64M,64M");
        let four = plain.with_cpus(CpusSpec::of(4));
        let nodes = "64M,64M".parse().unwrap();
        let several = four.with_nodes(&nodes);
        assert!(several.arguments().join(" ").contains("cpus=0-3"));
        assert!(several.nodes[0].memory > divided.nodes[0].memory);
        assert_eq!(several.nodes[1], divided.nodes[1]);
        let sum: u64 = several.nodes.iter().map(|node| node.memory.0).sum();
        assert_eq!(several.memory.0, sum);
    }

    #[test]
    fn fast_nodes_need_no_table_of_latencies_and_one_node_no_argument() {
        let (plain, divided) = machine("64M,64M");
        let arguments = divided.arguments().join(" ");
        assert!(arguments.contains("val=20") && !arguments.contains("hmat"));
        let arguments = plain.arguments().join(" ");
        assert!(arguments.contains("memory-backend=ram") && !arguments.contains("-numa"));
        assert_eq!(plain.clone().with_nodes(&NodesSpec::default()), plain);
    }
}
