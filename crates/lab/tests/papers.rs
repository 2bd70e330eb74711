//! Sizes in the campaigns of the papers and of their relatives: as committed, and at the papers' own scale; and what
//! the campaigns of the papers compare.

use std::collections::BTreeSet;
use std::path::Path;

use pagetide_campaign::{Campaign, file};
use pagetide_lab::vocabulary;
use pagetide_quantity::Bytes;
use pagetide_record::MemorySpec;
use pagetide_scenario::{Context, resolve};

/// The campaign file of a paper in this folder of `campaigns`.
fn campaign(folder: &str, paper: &str, scale: Option<f64>) -> Campaign {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../campaigns")
        .join(folder);
    let path = folder.join(paper).with_extension("toml");
    file::read_at(&path, scale, &vocabulary()).unwrap()
}

/// Returns the distinct combinations of memory, swap size and the parameters `shown` over all cells of a paper's
/// campaign in this folder.
fn sizes(folder: &str, paper: &str, scale: Option<f64>, shown: &[&str]) -> Vec<String> {
    let campaign = campaign(folder, paper, scale);
    let texts = campaign.cells().map(|cell| {
        let memory = cell.memory.bytes();
        let swap_size = cell.swap_size.unwrap_or(Bytes(memory.0 * 3));
        let context = Context {
            memory,
            swap_size,
            cpus: 1,
        };
        let form = cell.as_written;
        let params = resolve(&cell.scenario, form, None, &cell.params, &context).unwrap();
        let shown = shown
            .iter()
            .map(|name| format!(" {name}={}", params[*name]));
        let swap = MemorySpec::Free(swap_size);
        format!("{} {swap}{}", cell.memory, shown.collect::<String>())
    });
    let each_once: BTreeSet<String> = texts.collect();
    each_once.into_iter().collect()
}

#[test]
fn at_scale_one_each_paper_has_its_own_size() {
    let own = |paper, shown: &[&str]| sizes("relatives", paper, Some(1.0), shown);
    assert_eq!(
        own("contswap", &["mapping", "reclaimers"]),
        ["2G 6G mapping=1650M reclaimers=128"]
    );
    assert_eq!(
        own("vmregress", &["pages", "refs"]),
        [
            "100000K 256M pages=25000 refs=2000000",
            "100000K 256M pages=50000 refs=2000000"
        ]
    );
    // The repaired scenario ages memory for a few seconds, and the scenario as written for five minutes.
    assert_eq!(
        own("highalloc", &["jobs", "age"]),
        ["total:3G 3G jobs=8 age=300s", "total:3G 3G jobs=8 age=4s"]
    );
    assert_eq!(
        own("swapbench", &["locked", "processes", "size"]),
        ["total:192M 384M locked=110M processes=30 size=10M"]
    );
    assert_eq!(own("filecopy", &["size"]), ["total:512M 1536M size=1G"]);
}

#[test]
fn as_committed_each_paper_keeps_the_proportions_of_its_own_size() {
    let small = |paper, shown: &[&str]| sizes("relatives", paper, None, shown);
    assert_eq!(
        small("contswap", &["reclaimers"]),
        ["128M 384M reclaimers=128"]
    );
    // 49 MiB are 12,544 pages. The paper has 80 references for each of 25,000 pages; here the number per page is the
    // same.
    assert_eq!(
        small("vmregress", &["pages", "refs"]),
        [
            "49M 128M pages=12544 refs=1003520",
            "49M 128M pages=25088 refs=1003520"
        ]
    );
    assert_eq!(
        small("highalloc", &["age"]),
        ["total:192M 192M age=18750ms", "total:192M 192M age=4s"]
    );
    assert_eq!(small("filecopy", &["size"]), ["total:128M 384M size=256M"]);
}

#[test]
fn a_papers_campaign_compares_its_change_at_the_size_of_its_relative() {
    let papers = [
        ("contswap", &["mapping", "reclaimers"][..], 4),
        ("highalloc", &["jobs"], 4),
        ("swapbench", &["locked", "processes", "size"], 1),
        ("filecopy", &["size"], 1),
    ];
    for (paper, shown, cpus) in papers {
        let own = |folder| sizes(folder, paper, Some(1.0), shown);
        assert_eq!(own("papers"), own("relatives"), "{paper}");
        let campaign = campaign("papers", paper, None);
        assert!(
            campaign.cells().all(|cell| cell.cpus.count == cpus),
            "{paper}"
        );
        // A switch of a kernel as it is does not stand for the change.
        let mut variants = campaign.variants.iter();
        assert!(
            variants.any(|variant| variant.kernel.contains("patch:")),
            "{paper}"
        );
    }
}
