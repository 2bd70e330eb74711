//! Amounts of anonymous and file memory on each memory node over time, from an observed pass.

use pagetide_quantity::{Bytes, PAGE_SIZE, Series};
use pagetide_record::{FileError, NodesSpec, RecordReader};

/// Prefix of the names of the series with a node's `vmstat`; the node's name follows.
const SERIES: &str = "node_vmstat-node";
/// Kinds of memory, each with the two columns that are added to get its amount. The pages of the ballast are in
/// neither column.
const KINDS: [(&str, [&str; 2]); 2] = [
    ("anonymous", ["nr_inactive_anon", "nr_active_anon"]),
    ("file", ["nr_inactive_file", "nr_active_file"]),
];

/// Amount of one kind of memory on one node over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMemory {
    /// Name of the node: `node 1`, or `node 1, slow` for a slow one.
    pub node: String,
    /// Kind of the memory.
    pub kind: &'static str,
    /// Amount at each sample of the series, in the order of time.
    pub over_time: Vec<Bytes>,
}

/// Returns the amounts of each kind of memory on each node. Empty if the machine has one node, or if the record is not
/// of an observed pass. Kinds that no node ever has are left out.
pub fn over_time(reader: &RecordReader) -> Result<Vec<NodeMemory>, FileError> {
    let nodes = reader.record().subject.nodes.clone();
    if nodes.is_default() {
        return Ok(Vec::new());
    }
    let names = reader.series_names().map(str::to_owned);
    let names: Vec<String> = names.filter(|name| name.starts_with(SERIES)).collect();
    let series: Result<Vec<Series>, FileError> =
        names.iter().map(|name| reader.series(name)).collect();
    Ok(of_series(&nodes, &series?))
}

fn of_series(nodes: &NodesSpec, all: &[Series]) -> Vec<NodeMemory> {
    let mut found = Vec::new();
    for (kind, columns) in KINDS {
        let mut of_kind = Vec::new();
        for series in all {
            let number = series.name.trim_start_matches(SERIES);
            let spec = number
                .parse()
                .ok()
                .and_then(|at: usize| nodes.all().get(at));
            let slow = match spec {
                Some(spec) if spec.slow.is_some() => ", slow",
                _ => "",
            };
            let columns = columns.map(|column| series.column(column));
            let sum = |row: usize| {
                let pages = columns
                    .iter()
                    .flatten()
                    .filter_map(|column| column.get(row));
                Bytes(pagetide_quantity::floor(
                    pages.sum::<f64>() * PAGE_SIZE as f64,
                ))
            };
            of_kind.push(NodeMemory {
                node: format!("node {number}{slow}"),
                kind,
                over_time: (0..series.rows()).map(sum).collect(),
            });
        }
        of_kind.sort_by(|a, b| a.node.cmp(&b.node));
        let is_used = |memory: &NodeMemory| memory.over_time.iter().any(|amount| amount.0 > 0);
        if of_kind.iter().any(is_used) {
            found.extend(of_kind);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Unit;

    use super::*;

    #[test]
    fn memory_of_a_kind_is_the_sum_of_both_lists_of_each_node() {
        let series = |node: u32, anon: [i64; 2]| {
            Series::new(format!("{SERIES}{node}"))
                .int("time", Unit::Nanos, [1, 2])
                .int("nr_inactive_anon", Unit::Pages, anon)
                .int("nr_active_anon", Unit::Pages, [1, 1])
                .int("nr_inactive_file", Unit::Pages, [0, 0])
        };
        let nodes = "8M,8M:slow".parse().unwrap();
        let found = of_series(&nodes, &[series(1, [0, 3]), series(0, [9, 9])]);
        let page = |pages: u64| Bytes(pages * PAGE_SIZE);
        let expected = [
            ("node 0", [page(10), page(10)]),
            ("node 1, slow", [page(1), page(4)]),
        ];
        assert_eq!(found.len(), 2);
        for (memory, (node, over_time)) in found.iter().zip(expected) {
            assert_eq!(
                (memory.node.as_str(), memory.kind, &memory.over_time[..]),
                (node, "anonymous", &over_time[..])
            );
        }
    }
}
