//! The record file: the format of a record on disk.
//!
//! The file is `PTREC01\n`, then sections one after the other, then a last section `end`. A section is a head of 32
//! bytes, little endian (magic `SECT`, CRC-32 of the stored bytes, stored length u64, original length u64, kind u16,
//! name length u16, CRC-32 of this head's first 28 bytes), the name, and the stored bytes, compressed with zstd. The
//! file is written once, from front to back: first the bulk sections, streamed in bounded memory, then the record
//! itself as JSON. The file gets its final name only when it is complete (and on disk, unless the caller syncs it
//! later), so that a reader never sees an incomplete record.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use pagetide_outside::{FileOrigin, open, remedy};
use sha2::{Digest, Sha256};

use crate::record::{Record, SCHEMA, SectionInfo};
use crate::subject::hex;
use pagetide_quantity::Bytes;
use pagetide_quantity::command::in_backticks;
use pagetide_quantity::{Series, SeriesError};

const FILE_MAGIC: &[u8; 8] = b"PTREC01\n";
const SECTION_MAGIC: u32 = u32::from_le_bytes(*b"SECT");
const HEAD_BYTES: usize = 32;
/// Compression level of zstd. Level 1 is fast, which matters because a record is written between two trials; the bulk
/// data is already delta-coded.
const ZSTD_LEVEL: i32 = 1;

/// Maximum number of bulk sections in a record file.
pub const MAX_SECTIONS: usize = 4_096;
/// Maximum size of the JSON of a record in bytes, without bulk sections.
pub const MAX_RECORD_BYTES: u64 = 256 << 20;
/// Maximum size of an encoded series that is read, in bytes. A series is decoded in memory as a whole; blobs are
/// streamed and have no such limit.
pub const MAX_SERIES_BYTES: u64 = 1 << 30;
/// Maximum absolute value of a metric, in the metric's unit. Sums of squares of such values stay finite, and no real
/// quantity comes near.
pub const MAX_VALUE: f64 = 1e30;

/// Kinds of sections: each with its number in the file and its name.
const KINDS: [(u16, &str); 4] = [(1, "series"), (2, "blob"), (3, "record"), (4, "end")];

/// Errors of reading or writing a record file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// An operation on a record file failed.
    #[error("{what} {path}: {source}; {}", remedy(.source, None))]
    Io {
        /// The attempted operation, such as "reading record".
        what: &'static str,
        /// Path of the record file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not a complete record.
    #[error(
        "{path} is not a whole pagetide record ({why}): run {} to leave it out",
        in_backticks("store rebuild")
    )]
    Damaged {
        /// Path of the damaged or incomplete file.
        path: PathBuf,
        /// Description of the damage, as a clause.
        why: &'static str,
    },
    /// The record breaks a rule that is checked when a record is read, so it is not written either.
    #[error(
        "a record of {scenario} cannot be stored ({why}): its file could not be read again, so none is written"
    )]
    Unreadable {
        /// Name of the record's scenario.
        scenario: String,
        /// Description of the broken rule, as a clause.
        why: &'static str,
    },
    /// The record was written by a newer version of pagetide.
    #[error(
        "{path} was written by a newer pagetide (schema {found}, this one reads up to {SCHEMA}): upgrade pagetide"
    )]
    Newer {
        /// Path of the record file.
        path: PathBuf,
        /// Schema version of the record.
        found: u32,
    },
    /// The record file has no section with this kind and name.
    #[error(
        "{path} has no {kind} `{name}`: {} lists what it has",
        in_backticks("show RECORD")
    )]
    NoSection {
        /// Path of the record file.
        path: PathBuf,
        /// Kind of the requested section: `series` or `blob`.
        kind: &'static str,
        /// Name of the requested section.
        name: String,
    },
    /// A series cannot be decoded.
    #[error(transparent)]
    Series(#[from] SeriesError),
}

/// Returns a function that adds the attempted operation and the path to an I/O error.
fn io_at<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
    move |source| FileError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Number of records that this process has started to write; makes temporary file names unique.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Writes one record file from front to back. If dropped before it is finished, the file is deleted.
