//! Finds the corresponding cells of two sets of records.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_store::Row;

use crate::difference::{Difference, differences};

/// Records of one side, by the hash of their cell.
pub(crate) type Cells = BTreeMap<String, Vec<Row>>;

/// Pairs of cells, one from each side, that are compared with each other.
#[derive(Debug, Default)]
pub(crate) struct Matching<'a> {
    pub pairs: Vec<(&'a String, &'a String)>,
    /// Differences between the paired cells, without repetitions; empty if the cells are the same on both sides.
    pub differences: Vec<Difference>,
}

impl<'a> Matching<'a> {
    /// Pairs the cells that both sides have. Without a common cell, cells of the same scenario are paired, the most
    /// similar ones first; each cell is used at most once. Without a common scenario, only the two most similar cells
    /// are paired. A different scenario counts as a larger difference than any number of different parameters.
    pub fn of(a: &'a Cells, b: &'a Cells) -> Self {
        let same: Vec<_> = a
            .keys()
            .filter(|hash| b.contains_key(*hash))
            .map(|hash| (hash, hash))
            .collect();
        if !same.is_empty() {
            return Self {
                pairs: same,
                differences: Vec::new(),
            };
        }
        let mut candidates: Vec<_> = a
            .iter()
            .flat_map(|x| b.iter().map(move |y| (x, y)))
            .filter(|((_, x), (_, y))| scenario(x) == scenario(y))
            .map(|((x, of_x), (y, of_y))| (x, y, between(of_x, of_y)))
            .collect();
        if candidates.is_empty() {
            let all = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
            let nearest = all
                .map(|((x, of_x), (y, of_y))| (x, y, between(of_x, of_y)))
                .min_by_key(|(.., different)| different.len());
            candidates.extend(nearest);
        }
        candidates.sort_by_key(|(.., different)| different.len());
        let mut found = Self::default();
        let [mut taken_a, mut taken_b] = [BTreeSet::new(), BTreeSet::new()];
        for (x, y, different) in candidates {
            if taken_a.contains(x) || taken_b.contains(y) {
                continue;
            }
            taken_a.insert(x);
            taken_b.insert(y);
            found.pairs.push((x, y));
            for one in different {
                if !found.differences.contains(&one) {
                    found.differences.push(one);
                }
            }
        }
        found.pairs.sort_unstable();
        found
    }
}

fn scenario(rows: &[Row]) -> Option<&str> {
    let row = rows.first()?;
    Some(row.cell.subject.scenario.as_str())
}

fn between(a: &[Row], b: &[Row]) -> Vec<Difference> {
    match (a.first(), b.first()) {
        (Some(a), Some(b)) => differences(&a.cell.subject, &b.cell.subject),
        _ => Vec::new(),
    }
}
