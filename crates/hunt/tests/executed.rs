//! Tests that the search learns which functions ran, that they do not drown the counters, and that a hunt without
//! profiles is as before.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use pagetide_arena::{Arena, ArenaError, PreparedTrial, Progress, Trial, TrialResult, VariantSpec};
use pagetide_campaign::{Event, EventListener, Options, Site};
use pagetide_hunt::behaviour::{Behaviour, Feature, distance};
use pagetide_hunt::{
    Budget, Evidence, Executed, Extent, Goal, Guidance, HuntRequest, Hunted, Plan, Reached,
};
use pagetide_profile::{Coverage, CoveredFunction, CoveredLine, Function, PROFILE, Profile};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{
    ArenaKind, Counters, KernelId, Maker, Pass, RecordWriter, Results, Subject, Wall,
};
use pagetide_store::Store;
use pagetide_workload::Workload;

use crate::kernel;

fn functions(all: &[(&str, u64)]) -> Executed {
    let all = all
        .iter()
        .map(|(name, instructions)| ((*name).to_owned(), *instructions));
    Executed {
        release: "6.12".to_owned(),
        functions: all.collect(),
        ..Executed::default()
    }
}

fn evidence(counters: &[(&str, u64)], executed: Option<Executed>) -> Evidence {
    let counters = counters
        .iter()
        .map(|(name, rise)| ((*name).to_owned(), *rise));
    Evidence {
        counters: counters.collect(),
        time: Nanos::from_millis(100),
        executed,
        ..Evidence::default()
    }
}

/// Features of a trial that are about functions or lines, as text.
fn ran(behaviour: &Behaviour) -> Vec<String> {
    let all = behaviour.features.iter();
    let all = all.filter(|feature| feature.name.contains("ran "));
    all.map(|Feature { name, size }| format!("{name} {size}"))
        .collect()
}

fn patch(executed: u64, calls: u64, without_code: u64) -> Coverage {
    Coverage {
        lines: vec![CoveredLine {
            file: "mm/swap.c".to_owned(),
            line: 721,
            text: "return;".to_owned(),
            executed,
        }],
        functions: vec![CoveredFunction {
            name: "folio_mark_lazyfree".to_owned(),
            calls,
        }],
        without_code,
        left_out: Vec::new(),
    }
}

#[test]
fn functions_are_coarser_than_counters_and_a_difference_counts_from_a_factor_of_two() {
    let b = functions(&[("shrink_folio_list", 65_535), ("try_to_unmap", 100_000)]);
    let a = functions(&[("shrink_folio_list", 65_536), ("try_to_unmap", 10_000)]);
    let [b, a] = [b, a].map(|executed| evidence(&[("pgfault", 9)], Some(executed)));
    let expected = ["ran shrink_folio_list 3", "ran try_to_unmap 4"];
    assert_eq!(ran(&Behaviour::of(&b, None)), expected);
    let both = ran(&Behaviour::of(&b, Some(&a)));
    assert_eq!(both[2..], ["Δran try_to_unmap 2"]);
    let turned = ran(&Behaviour::of(&a, Some(&b)));
    assert_eq!(turned[2..], ["Δran try_to_unmap -2"]);
    assert!(distance(&a, &b) > 0.1 && (distance(&a, &b) - distance(&b, &a)).abs() < 1e-12);
    assert!(distance(&a, &a).abs() < 1e-12);
}

#[test]
fn a_function_that_one_release_does_not_have_is_no_difference_between_releases() {
    let b = functions(&[("shrink_folio_list", 1 << 20), ("vmscan_new", 1 << 20)]);
    let a = functions(&[("shrink_folio_list", 1 << 20), ("vmscan_old", 1 << 20)]);
    let other = Executed {
        release: "6.1".to_owned(),
        ..a.clone()
    };
    let [b, a, other] = [b, a, other].map(|executed| evidence(&[], Some(executed)));
    assert!(distance(&b, &other).abs() < 1e-12);
    let expected = ["ran shrink_folio_list 5", "ran vmscan_new 5"];
    assert_eq!(ran(&Behaviour::of(&b, Some(&other))), expected);
    // In one release, it is a function that did not run.
    assert!(distance(&b, &a) > 1.0);
    let both = ran(&Behaviour::of(&b, Some(&a)));
    assert_eq!(both[2..], ["Δran vmscan_new 8", "Δran vmscan_old -8"]);
}

