//! Tests of scripts and interpreters, and of the parts of interpreters' libraries that are added.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use pagetide_root::{Contents, Entry, Host, Installation, Roots, Source, Tree};

fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Bytes of a compiled module with a mark. The header describes its source, with the modification time moved by `later`
/// seconds.
fn compiled(source: &Path, later: u32) -> Vec<u8> {
    let about = fs::metadata(source).unwrap();
    let time = u32::try_from(about.mtime()).unwrap() + later;
    let size = u32::try_from(about.len()).unwrap();
    let mut bytes = vec![1, 2, b'\r', b'\n', 0, 0, 0, 0];
    bytes.extend(time.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(b"code");
    bytes
}

/// An imitation of an installed Python, whose executable is another program.
struct Python {
    folder: tempfile::TempDir,
}

impl Python {
    fn new() -> Self {
        let python = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let program = python.path("py/bin/python3.9");
        write(&program, fs::read("/bin/true").unwrap());
        executable(&program);
        symlink("python3.9", python.path("py/bin/python3")).unwrap();
        for (name, text) in [
            ("os.py", ""),
            ("json/__init__.py", ""),
            ("json/tool.py", ""),
            ("test/big.py", ""),
            ("idlelib/idle.py", ""),
            ("tkinter/__init__.py", ""),
            ("config-3.9-x/libpython.a", ""),
            ("ctypes/test/t.py", ""),
            ("lib-dynload/_ssl.cpython-39.so", ""),
            ("lib-dynload/_tkinter.cpython-39.so", ""),
            (
                "site-packages/used/__init__.py",
                "from other import x\nimport os, json\n",
            ),
            ("site-packages/used/deep/data.bin", "data"),
            ("site-packages/other.py", "import absent"),
            ("site-packages/unused/__init__.py", ""),
            ("site-packages/bare/part/x.py", ""),
            (
                "site-packages/Used-1.dist-info/RECORD",
                "used/__init__.py,,\n",
            ),
            (
                "site-packages/unused-1.dist-info/RECORD",
                "unused/__init__.py,,\n",
            ),
        ] {
            write(&python.library(name), text);
        }
        python
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn library(&self, name: &str) -> PathBuf {
        self.path("py/lib/python3.9").join(name)
    }

    /// The command inside the root, the paths of its files below the folder, and the tree.
    fn brings(&self, words: &[&str]) -> (Vec<String>, Vec<String>, Tree) {
        let mut tree = Tree::default();
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let mut host = Host::here().unwrap();
        let command = host.command(&mut tree, &words).unwrap();
        let base = self.folder.path().to_str().unwrap();
        let files = tree
            .entries()
            .filter(|(_, entry)| !matches!(entry, Entry::Folder { .. }));
        let names = files.filter_map(|(path, _)| path.as_str().strip_prefix(base));
        let names = names.map(|name| name.trim_start_matches('/').to_owned());
        (command, names.collect(), tree)
    }
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|other| other.ends_with(name))
}

#[test]
fn a_script_of_python_brings_its_library_and_the_packages_that_it_names_and_no_others() {
    let python = Python::new();
    let job = python.path("job.py");
    write(
        &job,
        "import used.deep\nimport beside\ntry: import bare.part\nexcept: pass\n",
    );
    write(&python.path("beside.py"), "import json");
    write(&python.path("not_beside.py"), "");
    let program = python.path("py/bin/python3");
    let (program, job) = (program.to_str().unwrap(), job.to_str().unwrap());
    let (command, names, _) = python.brings(&[program, "-u", job, "x"]);
    assert_eq!(command, [program, "-u", job, "x"]);
    for name in [
        "py/bin/python3",
        "py/bin/python3.9",
        "python3.9/os.py",
        "json/tool.py",
        "lib-dynload/_ssl.cpython-39.so",
        "site-packages/used/__init__.py",
        "site-packages/used/deep/data.bin",
        "site-packages/other.py",
        "site-packages/bare/part/x.py",
        "site-packages/Used-1.dist-info/RECORD",
        "job.py",
        "beside.py",
    ] {
        assert!(has(&names, name), "{name} is not in {names:?}");
    }
    for name in [
        "test/big.py",
        "idlelib/idle.py",
        "tkinter/__init__.py",
        "libpython.a",
        "ctypes/test/t.py",
        "_tkinter.cpython-39.so",
        "unused/__init__.py",
        "unused-1.dist-info/RECORD",
        "not_beside.py",
    ] {
        assert!(!has(&names, name), "{name} is in {names:?}");
    }
    // Parts that are imported by name are added, even if they are optional.
    let (_, names, _) = python.brings(&[program, "-c", "import tkinter; import unused"]);
    assert!(has(&names, "_tkinter.cpython-39.so") && has(&names, "unused/__init__.py"));
    assert!(!has(&names, "used/deep/data.bin") && !has(&names, "job.py"));
}

#[test]
fn a_package_beside_a_script_comes_along_without_what_is_large_or_hidden() {
    let python = Python::new();
    let job = python.path("job.py");
    write(&job, "import near");
    for name in [
        "near/__init__.py",
        "near/small.txt",
        "near/.git/x",
        "near/env/pyvenv.cfg",
    ] {
        write(&python.path(name), "");
    }
    let large = fs::File::create(python.path("near/large.bin")).unwrap();
    large.set_len(20 << 20).unwrap();
    let program = python.path("py/bin/python3");
    let words = [program.to_str().unwrap(), job.to_str().unwrap()];
    let (_, names, _) = python.brings(&words);
    let near: Vec<&String> = names
        .iter()
        .filter(|name| name.starts_with("near/"))
        .collect();
    assert_eq!(near, ["near/__init__.py", "near/small.txt"]);
}

#[test]
fn a_library_that_was_given_whole_is_said_to_be_more_than_is_needed() {
    let python = Python::new();
    let (mut tree, mut host) = (Tree::default(), Host::here().unwrap());
    let words = vec![python.path("py/bin/python3").to_str().unwrap().to_owned()];
    host.command(&mut tree, &words).unwrap();
    assert!(
        !host.notes()[0].contains("without --dir"),
        "{:?}",
        host.notes()
    );
    let (mut tree, mut host) = (Tree::default(), Host::here().unwrap());
    host.dir(&mut tree, python.library("").to_str().unwrap(), None)
        .unwrap();
    host.command(&mut tree, &words).unwrap();
    assert!(
        host.notes()[0].contains("without --dir"),
        "{:?}",
        host.notes()
    );
}

#[test]
fn a_compiled_module_that_is_current_here_is_current_inside_and_others_stay_behind() {
    let python = Python::new();
    let cache = |name: &str| python.library("__pycache__").join(name);
    let source = python.library("os.py");
    write(&cache("os.cpython-39.pyc"), compiled(&source, 0));
    write(&cache("os.cpython-39.opt-1.pyc"), compiled(&source, 0));
    write(&cache("os.cpython-38.pyc"), compiled(&source, 7));
    write(&cache("gone.cpython-39.pyc"), compiled(&source, 0));
    let (_, names, tree) = python.brings(&[python.path("py/bin/python3").to_str().unwrap()]);
    let names: Vec<&String> = names.iter().filter(|name| name.contains(".pyc")).collect();
    assert_eq!(names, ["py/lib/python3.9/__pycache__/os.cpython-39.pyc"]);
    let found = tree
        .entries()
        .find(|(path, _)| path.name() == "os.cpython-39.pyc");
    let Some((
        _,
        Entry::File {
            source: Source::Bytes(bytes),
            ..
        },
    )) = found
    else {
        panic!("{found:?}");
    };
    // This is the time of every file in an image.
    assert_eq!(bytes[8..12], 1_767_225_600_u32.to_le_bytes());
    assert_eq!(bytes[12..], compiled(&source, 0)[12..]);
}

#[test]
fn a_virtual_environment_brings_its_packages_and_the_library_of_its_home() {
    let python = Python::new();
    let home = python.path("py/bin");
    let venv = python.path("venv");
    write(
        &venv.join("pyvenv.cfg"),
        format!("home = {}\n", home.display()),
    );
    write(&venv.join("lib/python3.9/site-packages/mine.py"), "");
    fs::create_dir_all(venv.join("bin")).unwrap();
    symlink(home.join("python3"), venv.join("bin/python")).unwrap();
    // A script of the environment has the path of its interpreter in its first line.
    let tool = venv.join("bin/tool");
    write(
        &tool,
        format!(
            "#!{}\nimport mine, used\n",
            venv.join("bin/python").display()
        ),
    );
    executable(&tool);
    let (command, names, _) = python.brings(&[tool.to_str().unwrap(), "x"]);
    assert_eq!(command, [tool.to_str().unwrap(), "x"]);
    for name in [
        "venv/pyvenv.cfg",
        "venv/bin/python",
        "site-packages/mine.py",
        "python3.9/os.py",
    ] {
        assert!(has(&names, name), "{name} is not in {names:?}");
    }
    assert!(
        !has(&names, "used/__init__.py"),
        "it sees no packages but its own"
    );
}

#[test]
fn what_env_and_its_like_start_comes_along_with_what_it_needs() {
    let python = Python::new();
    let program = python.path("py/bin/python3");
    let job = python.path("job.py");
    write(&job, "import used");
    let (program, job) = (program.to_str().unwrap(), job.to_str().unwrap());
    let words = [
        "env", "-u", "X", "A=b", "nice", "-n", "5", "timeout", "9", program, job,
    ];
    let (command, names, tree) = python.brings(&words);
    assert!(
        has(&names, "used/__init__.py") && has(&names, "job.py"),
        "{names:?}"
    );
    assert_eq!(command[1..4], words[1..4]);
    for place in [0, 4, 7, 9] {
        let path = pagetide_root::RootPath::new(&command[place], "").unwrap();
        assert!(tree.get(&tree.follow(&path).unwrap()).is_some(), "{path}");
    }
}

/// Makes the root of a command. Returns the installation, the messages, and the folder of the cache.
fn installed(words: &[&str], files: &[&str]) -> (Installation, Vec<String>, tempfile::TempDir) {
    let cache = tempfile::tempdir().unwrap();
    let contents = Contents {
        command: words.iter().map(ToString::to_string).collect(),
        files: files.iter().map(ToString::to_string).collect(),
        ..Contents::default()
    };
    let said = std::cell::RefCell::new(Vec::new());
    let say = |text: &str| said.borrow_mut().push(text.to_owned());
    let made = contents.install(&Roots::of(cache.path()), &say).unwrap();
    (made, said.into_inner(), cache)
}

#[test]
fn a_program_that_a_shell_line_starts_and_that_is_not_inside_is_named_with_the_option_that_gives_it()
 {
    let line = "head -c 9 /etc/passwd | sort; no-such-program; echo done";
    let (_, said, _cache) = installed(&["sh", "-c", line], &["/usr/bin/head"]);
    let about: Vec<&String> = said
        .iter()
        .filter(|text| text.contains("starts `"))
        .collect();
    assert_eq!(about.len(), 2, "{said:?}");
    assert!(
        about[0].contains("`sort`") && about[0].ends_with("add --file /usr/bin/sort"),
        "{said:?}"
    );
    assert!(about[1].contains("`no-such-program`") && about[1].contains("not on this machine"));
}

#[test]
fn what_scripts_of_a_line_start_in_turn_is_named_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("job.sh"), "#!/bin/sh\n. /work/lib.sh\nuniq \"$1\"\n");
    write(&path("lib.sh"), "x=\"$(tac /work/x)\"\n");
    write(&path("job.py"), "#!/usr/bin/env no-such-python\n");
    executable(&path("job.sh"));
    executable(&path("job.py"));
    let files =
        ["job.sh", "lib.sh", "job.py"].map(|name| format!("{}:/work/{name}", path(name).display()));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let line = "./job.sh x | timeout 5 sort; ./job.py";
    let (_, said, _cache) = installed(&["sh", "-c", line], &files);
    for (what, name, remedy) in [
        ("the shell line", "timeout", "add --file /usr/bin/timeout"),
        ("the shell line", "sort", "add --file /usr/bin/sort"),
        (
            "the shell script /work/job.sh",
            "uniq",
            "add --file /usr/bin/uniq",
        ),
        (
            "the shell script /work/lib.sh",
            "tac",
            "add --file /usr/bin/tac",
        ),
        (
            "the script /work/job.py",
            "no-such-python",
            "it is not on this machine either",
        ),
    ] {
        let wanted = format!("{what} starts `{name}`, which is not in its file system: {remedy}");
        assert!(said.contains(&wanted), "{wanted}: {said:#?}");
    }
    let words = ["find", ".", "-type", "f", "-exec", "sort", "{}", ";"];
    let (_, said, _cache) = installed(&words, &[]);
    let wanted =
        "the command starts `sort`, which is not in its file system: add --file /usr/bin/sort";
    assert_eq!(
        said.iter().filter(|text| *text == wanted).count(),
        1,
        "{said:#?}"
    );
}

