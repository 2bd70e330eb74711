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

use crate::csv::{metrics, name_of, params, why_missing};
use crate::draw::escaped;

/// Rows of a row group.
const GROUP: usize = 1 << 16;

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

/// Names and kinds of the samples' columns: texts, then numbers.
const TEXTS: [&str; 16] = [
    "record",
    "digest",
    "scenario",
    "params",
    "memory",
    "swap",
    "arena",
    "pass",
    "variant",
    "kernel",
    "seed",
    "metric",
    "unit",
    "direction",
    "missing",
    "invalid",
];

/// Writes samples: a row for each record and metric, invalid records too.
pub fn samples<'a>(
    writer: impl Write + Send,
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<(), ParquetError> {
    let mut columns: Vec<(String, Column)> = TEXTS
        .iter()
        .map(|name| ((*name).to_owned(), Column::Text(Vec::new())))
        .collect();
    columns.push(("as_written".to_owned(), Column::Bool(Vec::new())));
    columns.push(("valid".to_owned(), Column::Bool(Vec::new())));
    columns.push(("value".to_owned(), Column::Float(Vec::new())));
    let mut file = open(writer, "samples", &columns)?;
    let mut rows = 0;
    for record in records {
        let subject = &record.subject;
        let id = record.id();
        for metric in metrics(record) {
            let texts = [
                id.clone(),
                escaped(&record.digest),
                escaped(&subject.scenario),
                escaped(&params(&subject.params)),
                subject.memory.to_string(),
                subject.swap.to_string(),
                subject.arena.kind.to_string(),
                subject.pass.to_string(),
                escaped(&subject.variant.name),
                escaped(&subject.variant.kernel.release),
                // As text: a seed uses all 64 bits, which a data frame's signed numbers do not hold.
                subject.seed.to_string(),
                metric.map_or_else(String::new, |metric| escaped(&metric.name)),
                metric.map_or_else(String::new, |metric| name_of(metric.unit)),
                metric.map_or_else(String::new, |metric| name_of(metric.direction)),
                escaped(why_missing(metric)),
                escaped(&record.why_invalid().unwrap_or_default()),
            ];
            let mut texts = texts.into_iter();
            let mut flags = [subject.as_written, record.is_valid()].into_iter();
            for (_, column) in &mut columns {
                match column {
                    Column::Text(values) => values.push(texts.next().unwrap_or_default()),
                    Column::Bool(values) => values.push(flags.next().unwrap_or_default()),
                    Column::Float(values) => {
                        let value = metric.and_then(|metric| metric.value.number());
                        values.push(value.filter(|value| value.is_finite()));
                    }
                    Column::Int(_) => {}
                }
            }
            rows += 1;
            if rows % GROUP == 0 {
                flush(&mut file, &mut columns)?;
            }
        }
    }
    if rows % GROUP != 0 {
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
        let to = rows.min(from + GROUP);
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
