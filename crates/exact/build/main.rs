//! Builds the embedded files of the exact arena: the emulator's clock and plugins.

mod object;

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    for (folder, source, object) in [
        ("preload", "preload/clock.rs", "clock.so"),
        ("plugin", "plugin/profile.rs", "profile.so"),
        ("plugin", "plugin/nodes.rs", "nodes.so"),
    ] {
        object::build(folder, source, &out.join(object))?;
    }
    // The plugin is compiled with the constants of recorded references.
    println!("cargo::rerun-if-changed=../profile/src/references/form.rs");
    println!("cargo::rerun-if-changed=build");
    Ok(())
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or(format!("cargo did not set {name}"))
}
