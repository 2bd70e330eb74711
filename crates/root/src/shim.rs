//! Resolves wrappers of version managers, which select a program's version at each start. Finds the program that would
//! start on this machine now, without running the manager.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::RootError;
use crate::host::Host;

/// Version managers whose wrappers are scripts in a folder `shims`: name, and the variable and the file that select a
/// version. Source: pyenv, README, "How it works". pyenv was derived from rbenv, and the others work in the same way.
const ENVS: [(&str, &str, &str); 4] = [
    ("pyenv", "PYENV_VERSION", ".python-version"),
    ("rbenv", "RBENV_VERSION", ".ruby-version"),
    ("nodenv", "NODENV_VERSION", ".node-version"),
    ("plenv", "PLENV_VERSION", ".perl-version"),
];

/// Version managers whose wrappers are links to the manager's program: name, and the command that prints the path of
/// the program itself.
const LINKED: [(&str, &str); 6] = [
    ("mise", "mise which"),
    ("rtx", "rtx which"),
    ("volta-shim", "volta which"),
    ("rustup", "rustup which"),
    ("proto-shim", "proto bin"),
    ("snap", "find /snap/*/current -name"),
];

impl Host {
    /// Returns the path of the program that a wrapper starts; `None` if the file is not a wrapper. Fails if this cannot
    /// be found out without running the version manager.
    pub(crate) fn behind(&self, path: &Path) -> Result<Option<PathBuf>, RootError> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        let unknown = |manager: &str, ask: &str| RootError::Wrapper {
            path: path.to_owned(),
            manager: manager.to_owned(),
            ask: format!("{ask} {name}"),
        };
        let real = fs::canonicalize(path).unwrap_or_default();
        let real_name = real.file_name().and_then(|name| name.to_str());
        let linked = LINKED
            .iter()
            .find(|(manager, _)| real_name == Some(manager) && name != *manager);
        if let Some((manager, ask)) = linked {
            return Err(unknown(manager, ask));
        }
        let (Some(shims), Some(text)) = (path.parent(), script_text(path)) else {
            return Ok(None);
        };
        let root = shims.parent().unwrap_or(shims);
        if let Some((manager, variable, file)) = ENVS
            .iter()
            .find(|(manager, ..)| text.contains(&format!("/{manager}\" exec \"$program\"")))
        {
            let versions = env::var(variable).ok().filter(|text| !text.is_empty());
            let versions = versions
                .or_else(|| self.nearest(file))
                .or_else(|| fs::read_to_string(root.join("version")).ok())
                .unwrap_or_else(|| "system".to_owned());
            let versions = versions.split(|c: char| c == ':' || c.is_whitespace());
            let mut programs = versions
                .filter(|version| !version.is_empty())
                .map(|version| {
                    if version == "system" {
                        self.on_path_without(name, Some(shims)).ok()
                    } else {
                        installed(&root.join("versions"), version).map(|v| v.join("bin").join(name))
                    }
                });
            let found = programs.find_map(|path| path.filter(|path| path.is_file()));
            return match found {
                Some(found) => Ok(Some(found)),
                None => Err(unknown(manager, &format!("{manager} which"))),
            };
        }
        if text.contains("asdf exec") || text.contains("asdf\" exec") {
            let found = self.of_asdf(&root.join("installs"), &text, name);
            return match found {
                Some(found) => Ok(Some(found)),
                None => Err(unknown("asdf", "asdf which")),
            };
        }
        Ok(None)
    }

    /// Returns the path of the program that a wrapper of asdf starts; `None` if no version of it is installed. The
    /// wrapper's text lists the plugins and versions that have the program.
    fn of_asdf(&self, installs: &Path, text: &str, name: &str) -> Option<PathBuf> {
        let listed = text.lines().filter_map(|line| {
            let mut words = line.strip_prefix("# asdf-plugin: ")?.split_whitespace();
            Some((words.next()?, words.next()?))
        });
        let listed: Vec<(&str, &str)> = listed.collect();
        let chosen = self.nearest(".tool-versions").or_else(|| {
            fs::read_to_string(Path::new(&env::var_os("HOME")?).join(".tool-versions")).ok()
        });
        let chosen = chosen.unwrap_or_default();
        let asked = chosen.lines().flat_map(|line| {
            let mut words = line.split_whitespace();
            let plugin = words.next().unwrap_or_default();
            words.map(move |version| (plugin, version))
        });
        let place = |(plugin, version): (&str, &str)| {
            let path = installs.join(plugin).join(version).join("bin").join(name);
            path.is_file().then_some(path)
        };
        let asked = asked.filter(|asked| listed.contains(asked));
        let last = listed.iter().rev().copied();
        asked.chain(last).find_map(place)
    }

    /// Returns the text of the file `name` in the working directory or in the nearest folder above that contains it;
    /// `None` if none does.
    fn nearest(&self, name: &str) -> Option<String> {
        let mut folders = self.here.ancestors();
        folders.find_map(|folder| fs::read_to_string(folder.join(name)).ok())
    }
}

