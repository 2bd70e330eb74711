//! Adds what Python needs: its standard library, a virtual environment, and the packages that a script imports.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Options;
use super::imports::{Imports, compiled};
use crate::error::RootError;
use crate::host::{Host, Wants, take};
use crate::path::RootPath;
use crate::tree::Tree;

/// Options of Python that take an argument. Source: `python3 --help`.
const OPTIONS: Options<'static> = Options {
    code: &["-c"],
    module: &["-m"],
    other: &["-W", "-X", "--check-hash-based-pycs"],
    is_last: true,
};

/// Optional parts of the standard library: the name of the part, and the name of the module whose import shows that the
/// part is needed; empty if the part is never added. Other parts are always added.
const PARTS: [(&str, &str); 9] = [
    ("test", "test"),
    ("idlelib", "idlelib"),
    ("tkinter", "tkinter"),
    ("turtledemo", "turtledemo"),
    ("ensurepip", "ensurepip"),
    ("lib2to3", "lib2to3"),
    ("pydoc_data", "pydoc"),
    ("site-packages", ""),
    ("dist-packages", ""),
];

/// An installed Python and its folders on this machine.
struct Python {
    /// Path of the standard library.
    library: PathBuf,
    /// Major and minor version, such as `3.11`: the name of the folder `library` without `python`.
    version: String,
    /// Package folders, in the order in which Python searches them.
    packages: Vec<PathBuf>,
    /// In a virtual environment: path of the file `pyvenv.cfg`, and folder of the Python on which the environment is
    /// based.
    environment: Option<(PathBuf, PathBuf)>,
}

impl Host {
    /// Adds everything that Python needs when started as `program` with the arguments `words`.
    pub(super) fn python(
        &mut self,
        tree: &mut Tree,
        program: &Path,
        words: &[String],
    ) -> Result<(), RootError> {
        let Some(python) = Python::of(program) else {
            self.notes.push(format!(
                "{} is a Python whose library is not found: give its folder with --dir",
                program.display()
            ));
            return Ok(());
        };
        if let Some((file, home)) = &python.environment {
            take(tree, file)?;
            if home.is_dir() {
                take(tree, home)?;
            }
        }
        let task = OPTIONS.read(words);
        let script = match &task.script {
            Some(word) => self.script(tree, word)?,
            None => None,
        };
        // The script's folder is searched first. Without a script, the working folder is searched first.
        let (near, near_inside) = match &script {
            Some(script) if script.here.is_dir() => {
                (script.here.clone(), Some(script.inside.clone()))
            }
            Some(script) => (
                script.here.parent().unwrap_or(&self.here).to_owned(),
                script.inside.parent(),
            ),
            None => (self.here.clone(), Some(RootPath::new(&self.folder, "")?)),
        };
        let mut imports = Imports::new(&python.library, &python.packages, (near, near_inside));
        for text in task
            .code
            .iter()
            .chain(script.iter().map(|script| &script.text))
        {
            imports.scan(text);
        }
        for module in &task.modules {
            imports.add(module);
        }
        imports.follow();
        // If the user has given the folder of the standard library, it contains more than is needed.
        let landmark = python.library.join("os.py");
        let is_given = tree.leads_to_file(landmark.to_str().unwrap_or_default());
        self.standard_library(tree, &python, imports.modules())?;
        let before = tree.size();
        imports.install(self, tree)?;
        let packages = imports.packages();
        let version = &python.version;
        let library = python.library.display();
        let more = match packages.len() {
            0 => String::new(),
            _ => format!(
                ", and {} of packages that it imports: {}",
                pagetide_quantity::Bytes(tree.size().0 - before.0),
                packages.join(", ")
            ),
        };
        self.notes.push(if is_given {
            format!("python{version} brings what it needs of {library} itself: without --dir the guest is smaller")
        } else {
            format!(
                "python{version} brings {library} without its tests and tools{more}; what is imported by other means is given with --dir"
            )
        });
        Ok(())
    }

