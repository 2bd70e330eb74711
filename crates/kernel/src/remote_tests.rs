//! Tests of resolving references. The archive is a folder of sample packages.

use super::*;
use crate::apt::double::{Shelf, package};
use crate::sample::Deb;

const RELEASE: &str = "6.1.0-9-cloud-amd64";

struct World {
    _folder: tempfile::TempDir,
    cache: Cache,
    files: std::path::PathBuf,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("pool");
    fs::create_dir(&files).unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    World {
        _folder: folder,
        cache,
        files,
    }
}

impl World {
    /// Returns an archive with one kernel of this version. The kernel's package file exists.
    fn shelf(&self, version: &str) -> Shelf {
        let deb = Deb::kernel(RELEASE, version);
        deb.write(&self.files);
        Shelf {
            packages: vec![package(&deb.name, version, "kmod")],
            files: self.files.clone(),
            ..Shelf::default()
        }
    }

    fn resolve(
        &self,
        freshness: Freshness,
        shelf: Shelf,
    ) -> (Result<Kernel, KernelError>, Vec<Step>) {
        self.resolve_as("debian:bookworm", freshness, || Ok(shelf))
    }

    fn resolve_as(
        &self,
        reference: &str,
        freshness: Freshness,
        open: impl FnOnce() -> Result<Shelf, KernelError>,
    ) -> (Result<Kernel, KernelError>, Vec<Step>) {
        self.resolve_wanted(reference, KernelQuery::Default, freshness, open)
    }

    fn resolve_wanted(
        &self,
        reference: &str,
        wanted: KernelQuery,
        freshness: Freshness,
        open: impl FnOnce() -> Result<Shelf, KernelError>,
    ) -> (Result<Kernel, KernelError>, Vec<Step>) {
        let mut steps = Vec::new();
        let request = Request {
            reference: reference.into(),
            wanted,
            freshness,
        };
        let mut watch = |step: &Step| steps.push(step.clone());
        let kernel = self.cache.resolve_remote(&request, &mut watch, |_| open());
        (kernel, steps)
    }
}

#[test]
fn a_kernel_once_fetched_is_resolved_without_asking_the_archive() {
    let world = world();
    let (kernel, steps) = world.resolve(Freshness::Pinned, world.shelf("6.1.20-1"));
    let kernel = kernel.unwrap();
    assert_eq!(
        kernel.origin.packages,
        ["linux-image-6.1.0-9-cloud-amd64-unsigned=6.1.20-1"]
    );
    assert!(
        matches!(
            steps[..],
            [
                Step::Updating { .. },
                Step::Fetching { .. },
                Step::Unpacking { .. }
            ]
        ),
        "{steps:?}"
    );
    let (again, steps) = world.resolve_as("debian:bookworm", Freshness::Pinned, || {
        panic!("the archive was opened")
    });
    assert_eq!((again.unwrap(), steps), (kernel, vec![]));
}

#[test]
fn a_refresh_takes_what_is_newest_and_fetches_nothing_twice() {
    let world = world();
    let (old, _) = world.resolve(Freshness::Pinned, world.shelf("6.1.20-1"));
    let mut shelf = world.shelf("6.1.20-1");
    shelf.files = "/nowhere".into();
    let (same, _) = world.resolve(Freshness::Refresh, shelf);
    assert_eq!(same.unwrap(), old.unwrap());
    let mut newer = world.shelf("6.1.20-1");
    newer.packages.push(package(
        "linux-image-6.1.0-10-cloud-amd64-unsigned",
        "6.1.21-1",
        "",
    ));
    Deb::kernel("6.1.0-10-cloud-amd64", "6.1.21-1").write(&world.files);
    let (new, _) = world.resolve(Freshness::Refresh, newer);
    assert_eq!(new.unwrap().release, "6.1.0-10-cloud-amd64");
    assert_eq!(world.cache.list().unwrap().len(), 2);
}

#[test]
fn offline_a_refresh_keeps_the_kernel_of_last_time_and_says_so() {
    let world = world();
    let (before, _) = world.resolve(Freshness::Pinned, world.shelf("6.1.20-1"));
    let mut shelf = world.shelf("6.1.20-1");
    shelf.offline = true;
    let (kernel, steps) = world.resolve(Freshness::Refresh, shelf);
    assert_eq!(kernel.unwrap(), before.unwrap());
    assert!(
        matches!(steps.last(), Some(Step::KeptPinned { reason, .. }) if reason.contains("no network")),
        "{steps:?}"
    );
}

#[test]
fn offline_without_a_kernel_of_last_time_is_an_error_with_apts_words() {
    let world = world();
    let mut shelf = world.shelf("6.1.20-1");
    shelf.offline = true;
    let text = world
        .resolve(Freshness::Pinned, shelf)
        .0
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("no network") && text.contains(".deb"),
        "{text}"
    );
}