pub struct RecordWriter {
    file: BufWriter<File>,
    part: PathBuf,
    sections: Vec<SectionInfo>,
    finished: bool,
}

impl RecordWriter {
    /// Starts a record file in the folder `dir` under a temporary name.
    pub fn create(dir: &Path) -> Result<Self, FileError> {
        let nonce = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos());
        // Several threads may start at the same time.
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        let part = dir.join(format!("{}-{nonce:x}-{number}.part", std::process::id()));
        let file = File::options()
            .write(true)
            .read(true)
            .create_new(true)
            .open(&part)
            .map_err(io_at("creating record", &part))?;
        let mut writer = Self {
            file: BufWriter::new(file),
            part,
            sections: Vec::new(),
            finished: false,
        };
        let part = writer.part.clone();
        writer
            .file
            .write_all(FILE_MAGIC)
            .map_err(io_at("writing record", &part))?;
        Ok(writer)
    }

    /// Encodes a series and writes it as a bulk section.
    pub fn series(&mut self, series: &Series) -> Result<(), FileError> {
        self.section("series", &series.name, &series.encode())
    }

    /// Writes a bulk section of kind `series` (already encoded) or `blob`.
    pub fn section(
        &mut self,
        kind: &'static str,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        self.stream(kind, name, bytes.len() as u64, bytes)
    }

    /// Copies `size` bytes of `source` to a new section. Fails if `source` ends early or there are too many sections.
    pub fn stream(
        &mut self,
        kind: &'static str,
        name: &str,
        size: u64,
        source: impl Read,
    ) -> Result<(), FileError> {
        let part = self.part.clone();
        if self.sections.len() >= MAX_SECTIONS {
            return Err(FileError::Unreadable {
                scenario: "this trial".to_owned(),
                why: TOO_MANY,
            });
        }
        let mut source = Hashing {
            inner: source.take(size),
            hash: Sha256::new(),
        };
        self.put(kind, name, size, &mut source)
            .map_err(io_at("writing record", &part))?;
        self.sections.push(SectionInfo {
            kind: kind.to_owned(),
            name: name.to_owned(),
            size: Bytes(size),
            digest: hex(&source.hash.finalize()),
        });
        Ok(())
    }

    fn put(&mut self, kind: &str, name: &str, size: u64, mut source: impl Read) -> io::Result<()> {
        let number = KINDS
            .iter()
            .find(|(_, k)| *k == kind)
            .map_or(0, |(n, _)| *n);
        self.file.flush()?;
        let file = self.file.get_mut();
        let start = file.stream_position()?;
        // The head is written last, when the stored length is known.
        file.write_all(&[0; HEAD_BYTES])?;
        file.write_all(name.as_bytes())?;
        let stored_from = file.stream_position()?;
        let crc = {
            let inner = BufWriter::with_capacity(1 << 16, &mut *file);
            let mut sink = Checksummer {
                inner,
                crc: crc32fast::Hasher::new(),
            };
            if size > 0 {
                let mut encoder = zstd::stream::Encoder::new(&mut sink, ZSTD_LEVEL)?;
                let copied = io::copy(&mut source, &mut encoder)?;
                encoder.finish()?;
                if copied != size {
                    return Err(io::Error::other("the section's source ended early"));
                }
            }
            sink.flush()?;
            sink.crc.finalize()
        };
        let end = file.stream_position()?;
        let mut head = [0_u8; HEAD_BYTES];
        head[0..4].copy_from_slice(&SECTION_MAGIC.to_le_bytes());
        head[4..8].copy_from_slice(&crc.to_le_bytes());
        head[8..16].copy_from_slice(&(end - stored_from).to_le_bytes());
        head[16..24].copy_from_slice(&size.to_le_bytes());
        head[24..26].copy_from_slice(&number.to_le_bytes());
        let length =
            u16::try_from(name.len()).map_err(|_| io::Error::other("section name too long"))?;
        head[26..28].copy_from_slice(&length.to_le_bytes());
        let check = crc32fast::hash(&head[..28]);
        head[28..32].copy_from_slice(&check.to_le_bytes());
        file.seek(SeekFrom::Start(start))?;
        file.write_all(&head)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(())
    }

    /// Completes the record: sets its schema, digest and list of sections, writes the JSON, syncs the file to disk and
    /// renames it to `ID.record` in its folder. Returns the path. Fails if the record breaks a rule of the reader.
    pub fn finish(self, record: &mut Record) -> Result<PathBuf, FileError> {
        self.complete(record, true)
    }

    /// Completes the record like [`RecordWriter::finish`], but does not sync the file to disk. The caller can then sync
    /// many files at once.
    pub fn finish_unsynced(self, record: &mut Record) -> Result<PathBuf, FileError> {
        self.complete(record, false)
    }

    fn complete(mut self, record: &mut Record, sync: bool) -> Result<PathBuf, FileError> {
        record.schema = record.subject.schema();
        record.sections = std::mem::take(&mut self.sections);
        record.digest = Record::digest_of(&record.results, &record.sections);
        let json = serde_json::to_vec(record).unwrap_or_default();
        if let Err(Unfit::Wrong(why)) = parsed(&json) {
            let scenario = record.subject.scenario.clone();
            return Err(FileError::Unreadable { scenario, why });
        }
        let part = self.part.clone();
        (|| {
            self.put("record", "", json.len() as u64, &json[..])?;
            self.put("end", "", 0, io::empty())?;
            self.file.flush()?;
            if sync {
                self.file.get_ref().sync_data()?;
            }
            Ok(())
        })()
        .map_err(io_at("writing record", &part))?;
        let path = part.with_file_name(format!("{}.record", record.id()));
        std::fs::rename(&part, &path).map_err(io_at("naming record", &path))?;
        self.finished = true;
        Ok(path)
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        if !self.finished {
            // If the file cannot be removed now, it is removed when the store is opened again.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

/// A reader or writer that passes bytes through and computes their SHA-256.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hash.update(&buffer[..n]);
        Ok(n)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A reader or writer that passes bytes through and computes their CRC-32.
struct Checksummer<W> {
    inner: W,
    crc: crc32fast::Hasher,
}

impl<R: Read> Read for Checksummer<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.crc.update(&buffer[..n]);
        Ok(n)
    }
}

