//! Tests of roots of real programs of this machine, and of images of these roots.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pagetide_quantity::Bytes;
use pagetide_root::{Entry, Host, ImageKind, RootError, RootPath, Roots, Tree};

const SPACE: Bytes = Bytes::from_mib(4);

fn inside(text: &str) -> RootPath {
    RootPath::new(text, "/work").unwrap()
}

fn program(word: &str) -> Result<(Tree, RootPath), RootError> {
    let (mut tree, mut host) = (Tree::default(), Host::here()?);
    let program = host.program(&mut tree, word)?;
    tree.complete()?;
    Ok((tree, program))
}

fn debugfs(image: &Path, request: &str) -> String {
    let output = Command::new("/usr/sbin/debugfs")
        .args(["-R", request])
        .arg(image)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_program_is_found_as_a_shell_finds_it_with_its_loader_and_libraries() {
    let (tree, path) = program("sort").unwrap();
    assert!(path.as_str().ends_with("/sort"), "{path}");
    let real = tree.follow(&path).unwrap();
    assert!(matches!(
        tree.get(&real),
        Some(Entry::File {
            executable: true,
            ..
        })
    ));
    // Every program names the loader by this path, whatever the loader's real path is.
    let loader = tree.follow(&inside("/lib64/ld-linux-x86-64.so.2")).unwrap();
    assert!(tree.get(&loader).is_some(), "{loader}");
    let names: Vec<&str> = tree.entries().map(|(path, _)| path.name()).collect();
    assert!(names.contains(&"libc.so.6"), "{names:?}");
    assert!(
        !names.contains(&"shadow") && !names.contains(&"ls"),
        "nothing but what was named: {names:?}"
    );
}

#[test]
fn a_script_takes_along_what_interprets_it() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("plain", "#!/bin/sh\necho\n"),
        ("env", "#!/usr/bin/env -S sh -e\necho\n"),
    ] {
        let path = folder.path().join(name);
        write(&path, text, 0o755);
        let (tree, path) = program(path.to_str().unwrap()).unwrap();
        assert!(tree.get(&path).is_some());
        let shell = tree.follow(&inside("/bin/sh")).unwrap();
        let shell = tree.get(&shell).is_some();
        let other = tree.follow(&inside("/usr/bin/sh")).unwrap();
        assert!(shell || tree.get(&other).is_some(), "{name}");
    }
}

