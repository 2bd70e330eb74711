//! Reads the members of a tar archive within limits, so that no archive can make this take unbounded memory or time.
//!
//! A tar reader reads a member's long name or extended attributes completely before their size can be checked. So all
//! input passes through a meter, which stops reading when a limit is exceeded.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use pagetide_quantity::Bytes;
use tar::EntryType;

use crate::error::{RootError, io};
use crate::image::MAX_SIZE;
use crate::path::{MAX_DEPTH, MAX_PATH, is_too_long};
use crate::tree::{MAX_NAME_BYTES, MAX_NAMES};

/// Maximum number of bytes of one member's metadata: header, long names, extended attributes, and map of holes.
pub(crate) const MAX_HEADER: Bytes = Bytes::from_mib(1);
/// Maximum number of uncompressed bytes in an archive, including members that are replaced by later ones.
pub(crate) const MAX_STREAM: Bytes = Bytes::from_mib(4096);

/// A member of a tar archive.
pub(crate) struct Member<'a> {
    /// Index of the member in the archive.
    pub number: usize,
    /// Name of the member as in the archive, unchecked.
    pub name: String,
    /// Target of a link as in the archive, unchecked; empty for other types.
    pub target: String,
    /// Type of the member.
    pub kind: EntryType,
    /// True if any user may execute the file.
    pub executable: bool,
    /// Size of the content in bytes.
    pub size: u64,
    /// Reader of the content.
    pub content: &'a mut dyn Read,
}

impl Member<'_> {
    /// Returns true if the member is a regular file, sparse or not.
    pub fn is_file(&self) -> bool {
        self.kind.is_file() || self.kind.is_contiguous() || self.kind.is_gnu_sparse()
    }

    /// Returns true if the member is a symbolic or hard link.
    pub fn is_link(&self) -> bool {
        self.kind.is_symlink() || self.kind.is_hard_link()
    }
}

/// Calls `take` with each member of the archive read by `reader`. `path` is the archive's name in messages. Fails if a
/// limit is exceeded.
pub(crate) fn each(
    reader: impl Read,
    path: &Path,
    take: &mut dyn FnMut(Member<'_>) -> Result<(), RootError>,
) -> Result<(), RootError> {
    let meter = Rc::new(Meter::default());
    let refused = |what: String| RootError::Unbounded {
        path: path.to_owned(),
        what,
    };
    let failed = |why: io::Error| match meter.reached.take() {
        Some(what) => refused(what),
        None => io("reading", path)(why),
    };
    let mut archive = tar::Archive::new(Metered {
        inner: reader,
        meter: Rc::clone(&meter),
    });
    let mut entries = archive.entries().map_err(&failed)?;
    let mut bytes = 0;
    for number in 0.. {
        meter.in_header.set(Some(0));
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(&failed)?;
        meter.in_header.set(None);
        if number >= MAX_NAMES {
            return Err(refused(format!("more than {MAX_NAMES} members")));
        }
        let name = text(&entry.path_bytes(), path)?;
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let target = text(&target, path)?;
        bytes += name.len() + target.len();
        if bytes as u64 > MAX_NAME_BYTES.0 {
            return Err(refused(format!(
                "names of more than {MAX_NAME_BYTES} in all"
            )));
        }
        take(Member {
            number,
            name,
            target,
            kind: entry.header().entry_type(),
            executable: entry.header().mode().unwrap_or(0o644) & 0o111 != 0,
            size: entry.size(),
            content: &mut entry,
        })
        // The meter's error may be reported as an error of the writer that copies the content.
        .map_err(|why| meter.reached.take().map_or(why, refused))?;
        // The rest of the content is read here, so that the meter counts all further bytes as metadata of the next
        // member.
        io::copy(&mut entry, &mut io::sink()).map_err(&failed)?;
    }
    Ok(())
}

/// Converts a name in an archive to text; fails if the name is too long or not UTF-8.
fn text(name: &[u8], path: &Path) -> Result<String, RootError> {
    if is_too_long(name) {
        return Err(RootError::Unbounded {
            path: path.to_owned(),
            what: format!("a name of more than {MAX_PATH} bytes or {MAX_DEPTH} folders"),
        });
    }
    String::from_utf8(name.to_vec()).map_err(|_| RootError::BadPath {
        path: String::from_utf8_lossy(name).into_owned(),
        why: "it is not UTF-8",
    })
}

/// Counts the bytes read from an archive, and records which limit is exceeded.
#[derive(Debug, Default)]
struct Meter {
    /// Number of bytes read so far.
    total: Cell<u64>,
    /// Number of bytes of the current member's metadata read so far; `None` while content is read.
    in_header: Cell<Option<u64>>,
    /// Description of the limit that was exceeded, if any.
    reached: RefCell<Option<String>>,
}

impl Meter {
    /// Counts `bytes` more bytes. Returns a description of the limit that is now exceeded, or `None`.
    fn add(&self, bytes: u64) -> Option<String> {
        self.total.set(self.total.get() + bytes);
        if let Some(before) = self.in_header.get() {
            self.in_header.set(Some(before + bytes));
        }
        if self.in_header.get() > Some(MAX_HEADER.0) {
            return Some(format!(
                "a member with names and attributes of more than {MAX_HEADER}"
            ));
        }
        (self.total.get() > MAX_STREAM.0).then(|| format!("more than {MAX_STREAM}, unpacked"))
    }
}

/// A reader that reports the bytes it reads to a meter.
struct Metered<R> {
    inner: R,
    meter: Rc<Meter>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        if let Some(what) = self.meter.add(n as u64) {
            *self.meter.reached.borrow_mut() = Some(what);
            return Err(io::Error::other("a limit was reached"));
        }
        Ok(n)
    }
}

/// First bytes of a gzip file. Source: RFC 1952.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// First bytes of a zstd file. Source: RFC 8878.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Opens an archive and returns a reader of its uncompressed content.
pub(crate) fn opened(path: &Path) -> Result<Box<dyn Read>, RootError> {
    let file = File::open(path).map_err(io("reading", path))?;
    let mut start = Vec::new();
    (&file)
        .take(4)
        .read_to_end(&mut start)
        .map_err(io("reading", path))?;
    let file = File::open(path).map_err(io("reading", path))?;
    Ok(if start.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(file))
    } else if start.starts_with(ZSTD) {
        Box::new(zstd::stream::read::Decoder::new(file).map_err(io("reading", path))?)
    } else {
        Box::new(file)
    })
}

/// Copies the content of a member to the new file `to`. Fails if the file exists already or the content is too large.
pub(crate) fn spool_file(
    content: &mut dyn Read,
    to: &PathBuf,
    name: &Path,
) -> Result<(), RootError> {
    let mut file = File::create_new(to).map_err(io("making", to))?;
    // The content of a sparse file can be larger than its stated size, so the copied bytes are counted.
    let copied =
        io::copy(&mut content.take(MAX_SIZE.0 + 1), &mut file).map_err(io("unpacking", name))?;
    if copied > MAX_SIZE.0 {
        let size = Bytes(copied);
        return Err(RootError::TooLarge {
            size,
            most: MAX_SIZE,
        });
    }
    Ok(())
}
