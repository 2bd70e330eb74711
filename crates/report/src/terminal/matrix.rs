//! Result of a matrix of settings: the recommendation, the effects, the choices, and configuration lines to paste.

use pagetide_compare::matrixed::{Choice, KindEffects, Matrixed};
use pagetide_quantity::command::command;
use pagetide_quantity::{Bytes, Unit};
use pagetide_record::{ArenaKind, SwapSpec};
use pagetide_verdict::factorial::{Effect, Interaction};
use serde::Serialize;

use crate::about::EXACT_CAVEAT;
use crate::draw::quantity::{estimate_within, show};
use crate::draw::{Align, Ink, TextStyle};
use crate::terminal::list::{Row, list, table};

/// Message for a search that was stopped.
pub const STOPPED: &str = "stopped; the same command goes on from here";

/// Renders the whole result of `pagetide matrix`.
pub fn matrix(found: &Matrixed, text_style: &TextStyle) -> String {
    let mut out = String::new();
    put!(out, "{}\n", text_style.ink(Ink::Strong, &sentence(found)));
    put!(
        out,
        "\nWhat settings do to {} of {}{}\n",
        found.metric,
        found.cell,
        design(found)
    );
    out.push_str(&table(
        &EFFECTS,
        &[],
        effects(found, text_style.ascii),
        text_style,
    ));
    let pairs = pairs(found, text_style.ascii);
    if !pairs.is_empty() {
        put!(
            out,
            "\nWhat settings do together: both at `from` or both at `to`, against one of them alone at `to`\n"
        );
        out.push_str(&table(&PAIRS, &[], pairs, text_style));
    }
    for kind in found.kinds.iter().filter(|kind| kind.died > 0) {
        put!(out, "{}\n", deaths(found, kind));
    }
    for text in &found.left_out {
        put!(out, "Left out: {text}.\n");
    }
    put!(
        out,
        "\nWhat to choose, each with {} other seeds\n",
        found.seeds
    );
    let rows: Vec<ChoiceRow<'_>> = found
        .choices
        .iter()
        .enumerate()
        .map(|(place, choice)| ChoiceRow {
            choice,
            number: place,
            is_recommended: place == found.recommended,
            ascii: text_style.ascii,
        })
        .collect();
    out.push_str(&list(&rows, text_style));
    if let Some(choice) = found.choices.get(found.recommended)
        && found.recommended > 0
    {
        put!(out, "\n{}", paste(choice));
    }
    put!(
        out,
        "\n{} trials. `sure`: at 95 % for all rows of a table together, and at least 1 %. `front`: no other is surely better in one \
         of time, memory and bytes written to disk, and as good in the others.{}\n",
        found.trials,
        caveat(found.arena),
    );
    put!(
        out,
        "Records: `{}`\n",
        command(&["list", "records", "--campaign", &found.campaign])
    );
    out
}

/// Returns a sentence on what the times of this arena do not include, to follow other text; empty if there is none.
fn caveat(arena: ArenaKind) -> String {
    match arena {
        ArenaKind::Exact => format!(" {EXACT_CAVEAT}"),
        ArenaKind::Host | ArenaKind::Vm => String::new(),
    }
}

fn design(found: &Matrixed) -> String {
    let all = match found.resolution {
        None => "all combinations".to_owned(),
        Some(resolution) => format!(
            "a fraction of resolution {}",
            if resolution == 5 { "V" } else { "IV" }
        ),
    };
    format!(
        ": {} runs ({all}) with {} seeds for each kind of swap",
        found.runs, found.seeds
    )
}

