//! Other projects' programs for tests, downloaded once and kept in cargo's folder for temporary test files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

/// Why a program is not available.
pub struct Why(pub String);

/// Allows one download at a time, because tests in one process use the same folder.
static FETCH: Mutex<()> = Mutex::new(());

fn lock() -> MutexGuard<'static, ()> {
    FETCH
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Folder of downloaded programs.
fn cache() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("judges");
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a command to its end. Returns its output, or the reason of the failure.
fn run(command: &mut Command) -> Result<String, Why> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Why(format!("{name} cannot be run ({error})")))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default().to_owned();
        Err(Why(format!("{name} ended with {} ({last})", output.status)))
    }
}

/// A downloaded program or folder.
pub struct Tool {
    path: PathBuf,
    scratch: tempfile::TempDir,
}

impl Tool {
    fn at(path: PathBuf) -> Self {
        Self {
            path,
            scratch: tempfile::tempdir().unwrap(),
        }
    }

    /// Writes a file with this name into a temporary folder of the tool and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.scratch.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }

    /// Runs a script with the system's Python. Its arguments are the tool's folder and a file that contains `text`.
    /// Returns the output, parsed as JSON; panics if the script fails.
    pub fn python(&self, script: &str, text: &str) -> Value {
        let file = self.file("text", text);
        let out = run(Command::new("python3")
            .args(["-c", script])
            .arg(&self.path)
            .arg(file));
        serde_json::from_str(&out.unwrap_or_else(|why| panic!("{}", why.0))).unwrap()
    }
}

/// A separate Python environment with packages.
pub struct Python {
    tool: Tool,
}

impl Python {
    /// Runs a script; its second argument is a file that contains `text`. Returns the output, parsed as JSON.
    pub fn run(&self, script: &str, text: &str) -> Value {
        let file = self.tool.file("text", text);
        let out = run(Command::new(&self.tool.path).args(["-c", script, "-", &file]));
        let out = out.unwrap_or_else(|why| panic!("{}", why.0));
        serde_json::from_str(&out).unwrap()
    }
}

/// Returns a separate Python environment with this package from the Python package index; creates it if needed.
pub fn python(package: &str) -> Result<Python, Why> {
    let _lock = lock();
    let venv = cache().join("venv");
    let program = venv.join("bin/python");
    let mark = venv.join(format!("has-{package}"));
    if !mark.exists() {
        if !program.exists() {
            let made = run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
            if let Err(why) = made {
                let _ = fs::remove_dir_all(&venv);
                return Err(why);
            }
        }
        run(Command::new(&program).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries=1",
            "--timeout=15",
            package,
        ]))
        .map_err(|Why(why)| Why(format!("{package} cannot be installed: {why}")))?;
        fs::write(&mark, "").unwrap();
    }
    Ok(Python {
        tool: Tool::at(program),
    })
}

/// Downloads a Debian package to a separate folder and returns the path of the package file.
fn package(name: &str) -> Result<PathBuf, Why> {
    let folder = cache().join(format!("deb-{name}"));
    fs::create_dir_all(&folder).unwrap();
    let find = || {
        fs::read_dir(&folder)
            .unwrap()
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|ext| ext == "deb"))
    };
    if find().is_none() {
        run(Command::new("apt-get")
            .args(["download", name])
            .current_dir(&folder))?;
    }
    find().ok_or_else(|| Why(format!("apt-get left no package of {name}")))
}

/// The folder with the kernel's KTAP parser, extracted from Debian's package of the kernel source.
pub fn kunit() -> Result<Tool, Why> {
    let _lock = lock();
    let folder = cache().join("kunit");
    if !folder.join("kunit_parser.py").exists() {
        // `linux-source` is empty and depends on the package with the archive.
        let depends =
            run(Command::new("apt-cache").args(["depends", "--important", "linux-source"]))?;
        let name = depends
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "))
            .find(|name| name.starts_with("linux-source-"))
            .ok_or_else(|| Why("Debian's package linux-source is not known to apt".to_owned()))?
            .to_owned();
        let file = package(&name)?;
        let part = cache().join("kunit.part");
        let _ = fs::remove_dir_all(&part);
        fs::create_dir_all(&part).unwrap();
        let inside = format!("{name}/tools/testing/kunit");
        // Only two files are extracted from the archive.
        let script = "dpkg-deb --fsys-tarfile \"$1\" | tar -xO \"./usr/src/$2.tar.xz\" | tar -xJ -C \"$3\" \
                      --strip-components=4 --occurrence=1 \"$4/kunit_parser.py\" \"$4/kunit_printer.py\"";
        let _ = run(Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(&file)
            .arg(&name)
            .arg(&part)
            .arg(&inside));
        if !part.join("kunit_parser.py").exists() {
            return Err(Why(format!(
                "{name} has no kunit_parser.py that tar could read"
            )));
        }
        fs::rename(&part, &folder).map_err(|error| Why(error.to_string()))?;
        let _ = fs::remove_file(file);
    }
    Ok(Tool::at(folder))
}
