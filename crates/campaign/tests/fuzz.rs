//! Fuzz tests of campaign files.

use std::path::Path;

use pagetide_campaign::file::read;
use pagetide_campaign::{ScenarioWords, Vocabulary};
use pagetide_record::ArenaKind;
use pagetide_testing::fuzz::fuzz;

#[test]
fn campaign_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let corpus: Vec<Vec<u8>> = ["quick.toml", "kernels.toml"]
        .map(|name| std::fs::read(folder.join(name)).unwrap())
        .to_vec();
    let words = |params: &[&str]| ScenarioWords {
        params: params.iter().map(ToString::to_string).collect(),
        metrics: vec!["access-time".into(), "total".into()],
        ..ScenarioWords::default()
    };
    let vocabulary = Vocabulary {
        arenas: vec![ArenaKind::Exact],
        scenarios: [
            ("smooth-sin-random".to_owned(), words(&["pages", "refs"])),
            (
                "swapbench".to_owned(),
                words(&["locked", "processes", "size"]),
            ),
        ]
        .into(),
        settings: vec!["lru_gen/enabled".into()],
        ..Vocabulary::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    fuzz("campaign", &corpus, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let campaign = read(&path, &vocabulary).map_err(|why| why.to_string())?;
        // A plan is generated lazily: its first cells are available at once, however large it is.
        assert!(campaign.cells().take(10).count() <= 10);
        let _ = campaign.trial_count();
        Ok(())
    });
}
