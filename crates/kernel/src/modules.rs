//! A folder of kernel modules: lookup by name, and the order in which modules are loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pagetide_outside::{FileOrigin, read_text};

use crate::compress;
use crate::error::KernelError;
use crate::modinfo::Modinfo;

/// A kernel module to be loaded. Its bytes can be passed to `init_module`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Name of the module, with `_` instead of `-`, as in `/proc/modules`.
    pub name: String,
    /// Path of the module's file in the cache.
    pub path: PathBuf,
    /// Content of the module's ELF file, uncompressed.
    pub bytes: Vec<u8>,
}

/// The modules of a kernel by name, and the names of those that are built in.
#[derive(Debug, Clone, Default)]
pub struct Modules {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// Maximum size of a decompressed module in bytes. It is larger than any module with debug information.
const MAX_BYTES: u64 = 512 << 20;
/// Maximum number of bytes read from a list of modules.
pub(crate) const MAX_LIST_BYTES: u64 = 16 << 20;

impl Modules {
    /// Reads a folder with the layout of `/lib/modules/RELEASE`. If the folder does not exist, the result has no
    /// modules.
    pub fn scan(folder: &Path) -> Result<Self, KernelError> {
        let mut modules = Self::default();
        for path in files_under(folder)? {
            let relative = path.strip_prefix(folder).unwrap_or(&path);
            let Some(name) = path
                .file_name()
                .and_then(|name| module_name(name.to_str()?))
            else {
                continue;
            };
            match modules.files.entry(name) {
                std::collections::btree_map::Entry::Vacant(slot) => {
                    slot.insert(path);
                }
                // As in depmod, modules in `updates` and similar folders override those in `kernel`.
                std::collections::btree_map::Entry::Occupied(mut slot)
                    if !relative.starts_with("kernel") =>
                {
                    slot.insert(path);
                }
                std::collections::btree_map::Entry::Occupied(_) => {}
            }
        }
        let list = folder.join("modules.builtin");
        match read_text(&list, FileOrigin::Listed, MAX_LIST_BYTES) {
            Ok(text) => modules
                .built_in
                .extend(text.lines().filter_map(|line| module_name(file_name(line)))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(KernelError::read(&list)(e)),
        }
        Ok(modules)
    }

    /// Returns the number of loadable modules.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns true if a loadable module has this name.
    pub fn contains(&self, name: &str) -> bool {
        self.files.contains_key(&normal(name))
    }

    /// Returns true if the module with this name is compiled into the kernel.
    pub fn is_built_in(&self, name: &str) -> bool {
        self.built_in.contains(&normal(name))
    }

    /// Returns the release that the modules were built for, read from one of them. `None` if there are no modules, or
    /// if that module is damaged.
    pub fn release(&self) -> Option<String> {
        let path = self.files.values().next()?;
        read(path).ok()?.1.release
    }

    /// Returns the named modules and all their dependencies. Every module comes after its dependencies.
    ///
    /// Modules that are compiled in are left out. `missing` creates the error for a name that is neither a module nor
    /// compiled in.
    pub fn in_order(
        &self,
        names: &[&str],
        missing: impl Fn(&str) -> KernelError,
    ) -> Result<Vec<Module>, KernelError> {
        let mut order = Order {
            modules: self,
            seen: BTreeSet::new(),
            found: Vec::new(),
        };
        for name in names {
            if !order.add(name)? {
                return Err(missing(name));
            }
        }
        Ok(order.found)
    }
}

/// Depth-first traversal of the dependencies of modules. Modules already visited are skipped, so that it ends despite
/// cycles of soft dependencies.
struct Order<'a> {
    modules: &'a Modules,
    seen: BTreeSet<String>,
    found: Vec<Module>,
}

impl Order<'_> {
    /// Adds a module after its dependencies. Returns false if no module has this name, neither as a file nor built in.
    /// Fails if a dependency is missing.
    fn add(&mut self, name: &str) -> Result<bool, KernelError> {
        let name = normal(name);
        if self.seen.contains(&name) {
            return Ok(true);
        }
        let Some(path) = self.modules.files.get(&name) else {
            return Ok(self.modules.is_built_in(&name));
        };
        self.seen.insert(name.clone());
        let (bytes, info) = read(path)?;
        for other in &info.before {
            self.add(other)?;
        }
        for other in &info.depends {
            if !self.add(other)? {
                return Err(KernelError::Damaged {
                    path: path.clone(),
                    what: format!("it depends on the module {other}, which is not there"),
                });
            }
        }
        self.found.push(Module {
            name,
            path: path.clone(),
            bytes,
        });
        for other in &info.after {
            self.add(other)?;
        }
        Ok(true)
    }
}

