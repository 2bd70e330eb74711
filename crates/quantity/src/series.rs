//! A series: a table of named columns of equal length, such as pages over time or one row for each process.

use serde::{Deserialize, Serialize};

use crate::Unit;

/// Name and unit of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name of the column in kebab case.
    pub name: String,
    /// Unit of the column's values.
    pub unit: Unit,
}

/// Values of a column: integers or floating-point numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// A column of integers.
    Int(Vec<i64>),
    /// A column of floating-point numbers.
    Float(Vec<f64>),
}

impl ColumnData {
    /// Returns the number of values in the column.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
        }
    }

    /// Returns true if the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value in the row with this index, as a float; `None` if there is no such row.
    pub fn get(&self, row: usize) -> Option<f64> {
        match self {
            Self::Int(values) => values.get(row).map(|v| *v as f64),
            Self::Float(values) => values.get(row).copied(),
        }
    }
}

/// A table of named columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name of the series in kebab case, unique within the record.
    pub name: String,
    /// Name, unit and values of each column, in the order in which columns are shown.
    pub columns: Vec<(Column, ColumnData)>,
}

/// JSON head of an encoded series: its columns and the number of rows.
#[derive(Serialize, Deserialize)]
struct Head {
    columns: Vec<HeadColumn>,
    rows: usize,
}

#[derive(Serialize, Deserialize)]
struct HeadColumn {
    #[serde(flatten)]
    column: Column,
    float: bool,
}

/// Error: the bytes are not an encoded series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "series {name} cannot be decoded ({why}): the record was written by another version or is damaged"
)]
pub struct SeriesError {
    /// Name of the series.
    pub name: String,
    /// Description of the damage, as a phrase.
    pub why: &'static str,
}

impl Series {
    /// Creates a series without columns.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            columns: Vec::new(),
        }
    }

    /// Returns the series with an additional column of integers.
    #[must_use]
    pub fn int(mut self, name: &str, unit: Unit, values: impl IntoIterator<Item = i64>) -> Self {
        let column = Column {
            name: name.to_owned(),
            unit,
        };
        self.columns
            .push((column, ColumnData::Int(values.into_iter().collect())));
        self
    }

    /// Returns the series with an additional column of floating-point numbers.
    #[must_use]
    pub fn float(mut self, name: &str, unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let column = Column {
            name: name.to_owned(),
            unit,
        };
        self.columns
            .push((column, ColumnData::Float(values.into_iter().collect())));
        self
    }

    /// Returns the number of rows, which is the length of every column; 0 if there are no columns.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, data)| data.len())
    }

    /// Returns the values of the column called `name`; `None` if there is no such column.
    pub fn column(&self, name: &str) -> Option<&ColumnData> {
        self.columns
            .iter()
            .find(|(column, _)| column.name == name)
            .map(|(_, data)| data)
    }

    /// Encodes the series: the length of a JSON head (u32, little endian), the head, then each column's values as 8
    /// bytes, little endian. Integers are stored as the difference from the row before, because that compresses far
    /// better.
    pub fn encode(&self) -> Vec<u8> {
        let rows = self.rows();
        let head = Head {
            columns: self
                .columns
                .iter()
                .map(|(column, data)| HeadColumn {
                    column: column.clone(),
                    float: matches!(data, ColumnData::Float(_)),
                })
                .collect(),
            rows,
        };
        let head = serde_json::to_vec(&head).unwrap_or_default();
        let mut out = Vec::with_capacity(4 + head.len() + rows * 8 * self.columns.len());
        out.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&head);
        for (_, data) in &self.columns {
            match data {
                ColumnData::Int(values) => {
                    let mut before = 0_i64;
                    for value in values {
                        out.extend_from_slice(&value.wrapping_sub(before).to_le_bytes());
                        before = *value;
                    }
                }
                ColumnData::Float(values) => {
                    for value in values {
                        out.extend_from_slice(&value.to_bits().to_le_bytes());
                    }
                }
            }
        }
        out
    }

    /// Decodes bytes that [`Series::encode`] returned. Fails if they are truncated or if their head is damaged.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, SeriesError> {
        let fail = |why| SeriesError {
            name: name.to_owned(),
            why,
        };
        let (length, rest) = bytes
            .split_first_chunk::<4>()
            .ok_or_else(|| fail("it is too short"))?;
        let length = usize::try_from(u32::from_le_bytes(*length))
            .map_err(|_| fail("its head is too long"))?;
        let (head, mut rest) = rest
            .split_at_checked(length)
            .ok_or_else(|| fail("its head is cut"))?;
        let head: Head = serde_json::from_slice(head).map_err(|_| fail("its head is no JSON"))?;
        let size = head
            .rows
            .checked_mul(8)
            .ok_or_else(|| fail("its row count is absurd"))?;
        let mut series = Series::new(name);
        for column in head.columns {
            let (values, after) = rest
                .split_at_checked(size)
                .ok_or_else(|| fail("a column is cut"))?;
            rest = after;
            let words = values
                .as_chunks::<8>()
                .0
                .iter()
                .map(|chunk| u64::from_le_bytes(*chunk));
            let data = if column.float {
                ColumnData::Float(words.map(f64::from_bits).collect())
            } else {
                let mut value = 0_i64;
                ColumnData::Int(
                    words
                        .map(|delta| {
                            value = value.wrapping_add(delta.cast_signed());
                            value
                        })
                        .collect(),
                )
            };
            series.columns.push((column.column, data));
        }
        Ok(series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_survives_encoding() {
        let series = Series::new("ages")
            .int("page", Unit::Pages, [5, -3, i64::MAX, i64::MIN])
            .float("share", Unit::Share, [0.5, 1e-300, 0.0, -1.0]);
        assert_eq!(Series::decode("ages", &series.encode()), Ok(series));
    }

    #[test]
    fn cut_series_are_refused() {
        let bytes = Series::new("x").int("a", Unit::Count, [1, 2, 3]).encode();
        for cut in 0..bytes.len() {
            assert!(Series::decode("x", &bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
}
