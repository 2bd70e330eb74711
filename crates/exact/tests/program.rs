//! Tests that the guest's program depends only on its own sources, the toolchain and the C library.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

#[path = "../build/guest.rs"]
mod guest;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pagetide_exact::program::PROGRAM;

/// Copies the files of the workspace that a build reads to another folder.
fn copy_workspace(from: &Path, to: &Path) {
    for name in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "crates"] {
        let done = Command::new("cp")
            .arg("-a")
            .args([from.join(name), to.join(name)])
            .status();
        assert!(done.unwrap().success(), "{name}");
    }
}

/// Creates a home folder of another name with the packages of the real one.
fn second_home(real: &Path, home: &Path) -> PathBuf {
    let cargo_home = home.join("a cargo");
    fs::create_dir_all(&cargo_home).unwrap();
    std::os::unix::fs::symlink(real.join("registry"), cargo_home.join("registry")).unwrap();
    cargo_home
}

#[test]
#[ignore = "test-all"]
fn another_folder_another_home_and_a_changed_report_give_the_same_guest() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("somewhere else/deeper");
    fs::create_dir_all(&copy).unwrap();
    copy_workspace(workspace, &copy);
    let report = copy.join("crates/report/src/lib.rs");
    let changed = fs::read_to_string(&report).unwrap() + "\n/// New.\npub fn new() {}\n";
    fs::write(&report, changed).unwrap();
    let recipe = guest::Recipe {
        folder: folder.path().join("built"),
        cargo: env!("CARGO").into(),
        rustc: Path::new(env!("CARGO")).with_file_name("rustc"),
        home: folder.path().join("home"),
        cargo_home: second_home(&guest::cargo_home().unwrap(), &folder.path().join("home")),
        workspace: copy,
    };
    let again = fs::read(recipe.build().unwrap()).unwrap();
    assert_eq!(again.len(), PROGRAM.len());
    assert!(again == PROGRAM, "the same sources gave two programs");
    let sources = recipe.sources().unwrap();
    let is_there = |part: &str| sources.iter().any(|file| file.ends_with(part));
    assert!(is_there("crates/guest/src/main.rs") && is_there("crates/scenario/Cargo.toml"));
    assert!(!is_there("crates/report/src/lib.rs"));
}

#[test]
fn the_guest_knows_no_folder_of_this_machine() {
    let home = guest::home().unwrap();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    for folder in [home.as_path(), workspace, &guest::cargo_home().unwrap()] {
        let name = folder.as_os_str().as_encoded_bytes();
        // Shorter names such as `/` would occur anywhere.
        if name.len() > 3 {
            let found = PROGRAM.windows(name.len()).any(|bytes| bytes == name);
            assert!(!found, "{} is in the guest's program", folder.display());
        }
    }
    assert!(PROGRAM.starts_with(b"\x7fELF"));
}

#[test]
fn the_guest_has_nothing_of_a_library_in_c_that_is_built_without_optimisation() {
    let has = |text: &str| {
        PROGRAM
            .windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    };
    // zstd contains this error message if one of its functions is linked. The tool contains zstd, but is built in
    // another way.
    let error = "Src size is incorrect";
    assert!(!has(error));
    assert_eq!(zstd::zstd_safe::get_error_name(usize::MAX - 71), error);
    // Checks that the search itself works.
    assert!(has("pagetide"));
}
