//! `pagetide atlas`: how far each kernel is from the best possible, workload by workload, size by size.

use std::collections::BTreeMap;

use anyhow::Result;
use pagetide_record::Pass;
use pagetide_report::terminal::atlas::{Place, draw};
use pagetide_store::Filter;

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Map each kernel's distance from the best possible, from all records whose references are known
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Example:
  pagetide run smooth-sin-random zipf loop --kernel debian:bookworm --kernel debian:sid --memory 16M --memory 32M
  pagetide atlas")]
pub struct Args {
    /// Only this scenario
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
}

/// Draws it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let filter = Filter {
        scenario: args.scenario.clone(),
        ..Filter::default()
    };
    let mut map: BTreeMap<(String, u64, String), Place> = BTreeMap::new();
    for row in store.select(&filter)? {
        let subject = row.subject();
        if !row.is_valid() || subject.pass == Pass::Observed {
            continue;
        }
        let metrics = store.metrics(&subject.scenario, &[row.row])?;
        let value = |name: &str| {
            let found = metrics.iter().find(|(_, metric)| metric.name == name);
            found.and_then(|(_, metric)| metric.value.number())
        };
        let (Some(major), Some(minor), Some(opt), Some(lru)) = (
            value("major-faults"),
            value("minor-faults"),
            value("opt-faults"),
            value("lru-faults"),
        ) else {
            continue;
        };
        let faults = major + minor;
        let workload = subject.cell_label();
        let key = (
            workload.clone(),
            subject.memory.bytes().0,
            subject.variant.name.clone(),
        );
        let place = map.entry(key).or_insert_with(|| {
            Place::new(
                workload,
                subject.variant.name.clone(),
                subject.variant.kernel.release.clone(),
            )
        });
        place.add(faults, opt, lru, value("model-faults"));
    }
    let all: Vec<Place> = map.into_values().collect();
    if out.json {
        out.json(&all)?;
    } else {
        out.text(&draw(&all, &out.look))?;
    }
    Ok(End::Done)
}
