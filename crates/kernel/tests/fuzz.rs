//! Fuzzes the input formats of kernels: packages (ar, tar, compression), images and their ELF, modules, configurations.

#![allow(dead_code, reason = "not every sample is used here")]

use crate::sample::Deb;
use pagetide_kernel::{Cache, Config, Freshness, Image, KernelRef, Modinfo};
use pagetide_testing::fuzz::fuzz;

#[test]
fn packages() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path().join("cache")).unwrap();
    let corpus: Vec<Vec<u8>> = ["", ".gz", ".xz", ".zst"]
        .into_iter()
        .map(|ending| {
            let mut deb = Deb::kernel("6.1.0-9-cloud-amd64", "6.1.20-1");
            deb.ending = ending;
            deb.build()
        })
        .collect();
    let path = dir.path().join("x.deb");
    fuzz("deb", &corpus, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let reference = KernelRef::Path(path.clone());
        cache
            .resolve(&reference, Freshness::Pinned, &mut |_| {})
            .map(drop)
            .map_err(|why| why.to_string())
    });
}

#[test]
fn images() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bzImage");
    let vmlinux = crate::sample::vmlinux(&[7; 20]);
    let corpus = [
        crate::sample::bzimage("6.1.0-9", &crate::sample::packed(".gz", &vmlinux)),
        crate::sample::bzimage("6.1.0-9", &vmlinux),
        vmlinux,
    ];
    fuzz("image", &corpus, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let image = Image::open(&path).map_err(|why| why.to_string())?;
        let _ = (
            image.release().len(),
            image.build_id(),
            image.built_in_config(),
        );
        Ok(())
    });
}

#[test]
fn modules() {
    let corpus = [crate::sample::module(&[
        "name=zram",
        "depends=lz4,zsmalloc",
        "license=GPL",
    ])];
    fuzz("modinfo", &corpus, |bytes| Modinfo::parse(bytes).map(drop));
}

#[test]
fn configurations() {
    let corpus =
        [b"CONFIG_SWAP=y\n# CONFIG_ZRAM is not set\nCONFIG_X=m\nCONFIG_N=\"6\"\n".to_vec()];
    fuzz("config", &corpus, |bytes| {
        let config = Config::parse(&String::from_utf8_lossy(bytes));
        let _ = (config.get("CONFIG_SWAP"), config.is_empty());
        Ok(())
    });
}
