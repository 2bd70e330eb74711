//! Images of file systems that a guest finds when it boots.

use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use pagetide_quantity::Bytes;
use pagetide_system::child::{self, Limits};

use crate::error::{ExactError, io};
use crate::memory;

/// Makes an ext4 file system of this size. Returns the non-zero pieces of its image in the guest's format. The same
/// size always gives the same bytes.
pub(crate) fn ext4(size: Bytes) -> Result<Vec<u8>, ExactError> {
    let fault = |why: String| ExactError::FileSystem { why };
    let image = memory::anonymous("filesystem")?;
    image
        .set_len(size.0)
        .map_err(io("sizing", "a file system image"))?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), image.as_raw_fd());
    let mut command = child::command("mke2fs");
    command
        .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-U", "70616765-7469-6465-2d65-786163740000"])
        .args(["-O", "^has_journal,^metadata_csum,^resize_inode"])
        .args(["-E", "hash_seed=70616765-7469-6465-2d65-786163740001,lazy_itable_init=1,nodiscard,root_owner=0:0"])
        .arg(&path)
        .env("E2FSPROGS_FAKE_TIME", "1767225600")
        .env("MKE2FS_CONFIG", "/dev/null")
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let limits = Limits {
        time: Duration::from_mins(2),
        ..Limits::QUICK
    };
    let made =
        child::run(&mut command, &limits).map_err(|failure| fault(format!("mke2fs {failure}")))?;
    if !made.status.success() {
        return Err(fault(format!(
            "mke2fs said `{}`",
            String::from_utf8_lossy(&made.stderr).trim()
        )));
    }
    let mut pieces = Vec::new();
    let mut page = [0_u8; 4096];
    let mut at = 0;
    while at < size.0 {
        let n = image
            .read_at(&mut page, at)
            .map_err(io("reading", "a file system image"))?;
        if n == 0 {
            break;
        }
        if page[..n].iter().any(|byte| *byte != 0) {
            pieces.extend_from_slice(&at.to_le_bytes());
            pieces.extend_from_slice(&(n as u64).to_le_bytes());
            pieces.extend_from_slice(&page[..n]);
        }
        at += n as u64;
    }
    Ok(pieces)
}
