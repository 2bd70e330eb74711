//! Tests of archives that are larger than they look. They are refused in one sentence that names the limit, before they
//! take memory or time.

use std::fs;
use std::io::Write;
use std::path::Path;

use pagetide_root::{RootError, RootPath, Tree};
use tar::EntryType as Kind;

/// Header of a member of a tar archive.
fn header(kind: Kind, name: &str, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(size);
    header.set_cksum();
    header
}

/// Header and content of a member, padded to whole blocks.
fn member(kind: Kind, name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, name, content.len() as u64).as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// Checks the message on an archive that repeats these bytes `times` times, both as a root and as a saved image.
fn refused(piece: impl Fn(usize) -> Vec<u8>, times: usize, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    let file = fs::File::create(&path).unwrap();
    let mut packed = zstd::Encoder::new(file, 1).unwrap();
    for number in 0..times {
        packed.write_all(&piece(number)).unwrap();
    }
    packed.finish().unwrap();
    let read = |name: &str, of: &dyn Fn(&mut Tree, &Path) -> Result<(), RootError>| {
        let spool = folder.path().join(name);
        fs::create_dir(&spool).unwrap();
        let said = of(&mut Tree::default(), &spool).unwrap_err().to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.len() < 400, "{said}");
        for word in words {
            assert!(said.contains(word), "{word} is not in {said}");
        }
    };
    read("root", &|tree, spool| tree.archive(&path, spool));
    read("image", &|tree, spool| tree.image(&path, spool));
}

#[test]
fn a_long_name_is_not_read_to_its_end() {
    // The header states a length of 3 GiB, but the archive is shorter, so reading it fully would report a truncated
    // archive.
    let claim = |kind| {
        move |number| match number {
            0 => header(kind, "././@LongLink", 3 << 30).as_bytes().to_vec(),
            _ => vec![b'a'; 1 << 20],
        }
    };
    for kind in [Kind::GNULongName, Kind::GNULongLink, Kind::XHeader] {
        refused(claim(kind), 3, &["archive", "names", "1 MiB"]);
    }
}

#[test]
fn a_path_of_many_folders_and_one_of_many_bytes_are_refused_and_not_quoted() {
    let pax = |path: &str| {
        let mut record = format!("path={path}\n");
        let mut length = record.len() + 1;
        while length != format!("{length} {record}").len() {
            length = format!("{length} {record}").len();
        }
        record.insert_str(0, &format!("{length} "));
        let mut bytes = member(Kind::XHeader, "x", record.as_bytes());
        bytes.extend(member(Kind::Regular, "y", b""));
        bytes
    };
    let words = ["archive", "2048 bytes or 128 folders"];
    refused(|_| pax(&"a/".repeat(100_000)), 1, &words);
    refused(|_| pax(&"a/".repeat(129)), 1, &words);
    refused(|_| pax(&"bc".repeat(1100)), 1, &words);
    let long = RootPath::new(&"a/".repeat(100_000), "").unwrap_err();
    assert!(long.to_string().len() < 300, "{long}");
    let mut tree = Tree::default();
    let link = RootPath::new("/link", "").unwrap();
    assert!(tree.link(&link, &"../".repeat(1000)).is_err());
    // This is the deepest path allowed.
    let deep = RootPath::new(&"/a".repeat(128), "").unwrap();
    tree.bytes(&deep, b"").unwrap();
    assert!(deep.join("b").is_err());
}

#[test]
#[ignore = "test-all"]
fn more_members_or_longer_names_than_a_root_may_have_are_refused() {
    let one = member(Kind::Directory, "./", b"");
    refused(|_| one.clone(), 250_001, &["250000 members"]);
    let named = |number: usize| {
        let name = format!("{number}/{}\0", vec!["n".repeat(240); 8].join("/"));
        let mut bytes = member(Kind::GNULongName, "././@LongLink", name.as_bytes());
        bytes.extend(&one);
        bytes
    };
    refused(named, 36_000, &["64 MiB"]);
}

#[test]
#[ignore = "test-all"]
fn what_a_tree_takes_for_each_name_does_not_grow_with_the_names_that_are_there() {
    // If all names were searched for each name, this would take 10^11 steps.
    let mut tree = Tree::default();
    let names = 100_000_u64;
    let path = |number: u64| RootPath::new(&format!("/{}/{number}", number % 100), "").unwrap();
    for number in 0..names {
        tree.bytes(&path(number), b"x").unwrap();
        assert_eq!(tree.size().0, number + 1);
    }
    for number in 0..names {
        tree.bytes(&path(number), b"yy").unwrap();
    }
    assert_eq!(tree.size().0, 2 * names);
    let most = (0..250_000).map(|number| RootPath::new(&format!("/more/{number}"), "").unwrap());
    let said = most
        .map(|path| tree.bytes(&path, b""))
        .find_map(Result::err)
        .unwrap();
    assert!(said.to_string().contains("250000 names"), "{said}");
}

#[test]
#[ignore = "test-all"]
fn a_layer_that_removes_many_names_one_by_one_takes_no_longer_than_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let count = 40_000;
    let layer = |name: &str, names: &dyn Fn(usize) -> Vec<String>| {
        let mut bytes = Vec::new();
        for number in 0..count {
            for name in names(number) {
                bytes.extend(member(Kind::Symlink, &name, b""));
            }
        }
        fs::create_dir_all(folder.path().join(name)).unwrap();
        member(Kind::Regular, &format!("{name}/layer.tar"), &bytes)
    };
    let mut image = layer("below", &|number| vec![format!("d/{number}")]);
    // Half of the files are removed by name. Each of the new files comes after a removal of the whole folder's content.
    image.extend(layer("above", &|number| match number % 2 {
        0 => vec![format!("d/.wh.{number}")],
        _ => vec!["e/.wh..wh..opq".to_owned(), format!("e/{number}")],
    }));
    let manifest = r#"[{"Layers":["below/layer.tar","above/layer.tar"]}]"#;
    image.extend(member(Kind::Regular, "manifest.json", manifest.as_bytes()));
    let path = folder.path().join("image");
    fs::write(&path, image).unwrap();
    let spool = folder.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let mut tree = Tree::default();
    tree.image(&path, &spool).unwrap();
    let names: Vec<&str> = tree.entries().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names.len(), 2 + count);
    assert!(names.contains(&"/d/1") && names.contains(&"/e/1") && !names.contains(&"/d/0"));
}
