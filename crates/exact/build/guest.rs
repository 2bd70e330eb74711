//! Builds the guest's program so that its bytes depend only on its own sources, the toolchain and the C library.
//!
//! Records and snapshots are valid for one guest only, which is identified by the program's digest. Therefore two
//! builds of the same sources must give the same bytes. Names of folders, the environment and the profile of the tool's
//! own build must not affect the program. A test builds the program in another folder with another home and compares
//! the bytes.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the guest's package and of its program.
const PACKAGE: &str = "pagetide-guest";
/// The guest is an x86-64 machine on every host.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Profile in the workspace's manifest with which the guest's program is compiled.
const PROFILE: &str = "guest";
/// Variables that a build inherits from the environment, in addition to those that [`Recipe`] sets.
const ENVIRONMENT: [&str; 9] = [
    "PATH",
    "TMPDIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    // The outer build's limit on parallel processes.
    "CARGO_MAKEFLAGS",
    "CARGO_NET_OFFLINE",
    "https_proxy",
    "HTTPS_PROXY",
    "SSL_CERT_FILE",
];

/// Paths used by a build. None of them changes the program's bytes.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Folder of the workspace.
    pub workspace: PathBuf,
    /// Folder for cargo's output (`target`).
    pub folder: PathBuf,
    /// Path of cargo.
    pub cargo: PathBuf,
    /// Path of the Rust compiler.
    pub rustc: PathBuf,
    /// The user's home folder.
    pub home: PathBuf,
    /// Cargo's home folder, with its registry and downloaded packages.
    pub cargo_home: PathBuf,
}

/// Path of the user's home folder; fails if there is none.
pub fn home() -> Result<PathBuf, Box<dyn Error>> {
    Ok(env::home_dir().ok_or("the user has no home: set HOME")?)
}

/// Path of cargo's home folder, with its registry and downloaded packages.
pub fn cargo_home() -> Result<PathBuf, Box<dyn Error>> {
    match env::var_os("CARGO_HOME") {
        Some(folder) => Ok(folder.into()),
        None => Ok(home()?.join(".cargo")),
    }
}

impl Recipe {
    /// Builds the guest's program and returns the program's path.
    pub fn build(&self) -> Result<PathBuf, Box<dyn Error>> {
        let mut cargo = Command::new(&self.cargo);
        cargo
            .args(["build", "--quiet", "--locked", "--package", PACKAGE])
            .args(["--bin", PACKAGE, "--profile", PROFILE, "--target", TARGET])
            .arg("--target-dir")
            .arg(&self.folder)
            .current_dir(&self.workspace)
            .env_clear()
            .envs(
                ENVIRONMENT
                    .iter()
                    .filter_map(|name| Some((name, env::var_os(name)?))),
            )
            .env("HOME", &self.home)
            .env("CARGO_HOME", &self.cargo_home)
            .env("RUSTC", &self.rustc)
            // Flags for C code of dependencies. None of that code gets into the program, which a test checks, and
            // optimising it would take most of the build time.
            .env("CFLAGS", "-O0")
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags()?);
        let status = cargo
            .status()
            .map_err(|why| format!("running {}: {why}", self.cargo.display()))?;
        if !status.success() {
            return Err(format!("building the guest's program: cargo ended with {status}").into());
        }
        Ok(self.program())
    }

    fn program(&self) -> PathBuf {
        self.folder.join(TARGET).join(PROFILE).join(PACKAGE)
    }

    /// The compiler's flags in cargo's encoding: separated by U+001F.
    fn flags(&self) -> Result<OsString, Box<dyn Error>> {
        let mut flags: Vec<OsString> = [
            "-Ctarget-feature=+crt-static",
            "-Crelocation-model=static",
            "-Clink-arg=-Wl,--build-id=none",
        ]
        .map(OsString::from)
        .into();
        // If several prefixes match, the compiler uses the last one.
        let mut remap = |from: &Path, to: &str| {
            let mut flag = OsString::from("--remap-path-prefix=");
            flag.push(from);
            flag.push("=");
            flag.push(to);
            flags.push(flag);
        };
        remap(&self.workspace, "/pagetide");
        remap(&self.cargo_home, "/cargo");
        // The folder is named after the registry or its mirror, so its name differs between machines.
        let registries = fs::read_dir(self.cargo_home.join("registry/src"));
        for registry in registries.into_iter().flatten().flatten() {
            remap(&registry.path(), "/registry");
        }
        remap(&self.folder, "/target");
        // If the standard library's sources are installed, the compiler records their installed path.
        let version = self.ask(&["-vV"])?;
        let commit = version
            .lines()
            .find_map(|line| line.strip_prefix("commit-hash: "));
        remap(
            &Path::new(&self.ask(&["--print", "sysroot"])?).join("lib/rustlib/src/rust"),
            &format!("/rustc/{}", commit.unwrap_or("unknown")),
        );
        Ok(flags.join("\u{1f}".as_ref()))
    }

    /// Runs the compiler with these arguments and returns its standard output.
    fn ask(&self, question: &[&str]) -> Result<String, Box<dyn Error>> {
        let output = Command::new(&self.rustc)
            .args(question)
            .current_dir(&self.workspace)
            .output()
            .map_err(|why| format!("running {}: {why}", self.rustc.display()))?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Paths of all files of the workspace from which the guest's program is built: its sources, their manifests,
    /// `Cargo.lock` and `rust-toolchain.toml`. A change in one of them requires a new build.
    pub fn sources(&self) -> Result<Vec<PathBuf>, Box<dyn Error>> {
        let list = self.program().with_extension("d");
        let text = fs::read_to_string(&list)
            .map_err(|why| format!("reading {}: {why}", list.display()))?;
        let (_, files) = text
            .split_once(": ")
            .ok_or("a list of sources without a colon")?;
        // A space within a file name is escaped with a backslash.
        let files = files.trim_end().replace("\\ ", "\0");
        let mut sources: Vec<PathBuf> = files
            .split(' ')
            .map(|file| PathBuf::from(file.replace('\0', " ")))
            .filter(|file| file.starts_with(&self.workspace) && !file.starts_with(&self.folder))
            .collect();
        let mut manifests: Vec<PathBuf> = sources
            .iter()
            .filter_map(|file| {
                file.ancestors()
                    .find(|folder| folder.join("Cargo.toml").exists())
            })
            .map(|folder| folder.join("Cargo.toml"))
            .collect();
        manifests.sort();
        manifests.dedup();
        sources.extend(manifests);
        for name in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"] {
            sources.push(self.workspace.join(name));
        }
        Ok(sources)
    }
}