#[test]
fn lists_of_today_are_not_fetched_again_unless_what_they_name_is_gone() {
    let world = world();
    let mut shelf = world.shelf("6.1.20-1");
    shelf.age = Some(60);
    let (kernel, steps) = world.resolve(Freshness::Pinned, shelf);
    kernel.unwrap();
    assert!(
        !steps
            .iter()
            .any(|step| matches!(step, Step::Updating { .. })),
        "{steps:?}"
    );

    let mut shelf = world.shelf("6.1.22-1");
    shelf.news = Some(shelf.packages.clone());
    shelf.packages = vec![package(
        "linux-image-6.1.0-9-cloud-amd64-unsigned",
        "6.1.21-1",
        "",
    )];
    shelf.age = Some(60);
    let (kernel, steps) = world.resolve_as("debian:other", Freshness::Pinned, || Ok(shelf));
    assert_eq!(
        kernel.unwrap().origin.packages,
        ["linux-image-6.1.0-9-cloud-amd64-unsigned=6.1.22-1"]
    );
    assert_eq!(
        steps
            .iter()
            .filter(|step| matches!(step, Step::Updating { .. }))
            .count(),
        1,
        "{steps:?}"
    );
}

#[test]
fn a_name_that_lists_of_today_do_not_have_is_refused_without_fetching_them_again() {
    let world = world();
    let asked = |freshness| {
        let mut shelf = world.shelf("6.1.20-1");
        shelf.age = Some(60);
        let wanted = KernelQuery::Series("99.1".into());
        let (kernel, steps) =
            world.resolve_wanted("debian:bookworm/99.1", wanted, freshness, || Ok(shelf));
        let updates = steps
            .iter()
            .filter(|step| matches!(step, Step::Updating { .. }));
        (kernel.unwrap_err().to_string(), updates.count())
    };
    let (text, updates) = asked(Freshness::Pinned);
    assert!(
        text.contains("99.1") && text.contains("--refresh"),
        "{text}"
    );
    assert_eq!(updates, 0);
    // An explicit refresh fetches the newer lists.
    let (text, updates) = asked(Freshness::Refresh);
    assert!(!text.contains("--refresh"), "{text}");
    assert_eq!(updates, 1);
}

#[test]
fn a_package_that_is_listed_but_not_there_gives_way_to_the_next_best() {
    let world = world();
    let with_gone = || {
        let mut shelf = world.shelf("6.1.20-1");
        let gone = "linux-image-6.1.0-10-cloud-amd64-unsigned";
        shelf.packages.push(package(gone, "6.1.21-1", ""));
        shelf
    };
    let (kernel, steps) = world.resolve(Freshness::Pinned, with_gone());
    assert_eq!(kernel.unwrap().release, RELEASE);
    let passed = |step: &Step| matches!(step, Step::Passed { package } if package.contains("-10-"));
    assert!(steps.iter().any(passed), "{steps:?}");

    fs::remove_dir_all(&world.files).unwrap();
    let mut shelf = with_gone_only();
    shelf.files.clone_from(&world.files);
    let (none, _) = world.resolve_as("debian:other", Freshness::Pinned, || Ok(shelf));
    let text = none.unwrap_err().to_string();
    assert!(text.contains("6.1.21-1") && text.contains("404"), "{text}");
}

fn with_gone_only() -> Shelf {
    let packages = vec![
        package("linux-image-6.1.0-10-cloud-amd64-unsigned", "6.1.21-1", ""),
        package("linux-image-6.1.0-8-cloud-amd64-unsigned", "6.1.19-1", ""),
    ];
    Shelf {
        packages,
        ..Shelf::default()
    }
}

#[test]
fn a_removed_kernel_is_fetched_again() {
    let world = world();
    let (kernel, _) = world.resolve(Freshness::Pinned, world.shelf("6.1.20-1"));
    let digest = kernel.unwrap().digest;
    world.cache.remove(&digest).unwrap();
    assert_eq!(world.cache.list().unwrap(), []);
    let (again, _) = world.resolve(Freshness::Pinned, world.shelf("6.1.20-1"));
    assert_eq!(again.unwrap().digest, digest);
}

#[test]
fn a_package_in_which_there_is_no_kernel_is_refused_by_name() {
    let world = world();
    let mut deb = Deb::kernel(RELEASE, "6.1.20-1");
    deb.files.clear();
    let shelf = world.shelf("6.1.20-1");
    deb.write(&world.files);
    let text = world
        .resolve(Freshness::Pinned, shelf)
        .0
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("linux-image-6.1.0-9-cloud-amd64-unsigned=6.1.20-1"),
        "{text}"
    );
}
