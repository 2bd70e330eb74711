//! Compiles the parts that run inside the emulator, its clock and its two plugins, to shared objects. The arena embeds
//! all of them.

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

use crate::variable;

/// Options for the plugins, whose callbacks run millions of times a second. The clock has none of them: its bytes are part of
/// what determines a snapshot.
pub const FAST: &[&str] = &["opt-level=3", "codegen-units=1"];

/// Compiles the source file `source` and its modules, all in `folder`, to the shared object `out`. `options` are further
/// options of code generation.
pub fn build(
    folder: &str,
    source: &str,
    options: &[&str],
    out: &Path,
) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={folder}");
    let mut rustc = Command::new(variable("RUSTC")?);
    // The flags of the workspace are not used: they link statically, and this object must be dynamic.
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--target"]);
    rustc.arg(variable("TARGET")?);
    for option in [
        "panic=abort",
        "opt-level=2",
        "strip=symbols",
        "link-arg=-nostdlib",
        "link-arg=-nostartfiles",
    ] {
        rustc.args(["-C", option]);
    }
    for option in options {
        rustc.args(["-C", option]);
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let status = rustc.arg("-o").arg(out).arg(source).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("compiling {source}: {status}").into())
    }
}
