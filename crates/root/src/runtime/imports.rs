//! Finds the modules that Python code imports by name, and the packages to add for them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{ends, text_of};
use crate::error::RootError;
use crate::host::{Change, Host, Wants, take};
use crate::inodes::EPOCH_SECONDS;
use crate::path::RootPath;
use crate::tree::Tree;

/// Maximum number of files of packages that are searched for imports.
const MAX_FILES: usize = 50_000;

/// The modules that a program imports, located in the way Python does.
pub(super) struct Imports<'a> {
    library: &'a Path,
    /// Package folders on this machine, including those added by `.pth` files.
    packages: Vec<PathBuf>,
    /// Paths of the `.pth` files that add folders.
    adding: Vec<PathBuf>,
    /// The folder that Python searches first, usually that of the script: its path on this machine, and its path inside
    /// the root.
    near: (PathBuf, Option<RootPath>),
    /// Names of all imported modules, without submodules.
    named: BTreeSet<String>,
    left: Vec<String>,
    found: Vec<Found>,
    /// Number of files that may still be read for imports.
    budget: usize,
}

/// An imported module outside the standard library.
struct Found {
    name: String,
    path: PathBuf,
    /// True if the module is in the folder that is searched first.
    is_near: bool,
}

impl<'a> Imports<'a> {
    /// Creates a search to which no modules were added yet. `near` is the folder that Python searches first: its path
    /// on this machine, and its path inside the root.
    pub fn new(library: &'a Path, packages: &[PathBuf], near: (PathBuf, Option<RootPath>)) -> Self {
        let mut imports = Self {
            library,
            packages: packages.to_vec(),
            adding: Vec::new(),
            near,
            named: BTreeSet::new(),
            left: Vec::new(),
            found: Vec::new(),
            budget: MAX_FILES,
        };
        for folder in packages {
            imports.add_folders(folder);
        }
        imports
    }

    /// Adds the folders named in the `.pth` files of a package folder. Source: Python, module `site`.
    fn add_folders(&mut self, folder: &Path) {
        for path in files(folder) {
            if path.extension().is_none_or(|ending| ending != "pth") {
                continue;
            }
            let text = text_of(&path);
            let lines = text.lines().map(str::trim);
            let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
            // A line of code in the file could import a module that would not be added.
            if lines.clone().any(|line| line.starts_with("import")) {
                continue;
            }
            if lines.clone().any(|line| folder.join(line).is_dir()) {
                self.packages
                    .extend(lines.by_ref().map(|line| folder.join(line)));
                self.adding.push(path);
            }
        }
    }

    /// Adds the top-level module of an imported name to the modules to search for. Ignores invalid names, and modules
    /// that were already added.
    pub fn add(&mut self, module: &str) {
        let first = module.split('.').next().unwrap_or_default().trim();
        let is_name = !first.is_empty()
            && first.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !first.starts_with(|c: char| c.is_ascii_digit());
        if !is_name || !self.named.insert(first.to_owned()) {
            return;
        }
        self.left.push(first.to_owned());
        // Files of the standard library are not searched for imports, so imports between them are listed here.
        match first {
            "turtle" => self.add("tkinter"),
            "venv" => self.add("ensurepip"),
            _ => {}
        }
    }

    /// Adds the modules that code imports by name. Text that only looks like an import either matches no module or adds
    /// an unneeded module.
    pub fn scan(&mut self, code: &str) {
        for line in code.lines() {
            for part in line.split([';', ':']).map(str::trim) {
                if let Some(list) = part.strip_prefix("import ") {
                    for module in list.split(',') {
                        self.add(module.split_whitespace().next().unwrap_or_default());
                    }
                } else if let Some(rest) = part.strip_prefix("from ") {
                    self.add(rest.split_whitespace().next().unwrap_or_default());
                }
            }
            for call in ["import_module(", "__import__("] {
                if let Some((_, rest)) = line.split_once(call) {
                    let literal = rest.trim_start().trim_start_matches(['"', '\'']);
                    self.add(literal.split(['"', '\'']).next().unwrap_or_default());
                }
            }
        }
    }