/// Returns the folder of this version, or else of the newest version that begins with it; `None` if none is installed.
fn installed(versions: &Path, version: &str) -> Option<PathBuf> {
    let short = version.strip_prefix("python-").unwrap_or(version);
    for name in [version, short] {
        let path = versions.join(name);
        if !name.contains('/') && path.is_dir() {
            return Some(path);
        }
    }
    let newest = fs::read_dir(versions).ok()?.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let rest = name.strip_prefix(short)?.strip_prefix('.')?;
        let numbers = rest.split('.').map(|part| part.parse::<u32>().ok());
        Some((numbers.collect::<Option<Vec<u32>>>()?, entry.path()))
    });
    newest.max().map(|(_, path)| path)
}

/// Returns the text of a script; `None` if the file is larger than 1 MiB or does not begin with `#!`.
pub(crate) fn script_text(path: &Path) -> Option<String> {
    const MAX_BYTES: u64 = 1 << 20;
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    let bytes = (size <= MAX_BYTES).then(|| fs::read(path).ok()).flatten()?;
    let is_script = bytes.starts_with(b"#!");
    is_script.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn host(here: &Path, path: &[&Path]) -> Host {
        let mut host = Host::here().unwrap();
        here.clone_into(&mut host.here);
        host.path = path.iter().map(|path| (*path).to_owned()).collect();
        host
    }

    #[test]
    fn a_wrapper_of_versions_leads_to_the_program_that_would_run_here() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".plenv");
        let shim = root.join("shims/tool");
        let text = format!(
            "#!/usr/bin/env bash\nset -e\nprogram=\"${{0##*/}}\"\nexec \"{}/libexec/plenv\" exec \"$program\" \"$@\"\n",
            root.display()
        );
        write(&shim, &text);
        for version in ["5.1.9", "5.1.10", "5.2.0", "5.1.x"] {
            write(
                &root.join("versions").join(version).join("bin/tool"),
                "#!/bin/sh\n",
            );
        }
        let system = folder.path().join("bin");
        write(&system.join("tool"), "#!/bin/sh\n");
        let here = folder.path().join("a/b");
        fs::create_dir_all(&here).unwrap();
        let host = host(&here, &[shim.parent().unwrap(), &system]);
        let found = || host.behind(&shim).unwrap().unwrap();
        let of = |version: &str| root.join("versions").join(version).join("bin/tool");
        assert_eq!(found(), system.join("tool"), "nothing names a version");
        fs::write(root.join("version"), "5.1.9\n").unwrap();
        assert_eq!(found(), of("5.1.9"));
        fs::write(folder.path().join("a/.perl-version"), "absent:5.1\n").unwrap();
        assert_eq!(found(), of("5.1.10"), "the newest that begins so");
        fs::write(here.join(".perl-version"), "5.3\n").unwrap();
        let said = host.behind(&shim).unwrap_err().to_string();
        assert!(
            said.contains("plenv which tool") && said.contains("shims/tool"),
            "{said}"
        );
        // This program is not a wrapper.
        assert_eq!(host.behind(&system.join("tool")).unwrap(), None);
    }

    #[test]
    fn wrappers_of_other_managers_are_followed_or_named_with_what_tells_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let shim = folder.path().join("asdf/shims/tool");
        let lines =
            "# asdf-plugin: lang 1.0\n# asdf-plugin: lang 2.0\nexec asdf exec \"tool\" \"$@\"\n";
        write(&shim, &format!("#!/usr/bin/env bash\n{lines}"));
        let host = host(folder.path(), &[]);
        let said = host.behind(&shim).unwrap_err().to_string();
        assert!(said.contains("asdf which tool"), "{said}");
        let of = |version: &str| {
            folder
                .path()
                .join("asdf/installs/lang")
                .join(version)
                .join("bin/tool")
        };
        for version in ["1.0", "2.0"] {
            write(&of(version), "#!/bin/sh\n");
        }
        assert_eq!(host.behind(&shim).unwrap(), Some(of("2.0")));
        fs::write(
            folder.path().join(".tool-versions"),
            "other 2.0\nlang 1.0\n",
        )
        .unwrap();
        assert_eq!(host.behind(&shim).unwrap(), Some(of("1.0")));
        let mise = folder.path().join("mise");
        write(&mise, "ELF");
        let link = folder.path().join("node");
        symlink(&mise, &link).unwrap();
        let said = host.behind(&link).unwrap_err().to_string();
        assert!(said.contains("`mise which node`"), "{said}");
        assert_eq!(host.behind(&mise).unwrap(), None);
    }
}
