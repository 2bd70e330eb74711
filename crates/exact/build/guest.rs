//! Builds the guest's program so that its bytes depend on its own sources, the toolchain and the C library alone.
//!
//! Records and snapshots are valid for one guest, which its digest names. Therefore nothing gets into the program that
//! differs between two builds of the same sources: not the folders they lie in, nor the environment, nor the profile that
//! the tool itself is built with. A test builds it in another folder with another home and compares.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package, and the program it makes.
const PACKAGE: &str = "pagetide-guest";
/// Whatever the machine: the guest is an x86-64 machine.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The profile of the workspace's manifest that says how it is compiled.
const PROFILE: &str = "guest";
/// All that a build sees of the environment beside what [`Recipe`] names.
const ENVIRONMENT: [&str; 9] = [
    "PATH",
    "TMPDIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    // The outer build's limit on processes.
    "CARGO_MAKEFLAGS",
    "CARGO_NET_OFFLINE",
    "https_proxy",
    "HTTPS_PROXY",
    "SSL_CERT_FILE",
];

/// Where things lie for a build. None of it changes the program's bytes.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The workspace.
    pub workspace: PathBuf,
    /// Folder of what is built.
    pub folder: PathBuf,
    /// Program that builds packages.
    pub cargo: PathBuf,
    /// The compiler.
    pub rustc: PathBuf,
    /// The user's home.
    pub home: PathBuf,
    /// Where cargo keeps other people's packages.
    pub cargo_home: PathBuf,
}

/// The user's home.
pub fn home() -> Result<PathBuf, Box<dyn Error>> {
    Ok(env::home_dir().ok_or("the user has no home: set HOME")?)
}

/// Where cargo keeps other people's packages.
pub fn cargo_home() -> Result<PathBuf, Box<dyn Error>> {
    match env::var_os("CARGO_HOME") {
        Some(folder) => Ok(folder.into()),
        None => Ok(home()?.join(".cargo")),
    }
}

impl Recipe {
    /// Builds the program and returns where it lies.
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
            // C libraries that others of its libraries bring along: none of them gets into the program, as a test sees.
            // Optimising them would take most of the build.
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

    /// The compiler's flags, as cargo wants them: separated by a control character.
    fn flags(&self) -> Result<OsString, Box<dyn Error>> {
        let mut flags: Vec<OsString> = [
            "-Ctarget-feature=+crt-static",
            "-Crelocation-model=static",
            "-Clink-arg=-Wl,--build-id=none",
        ]
        .map(OsString::from)
        .into();
        // Of several that fit, the last is taken.
        let mut remap = |from: &Path, to: &str| {
            let mut flag = OsString::from("--remap-path-prefix=");
            flag.push(from);
            flag.push("=");
            flag.push(to);
            flags.push(flag);
        };
        remap(&self.workspace, "/pagetide");
        remap(&self.cargo_home, "/cargo");
        // The folder below is named by the registry or its mirror.
        let registries = fs::read_dir(self.cargo_home.join("registry/src"));
        for registry in registries.into_iter().flatten().flatten() {
            remap(&registry.path(), "/registry");
        }
        remap(&self.folder, "/target");
        // Where the standard library's sources are installed, the compiler names them by their folder.
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

    /// What the compiler says of itself.
    fn ask(&self, question: &[&str]) -> Result<String, Box<dyn Error>> {
        let output = Command::new(&self.rustc)
            .args(question)
            .current_dir(&self.workspace)
            .output()
            .map_err(|why| format!("running {}: {why}", self.rustc.display()))?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// All files that the program was made from: when one changes, it must be built again.
    pub fn sources(&self) -> Result<Vec<PathBuf>, Box<dyn Error>> {
        let list = self.program().with_extension("d");
        let text = fs::read_to_string(&list)
            .map_err(|why| format!("reading {}: {why}", list.display()))?;
        let (_, files) = text
            .split_once(": ")
            .ok_or("a list of sources without a colon")?;
        // A space within a name is written with a backslash before it.
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
