//! Tests every policy against its textbook form, OPT against brute force, and curves against simulation at every size.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    clippy::unwrap_used,
    reason = "textbook forms are written to be read"
)]

mod textbook;

use std::collections::HashMap;

use pagetide_oracle::{Choice, Job, POLICIES, ReferenceString, curve, simulate};
use pagetide_reference::Rng;
use textbook::Textbook;

/// Returns strings that test edge cases: loops, one page, all distinct, random, skewed, with scans.
fn strings() -> Vec<Vec<u32>> {
    let mut rng = Rng::new(7);
    let mut all = vec![
        vec![0; 50],
        (0..400).collect(),
        (0..600).map(|i| i % 11).collect(),
        (0..3000).map(|i| i % 101).collect(),
        vec![0],
    ];
    for pages in [2, 5, 13, 60, 300] {
        all.push((0..3000).map(|_| rng.below_u32(pages)).collect());
        let skewed = |rng: &mut Rng| (f64::from(pages) * rng.unit_f64().powi(3)) as u32;
        all.push((0..6000).map(|_| skewed(&mut rng)).collect());
        // There are a hot core, and scans through the rest.
        all.push(
            (0..6000)
                .map(|i| {
                    if i % 3 == 0 {
                        pages / 2 + i / 3 % (pages / 2).max(1)
                    } else {
                        skewed(&mut rng)
                    }
                })
                .collect(),
        );
        // The string has phases, each with its own pages.
        all.push(
            (0..4000)
                .map(|i| (i / 500) * 7 % pages + rng.below_u32(pages) / 3)
                .collect(),
        );
    }
    all
}

fn pages(string: &[u32]) -> u32 {
    string.iter().max().map_or(0, |most| most + 1)
}

fn hits(name: &str, size: u32, string: &[u32]) -> u64 {
    let choice = Choice::parse(name).unwrap();
    // The string is processed in pieces, to check that the division makes no difference.
    let mut policy = choice.start(pages(string), size);
    string.chunks(700).map(|piece| policy.feed(piece)).sum()
}

const SIZES: [u32; 12] = [1, 2, 3, 4, 7, 10, 25, 40, 64, 100, 150, 400];

#[test]
fn every_policy_hits_as_its_textbook_form_does() {
    for about in POLICIES {
        for (number, string) in strings().iter().enumerate() {
            for size in SIZES {
                let Some(mut slow) = textbook::of(about.name, size as usize) else {
                    continue;
                };
                let expected = string.iter().filter(|&&page| slow.touch(page)).count() as u64;
                let found = hits(about.name, size, string);
                assert_eq!(
                    found, expected,
                    "{} size {size} string {number}",
                    about.name
                );
            }
        }
    }
}

#[test]
fn lirs_as_in_libcachesim_differs_only_where_a_queued_page_outside_the_stack_is_hit() {
    let (mut agreed, mut differed) = (0, 0);
    for (number, string) in strings().iter().enumerate() {
        for size in SIZES {
            let mut slow = textbook::lirs::Lirs::new(size as usize);
            for &page in string {
                slow.touch(page);
            }
            let paper = hits("lirs", size, string);
            let theirs = hits("lirs(demote=1)", size, string);
            if slow.queued_hits == 0 {
                assert_eq!(paper, theirs, "size {size} string {number}");
                agreed += 1;
            } else if paper != theirs {
                differed += 1;
            }
        }
    }
    assert!(agreed >= 50 && differed >= 50, "{agreed} {differed}");
}

/// Returns the largest number of hits that any choice of victims allows, by trying all choices.
fn best(string: &[u32], size: usize) -> u64 {
    fn go(
        at: usize,
        memory: u32,
        string: &[u32],
        size: usize,
        known: &mut HashMap<(usize, u32), u64>,
    ) -> u64 {
        let Some(&page) = string.get(at) else {
            return 0;
        };
        if let Some(&hits) = known.get(&(at, memory)) {
            return hits;
        }
        let bit = 1 << page;
        let hits = if memory & bit != 0 {
            1 + go(at + 1, memory, string, size, known)
        } else if (memory.count_ones() as usize) < size {
            go(at + 1, memory | bit, string, size, known)
        } else {
            (0..32)
                .filter(|victim| memory & (1 << victim) != 0)
                .map(|victim| go(at + 1, memory & !(1 << victim) | bit, string, size, known))
                .max()
                .unwrap()
        };
        known.insert((at, memory), hits);
        hits
    }
    go(0, 0, string, size, &mut HashMap::new())
}

#[test]
fn opt_is_what_trying_every_victim_finds() {
    let mut rng = Rng::new(11);
    for _ in 0..3000 {
        let pages = 2 + rng.below_u32(6);
        let length = 1 + rng.below_u32(24);
        let string: Vec<u32> = (0..length).map(|_| rng.below_u32(pages)).collect();
        for size in 1..=4 {
            assert_eq!(
                hits("opt", size, &string),
                best(&string, size as usize),
                "{string:?} size {size}"
            );
        }
    }
}

