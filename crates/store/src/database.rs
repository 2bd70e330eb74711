//! Path of the index: in the store's folder, or in a cache folder of this machine if the store is on a network file
//! system.
//!
//! All processes that use SQLite's write-ahead log must be on one machine, because they share memory
//! (<https://www.sqlite.org/wal.html>). The index can be computed from the record files. So each machine has its own
//! index of a shared store, and updates it whenever it opens the store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pagetide_record::subject::hex;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;

/// Types of file systems on which several machines can write the same files, as in statfs(2). Sources: `linux/magic.h`
/// and `linux/gfs2_ondisk.h` of the kernel; for Lustre, GPFS and BeeGFS `S_MAGIC_…` in `src/stat.c` of coreutils.
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

/// Returns the path of the index file for the store at `root`. It is in the folder that `PAGETIDE_INDEX` names. If that
/// is not set, it is in `root`, or for a store on a network file system in `pagetide/index` in the user's cache folder
/// (`root` if the user has none).
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

/// True if several machines may use the file system of this folder at the same time.
fn is_shared(root: &Path) -> bool {
    // The type is a 32-bit number in a field that can be wider, so only the low 32 bits are compared.
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
        // Without a cache folder, the index is in the store's folder.
        assert_eq!(place(root, true, &|_| None), root.join("index.sqlite"));
    }
}
