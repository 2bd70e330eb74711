//! Tests of properties of all workloads: each is refused or bounded, and each form is read back as it was written.

#![allow(clippy::unwrap_used, reason = "tests")]

use pagetide_quantity::{Bytes, Nanos};
use pagetide_reference::Pattern;
use pagetide_workload::{
    Access, Advice, Amount, By, CaseMachine, Count, Group, Kind, Limit, MAX_ACCESSES, MAX_FILES,
    MAX_GROUPS, MAX_PHASES, MAX_PROCESSES, MAX_TIME, PageSize, Phase, Process, Segment, Size,
    Workload, c_file, group_names, started,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn name(letters: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(letters).prop_map(str::to_owned)
}

fn segment_name() -> impl Strategy<Value = String> {
    name(&["heap", "data", "log", "none"])
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        (0_u32..110_000).prop_map(Size::Share),
        (0_u64..1 << 28).prop_map(|bytes| Size::Bytes(Bytes(bytes))),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![Just(Limit::Max), size().prop_map(Limit::Size)]
}

fn part() -> impl Strategy<Value = Option<[f64; 2]>> {
    proptest::option::of((0.0_f64..1.1, 0.0_f64..1.1).prop_map(|(a, b)| [a.min(b), a.max(b)]))
}

fn segment() -> impl Strategy<Value = Segment> {
    let kinds = prop::sample::select(&Kind::ALL[..]);
    let pages = prop::sample::select(vec![PageSize::Small, PageSize::Huge, PageSize::Default]);
    let file = proptest::option::of(name(&["one", "two"]));
    (
        segment_name(),
        kinds,
        size(),
        pages,
        any::<bool>(),
        file,
        any::<bool>(),
    )
        .prop_map(|(name, kind, size, pages, locked, file, empty)| Segment {
            kind,
            pages: if kind == Kind::Anonymous {
                pages
            } else {
                PageSize::Small
            },
            locked: locked && !kind.is_file(),
            file: file.filter(|_| kind.is_file()),
            empty: empty && kind == Kind::File,
            ..Segment::new(&name, kind, size)
        })
}

fn access() -> impl Strategy<Value = Phase> {
    let patterns = prop::sample::select(vec![
        "linear",
        "loop",
        "random",
        "zipf(0.9)",
        "zipf(1.1,scatter)",
        "zipf05",
        "lognormal",
        "hot-cold(0.2,move=50)",
        "cold-first(0.3)",
        "scan-with-hot-core",
        "smooth-sin",
        "smooth-sin-random(as-written)",
    ]);
    let count = prop_oneof![
        (1_u64..1 << 30).prop_map(Count::Accesses),
        (0_u32..110_000).prop_map(Count::Passes),
    ];
    let until = proptest::option::of(name(&["a", "b", "mark"]));
    (
        segment_name(),
        patterns,
        0.0_f64..1.2,
        count,
        any::<[bool; 2]>(),
        0_u64..1 << 31,
        0_u32..100,
        part(),
        until,
    )
        .prop_map(
            |(segment, pattern, writes, count, [page, call], pause, every, part, until)| {
                Phase::Access(Access {
                    pattern: pattern.parse::<Pattern>().unwrap(),
                    writes,
                    count,
                    amount: if page { Amount::Page } else { Amount::Word },
                    by: if call { By::Call } else { By::Mapping },
                    pause: Nanos(pause),
                    every,
                    part,
                    until,
                    ..Access::new(&segment)
                })
            },
        )
}

fn phase() -> impl Strategy<Value = Phase> {
    let leaf = prop_oneof![
        access(),
        (segment_name(), any::<bool>(), part()).prop_map(|(segment, call, part)| Phase::Fill {
            segment,
            by: if call { By::Call } else { By::Mapping },
            part,
        }),
        (segment_name(), segment_name()).prop_map(|(from, to)| Phase::Copy { from, to }),
        segment_name().prop_map(|segment| Phase::Sync { segment }),
        (
            segment_name(),
            prop::sample::select(&Advice::ALL[..]),
            part()
        )
            .prop_map(|(segment, advice, part)| Phase::Advise {
                segment,
                advice,
                part
            }),
        Just(Phase::Join {}),
        Just(Phase::Mark {
            name: "mark".to_owned()
        }),
        name(&["mark", "a", "b"]).prop_map(|name| Phase::Wait { r#for: name }),
        (0_u64..1 << 40).prop_map(|time| Phase::Pause { time: Nanos(time) }),
        (name(&["apps", "other"]), size())
            .prop_map(|(group, amount)| Phase::Reclaim { group, amount }),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (0_u32..300, vec(inner.clone(), 0..4))
                .prop_map(|(count, phases)| Phase::Fork { count, phases }),
            (0_u32..20_000, vec(inner, 0..4))
                .prop_map(|(times, phases)| Phase::Repeat { times, phases }),
        ]
    })
}

fn workload() -> impl Strategy<Value = Workload> {
    let group = (
        any::<bool>(),
        limit(),
        limit(),
        proptest::option::of(size()),
    )
        .prop_map(|(each, max, swap_max, low)| Group {
            name: "apps".to_owned(),
            each,
            max,
            swap_max,
            low,
            ..Group::default()
        });
    let process = |name: &'static str| {
        (
            0_u32..40,
            any::<bool>(),
            any::<bool>(),
            0_u64..1 << 34,
            vec(segment(), 0..4),
            vec(phase(), 0..6),
        )
            .prop_map(
                move |(count, grouped, turned, stagger, segments, phases)| Process {
                    name: name.to_owned(),
                    count,
                    group: grouped.then(|| "apps".to_owned()),
                    turn: turned.then(|| "mark".to_owned()),
                    start: Nanos(0),
                    stagger: Nanos(stagger),
                    segments,
                    phases,
                },
            )
    };
    (
        0_u64..1 << 40,
        vec(group, 0..2),
        process("a"),
        proptest::option::of(process("b")),
    )
        .prop_map(|(limit, groups, first, second)| Workload {
            time_limit: Nanos(limit),
            machine: None,
            groups,
            processes: std::iter::once(first).chain(second).collect(),
        })
}

