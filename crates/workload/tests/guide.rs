//! Tests that the reference has every key of the language, and no other key.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use pagetide_workload::{Workload, guide};
use serde_json::Value;

/// A workload in which every key has a value that is not its default.
const FULL: &str = include_str!("full.toml");

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

fn of(table: &guide::Keys) -> BTreeSet<String> {
    table.keys.iter().map(|key| key.name.to_owned()).collect()
}

#[test]
fn the_reference_has_every_key_and_no_other() {
    let workload = Workload::from_toml(FULL).unwrap();
    let json = serde_json::to_value(&workload).unwrap();
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut add =
        |place: &'static str, value: &Value| found.entry(place).or_default().extend(keys(value));
    add("[workload]", &json);
    add("[workload.machine]", &json["machine"]);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for group in list(&json["group"]) {
        add("[[workload.group]]", &group);
    }
    let mut phases = Vec::new();
    for process in list(&json["process"]) {
        add("[[workload.process]]", &process);
        for segment in list(&process["segment"]) {
            add("segment", &segment);
        }
        phases.extend(list(&process["phase"]));
    }
    for table in guide::TABLES {
        assert_eq!(of(table), found[table.place], "{}", table.place);
    }
    let mut of_phases: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    while let Some(phase) = phases.pop() {
        let name = phase["do"].as_str().unwrap().to_owned();
        let mut own = keys(&phase);
        own.remove("do");
        of_phases.entry(name).or_default().extend(own);
        phases.extend(list(&phase["phases"]));
    }
    let known: BTreeMap<String, BTreeSet<String>> = guide::PHASES
        .iter()
        .map(|phase| (phase.place.to_owned(), of(phase)))
        .collect();
    assert_eq!(of_phases, known);
}

#[test]
fn the_page_is_made_of_the_definition() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workload.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == guide::markdown(),
        "docs/workload.md is old: run `cargo run -p pagetide-workload --example workload_guide`"
    );
}
