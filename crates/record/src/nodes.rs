//! The memory nodes of a trial's machine (NUMA): size and speed of each.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use pagetide_quantity::{Bytes, Nanos};
use thiserror::Error;

use crate::text::{exact_size, exact_time, serde_as_text};

/// Default latency of an access to a slow node.
pub const SLOW_LATENCY: Nanos = Nanos(300);
/// Allowed latencies of an access to a slow node.
const LATENCIES: RangeInclusive<Nanos> = Nanos(1)..=Nanos(1_000_000);
/// Minimum memory of a node that is free for the workload.
pub const MIN_NODE: Bytes = Bytes::from_mib(8);
/// Maximum number of nodes of a machine.
pub const MAX_NODES: usize = 4;

/// Description of the accepted texts of nodes, for error messages.
pub const NODE_FORMS: &str = "sizes such as 64M,64M, with :slow or :slow:LATENCY after the size of a node that is slow and has no \
                              processor, such as 64M,256M:slow:300ns";

/// One memory node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Memory of the node that is free for the workload at the start of the scenario.
    pub free: Bytes,
    /// Modelled latency of an access to a slow node; `None` for a fast node.
    pub slow: Option<Nanos>,
}

/// The memory nodes of a machine, in the order of their numbers. A machine whose nodes are not stated has one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodesSpec(Vec<Node>);

impl NodesSpec {
    /// Returns the nodes; empty if the machine has one node.
    pub fn all(&self) -> &[Node] {
        &self.0
    }

    /// Returns true if the machine has one node.
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the free memory of all nodes together; `None` if no nodes are stated, so that the machine has one node.
    pub fn sum(&self) -> Option<Bytes> {
        let sum = self.0.iter().map(|node| node.free.0).sum();
        (!self.is_default()).then_some(Bytes(sum))
    }

    /// Returns true if a node is slow.
    pub fn has_slow(&self) -> bool {
        self.0.iter().any(|node| node.slow.is_some())
    }

    /// Returns these nodes with another latency for all slow nodes. Fails if no node is slow, or if the latency is not in
    /// the allowed range.
    pub fn with_latency(mut self, latency: Nanos) -> Result<Self, NodesError> {
        if !self.has_slow() {
            return Err(NodesError::NoSlow);
        }
        if !LATENCIES.contains(&latency) {
            return Err(NodesError::Latency(latency));
        }
        for node in &mut self.0 {
            node.slow = node.slow.map(|_| latency);
        }
        Ok(self)
    }

    /// Returns the text for a label, appended after memory and swap: empty if the machine has one node.
    pub fn beside_memory(&self) -> String {
        if self.is_default() {
            String::new()
        } else {
            format!(" · nodes {self}")
        }
    }
}

impl fmt::Display for NodesSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, node) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}", exact_size(node.free))?;
            match node.slow {
                None => {}
                Some(SLOW_LATENCY) => f.write_str(":slow")?,
                Some(latency) => write!(f, ":slow:{}", exact_time(latency))?,
            }
        }
        Ok(())
    }
}

/// Why a text does not describe memory nodes. The user sees this message unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NodesError {
    /// The text of a node cannot be read.
    #[error("`{0}` is not the memory of a node: give {NODE_FORMS}")]
    Unreadable(String),
    /// The text describes one node only.
    #[error(
        "`{0}` is one node, which every machine has: give the sizes of two nodes or more, such as 64M,64M, or --memory {0} alone"
    )]
    One(String),
    /// There are too many nodes.
    #[error("{0} nodes are more than the emulated machine has: give {MAX_NODES} at most")]
    TooMany(usize),
    /// The first node is slow, although it has the processor.
    #[error(
        "the first node has the processor and cannot be slow: put a node without :slow first, such as 64M,256M:slow"
    )]
    FirstSlow,
    /// A node is smaller than [`MIN_NODE`].
    #[error(
        "a node of {0} is less than a kernel can work with: give each node at least {MIN_NODE}"
    )]
    TooSmall(Bytes),
    /// The slow nodes of one machine have different latencies.
    #[error("slow nodes of {0} and {1} on one machine: give all slow nodes one latency")]
    TwoLatencies(Nanos, Nanos),
    /// The latency is not in the allowed range.
    #[error(
        "an access to a slow node cannot cost {0}: give a time from {first} to {last}",
        first = LATENCIES.start(),
        last = LATENCIES.end()
    )]
    Latency(Nanos),
    /// A latency for slow nodes is given, but no node is slow.
    #[error("--slow-latency needs a slow node: name one by --nodes, such as --nodes 64M,256M:slow")]
    NoSlow,
}