#[test]
fn what_is_not_known_of_one_variant_is_no_difference() {
    let known = evidence(
        &[("pgfault", 9)],
        Some(functions(&[("rmap_walk", 1 << 20)])),
    );
    let unknown = evidence(&[("pgfault", 9)], None);
    let empty = evidence(&[("pgfault", 9)], Some(functions(&[])));
    assert!(distance(&known, &unknown).abs() < 1e-12);
    assert_eq!(
        ran(&Behaviour::of(&known, Some(&unknown))),
        ["ran rmap_walk 5"]
    );
    assert!(ran(&Behaviour::of(&unknown, Some(&known))).is_empty());
    assert!(ran(&Behaviour::of(&empty, None)).is_empty());
    assert!(Goal::Regressed.measure(&[known], &[unknown]).value > 0.9);
}

#[test]
fn all_functions_of_a_trial_weigh_about_as_much_as_its_counters() {
    let names = |start: &str, count: usize| -> Vec<(String, u64)> {
        (0..count)
            .map(|at| (format!("{start}{at}"), 1000))
            .collect()
    };
    let trial = Evidence {
        counters: names("pg", 80).into_iter().collect(),
        executed: Some(Executed {
            functions: names("shrink_", 1280).into_iter().collect(),
            patch: Some(patch(3, 1, 0)),
            ..Executed::default()
        }),
        ..Evidence::default()
    };
    let behaviour = Behaviour::of(&trial, Some(&trial));
    let weight = |is_wanted: &dyn Fn(&str) -> bool| -> f64 {
        let all = behaviour.features.iter();
        all.filter(|feature| is_wanted(&feature.name))
            .map(Feature::weight)
            .sum()
    };
    assert!((weight(&|name| name.starts_with("pg")) - 80.0).abs() < 1e-9);
    assert!((weight(&|name| name.starts_with("ran shrink_")) - 80.0).abs() < 1e-9);
    // A changed line is as much as a counter.
    assert!((weight(&|name| name == "ran mm/swap.c:721") - 1.0).abs() < 1e-9);
}

#[test]
fn without_profiles_all_features_weigh_the_same_and_the_distance_is_that_of_the_counters() {
    let a = evidence(&[("pgfault", 16), ("pswpin", 0)], None);
    let b = evidence(&[("pgfault", 48), ("pswpin", 16)], None);
    let behaviour = Behaviour::of(&b, Some(&a));
    let all = behaviour.features.iter();
    let all: Vec<(&str, i32)> = all.map(|one| (one.name.as_str(), one.size)).collect();
    let expected = [
        ("pgfault", 5),
        ("pswpin", 4),
        ("Δpgfault", 2),
        ("Δpswpin", 2),
    ];
    assert_eq!(all, expected);
    let mut weights = behaviour.features.iter().map(Feature::weight);
    assert!(weights.all(|weight| weight.to_bits() == 1.0_f64.to_bits()));
    assert!((distance(&a, &b) - 2.0).abs() < 1e-12);
}

#[test]
fn a_patch_of_which_nothing_ran_is_not_the_cause_of_a_difference() {
    let measure = |b: &dyn Fn(&mut Executed)| {
        let mut executed = functions(&[("shrink_folio_list", 1 << 20)]);
        let base = evidence(&[("pgmajfault", 10)], Some(executed.clone()));
        b(&mut executed);
        let mut slow = evidence(&[("pgmajfault", 900)], Some(executed));
        slow.time = Nanos::from_millis(900);
        Goal::Regressed.measure(&[slow], &[base])
    };
    let ran = measure(&|b| b.patch = Some(patch(2, 1, 0)));
    assert!(
        ran.holds
            && ran
                .behaviour
                .features
                .iter()
                .any(|one| one.name == "ran mm/swap.c:721")
    );
    let called = measure(&|b| b.patch = Some(patch(0, 1, 0)));
    assert!(called.holds);
    let missed = measure(&|b| b.patch = Some(patch(0, 0, 0)));
    assert!(
        !missed.holds && !missed.opposite && missed.score.abs() < 1e-12,
        "{missed:?}"
    );
    assert_eq!(missed.shown, "nothing of the patch ran");
    // A changed macro can act elsewhere, so the goal holds. A setting of B alone can be the cause.
    let unsure = measure(&|b| b.patch = Some(patch(0, 0, 1)));
    assert!(unsure.holds && unsure.score > 1.0, "{unsure:?}");
    let unknown = measure(&|b| b.patch = Some(Coverage::default()));
    assert!(unknown.holds);
    let elsewhere = measure(&|b| {
        let left_out = vec!["mm.h is part of 90 objects".to_owned()];
        let patch = patch(0, 0, 0);
        b.patch = Some(Coverage { left_out, ..patch });
    });
    assert!(elsewhere.holds);
    let setting = measure(&|b| {
        b.patch = Some(patch(0, 0, 0));
        b.options = vec!["vm.swappiness=1".to_owned()];
    });
    assert!(setting.holds);
    assert!(measure(&|_| {}).holds);
}

