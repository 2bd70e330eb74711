//! Tests of kinds of swap as variants: trials, plan, forecast, and campaigns that are refused.

use crate::common::{ScriptedArena, campaign, go};
use pagetide_arena::VariantSpec;
use pagetide_campaign::file::parse;
use pagetide_campaign::{
    Campaign, Nobody, Request, ScenarioWords, VariantChange, Vocabulary, forecast, striped,
};
use pagetide_compare::compare_campaign;
use pagetide_quantity::Bytes;
use pagetide_record::SwapSpec;
use pagetide_store::Store;

/// A campaign whose variants are kinds of swap; the first has the kind of the cell.
fn kinds(seeds: u32) -> Campaign {
    let variant = |name: &str, swap: Option<&str>| VariantSpec {
        name: name.into(),
        kernel: "6.12".into(),
        swap: swap.map(|swap| swap.parse().unwrap()),
        ..VariantSpec::default()
    };
    let mut kinds = campaign(seeds);
    kinds.variants = vec![
        variant("ssd", None),
        variant("zram", Some("zram")),
        variant("zswap", Some("zswap+ssd")),
    ];
    for scenario in &mut kinds.scenarios {
        scenario.swap = vec!["ssd".parse().unwrap()];
    }
    kinds
}

#[test]
fn every_variant_runs_on_its_own_swap_and_the_forecast_finds_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        effect: [("zram".to_owned(), 0.5)].into(),
        ..ScriptedArena::default()
    };
    let kinds = kinds(8);
    go(&kinds, &arena, dir.path(), 2, false, &Nobody).unwrap();
    let begun = arena.begun();
    assert_eq!(begun.len(), 3 * 2 * 8);
    for trial in &begun {
        let expected = match trial.variant.name.as_str() {
            "zswap" => SwapSpec::ZSWAP,
            "zram" => SwapSpec::ZRAM,
            _ => "ssd".parse().unwrap(),
        };
        assert_eq!(trial.swap, expected, "{}", trial.variant.name);
    }
    let store = Store::open(dir.path()).unwrap();
    let mut labels = Vec::new();
    let all = forecast(&kinds, &arena, &store, None, false, &[], &mut |cell| {
        labels.push(cell.label);
    });
    let all = all.unwrap();
    assert_eq!((all.found, all.trials), (48, 48));
    assert_eq!(labels, ["linear · 64M", "swapbench · 64M"]);
    let comparison = compare_campaign(&store, None).unwrap();
    let zram = comparison.cells[0].metrics[0].judgements[0]
        .as_ref()
        .unwrap();
    assert_eq!(zram.verdict.to_string(), "improved", "{zram:?}");
    assert_eq!(comparison.kinds.len(), 2);
    // A campaign with zram for all variants finds the record of the zram variant.
    let mut plain = kinds.clone();
    plain.variants.truncate(1);
    plain.variants[0].name = "alone".to_owned();
    for scenario in &mut plain.scenarios {
        scenario.swap = vec![SwapSpec::ZRAM];
    }
    plain.name = "plain".to_owned();
    let before = arena.begun().len();
    go(&plain, &arena, dir.path(), 2, false, &Nobody).unwrap();
    assert_eq!(arena.begun().len(), before, "the records are there");
}

fn vocabulary() -> Vocabulary {
    let words = ScenarioWords {
        default_memory: Bytes::from_mib(64),
        ..ScenarioWords::default()
    };
    Vocabulary {
        kernel: "debian:sid".to_owned(),
        scenarios: [("linear".to_owned(), words)].into(),
        ..Vocabulary::default()
    }
}

fn requested(swap: &[&str], changes: &[&str]) -> Result<Campaign, String> {
    let parsed = |text: &&str| text.parse::<VariantChange>().map_err(|why| why.to_string());
    let mut request = Request {
        changes: changes.iter().map(parsed).collect::<Result<_, _>>()?,
        ..Request::default()
    };
    request.adjustment.swap = swap.iter().map(|text| text.parse().unwrap()).collect();
    let campaign = request.campaign(&["linear".to_owned()], &vocabulary());
    campaign.map_err(|why| why.to_string())
}

