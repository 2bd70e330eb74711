//! Tests of the cache with several processes, killed processes, and folders that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sample::Deb;
use pagetide_kernel::{Cache, Freshness, Kernel, KernelError, KernelRef};
use pagetide_testing::{Need, skip};

const RELEASE: &str = "6.1.0-9-cloud-amd64";

fn resolve(cache: &Cache, reference: &str) -> Result<Kernel, KernelError> {
    cache.resolve(
        &reference.parse::<KernelRef>()?,
        Freshness::Pinned,
        &mut |_| {},
    )
}

/// Runs as the second process, which other tests start.
#[test]
#[ignore = "started by other tests"]
fn second_process() {
    let root = std::env::var("PAGETIDE_TEST_ROOT").unwrap();
    let reference = std::env::var("PAGETIDE_TEST_REFERENCE").unwrap();
    let kernel = resolve(&Cache::open(root).unwrap(), &reference).unwrap();
    println!("digest {}", kernel.digest);
}

fn start(root: &Path, reference: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "cache::second_process",
            "--nocapture",
        ])
        .env("PAGETIDE_TEST_ROOT", root)
        .env("PAGETIDE_TEST_REFERENCE", reference)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn processes_that_add_the_same_kernel_at_once_agree() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("cache");
    let deb = Deb::kernel(RELEASE, "1-1").write(folder.path());
    let children: Vec<Child> = (0..6)
        .map(|_| start(&root, &deb.display().to_string()))
        .collect();
    let mut digests = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        digests.extend(
            text.lines()
                .filter(|line| line.contains("digest "))
                .map(str::to_owned),
        );
    }
    assert_eq!(digests.len(), 6);
    digests.dedup();
    assert_eq!(digests.len(), 1);
    let cache = Cache::open(&root).unwrap();
    let kernels = cache.list().unwrap();
    assert_eq!(kernels.len(), 1);
    cache.verify(&kernels[0]).unwrap();
    assert_eq!(entries(&root.join("tmp")), 0);
}

#[test]
fn what_a_killed_process_left_is_cleared_but_not_what_a_living_one_works_on() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("cache");
    let tmp = root.join("tmp");
    let image = folder.path().join("bzImage");
    fs::write(
        &image,
        crate::sample::bzimage(RELEASE, &crate::sample::vmlinux(&[1; 20])),
    )
    .unwrap();
    // A pipe without a writer stops the second process in the middle of its work.
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let mut child = start(
        &root,
        &format!("image:{},config:{}", image.display(), pipe.display()),
    );
    let patience = Instant::now() + Duration::from_secs(20);
    while entries(&tmp) == 0 && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(100));
    Cache::open(&root).unwrap();
    let while_alive = entries(&tmp);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(while_alive, 1, "a living process's work was cleared away");
    assert_eq!(entries(&tmp), 1);
    let cache = Cache::open(&root).unwrap();
    assert_eq!(entries(&tmp), 0);
    assert_eq!(cache.list().unwrap(), []);
}

#[test]
fn kernels_are_listed_sized_verified_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let add = |release: &str| {
        let deb = Deb::kernel(release, "1-1").write(folder.path());
        resolve(&cache, &deb.display().to_string()).unwrap()
    };
    let (newer, older) = (add("6.12.3+deb12-cloud-amd64"), add("6.1.0-9-cloud-amd64"));
    assert_eq!(
        cache.list().unwrap(),
        [older.clone(), newer.clone()],
        "in order of release"
    );
    assert_eq!(cache.references_to(&older.digest).len(), 1);
    let size = newer.size().unwrap();
    assert!(size > 1000 && cache.size().unwrap() > size);
    assert_eq!(cache.find("6.12").unwrap(), Some(newer.clone()));
    cache.remove(&older.digest).unwrap();
    assert_eq!(cache.list().unwrap(), std::slice::from_ref(&newer));
    assert_eq!(cache.find("6.1").unwrap(), None);
    assert_eq!(cache.references_to(&older.digest), Vec::<String>::new());
    assert!(cache.remove(&older.digest).is_err());
    fs::write(newer.image(), "tampered").unwrap();
    assert!(matches!(
        cache.verify(&newer),
        Err(KernelError::CacheDamaged { .. })
    ));
}

#[test]
fn a_damaged_kernel_in_the_cache_is_replaced_when_it_is_added_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let deb = Deb::kernel(RELEASE, "1-1")
        .write(folder.path())
        .display()
        .to_string();
    let kernel = resolve(&cache, &deb).unwrap();
    fs::remove_file(kernel.image()).unwrap();
    assert_eq!(cache.list().unwrap(), []);
    let again = resolve(&cache, &deb).unwrap();
    assert_eq!(again.digest, kernel.digest);
    cache.verify(&again).unwrap();
}