impl<W: Write> Write for Checksummer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.crc.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Only the schema version, parsed from the JSON of a record of any version.
#[derive(serde::Deserialize)]
struct Version {
    schema: u32,
}

/// Why a JSON text is not accepted as a record.
enum Unfit {
    /// The record has this schema version, which is newer than this program can read.
    Newer(u32),
    /// The record is damaged or breaks a rule; the text says how.
    Wrong(&'static str),
}

const TOO_MANY: &str = "it has too many sections";

/// Parses and checks the JSON of a record. The writer uses this function too, so a record that cannot be read is never
/// written.
fn parsed(json: &[u8]) -> Result<Record, Unfit> {
    if json.len() as u64 > MAX_RECORD_BYTES {
        return Err(Unfit::Wrong("its record is larger than 256 MiB"));
    }
    // The schema version is read before the other fields, which may differ in another version.
    let version: Version =
        serde_json::from_slice(json).map_err(|_| Unfit::Wrong("its record is no JSON"))?;
    if version.schema > SCHEMA {
        return Err(Unfit::Newer(version.schema));
    }
    let record: Record = serde_json::from_slice(json)
        .map_err(|_| Unfit::Wrong("its record does not fit the schema"))?;
    if record.sections.len() > MAX_SECTIONS {
        return Err(Unfit::Wrong(TOO_MANY));
    }
    let metrics = &record.results.metrics;
    let mut values = metrics.iter().filter_map(|metric| metric.value.number());
    if values.any(|value| value.abs() > MAX_VALUE) {
        return Err(Unfit::Wrong("the value of a metric is above 1e30"));
    }
    Ok(record)
}

/// Kind, name, position, sizes and checksum of a section in the file.
#[derive(Clone, Debug)]
struct Section {
    kind: &'static str,
    name: String,
    offset: u64,
    stored: u64,
    size: u64,
    crc: u32,
}

/// An open record file. The record itself is read when the file is opened, bulk sections on request.
pub struct RecordReader {
    path: PathBuf,
    places: Vec<Section>,
    record: Record,
}

impl RecordReader {
    /// Opens a record file and reads the record itself. Fails if a section's head or the record is damaged or too new.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let mut file = open(path, FileOrigin::Own).map_err(io_at("reading record", path))?;
        let damaged = |why| FileError::Damaged {
            path: path.to_owned(),
            why,
        };
        let length = file
            .metadata()
            .map_err(io_at("reading record", path))?
            .len();
        let mut magic = [0; 8];
        file.read_exact(&mut magic).map_err(|_| {
            damaged(if length == 0 {
                "it is empty"
            } else {
                "it is too short"
            })
        })?;
        if &magic != FILE_MAGIC {
            return Err(damaged("it does not begin as one"));
        }
        let places = places(&mut file, length).map_err(damaged)?;
        let mut reader = Self {
            path: path.to_owned(),
            places,
            record: Record::default(),
        };
        let json = reader.bytes("record", "", MAX_RECORD_BYTES)?;
        reader.record = parsed(&json).map_err(|unfit| match unfit {
            Unfit::Newer(found) => FileError::Newer {
                path: path.to_owned(),
                found,
            },
            Unfit::Wrong(why) => damaged(why),
        })?;
        Ok(reader)
    }

