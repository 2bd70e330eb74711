//! The content of a root as a tree of entries, before an image is made.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;
use sha2::{Digest, Sha256};

use crate::error::{RootError, io};
use crate::path::{RootPath, is_too_long, shortened};

/// Maximum number of entries in a root.
pub(crate) const MAX_NAMES: usize = 250_000;
/// Maximum length of all paths and link targets in a root together.
pub(crate) const MAX_NAME_BYTES: Bytes = Bytes::from_mib(64);
/// Maximum number of symbolic links followed for one path. Source: Linux `include/linux/namei.h`, `MAXSYMLINKS`.
const MAX_LINKS: usize = 40;

/// Source of a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The bytes are in a file of this machine.
    Host(PathBuf),
    /// The bytes are in memory.
    Bytes(Vec<u8>),
}

/// A folder, file or link in a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A folder.
    Folder {
        /// True if all users may write to the folder.
        shared: bool,
    },
    /// A regular file.
    File {
        /// Source of the file's bytes.
        source: Source,
        /// True if the file may be executed.
        executable: bool,
        /// Size of the file in bytes.
        size: Bytes,
        /// SHA-256 of the file's bytes, in hexadecimal.
        digest: String,
    },
    /// A symbolic link.
    Link {
        /// Target of the link, unmodified. It is only followed inside the root.
        target: String,
    },
}

/// The content of a root: folders, files and links by their path inside the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Entries by path. All parents of an entry are folders, not links, so that the paths are resolved.
    entries: BTreeMap<RootPath, Entry>,
    /// Total size of all files, in bytes.
    size: u64,
    /// Total length of all paths and link targets, in bytes.
    name_bytes: u64,
}

/// Returns bytes as text in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the SHA-256 of a reader's content in hexadecimal, and the number of bytes read.
pub(crate) fn digest_of(mut reader: impl Read) -> io::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut size = 0;
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok((hex(&hash.finalize()), size)),
            n => {
                hash.update(&buffer[..n]);
                size += n as u64;
            }
        }
    }
}

impl Tree {
    /// Returns all entries with their paths; folders come before their content.
    pub fn entries(&self) -> impl Iterator<Item = (&RootPath, &Entry)> {
        self.entries.iter()
    }

    /// Returns the entry at a path, without following links; `None` if there is none.
    pub fn get(&self, path: &RootPath) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Returns the total size of all files.
    pub fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    /// Puts an entry at a path, replacing an existing entry. Fails if the root would exceed a limit on names.
    fn insert(&mut self, path: RootPath, entry: Entry) -> Result<(), RootError> {
        self.take_out(&path);
        let (names, bytes) = weight(&path, &entry);
        let most = if self.entries.len() >= MAX_NAMES {
            format!("{MAX_NAMES} names")
        } else if self.name_bytes + names > MAX_NAME_BYTES.0 {
            format!("{MAX_NAME_BYTES} of names")
        } else {
            self.name_bytes += names;
            self.size += bytes;
            self.entries.insert(path, entry);
            return Ok(());
        };
        Err(RootError::TooManyNames { most })
    }

    /// Removes the entry at a path, if there is one, without following links.
    fn take_out(&mut self, path: &RootPath) {
        if let Some(entry) = self.entries.remove(path) {
            let (names, bytes) = weight(path, &entry);
            self.name_bytes -= names;
            self.size -= bytes;
        }
    }

    /// Adds a folder and its parents, if missing. Links in `path` are followed inside the root. Returns the resolved
    /// path.
    pub fn folder(&mut self, path: &RootPath) -> Result<RootPath, RootError> {
        self.place(path, Entry::Folder { shared: false })
    }

    /// Adds a folder to which all users may write. Returns its resolved path.
    pub fn shared_folder(&mut self, path: &RootPath) -> Result<RootPath, RootError> {
        self.place(path, Entry::Folder { shared: true })
    }

    /// Adds a symbolic link to `target`. Returns the link's resolved path. Fails if the target is too long.
    pub fn link(&mut self, path: &RootPath, target: &str) -> Result<RootPath, RootError> {
        if is_too_long(target.as_bytes()) {
            return Err(RootError::BadPath {
                path: shortened(target),
                why: "a link leads there, and it has more than 2048 bytes or 128 folders",
            });
        }
        let target = target.to_owned();
        self.place(path, Entry::Link { target })
    }

