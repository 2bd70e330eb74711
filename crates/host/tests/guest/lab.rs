//! A guest with control groups of version 2 in which test programs run, as root or as a user.

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
pub const DISK: &str = env!("CARGO_TARGET_TMPDIR");
/// Time limit of a guest. It is far above the usual duration, because the machine may be busy.
const LIMIT: Duration = Duration::from_hours(1);

/// What a guest needs: a kernel, programs and a disk.
pub struct Lab {
    folder: tempfile::TempDir,
    kernel: Kernel,
    /// Programs in the guest, each with its path there and its file here. Their libraries are added.
    programs: Vec<(String, PathBuf)>,
}

impl Lab {
    /// Returns `None`, and counts a skip, if no guest can run here.
    pub fn new() -> Option<Self> {
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
        let programs = vec![("/init".to_owned(), built("examples", "guest_init"))];
        Some(Self {
            folder,
            kernel,
            programs,
        })
    }

    /// Adds a program, with the path that it has in the guest.
    pub fn with(mut self, path: &str, file: PathBuf) -> Self {
        self.programs.push((path.to_owned(), file));
        self
    }

    /// Boots a guest that runs a program. `who` is `root`, `user`, or `user-with-swap`, who may use swap that is on.
    pub fn start(&self, who: &str, program: &[&str]) -> Child {
        let initrd = self.folder.path().join("initrd");
        self.write_initrd(&initrd, &[&[who, DISK], program].concat().join("\n"));
        let disk = self.folder.path().join("disk");
        Command::new("qemu-system-x86_64")
            .args(["-accel", "tcg", "-m", "1536", "-display", "none"])
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
    pub fn run(&self, who: &str, program: &[&str]) -> String {
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

    /// Boots a guest that runs a test program, whose tests must all pass, and of which at least one must run.
    pub fn passes(&self, who: &str, program: &[&str]) {
        let printed = self.run(
            who,
            &[program, &["--test-threads=1", "--show-output"]].concat(),
        );
        // Messages of the kernel stand in the middle of the lines of single tests.
        let result = printed.split("test result: ok. ").nth(1);
        let passed = result.and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
        assert!(passed > Some(0), "{printed}");
    }

    fn write_initrd(&self, path: &Path, order: &str) {
        let mut archive = initrd::Archive::new(File::create(path).unwrap());
        for folder in [
            "modules",
            "deps",
            "examples",
            "bin",
            "usr",
            "usr/bin",
            "usr/sbin",
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
        let mut libraries = Vec::new();
        for (name, program) in &self.programs {
            let name = name.trim_start_matches('/');
            archive
                .file(name, true, &fs::read(program).unwrap())
                .unwrap();
            libraries.extend(libraries_of(program));
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

/// The newest program that Cargo built in this folder of its target, with this name and perhaps a hash behind it.
pub fn built(folder: &str, name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent).unwrap();
    let folder = target.join(folder);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let programs = entries.filter(|entry| {
        let file = entry.file_name().into_string().unwrap();
        let rest = file.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('-') && !rest.contains('.')))
    });
    programs
        .max_by_key(|entry| entry.metadata().unwrap().modified().unwrap())
        .unwrap_or_else(|| {
            panic!(
                "no {name} in {}: run `cargo test --workspace --test '*' --no-run`",
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