#[test]
fn an_interpreter_given_with_file_brings_its_library() {
    let python = Python::new();
    let program = python.path("py/bin/python3.9:/usr/local/bin/python3");
    let file = program.to_str().unwrap();
    let (made, _, cache) = installed(&["sh", "-c", "python3 -m json.tool"], &[file]);
    let roots = cache.path().join("roots");
    let listing = fs::read_to_string(roots.join(&made.root.digest).join("listing")).unwrap();
    for name in ["usr/local/bin/python3", "py/lib/python3.9/json/tool.py"] {
        assert!(listing.contains(name), "{name} is not in {listing}");
    }
}

#[test]
fn a_wrapper_brings_what_it_starts_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (outer, inner) = (
        folder.path().join("tool"),
        folder.path().join(".tool-wrapped"),
    );
    write(
        &outer,
        format!(
            "#!/bin/sh -e\nexport A=b\nexec -a \"$0\" \"{}\" \"$@\"\n",
            inner.display()
        ),
    );
    write(&inner, fs::read("/bin/true").unwrap());
    for path in [&outer, &inner] {
        executable(path);
    }
    let (mut tree, mut host) = (Tree::default(), Host::here().unwrap());
    let word = outer.to_str().unwrap().to_owned();
    let command = host
        .command(&mut tree, &[word.clone(), "x".to_owned()])
        .unwrap();
    assert_eq!(command, [word, "x".to_owned()]);
    assert!(
        tree.entries()
            .any(|(path, _)| Path::new(path.as_str()) == inner)
    );
}

#[test]
fn a_perl_script_brings_the_modules_that_it_loads_and_plain_code_brings_none() {
    let names = |code: &str| {
        let (mut tree, mut host) = (Tree::default(), Host::here().unwrap());
        let words = ["perl", "-e", code].map(str::to_owned);
        host.command(&mut tree, &words).unwrap();
        let names = tree.entries().map(|(path, _)| path.name().to_owned());
        names.collect::<Vec<String>>()
    };
    let plain = names("print 1");
    assert!(!plain.iter().any(|name| name.contains(".pm")), "{plain:?}");
    let some = names("use List::Util qw(sum); print sum(1, 2)");
    for name in ["Util.pm", "Util.so", "XSLoader.pm", "strict.pm"] {
        assert!(has(&some, name), "{name} is not in {some:?}");
    }
}
