//! The tests of this crate in a guest with control groups of version 2, as root and as a user, and after power cuts.
#![allow(clippy::unwrap_used, reason = "tests may")]

#[path = "../../../exact/src/initrd.rs"]
mod initrd;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagetide_kernel::{Cache, Freshness, Kernel};
use pagetide_testing::{Need, skip};

/// Kernel of the guests.
const KERNEL: &str = "debian:bookworm/6.12";
/// Mount point of the guest's disk: the folder of the temporary files of the tests.
const DISK: &str = env!("CARGO_TARGET_TMPDIR");
/// Time limit of a guest. It is far above the usual duration, because the machine may be busy.
const LIMIT: Duration = Duration::from_hours(1);

/// What a guest needs: a kernel, programs and a disk.
struct Lab {
    folder: tempfile::TempDir,
    kernel: Kernel,
}

impl Lab {
    /// Returns `None`, and counts a skip, if no guest can run here.
    fn new() -> Option<Self> {
        if Command::new("qemu-system-x86_64")
            .arg("--version")
            .output()
            .is_err()
        {
            skip(Need::Emulator, "QEMU is not installed");
            return None;
        }
        let cache = std::env::var_os("PAGETIDE_TEST_CACHE")
            .map_or_else(|| Path::new(DISK).join("cache"), PathBuf::from);
        let cache = Cache::open(cache).unwrap();
        let reference = KERNEL.parse().unwrap();
        let kernel = cache
            .resolve(&reference, Freshness::Pinned, &mut |_| {})
            .inspect_err(|why| skip(Need::Kernels, why))
            .ok()?;
        let folder = tempfile::tempdir_in(DISK).unwrap();
        let disk = folder.path().join("disk");
        File::create(&disk).unwrap().set_len(768 << 20).unwrap();
        let made = Command::new("mkfs.ext4").arg("-q").arg(&disk).status();
        if !made.is_ok_and(|status| status.success()) {
            skip(Need::Root, "no program `mkfs.ext4`");
            return None;
        }
        Some(Self { folder, kernel })
    }