/// Number of phases in the text, at all depths.
fn written(phases: &[Phase]) -> usize {
    phases.iter().map(|phase| 1 + written(phase.inner())).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn every_form_reads_as_it_was_written(workload in workload()) {
        if workload.validate().is_ok() {
            let json = serde_json::to_string(&workload).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Workload>(&json).unwrap(), &workload);
            prop_assert_eq!(&Workload::from_toml(&workload.to_toml()).unwrap(), &workload);
            let canonical = workload.canonical();
            prop_assert_eq!(Workload::from_canonical(&canonical).unwrap().canonical(), canonical);
        } else {
            prop_assert!(Workload::from_canonical(&workload.canonical()).is_err());
        }
    }

    #[test]
    fn what_is_not_refused_is_bounded(workload in workload(), memory in 1_u64..64, swap in 0_u64..256) {
        let (memory, swap) = (Bytes::from_mib(memory), Bytes::from_mib(swap));
        if workload.validate().is_err() {
            return Ok(());
        }
        prop_assert!(started(&workload) <= MAX_PROCESSES);
        prop_assert!(group_names(&workload).len() as u64 <= MAX_GROUPS);
        prop_assert!(workload.time_limit <= MAX_TIME);
        let phases: usize = workload.processes.iter().map(|process| written(&process.phases)).sum();
        prop_assert!(phases <= MAX_PHASES);
        if let Ok(needed) = workload.needed(memory, swap) {
            prop_assert!(needed.accesses <= MAX_ACCESSES);
            prop_assert!(needed.files <= MAX_FILES);
            prop_assert!(needed.memory <= memory.saturating_add(swap));
            prop_assert!(needed.locked < memory);
            let machine = CaseMachine { memory, ..CaseMachine::default() };
            prop_assert!(c_file(&workload, &machine, &|_| 0.35).contains("int main"));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}", at in 0_usize..600, byte in any::<u8>()) {
        let _ = Workload::from_toml(&text);
        let _ = Workload::from_canonical(&text);
        let mut full = include_str!("full.toml").as_bytes().to_vec();
        if let Some(old) = full.get_mut(at) {
            *old = byte;
        }
        let _ = Workload::from_toml(&String::from_utf8_lossy(&full));
    }
}

#[test]
fn enough_of_the_generated_workloads_are_valid() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let valid = (0..4000)
        .filter(|_| {
            let tree = workload().new_tree(&mut runner).unwrap();
            proptest::strategy::ValueTree::current(&tree)
                .validate()
                .is_ok()
        })
        .count();
    assert!(valid > 40, "only {valid} of 4000");
}
