//! Tests of kernels given as images and built trees.

use std::fs;
use std::path::{Path, PathBuf};

use pagetide_kernel::{Cache, Freshness, Kernel, KernelError};

const RELEASE: &str = "6.19.0-rc3-00012-gabc";

struct World {
    folder: tempfile::TempDir,
    cache: Cache,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    World { folder, cache }
}

impl World {
    fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn image(&self, path: &str) -> PathBuf {
        self.write(
            path,
            crate::sample::bzimage(RELEASE, &crate::sample::vmlinux(&[3; 20])),
        )
    }

    fn module(&self, path: &str, release: &str) {
        self.write(
            path,
            crate::sample::module(&["depends=", &format!("vermagic={release} SMP")]),
        );
    }

    fn resolve(&self, reference: &str) -> Result<Kernel, KernelError> {
        self.cache
            .resolve(&reference.parse().unwrap(), Freshness::Pinned, &mut |_| {})
    }

    fn at(&self, path: &str) -> String {
        self.folder.path().join(path).display().to_string()
    }

    /// Creates a kernel tree as `make` leaves it and returns its path.
    fn tree(&self, module_line: &str) -> String {
        self.image("linux/arch/x86/boot/bzImage");
        self.write(
            "linux/include/config/kernel.release",
            format!("{RELEASE}\n"),
        );
        self.write("linux/.config", crate::sample::CONFIG);
        self.write("linux/modules.order", format!("{module_line}\n"));
        self.write("linux/modules.builtin", "kernel/crypto/lzo-rle.ko\n");
        self.module("linux/drivers/block/null_blk/null_blk.ko", RELEASE);
        self.module("linux/not/in/the/list.ko", RELEASE);
        self.at("linux")
    }
}

fn names(kernel: &Kernel, wanted: &[&str]) -> Vec<String> {
    kernel
        .modules_for(wanted)
        .unwrap()
        .into_iter()
        .map(|module| module.name)
        .collect()
}

#[test]
fn a_built_tree_gives_its_image_its_configuration_and_the_modules_it_lists() {
    for line in [
        "kernel/drivers/block/null_blk/null_blk.ko",
        "drivers/block/null_blk/null_blk.o",
    ] {
        let world = world();
        let kernel = world.resolve(&world.tree(line)).unwrap();
        assert_eq!(
            (kernel.release.as_str(), kernel.label()),
            (RELEASE, RELEASE)
        );
        assert_eq!(kernel.modules, 1);
        assert_eq!(names(&kernel, &["null_blk", "lzo-rle"]), ["null_blk"]);
    }
}

#[test]
fn a_rebuilt_tree_is_another_kernel_and_an_unchanged_one_is_not_read_again() {
    let world = world();
    let tree = world.tree("drivers/block/null_blk/null_blk.o");
    let first = world.resolve(&tree).unwrap();
    let mut steps = 0;
    let again = world
        .cache
        .resolve(&tree.parse().unwrap(), Freshness::Pinned, &mut |_| {
            steps += 1;
        })
        .unwrap();
    assert_eq!((again, steps), (first.clone(), 0));
    world.write(
        "linux/arch/x86/boot/bzImage",
        crate::sample::bzimage(RELEASE, &crate::sample::vmlinux(&[4; 20])),
    );
    let second = world.resolve(&tree).unwrap();
    assert_ne!(second.digest, first.digest);
    assert_eq!(world.cache.list().unwrap().len(), 2);
    let error = world.resolve(RELEASE).unwrap_err();
    assert!(matches!(&error, KernelError::Ambiguous { .. }), "{error}");
    assert_eq!(world.resolve(second.digest.short()).unwrap(), second);
}

#[test]
fn a_tree_reconfigured_since_its_last_build_is_refused() {
    let world = world();
    let tree = world.tree("drivers/block/null_blk/null_blk.o");
    world.write("linux/include/config/kernel.release", "6.20.0\n");
    let error = world.resolve(&tree).unwrap_err();
    assert!(
        matches!(&error, KernelError::OtherRelease { .. }),
        "{error}"
    );
    fs::remove_file(world.folder.path().join("linux/arch/x86/boot/bzImage")).unwrap();
    let error = world.resolve(&tree).unwrap_err();
    assert!(matches!(&error, KernelError::NotBuilt { .. }), "{error}");
}