    /// Boots a guest that runs a program. `who` is `root` or `user`.
    fn start(&self, who: &str, program: &[&str]) -> Child {
        let initrd = self.folder.path().join("initrd");
        self.write_initrd(&initrd, &[&[who, DISK], program].concat().join("\n"));
        let disk = self.folder.path().join("disk");
        Command::new("qemu-system-x86_64")
            .args(["-accel", "tcg", "-m", "768", "-display", "none"])
            .args(["-no-reboot", "-serial", "stdio", "-monitor", "none"])
            .args(["-append", "console=ttyS0 quiet panic=-1"])
            .arg("-kernel")
            .arg(self.kernel.image())
            .arg("-initrd")
            .arg(&initrd)
            .arg("-drive")
            .arg(format!("file={},if=virtio,format=raw", disk.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Boots a guest that runs a program to its end. Returns what it printed.
    fn run(&self, who: &str, program: &[&str]) -> String {
        let mut guest = self.start(who, program);
        let mut out = guest.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            out.read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let began = Instant::now();
        while guest.try_wait().unwrap().is_none() {
            if began.elapsed() > LIMIT {
                guest.kill().unwrap();
            }
            sleep(Duration::from_millis(50));
        }
        let printed = reader.join().unwrap();
        println!("{printed}");
        printed
    }

    fn write_initrd(&self, path: &Path, order: &str) {
        let mut archive = initrd::Archive::new(File::create(path).unwrap());
        for folder in [
            "modules",
            "deps",
            "examples",
            "lib64",
            "lib",
            "lib/x86_64-linux-gnu",
        ] {
            archive.folder(folder).unwrap();
        }
        let modules = ["virtio_blk", "loop", "zram"];
        for (at, module) in self
            .kernel
            .modules_for(&modules)
            .unwrap()
            .iter()
            .enumerate()
        {
            let name = format!("modules/{at:02}-{}.ko", module.name);
            archive.file(&name, false, &module.bytes).unwrap();
        }
        archive.file("order", false, order.as_bytes()).unwrap();
        let own = std::env::current_exe().unwrap();
        let deps = own.parent().unwrap();
        let examples = deps.parent().unwrap().join("examples");
        let programs = [
            ("init", examples.join("guest_init")),
            ("examples/host_trial", examples.join("host_trial")),
            ("deps/host", newest(deps, "host-")),
        ];
        let mut libraries = Vec::new();
        for (name, program) in programs {
            archive
                .file(name, true, &fs::read(&program).unwrap())
                .unwrap();
            libraries.extend(libraries_of(&program));
        }
        libraries.sort();
        libraries.dedup();
        for library in libraries {
            let name = library.trim_start_matches('/').to_owned();
            archive
                .file(&name, true, &fs::read(&library).unwrap())
                .unwrap();
        }
        archive.finish().unwrap();
    }
}

/// The newest program in a folder whose name begins with these letters.
fn newest(folder: &Path, start: &str) -> PathBuf {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let programs = entries.filter(|entry| {
        let name = entry.file_name().into_string().unwrap();
        name.starts_with(start) && !name.contains('.')
    });
    programs
        .max_by_key(|entry| entry.metadata().unwrap().modified().unwrap())
        .unwrap_or_else(|| {
            panic!(
                "no {start} in {}: run `cargo test -p pagetide-host`",
                folder.display()
            )
        })
        .path()
}

/// Paths of the libraries of a program, with the loader.
fn libraries_of(program: &Path) -> Vec<String> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

/// Runs tests of `tests/host` in a guest. Returns the number that passed.
fn tests(who: &str, arguments: &[&str]) -> usize {
    let Some(lab) = Lab::new() else { return 0 };
    let program = [&["/deps/host", "--test-threads=1"], arguments].concat();
    let printed = lab.run(who, &program);
    assert!(printed.contains("test result: ok"), "{printed}");
    let passed = printed
        .lines()
        .filter(|line| line.contains("... ok"))
        .count();
    assert!(passed > 0, "{printed}");
    passed
}

#[test]
fn a_user_with_a_delegated_group_leaves_nothing_after_kills() {
    tests("user", &["killed::user_"]);
}

#[test]
#[ignore = "test-all"]
fn all_holds_with_groups_of_version_2_as_root() {
    tests("root", &["--include-ignored"]);
}

#[test]
#[ignore = "test-all"]
fn all_that_a_user_may_do_holds_with_a_delegated_group() {
    tests("user", &["--include-ignored"]);
}

/// Boots a guest in which trials run, cuts its power at this number of moments after the first trial, and boots it
/// again after each.
fn cut(moments: u32) {
    let Some(lab) = Lab::new() else { return };
    let state = format!("{DISK}/state");
    let tool = ["/examples/host_trial", "--state", &state, "--folder", DISK];
    let settings = ["--set", "vm.page-cluster=0", "--trials", "100000"];
    let mut swept = 0;
    for moment in 0..moments {
        let mut guest = lab.start("root", &[&tool[..], &settings].concat());
        let mut out = guest.stdout.take().unwrap();
        let mut printed = Vec::new();
        while !String::from_utf8_lossy(&printed).contains("trial 0") {
            let mut some = [0; 4096];
            let read = out.read(&mut some).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&printed));
            printed.extend(&some[..read]);
        }
        // The moments are spread over more than the duration of a trial, which takes some seconds in the guest.
        sleep(Duration::from_millis(u64::from(moment * 379 % 2000)));
        guest.kill().unwrap();
        guest.wait().unwrap();
        let told = lab.run("root", &[&tool[..], &["--sweep"]].concat());
        assert!(
            told.contains("ended with") && !told.contains("left"),
            "{told}"
        );
        swept += usize::from(told.contains("undone the folder"));
        // Nothing of the journal remains, and the next trial runs.
        let told = lab.run("root", &[&tool[..], &["--trials", "1"]].concat());
        assert!(
            told.contains("trial 0") && !told.contains("undone"),
            "{told}"
        );
    }
    assert!(
        swept > 0 || moments < 4,
        "no cut hit a trial with its folder"
    );
}

#[test]
#[ignore = "test-all"]
fn the_next_start_mends_what_ten_power_cuts_left() {
    cut(10);
}
