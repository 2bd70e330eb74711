//! Tests of write-backs: the counts equal those of an evaluation that follows each eviction, and are never below the
//! minimum found by brute force.

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use std::collections::HashMap;
use std::fs;

use pagetide_oracle::{
    Answer, Choice, Format, POLICIES, ReferenceString, WriteCost, Writes, ask_costing,
};
use pagetide_reference::Rng;

/// References as pairs: the page, and true if the reference writes.
type Marked = [(u32, bool)];

fn string(marked: &Marked) -> ReferenceString {
    let pages = marked.iter().map(|(page, _)| page + 1).max().unwrap();
    let writes = Writes::each(marked.iter().map(|(_, write)| *write));
    ReferenceString::of(marked.iter().map(|(page, _)| *page).collect(), pages)
        .with_writes(Some(writes))
}

fn answer(string: &ReferenceString, size: u32, cost: f64) -> Answer {
    let all: Vec<Choice> = POLICIES.iter().map(|a| Choice::default_of(a)).collect();
    let cost = WriteCost::new(cost).unwrap();
    ask_costing(string, &all, &[size], 3, 1, Some(cost)).unwrap()
}

fn random(rng: &mut Rng, pages: u32, length: u32, share: u32) -> Vec<(u32, bool)> {
    (0..length)
        .map(|_| (rng.below_u32(pages), rng.below_u32(10) < share))
        .collect()
}

/// Returns the lowest cost over all choices of victims, in twentieths of a fault. A write-back costs `cost` twentieths.
fn least(marked: &Marked, size: u32, cost: u64) -> u64 {
    fn go(
        left: &Marked,
        held: u32,
        dirty: u32,
        size: u32,
        cost: u64,
        known: &mut HashMap<(usize, u32, u32), u64>,
    ) -> u64 {
        let Some((&(page, write), rest)) = left.split_first() else {
            return 0;
        };
        let key = (left.len(), held, dirty);
        if let Some(&found) = known.get(&key) {
            return found;
        }
        let bit = 1 << page;
        let written = if write { bit } else { 0 };
        let found = if held & bit != 0 {
            go(rest, held, dirty | written, size, cost, known)
        } else if held.count_ones() < size {
            20 + go(rest, held | bit, dirty | written, size, cost, known)
        } else {
            let victims = (0..32).map(|page| 1 << page).filter(|bit| held & bit != 0);
            victims
                .map(|victim: u32| {
                    let back = if dirty & victim == 0 { 0 } else { cost };
                    let (held, dirty) = (held & !victim | bit, dirty & !victim | written);
                    20 + back + go(rest, held, dirty, size, cost, known)
                })
                .min()
                .unwrap()
        };
        known.insert(key, found);
        found
    }
    go(marked, 0, 0, size, cost, &mut HashMap::new())
}

#[test]
fn no_choice_of_victims_costs_less_than_the_bound_and_no_policy_less_than_the_best_choice() {
    let mut rng = Rng::new(21);
    let (mut reached, mut all) = (0, 0);
    for _ in 0..250 {
        let pages = 2 + rng.below_u32(5);
        let (length, share) = (1 + rng.below_u32(22), rng.below_u32(11));
        let marked = random(&mut rng, pages, length, share);
        let string = string(&marked);
        for size in 1..=3 {
            for cost in [0, 10, 60] {
                let best = least(&marked, size, cost) as f64 / 20.0;
                let answer = answer(&string, size, cost as f64 / 20.0);
                let bound = answer.bounds[0].cost;
                assert!(bound <= best, "{marked:?} size {size} cost {cost}");
                for line in &answer.lines {
                    let found = line.cost.unwrap();
                    assert!(found >= best, "{}: {marked:?} size {size}", line.policy);
                }
                all += 1;
                reached += u32::from((bound - best).abs() < 1e-9);
            }
        }
    }
    // A bound of zero would hold too, so most bounds must be reached.
    assert!(reached * 10 >= all * 6, "{reached} of {all}");
}

/// Belady's policy by its definition: the victim is the page with the farthest next use, preferably a clean one if
/// several are never used again. Returns the numbers of faults and write-backs.
fn belady(marked: &Marked, size: usize) -> (u64, u64) {
    let mut held: Vec<(u32, bool)> = Vec::new();
    let (mut faults, mut write_backs) = (0, 0);
    for (time, &(page, write)) in marked.iter().enumerate() {
        if let Some(entry) = held.iter_mut().find(|entry| entry.0 == page) {
            entry.1 |= write;
            continue;
        }
        faults += 1;
        if held.len() == size {
            let next = |page: u32| {
                let later = marked[time..].iter().position(|other| other.0 == page);
                later.unwrap_or(usize::MAX)
            };
            let victim = (0..size)
                .max_by_key(|&place| (next(held[place].0), !held[place].1))
                .unwrap();
            write_backs += u64::from(held.swap_remove(victim).1);
        }
        held.push((page, write));
    }
    (faults, write_backs)
}

/// Policies that keep pages in a list: LRU moves a used page to the end (`moves`), FIFO does not. Returns the numbers
/// of faults and write-backs.
fn listed(marked: &Marked, size: usize, moves: bool) -> (u64, u64) {
    let mut held: Vec<(u32, bool)> = Vec::new();
    let (mut faults, mut write_backs) = (0, 0);
    for &(page, write) in marked {
        if let Some(place) = held.iter().position(|entry| entry.0 == page) {
            held[place].1 |= write;
            if moves {
                let entry = held.remove(place);
                held.push(entry);
            }
            continue;
        }
        faults += 1;
        if held.len() == size {
            write_backs += u64::from(held.remove(0).1);
        }
        held.push((page, write));
    }
    (faults, write_backs)
}

