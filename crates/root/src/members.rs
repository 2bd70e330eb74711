//! The members of a tar archive, within limits: whatever an archive says of itself, reading it takes bounded memory and time.
//!
//! A tar reader reads the long name of a member, or its extended attributes, whole and before anybody sees their size. So all that it
//! reads passes through a meter, which ends the reading where a limit is reached.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use pagetide_quantity::Bytes;
use tar::EntryType;

use crate::error::{RootError, io};
use crate::path::{MOST_DEPTH, MOST_PATH, is_too_long};
use crate::tree::{MOST_NAME_BYTES, MOST_NAMES};

/// Most bytes of what stands before the content of one member: its header, long names, extended attributes and map of holes.
pub(crate) const MOST_HEADER: Bytes = Bytes::from_mib(1);
/// Most bytes of an archive, unpacked, with what it holds twice.
pub(crate) const MOST_STREAM: Bytes = Bytes::from_mib(4096);

/// A member of an archive.
pub(crate) struct Member<'a> {
    /// Its place among the members.
    pub number: usize,
    /// Its name as written.
    pub name: String,
    /// What a link leads to, as written; empty for what is no link.
    pub target: String,
    /// What it is.
    pub kind: EntryType,
    /// Whether anybody may execute it.
    pub executable: bool,
    /// Size of its content.
    pub size: u64,
    /// Its content.
    pub content: &'a mut dyn Read,
}

impl Member<'_> {
    /// Whether it is a file, with or without holes.
    pub fn is_file(&self) -> bool {
        self.kind.is_file() || self.kind.is_contiguous() || self.kind.is_gnu_sparse()
    }

    /// Whether it is a symbolic or a hard link.
    pub fn is_link(&self) -> bool {
        self.kind.is_symlink() || self.kind.is_hard_link()
    }
}

/// Gives every member of the archive that `reader` reads to `take`; `path` is for messages.
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
        if number >= MOST_NAMES {
            return Err(refused(format!("more than {MOST_NAMES} members")));
        }
        let name = text(&entry.path_bytes(), path)?;
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let target = text(&target, path)?;
        bytes += name.len() + target.len();
        if bytes as u64 > MOST_NAME_BYTES.0 {
            return Err(refused(format!(
                "names of more than {MOST_NAME_BYTES} in all"
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
        // An error of the reader is behind that of a writer that copies from it.
        .map_err(|why| meter.reached.take().map_or(why, refused))?;
        // What was not taken is read here: what the reader reads from now on is of the next member's header.
        io::copy(&mut entry, &mut io::sink()).map_err(&failed)?;
    }
    Ok(())
}

/// A name in an archive as text.
fn text(name: &[u8], path: &Path) -> Result<String, RootError> {
    if is_too_long(name) {
        return Err(RootError::Unbounded {
            path: path.to_owned(),
            what: format!("a name of more than {MOST_PATH} bytes or {MOST_DEPTH} folders"),
        });
    }
    String::from_utf8(name.to_vec()).map_err(|_| RootError::BadPath {
        path: String::from_utf8_lossy(name).into_owned(),
        why: "it is not UTF-8",
    })
}

/// What was read of an archive.
#[derive(Debug, Default)]
struct Meter {
    /// Bytes read so far.
    total: Cell<u64>,
    /// Bytes read of what stands before a member's content; nothing within the content.
    in_header: Cell<Option<u64>>,
    /// The limit that was reached.
    reached: RefCell<Option<String>>,
}

impl Meter {
    /// Takes note of bytes that were read, and says which limit they exceed.
    fn add(&self, bytes: u64) -> Option<String> {
        self.total.set(self.total.get() + bytes);
        if let Some(before) = self.in_header.get() {
            self.in_header.set(Some(before + bytes));
        }
        if self.in_header.get() > Some(MOST_HEADER.0) {
            return Some(format!(
                "a member with names and attributes of more than {MOST_HEADER}"
            ));
        }
        (self.total.get() > MOST_STREAM.0).then(|| format!("more than {MOST_STREAM}, unpacked"))
    }
}

/// A reader whose bytes are counted.
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