    /// Locates the imported modules, and recursively the modules that these import.
    pub fn follow(&mut self) {
        while let Some(name) = self.left.pop() {
            let Some((path, is_near)) = self.locate(&name) else {
                continue;
            };
            self.read(&path);
            self.found.push(Found {
                name,
                path,
                is_near,
            });
        }
    }

    /// Searches a module for imports: its file, or all files of a package.
    fn read(&mut self, path: &Path) {
        let mut left = vec![path.to_owned()];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(files(&path));
            } else if path.extension().is_some_and(|ending| ending == "py") && self.budget > 0 {
                self.budget -= 1;
                self.scan(&text_of(&path));
            }
        }
    }

    /// Returns the path of a module, and true if it is in the folder that is searched first. `None` if the module is
    /// part of the standard library or does not exist.
    fn locate(&self, name: &str) -> Option<(PathBuf, bool)> {
        if let Some(path) = module(&self.near.0, name) {
            return Some((path, true));
        }
        let dynamic = self.library.join("lib-dynload");
        if module(self.library, name)
            .or_else(|| module(&dynamic, name))
            .is_some()
        {
            return None;
        }
        let of_packages = self.packages.iter().find_map(|folder| module(folder, name));
        if let Some(path) = of_packages {
            return Some((path, false));
        }
        // If there is no other match, a folder without `__init__.py` is a package too.
        let bare = |folder: &Path| Some(folder.join(name)).filter(|path| has_code(path));
        let of_packages = || self.packages.iter().find_map(|folder| bare(folder));
        let near = bare(&self.near.0).map(|path| (path, true));
        near.or_else(|| of_packages().map(|path| (path, false)))
    }

    /// Returns the names of all imported modules, without submodules.
    pub fn modules(&self) -> &BTreeSet<String> {
        &self.named
    }

    /// Returns the names of the imported modules outside the standard library, sorted.
    pub fn packages(&self) -> Vec<String> {
        let names = self.found.iter().map(|found| found.name.clone());
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Adds the modules found, and their packages' metadata, to `tree`.
    pub fn install(&self, host: &mut Host, tree: &mut Tree) -> Result<(), RootError> {
        let wants = Wants {
            is_wanted: &|_| true,
            change: &compiled,
        };
        let near = Wants {
            is_wanted: &is_code_or_small,
            change: &compiled,
        };
        for path in &self.adding {
            take(tree, path)?;
        }
        for found in &self.found {
            let place = self.near.1.as_ref().filter(|_| found.is_near);
            let name = found.path.file_name().and_then(|name| name.to_str());
            let place = match (place, name) {
                (Some(place), Some(name)) => Some(place.join(name)?),
                _ => None,
            };
            // If the user has given a file for this path, that file is kept.
            if place
                .as_ref()
                .is_some_and(|place| tree.get(place).is_some())
            {
                continue;
            }
            if found.path.is_dir() {
                let wants = if found.is_near { &near } else { &wants };
                host.library(tree, &found.path, place.as_ref(), wants)?;
            } else {
                let path = found.path.to_str().unwrap_or_default();
                host.file(tree, path, place.as_ref().map(RootPath::as_str))?;
            }
            if let (false, Some(folder)) = (found.is_near, found.path.parent()) {
                for path in about(folder, &found.name) {
                    host.library(tree, &path, None, &wants)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the path of the module `name` in a folder: a package with `__init__.py`, a Python file, or a library. `None`
/// if the folder has none of them.
fn module(folder: &Path, name: &str) -> Option<PathBuf> {
    let package = folder.join(name);
    if package.join("__init__.py").is_file() {
        return Some(package);
    }
    let file = folder.join(format!("{name}.py"));
    if file.is_file() {
        return Some(file);
    }
    let is_library = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str());
        let rest = file.and_then(|file| file.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with('.') && ends(rest, "so"))
    };
    files(folder).into_iter().find(is_library)
}

/// Returns true if a file of a package beside a script should be added. Large files, except libraries, are taken for
/// data that the package does not need. Hidden files and virtual environments are left out too.
fn is_code_or_small(path: &Path) -> bool {
    const MAX_BYTES: u64 = 16 << 20;
    let name = path.file_name().and_then(|name| name.to_str());
    let is_hidden = name.is_none_or(|name| name.starts_with('.'));
    let is_library = path.extension().is_some_and(|ending| ending == "so");
    let is_small = fs::metadata(path).is_ok_and(|about| about.is_dir() || about.len() <= MAX_BYTES);
    !is_hidden && (is_library || is_small) && !path.join("pyvenv.cfg").exists()
}

/// Returns true if a folder or one of its immediate subfolders contains Python code.
fn has_code(folder: &Path) -> bool {
    let is_code = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "py");
    let own = files(folder);
    own.iter().any(is_code) || own.iter().any(|path| files(path).iter().any(is_code))
}

/// Returns the paths of the metadata of the package that provides a module: version and entry points, which packages
/// query.
fn about(folder: &Path, module: &str) -> Vec<PathBuf> {
    let is_about = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        if !path.is_dir() || !matches!(ending, Some("dist-info" | "egg-info")) {
            return false;
        }
        let listed = text_of(&path.join("top_level.txt"));
        if !listed.is_empty() {
            return listed.lines().any(|line| line.trim() == module);
        }
        let begins = [format!("{module}/"), format!("{module}.py,")];
        let record = text_of(&path.join("RECORD"));
        let mut lines = record.lines();
        lines.any(|line| begins.iter().any(|begin| line.starts_with(begin)))
    };
    files(folder).into_iter().filter(is_about).collect()
}

/// Returns the paths of the entries of a folder, sorted by name; empty if the folder cannot be read.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Decides how a file of a Python library is added. A compiled module is added only if Python would use it on this
/// machine. Then the modification time in its header is changed to the one that its source file has inside the root.
/// Source: CPython, `Lib/importlib/_bootstrap_external.py`, `_classify_pyc` and `_validate_timestamp_pyc`.
pub(super) fn compiled(path: &Path) -> Change {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let Some(stem) = name.strip_suffix(".pyc") else {
        return Change::None;
    };
    let folder = path.parent().unwrap_or(path);
    if !folder.ends_with("__pycache__") {
        // A compiled module outside `__pycache__` has no source file, so it is added unchanged.
        return Change::None;
    }
    // The name has the form `json.cpython-311`. Python uses other names, such as `json.cpython-311.opt-1`, only with
    // certain options.
    let mut parts = stem.rsplitn(2, '.');
    let (tag, module) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let source = folder.with_file_name(format!("{module}.py"));
    let (Ok(mut bytes), Ok(source)) = (fs::read(path), fs::metadata(source)) else {
        return Change::Leave;
    };
    let field = |at: usize| {
        let field = bytes
            .get(at..at + 4)
            .and_then(|field| field.try_into().ok());
        field.map(u32::from_le_bytes)
    };
    // The header has only the lower 32 bits of the source's time and size.
    let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).ok();
    let is_current =
        field(8) == low(source.mtime().unsigned_abs()) && field(12) == low(source.len());
    match field(4) {
        // The header has a hash of the source instead of its time, so it needs no change.
        Some(1 | 3) if tag.starts_with("cpython-") => Change::None,
        Some(0) if tag.starts_with("cpython-") && is_current => {
            bytes[8..12].copy_from_slice(&EPOCH_SECONDS.to_le_bytes());
            Change::Bytes(bytes)
        }
        _ => Change::Leave,
    }
}