fn read(path: &Path) -> Result<(Vec<u8>, Modinfo), KernelError> {
    let packed = pagetide_outside::read(path, FileOrigin::Listed, MAX_BYTES);
    let packed = packed.map_err(KernelError::read(path))?;
    let bytes = compress::unpack(&packed, MAX_BYTES)
        .map_err(|e| KernelError::decode(path, "unpacking the module", e))?;
    let info = Modinfo::parse(&bytes).map_err(|why| KernelError::Damaged {
        path: path.to_owned(),
        what: format!("it is not a kernel module: {why}"),
    })?;
    Ok((bytes, info))
}

/// Returns the name of the module in a file with this name; `None` if the file is not a module.
pub fn module_name(file: &str) -> Option<String> {
    let stem = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"]
        .iter()
        .find_map(|ending| file.strip_suffix(ending))?;
    Some(normal(stem))
}

/// Replaces `-` by `_` in a module name, because file names and module lists use either.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

fn file_name(line: &str) -> &str {
    line.rsplit('/').next().unwrap_or(line).trim()
}

/// Returns the paths of all regular files under a folder, sorted; none if the folder does not exist. Symbolic links are
/// not followed.
pub fn files_under(folder: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(KernelError::read(&folder)(e)),
        };
        for entry in entries {
            let entry = entry.map_err(KernelError::read(&folder))?;
            let kind = entry.file_type().map_err(KernelError::read(&folder))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn folder(modules: &[(&str, &[&str])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, statements) in modules {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let module = sample::module(statements);
            let bytes = if path.extension().unwrap() == "zst" {
                zstd::encode_all(&module[..], 1).unwrap()
            } else {
                module
            };
            fs::write(path, bytes).unwrap();
        }
        fs::write(
            folder.path().join("modules.builtin"),
            "kernel/crypto/lzo-rle.ko\n",
        )
        .unwrap();
        folder
    }

    fn names(folder: &Path, wanted: &[&str]) -> Result<Vec<String>, KernelError> {
        let missing = |name: &str| KernelError::NoModule {
            release: "r".into(),
            module: name.into(),
            option: "o".into(),
        };
        let found = Modules::scan(folder)?.in_order(wanted, missing)?;
        Ok(found.into_iter().map(|module| module.name).collect())
    }

    #[test]
    fn a_module_comes_after_all_it_depends_on_and_only_once() {
        let folder = folder(&[
            ("kernel/a/zram.ko.zst", &["depends=zs-malloc,lz4_compress"]),
            ("kernel/b/zs-malloc.ko", &["depends=base"]),
            ("kernel/b/lz4_compress.ko", &["depends=base"]),
            ("kernel/c/base.ko", &[]),
        ]);
        assert_eq!(
            names(folder.path(), &["zram", "base"]).unwrap(),
            ["base", "zs_malloc", "lz4_compress", "zram"]
        );
        assert_eq!(
            names(folder.path(), &["zs_malloc"]).unwrap(),
            ["base", "zs_malloc"]
        );
    }

    #[test]
    fn what_is_built_in_needs_no_loading_and_what_is_nowhere_is_named() {
        let folder = folder(&[("kernel/a/zram.ko", &["depends=lzo_rle"])]);
        assert_eq!(
            names(folder.path(), &["lzo-rle", "zram"]).unwrap(),
            ["zram"]
        );
        assert!(matches!(names(folder.path(), &["null_blk"]),
            Err(KernelError::NoModule { module, .. }) if module == "null_blk"));
    }

    #[test]
    fn soft_dependencies_are_loaded_around_a_module_when_they_are_there() {
        let folder = folder(&[
            ("kernel/a/fs.ko", &["softdep=pre: sum nowhere post: late"]),
            ("kernel/a/sum.ko", &["softdep=pre: fs"]),
            ("kernel/a/late.ko", &[]),
        ]);
        assert_eq!(
            names(folder.path(), &["fs"]).unwrap(),
            ["sum", "fs", "late"]
        );
    }

    #[test]
    fn an_updated_module_overrides_the_one_that_came_with_the_kernel() {
        let folder = folder(&[
            ("kernel/a/x.ko", &[]),
            ("updates/x.ko", &["depends=y"]),
            ("updates/y.ko", &[]),
        ]);
        assert_eq!(names(folder.path(), &["x"]).unwrap(), ["y", "x"]);
    }

    #[test]
    fn a_dependency_that_is_not_there_or_a_file_that_is_no_module_names_the_file() {
        let folder = folder(&[("kernel/a/x.ko", &["depends=gone"])]);
        fs::write(folder.path().join("kernel/a/bad.ko"), "rubbish").unwrap();
        for (name, word) in [("x", "gone"), ("bad", "bad.ko")] {
            let text = names(folder.path(), &[name]).unwrap_err().to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}