    /// Returns the record without its bulk sections.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Consumes the reader and returns the record without its bulk sections.
    pub fn into_record(self) -> Record {
        self.record
    }

    /// Returns the path of the record file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads and decodes the series with this name. Fails if there is no such series or it is damaged.
    pub fn series(&self, name: &str) -> Result<Series, FileError> {
        let bytes = self.bytes("series", name, MAX_SERIES_BYTES)?;
        Ok(Series::decode(name, &bytes)?)
    }

    /// Returns the names of all series in the file.
    pub fn series_names(&self) -> impl Iterator<Item = &str> {
        self.places
            .iter()
            .filter(|p| p.kind == "series")
            .map(|p| p.name.as_str())
    }

    /// Opens a blob for reading from front to back in bounded memory. Reading does not verify the checksum; see
    /// [`RecordReader::verify`].
    pub fn blob(&self, name: &str) -> Result<Box<dyn Read>, FileError> {
        let place = self.place("blob", name)?;
        if place.size == 0 {
            return Ok(Box::new(io::empty()));
        }
        let decoder = zstd::stream::Decoder::new(self.stored(place)?)
            .map_err(io_at("reading record", &self.path))?;
        // The size in the head limits the decompression, because a zstd frame may decompress to any size.
        Ok(Box::new(decoder.take(place.size)))
    }

    /// Reads every section that the record lists. Fails if a checksum or digest is wrong.
    pub fn verify(&self) -> Result<(), FileError> {
        let damaged = |why| FileError::Damaged {
            path: self.path.clone(),
            why,
        };
        for info in &self.record.sections {
            let kind = if info.kind == "series" {
                "series"
            } else {
                "blob"
            };
            if self.digest(self.place(kind, &info.name)?)? != info.digest {
                return Err(damaged("a section's digest differs"));
            }
        }
        if Record::digest_of(&self.record.results, &self.record.sections) != self.record.digest {
            return Err(damaged("its digest differs"));
        }
        Ok(())
    }

    fn place(&self, kind: &'static str, name: &str) -> Result<&Section, FileError> {
        self.places
            .iter()
            .find(|p| p.kind == kind && p.name == name)
            .ok_or_else(|| FileError::NoSection {
                path: self.path.clone(),
                kind,
                name: name.to_owned(),
            })
    }

    /// Returns a reader of a section's stored (compressed) bytes.
    fn stored(&self, place: &Section) -> Result<io::Take<File>, FileError> {
        let mut file =
            open(&self.path, FileOrigin::Own).map_err(io_at("reading record", &self.path))?;
        file.seek(SeekFrom::Start(place.offset))
            .map_err(io_at("reading record", &self.path))?;
        Ok(file.take(place.stored))
    }

