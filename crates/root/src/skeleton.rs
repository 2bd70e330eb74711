//! Adds the files that every root needs: mount points, writable folders, and the few files that C libraries read.

use crate::error::RootError;
use crate::path::RootPath;
use crate::tree::Tree;
use crate::{USER, WORK};

/// Mount points of the guest, and folders that programs expect to exist.
const FOLDERS: [&str; 5] = ["/proc", "/dev", "/sys", "/run", "/etc"];

impl Tree {
    /// Adds those files that every root needs and that this tree lacks.
    pub fn complete(&mut self) -> Result<(), RootError> {
        let path = |text: &str| RootPath::new(text, "");
        // The guest mounts file systems on these folders, so a link would lead the mount to another folder.
        for folder in ["/proc", "/dev", "/sys"] {
            self.unlink(&path(folder)?);
        }
        for folder in FOLDERS.into_iter().chain([WORK]) {
            self.folder(&path(folder)?)?;
        }
        for folder in ["/tmp", "/var/tmp"] {
            self.shared_folder(&path(folder)?)?;
        }
        let files = [
            (
                "/etc/passwd",
                format!(
                    "root:x:0:0:root:/root:/bin/sh\nprogram:x:{USER}:{USER}:program:{WORK}:/bin/sh\n"
                ),
            ),
            ("/etc/group", format!("root:x:0:\nprogram:x:{USER}:\n")),
            (
                "/etc/hosts",
                "127.0.0.1 localhost\n::1 localhost\n".to_owned(),
            ),
            (
                "/etc/nsswitch.conf",
                "passwd: files\ngroup: files\nhosts: files\n".to_owned(),
            ),
        ];
        for (name, text) in files {
            let name = path(name)?;
            let there = self
                .follow(&name)
                .is_some_and(|real| self.get(&real).is_some());
            if !there {
                self.bytes(&name, text.as_bytes())?;
            }
        }
        Ok(())
    }
}
