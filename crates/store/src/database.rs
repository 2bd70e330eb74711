//! Path of the index: in the store's folder, or on this machine if the store is on a network file system.
//!
//! SQLite's write-ahead log is memory that its processes share, so all of them must be on one machine
//! (<https://www.sqlite.org/wal.html>). Records are files and the index is computed from them, so each machine can have
//! its own index of a shared store, which catches up whenever the store is opened.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pagetide_record::subject::hex;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;

/// File system types whose files other machines may write at the same time. Source: `linux/magic.h`, and statfs(2) for
/// those outside the kernel.
const SHARED: [i64; 13] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x00c3_6400, // Ceph
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x5346_414f, // AFS
    0x0102_1997, // 9P
    0x7461_636f, // OCFS2
    0x0116_1970, // GFS2
    0x6573_5546, // FUSE
];

/// Path of the index of the store at `root`. `PAGETIDE_INDEX` names the folder of indexes that are not in their store;
/// by default it is `pagetide/index` in the user's folder of caches. If it is set, all indexes are there.
pub(crate) fn database_of(root: &Path) -> PathBuf {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    place(root, is_shared(root), &var)
}

fn place(root: &Path, is_shared: bool, var: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
    let named = var("PAGETIDE_INDEX").map(PathBuf::from);
    let caches = || {
        let caches = var("XDG_CACHE_HOME").map(PathBuf::from);
        let caches = caches.or_else(|| Some(PathBuf::from(var("HOME")?).join(".cache")))?;
        Some(caches.join("pagetide/index"))
    };
    let folder = named.or_else(|| is_shared.then(caches).flatten());
    match folder {
        None => root.join("index.sqlite"),
        Some(folder) => {
            let path = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
            let name = hex(&Sha256::digest(path.as_os_str().as_bytes())[..16]);
            folder.join(format!("{name}.sqlite"))
        }
    }
}

/// True if the folder is on a file system that several machines may use at the same time.
fn is_shared(root: &Path) -> bool {
    // The type is a 32-bit number, whatever the width of the field.
    rustix::fs::statfs(root).is_ok_and(|data| SHARED.contains(&(data.f_type & 0xffff_ffff)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_shared_store_is_on_this_machine() {
        let var = |name: &str| (name == "HOME").then(|| OsString::from("/home/me"));
        let root = Path::new("/shared/store");
        assert_eq!(place(root, false, &var), root.join("index.sqlite"));
        let path = place(root, true, &var);
        assert!(
            path.starts_with("/home/me/.cache/pagetide/index"),
            "{path:?}"
        );
        assert_ne!(place(Path::new("/shared/other"), true, &var), path);
        let named = |name: &str| (name == "PAGETIDE_INDEX").then(|| OsString::from("/fast"));
        assert!(place(root, false, &named).starts_with("/fast"));
        // Without a folder of caches there is no better place.
        assert_eq!(place(root, true, &|_| None), root.join("index.sqlite"));
    }
}