#[test]
fn a_candidate_that_ran_nothing_of_the_patch_does_not_guide_the_search() {
    let score = |calls, without_code| {
        let base = functions(&[("shrink_folio_list", 1 << 20)]);
        let b = Executed {
            patch: Some(patch(0, calls, without_code)),
            ..functions(&[("shrink_folio_list", 1 << 24)])
        };
        let [b, base] = [(600, b), (500, base)]
            .map(|(faults, executed)| evidence(&[("pgmajfault", faults)], Some(executed)));
        let outcome = Goal::Regressed.measure(&[b], &[base]);
        assert!(!outcome.holds);
        outcome.score
    };
    assert!(score(1, 1) > 0.1);
    // Ties are left to what is rare.
    assert_eq!([score(0, 1), score(0, 0)].map(f64::to_bits), [0, 0]);
}

#[test]
fn the_account_names_the_function_of_a_patch_that_no_trial_ran() {
    let mut reached = Reached::default();
    assert!(reached.sentences().is_empty());
    let trial = |names: &[&str], executed, calls| {
        let all: Vec<(&str, u64)> = names.iter().map(|name| (*name, 5)).collect();
        Executed {
            patch: Some(patch(executed, calls, 0)),
            ..functions(&all)
        }
    };
    reached.add(&trial(&["rmap_walk"], 0, 0));
    reached.add(&trial(&["rmap_walk", "pageout"], 0, 0));
    reached.add(&trial(&["pageout"], 0, 0));
    let expected = [
        "functions of memory management that ran: 2 in 3 profiled trials; none was new after 2 of them",
        "your patch changes 1 line of code, and none ran in 3 profiled trials",
        "no trial ran folio_mark_lazyfree, which the patch changes",
        "lines that never ran: mm/swap.c:721 return;",
    ];
    assert_eq!(reached.sentences(), expected);
    reached.add(&trial(&["pageout"], 4, 2));
    let sentences = reached.sentences();
    assert_eq!(sentences.len(), 2, "{sentences:?}");
    assert_eq!(reached.functions["rmap_walk"], 2);
}

/// An arena whose kernel is the synthetic one. Trials of variant B have the fault.
struct Synthetic {
    /// Why no trial can be profiled, if none can.
    lacks: Option<String>,
    /// True if the kernel has a list of its functions.
    has_list: bool,
    passes: Mutex<Vec<Pass>>,
    told: Mutex<Vec<String>>,
}

impl Synthetic {
    fn new() -> Self {
        Self {
            lacks: None,
            has_list: true,
            passes: Mutex::default(),
            told: Mutex::default(),
        }
    }
}