#[test]
fn an_image_takes_the_modules_and_configuration_it_is_given() {
    let world = world();
    world.image("k/bzImage");
    world.write("k/my.config", crate::sample::CONFIG);
    world.module(
        "m/lib/modules/6.19.0-rc3-00012-gabc/kernel/null_blk.ko",
        RELEASE,
    );
    world.write(
        "m/lib/modules/6.19.0-rc3-00012-gabc/modules.dep",
        "made by depmod",
    );
    let (image, config, modules) = (
        world.at("k/bzImage"),
        world.at("k/my.config"),
        world.at("m"),
    );
    let kernel = world
        .resolve(&format!("image:{image},modules:{modules},config:{config}"))
        .unwrap();
    assert_eq!(names(&kernel, &["null_blk"]), ["null_blk"]);
    assert!(!kernel.folder().join("modules/modules.dep").exists());
    let inner = world.at("m/lib/modules/6.19.0-rc3-00012-gabc");
    let same = world
        .resolve(&format!("image:{image},config:{config},modules:{inner}"))
        .unwrap();
    assert_eq!(same, kernel);
}

#[test]
fn a_distributions_image_finds_what_lies_where_distributions_put_it() {
    let world = world();
    let image = world.image(&format!("boot/vmlinuz-{RELEASE}"));
    world.write(&format!("boot/config-{RELEASE}"), crate::sample::CONFIG);
    world.module(
        &format!("lib/modules/{RELEASE}/kernel/null_blk.ko"),
        RELEASE,
    );
    let kernel = world.resolve(&image.display().to_string()).unwrap();
    assert_eq!(names(&kernel, &["null_blk"]), ["null_blk"]);
}

#[test]
fn an_image_without_any_configuration_says_how_to_give_one() {
    let world = world();
    let image = world.image("bzImage");
    let text = world
        .resolve(&image.display().to_string())
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("bzImage") && text.contains(",config:"),
        "{text}"
    );
    assert_eq!(
        fs::read_dir(world.cache.root().join("tmp"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn modules_for_another_release_are_refused() {
    let world = world();
    world.image("bzImage");
    world.write("config", crate::sample::CONFIG);
    world.module("m/kernel/null_blk.ko", "5.10.0");
    let reference = format!("image:{},modules:{}", world.at("bzImage"), world.at("m"));
    let text = world.resolve(&reference).unwrap_err().to_string();
    assert!(text.contains("5.10.0") && text.contains(RELEASE), "{text}");
}

#[test]
fn files_that_are_no_kernel_are_refused_by_name() {
    let world = world();
    world.write("config", crate::sample::CONFIG);
    let script = world.write("script", "#!/bin/sh\n");
    let elf = world.write("vmlinux", crate::sample::vmlinux(&[1; 20]));
    for (path, word) in [(&script, "no boot header"), (&elf, "bzImage")] {
        let error = world.resolve(&path.display().to_string()).unwrap_err();
        assert!(matches!(&error, KernelError::NotAKernel { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(&path.display().to_string()) && text.contains(word),
            "{text}"
        );
    }
    let text = world.resolve(&world.at("absent")).unwrap_err().to_string();
    assert!(text.contains("absent"), "{text}");
}

#[test]
fn a_name_that_is_not_in_the_cache_is_answered_with_what_is() {
    let world = world();
    let text = world.resolve("6.12").unwrap_err().to_string();
    assert!(text.contains("debian:bookworm/6.12"), "{text}");
    let tree = world.tree("drivers/block/null_blk/null_blk.o");
    let kernel = world.resolve(&tree).unwrap();
    for name in [
        RELEASE,
        "6.19",
        kernel.digest.as_str(),
        kernel.digest.short(),
    ] {
        assert_eq!(world.resolve(name).unwrap(), kernel, "{name}");
    }
    let text = world
        .resolve("6.19.0-rc4-00012-gabc")
        .unwrap_err()
        .to_string();
    assert!(
        text.contains(&format!("did you mean `{RELEASE}`")),
        "{text}"
    );
}

#[test]
fn symbolic_links_to_an_image_are_followed() {
    let world = world();
    world.image("real/bzImage");
    world.write("real/config", crate::sample::CONFIG);
    let link = world.folder.path().join("link");
    std::os::unix::fs::symlink(Path::new("real/bzImage"), &link).unwrap();
    assert_eq!(
        world.resolve(&link.display().to_string()).unwrap().release,
        RELEASE
    );
}
