//! Kernels from local files: a built tree, or an image with its modules and configuration.

use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pagetide_outside::{FileOrigin, read_text};

use crate::deb::is_module_file;
use crate::digest::Digest;
use crate::error::KernelError;
use crate::image::Image;
use crate::modules::{MAX_LIST_BYTES, files_under};
use crate::names;
use crate::stage::Stage;

/// Files to be added to the cache: for each, the name in the cache and the current path.
#[derive(Debug, Default)]
pub struct TreeFiles {
    files: Vec<(String, PathBuf)>,
}

impl TreeFiles {
    /// Finds the files of a built kernel tree, or of a build folder of `make O=`. Fails if a file of the build is
    /// missing, or if the image has another release than `include/config/kernel.release`.
    pub fn from_tree(tree: &Path) -> Result<Self, KernelError> {
        const IMAGE: &str = "arch/x86/boot/bzImage";
        let need = |relative: &str| {
            let path = tree.join(relative);
            let wanted = relative.to_owned();
            if path.is_file() {
                Ok(path)
            } else {
                Err(KernelError::NotBuilt {
                    path: tree.to_owned(),
                    wanted,
                })
            }
        };
        let image = need(IMAGE)?;
        let mut gathered = Self::default();
        // If a tree was reconfigured after its last build, image and configuration do not match.
        let release_path = need("include/config/kernel.release")?;
        let release = read_text(&release_path, FileOrigin::Listed, MAX_LIST_BYTES)
            .map_err(KernelError::read(&release_path))?;
        let built = Image::open(&image)?;
        if release.trim() != built.release() {
            return Err(KernelError::OtherRelease {
                path: tree.to_owned(),
                image: built.release().to_owned(),
                modules: release.trim().to_owned(),
            });
        }
        gathered.add(names::IMAGE, image);
        gathered.add(names::CONFIG, need(".config")?);
        for list in [
            "modules.builtin",
            "modules.builtin.modinfo",
            "modules.order",
        ] {
            gathered.add_if_there(&format!("{}/{list}", names::MODULES), tree.join(list));
        }
        let order = tree.join("modules.order");
        // A kernel without modules has no such list.
        let listed = match read_text(&order, FileOrigin::Listed, MAX_LIST_BYTES) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                return Err(KernelError::read(&order)(why));
            }
            read => read.unwrap_or_default(),
        };
        for line in listed
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let relative = in_tree(line);
            if relative.split('/').any(|part| part == "..") {
                return Err(KernelError::UnsafeMember {
                    path: order.clone(),
                    member: line.to_owned(),
                });
            }
            gathered.add(
                &format!("{}/kernel/{relative}", names::MODULES),
                need(&relative)?,
            );
        }
        Ok(gathered)
    }

    /// Finds the modules and the configuration of an image. If `modules` or `config` is `None`, the paths that
    /// distributions use are searched. Fails if the image is not a kernel, or if `modules` is not a folder.
    pub fn from_image(
        image: &Path,
        modules: Option<&Path>,
        config: Option<&Path>,
    ) -> Result<Self, KernelError> {
        let opened = Image::open(image)?;
        let release = opened.release();
        let folder = image
            .parent()
            .filter(|path| !path.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mut gathered = Self::default();
        gathered.add(names::IMAGE, image.to_owned());
        // The configuration is next to the image, as in /boot or /usr/lib/modules/RELEASE, or in the folder of the
        // image's modules.
        let beside = [
            Some(folder.join(format!("config-{release}"))),
            Some(folder.join("config")),
            modules.map(|modules| modules.join("config")),
        ];
        let found = || beside.into_iter().flatten().find(|path| path.is_file());
        if let Some(path) = config.map(Path::to_owned).or_else(found) {
            gathered.add(names::CONFIG, path);
        }
        let modules = match modules {
            Some(stated) if stated.is_dir() => Some(within(stated, release)),
            Some(stated) => {
                return Err(KernelError::read(stated)(std::io::Error::other(
                    "it is no folder",
                )));
            }
            None => [
                folder.to_owned(),
                folder.join("../lib/modules").join(release),
            ]
            .into_iter()
            .find(|path| path.join("kernel").is_dir()),
        };
        if let Some(modules) = modules {
            for path in files_under(&modules)? {
                let inner = path
                    .strip_prefix(&modules)
                    .unwrap_or(&path)
                    .to_string_lossy()
                    .into_owned();
                if is_module_file(&inner) {
                    gathered.add(&format!("{}/{inner}", names::MODULES), path);
                }
            }
        }
        Ok(gathered)
    }

    fn add(&mut self, name: &str, path: PathBuf) {
        self.files.push((name.to_owned(), path));
    }

    fn add_if_there(&mut self, name: &str, path: PathBuf) {
        if path.is_file() {
            self.add(name, path);
        }
    }

    /// Returns a fingerprint of the files. It changes if the size, time or inode of any file changes.
    pub fn stamp(&self) -> Result<String, KernelError> {
        let mut text = String::new();
        for (name, path) in &self.files {
            let data = fs::metadata(path).map_err(KernelError::read(path))?;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} {}", stamp_of(&data));
        }
        Ok(Digest::of(text.as_bytes()).to_string())
    }

    /// Copies the files into `stage`.
    pub fn store(&self, stage: &mut Stage) -> Result<(), KernelError> {
        self.files
            .iter()
            .try_for_each(|(name, path)| stage.put_file(name, path))
    }
}

/// Returns a fingerprint of a file: size, time, device and inode. It shows a change although the file is not read.
pub fn stamp_of(data: &Metadata) -> String {
    format!(
        "{} {}.{} {} {}",
        data.len(),
        data.mtime(),
        data.mtime_nsec(),
        data.dev(),
        data.ino()
    )
}

/// Converts a line of `modules.order` to a path in the tree. Older kernels prefix lines with `kernel/`; newer kernels
/// list object files.
fn in_tree(line: &str) -> String {
    match (line.strip_suffix(".ko"), line.strip_suffix(".o")) {
        (Some(stem), _) => format!("{}.ko", stem.strip_prefix("kernel/").unwrap_or(stem)),
        (None, Some(stem)) => format!("{stem}.ko"),
        (None, None) => line.to_owned(),
    }
}

/// Returns the module folder of this release below `stated`, which may be the INSTALL_MOD_PATH of `make
/// modules_install`. If there is none, returns `stated` itself.
fn within(stated: &Path, release: &str) -> PathBuf {
    ["lib/modules", "usr/lib/modules", ""]
        .into_iter()
        .map(|inner| stated.join(inner).join(release))
        .find(|path| path.is_dir())
        .unwrap_or_else(|| stated.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_older_and_newer_kernels_name_the_same_module() {
        assert_eq!(in_tree("kernel/fs/ext4/ext4.ko"), "fs/ext4/ext4.ko");
        assert_eq!(in_tree("fs/ext4/ext4.o"), "fs/ext4/ext4.ko");
        // The tree has a folder of that name itself.
        assert_eq!(in_tree("kernel/configs.o"), "kernel/configs.ko");
    }

    #[test]
    fn a_tree_that_was_not_built_says_what_to_do() {
        let tree = tempfile::tempdir().unwrap();
        let text = TreeFiles::from_tree(tree.path()).unwrap_err().to_string();
        assert!(text.contains("bzImage") && text.contains("make"), "{text}");
    }
}