    /// Adds a file of this machine. Reads the file, to compute its digest. Returns the resolved path.
    pub fn file(
        &mut self,
        path: &RootPath,
        host: &Path,
        executable: bool,
    ) -> Result<RootPath, RootError> {
        let reader = File::open(host).map_err(io("reading", host))?;
        let (digest, size) = digest_of(reader).map_err(io("reading", host))?;
        let entry = Entry::File {
            source: Source::Host(host.to_owned()),
            executable,
            size: Bytes(size),
            digest,
        };
        self.place(path, entry)
    }

    /// Adds a file with these bytes as content. Returns its resolved path.
    pub fn bytes(&mut self, path: &RootPath, bytes: &[u8]) -> Result<RootPath, RootError> {
        let entry = Entry::File {
            source: Source::Bytes(bytes.to_vec()),
            executable: false,
            size: Bytes(bytes.len() as u64),
            digest: hex(&Sha256::digest(bytes)),
        };
        self.place(path, entry)
    }

    /// Removes the entry at a path if it is a symbolic link; otherwise does nothing.
    pub(crate) fn unlink(&mut self, path: &RootPath) {
        if matches!(self.entries.get(path), Some(Entry::Link { .. })) {
            self.take_out(path);
        }
    }

    /// Removes the entry at a path and everything below it, without following links. Paths for which `is_kept` is true
    /// are kept.
    pub(crate) fn remove(&mut self, path: &RootPath, is_kept: &dyn Fn(&RootPath) -> bool) {
        let [first, end] = path.below();
        let there = self.entries.range(first..end).map(|(path, _)| path);
        let gone: Vec<RootPath> = there
            .chain([path])
            .filter(|path| !is_kept(path))
            .cloned()
            .collect();
        for path in gone {
            self.take_out(&path);
        }
    }

    /// Returns true if there is no entry at the path, or if the entry is of the wanted kind: a folder if `is_folder` is
    /// true, anything else if it is false.
    pub(crate) fn is_kind(&self, path: &RootPath, is_folder: bool) -> bool {
        let there = self.entries.get(path);
        there.is_none_or(|there| matches!(there, Entry::Folder { .. }) == is_folder)
    }

    /// Returns the path with all links resolved, as a kernel would with this tree as its root. The target need not
    /// exist. `None` if too many links are followed, as in a loop.
    pub fn follow(&self, path: &RootPath) -> Option<RootPath> {
        // Paths of entries contain no links, so this path is already resolved.
        if matches!(
            self.entries.get(path),
            Some(Entry::Folder { .. } | Entry::File { .. })
        ) {
            return Some(path.clone());
        }
        let mut left: Vec<String> = parts(path.as_str());
        let mut at = RootPath::new("/", "").ok()?;
        let mut links = 0;
        while let Some(part) = left.pop() {
            if part == ".." {
                at = at.parent().unwrap_or(at);
                continue;
            }
            let next = at.join(&part).ok()?;
            if let Some(Entry::Link { target }) = self.entries.get(&next) {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                if target.starts_with('/') {
                    at = RootPath::new("/", "").ok()?;
                }
                left.extend(parts(target));
            } else {
                at = next;
            }
        }
        Some(at)
    }

    /// Adds an entry at a path, and the path's missing parents. Links are followed inside the root. Returns the
    /// resolved path. Fails if a path would be both a folder and a file, or if a limit on names is exceeded.
    pub(crate) fn place(&mut self, path: &RootPath, entry: Entry) -> Result<RootPath, RootError> {
        let conflict = || RootError::Conflict {
            path: path.to_string(),
        };
        let Some(parent) = path.parent() else {
            return Ok(path.clone());
        };
        let folder = self.follow(&parent).ok_or_else(conflict)?;
        self.folders(&folder)?;
        let path = folder.join(path.name())?;
        let is_folder = |entry: &Entry| matches!(entry, Entry::Folder { .. });
        match self.entries.get(&path) {
            // A link that leads to a folder counts as a folder.
            Some(Entry::Link { .. }) if is_folder(&entry) => {
                let real = self.follow(&path).ok_or_else(conflict)?;
                self.folders(&real)?;
                return Ok(real);
            }
            Some(there) if is_folder(there) != is_folder(&entry) => return Err(conflict()),
            // An existing folder is kept, unless it becomes writable for everyone.
            Some(_) if entry == (Entry::Folder { shared: false }) => {}
            _ => self.insert(path.clone(), entry)?,
        }
        Ok(path)
    }