/// Returns the recommended choice in one sentence; if the defaults are recommended, with the reason.
pub fn sentence(found: &Matrixed) -> String {
    let Some(choice) = found.choices.get(found.recommended) else {
        return "Nothing could be run.".to_owned();
    };
    if found.recommended > 0 {
        let name = name(choice);
        // If a run died with the defaults, the sentence states this first, because times are less important.
        let defaults = &found.choices[0];
        return match (
            &defaults.died,
            choice.against.share,
            choice.against.interval,
        ) {
            (Some(why), ..) => format!(
                "Take {name}: on {} with the defaults it {why}.",
                defaults.swap
            ),
            (None, Some(share), Some([low, high])) => {
                let [saved, least, most] = percents(-share, [-high, -low], true)
                    .map(|text| text.trim_start_matches('+').to_owned());
                format!(
                    "Take {name}: {saved} % of the time of the defaults saved (95 %: {least} to {most} %, {} seeds that did not choose it).",
                    choice.against.by_seed.len()
                )
            }
            _ => format!("Take {name}."),
        };
    }
    if let Some(why) = &choice.died {
        return format!(
            "With the defaults it {why}, and with nothing that was tried does it come to an end: raise --memory, or make the \
             workload smaller."
        );
    }
    if found.is_without_pressure() {
        return "No pressure: nothing was reclaimed, so these settings have nothing to act on here. Leave the defaults, or give \
                less --memory."
            .to_owned();
    }
    let effects = || found.kinds.iter().flat_map(|kind| &kind.effects);
    let together = found.kinds.iter().flat_map(KindEffects::sure_interactions);
    if let Some(interaction) = together
        .max_by(|a, b| size(&a.effect).total_cmp(&size(&b.effect)))
        .filter(|_| !effects().any(Matrixed::is_sure))
    {
        format!(
            "Leave the defaults: {} matter together, and no choice is surely faster than the defaults.",
            pair_names(found, interaction, " and ", ", or ")
        )
    } else if effects().any(Matrixed::is_sure) {
        "Leave the defaults: some settings matter, and no choice is surely faster than the defaults.".to_owned()
    } else if effects().any(|effect| effect.share.is_some()) {
        "No setting surely matters here: leave the defaults.".to_owned()
    } else {
        "Leave the defaults: runs died, so that no effect of a setting is known.".to_owned()
    }
}

fn size(effect: &Effect) -> f64 {
    effect.share.map_or(0.0, f64::abs)
}

/// Returns the names of the pairs of settings in an interaction. `with` joins the two settings of a pair, `or` joins
/// the pairs.
fn pair_names(found: &Matrixed, interaction: &Interaction, with: &str, or: &str) -> String {
    let name = |place: usize| found.factors.get(place).map_or("?", |factor| &factor.key);
    let pairs: Vec<String> = interaction
        .pairs
        .iter()
        .map(|[a, b]| format!("{}{with}{}", name(*a), name(*b)))
        .collect();
    pairs.join(or)
}

/// Formats a share and both ends of its interval in per cent, with signs and at least one decimal, as
/// [`estimate_within`] does.
fn percents(share: f64, interval: [f64; 2], ascii: bool) -> [String; 3] {
    estimate_within(share * 100.0, interval.map(|end| end * 100.0), 1, ascii)
}

/// Describes a choice of settings: its kind of swap and its settings.
fn name(choice: &Choice) -> String {
    let settings: Vec<String> = choice
        .settings
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    match settings.len() {
        0 => format!("swap on {} with the default settings", choice.swap),
        _ => format!("swap on {} with {}", choice.swap, settings.join(" ")),
    }
}

/// Describes the runs that died under a kind of swap, and the settings that they have in common.
fn deaths(found: &Matrixed, kind: &KindEffects) -> String {
    let common: Vec<String> = kind
        .blamed
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let common = match common.len() {
        0 => String::new(),
        _ => format!(" All of them have {}.", common.join(" and ")),
    };
    format!(
        "On {} {} of {} runs died, the first because {}.{common}",
        kind.swap,
        kind.died,
        found.runs,
        kind.why.as_deref().unwrap_or("of nothing that is known")
    )
}

/// Headings of the table of effects, which has a row for each setting under each kind of swap.
const EFFECTS: [(&str, Align); 7] = [
    ("setting", Align::Left),
    ("from", Align::Right),
    ("to", Align::Left),
    ("swap", Align::Left),
    ("cost", Align::Right),
    ("95 %", Align::Left),
    ("", Align::Left),
];

fn effects(found: &Matrixed, ascii: bool) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (place, factor) in found.factors.iter().enumerate() {
        for (number, kind) in found.kinds.iter().enumerate() {
            let Some(effect) = kind.effects.get(place) else {
                continue;
            };
            let once = |text: &str| match number {
                0 => text.to_owned(),
                _ => String::new(),
            };
            rows.push(vec![
                once(&factor.key),
                once(&factor.levels[0]),
                once(&factor.levels[1]),
                kind.swap.clone(),
                share(effect, ascii),
                interval(effect, ascii),
                match (Matrixed::is_sure(effect), effect.share) {
                    (true, _) => "sure".to_owned(),
                    (false, Some(_)) => String::new(),
                    (false, None) => "not known".to_owned(),
                },
            ]);
        }
    }
    rows
}