#[test]
fn both_curves_are_simulation_at_every_size() {
    let mut rng = Rng::new(13);
    let mut all = strings();
    for _ in 0..400 {
        let pages = 1 + rng.below_u32(40);
        let length = 1 + rng.below_u32(200);
        all.push((0..length).map(|_| rng.below_u32(pages)).collect());
    }
    for string in all {
        let range = pages(&string);
        let lru = curve::lru(&string, range);
        let opt = curve::opt(&string, range);
        for size in 1..=range + 2 {
            let faults = |name| string.len() as u64 - hits(name, size, &string);
            assert_eq!(
                lru.faults(size),
                faults("lru"),
                "lru size {size} {string:?}"
            );
            assert_eq!(
                opt.faults(size),
                faults("opt"),
                "opt size {size} {string:?}"
            );
        }
    }
}

#[test]
fn curves_of_more_pages_than_one_piece_of_a_table_counts_are_simulation_too() {
    let mut rng = Rng::new(17);
    // There are so many pages that every table above the bits has several pieces, and times are closed up several
    // times.
    let pages = 230_000;
    let string: Vec<u32> = (0..3_000_000)
        .map(|time| match time / 250_000 % 3 {
            0 => time * 7 % pages,
            1 => rng.below_u32(pages),
            _ => rng.below_u32(1 + rng.clone().below_u32(pages)),
        })
        .collect();
    let lru = curve::lru(&string, pages);
    for size in [1, 2, 100, 5_000, 24_577, 60_000, 130_000, 200_000, 229_999] {
        let expected = string.len() as u64 - hits("lru", size, &string);
        assert_eq!(lru.faults(size), expected, "lru size {size}");
    }
    let short = &string[1_950_000..2_050_000];
    let opt = curve::opt(short, pages);
    for size in [1, 2, 31, 32, 33, 1_000, 5_000, 20_000, 40_000, 90_000] {
        let expected = short.len() as u64 - hits("opt", size, short);
        assert_eq!(opt.faults(size), expected, "opt size {size}");
    }
}

#[test]
fn a_curve_of_a_million_pages_or_of_one_distance_a_million_times_is_simulation_too() {
    // There are so many pages that the top table has several parts with children.
    let pages = 1_000_000;
    let mut rng = Rng::new(19);
    let many = (0..pages).chain((0..400_000).map(|_| rng.below_u32(pages)));
    // Counters of 16 bits overflow. The cases are just before, at and after the overflow, and several overflows.
    let few = [65_535, 65_536, 65_537, 200_000].map(|times| vec![0_u32; times + 1]);
    let two = (0..1_000_000).map(|time| if time < 300_000 { time % 2 } else { 0 });
    for string in few.into_iter().chain([many.collect(), two.collect()]) {
        let range = self::pages(&string);
        let lru = curve::lru(&string, range);
        for size in [1, 2, 3, 70_000, 999_999] {
            let expected = string.len() as u64 - hits("lru", size, &string);
            assert_eq!(lru.faults(size), expected, "size {size} of {range}");
        }
    }
}

#[test]
fn no_policy_beats_opt() {
    for (number, string) in strings().iter().enumerate() {
        for size in SIZES {
            let most = hits("opt", size, string);
            for about in POLICIES {
                let found = hits(about.name, size, string);
                assert!(
                    found <= most,
                    "{} size {size} string {number}: {found} > {most}",
                    about.name
                );
            }
        }
    }
}

#[test]
fn memory_for_all_pages_leaves_first_uses_alone_to_fault() {
    for string in strings() {
        let mut distinct = string.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let reuses = (string.len() - distinct.len()) as u64;
        // W-TinyLFU keeps part of memory for one kind of page, so it can fault more often.
        for about in POLICIES.iter().filter(|about| about.name != "w-tinylfu") {
            assert_eq!(
                hits(about.name, distinct.len() as u32, &string),
                reuses,
                "{}",
                about.name
            );
        }
    }
}

#[test]
fn several_jobs_at_once_find_what_each_finds_alone() {
    let string = &strings()[12];
    let whole = ReferenceString::of(string.clone(), pages(string));
    let jobs: Vec<Job> = POLICIES
        .iter()
        .flat_map(|about| {
            [5, 20].map(|size| Job {
                choice: Choice::default_of(about),
                size,
            })
        })
        .collect();
    let outcomes = simulate(&whole, &jobs, 7, 3).unwrap();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        assert_eq!(
            outcome.hits,
            hits(job.choice.about().name, job.size, string)
        );
        assert_eq!(outcome.windows.len(), 7);
        assert_eq!(outcome.windows.iter().sum::<u64>(), outcome.faults);
    }
}