    /// Returns the uncompressed content of a section. Fails if the content is longer than `limit` bytes.
    fn bytes(&self, kind: &'static str, name: &str, limit: u64) -> Result<Vec<u8>, FileError> {
        let place = self.place(kind, name)?;
        if place.size > limit {
            return Err(self.damaged("a section is larger than any of its kind"));
        }
        let mut bytes = Vec::new();
        self.unfold(place, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns the SHA-256 of a section's uncompressed content in hex, computed in bounded memory.
    fn digest(&self, place: &Section) -> Result<String, FileError> {
        let mut sink = Hashing {
            inner: io::sink(),
            hash: Sha256::new(),
        };
        self.unfold(place, &mut sink)?;
        Ok(hex(&sink.hash.finalize()))
    }

    /// Decompresses a section into `out`. Fails if checksum or length differ from those in the section's head.
    fn unfold(&self, place: &Section, out: &mut impl Write) -> Result<(), FileError> {
        let stored = BufReader::with_capacity(1 << 16, self.stored(place)?);
        let mut source = Checksummer {
            inner: stored,
            crc: crc32fast::Hasher::new(),
        };
        let mut unfolded = Ok(0);
        if place.size > 0 {
            unfolded = zstd::stream::Decoder::new(&mut source)
                .and_then(|decoder| io::copy(&mut decoder.take(place.size.saturating_add(1)), out));
        }
        // The checksum covers all stored bytes, including bytes that were not decompressed.
        io::copy(&mut source, &mut io::sink()).map_err(io_at("reading record", &self.path))?;
        if source.crc.finalize() != place.crc {
            return Err(self.damaged("a section's checksum differs"));
        }
        match unfolded {
            Ok(length) if length == place.size => Ok(()),
            Ok(_) => Err(self.damaged("a section's length differs")),
            Err(_) => Err(self.damaged("a section cannot be decompressed")),
        }
    }

    fn damaged(&self, why: &'static str) -> FileError {
        FileError::Damaged {
            path: self.path.clone(),
            why,
        }
    }
}

/// Reads the section heads of a file of `length` bytes and returns all sections. Fails if a head is damaged.
fn places(file: &mut File, length: u64) -> Result<Vec<Section>, &'static str> {
    let mut places = Vec::new();
    let mut at = FILE_MAGIC.len() as u64;
    let mut file = BufReader::with_capacity(512, file);
    loop {
        file.seek(SeekFrom::Start(at))
            .map_err(|_| "it cannot be read")?;
        let mut head = [0; HEAD_BYTES];
        file.read_exact(&mut head).map_err(|_| "it ends early")?;
        let word = |o: usize| u32::from_le_bytes([head[o], head[o + 1], head[o + 2], head[o + 3]]);
        let long = |o: usize| u64::from(word(o)) | u64::from(word(o + 4)) << 32;
        if word(0) != SECTION_MAGIC || word(28) != crc32fast::hash(&head[..28]) {
            return Err("a section's head is damaged");
        }
        let number = u16::from_le_bytes([head[24], head[25]]);
        let name_length = u16::from_le_bytes([head[26], head[27]]);
        let kind = KINDS
            .iter()
            .find(|(n, _)| *n == number)
            .ok_or("a section is of an unknown kind")?
            .1;
        let mut name = vec![0; usize::from(name_length)];
        file.read_exact(&mut name).map_err(|_| "it ends early")?;
        let name = String::from_utf8(name).map_err(|_| "a section's name is no text")?;
        let offset = at + HEAD_BYTES as u64 + u64::from(name_length);
        let (stored, size) = (long(8), long(16));
        at = offset
            .checked_add(stored)
            .filter(|end| *end <= length)
            .ok_or("it ends early")?;
        if kind == "end" {
            return Ok(places);
        }
        // The record itself is one more section.
        if places.len() > MAX_SECTIONS {
            return Err(TOO_MANY);
        }
        places.push(Section {
            kind,
            name,
            offset,
            stored,
            size,
            crc: word(4),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_quantity::{Direction, Metric, Unit, Value};

    fn written() -> (tempfile::TempDir, PathBuf, Record) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RecordWriter::create(dir.path()).unwrap();
        writer
            .series(&Series::new("ages").int("page", Unit::Pages, 0..1000))
            .unwrap();
        writer.section("blob", "log", &vec![7; 100_000]).unwrap();
        let mut record = Record::default();
        record.subject.scenario = "contswap".into();
        let path = writer.finish(&mut record).unwrap();
        (dir, path, record)
    }

    #[test]
    fn a_record_survives_its_file() {
        let (_dir, path, record) = written();
        let reader = RecordReader::open(&path).unwrap();
        assert_eq!(reader.record(), &record);
        reader.verify().unwrap();
        assert_eq!(reader.series("ages").unwrap().rows(), 1000);
        let mut log = Vec::new();
        reader.blob("log").unwrap().read_to_end(&mut log).unwrap();
        assert_eq!(log, vec![7; 100_000]);
        assert!(matches!(
            reader.series("no"),
            Err(FileError::NoSection { .. })
        ));
    }

    #[test]
    fn a_record_cut_anywhere_or_with_a_flipped_byte_is_refused() {
        let (dir, path, _) = written();
        let bytes = std::fs::read(&path).unwrap();
        let other = dir.path().join("other");
        for cut in 0..bytes.len() {
            std::fs::write(&other, &bytes[..cut]).unwrap();
            assert!(RecordReader::open(&other).is_err(), "cut at {cut}");
        }
        for at in (0..bytes.len()).step_by(7) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&other, &bytes).unwrap();
            let result = RecordReader::open(&other).and_then(|r| r.verify());
            assert!(result.is_err(), "flipped byte {at}");
        }
    }

    #[test]
    fn a_value_that_no_reader_takes_is_not_written() {
        for value in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e31, -1e308] {
            let dir = tempfile::tempdir().unwrap();
            let mut record = Record::default();
            record.results.metrics.push(Metric {
                name: "run".into(),
                unit: Unit::Nanos,
                direction: Direction::Lower,
                primary: true,
                value: Value::Number(value),
            });
            let writer = RecordWriter::create(dir.path()).unwrap();
            let said = writer.finish(&mut record).unwrap_err().to_string();
            assert!(said.contains("cannot be stored"), "{said}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_section_that_unfolds_to_more_than_it_announces_is_refused_in_bounded_memory() {
        let (_dir, path, record) = written();
        let mut bytes = std::fs::read(&path).unwrap();
        // The head of the section `log` states 10 bytes instead of 100,000, and then 16 EiB.
        let name = bytes.windows(3).position(|three| three == b"log").unwrap();
        let head = name - HEAD_BYTES;
        for size in [10_u64, u64::MAX] {
            bytes[head + 16..head + 24].copy_from_slice(&size.to_le_bytes());
            let check = crc32fast::hash(&bytes[head..head + 28]);
            bytes[head + 28..head + 32].copy_from_slice(&check.to_le_bytes());
            std::fs::write(&path, &bytes).unwrap();
            let reader = RecordReader::open(&path).unwrap();
            assert_eq!(reader.record(), &record);
            assert!(reader.verify().is_err());
        }
        let reader = RecordReader::open(&path).unwrap();
        let mut log = Vec::new();
        reader.blob("log").unwrap().read_to_end(&mut log).unwrap();
        assert_eq!(log.len(), 100_000);
        assert!(reader.bytes("blob", "log", MAX_SERIES_BYTES).is_err());
    }

    #[test]
    fn a_pipe_or_a_link_in_the_place_of_a_record_is_refused_and_not_waited_for() {
        let (dir, path, _) = written();
        let (pipe, link) = (dir.path().join("a.record"), dir.path().join("b.record"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for (file, word) in [(pipe, "a named pipe"), (link, "a symbolic link")] {
            let said = RecordReader::open(&file).err().unwrap().to_string();
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn wall_time_is_outside_the_digest() {
        let (dir, _, record) = written();
        let mut writer = RecordWriter::create(dir.path()).unwrap();
        writer
            .series(&Series::new("ages").int("page", Unit::Pages, 0..1000))
            .unwrap();
        writer.section("blob", "log", &vec![7; 100_000]).unwrap();
        let mut later = record.clone();
        later.wall.total.0 = 5;
        writer.finish(&mut later).unwrap();
        assert_eq!(later.digest, record.digest);
        assert_ne!(later.id(), record.id());
    }

    #[test]
    fn an_abandoned_record_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        drop(RecordWriter::create(dir.path()).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