#[test]
fn what_is_no_program_is_refused_in_one_sentence_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("text"), "no program\n", 0o755);
    write(&path("unmarked"), "#!/bin/sh\n", 0o644);
    let mut arm = fs::read("/bin/sh").unwrap();
    arm[18..20].copy_from_slice(&183_u16.to_le_bytes());
    fs::write(path("arm"), &arm).unwrap();
    fs::set_permissions(path("arm"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = |name: &str| {
        program(path(name).to_str().unwrap())
            .unwrap_err()
            .to_string()
    };
    assert!(said("text").contains("neither an ELF executable nor a script"));
    assert!(said("unmarked").contains("not executable"));
    assert!(said("arm").contains("arm64"), "{}", said("arm"));
    assert!(said("absent").contains("absent"));
    let unknown = program("no-such-program-here").unwrap_err().to_string();
    assert!(unknown.contains("no-such-program-here"), "{unknown}");
}

#[test]
fn a_library_that_is_not_here_is_named_with_who_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("needy");
    let mut bytes = fs::read("/bin/sh").unwrap();
    let name = b"libc.so.6\0";
    let at = bytes
        .windows(name.len())
        .position(|window| window == name)
        .unwrap();
    bytes[at..at + 4].copy_from_slice(b"libq");
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let said = program(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(
        said.contains("libq.so.6") && said.contains("needy"),
        "{said}"
    );
}

/// Creates the same folder twice, in different order, at different times, and with different modes.
fn twins() -> [tempfile::TempDir; 2] {
    let twin = |names: Vec<u32>, mode: u32| {
        let folder = tempfile::tempdir().unwrap();
        for number in names {
            let below = folder.path().join(format!("d{}", number % 7));
            fs::create_dir_all(&below).unwrap();
            write(&below.join(format!("f{number}")), &number.to_string(), mode);
        }
        symlink("../../../etc/shadow", folder.path().join("out")).unwrap();
        folder
    };
    [
        twin((0..200).collect(), 0o600),
        twin((0..200).rev().collect(), 0o664),
    ]
}

#[test]
fn the_image_depends_on_nothing_but_its_content() {
    let cache = tempfile::tempdir().unwrap();
    let images = twins().map(|folder| {
        let own = tempfile::tempdir_in(cache.path()).unwrap();
        let (mut tree, mut host) = (Tree::default(), Host::here().unwrap());
        let path = folder.path().to_str().unwrap();
        host.dir(&mut tree, path, Some("data")).unwrap();
        host.program(&mut tree, "sort").unwrap();
        tree.complete().unwrap();
        // The owner and times of the copied file must not get into the image.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let root = Roots::of(own.path()).make(&tree, SPACE, |_| ()).unwrap();
        (fs::read(&root.image).unwrap(), root, own)
    });
    let [(first, root, _own), (second, other, _other)] = images;
    assert_eq!(root.digest, other.digest);
    assert!(first == second, "equal digests, other bytes");
    root.open().unwrap();

    let check = Command::new("/usr/sbin/e2fsck")
        .args(["-fn"])
        .arg(&root.image)
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
    let ours = debugfs(&root.image, "stat /work/data/d0/f0");
    assert!(ours.contains("User:  1000   Group:  1000"), "{ours}");
    assert!(ours.contains("Mode:  0644"), "{ours}");
    let theirs = debugfs(&root.image, "stat /etc/passwd");
    assert!(theirs.contains("User:     0   Group:     0"), "{theirs}");
    let link = debugfs(&root.image, "stat /work/data/out");
    assert!(
        link.contains("../../../etc/shadow"),
        "a link stays a link: {link}"
    );
    let shared = debugfs(&root.image, "stat /tmp");
    assert!(shared.contains("Mode:  01777"), "{shared}");
}

#[test]
fn a_root_is_made_once_and_a_damaged_one_is_thrown_away() {
    let cache = tempfile::tempdir().unwrap();
    let roots = Roots::of(cache.path());
    let mut tree = Tree::default();
    tree.bytes(&inside("a"), b"1").unwrap();
    tree.complete().unwrap();
    let mut said = 0;
    let root = roots.make(&tree, SPACE, |_| said += 1).unwrap();
    assert_eq!(roots.make(&tree, SPACE, |_| said += 1).unwrap(), root);
    assert_eq!(said, 1);
    let wider = roots.make(&tree, Bytes(SPACE.0 * 2), |_| ()).unwrap();
    assert_ne!(wider.digest, root.digest);
    assert_eq!(roots.get(&root.digest).unwrap(), root);
    assert!(matches!(
        roots.get("../roots"),
        Err(RootError::Unknown { .. })
    ));

    let mut bytes = fs::read(&root.image).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&root.image, bytes).unwrap();
    assert!(matches!(root.open(), Err(RootError::Damaged { .. })));
    assert!(matches!(
        roots.get(&root.digest),
        Err(RootError::Unknown { .. })
    ));
}

#[test]
fn an_image_that_is_not_wanted_any_more_is_not_made_and_leaves_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let stop = Arc::new(AtomicBool::new(true));
    let roots = Roots::of(cache.path()).stopping_by(Arc::clone(&stop));
    let mut tree = Tree::default();
    tree.bytes(&inside("a"), b"1").unwrap();
    let said = roots.make(&tree, SPACE, |_| ()).unwrap_err();
    assert!(matches!(said, RootError::Stopped), "{said}");
    let left = fs::read_dir(cache.path().join("roots")).unwrap();
    assert_eq!(left.count(), 0);
    stop.store(false, Ordering::Relaxed);
    roots.make(&tree, SPACE, |_| ()).unwrap();
}

