//! Programs and libraries that a kernel build needs on this machine.

use std::path::{Path, PathBuf};

use pagetide_kernel::Digest;
use pagetide_system::child::{self, Limits};

use crate::error::SourceError;

/// Names of the programs that a build needs, each with the Debian package that contains it.
const PROGRAMS: [(&str, &str); 7] = [
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("gzip", "gzip"),
];
/// Header of the library that the kernel's objtool needs, and the Debian package that contains it.
const LIBRARY: (&str, &str) = ("libelf.h", "libelf-dev");

/// A needed program or library that is not installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingProgram {
    /// Name of the program or header.
    pub name: &'static str,
    /// Name of the Debian package that contains it.
    pub package: &'static str,
}

/// Returns all missing programs and libraries; empty if a kernel can be built.
pub fn missing() -> Vec<MissingProgram> {
    missing_in(std::env::var_os("PATH").unwrap_or_default().as_ref())
}

fn missing_in(path: &Path) -> Vec<MissingProgram> {
    let mut missing: Vec<MissingProgram> = PROGRAMS
        .iter()
        .filter(|(program, _)| find(path, program).is_none())
        .map(|&(name, package)| MissingProgram { name, package })
        .collect();
    let (name, package) = LIBRARY;
    // Without a compiler, the search for headers is not possible, so the library is reported as missing too.
    if find(path, "gcc").is_none_or(|gcc| !has_header(&gcc, name)) {
        missing.push(MissingProgram { name, package });
    }
    missing
}

/// Returns the command that installs the missing programs and libraries.
pub fn remedy(missing: &[MissingProgram]) -> String {
    let packages: Vec<&str> = missing.iter().map(|missing| missing.package).collect();
    format!("apt-get install {}", packages.join(" "))
}

/// Fails if a program or library is missing. The error names all that are missing, and the command that installs them.
pub fn check() -> Result<(), SourceError> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|missing| missing.name).collect();
    Err(SourceError::NoTools {
        missing: names.join(", "),
        remedy: remedy(&missing),
    })
}

/// Returns the path of a program in the folders of `path`, which has the form of `PATH`; `None` if it is not found.
fn find(path: &Path, program: &str) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn has_header(gcc: &Path, header: &str) -> bool {
    let mut command = child::command(gcc);
    command.args(["-fsyntax-only", "-include", header, "-xc", "/dev/null"]);
    child::run(&mut command, &Limits::QUICK).is_ok_and(|output| output.status.success())
}

/// The compiler and linker that are used for builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// Command passed to make: `gcc`, or `ccache gcc` if ccache is installed.
    pub command: String,
    /// Versions of compiler and linker. Builds by different compilers are kept in different folders.
    pub id: String,
}

impl Compiler {
    /// Reads the versions of gcc and ld by running them.
    pub fn find() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let cached = find(path.as_ref(), "ccache").is_some();
        let command = if cached { "ccache gcc" } else { "gcc" };
        let said = |program: &str| {
            let mut command = child::command(program);
            child::run(command.arg("--version"), &Limits::QUICK).map_or_else(
                |_| String::new(),
                |output| {
                    let text = String::from_utf8_lossy(&output.stdout);
                    text.lines().next().unwrap_or_default().to_owned()
                },
            )
        };
        Self {
            command: command.to_owned(),
            id: format!("{}; {}", said("gcc"), said("ld")),
        }
    }

    /// Returns the part of build folders' names that depends on the compiler. It does not depend on ccache, because
    /// ccache does not change objects.
    pub fn key(&self) -> String {
        Digest::of(self.id.as_bytes()).short().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_named_with_one_command() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("make"), "").unwrap();
        let missing = missing_in(folder.path());
        let names: Vec<&str> = missing.iter().map(|missing| missing.name).collect();
        assert_eq!(
            names,
            ["gcc", "ld", "flex", "bison", "bc", "gzip", "libelf.h"]
        );
        assert_eq!(
            remedy(&missing),
            "apt-get install gcc binutils flex bison bc gzip libelf-dev"
        );
    }
}