/// Flips one bit in the middle of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_flipped_bit_in_any_file_of_a_kernel_is_found_said_and_mended_from_where_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let mut deb = Deb::kernel(RELEASE, "1-1");
    deb.files.push((
        format!("./lib/modules/{RELEASE}/kernel/lib/zsum.ko"),
        crate::sample::module(&["depends="]),
    ));
    let deb = deb.write(folder.path()).display().to_string();
    let kernel = resolve(&cache, &deb).unwrap();
    let module = kernel.folder().join("modules/kernel/lib/zsum.ko");
    let files = [
        kernel.image(),
        kernel.folder().join("config"),
        module.clone(),
        kernel.folder().join("kernel.json"),
    ];
    for (path, name) in files.iter().flat_map(|path| {
        // The kernel is found by its reference and by its name in the cache.
        [(path, deb.as_str()), (path, RELEASE)]
    }) {
        let is_facts = path.ends_with("kernel.json");
        if is_facts && name == RELEASE {
            // The name of the kernel is in that file.
            continue;
        }
        let good = fs::read(path).unwrap();
        flip(path);
        let mut said = Vec::new();
        let again = cache
            .resolve(&name.parse().unwrap(), Freshness::Pinned, &mut |step| {
                said.push(step.to_string());
            })
            .unwrap();
        assert_eq!(again.digest, kernel.digest, "{}", path.display());
        if !is_facts {
            assert_eq!(fs::read(path).unwrap(), good, "{}", path.display());
        }
        cache.verify(&again).unwrap();
        let told = said.iter().filter(|line| line.contains("damaged")).count();
        assert_eq!(told, 1, "{}: {said:?}", path.display());
    }
    fs::remove_file(&module).unwrap();
    resolve(&cache, &deb).unwrap();
    assert!(module.is_file(), "a lost file is found as well");
}

#[test]
fn a_damaged_kernel_whose_source_is_gone_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let deb = Deb::kernel(RELEASE, "1-1").write(folder.path());
    let kernel = resolve(&cache, &deb.display().to_string()).unwrap();
    fs::remove_file(&deb).unwrap();
    flip(&kernel.image());
    let text = resolve(&cache, RELEASE).unwrap_err().to_string();
    assert!(
        text.contains(RELEASE) && text.contains("damaged") && text.contains("cannot provide"),
        "{text}"
    );
    assert_eq!(cache.list().unwrap(), [], "it is no longer offered");
}

#[test]
fn a_kernel_already_here_is_resolved_within_twenty_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let deb = Deb::kernel(RELEASE, "1-1")
        .write(folder.path())
        .display()
        .to_string();
    resolve(&cache, &deb).unwrap();
    // The fastest of several runs counts, because the machine may be busy.
    let fastest = (0..10).map(|_| {
        let start = Instant::now();
        resolve(&Cache::open(cache.root()).unwrap(), &deb).unwrap();
        start.elapsed()
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < Duration::from_millis(20), "{fastest:?}");
}

/// A small filesystem in memory, unmounted on drop.
struct Small {
    folder: tempfile::TempDir,
}

impl Small {
    fn mount(options: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "pagetide-test"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        match mounted {
            Ok(status) if status.success() => Ok(Self { folder }),
            _ => Err("mounting a small filesystem needs root".into()),
        }
    }

    fn remount_read_only(&self) {
        let status = Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(self.folder.path())
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

#[test]
fn a_full_cache_folder_is_named_with_a_remedy_and_left_clean() {
    let small = match Small::mount("size=64k") {
        Ok(small) => small,
        Err(why) => return skip(Need::Root, why),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut deb = Deb::kernel(RELEASE, "1-1");
    deb.files.push((
        format!("./lib/modules/{RELEASE}/kernel/big.ko"),
        vec![1; 200_000],
    ));
    let deb = deb.write(folder.path()).display().to_string();
    let cache = Cache::open(small.folder.path().join("cache")).unwrap();
    let error = resolve(&cache, &deb).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, KernelError::Cache { .. }), "{text}");
    assert!(
        text.contains("free some space") && text.contains("PAGETIDE_CACHE"),
        "{text}"
    );
    assert_eq!(entries(&cache.root().join("tmp")), 0);
    assert_eq!(entries(&cache.root().join("kernels")), 0);
}

/// Removes write permission from every folder under `root`. This affects every user but root.
fn forbid_writing(root: &Path) {
    for entry in fs::read_dir(root).unwrap().flatten() {
        if entry.path().is_dir() {
            forbid_writing(&entry.path());
        }
    }
    fs::set_permissions(root, fs::Permissions::from_mode(0o555)).unwrap();
}

/// Restores write permission in every folder under `root`, so that the folders can be removed.
fn allow_writing(root: &Path) {
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    for entry in fs::read_dir(root).unwrap().flatten() {
        if entry.path().is_dir() {
            allow_writing(&entry.path());
        }
    }
}

#[test]
fn a_read_only_cache_serves_what_it_has_and_says_why_it_takes_nothing_new() {
    let small = Small::mount("size=4m");
    let plain = tempfile::tempdir().unwrap();
    let place = small
        .as_ref()
        .map_or(plain.path(), |small| small.folder.path());
    let folder = tempfile::tempdir().unwrap();
    let deb = |version: &str| {
        Deb::kernel(RELEASE, version)
            .write(folder.path())
            .display()
            .to_string()
    };
    let root = place.join("cache");
    let kernel = resolve(&Cache::open(&root).unwrap(), &deb("1-1")).unwrap();
    match &small {
        Ok(small) => small.remount_read_only(),
        // A user who cannot mount is not root, so permissions apply.
        Err(_) => forbid_writing(&root),
    }
    let served = Cache::open(&root).and_then(|cache| resolve(&cache, RELEASE));
    let refused = Cache::open(&root).and_then(|cache| resolve(&cache, &deb("1-2")));
    if small.is_err() {
        allow_writing(&root);
    }
    assert_eq!(served.unwrap(), kernel);
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("make it writable") && text.contains(&root.display().to_string()),
        "{text}"
    );
}
