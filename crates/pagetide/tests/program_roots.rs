//! Tests of roots that contain everything a program needs: their content, what is missing in them, and what is refused
//! before a guest is booted.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{KERNEL, Lab, one_sentence};
use serde_json::Value;

/// Packs the content of a folder as a tar archive.
fn tar(folder: &Path, into: &Path) {
    let status = Command::new("tar")
        .args(["--create", "--dereference", "--file"])
        .arg(into)
        .arg("--directory")
        .arg(folder)
        .arg(".")
        .status()
        .unwrap();
    assert!(status.success());
}

/// Creates a layer of a saved image; each file has its path in the image.
fn layer(folder: &Path, files: &[(&str, &[u8])]) {
    let below = folder.with_extension("files");
    for (path, bytes) in files {
        let path = below.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::create_dir_all(folder).unwrap();
    tar(&below, &folder.join("layer.tar"));
}

/// The shell of this machine and its libraries, each with path and content.
fn shell() -> Vec<(&'static str, Vec<u8>)> {
    [
        ("bin/sh", "/bin/sh"),
        ("lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
        (
            "lib/x86_64-linux-gnu/libc.so.6",
            "/lib/x86_64-linux-gnu/libc.so.6",
        ),
    ]
    .map(|(inside, here)| (inside, fs::read(here).unwrap()))
    .into()
}

/// Creates a saved image with two layers; the second layer removes a file of the first.
fn image(lab: &Lab) -> PathBuf {
    let folder = lab.folder().join("image");
    let shell = shell();
    let mut files: Vec<(&str, &[u8])> = shell
        .iter()
        .map(|(path, bytes)| (*path, bytes.as_slice()))
        .collect();
    files.push(("data/removed", b"from below"));
    files.push(("data/kept", b"kept"));
    layer(&folder.join("a"), &files);
    let above: [(&str, &[u8]); 2] = [("data/.wh.removed", b""), ("data/added", b"added")];
    layer(&folder.join("b"), &above);
    for name in ["a.files", "b.files"] {
        fs::remove_dir_all(folder.join(name)).unwrap();
    }
    let manifest = r#"[{"Config":"c.json","Layers":["a/layer.tar","b/layer.tar"]}]"#;
    fs::write(folder.join("manifest.json"), manifest).unwrap();
    fs::write(folder.join("c.json"), r#"{"architecture":"amd64"}"#).unwrap();
    let saved = lab.folder().join("image.tar");
    tar(&folder, &saved);
    saved
}

fn run<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["run", "--kernel", KERNEL, "--seeds", "1"];
    all.extend(["--memory", "24M", "--swap", "none"]);
    all.extend(options);
    all.push("--");
    all.extend(command);
    all
}

#[test]
fn a_saved_image_runs_and_has_its_layers_and_nothing_of_this_machine() {
    let Some(lab) = Lab::that_runs() else { return };
    image(&lab);
    let list =
        "for f in /* /*/* /*/*/*; do [ -d $f ] || echo $f; done; read a < /data/added; echo $a";
    lab.ends(0, run(&["--root", "oci:image.tar"], &["sh", "-c", list]));
    let records: Value =
        serde_json::from_str(&lab.ends(0, ["list", "records", "--json"]).0).unwrap();
    let id = records[0]["id"].as_str().unwrap();
    let record: Value = serde_json::from_str(&lab.ends(0, ["show", id, "--json"]).0).unwrap();
    let out = record["results"]["texts"]["stdout"].as_str().unwrap();
    let own = |line: &&str| {
        let of_kernel = ["/proc/", "/dev/", "/sys/"];
        !of_kernel.iter().any(|folder| line.starts_with(folder)) && !line.contains('*')
    };
    let mut found: Vec<&str> = out.lines().filter(own).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "/bin/sh",
            "/data/added",
            "/data/kept",
            "/etc/group",
            "/etc/hosts",
            "/etc/nsswitch.conf",
            "/etc/passwd",
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "added",
        ],
        "{out}"
    );
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
}

