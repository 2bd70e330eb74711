//! Tests that candidates are valid, and that simplification ends.

use pagetide_hunt::{Extent, Space, Workloads};
use pagetide_reference::Rng;
use pagetide_workload::Workload;

#[test]
fn all_candidates_are_valid_and_within_the_bounds() {
    let extent = Extent::default();
    let space = Workloads::new(extent.clone());
    let mut rng = Rng::new(7);
    let mut all = vec![space.random(&mut rng)];
    for round in 0..600_u64 {
        let any = |rng: &mut Rng| usize::try_from(rng.below(all.len() as u64)).unwrap();
        let (a, b) = (any(&mut rng), any(&mut rng));
        let next = match round % 3 {
            0 => space.random(&mut rng),
            1 => space.mutated(&all[a], &mut rng),
            _ => space.crossed(&all[a], &all[b], &mut rng),
        };
        next.validate().unwrap();
        let machine = next.machine.clone().unwrap();
        let memory = machine.memory.unwrap().bytes();
        let needed = next.needed(memory, machine.swap_size.unwrap()).unwrap();
        assert!(needed.accesses <= extent.accesses * memory.pages().0);
        assert!(next.processes.len() <= extent.processes);
        let mut protected = 0;
        for group in &next.groups {
            let sizes: std::collections::BTreeMap<_, _> = group.sizes().into_iter().collect();
            let size = |file: &str| sizes.get(file).map(|size| size.of(memory));
            let max = size("max").unwrap_or(memory);
            assert!(max <= memory && size("high").is_none_or(|high| high <= max));
            let has_max = size("max").is_some();
            let low = size("low").max(size("min"));
            assert!(!has_max || low.is_none_or(|low| low <= max));
            protected += low.unwrap_or_default().0;
        }
        assert!(protected <= memory.0);
        assert_eq!(Workload::from_toml(&next.to_toml()).unwrap(), next);
        all.push(next);
    }
    let words: Vec<String> = all
        .iter()
        .map(pagetide_workload::Workload::to_toml)
        .collect();
    for word in [
        "fork", "repeat", "advise", "reclaim", "copy", "sync", "tmpfs", "low", "locked",
    ] {
        assert!(words.iter().any(|text| text.contains(word)), "{word}");
    }
}

#[test]
fn a_hunt_reaches_as_many_groups_as_its_space_allows() {
    let extent = Extent {
        groups: 16,
        ..Extent::default()
    };
    let space = Workloads::new(extent);
    let mut rng = Rng::new(5);
    let mut point = space.random(&mut rng);
    for _ in 0..4_000 {
        let next = space.mutated(&point, &mut rng);
        if next.groups.len() >= point.groups.len() {
            point = next;
        }
    }
    assert_eq!(point.groups.len(), 16);
}

#[test]
fn simplification_ends_whatever_is_accepted() {
    let space = Workloads::new(Extent::default());
    let mut rng = Rng::new(11);
    for _ in 0..20 {
        let mut point = space.random(&mut rng);
        let mut steps = 0;
        loop {
            let simpler = space.simpler(&point);
            assert!(!simpler.contains(&point));
            let index = usize::try_from(rng.below(simpler.len() as u64)).unwrap();
            let Some(next) = simpler.into_iter().nth(index) else {
                break;
            };
            point = next;
            steps += 1;
            assert!(steps < 500, "{}", point.to_toml());
        }
        assert_eq!(point.processes.len(), 1, "{}", point.to_toml());
    }
}

#[test]
fn most_workloads_that_are_drawn_need_more_than_memory_or_ask_for_reclaim() {
    let space = Workloads::new(Extent {
        groups: 0,
        phases: vec!["fill".to_owned(), "access".to_owned()],
        ..Extent::default()
    });
    let mut rng = Rng::new(3);
    let is_full = |workload: &Workload| {
        let memory = workload.machine.as_ref().unwrap().memory.unwrap().bytes();
        let of = |process: &pagetide_workload::Process| {
            let segments = process.segments.iter();
            let sum: u64 = segments.map(|segment| segment.size.of(memory).0).sum();
            sum * u64::from(process.count)
        };
        workload.processes.iter().map(of).sum::<u64>() >= memory.0 / 10 * 9
    };
    let all = (0..200).map(|_| space.random(&mut rng));
    let count = all.filter(is_full).count();
    assert!((175..200).contains(&count), "{count} of 200");
}

#[test]
fn a_space_file_narrows_the_space_and_mistakes_are_named() {
    let text = "swap = [\"ssd\"]\nprocesses = 1\n[settings]\n\"lru_gen/enabled\" = [\"0\"]\n";
    let extent = Extent::from_toml(text).unwrap();
    assert_eq!(extent.kinds, Extent::default().kinds);
    let space = Workloads::new(extent);
    let mut rng = Rng::new(1);
    for _ in 0..50 {
        let point = space.random(&mut rng);
        assert_eq!(point.processes.len(), 1);
        assert_eq!(space.region(&point), "16M · ssd:80us");
    }
    let cases = [
        ("swap = []", "`swap` of the space is empty"),
        ("swop = [\"ssd\"]", "swop"),
        ("phases = [\"fil\"]", "`fil` is no phase"),
        ("processes = 0", "`processes` of the space cannot be 0"),
        ("\n\nsizes = [\"1Q\"]", "line 3"),
    ];
    for (text, message) in cases {
        let found = Extent::from_toml(text).unwrap_err().to_string();
        assert!(found.contains(message), "{text}: {found}");
    }
}