    /// Adds the standard library. Its optional parts are added only if they are imported by name.
    fn standard_library(
        &mut self,
        tree: &mut Tree,
        python: &Python,
        imported: &BTreeSet<String>,
    ) -> Result<(), RootError> {
        let own = |path: &Path| {
            path.parent() == Some(&python.library)
                || path
                    .parent()
                    .is_some_and(|parent| parent.ends_with("lib-dynload"))
        };
        let is_wanted = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(name) = name else { return false };
            if matches!(name, "tests" | "idle_test") || name == "test" && !own(path) {
                return imported.contains("test");
            }
            if !own(path) {
                return true;
            }
            let part = PARTS.iter().find(|(part, _)| *part == name);
            if let Some((_, module)) = part {
                return imported.contains(*module);
            }
            if name.starts_with("_test")
                || name.starts_with("_ctypes_test")
                || name.starts_with("xx")
            {
                return imported.contains("test");
            }
            if name.starts_with("_tkinter.") {
                return imported.contains("tkinter");
            }
            // Folders with build configuration for extensions are left out.
            !name.starts_with("config-")
        };
        let wants = Wants {
            is_wanted: &is_wanted,
            change: &compiled,
        };
        self.library(tree, &python.library, None, &wants)
    }
}

impl Python {
    /// Returns the Python that runs when `program` is started; `None` if its standard library is not found. Source:
    /// CPython, `Modules/getpath.py`.
    fn of(program: &Path) -> Option<Self> {
        let real = fs::canonicalize(program).ok()?;
        let folder = program.parent()?;
        // The path may be a chain of links. The environment's file is in the folder of the path as given, or in that
        // folder's parent.
        let environment = [folder, folder.parent()?]
            .into_iter()
            .map(|folder| folder.join("pyvenv.cfg"))
            .find(|path| path.is_file());
        let setting = |name: &str| {
            let text = fs::read_to_string(environment.as_ref()?).ok()?;
            text.lines().find_map(|line| {
                let (key, value) = line.split_once('=')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            })
        };
        let home = setting("home").map(PathBuf::from);
        let begin = home.clone().or_else(|| real.parent().map(Path::to_owned))?;
        let version = version(&real);
        let mut folders = begin.ancestors().chain(real.ancestors());
        let library = folders.find_map(|folder| standard(folder, version.as_deref()))?;
        let name = library.file_name()?.to_str()?.to_owned();
        let version = name.strip_prefix("python")?.to_owned();
        let prefix = library.parent()?.parent()?;
        let mut packages = Vec::new();
        if let Some(file) = &environment {
            packages.push(file.with_file_name("lib").join(&name).join("site-packages"));
        }
        let is_isolated = environment.is_some()
            && setting("include-system-site-packages").as_deref() != Some("true");
        if !is_isolated {
            let major = version.split('.').next().unwrap_or_default();
            packages.push(library.join("site-packages"));
            // Debian's Python has further folders. Source: Debian Python Policy, "Module Path".
            if prefix == Path::new("/usr") {
                packages.push(PathBuf::from(format!(
                    "/usr/local/lib/{name}/dist-packages"
                )));
                packages.push(PathBuf::from(format!(
                    "/usr/lib/python{major}/dist-packages"
                )));
            }
        }
        packages.retain(|folder| folder.is_dir());
        Some(Self {
            library,
            version,
            packages,
            environment: environment.zip(home),
        })
    }
}

/// Returns the major and minor version in the name of an executable, such as `3.11`; `None` if the name has none.
fn version(program: &Path) -> Option<String> {
    let version = program.file_name()?.to_str()?.strip_prefix("python")?;
    version.contains('.').then(|| version.to_owned())
}

/// Returns the path of the standard library of this version below a folder; without a version, the newest one there.
/// `None` if there is none.
fn standard(folder: &Path, version: Option<&str>) -> Option<PathBuf> {
    let is_one = |path: &PathBuf| path.join("os.py").is_file();
    if let Some(version) = version {
        let path = folder.join(format!("lib/python{version}"));
        return Some(path).filter(is_one);
    }
    let found = fs::read_dir(folder.join("lib")).ok()?.flatten();
    let found = found.map(|entry| entry.path()).filter(is_one);
    let numbered = found.filter_map(|path| Some((numbers(&path)?, path)));
    numbered.max().map(|(_, path)| path)
}

/// Returns the major and minor version in the name of a standard library's folder; `None` if the name has none.
fn numbers(path: &Path) -> Option<(u32, u32)> {
    let name = path.file_name()?.to_str()?.strip_prefix("python")?;
    let (major, minor) = name.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