/// Headings of the table of interactions, which has a row for each significant interaction under each kind of swap.
const PAIRS: [(&str, Align); 5] = [
    ("settings", Align::Left),
    ("swap", Align::Left),
    ("cost", Align::Right),
    ("95 %", Align::Left),
    ("", Align::Left),
];

fn pairs(found: &Matrixed, ascii: bool) -> Vec<Vec<String>> {
    let of_kind = |kind: &KindEffects| -> Vec<Vec<String>> {
        let row = |interaction: &Interaction| {
            vec![
                pair_names(found, interaction, " with ", ", or "),
                kind.swap.clone(),
                share(&interaction.effect, ascii),
                interval(&interaction.effect, ascii),
                match interaction.pairs.len() {
                    1 => "sure".to_owned(),
                    _ => "sure of one of them, not of which".to_owned(),
                },
            ]
        };
        kind.sure_interactions().map(row).collect()
    };
    found.kinds.iter().flat_map(of_kind).collect()
}

fn share(effect: &Effect, ascii: bool) -> String {
    effect.share.map_or_else(String::new, |share| {
        let [share, ..] = percents(share, effect.interval.unwrap_or([share; 2]), ascii);
        format!("{share} %")
    })
}

fn interval(effect: &Effect, ascii: bool) -> String {
    effect.interval.map_or_else(String::new, |interval| {
        let share = effect.share.unwrap_or(interval[0]);
        let [_, low, high] = percents(share, interval, ascii);
        format!("{low} % to {high} %")
    })
}

/// Row for a choice with its cost.
#[derive(Serialize)]
struct ChoiceRow<'a> {
    choice: &'a Choice,
    number: usize,
    is_recommended: bool,
    ascii: bool,
}

impl Row for ChoiceRow<'_> {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("swap", Align::Left),
        ("settings", Align::Left),
        ("cost", Align::Right),
        ("95 %", Align::Left),
        ("memory", Align::Right),
        ("written", Align::Right),
        ("", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        let (choice, ascii) = (self.choice, self.ascii);
        let settings: Vec<String> = choice
            .settings
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let bytes = |value: Option<f64>| {
            value.map_or_else(String::new, |value| show(Unit::Bytes, value, ascii))
        };
        let mut words = Vec::new();
        if let Some(why) = &choice.died {
            words.push(why.as_str());
        }
        if choice.is_on_front {
            words.push("front");
        }
        if choice.against.is_sure(pagetide_compare::ALPHA, 0.01) {
            words.push("sure");
        }
        if self.is_recommended {
            words.push("recommended");
        }
        vec![
            choice.swap.clone(),
            if settings.is_empty() {
                "defaults".to_owned()
            } else {
                settings.join(" ")
            },
            if self.number == 0 {
                "0 %".to_owned()
            } else {
                share(&choice.against, ascii)
            },
            interval(&choice.against, ascii),
            bytes(choice.memory),
            bytes(choice.written),
            words.join(", "),
        ]
    }
}

