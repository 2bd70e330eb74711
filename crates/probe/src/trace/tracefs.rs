//! Access to tracefs, through its usual mount or a private mount.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::ProbeError;

/// The tracing file system (tracefs).
///
/// Without a writable mount of tracefs, a private detached mount is used. It is not visible in the mount tree, so
/// nothing has to be unmounted, and it disappears with the process, even after `kill -9`.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Uses the first mount of tracefs that this process may write to, or else a private mount. Needs root.
    pub fn open() -> Result<Self, ProbeError> {
        if let Some(root) = mounted() {
            return Ok(Self { root, _mount: None });
        }
        let refused = |error: rustix::io::Errno| {
            ProbeError::unsupported(
                "tracefs",
                format!(
                    "it is not mounted and could not be mounted ({error}); run as root on a kernel with CONFIG_TRACING"
                ),
            )
        };
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(refused)?;
        fsconfig_create(&context).map_err(refused)?;
        let mount = fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::MOUNT_ATTR_NOSUID
                | MountAttrFlags::MOUNT_ATTR_NODEV
                | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )
        .map_err(refused)?;
        Ok(Self {
            root: PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())),
            _mount: Some(mount),
        })
    }

    /// Uses a directory with the layout of tracefs: an existing mount, or a directory made by a test.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            _mount: None,
        }
    }

    /// Returns the root directory of tracefs.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Returns the path of the first mount of tracefs that this process may write to; `None` if there is none.
fn mounted() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (_, place, kind) = (words.next()?, words.next()?, words.next()?);
        let root = Path::new(place);
        let usable = kind == "tracefs"
            && rustix::fs::accessat(
                CWD,
                root.join("instances"),
                rustix::fs::Access::WRITE_OK,
                rustix::fs::AtFlags::empty(),
            )
            .is_ok();
        usable.then(|| root.to_owned())
    })
}
