//! Tests of packages given as files: the files that are unpacked, and the packages that are refused.

use std::path::Path;

use crate::sample::Deb;
use pagetide_kernel::{BuildId, Cache, Freshness, Kernel, KernelError, KernelRef, Need, Setting};
use proptest::prelude::*;

const RELEASE: &str = "6.1.0-9-cloud-amd64";

fn cache() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    (folder, cache)
}

fn resolve(cache: &Cache, path: &Path) -> Result<Kernel, KernelError> {
    cache.resolve(
        &KernelRef::Path(path.to_owned()),
        Freshness::Pinned,
        &mut |_| {},
    )
}

/// Asserts that no file of a refused package is left in the cache.
fn assert_clean(cache: &Cache) {
    for folder in ["kernels", "tmp", "pins"] {
        let left: Vec<_> = std::fs::read_dir(cache.root().join(folder))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "{folder}: {left:?}");
    }
}

#[test]
fn a_package_becomes_a_kernel_with_all_its_facts() {
    let (folder, cache) = cache();
    for ending in [".xz", ".zst", ".gz", ""] {
        let mut deb = Deb::kernel(RELEASE, "6.1.20-1");
        deb.ending = ending;
        let kernel = resolve(&cache, &deb.write(folder.path())).unwrap();
        assert_eq!(kernel.release, RELEASE);
        assert_eq!(kernel.label(), "6.1.0-9");
        assert_eq!(kernel.build_id, BuildId::Known("07".repeat(20)));
        assert_eq!(
            kernel.origin.packages,
            ["linux-image-6.1.0-9-cloud-amd64-unsigned=6.1.20-1"]
        );
        assert_eq!(
            kernel.config().unwrap().get("CONFIG_BLK_DEV_NULL_BLK"),
            Setting::Module
        );
        assert!(!kernel.folder().join("System.map").exists());
        assert_eq!(kernel.modules, 2);
        let names: Vec<String> = kernel
            .modules_for(&["null_blk"])
            .unwrap()
            .into_iter()
            .map(|m| m.name)
            .collect();
        assert_eq!(names, ["configfs", "null_blk"]);
        cache.verify(&kernel).unwrap();
    }
    assert_eq!(
        cache.list().unwrap().len(),
        1,
        "the same content is the same kernel however it was packed"
    );
}

#[test]
fn what_the_kernel_lacks_is_named_with_its_option() {
    let (folder, cache) = cache();
    let kernel = resolve(&cache, &Deb::kernel(RELEASE, "1-1").write(folder.path())).unwrap();
    kernel.require_all(&[Need::Swap, Need::NullBlk]).unwrap();
    let text = kernel.require(Need::Zram).unwrap_err().to_string();
    assert!(
        text.contains("CONFIG_ZRAM") && text.contains(RELEASE),
        "{text}"
    );
    assert!(kernel.zram_modules(None).is_err());
    let missing = kernel.modules_for(&["virtio-blk"]).unwrap_err();
    assert!(matches!(&missing, KernelError::NoModule { module, .. } if module == "virtio-blk"));
    assert!(
        missing.to_string().contains("CONFIG_VIRTIO_BLK"),
        "{missing}"
    );
    let lacks = kernel
        .lacks(&[Need::Swap, Need::Zram, Need::LruGen])
        .unwrap();
    assert_eq!(
        lacks.iter().map(|missing| missing.need).collect::<Vec<_>>(),
        [Need::Zram, Need::LruGen]
    );
}

#[test]
fn a_compressor_is_found_in_the_crypto_modules_of_older_kernels_and_in_zram_itself_in_newer_ones() {
    let (folder, cache) = cache();
    let kernel = |version: &str, config: &str| {
        let mut deb = Deb::kernel(RELEASE, version);
        deb.files[1].1 = format!("CONFIG_ZRAM=m\n{config}").into_bytes();
        let vermagic = format!("vermagic={RELEASE} SMP");
        for (name, depends) in [
            ("zram", "depends=zsmalloc"),
            ("zsmalloc", "depends="),
            ("lzo-rle", "depends="),
        ] {
            let path = format!("./lib/modules/{RELEASE}/kernel/{name}.ko");
            deb.files
                .push((path, crate::sample::module(&[depends, &vermagic])));
        }
        resolve(&cache, &deb.write(folder.path())).unwrap()
    };
    let names = |kernel: &Kernel, compressor| -> Vec<String> {
        kernel
            .zram_modules(compressor)
            .unwrap()
            .into_iter()
            .map(|module| module.name)
            .collect()
    };
    let old = kernel("1-1", "CONFIG_ZRAM_DEF_COMP=\"lzo-rle\"\n");
    assert_eq!(names(&old, None), ["lzo_rle", "zsmalloc", "zram"]);
    let text = old.zram_modules(Some("lz4")).unwrap_err().to_string();
    assert!(text.contains("CONFIG_CRYPTO_LZ4"), "{text}");
    let new = kernel(
        "1-2",
        "CONFIG_ZRAM_BACKEND_LZ4=y\nCONFIG_ZRAM_DEF_COMP=\"lz4\"\n",
    );
    assert_eq!(names(&new, Some("lz4")), ["zsmalloc", "zram"]);
    let text = new.zram_modules(Some("lzo-rle")).unwrap_err().to_string();
    assert!(text.contains("CONFIG_ZRAM_BACKEND_LZO,"), "{text}");
}