/// Returns lines of configuration files and of the kernel command line that apply these settings to a machine. Sources:
/// `sysctl.d(5)`, `tmpfiles.d(5)`, `zram-generator.conf(5)`, kernel `Documentation/admin-guide/kernel-parameters.txt`.
pub fn paste(choice: &Choice) -> String {
    let (mut sysctl, mut tmpfiles, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
    let size: Option<Bytes> = choice.settings.iter().find_map(|(key, value)| {
        let is_size = key == "swap-size";
        is_size.then(|| value.parse().ok()).flatten()
    });
    for (key, value) in &choice.settings {
        match key.split_once('/') {
            Some(("thp", "enabled")) => arguments.push(format!("transparent_hugepage={value}")),
            Some(("zswap", rest)) => arguments.push(format!("zswap.{rest}={value}")),
            Some(("", _)) => tmpfiles.push(format!("w {key} - - - - {value}")),
            Some((folder, rest)) => {
                let folder = if folder == "thp" {
                    "transparent_hugepage"
                } else {
                    folder
                };
                tmpfiles.push(format!("w /sys/kernel/mm/{folder}/{rest} - - - - {value}"));
            }
            None if key == "boot" => arguments.push(value.clone()),
            None if key == "kernel" || key == "swap-size" => {}
            None => sysctl.push(format!("{key} = {value}")),
        }
    }
    let mut out = String::new();
    for (place, lines) in [
        ("/etc/sysctl.d/90-memory.conf", sysctl),
        ("/etc/tmpfiles.d/90-memory.conf", tmpfiles),
    ] {
        if !lines.is_empty() {
            put!(out, "# {place}\n{}\n", lines.join("\n"));
        }
    }
    let swap: Option<SwapSpec> = choice.swap.parse().ok();
    let compressor = swap.map_or("", |swap| swap.compressor().name());
    match swap {
        Some(SwapSpec::Zram(_)) => {
            let (how, size) = match size {
                Some(size) => ("in MiB, as in these runs", (size.0 >> 20).to_string()),
                None => (
                    "three times the memory free to the workload, as in these runs",
                    "ram * 3".to_owned(),
                ),
            };
            put!(
                out,
                "# /etc/systemd/zram-generator.conf ({how})\n[zram0]\nzram-size = {size}\ncompression-algorithm = {compressor}\n"
            );
        }
        Some(SwapSpec::Zswap(zswap)) => arguments.push(format!(
            "zswap.enabled=1 zswap.compressor={compressor} zswap.zpool={}",
            zswap.pool().name()
        )),
        _ => {}
    }
    if !arguments.is_empty() {
        put!(out, "# kernel command line\n{}\n", arguments.join(" "));
    }
    if let Some(disk) = swap.and_then(SwapSpec::on_disk) {
        let of = size.map_or_else(String::new, |size| format!(" of {size}"));
        put!(out, "# swap{of} on a disk such as `{disk}` here\n");
    }
    if swap.is_some() {
        let size = choice.settings.iter().find(|(key, _)| key == "swap-size");
        let size = size.map_or_else(String::new, |(_, size)| format!(" --swap-size {size}"));
        put!(out, "# in these runs: --swap {}{size}\n", choice.swap);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_compare::matrixed::Factor;

    fn effect(by_seed: &[f64]) -> Effect {
        let mut effect = Effect::of(by_seed.to_vec());
        effect.adjusted = effect.p;
        effect
    }

    fn found(by_seed: &[f64]) -> Matrixed {
        let choice = |swap: &str, settings: &[(&str, &str)]| Choice {
            swap: swap.to_owned(),
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            time: Some(1e9),
            is_on_front: true,
            ..Choice::default()
        };
        let mut better = choice(
            "zram",
            &[("vm.page-cluster", "0"), ("thp/enabled", "never")],
        );
        better.against = effect(by_seed);
        Matrixed {
            cell: "program sort · 16M · zram".to_owned(),
            metric: "elapsed".to_owned(),
            factors: vec![Factor {
                key: "vm.page-cluster".to_owned(),
                levels: ["3".to_owned(), "0".to_owned()],
            }],
            runs: 2,
            resolution: None,
            seeds: 4,
            kinds: vec![KindEffects {
                swap: "zram".to_owned(),
                effects: vec![effect(by_seed)],
                ..KindEffects::default()
            }],
            left_out: vec!["lru_gen/enabled (it is not there)".to_owned()],
            choices: vec![choice("zram", &[]), better],
            recommended: 0,
            trials: 24,
            arena: ArenaKind::Exact,
            campaign: "matrix-x".to_owned(),
        }
    }

    #[test]
    fn if_nothing_is_sure_the_defaults_are_recommended_and_nothing_is_to_be_pasted() {
        let text = matrix(&found(&[0.1, -0.2, 0.1, 0.0]), &TextStyle::plain(200));
        assert!(
            text.starts_with("No setting surely matters here: leave the defaults."),
            "{text}"
        );
        assert!(
            !text.contains("/etc/") && text.contains("Left out: lru_gen/enabled"),
            "{text}"
        );
        assert!(text.contains(EXACT_CAVEAT), "{text}");
        let on_host = Matrixed {
            arena: ArenaKind::Host,
            ..found(&[0.1, -0.2, 0.1, 0.0])
        };
        let text = matrix(&on_host, &TextStyle::plain(200));
        assert!(!text.contains("Exact arena"), "{text}");
    }

    #[test]
    fn settings_that_matter_only_together_are_named_and_no_pressure_is_said() {
        let mut found = found(&[0.0, 0.0, 0.0, 0.0]);
        let factor = |key: &str| Factor {
            key: key.to_owned(),
            levels: ["0".to_owned(), "1".to_owned()],
        };
        found.factors = ["a", "b", "c", "d"].map(factor).to_vec();
        let interaction = |pairs: &[[usize; 2]]| Interaction {
            pairs: pairs.to_vec(),
            effect: effect(&[0.35, 0.35, 0.36, 0.35]),
        };
        found.kinds[0].interactions = vec![interaction(&[[0, 1], [2, 3]])];
        let text = matrix(&found, &TextStyle::plain(200));
        assert!(
            text.starts_with("Leave the defaults: a and b, or c and d matter together"),
            "{text}"
        );
        assert!(text.contains("a with b, or c with d"), "{text}");
        // All combinations of four factors distinguish the pairs.
        found.kinds[0].active = vec![0, 1, 2, 3];
        found.kinds[0].told_apart = vec![interaction(&[[2, 3]])];
        let text = matrix(&found, &TextStyle::plain(200));
        assert!(
            text.starts_with("Leave the defaults: c and d matter"),
            "{text}"
        );
        assert!(!text.contains("a with b"), "{text}");
        for choice in &mut found.choices {
            choice.reclaimed = Some(0.0);
        }
        assert!(sentence(&found).starts_with("No pressure: nothing was reclaimed"));
        found.choices[1].reclaimed = Some(2.0);
        assert!(!sentence(&found).contains("No pressure"));
    }

    #[test]
    fn a_recommendation_says_how_much_how_sure_and_what_to_paste() {
        let mut found = found(&[-0.11, -0.10, -0.09, -0.10]);
        found.recommended = 1;
        let text = matrix(&found, &TextStyle::plain(200));
        for words in [
            "Take swap on zram with vm.page-cluster=0 thp/enabled=never: 9.5 %",
            "4 seeds that did not choose it",
            "vm.page-cluster = 0",
            "transparent_hugepage=never",
            "zram-size",
            "sure, recommended",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        // If a run died with the defaults, the sentence states this first, even if runs with other seeds were fast.
        found.choices[0].died = Some("was killed for lack of memory".to_owned());
        found.choices[0].swap = "ssd".to_owned();
        assert_eq!(
            sentence(&found),
            "Take swap on zram with vm.page-cluster=0 thp/enabled=never: on ssd with the defaults it was killed for lack of memory."
        );
        found.choices[0].died = None;
        found.recommended = 0;
        assert!(sentence(&found).contains("some settings matter"));
        found.kinds[0].died = 1;
        found.kinds[0].effects = vec![Effect::default()];
        assert!(sentence(&found).contains("no effect of a setting is known"));
        found.choices[0].died = Some("stopped (no memory)".to_owned());
        assert!(
            sentence(&found).starts_with("With the defaults it stopped (no memory), and "),
            "{}",
            sentence(&found)
        );
    }

    #[test]
    fn every_kind_of_setting_has_its_place() {
        let setting = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let text = paste(&Choice {
            swap: "zswap".to_owned(),
            settings: vec![
                setting("lru_gen/enabled", "0"),
                setting("thp/defrag", "never"),
                setting("/sys/kernel/mm/x", "1"),
                setting("boot", "quiet"),
            ],
            ..Choice::default()
        });
        for line in [
            "w /sys/kernel/mm/lru_gen/enabled - - - - 0",
            "w /sys/kernel/mm/transparent_hugepage/defrag - - - - never",
            "w /sys/kernel/mm/x - - - - 1",
            "quiet zswap.enabled=1 zswap.compressor=lz4 zswap.zpool=zsmalloc",
            "# swap on a disk such as `ssd:80us` here",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let swap = |swap: &str| {
            paste(&Choice {
                swap: swap.to_owned(),
                ..Choice::default()
            })
        };
        for (kind, line) in [
            ("zram", "compression-algorithm = lz4"),
            ("zram:zstd", "compression-algorithm = zstd"),
            (
                "zswap:zstd:zbud+disk",
                "zswap.enabled=1 zswap.compressor=zstd zswap.zpool=zbud",
            ),
            (
                "zswap+disk",
                "# swap on a disk such as `disk:8ms,40MB/s` here",
            ),
        ] {
            let text = swap(kind);
            assert!(text.lines().any(|found| found == line), "{kind}: {text}");
        }
        assert!(!swap("zram:zstd").contains("disk"));
    }
}
