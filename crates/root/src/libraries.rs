//! Finds the libraries that ELF files need, in the search order of the loader. Source: ld.so(8).

use std::fs;
use std::path::{Path, PathBuf};

use crate::elf::{self, Elf};
use crate::error::{RootError, io};
use crate::host::{Host, take, text};
use crate::loader::DEFAULT;
use crate::tree::Tree;

impl Host {
    /// Adds the loader and all libraries of an ELF file, and the libraries of those libraries. A missing library is an
    /// error if `strict` is true, else a note for the user.
    pub(crate) fn close(
        &mut self,
        tree: &mut Tree,
        program: &Path,
        strict: bool,
    ) -> Result<(), RootError> {
        if self.alone {
            return Ok(());
        }
        let mut left = vec![program.to_owned()];
        let mut of_program = Vec::new();
        while let Some(path) = left.pop() {
            if !self.closed.insert(path.clone()) {
                continue;
            }
            let bytes = fs::read(&path).map_err(io("reading", &path))?;
            let elf = match elf::read(&path, &bytes) {
                Ok(elf) => elf,
                Err(why) if strict => return Err(why),
                // The ELF file is data, perhaps for another machine.
                Err(_) => continue,
            };
            if let Some(loader) = &elf.interpreter {
                let (_, real) = take(tree, Path::new(loader))?;
                left.push(real);
            }
            let own = own_folders(&elf, &path);
            if of_program.is_empty() {
                of_program.clone_from(&own);
            }
            for name in &elf.needed {
                match self.find(name, &own, &of_program) {
                    Some(found) => {
                        let (_, real) = take(tree, &found)?;
                        left.push(real);
                    }
                    None if strict => {
                        return Err(RootError::NoLibrary {
                            library: name.clone(),
                            by: path,
                        });
                    }
                    None => {
                        let by = path.display();
                        self.notes
                            .push(format!("{by} needs {name}, which is not on this machine"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the path of the x86-64 library `name`; `None` if it is not found. `own` and `of_program` are the library
    /// folders named in the ELF file that needs it and in its program.
    fn find(&mut self, name: &str, own: &[PathBuf], of_program: &[PathBuf]) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| fits(path));
        }
        let in_folders = |folders: &[PathBuf]| {
            let paths = folders.iter().map(|folder| folder.join(name));
            paths.into_iter().find(|path| fits(path))
        };
        if let Some(found) = in_folders(own).or_else(|| in_folders(of_program)) {
            return Some(found);
        }
        let found = in_folders(&self.libraries)?;
        let folder = text(found.parent()?).ok()?;
        if !DEFAULT.contains(&folder) {
            self.told.insert(folder.to_owned());
        }
        Some(found)
    }
}

/// Returns true if the file is an ELF file for x86-64, so that the guest can load it.
fn fits(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| elf::is_elf(&bytes) && elf::read(path, &bytes).is_ok())
}

/// Returns the folders that the ELF file itself names for its libraries (RPATH or RUNPATH), with variables such as
/// `$ORIGIN` replaced.
fn own_folders(elf: &Elf, path: &Path) -> Vec<PathBuf> {
    let origin = path.parent().map(Path::to_string_lossy).unwrap_or_default();
    let of = |folder: &String| {
        let folder = folder
            .replace("${ORIGIN}", &origin)
            .replace("$ORIGIN", &origin)
            .replace("${LIB}", "lib/x86_64-linux-gnu")
            .replace("$LIB", "lib/x86_64-linux-gnu")
            .replace("${PLATFORM}", "x86_64")
            .replace("$PLATFORM", "x86_64");
        PathBuf::from(folder)
    };
    elf.folders
        .iter()
        .map(of)
        .filter(|folder| folder.is_absolute())
        .collect()
}
