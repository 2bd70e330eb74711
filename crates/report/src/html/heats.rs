//! Pages that profiled trials referenced over time, for heat maps.
//!
//! A blob of LEB128 numbers holds the windows of time first, four numbers for each: references, pages, written pages and
//! pages that are used for the first time. Then for each row of the map, from the lowest addresses on: the first page as
//! a distance to that of the row before (zigzag), and for each window the number of pages that were referenced. Rows are
//! in the order of address spaces and addresses.

use std::collections::BTreeMap;
use std::io;

use pagetide_profile::Summary;

use super::Input;
use super::blob::{Blobs, varint, zigzag};
use super::data::{Heat, HeatRange};
use super::sources::ReferencedPass;

/// Maximum number of ranges of addresses to list.
const MAX_RANGES: usize = 40;

/// Returns the maps of a cell: one for each variant that has recorded references.
pub(crate) fn heats(
    input: &Input<'_>,
    cell: usize,
    columns: usize,
    blobs: &mut Blobs<'_>,
) -> io::Result<Vec<Heat>> {
    let mut all = Vec::new();
    for column in 0..columns {
        let pass = input.sources.referenced.get(&(cell, column));
        if let Some(pass) = pass.filter(|pass| pass.summary.pages > 0) {
            all.push(heat(column, pass, blobs)?);
        }
    }
    Ok(all)
}

fn heat(column: usize, pass: &ReferencedPass, blobs: &mut Blobs<'_>) -> io::Result<Heat> {
    let summary = &pass.summary;
    Ok(Heat {
        column,
        record: pass.record.clone(),
        seed: pass.seed,
        until: summary.header.until,
        elapsed: summary.header.instructions,
        pages: summary.pages,
        row_pages: summary.row_pages,
        rows: summary.heat.len(),
        windows: summary.windows.len(),
        blob: blobs.put(&coded(summary))?,
        ranges: ranges(summary),
    })
}

fn coded(summary: &Summary) -> Vec<u8> {
    let mut bytes = Vec::new();
    for window in &summary.windows {
        for number in [window.references, window.pages, window.written, window.new] {
            varint(&mut bytes, number);
        }
    }
    let mut before = 0;
    for (row, (_, first)) in summary.heat.iter().zip(&summary.row_starts) {
        varint(&mut bytes, zigzag(first.wrapping_sub(before).cast_signed()));
        before = *first;
        for used in row {
            varint(&mut bytes, u64::from(*used));
        }
    }
    bytes
}

/// Returns the ranges with the most references, at most [`MAX_RANGES`], in the order of the rows.
fn ranges(summary: &Summary) -> Vec<HeatRange> {
    let mut before = 0;
    let in_order: BTreeMap<_, _> = summary
        .ranges
        .iter()
        .map(|range| ((range.space, range.first), range))
        .collect();
    let least = summary.ranges.get(MAX_RANGES - 1);
    let least = least.map_or(0, |range| range.references);
    let mut all = Vec::new();
    for range in in_order.into_values() {
        if range.references >= least && all.len() < MAX_RANGES {
            all.push(HeatRange {
                address: format!("{:#x}", range.first << 12),
                memory: summary
                    .describe(range.space, range.first)
                    .unwrap_or_default(),
                space: range.space,
                before,
                used: range.used,
                pages: range.pages,
                references: range.references,
            });
        }
        before += range.used;
    }
    all
}

#[cfg(test)]
mod tests {
    use pagetide_profile::{AddressRange, Window};

    use super::*;

    fn range(space: u32, first: u64, used: u64, references: u64) -> AddressRange {
        AddressRange {
            space,
            first,
            pages: used,
            used,
            references,
            mapping: None,
        }
    }

    #[test]
    fn rows_carry_their_first_pages_and_ranges_their_places() {
        let summary = Summary {
            pages: 5,
            windows: vec![
                Window {
                    references: 300,
                    pages: 4,
                    written: 1,
                    new: 4,
                    ..Window::default()
                };
                2
            ],
            heat: vec![vec![2, 0], vec![1, 200]],
            row_pages: 3,
            row_starts: vec![(0, 100), (1, 97)],
            ranges: vec![range(1, 97, 2, 900), range(0, 100, 3, 20)],
            ..Summary::default()
        };
        let window = [0xac, 2, 4, 1, 4];
        let rows = [0xc8, 1, 2, 0, 5, 1, 0xc8, 1];
        let expected: Vec<u8> = window.into_iter().chain(window).chain(rows).collect();
        assert_eq!(coded(&summary), expected);
        let places: Vec<(String, u64, u64)> = ranges(&summary)
            .into_iter()
            .map(|range| (range.address, range.before, range.used))
            .collect();
        assert_eq!(
            places,
            [("0x64000".to_owned(), 0, 3), ("0x61000".to_owned(), 3, 2)]
        );
    }

    #[test]
    fn a_trial_without_references_has_an_empty_map() {
        assert!(coded(&Summary::default()).is_empty());
        assert!(ranges(&Summary::default()).is_empty());
    }
}