#[test]
fn an_image_gives_back_all_that_was_put_into_it() {
    let cache = tempfile::tempdir().unwrap();
    let mut tree = Tree::default();
    let content = vec![7; 300_000];
    tree.bytes(&inside("a"), &content).unwrap();
    tree.bytes(&inside("empty"), b"").unwrap();
    tree.link(&inside("/short"), "work/a").unwrap();
    let far = "../".repeat(30) + "work/a";
    tree.link(&inside("/long"), &far).unwrap();
    // These are more names than fit in one block of a folder.
    for number in 0..400 {
        let name = format!("/many/a-name-of-some-length-{number}");
        tree.bytes(&inside(&name), name.as_bytes()).unwrap();
    }
    tree.complete().unwrap();
    let root = Roots::of(cache.path()).make(&tree, SPACE, |_| ()).unwrap();
    let image = root.open().unwrap();
    let found = root.entries(&image).unwrap();
    assert_eq!(found[0].path, "/");
    let names: std::collections::BTreeSet<&str> =
        found.iter().map(|entry| entry.path.as_str()).collect();
    let wanted: std::collections::BTreeSet<&str> = tree
        .entries()
        .map(|(path, _)| path.as_str())
        .chain(["/"])
        .collect();
    assert_eq!(names, wanted);
    let of = |path: &str| found.iter().find(|entry| entry.path == path).unwrap();
    assert_eq!(of("/short").kind, ImageKind::Link("work/a".to_owned()));
    assert_eq!(of("/long").kind, ImageKind::Link(far.clone()));
    assert_eq!((of("/work").owner, of("/etc").owner), (1000, 0));
    assert_eq!((of("/tmp").mode, of("/work/a").mode), (0o1777, 0o644));
    let ImageKind::File { size, parts } = &of("/work/a").kind else {
        panic!("{:?}", of("/work/a"));
    };
    let mut bytes = vec![0; usize::try_from(size.next_multiple_of(4096)).unwrap()];
    for (at, from, length) in parts {
        let (at, length) = (
            usize::try_from(*at).unwrap(),
            usize::try_from(*length).unwrap(),
        );
        image
            .read_exact_at(&mut bytes[at..at + length], *from)
            .unwrap();
    }
    bytes.truncate(usize::try_from(*size).unwrap());
    assert_eq!(bytes, content);
    let empty = ImageKind::File {
        size: 0,
        parts: Vec::new(),
    };
    assert_eq!(of("/work/empty").kind, empty);
}

#[test]
fn a_file_given_as_a_folder_and_too_much_data_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tree, mut host) = (Tree::default(), Host::here().unwrap());
    let path = folder.path().to_str().unwrap();
    let said = host.file(&mut tree, path, None).unwrap_err().to_string();
    assert!(said.contains("--dir"), "{said}");
    let said = host.dir(&mut tree, "/etc/passwd", None).unwrap_err();
    assert!(said.to_string().contains("--file"), "{said}");
    let large = folder.path().join("large");
    fs::File::create(&large).unwrap().set_len(2 << 30).unwrap();
    let large = large.to_str().unwrap();
    let said = host.file(&mut tree, large, None).unwrap_err();
    assert!(matches!(said, RootError::TooLarge { .. }), "{said}");
    let said = host.file(&mut tree, "/dev/null", None).unwrap_err();
    assert!(matches!(said, RootError::Special { .. }), "{said}");
    assert!(host.file(&mut tree, "../../etc/passwd", None).is_err());
}