/// Parses one node, such as `64M` or `64M:slow:300ns`. Its memory is rounded up to whole pages. `None` if the text is
/// wrong.
fn node(text: &str) -> Option<Node> {
    let mut words = text.splitn(3, ':');
    let free: Bytes = words.next()?.trim().parse().ok()?;
    let slow = match (words.next(), words.next()) {
        (None, _) => None,
        (Some("slow"), None) => Some(SLOW_LATENCY),
        (Some("slow"), Some(latency)) => Some(latency.parse().ok()?),
        (Some(_), _) => return None,
    };
    let free = Bytes(free.0.checked_next_multiple_of(4096)?);
    Some(Node { free, slow })
}

impl FromStr for NodesSpec {
    type Err = NodesError;

    fn from_str(text: &str) -> Result<Self, NodesError> {
        let words: Vec<&str> = text.split(',').collect();
        let mut nodes = Vec::new();
        for word in words.iter().take(MAX_NODES) {
            let node = node(word).ok_or_else(|| NodesError::Unreadable((*word).to_owned()))?;
            if node.free < MIN_NODE {
                return Err(NodesError::TooSmall(node.free));
            }
            if let Some(latency) = node.slow.filter(|latency| !LATENCIES.contains(latency)) {
                return Err(NodesError::Latency(latency));
            }
            nodes.push(node);
        }
        if words.len() > MAX_NODES {
            return Err(NodesError::TooMany(words.len()));
        }
        let mut sizes = nodes.iter().map(|node| node.free.0);
        if sizes.try_fold(0, u64::checked_add).is_none() {
            return Err(NodesError::Unreadable(text.to_owned()));
        }
        match &nodes[..] {
            [_] => return Err(NodesError::One(text.to_owned())),
            [Node { slow: Some(_), .. }, ..] => return Err(NodesError::FirstSlow),
            _ => {}
        }
        let mut latencies = nodes.iter().filter_map(|node| node.slow);
        if let Some(first) = latencies.next()
            && let Some(other) = latencies.find(|other| *other != first)
        {
            return Err(NodesError::TwoLatencies(first, other));
        }
        Ok(Self(nodes))
    }
}

serde_as_text!(NodesSpec);

/// Name of the setting that states the memory policy of the workload. It is not a file of the kernel: the workload's
/// first process sets the policy by set_mempolicy(2), and the other processes inherit it.
pub const POLICY: &str = "numa/policy";

/// Description of the accepted texts of a memory policy, for error messages.
pub const POLICY_FORMS: &str = "default, bind:NODES, prefer:NODE or interleave:NODES, with a plus between nodes, as in interleave:0+1";

/// Nodes on which the kernel allocates a workload's memory, as for `numactl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// On the node of the processor, and on other nodes if it has too little free memory.
    #[default]
    Default,
    /// On these nodes only. Bit n is node n.
    Bind(u64),
    /// On this node, and on other nodes if it has too little free memory.
    Prefer(u32),
    /// On these nodes in turn, page by page. Bit n is node n.
    Interleave(u64),
}

/// Error: this text is not a memory policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{POLICY}={0} is not a memory policy: give {POLICY_FORMS}")]
pub struct PolicyError(String);