#[test]
fn write_backs_are_the_dirty_evictions_of_policies_that_keep_book_of_them() {
    let mut rng = Rng::new(22);
    for number in 0..60 {
        let pages = 3 + rng.below_u32(60);
        let length = 1 + rng.below_u32(1500);
        let marked = random(&mut rng, pages, length, number % 11);
        let string = string(&marked);
        for size in [1, 2, 5, 20, 64] {
            let answer = answer(&string, size, 1.0);
            let found = |name: &str| {
                let line = answer.lines.iter().find(|line| line.policy == name);
                line.map(|line| (line.faults, line.write_backs.unwrap()))
                    .unwrap()
            };
            let at = format!("string {number} size {size}");
            assert_eq!(found("lru"), listed(&marked, size as usize, true), "{at}");
            assert_eq!(found("fifo"), listed(&marked, size as usize, false), "{at}");
            assert_eq!(found("opt"), belady(&marked, size as usize), "{at}");
        }
    }
}

#[test]
fn every_policy_writes_back_all_it_evicts_where_all_references_write_and_nothing_where_none_does() {
    let mut rng = Rng::new(23);
    let marked = random(&mut rng, 300, 6000, 10);
    let (all, none) = (
        string(&marked),
        string(&marked).with_writes(Some(Writes::alike(false))),
    );
    for size in [1, 7, 40, 150, 299, 400] {
        let all = answer(&all, size, 2.5);
        for line in &all.lines {
            let back = line.write_backs.unwrap();
            // A page that faulted in was evicted or is still in memory. So at most the pages in memory remain, and all
            // of them for policies without batches.
            let kept = line.faults - back;
            assert!(kept <= u64::from(size.min(300)), "{} {size}", line.policy);
            if !["active-inactive", "mglru", "w-tinylfu"].contains(&line.policy.as_str()) {
                assert_eq!(kept, u64::from(size.min(300)), "{} {size}", line.policy);
            }
        }
        // Here the bound equals the cost of OPT.
        assert_eq!(all.lines[0].cost, Some(all.bounds[0].cost));
        for line in answer(&none, size, 2.5).lines {
            assert_eq!(line.write_backs, Some(0), "{} {size}", line.policy);
            assert_eq!(line.cost, Some(line.faults as f64));
        }
        for line in answer(&string(&marked), size, 0.0).lines {
            assert_eq!(line.cost, Some(line.faults as f64), "{}", line.policy);
        }
    }
}

#[test]
fn pages_that_filling_wrote_cost_a_write_back_though_all_references_read() {
    let references: Vec<u32> = (0..8).chain([0, 1, 2]).collect();
    let read = |fill| {
        let string = ReferenceString::of(references.clone(), 8);
        string.with_writes(Some(Writes::after_fill(8, fill, false)))
    };
    // LRU with 4 pages: filling evicts pages 0 to 3, the references evict pages 4 to 6.
    let lru = |string: &ReferenceString| answer(string, 4, 1.0).lines[1].write_backs;
    assert_eq!(lru(&read(true)), Some(7));
    assert_eq!(lru(&read(false)), Some(0));
}

#[test]
fn strings_of_which_nothing_is_known_are_refused_and_never_said_to_write_nothing() {
    let unknown = ReferenceString::of(vec![0, 1, 0], 2);
    let cost = Some(WriteCost::new(1.0).unwrap());
    let refused = ask_costing(&unknown, &[Choice::lru()], &[1], 1, 1, cost).unwrap_err();
    assert!(refused.to_string().contains("is not known"), "{refused}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut entries = vec![0_u8; 48];
    (entries[12], entries[36]) = (1, 1);
    let binary = [b"pagetide".to_vec(), vec![0; 4]].concat();
    for (bytes, form, format) in [
        (b"7\n9\n7\n".to_vec(), "text", None),
        (entries, "oracle-general", None),
        (b"1 3\n2 4\n".to_vec(), "pagetide", None),
        (binary, "pagetide", Some(Format::Pagetide)),
    ] {
        fs::write(&path, bytes).unwrap();
        let refused = ReferenceString::read_with_writes(&path, format, 100).unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.contains(form) && refused.contains("do not say which references write"),
            "{refused}"
        );
    }
}

#[test]
fn lackeys_stores_and_modifications_write_on_both_pages_that_they_touch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(
        &path,
        "==1== lackey\nI  1000,4\n L 2000,4\n S 2ffe,4\n M 1000,8\n L 3000,1\n",
    )
    .unwrap();
    // The references are kept in memory first, and then in a file.
    for hold in [100, 1] {
        let string = ReferenceString::read_with_writes(&path, None, hold).unwrap();
        let writes = string.writes().unwrap();
        let found: Vec<bool> = (0..6).map(|time| writes.is(time)).collect();
        assert_eq!(found, [false, false, true, true, true, false]);
        // Memory has one page: pages 2 and 3 are written and evicted once each, and page 1 after its M.
        let answer = answer(&string, 1, 1.0);
        assert_eq!(answer.lines[1].write_backs, Some(3));
    }
}

#[test]
fn a_cost_that_is_no_number_from_zero_is_refused_by_name() {
    for wrong in ["-1", "nan", "inf", "-inf", "", "two", "1e999"] {
        let refused = wrong.parse::<WriteCost>().unwrap_err().to_string();
        assert!(refused.contains("no cost of a write-back"), "{refused}");
    }
    assert!("0".parse::<WriteCost>().is_ok() && "-0".parse::<WriteCost>().is_ok());
    assert!((" 2.5 ".parse::<WriteCost>().unwrap().faults() - 2.5).abs() < 1e-12);
}
