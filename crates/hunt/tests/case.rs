//! Tests that the campaign file of a finding runs what was found.

use pagetide_arena::VariantSpec;
use pagetide_campaign::{ScenarioWords, Vocabulary, file};
use pagetide_hunt::case::{Case, Shown};
use pagetide_hunt::{Extent, Find, Goal, Share, Space, Workloads};
use pagetide_reference::Rng;

#[test]
fn the_campaign_file_has_the_variants_and_the_workload_of_the_finding() {
    let variant = |name: &str, kernel: &str| VariantSpec {
        name: name.to_owned(),
        kernel: kernel.to_owned(),
        ..VariantSpec::default()
    };
    let hunted = VariantSpec {
        boot: vec!["mitigations=off".to_owned()],
        settings: [("vm.swappiness".to_owned(), "10".to_owned())].into(),
        swap: Some("zswap:zstd+ssd:80us".parse().unwrap()),
        swap_size: Some("24M".parse().unwrap()),
        ..variant(
            "patched",
            "source:debian:6.12,config:my,x.config,patch:/p/a,b.patch,patch:/p/c.mbox,first:2",
        )
    };
    let all = [
        hunted,
        variant("base", "source:debian:6.12,config:my,x.config"),
        variant("control", "source:debian:6.12,patch:/p/a.patch,control"),
        variant("debian:sid", "debian:sid"),
    ];
    let space = Workloads::new(Extent::default());
    let point = space.random(&mut Rng::new(3));
    let find = Find {
        met: point.clone(),
        case: point.clone(),
        after: 1,
        value: 2.0,
        shown: "time 1 ms → 2 ms".to_owned(),
        seeds: Share::default(),
        first_seed: 301,
        sizes: Vec::new(),
        steps: 0,
        is_smallest: true,
        again: 0,
    };
    let shown = all.clone().map(|variant| Shown {
        variant,
        evidence: Vec::new(),
        share: None,
    });
    let case = |goal| Case {
        name: "case-1",
        goal,
        is_compared: true,
        find: &find,
        shown: &shown,
    };
    let words = ScenarioWords {
        params: vec!["workload".to_owned()],
        metrics: ["time", "killed"].map(str::to_owned).to_vec(),
        ..ScenarioWords::default()
    };
    let vocabulary = Vocabulary {
        scenarios: [("workload".to_owned(), words)].into(),
        ..Vocabulary::default()
    };
    let parsed = |goal| file::parse("case.toml", &case(goal).toml(), &vocabulary).unwrap();
    let campaign = parsed(Goal::Regressed);
    // The baseline comes first, and a colon cannot be in a name.
    let [hunted, base, control, sid] = all;
    let sid = VariantSpec {
        name: "debian-sid".to_owned(),
        ..sid
    };
    let of_one = Case {
        is_compared: false,
        ..case(Goal::Killed)
    };
    let of_one = file::parse("case.toml", &of_one.toml(), &vocabulary).unwrap();
    let first = [hunted.clone(), base.clone(), control.clone(), sid.clone()];
    assert_eq!(of_one.variants, first);
    assert_eq!(campaign.variants, [base, hunted, control, sid]);
    // Also for a goal that needs one variant only.
    assert_eq!(parsed(Goal::Killed).variants, campaign.variants);
    let params = &campaign.scenarios[0].params["workload"];
    let machine = point.machine.clone().unwrap();
    assert_eq!(campaign.scenarios[0].memory, [machine.memory.unwrap()]);
    assert_eq!(params.len(), 1);
    let folder = tempfile::tempdir().unwrap();
    case(Goal::Regressed)
        .write(folder.path(), &|_| 0.5)
        .unwrap();
    let c = std::fs::read_to_string(folder.path().join("case.c")).unwrap();
    assert!(c.contains("zswap:zstd+ssd:80us (24 MiB)"), "{c}");
}
