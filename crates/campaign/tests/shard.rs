//! Tests of shards: the stores of all shards together hold the same records as a run of the whole campaign.

use std::path::PathBuf;

use crate::common::{ScriptedArena, campaign, contents, go, options};
use pagetide_campaign::{
    Campaign, Nobody, Options, Outcome, RunError, Shard, Until, plan_shard, run,
};
use pagetide_store::Store;

fn part(campaign: &Campaign, folder: &std::path::Path, shard: Shard) -> Result<Outcome, RunError> {
    let options = Options {
        jobs: Some(2),
        shard: Some(shard),
        command: format!("pagetide run test.toml --shard {shard}"),
        ..options()
    };
    let mut store = Store::open(folder).unwrap();
    run(
        campaign,
        &ScriptedArena::default(),
        &mut store,
        &options,
        &Nobody,
    )
}

#[test]
fn merged_shards_are_a_whole_run() {
    let dir = tempfile::tempdir().unwrap();
    let campaign = campaign(5);
    go(
        &campaign,
        &ScriptedArena::default(),
        &dir.path().join("whole"),
        2,
        false,
        &Nobody,
    )
    .unwrap();
    let whole = Store::open(&dir.path().join("whole")).unwrap();
    for count in [1, 3, 100] {
        let folders: Vec<PathBuf> = (1..=count)
            .map(|number| {
                let planned = plan_shard(
                    &campaign,
                    &ScriptedArena::default(),
                    Shard { number, count },
                );
                let folder = dir.path().join(format!("shard-{number}-of-{count}"));
                let shard = Shard { number, count };
                let outcome = part(&campaign, &folder, shard).unwrap();
                assert_eq!(outcome.tally.total, outcome.tally.ran);
                assert_eq!(planned.unwrap().trials, outcome.tally.total as u64);
                // A second run of a shard finds its records and runs nothing.
                assert_eq!(part(&campaign, &folder, shard).unwrap().tally.ran, 0);
                folder
            })
            .collect();
        let all = dir.path().join(format!("all-{count}"));
        let merge = Store::open(&all).unwrap().merge(&folders, false).unwrap();
        assert_eq!((merge.added, merge.is_whole()), (40, true));
        let store = Store::open(&all).unwrap();
        assert_eq!(contents(&all), contents(whole.folder()));
        assert_eq!(store.campaign("quick").unwrap().unwrap().entries.len(), 40);
        let end = go(
            &campaign,
            &ScriptedArena::default(),
            &all,
            2,
            false,
            &Nobody,
        )
        .unwrap();
        assert_eq!((end.tally.found, end.tally.ran), (40, 0));
        assert_eq!(
            end.note.entries,
            whole.campaign("quick").unwrap().unwrap().entries
        );
    }
}

#[test]
fn a_shard_of_a_campaign_without_a_fixed_number_of_trials_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut campaign = campaign(5);
    campaign.sampling.until = Until::Sure {
        cap: 9,
        looks: Vec::new(),
    };
    let shard = Shard {
        number: 1,
        count: 2,
    };
    let error = part(&campaign, dir.path(), shard).unwrap_err();
    assert!(matches!(error, RunError::Sharded { .. }), "{error}");
    assert!(error.is_user_error());
    assert!(contents(dir.path()).is_empty());
}