#[test]
fn what_is_no_program_of_this_machine_and_no_root_is_refused_and_nothing_stays() {
    let lab = Lab::with_own_cache();
    let put = |name: &str, bytes: &[u8]| {
        let path = lab.folder().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let elf = fs::read("/bin/sh").unwrap();
    put("text", b"no program\n");
    let mut arm = elf.clone();
    arm[18..20].copy_from_slice(&183_u16.to_le_bytes());
    put("arm", &arm);
    put("short", &elf[..100]);
    let mut needy = elf.clone();
    let at = needy.windows(10).position(|w| w == b"libc.so.6\0");
    needy[at.unwrap()..][..4].copy_from_slice(b"libq");
    put("needy", &needy);
    let shell = shell();
    let layers: Vec<(&str, &[u8])> = shell
        .iter()
        .map(|(path, bytes)| (*path, bytes.as_slice()))
        .collect();
    layer(&lab.folder().join("whole"), &layers);
    fs::rename(
        lab.folder().join("whole/layer.tar"),
        lab.folder().join("whole.tar"),
    )
    .unwrap();
    let whole = fs::read(lab.folder().join("whole.tar")).unwrap();
    put("cut.tar", &whole[..whole.len() / 2]);
    put("foreign.tar", &whole);
    let refused = |options: &[&str], command: &str, words: &[&str]| {
        let (_, err) = lab.ends(4, run(options, &[command]));
        let last = err.lines().last().unwrap();
        one_sentence(last, words);
        assert!(!err.contains("booting"), "{err}");
    };
    refused(&[], "./text", &["text", "neither an ELF executable"]);
    refused(&[], "./arm", &["arm64", "x86-64"]);
    refused(&[], "./short", &["short", "ELF"]);
    refused(&[], "./needy", &["libq.so.6", "needy"]);
    refused(&["--file", "needy"], "sh", &["libq.so.6", "needy"]);
    refused(
        &["--root", "whole.tar"],
        "absent",
        &["absent", "in the root"],
    );
    refused(&["--root", "cut.tar"], "sh", &["cut.tar"]);
    refused(&["--root", "absent.tar"], "sh", &["absent.tar"]);
    refused(&["--root", "oci:absent.tar"], "sh", &["absent.tar"]);
    refused(
        &["--root", "oci:whole.tar"],
        "sh",
        &["whole.tar", "index.json"],
    );
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
    let roots = fs::read_dir(lab.cache().join("roots"))
        .into_iter()
        .flatten();
    let left: Vec<_> = roots.flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_root_that_lacks_what_its_program_needs_or_is_for_another_machine_is_refused() {
    let lab = Lab::with_own_cache();
    let shell = shell();
    let root = |name: &str, files: &[(&str, &[u8])]| {
        layer(&lab.folder().join(name), files);
        let path = lab.folder().join(name).join("layer.tar");
        fs::rename(path, lab.folder().join(format!("{name}.tar"))).unwrap();
    };
    let mut arm = shell[0].1.clone();
    arm[18..20].copy_from_slice(&183_u16.to_le_bytes());
    root("arm", &[("bin/sh", &arm)]);
    root("alone", &[("bin/sh", &shell[0].1)]);
    root("text", &[("bin/sh", b"no program\n")]);
    root(
        "no-libc",
        &[("bin/sh", &shell[0].1), (shell[1].0, &shell[1].1)],
    );
    for (name, words) in [
        ("arm", ["arm64", "x86-64"]),
        ("alone", ["ld-linux-x86-64.so.2", "in the root"]),
        ("text", ["/bin/sh", "neither an ELF executable"]),
        ("no-libc", ["libc.so.6", "/bin/sh"]),
    ] {
        let archive = format!("{name}.tar");
        let (_, err) = lab.ends(4, run(&["--root", &archive], &["sh"]));
        one_sentence(err.lines().last().unwrap(), &words);
        assert!(!err.contains("booting"), "{err}");
    }
}
