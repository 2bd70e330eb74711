//! Encodes series as blobs: integers as differences to the row before, other numbers unchanged.

use std::io;

use pagetide_quantity::{ColumnData, Series};

use super::blob::{Blobs, varint, zigzag};
use super::data::{Table, TableColumn};
use crate::draw::clean;

/// Maximum number of rows of a series in the page; a longer series is thinned to every second, third, … row.
pub(crate) const ROWS: usize = 1 << 18;
/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 80;

/// Writes the columns of a series as blobs and returns the table that refers to them.
pub(crate) fn pack(series: &Series, blobs: &mut Blobs<'_>) -> io::Result<Table> {
    let stride = series.rows().div_ceil(ROWS).max(1);
    let mut columns = Vec::new();
    for (head, data) in &series.columns {
        let mut bytes = Vec::new();
        let float = match data {
            ColumnData::Int(values) => {
                let mut before = 0_i64;
                for value in values.iter().step_by(stride) {
                    varint(&mut bytes, zigzag(value.wrapping_sub(before)));
                    before = *value;
                }
                false
            }
            ColumnData::Float(values) => {
                for value in values.iter().step_by(stride) {
                    bytes.extend_from_slice(&value.to_le_bytes());
                }
                true
            }
        };
        columns.push(TableColumn {
            name: clean(&head.name, NAME_CHARS, false),
            unit: head.unit,
            float,
            blob: blobs.put(&bytes)?,
        });
    }
    Ok(Table {
        name: clean(&series.name, NAME_CHARS, false),
        rows: series.rows().div_ceil(stride),
        stride,
        columns,
        ..Table::default()
    })
}
