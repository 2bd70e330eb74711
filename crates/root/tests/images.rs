//! Tests of saved container images as roots: what layers add, replace and remove; hostile images; files that are not
//! images.

use std::fmt::Write as _;
use std::fs;

use pagetide_quantity::Bytes;
use pagetide_root::{Entry, RootError, RootPath, Tree};
use sha2::{Digest, Sha256};
use tar::EntryType as Kind;

/// Bytes of a tar archive of these entries, each with name, type, and link target or content.
fn archive(entries: &[(&str, Kind, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, text) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        // The name is written raw, because the library would refuse a bad name before the code under test does.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        let bytes: &[u8] = if kind.is_file() { text } else { b"" };
        if !kind.is_file() {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text);
        }
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn digest(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unpacked(bytes: &[u8]) -> (Result<Tree, RootError>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.tar");
    fs::write(&path, bytes).unwrap();
    let spool = folder.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let mut tree = Tree::default();
    let result = tree.image(&path, &spool).map(|()| tree);
    (result, folder)
}

/// Bytes of the output of `docker save` for these layers.
fn saved(layers: &[Vec<u8>], architecture: &str) -> Vec<u8> {
    let names: Vec<String> = (0..layers.len())
        .map(|n| format!("{n}/layer.tar"))
        .collect();
    let manifest = serde_json::json!([{ "Config": "c.json", "Layers": names }]).to_string();
    let config = serde_json::json!({ "architecture": architecture }).to_string();
    let mut entries = vec![
        ("manifest.json", Kind::Regular, manifest.as_bytes()),
        ("c.json", Kind::Regular, config.as_bytes()),
    ];
    for (name, layer) in names.iter().zip(layers) {
        entries.push((name, Kind::Regular, layer));
    }
    archive(&entries)
}

/// Bytes of an image in the OCI layout with compressed layers; `spoil` may change the blobs.
fn layout(layers: &[Vec<u8>], spoil: impl Fn(usize, &mut Vec<u8>)) -> Vec<u8> {
    let mut blobs: Vec<(String, Vec<u8>)> = Vec::new();
    let mut blob = |bytes: Vec<u8>| {
        let sum = digest(&bytes);
        blobs.push((format!("blobs/sha256/{sum}"), bytes));
        serde_json::json!({ "digest": format!("sha256:{sum}") })
    };
    let config = blob(br#"{"architecture":"amd64"}"#.to_vec());
    let mut descriptors = Vec::new();
    for layer in layers {
        descriptors.push(blob(zstd::stream::encode_all(layer.as_slice(), 1).unwrap()));
    }
    let manifest = serde_json::json!({ "config": config, "layers": descriptors });
    let mut own = blob(manifest.to_string().into_bytes());
    own["platform"] = serde_json::json!({ "architecture": "amd64" });
    let mut other = own.clone();
    other["platform"]["architecture"] = "arm64".into();
    let index = serde_json::json!({ "manifests": [other, own] }).to_string();
    for (place, (_, bytes)) in blobs.iter_mut().enumerate() {
        spoil(place, bytes);
    }
    let mut entries = vec![("index.json", Kind::Regular, index.as_bytes())];
    for (name, bytes) in &blobs {
        entries.push((name, Kind::Regular, bytes));
    }
    archive(&entries)
}

fn two_layers() -> Vec<Vec<u8>> {
    let below = archive(&[
        ("etc/", Kind::Directory, b""),
        ("etc/secret", Kind::Regular, b"from below"),
        ("etc/kept", Kind::Regular, b"old"),
        ("data/old/a", Kind::Regular, b"1"),
        ("data/old/b", Kind::Regular, b"2"),
        ("thing/x", Kind::Regular, b"a folder first"),
        ("bin", Kind::Symlink, b"usr/bin"),
        ("usr/bin/tool", Kind::Regular, b"#!/bin/sh\n"),
    ]);
    let above = archive(&[
        ("etc/.wh.secret", Kind::Regular, b""),
        ("etc/kept", Kind::Regular, b"newer"),
        ("data/old/new", Kind::Regular, b"3"),
        ("data/old/.wh..wh..opq", Kind::Regular, b""),
        ("thing", Kind::Regular, b"then a file"),
        ("bin/other", Kind::Regular, b"through the link"),
    ]);
    vec![below, above]
}

#[test]
fn layers_add_replace_and_remove_whichever_program_saved_them() {
    let layers = two_layers();
    for bytes in [saved(&layers, "amd64"), layout(&layers, |_, _| ())] {
        let (tree, _folder) = unpacked(&bytes);
        let tree = tree.unwrap();
        let names: Vec<&str> = tree.entries().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            names,
            [
                "/bin",
                "/data",
                "/data/old",
                "/data/old/new",
                "/etc",
                "/etc/kept",
                "/thing",
                "/usr",
                "/usr/bin",
                "/usr/bin/other",
                "/usr/bin/tool",
            ]
        );
        let size = |path: &str| match tree.get(&RootPath::new(path, "").unwrap()) {
            Some(Entry::File { size, .. }) => *size,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!((size("/etc/kept"), size("/thing")), (Bytes(5), Bytes(11)));
    }
}

#[test]
fn an_image_that_is_hostile_writes_and_removes_nothing_outside() {
    for (name, kind, text) in [
        ("../evil", Kind::Regular, "x"),
        ("a/../../evil", Kind::Regular, "x"),
        ("../.wh.spool", Kind::Regular, ""),
        (".wh...", Kind::Regular, ""),
        (".wh..", Kind::Regular, ""),
        (".wh.", Kind::Regular, ""),
        ("twin", Kind::Link, "../../etc/passwd"),
        ("twin", Kind::Link, "/etc/passwd"),
    ] {
        let layer = archive(&[(name, kind, text.as_bytes())]);
        let (tree, folder) = unpacked(&saved(&[layer], "amd64"));
        assert!(tree.is_err(), "{name} {text}: {tree:?}");
        assert!(!folder.path().join("evil").exists());
        assert!(folder.path().join("image.tar").exists());
    }
    // Members of the image are written to numbered files, whatever their names are.
    let outside = archive(&[
        ("../evil", Kind::Regular, b"x"),
        ("/evil", Kind::Regular, b"x"),
        ("link", Kind::Symlink, b"/etc/passwd"),
        ("manifest.json", Kind::Regular, br#"[{"Layers":["link"]}]"#),
    ]);
    let (tree, folder) = unpacked(&outside);
    assert!(tree.unwrap_err().to_string().contains("`link`"));
    assert!(!folder.path().join("evil").exists());
    // A layer writes through a link, but only inside the root.
    let name = format!("out/pagetide-evil-{}", std::process::id());
    let layer = archive(&[
        ("out", Kind::Symlink, b"../../../../../../tmp"),
        (&name, Kind::Regular, b"x"),
        ("out/.wh.passwd", Kind::Regular, b""),
    ]);
    let (tree, _folder) = unpacked(&saved(&[layer], "amd64"));
    let evil = name.replace("out", "/tmp");
    let path = RootPath::new(&evil, "").unwrap();
    assert!(tree.unwrap().get(&path).is_some());
    assert!(!std::path::Path::new(&evil).exists());
}

#[test]
fn what_is_no_image_for_this_machine_is_refused_in_one_sentence() {
    let said = |bytes: &[u8]| {
        let said = unpacked(bytes).0.unwrap_err().to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    let layers = two_layers();
    assert!(said(&saved(&layers, "arm64")).contains("arm64"));
    assert!(said(&archive(&[("a", Kind::Regular, b"x")])).contains("index.json"));
    assert!(said(&saved(&[], "amd64")).contains("no layers"));
    let lies = |_: usize, bytes: &mut Vec<u8>| bytes.push(0);
    assert!(said(&layout(&layers, lies)).contains("not what its name says"));
    let text = br#"[{"Layers":["absent/layer.tar"]}]"#;
    let absent = archive(&[("manifest.json", Kind::Regular, text)]);
    assert!(said(&absent).contains("absent/layer.tar"));
    let two = br#"[{"Layers":["a"]},{"Layers":["b"]}]"#;
    assert!(said(&archive(&[("manifest.json", Kind::Regular, two)])).contains("2 images"));
    assert!(said(&archive(&[("manifest.json", Kind::Regular, b"{")])).contains("manifest.json"));
    // An image that is truncated or damaged anywhere gives an error or a result, never a panic.
    let whole = saved(&layers, "amd64");
    for length in (0..whole.len()).step_by(997) {
        let _ = unpacked(&whole[..length]);
    }
    for at in (0..whole.len()).step_by(601) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        let _ = unpacked(&bytes);
    }
}