#[test]
fn kinds_on_a_command_line_are_named_by_their_kind_and_mistakes_are_told_in_a_sentence() {
    let made = requested(
        &["ssd"],
        &["swap=zram", "swap=zswap+ssd", "swap=disk:8ms,20MB/s"],
    );
    let names: Vec<String> = made.unwrap().variants.into_iter().map(|v| v.name).collect();
    assert_eq!(names, ["ssd", "zram", "zswap+ssd", "disk-8ms-20MB/s"]);
    let why = |swap: &[&str], changes: &[&str]| requested(swap, changes).unwrap_err();
    let twice = why(&["ssd"], &["swap=zram", "swap=zram"]);
    assert!(
        twice.contains("`zram` and `zram (2)`") && twice.contains("(zram)"),
        "{twice}"
    );
    let baseline = why(&[], &["swap=zram"]);
    assert!(
        baseline.contains("the same kernel, settings and swap (zram)"),
        "{baseline}"
    );
    let cells = why(&["ssd", "zram"], &["swap=disk"]);
    assert!(
        cells.contains("2 kinds of swap, which make cells"),
        "{cells}"
    );
    let unknown = why(&[], &["swap=tape"]);
    assert!(
        unknown.starts_with("`tape` is no kind of swap: use zram"),
        "{unknown}"
    );
    for text in [twice, baseline, cells, unknown] {
        assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
    }
    // Sizes of one kind of swap are variants too. Then the kind stays in the cell's label.
    let sizes = requested(&["ssd"], &["swap-size=32M"]).unwrap();
    let label = sizes.cells().next().unwrap().label();
    assert_eq!(label, "linear · 64M · ssd:80us");
    assert_eq!(sizes.variants[1].name, "swap-size=32M");
}

const FILE: &str = "name = \"kinds\"\nswap = \"ssd\"\n[[variant]]\nname = \"ssd\"\n[[variant]]\nname = \"zram\"\nswap = \"zram:zstd\"\n\
     swap-size = \"32M\"\n[[scenario]]\nname = \"linear\"\n";

#[test]
fn a_variant_of_a_file_has_a_swap_of_its_own() {
    let campaign = parse("a.toml", FILE, &vocabulary()).unwrap();
    assert_eq!(
        campaign.variants[1].swap,
        Some("zram:zstd".parse().unwrap())
    );
    assert_eq!(campaign.variants[1].swap_size, Some(Bytes::from_mib(32)));
    assert_eq!(campaign.check_swap(), Ok(()));
    let wrong = FILE.replace("zram:zstd", "zram:ztsd");
    let why = parse("a.toml", &wrong, &vocabulary())
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("a.toml:7") && why.contains("did you mean `zstd`?"),
        "{why}"
    );
    let twice = FILE.replace(
        "swap = \"zram:zstd\"\nswap-size = \"32M\"\n",
        "swap = \"ssd:80us\"\n",
    );
    let campaign = parse("a.toml", &twice, &vocabulary()).unwrap();
    let why = campaign.check_swap().unwrap_err().to_string();
    assert!(why.contains("`ssd` and `zram`"), "{why}");
}

#[test]
fn devices_of_one_priority_are_said_to_be_striped_before_a_trial_runs() {
    let of = |swap: &[&str], changes: &[&str]| striped(&requested(swap, changes).unwrap());
    let said = of(&["ssd@5,ssd:1ms@5,disk@1"], &["swap=zram:8M@5,ssd:1ms@5"]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("ssd:80us@5 and ssd:1ms@5 have one priority"));
    assert!(said[1].starts_with("zram:8M@5 and ssd:1ms@5 have one priority"));
    assert!(of(&["zram:8M@100,ssd@10"], &["swap=ssd"]).is_empty());
}

#[test]
fn a_campaign_without_kinds_among_its_variants_has_the_name_it_always_had() {
    let with = requested(&["ssd"], &["vm.swappiness=1"]).unwrap();
    let text = serde_json::to_string(&with).unwrap();
    assert!(!text.contains("swap_size\":null,\"swap") && !text.contains("\"swap\":null"));
    let variants = serde_json::to_string(&with.variants).unwrap();
    assert!(
        !variants.contains("swap\":") && !variants.contains("swap_size"),
        "{variants}"
    );
}
