//! Fetches kernels from Debian's archive. Runs only with `PAGETIDE_TEST_NETWORK=1`, because it fetches about 27 MB.

use pagetide_kernel::{Cache, Freshness, KernelRef, Need, Step};

#[test]
fn bookworms_kernel_is_fetched_once_and_boots_with_what_the_guest_needs() {
    if std::env::var_os("PAGETIDE_TEST_NETWORK").is_none_or(|value| value != "1") {
        return pagetide_testing::skip(
            pagetide_testing::Need::Network,
            "PAGETIDE_TEST_NETWORK=1 is not set",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let reference: KernelRef = "debian:bookworm".parse().unwrap();
    let mut steps = Vec::new();
    let kernel = cache
        .resolve(&reference, Freshness::Pinned, &mut |step| {
            steps.push(step.clone());
        })
        .unwrap();
    assert_eq!(kernel.series(), "6.1");
    assert!(
        kernel.release.ends_with("-cloud-amd64"),
        "{}",
        kernel.release
    );
    assert!(
        kernel.build_id.known().is_some_and(|id| id.len() == 40),
        "{:?}",
        kernel.build_id
    );
    assert!(
        matches!(steps.first(), Some(Step::Updating { .. })),
        "{steps:?}"
    );
    cache.verify(&kernel).unwrap();
    kernel
        .require_all(&[
            Need::Swap,
            Need::NullBlk,
            Need::Zram,
            Need::LruGen,
            Need::Initramfs,
        ])
        .unwrap();
    let names = |modules: Vec<pagetide_kernel::Module>| {
        modules.into_iter().map(|m| m.name).collect::<Vec<_>>()
    };
    assert_eq!(
        names(kernel.modules_for(&["null_blk"]).unwrap()),
        ["configfs", "null_blk"]
    );
    assert!(names(kernel.zram_modules(None).unwrap()).ends_with(&["zram".to_owned()]));

    steps.clear();
    let again = cache
        .resolve(&reference, Freshness::Pinned, &mut |step| {
            steps.push(step.clone());
        })
        .unwrap();
    assert_eq!(
        (again, steps),
        (kernel, vec![]),
        "the second time nothing is asked"
    );
}