#[test]
fn zswap_finds_its_compressor_and_its_pool_or_says_which_option_gives_them() {
    let (folder, cache) = cache();
    let kernel = |version: &str, config: &str| {
        let mut deb = Deb::kernel(RELEASE, version);
        deb.files[1].1 = config.as_bytes().to_vec();
        let vermagic = format!("vermagic={RELEASE} SMP");
        for (name, depends) in [
            ("zsmalloc", "depends="),
            ("z3fold", "depends="),
            ("zstd", "depends="),
        ] {
            let path = format!("./lib/modules/{RELEASE}/kernel/{name}.ko");
            deb.files
                .push((path, crate::sample::module(&[depends, &vermagic])));
        }
        resolve(&cache, &deb.write(folder.path())).unwrap()
    };
    let old = kernel(
        "1-1",
        "CONFIG_ZSWAP=y\nCONFIG_ZSMALLOC=m\nCONFIG_Z3FOLD=m\nCONFIG_CRYPTO_ZSTD=m\nCONFIG_CRYPTO_LZO=y\n",
    );
    let names = |compressor, pool| -> Vec<String> {
        let modules = old.zswap_modules(compressor, pool).unwrap();
        modules.into_iter().map(|module| module.name).collect()
    };
    assert_eq!(names("zstd", "zsmalloc"), ["zstd", "zsmalloc"]);
    assert_eq!(
        names("lzo-rle", "z3fold"),
        ["z3fold"],
        "the other is built in"
    );
    let why = |kernel: &Kernel, compressor, pool| {
        let refused = kernel.zswap_modules(compressor, pool);
        refused.unwrap_err().to_string()
    };
    let text = why(&old, "842", "zsmalloc");
    assert!(
        text.starts_with("zswap of") && text.contains("CONFIG_CRYPTO_842"),
        "{text}"
    );
    let text = why(&old, "zstd", "zbud");
    assert!(
        text.contains("zbud") && text.contains("CONFIG_ZBUD"),
        "{text}"
    );
    let none = kernel("1-2", "# CONFIG_ZSWAP is not set\nCONFIG_CRYPTO_ZSTD=m\n");
    let text = why(&none, "zstd", "zsmalloc");
    assert!(text.contains("zswap needs CONFIG_ZSWAP"), "{text}");
}

#[test]
fn a_package_cut_anywhere_is_refused_by_name_and_leaves_nothing() {
    let (folder, cache) = cache();
    let deb = Deb::kernel(RELEASE, "1-1");
    let path = deb.write(folder.path());
    let whole = deb.build();
    for length in (0..whole.len() - 1).step_by(97) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = resolve(&cache, &path).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&path.display().to_string()),
            "{length}: {text}"
        );
        assert!(
            matches!(
                error,
                KernelError::Truncated { .. } | KernelError::NotAPackage { .. }
            ),
            "{length}: {text}"
        );
    }
    assert_clean(&cache);
}

#[test]
fn a_package_of_another_architecture_is_refused() {
    let (folder, cache) = cache();
    let mut deb = Deb::kernel(RELEASE, "1-1");
    deb.architecture = "arm64".into();
    let error = resolve(&cache, &deb.write(folder.path())).unwrap_err();
    assert!(
        matches!(&error, KernelError::OtherArchitecture { architecture, .. } if architecture == "arm64")
    );
    assert!(error.to_string().contains("amd64"), "{error}");
    assert_clean(&cache);
}

#[test]
fn members_that_lead_outside_are_refused() {
    let (folder, cache) = cache();
    for member in [
        "../../etc/passwd",
        "./boot/../../x",
        "/etc/passwd",
        "./lib/modules/6.1/kernel/../../../../x.ko",
    ] {
        let mut deb = Deb::kernel(RELEASE, "1-1");
        deb.files.push((member.into(), b"evil".to_vec()));
        let error = resolve(&cache, &deb.write(folder.path())).unwrap_err();
        assert!(
            matches!(&error, KernelError::UnsafeMember { member: m, .. } if m == member),
            "{error}"
        );
    }
    assert_clean(&cache);
}

#[test]
fn a_package_without_a_kernel_says_so() {
    let (folder, cache) = cache();
    let mut deb = Deb::new("hello", "1-1", "libc6");
    deb.files
        .push(("./usr/bin/hello".into(), b"hello".to_vec()));
    let error = resolve(&cache, &deb.write(folder.path())).unwrap_err();
    assert!(matches!(error, KernelError::NoKernelInside { .. }));
    assert!(error.to_string().contains("hello_1-1_amd64.deb"), "{error}");
    assert_clean(&cache);
}