impl MemoryPolicy {
    /// Returns the nodes that the policy names. Bit n is node n; zero if it names none.
    pub fn nodes(self) -> u64 {
        match self {
            Self::Default => 0,
            Self::Bind(nodes) | Self::Interleave(nodes) => nodes,
            Self::Prefer(node) => 1 << node,
        }
    }
}

/// Parses numbers of nodes, 63 at most, with a plus between them; else `None`. Bit n of the result is node n.
fn mask(text: &str) -> Option<u64> {
    text.split('+').try_fold(0, |mask, number| {
        let number: u32 = number.trim().parse().ok()?;
        Some(mask | 1_u64.checked_shl(number)?)
    })
}

impl FromStr for MemoryPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (kind, nodes) = text.split_once(':').unwrap_or((text, ""));
        let policy = match kind {
            "default" if nodes.is_empty() => Some(Self::Default),
            "bind" => mask(nodes).map(Self::Bind),
            "prefer" => mask(nodes)
                .filter(|mask| mask.is_power_of_two())
                .map(|mask| Self::Prefer(mask.trailing_zeros())),
            "interleave" => mask(nodes).map(Self::Interleave),
            _ => None,
        };
        policy.ok_or_else(|| PolicyError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_survive_their_text_form() {
        for text in ["64M,64M", "64M,256M:slow", "64M,32M,1G:slow:1us"] {
            let nodes: NodesSpec = text.parse().unwrap();
            assert_eq!(nodes.to_string(), text);
        }
        let nodes: NodesSpec = "64M,256M:slow:300ns".parse().unwrap();
        assert_eq!(nodes.to_string(), "64M,256M:slow");
        assert_eq!(nodes.sum(), Some(Bytes::from_mib(320)));
        let other = nodes.with_latency(Nanos(450)).unwrap();
        assert_eq!(other.to_string(), "64M,256M:slow:450ns");
    }

    #[test]
    fn a_policy_is_written_as_numactl_writes_it_with_a_plus_between_nodes() {
        for (text, policy) in [
            ("default", MemoryPolicy::Default),
            ("bind:0+2", MemoryPolicy::Bind(0b101)),
            ("prefer:1", MemoryPolicy::Prefer(1)),
            ("interleave:0+1", MemoryPolicy::Interleave(0b11)),
        ] {
            assert_eq!(text.parse::<MemoryPolicy>().unwrap(), policy);
        }
        for text in [
            "",
            "bind",
            "bind:",
            "bind:x",
            "prefer:0+1",
            "interleave:99",
            "local:1",
        ] {
            let why = text.parse::<MemoryPolicy>().unwrap_err().to_string();
            assert!(why.contains(&format!("numa/policy={text} ")), "{why}");
        }
    }

    #[test]
    fn what_is_no_machine_with_nodes_is_refused_by_name() {
        let why = |text: &str| text.parse::<NodesSpec>().unwrap_err().to_string();
        for (text, word) in [
            ("64M", "one node"),
            ("64M,64M,64M,64M,64M", "5 nodes"),
            ("64M:slow,64M", "first node has the processor"),
            ("64M,4M", "at least 8 MiB"),
            ("64M,much", "`much`"),
            ("64M,", "``"),
            ("", "``"),
            ("64M,64M:fast", "`64M:fast`"),
            ("64M,64M:slow:2s", "cannot cost 2 s"),
            ("64M,64M:slow:0ns", "cannot cost 0 ns"),
            ("64M,64M:slow:fast", "`64M:slow:fast`"),
            ("10000000T,10000000T", "`10000000T,10000000T`"),
            ("64M,64M:slow,64M:slow:1us", "one latency"),
        ] {
            let why = why(text);
            assert!(why.contains(word), "{text}: {why}");
        }
        let fast: NodesSpec = "64M,64M".parse().unwrap();
        assert_eq!(fast.with_latency(Nanos(1)), Err(NodesError::NoSlow));
        let slow: NodesSpec = "64M,64M:slow".parse().unwrap();
        let free = slow.with_latency(Nanos(0)).unwrap_err().to_string();
        assert!(free.contains("from 1 ns to 1 ms"), "{free}");
    }
}