/// Bytes of a tar archive of these entries, each with name, type, and link target or content.
fn archive(entries: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, text) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        // The name is written raw, because the library would refuse a bad name before the code under test does.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        let is_file = kind.is_file();
        if !is_file {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text.as_bytes());
        }
        header.set_size(if is_file { text.len() as u64 } else { 0 });
        header.set_cksum();
        let bytes: &[u8] = if is_file { text.as_bytes() } else { b"" };
        builder.append(&header, bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn unpacked(bytes: &[u8]) -> (Result<Tree, RootError>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root");
    fs::write(&path, bytes).unwrap();
    let spool = folder.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let mut tree = Tree::default();
    let result = tree.archive(&path, &spool).map(|()| tree);
    (result, folder)
}

#[test]
fn an_archive_becomes_a_tree_whatever_compresses_it() {
    use tar::EntryType as Kind;
    let plain = archive(&[
        ("./", Kind::Directory, ""),
        ("./usr/bin/tool", Kind::Regular, "#!/usr/bin/sh\n"),
        ("bin", Kind::Symlink, "usr/bin"),
        ("usr/bin/sh", Kind::Link, "bin/tool"),
        ("/abs/olute", Kind::Regular, "x"),
        ("dev/null", Kind::Char, ""),
    ]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::stream::encode_all(plain.as_slice(), 1).unwrap();
    let mut listings = Vec::new();
    for bytes in [plain, gzip, zstd] {
        let (tree, _folder) = unpacked(&bytes);
        let tree = tree.unwrap();
        assert!(tree.get(&inside("/abs/olute")).is_some());
        assert!(tree.get(&inside("/dev/null")).is_none());
        assert_eq!(tree.program("tool").unwrap().as_str(), "/usr/bin/tool");
        let absent = tree.program("no-such");
        assert!(matches!(absent, Err(RootError::NotInRoot { .. })));
        let names = tree.entries().map(|(path, _)| path.to_string());
        listings.push(names.collect::<Vec<_>>());
    }
    assert!(
        listings.iter().all(|listing| *listing == listings[0]),
        "{listings:?}"
    );
}

#[test]
fn packages_meet_in_one_usr_whichever_folder_they_name() {
    use tar::EntryType as Kind;
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let write = |name: &str, entries: &[(&str, Kind, &str)]| {
        let path = folder.path().join(name);
        fs::write(&path, archive(entries)).unwrap();
        path
    };
    let packages = [
        write(
            "old.tar",
            &[
                ("lib", Kind::Directory, ""),
                ("lib/x/ld.so", Kind::Regular, "loader"),
                ("bin/sh", Kind::Symlink, "dash"),
            ],
        ),
        write("new.tar", &[("usr/bin/dash", Kind::Regular, "shell")]),
    ];
    let mut tree = Tree::default();
    tree.packages(&packages, &spool).unwrap();
    for (path, real) in [
        ("/lib/x/ld.so", "/usr/lib/x/ld.so"),
        ("/bin/sh", "/usr/bin/dash"),
    ] {
        let found = tree.follow(&inside(path)).unwrap();
        assert_eq!(found, inside(real));
        assert!(tree.get(&found).is_some(), "{real}");
    }
    assert!(tree.get(&inside("/lib64")).is_some());
}

#[test]
fn a_hostile_archive_writes_nothing_outside_and_leads_nowhere() {
    use tar::EntryType as Kind;
    for (name, kind, text) in [
        ("../evil", Kind::Regular, "x"),
        ("a/../../evil", Kind::Regular, "x"),
        ("/../evil", Kind::Regular, "x"),
        ("..", Kind::Directory, ""),
        ("twin", Kind::Link, "../../etc/passwd"),
        ("twin", Kind::Link, "/etc/passwd"),
    ] {
        let (tree, folder) = unpacked(&archive(&[(name, kind, text)]));
        assert!(tree.is_err(), "{name} {text}");
        assert!(!folder.path().join("evil").exists());
        let spool = fs::read_dir(folder.path().join("spool")).unwrap();
        assert_eq!(spool.count(), 0);
    }
    // The name leads through a link out of the root. The file is written inside the root only.
    let name = format!("out/pagetide-evil-{}", std::process::id());
    let (tree, folder) = unpacked(&archive(&[
        ("out", Kind::Symlink, "../../../../../../tmp"),
        (&name, Kind::Regular, "x"),
        ("dev", Kind::Symlink, "/etc"),
    ]));
    let mut tree = tree.unwrap();
    let evil = name.replace("out", "/tmp");
    assert!(tree.get(&inside(&evil)).is_some());
    tree.complete().unwrap();
    let dev = tree.get(&inside("/dev"));
    assert!(matches!(dev, Some(Entry::Folder { .. })));
    let roots = Roots::of(folder.path());
    let root = roots.make(&tree, SPACE, |_| ()).unwrap();
    assert!(debugfs(&root.image, &format!("stat {evil}")).contains("Size: 1"));
    assert!(!Path::new(&evil).exists());
    // An archive that is truncated anywhere gives an error or fewer names, never a panic.
    let whole = archive(&[("a", Kind::Regular, "text"), ("b", Kind::Regular, "text")]);
    for length in (0..whole.len()).step_by(97) {
        let _ = unpacked(&whole[..length]);
    }
}

#[test]
fn hostile_packages_lead_nowhere_and_bring_no_devices() {
    use tar::EntryType as Kind;
    let put_together = |entries: &[(&str, Kind, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join("spool");
        fs::create_dir(&spool).unwrap();
        let path = folder.path().join("hostile.tar");
        fs::write(&path, archive(entries)).unwrap();
        let mut tree = Tree::default();
        let done = tree.packages(&[path], &spool).map(|()| tree);
        assert!(!folder.path().join("evil").exists() && !spool.join("evil").exists());
        (done, folder)
    };
    for (name, kind, text) in [
        ("../evil", Kind::Regular, "x"),
        ("./usr/../../evil", Kind::Regular, "x"),
        ("lib/../../../evil", Kind::Regular, "x"),
        ("usr/bin/../..", Kind::Directory, ""),
        ("twin", Kind::Link, "../../../etc/passwd"),
        ("twin", Kind::Link, "/etc/shadow"),
    ] {
        let why = put_together(&[(name, kind, text)])
            .0
            .unwrap_err()
            .to_string();
        assert!(!why.contains('\n'), "{name} {text}: {why}");
    }
    // Devices and pipes are not added, and links that lead out of the root lead to paths inside it.
    let evil = format!("out/pagetide-evil-{}", std::process::id());
    let (tree, folder) = put_together(&[
        ("dev/mem", Kind::Char, ""),
        ("usr/lib/disk", Kind::Block, ""),
        ("usr/lib/pipe", Kind::Fifo, ""),
        ("out", Kind::Symlink, "/tmp"),
        (&evil, Kind::Regular, "x"),
        ("lib", Kind::Symlink, "/etc"),
        ("usr/lib/own", Kind::Symlink, "/etc/shadow"),
    ]);
    let mut tree = tree.unwrap();
    for device in ["/dev/mem", "/usr/lib/disk", "/usr/lib/pipe"] {
        assert!(tree.get(&inside(device)).is_none(), "{device}");
    }
    assert!(!Path::new(&evil.replace("out", "/tmp")).exists());
    let kept = evil.replace("out", "/tmp");
    assert!(tree.get(&inside(&kept)).is_some(), "it lies inside");
    tree.complete().unwrap();
    let root = Roots::of(folder.path()).make(&tree, SPACE, |_| ()).unwrap();
    let open = root.open().unwrap();
    for entry in root.entries(&open).unwrap() {
        if let ImageKind::File { .. } = entry.kind {
            assert_ne!(entry.path.as_str(), "/etc/shadow");
        }
    }
    let said = debugfs(&root.image, "stat /usr/lib/own");
    assert!(said.contains("symlink"), "{said}");
}

#[test]
fn an_image_names_nothing_of_this_machine_but_what_was_named() {
    let cache = tempfile::Builder::new()
        .prefix("folder-of-the-cache-")
        .tempdir()
        .unwrap();
    let data = tempfile::Builder::new()
        .prefix("folder-of-the-data-")
        .tempdir()
        .unwrap();
    write(&data.path().join("named"), "text", 0o600);
    write(&data.path().join("beside"), "not named", 0o600);
    let (mut tree, mut host) = (Tree::default(), Host::here().unwrap());
    let path = data.path().join("named");
    host.file(&mut tree, path.to_str().unwrap(), Some("data"))
        .unwrap();
    host.program(&mut tree, "sort").unwrap();
    tree.complete().unwrap();
    let root = Roots::of(cache.path()).make(&tree, SPACE, |_| ()).unwrap();
    let image = fs::read(&root.image).unwrap();
    let has = |text: &str| {
        let text = text.as_bytes();
        image.windows(text.len()).any(|window| window == text)
    };
    assert!(has("data"), "what is named is there");
    for text in ["folder-of-the-", "beside", "not named", ".making-"] {
        assert!(!has(text), "{text}");
    }
    // The root has only libraries, the program with its data, and files in `/etc`.
    let open = root.open().unwrap();
    for entry in root.entries(&open).unwrap() {
        if let ImageKind::File { .. } = entry.kind {
            let path = entry.path.as_str();
            let is_library = path.contains(".so");
            let is_own = matches!(path, "/work/data" | "/usr/bin/sort");
            assert!(is_library || is_own || path.starts_with("/etc/"), "{path}");
        }
    }
}