#[test]
fn files_that_are_no_packages_say_so() {
    let (folder, cache) = cache();
    let path = folder.path().join("x.deb");
    for content in [&b""[..], b"hello", b"!<arch>\n", b"PK\x03\x04 zip archive"] {
        std::fs::write(&path, content).unwrap();
        let text = resolve(&cache, &path).unwrap_err().to_string();
        assert!(text.contains("x.deb"), "{text}");
    }
    let absent = resolve(&cache, &folder.path().join("absent.deb"))
        .unwrap_err()
        .to_string();
    assert!(absent.contains("absent.deb"), "{absent}");
}

/// Writes a kernel split into packages as in sid: the image package is empty and depends on the other packages.
fn split(folder: &Path) -> std::path::PathBuf {
    let release = "7.2.1+deb14-cloud-amd64";
    let place = format!("./usr/lib/modules/{release}");
    let vermagic = format!("vermagic={release} SMP");
    let name = |part: &str| format!("linux-{part}-{release}");
    let on = |part: &str| format!("{} (= 7.2.1-1)", name(part));
    let mut base = Deb::new(&name("base"), "7.2.1-1", "");
    base.files = vec![
        (format!("{place}/config"), b"CONFIG_SWAP=y\n".to_vec()),
        (
            format!("{place}/modules.builtin"),
            b"kernel/mm/zsmalloc.ko\n".to_vec(),
        ),
    ];
    let mut binary = Deb::new(&name("binary"), "7.2.1-1", &on("base"));
    binary.files = vec![(
        format!("{place}/vmlinuz"),
        crate::sample::bzimage(release, &crate::sample::vmlinux(&[9; 20])),
    )];
    let mut modules = Deb::new(
        &name("modules"),
        "7.2.1-1",
        &format!("kmod, {}", on("base")),
    );
    modules.files = vec![(
        format!("{place}/kernel/zram.ko"),
        crate::sample::module(&["depends=zsmalloc", &vermagic]),
    )];
    let image = Deb::new(
        &name("image"),
        "7.2.1-1",
        &format!("dracut | x, {}, {}", on("binary"), on("modules")),
    );
    for deb in [&base, &binary, &modules] {
        deb.write(folder);
    }
    image.write(folder)
}

#[test]
fn parts_of_a_split_package_are_found_beside_it() {
    let (folder, cache) = cache();
    let image = split(folder.path());
    let kernel = resolve(&cache, &image).unwrap();
    assert_eq!(kernel.release, "7.2.1+deb14-cloud-amd64");
    assert_eq!(kernel.label(), "7.2.1");
    assert_eq!(kernel.origin.packages.len(), 4);
    let names: Vec<String> = kernel
        .modules_for(&["zram"])
        .unwrap()
        .into_iter()
        .map(|m| m.name)
        .collect();
    assert_eq!(names, ["zram"], "zsmalloc is built in");
}

#[test]
fn a_part_that_is_not_there_is_asked_for_by_name() {
    let (folder, cache) = cache();
    let image = split(folder.path());
    std::fs::remove_file(
        folder
            .path()
            .join("linux-binary-7.2.1+deb14-cloud-amd64_7.2.1-1_amd64.deb"),
    )
    .unwrap();
    let text = resolve(&cache, &image).unwrap_err().to_string();
    assert!(
        text.contains("put linux-binary-7.2.1+deb14-cloud-amd64 beside it"),
        "{text}"
    );
}

#[test]
fn modules_of_another_kernel_are_refused() {
    let (folder, cache) = cache();
    let mut deb = Deb::kernel(RELEASE, "1-1");
    let path = format!("./lib/modules/{RELEASE}/kernel/a/alien.ko");
    deb.files
        .push((path, crate::sample::module(&["vermagic=5.10.0 SMP"])));
    let error = resolve(&cache, &deb.write(folder.path())).unwrap_err();
    assert!(
        matches!(&error, KernelError::OtherRelease { modules, .. } if modules == "5.10.0"),
        "{error}"
    );
    assert_clean(&cache);
}

#[test]
fn a_changed_package_file_is_read_again() {
    let (folder, cache) = cache();
    let path = folder.path().join("kernel.deb");
    std::fs::write(&path, Deb::kernel(RELEASE, "1-1").build()).unwrap();
    let first = resolve(&cache, &path).unwrap();
    assert_eq!(resolve(&cache, &path).unwrap(), first);
    std::fs::write(&path, Deb::kernel(RELEASE, "1-2").build()).unwrap();
    assert_ne!(resolve(&cache, &path).unwrap().digest, first.digest);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_package_with_any_bytes_changed_never_panics(
        changes in prop::collection::vec((0_usize..4000, any::<u8>()), 1..6),
        ending in prop::sample::select(vec![".xz", ".zst", ".gz", ""]),
    ) {
        let (folder, cache) = cache();
        let mut deb = Deb::kernel(RELEASE, "1-1");
        deb.ending = ending;
        let mut bytes = deb.build();
        let length = bytes.len();
        for (at, byte) in changes {
            bytes[at % length] = byte;
        }
        let path = folder.path().join("x.deb");
        std::fs::write(&path, bytes).unwrap();
        if let Ok(kernel) = resolve(&cache, &path) {
            let _ = kernel.modules_for(&["null_blk"]);
        }
    }
}
