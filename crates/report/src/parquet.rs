//! Apache Parquet for data frames: samples of many records in one file, a series in another.
//!
//! Columns are what the CSV of the same has; absent values are null. Written row group by row group, so that memory
//! stays bounded whatever is exported.

use std::io::Write;
use std::sync::Arc;

use pagetide_quantity::{ColumnData, Series};
use pagetide_record::Record;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError as Inner;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::csv::{Datum, SAMPLES, name_of, sample_rows};
use crate::draw::escaped;

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("writing Parquet was refused ({0}): check the disk and the file's permissions")]
pub struct ParquetError(#[from] Inner);

/// A column being filled.
enum Column {
    Text(Vec<String>),
    Int(Vec<i64>),
    Float(Vec<Option<f64>>),
    Bool(Vec<bool>),
}

impl Column {
    /// The schema's field for it.
    fn field(&self, name: &str) -> Result<Type, Inner> {
        let (physical, logical, repetition) = match self {
            Self::Text(_) => (
                Physical::BYTE_ARRAY,
                Some(LogicalType::String),
                Repetition::REQUIRED,
            ),
            Self::Int(_) => (Physical::INT64, None, Repetition::REQUIRED),
            Self::Float(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
            Self::Bool(_) => (Physical::BOOLEAN, None, Repetition::REQUIRED),
        };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }

    /// Writes its values into the column that is next.
    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), Inner> {
        let Some(mut column) = group.next_column()? else {
            return Err(Inner::General("fewer columns than promised".to_owned()));
        };
        match (self, column.untyped()) {
            (Self::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let bytes: Vec<ByteArray> = values
                    .iter()
                    .map(|text| ByteArray::from(text.as_str()))
                    .collect();
                writer.write_batch(&bytes, None, None)?;
            }
            (Self::Int(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, None, None)?;
            }
            (Self::Float(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
                let numbers: Vec<f64> = values.iter().copied().flatten().collect();
                writer.write_batch(&numbers, Some(&levels), None)?;
            }
            (Self::Bool(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, None, None)?;
            }
            _ => return Err(Inner::General("a column is of another type".to_owned())),
        }
        column.close()
    }

    fn clear(&mut self) {
        match self {
            Self::Text(values) => values.clear(),
            Self::Int(values) => values.clear(),
            Self::Float(values) => values.clear(),
            Self::Bool(values) => values.clear(),
        }
    }
}

/// Opens a file with these columns.
fn open<W: Write + Send>(
    writer: W,
    name: &str,
    columns: &[(String, Column)],
) -> Result<SerializedFileWriter<W>, Inner> {
    let fields = columns
        .iter()
        .map(|(name, column)| column.field(name).map(Arc::new))
        .collect::<Result<Vec<_>, Inner>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    SerializedFileWriter::new(writer, Arc::new(schema), Arc::new(properties))
}

/// Writes what the columns hold as one row group and empties them.
fn flush<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &mut [(String, Column)],
) -> Result<(), Inner> {
    let mut group = file.next_row_group()?;
    for (_, column) in columns {
        column.write(&mut group)?;
        column.clear();
    }
    group.close()?;
    Ok(())
}

/// Writes samples: the columns and rows that the CSV of the same has.
pub fn samples<'a>(
    writer: impl Write + Send,
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<(), ParquetError> {
    let mut columns: Vec<(String, Column)> = SAMPLES
        .iter()
        .map(|name| {
            let empty = match *name {
                "valid" | "as_written" => Column::Bool(Vec::new()),
                "value" => Column::Float(Vec::new()),
                _ => Column::Text(Vec::new()),
            };
            ((*name).to_owned(), empty)
        })
        .collect();
    let mut file = open(writer, "samples", &columns)?;
    let mut rows = 0;
    for row in records.into_iter().flat_map(sample_rows) {
        for ((_, column), datum) in columns.iter_mut().zip(row) {
            match (column, datum) {
                (Column::Text(values), Datum::Text(text)) => values.push(escaped(&text)),
                (Column::Bool(values), Datum::Flag(flag)) => values.push(flag),
                (Column::Float(values), Datum::Number(value)) => values.push(value),
                _ => return Err(Inner::General("a column is of another type".to_owned()).into()),
            }
        }
        rows += 1;
        if rows % GROUP_ROWS == 0 {
            flush(&mut file, &mut columns)?;
        }
    }
    if rows % GROUP_ROWS != 0 {
        flush(&mut file, &mut columns)?;
    }
    file.close()?;
    Ok(())
}

/// Writes a series with its columns as they are; a unit stands behind the name as `name (unit)`.
pub fn series(writer: impl Write + Send, series: &Series) -> Result<(), ParquetError> {
    let mut columns: Vec<(String, Column)> = series
        .columns
        .iter()
        .map(|(column, data)| {
            let name = escaped(&format!("{} ({})", column.name, name_of(column.unit)));
            let empty = match data {
                ColumnData::Int(_) => Column::Int(Vec::new()),
                ColumnData::Float(_) => Column::Float(Vec::new()),
            };
            (name, empty)
        })
        .collect();
    let mut file = open(writer, "series", &columns)?;
    let rows = series.rows();
    let mut from = 0;
    while from < rows {
        let to = rows.min(from + GROUP_ROWS);
        for ((_, column), (_, data)) in columns.iter_mut().zip(&series.columns) {
            match (column, data) {
                (Column::Int(values), ColumnData::Int(all)) => {
                    values.extend((from..to).map(|row| all.get(row).copied().unwrap_or(0)));
                }
                (Column::Float(values), ColumnData::Float(all)) => {
                    values.extend((from..to).map(|row| {
                        let value = all.get(row).copied();
                        value.filter(|value| value.is_finite())
                    }));
                }
                _ => {}
            }
        }
        flush(&mut file, &mut columns)?;
        from = to;
    }
    file.close()?;
    Ok(())
}