impl EventListener for Synthetic {
    fn event(&self, event: &Event<'_>) {
        if let Event::Told(text) = event {
            self.told.lock().unwrap().push((*text).to_owned());
        }
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

impl Arena for Synthetic {
    fn kind(&self) -> ArenaKind {
        ArenaKind::Exact
    }

    fn lacks_profiles(&self) -> Option<String> {
        self.lacks.clone()
    }

    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError> {
        let subject: Subject = trial.subject(KernelId::default(), Bytes::from_mib(32));
        Ok(PreparedTrial::new(trial.clone(), subject, ()))
    }

    fn run(
        &self,
        prepared: &PreparedTrial,
        sink: &mut RecordWriter,
        _: &dyn Progress,
    ) -> Result<TrialResult, ArenaError> {
        let trial = prepared.trial();
        self.passes.lock().unwrap().push(trial.pass);
        let mut workload = Workload::from_canonical(&trial.params["workload"]).unwrap();
        let machine = workload.machine.get_or_insert_default();
        machine.memory = Some(trial.memory);
        machine.swap = Some(trial.swap);
        let fault = (trial.variant.name == "b").then_some("forks-stall");
        let evidence = kernel::run(&workload, trial.seed, fault);
        let values = evidence.counters.iter();
        let values = values.map(|(name, rise)| (name.clone(), [0, *rise]));
        let mut results = Results {
            elapsed: evidence.time,
            ..Results::default()
        };
        let vmstat = Counters {
            values: values.collect(),
        };
        results.counters.insert("vmstat".to_owned(), vmstat);
        if trial.pass == Pass::Profiled {
            let name = if self.has_list {
                "shrink_folio_list"
            } else {
                pagetide_profile::UNNAMED
            };
            let profile = Profile {
                functions: vec![Function {
                    name: name.to_owned(),
                    instructions: evidence.scanned(),
                    ..Function::default()
                }],
                ..Profile::new()
            };
            sink.section("blob", PROFILE, &profile.to_json().unwrap())
                .unwrap();
        }
        Ok(TrialResult {
            results,
            kernel_config: BTreeMap::new(),
            wall: Wall::default(),
            ended: Instant::now(),
        })
    }
}

/// Runs a hunt in a store of its own.
fn hunted(arena: &Synthetic, is_profiled: bool) -> Hunted {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let options = Options {
        jobs: None,
        fresh: false,
        keep_going: false,
        shard: None,
        elsewhere: None,
        command: String::new(),
        maker: &|_| Maker::default(),
    };
    let variant = |name: &str| VariantSpec {
        name: name.to_owned(),
        ..VariantSpec::default()
    };
    let request = HuntRequest {
        name: "hunt".to_owned(),
        plan: Plan {
            goal: Goal::Regressed,
            budget: Budget::Trials(96),
            seed: 1,
            most: 1,
            guidance: Guidance::Guided,
        },
        extent: Extent::default(),
        hunted: variant("b"),
        other: Some(variant("a")),
        also: Vec::new(),
        is_profiled,
    };
    let site = Site {
        arena,
        store: &mut store,
        options: &options,
        watch: arena,
    };
    request.run(site, &mut |_, _| {}).unwrap()
}

#[test]
fn a_hunt_without_profiles_runs_timed_passes_and_its_account_is_as_before() {
    let arena = Synthetic::new();
    let hunted = hunted(&arena, false);
    let passes = arena.passes.lock().unwrap();
    assert!(passes.iter().all(|pass| *pass == Pass::Timed));
    assert!(hunted.reached.is_none());
    let json = serde_json::to_value(&hunted).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["account", "goal", "shown"]);
    // An arena without profiles gives the same hunt when asked for them, and says why.
    let without = Synthetic {
        lacks: Some("no plugin".to_owned()),
        ..Synthetic::new()
    };
    let other = self::hunted(&without, true);
    assert_eq!(serde_json::to_value(&other).unwrap(), json);
    assert_eq!(*without.told.lock().unwrap(), ["no plugin"]);
    // So does a kernel without a list of its functions, apart from what it says.
    let nameless = Synthetic {
        has_list: false,
        ..Synthetic::new()
    };
    let other = self::hunted(&nameless, true);
    let mut other_json = serde_json::to_value(&other).unwrap();
    other_json.as_object_mut().unwrap().remove("reached");
    assert_eq!(other_json, json);
    let told = nameless.told.lock().unwrap();
    assert!(
        told.len() == 1 && told[0].contains("CONFIG_KALLSYMS"),
        "{told:?}"
    );
    assert_eq!(other.reached.unwrap().sentences(), *told);
}

#[test]
fn a_hunt_with_profiles_runs_profiled_passes_alone_and_learns_which_functions_ran() {
    let arena = Synthetic::new();
    let with = hunted(&arena, true);
    let passes = arena.passes.lock().unwrap();
    assert!(!passes.is_empty() && passes.iter().all(|pass| *pass == Pass::Profiled));
    let reached = with.reached.unwrap();
    let names: Vec<&String> = reached.functions.keys().collect();
    assert_eq!(names, ["shrink_folio_list"]);
    // Half of the trials are those of the other variant.
    assert_eq!(2 * reached.trials, with.account.trials);
    let without = hunted(&Synthetic::new(), false);
    assert!(with.account.features > without.account.features);
}
