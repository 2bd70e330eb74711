//! What building a kernel needs of this machine.

use std::path::{Path, PathBuf};

use pagetide_kernel::Digest;
use pagetide_system::child::{self, Limits};

use crate::error::SourceError;

/// Programs, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 7] = [
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("gzip", "gzip"),
];
/// The library that the kernel's objtool is built with: its header, and the Debian package that has it.
const LIBRARY: (&str, &str) = ("libelf.h", "libelf-dev");

/// Something that is not installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingProgram {
    /// The program or header.
    pub name: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
}

/// All that is missing; empty where a kernel can be built.
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
    // Without a compiler nothing is known of headers, so the library is asked for as well.
    if find(path, "gcc").is_none_or(|gcc| !has_header(&gcc, name)) {
        missing.push(MissingProgram { name, package });
    }
    missing
}

/// The command that installs what is missing.
pub fn remedy(missing: &[MissingProgram]) -> String {
    let packages: Vec<&str> = missing.iter().map(|missing| missing.package).collect();
    format!("apt-get install {}", packages.join(" "))
}

/// An error that names all that is missing at once, with the one command that installs it.
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

/// Where a program lies in a search path.
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

/// The compiler in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// As make is given it: `gcc`, or `ccache gcc`.
    pub command: String,
    /// What it and the linker say of themselves: builds of another compiler are other builds.
    pub id: String,
}

impl Compiler {
    /// Asks gcc and ld.
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

    /// What stands for it in names of folders. Whether ccache is there changes no object.
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