    /// Adds a folder and all its parents, if missing. The path must contain no links. Fails if one of them exists and
    /// is not a folder.
    fn folders(&mut self, path: &RootPath) -> Result<(), RootError> {
        let mut at = Some(path.clone());
        while let Some(folder) = at {
            at = folder.parent();
            if at.is_none() {
                break;
            }
            match self.entries.get(&folder) {
                None => self.insert(folder, Entry::Folder { shared: false })?,
                // The folder exists, so its parents exist too.
                Some(Entry::Folder { .. }) => break,
                Some(_) => {
                    return Err(RootError::Conflict {
                        path: folder.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns a text with one line per entry, in the order of paths. Equal texts mean equal trees.
    pub(crate) fn listing(&self) -> String {
        let mut text = String::new();
        for (path, entry) in &self.entries {
            let _ = match entry {
                Entry::Folder { shared } => {
                    writeln!(text, "{} {path}", if *shared { "shared" } else { "folder" })
                }
                Entry::File {
                    executable,
                    size,
                    digest,
                    ..
                } => {
                    let kind = if *executable { "program" } else { "file" };
                    writeln!(text, "{kind} {digest} {} {path}", size.0)
                }
                Entry::Link { target } => writeln!(text, "link {path} {}", target.escape_default()),
            };
        }
        text
    }
}

/// Returns the number of bytes of an entry's path and link target together, and number of bytes of its content.
fn weight(path: &RootPath, entry: &Entry) -> (u64, u64) {
    let names = path.as_str().len() as u64;
    match entry {
        Entry::Folder { .. } => (names, 0),
        Entry::File { size, .. } => (names, size.0),
        Entry::Link { target } => (names + target.len() as u64, 0),
    }
}

/// Returns the components of a path or of a link's target, last component first.
fn parts(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .rev()
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(text: &str) -> RootPath {
        RootPath::new(text, "/work").unwrap()
    }

    #[test]
    fn what_is_added_below_a_link_lies_where_the_link_leads() {
        let mut tree = Tree::default();
        tree.link(&inside("/lib"), "usr/lib").unwrap();
        let real = tree.bytes(&inside("/lib/a/libx.so"), b"x").unwrap();
        assert_eq!(real.as_str(), "/usr/lib/a/libx.so");
        assert!(matches!(
            tree.get(&inside("/usr/lib/a")),
            Some(Entry::Folder { .. })
        ));
        assert_eq!(tree.folder(&inside("/lib")).unwrap().as_str(), "/usr/lib");
    }

    #[test]
    fn links_are_followed_inside_and_never_out_of_it() {
        let mut tree = Tree::default();
        tree.link(&inside("/up"), "../../../../etc").unwrap();
        assert_eq!(tree.follow(&inside("/up/x")).unwrap().as_str(), "/etc/x");
        tree.link(&inside("/a"), "b").unwrap();
        tree.link(&inside("/b"), "/a").unwrap();
        assert_eq!(tree.follow(&inside("/a/x")), None);
        assert!(tree.bytes(&inside("/a/x"), b"").is_err());
    }

    #[test]
    fn a_file_and_a_folder_of_one_name_are_refused_and_a_later_file_replaces_an_earlier() {
        let mut tree = Tree::default();
        tree.bytes(&inside("a"), b"1").unwrap();
        assert!(tree.folder(&inside("a")).is_err());
        assert!(tree.bytes(&inside("a/b"), b"").is_err());
        tree.bytes(&inside("a"), b"22").unwrap();
        assert_eq!(tree.size(), Bytes(2));
        tree.folder(&inside("d")).unwrap();
        assert!(tree.bytes(&inside("d"), b"").is_err());
    }
}
