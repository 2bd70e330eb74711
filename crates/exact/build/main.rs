//! Builds the embedded files of the exact arena: the emulator's clock and plugins, and the guest's program.

mod guest;
mod object;

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    for (folder, source, options, object) in [
        ("preload", "preload/clock.rs", &[][..], "clock.so"),
        ("plugin", "plugin/profile.rs", object::FAST, "profile.so"),
        ("plugin", "plugin/nodes.rs", object::FAST, "nodes.so"),
    ] {
        object::build(folder, source, options, &out.join(object))?;
    }

    // The plugin is compiled with the constants of recorded references.
    println!("cargo::rerun-if-changed=../profile/src/references/form.rs");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let workspace = here.ancestors().nth(2).ok_or("the workspace is gone")?;
    let recipe = guest::Recipe {
        workspace: workspace.to_owned(),
        folder: common_folder(&out).join("guest-program"),
        cargo: variable("CARGO")?.into(),
        rustc: variable("RUSTC")?.into(),
        home: guest::home()?,
        cargo_home: guest::cargo_home()?,
    };
    let built = recipe.build()?;
    fs::copy(&built, out.join("guest"))?;
    for source in recipe.sources()? {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    println!("cargo::rerun-if-changed=build");
    Ok(())
}

/// Folder shared by builds of all profiles, so that the guest's program is built once and all profiles embed the same
/// bytes.
fn common_folder(out: &Path) -> &Path {
    out.ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").exists())
        .unwrap_or(out)
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or(format!("cargo did not set {name}"))
}
