//! Tests of memory nodes and tiers: each node has the requested free memory, demotion moves pages to the slow node and
//! costs time on the modelled clock, policies act as `numactl` says, and impossible requests are refused.

use pagetide_testing::{Need, skip};
use serde_json::Value;

use crate::common::{KERNEL, Lab, metric, one_sentence};

/// The other Debian kernel whose tiers are tested.
const SID: &str = "debian:sid";
const MIB: u64 = 1 << 20;

/// Runs hot-cold with 0.8 times the memory on this kernel. Returns its valid records, the newest first.
fn records(lab: &Lab, kernel: &str, count: usize, words: &[&str]) -> Vec<Value> {
    let fixed = ["run", "hot-cold", "--kernel", kernel, "--seeds", "1"];
    let more = ["-p", "pages=0.8*memory", "--fresh", "--exit-zero"];
    lab.ends(0, [&fixed, words, &more].concat());
    let limit = count.to_string();
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--limit", &limit]);
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let read = |row: &Value| {
        let (json, _) = lab.ends(0, ["show", row["id"].as_str().unwrap(), "--json"]);
        let mut record: Value = serde_json::from_str(&json).unwrap();
        let invalid = &record["results"]["invalid"];
        assert_eq!(invalid, &Value::Array(Vec::new()), "{words:?}");
        record["id"] = row["id"].clone();
        record
    };
    list.iter().map(read).collect()
}

/// Growth of a counter during the trial.
fn grew(record: &Value, source: &str, name: &str) -> u64 {
    let values = &record["results"]["counters"][source]["values"][name];
    let at = |index: usize| {
        values[index]
            .as_u64()
            .unwrap_or_else(|| panic!("{source} {name}"))
    };
    at(1) - at(0)
}

/// Pages demoted, by kswapd and by allocating tasks.
fn demoted(record: &Value) -> u64 {
    grew(record, "vmstat", "pgdemote_kswapd") + grew(record, "vmstat", "pgdemote_direct")
}

/// Value of a setting as it was read back.
fn setting<'a>(record: &'a Value, name: &str) -> &'a str {
    let value = &record["results"]["settings"][name];
    value.as_str().unwrap_or_else(|| panic!("no {name}"))
}

/// Value of a fact in a record.
fn fact<'a>(record: &'a Value, name: &str) -> &'a str {
    let value = &record["results"]["facts"][name];
    value.as_str().unwrap_or_else(|| panic!("no {name}"))
}

/// Asserts that the free memory of each node before the trial is this many MiB. Free pages on per-CPU lists are not
/// counted here; such lists may have up to an eighth of a zone, and the first node's zones include simulated disks.
fn has_free(record: &Value, nodes: &[u64]) {
    for (node, mib) in nodes.iter().enumerate() {
        let values = &record["results"]["counters"][format!("node_vmstat-node{node}")]["values"];
        let free = values["nr_free_pages"][0].as_u64().unwrap() * 4096;
        let lists = if node == 0 { 6 * MIB } else { 2 * MIB };
        let wanted = mib * MIB;
        assert!(
            free <= wanted + MIB && wanted <= free + lists,
            "node {node}: {free} of {mib} MiB"
        );
    }
}

/// Runs a trial with demotion off and one with demotion on. Checks counts and times, and that a repetition is
/// identical.
fn demotion_has_its_sign(lab: &Lab, kernel: &str, nodes: &str, sizes: &[u64]) {
    let words = [
        "--nodes",
        nodes,
        "--vary",
        "numa/demotion_enabled=0,1",
        "--observe=none",
    ];
    let mut both = records(lab, kernel, 2, &words);
    both.sort_by_key(|record| setting(record, "numa/demotion_enabled").to_owned());
    let [off, on] = &both[..] else {
        panic!("{kernel}: two records")
    };
    assert_eq!(setting(off, "numa/demotion_enabled"), "false");
    assert_eq!(setting(on, "numa/demotion_enabled"), "true");
    for record in &both {
        has_free(record, sizes);
        // The first node is in a higher tier.
        let tiers = fact(record, "memory-tiers");
        assert!(tiers.ends_with(": 1") && tiers.contains(": 0; "), "{tiers}");
        // The workload's memory is on both nodes, and each access to the slow node adds its price.
        let slow = metric(record, "slow-accesses");
        let all: f64 = fact(record, "accesses").parse().unwrap();
        assert!(slow > 1000.0 && slow < 0.9 * all, "{slow} of {all}");
        let elapsed = record["results"]["elapsed"].as_f64().unwrap();
        let price = metric(record, "modelled-time") - elapsed;
        assert!((price - 300.0 * slow).abs() < 1.0, "{price} for {slow}");
    }
    assert_eq!(demoted(off), 0);
    assert!(demoted(on) > 1000, "{kernel}: {}", demoted(on));
    // Without demotion, the first node swaps although the slow node has free memory.
    let [swapped, kept] = [off, on].map(|record| grew(record, "vmstat", "pswpout"));
    assert!(kept * 2 < swapped, "{kernel}: {kept} and {swapped}");
    let [without, with] = [off, on].map(|record| metric(record, "modelled-time"));
    assert!(with < without, "{kernel}: {with} and {without}");
    for record in &both {
        lab.ends(0, ["repeat", record["id"].as_str().unwrap()]);
    }
}

#[test]
fn demotion_moves_pages_to_the_slow_node_instead_of_swap_and_each_trial_repeats() {
    let Some(lab) = Lab::that_runs() else { return };
    demotion_has_its_sign(&lab, KERNEL, "16M,48M:slow", &[16, 48]);
}

#[test]
#[ignore = "test-all"]
fn demotion_has_the_same_sign_on_another_kernel_and_at_another_size() {
    for kernel in [KERNEL, SID] {
        let Some(lab) = Lab::that_runs_on(kernel) else {
            continue;
        };
        demotion_has_its_sign(&lab, kernel, "32M,96M:slow", &[32, 96]);
    }
}

#[test]
#[ignore = "test-all: boots a guest with two CPUs and two nodes"]
fn nodes_and_several_cpus_are_one_machine_that_repeats() {
    let Some(lab) = Lab::that_runs() else { return };
    // The emulator that can run several CPUs may have to be fetched.
    let (list, _) = lab.ends(0, ["emulator", "list", "--json"]);
    if !list.contains("8 CPUs")
        && !lab
            .ends(0, ["emulator", "add", "--json"])
            .0
            .contains("8 CPUs")
    {
        return skip(Need::Emulator, "QEMU 8.1 or later cannot be had".to_owned());
    }
    let demotion = ["--set", "numa/demotion_enabled=1", "--observe=none"];
    let words = [&["--cpus", "2", "--nodes", "16M,48M:slow"][..], &demotion].concat();
    let record = records(&lab, KERNEL, 1, &words).remove(0);
    assert_eq!(record["subject"]["cpus"], "2:5us");
    has_free(&record, &[16, 48]);
    assert!(demoted(&record) > 1000, "{}", demoted(&record));
    assert!(metric(&record, "slow-accesses") > 1000.0);
    lab.ends(0, ["repeat", record["id"].as_str().unwrap()]);
}

#[test]
#[ignore = "test-all"]
fn a_node_fills_while_the_other_is_free_if_the_policy_says_so() {
    let Some(lab) = Lab::that_runs() else { return };
    // 25.6 MiB of pages on two nodes of 16 MiB.
    let policies = "numa/policy=default,bind:0,bind:1,prefer:1,interleave:0+1";
    let words = [
        "--nodes",
        "16M,16M",
        "--swap",
        "ssd",
        "--vary",
        policies,
        "--observe=none",
    ];
    let all = records(&lab, KERNEL, 5, &words);
    let of = |policy: &str| {
        let mut found = all.iter();
        let found = found.find(|record| setting(record, "numa/policy") == policy);
        found.unwrap_or_else(|| panic!("no {policy}"))
    };
    // The content of the simulated disk, 96 MiB, is on the first node and is in none of the kernel's counts.
    for record in &all {
        has_free(record, &[16, 16]);
        for node in 0..2 {
            let values =
                &record["results"]["counters"][format!("node_meminfo-node{node}")]["values"];
            let total = values["MemTotal"][0].as_u64().unwrap();
            assert!(
                (16 * MIB..48 * MIB).contains(&total),
                "node {node}: {total}"
            );
        }
    }
    // Accesses to fast nodes have no price.
    assert!(of("default")["results"]["facts"]["accesses"].is_null());
    let pages = |record: &Value, node: u32, name: &str| {
        grew(record, &format!("node_numastat-node{node}"), name)
    };
    let free = |record: &Value, node: u32| {
        let values = &record["results"]["counters"][format!("node_vmstat-node{node}")]["values"];
        values["workingset_refault_anon"][1].as_u64().unwrap()
    };
    // A workload that is bound to a node swaps although the other node has free memory.
    for (policy, full, empty) in [("bind:0", 0, 1), ("bind:1", 1, 0)] {
        let record = of(policy);
        assert!(grew(record, "vmstat", "pswpout") > 1000, "{policy}");
        assert!(
            free(record, full) > 1000 && free(record, empty) == 0,
            "{policy}"
        );
        let [many, few] = [full, empty].map(|node| pages(record, node, "numa_hit"));
        assert!(many > 10 * few, "{policy}: {many} and {few}");
    }
    // A preferred node has no such effect: memory that does not fit on it is allocated on the other node.
    let preferred = of("prefer:1");
    assert!(pages(preferred, 0, "numa_miss") + pages(preferred, 1, "numa_hit") > 6000);
    let [bound, unbound] =
        ["bind:1", "prefer:1"].map(|policy| grew(of(policy), "vmstat", "pswpout"));
    assert!(unbound * 3 < bound, "{unbound} and {bound}");
    let [first, second] = [0, 1].map(|node| pages(of("interleave:0+1"), node, "interleave_hit"));
    assert!(
        first > 2000 && first.abs_diff(second) < 64,
        "{first} and {second}"
    );
}

#[test]
#[ignore = "test-all"]
fn a_program_sees_the_nodes_and_an_observed_pass_draws_them() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = [
        "--kernel",
        KERNEL,
        "--seeds",
        "1",
        "--nodes",
        "24M,24M:slow",
        "--observe=first",
    ];
    let command = ["--", "cat", "/sys/devices/system/node/online"];
    lab.ends(0, [&["run"], &words[..], &command].concat());
    let record = lab.newest(1).remove(0);
    let out = record["results"]["texts"]["stdout"].as_str();
    assert_eq!(out, Some("0-1\n"));
    let words = [
        "--nodes",
        "16M,48M:slow",
        "--set",
        "numa/demotion_enabled=1",
        "--observe=first",
    ];
    let both = records(&lab, KERNEL, 2, &words);
    let id = both[0]["id"].as_str().unwrap();
    let (text, _) = lab.ends(0, ["show", id]);
    let section = text.split_once("Memory of each node over time").unwrap().1;
    for word in ["node 0", "node 1, slow", "anonymous", "█"] {
        assert!(section.contains(word), "{word}: {section}");
    }
    let (table, _) = lab.ends(0, ["show", id, "--reclaim", "--json"]);
    let table: Value = serde_json::from_str(&table).unwrap();
    let rows = table["table"]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == "demoted").unwrap();
    assert!(row["value"]["value"].as_u64().unwrap() > 1000, "{row}");
    assert_eq!(row["check"]["disagrees"], false, "{row}");
}

#[test]
fn nodes_that_cannot_be_are_refused_before_a_guest_boots() {
    let Some(lab) = Lab::that_runs() else { return };
    let refused = |kernel: &str, words: &[&str], parts: &[&str]| {
        let fixed = ["run", "linear", "--seeds", "1", "--kernel", kernel];
        let output = lab.pagetide([&fixed, words].concat()).output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        one_sentence(&crate::common::text(&output.stderr), parts);
        assert_eq!(lab.records(), 0, "{words:?}");
    };
    let with_memory = ["--nodes", "16M,16M", "--memory", "16M"];
    refused(
        KERNEL,
        &with_memory,
        &["--memory 16M", "--nodes 16M,16M", "32M"],
    );
    let absent = ["--nodes", "16M,16M", "--set", "numa/policy=bind:2"];
    refused(KERNEL, &absent, &["numa/policy=bind:2", "it has 2"]);
    refused(KERNEL, &["--set", "numa/policy=prefer:1"], &["it has 1"]);
    let unreadable = ["--nodes", "16M,16M", "--set", "numa/policy=near"];
    refused(KERNEL, &unreadable, &["numa/policy=near", "interleave"]);
    // The tool's own options for kernels that it builds have no nodes.
    let built = ["--source", "debian:6.12", "--nodes", "16M,16M"];
    let words = [&["run", "linear", "--seeds", "1"][..], &built].concat();
    let output = lab.pagetide(words).output().unwrap();
    let said = crate::common::text(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{said}");
    one_sentence(&said, &["CONFIG_NUMA", "--config debian"]);
    // A file of the user's may leave out what its machine needs.
    let file = |name: &str, text: &str| {
        let path = lab.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let uniprocessor = file("one-cpu", "# CONFIG_SMP is not set\n");
    let untiered = file("fast", "CONFIG_NUMA=y\nCONFIG_ACPI=y\nCONFIG_PCI=y\n");
    for (config, machine, missing) in [
        (&uniprocessor, ["--cpus", "4"], "CONFIG_SMP"),
        (
            &uniprocessor,
            ["--nodes", "16M,16M"],
            "CONFIG_NUMA and CONFIG_ACPI",
        ),
        (&untiered, ["--nodes", "16M,16M:slow"], "CONFIG_ACPI_HMAT"),
    ] {
        let built = ["--source", "debian:6.12", "--config", config];
        let words = [&["run", "linear", "--seeds", "1"][..], &built, &machine].concat();
        let output = lab.pagetide(words).output().unwrap();
        let said = crate::common::text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{said}");
        one_sentence(&said, &[machine[0], missing, "--config"]);
    }
    if Lab::that_runs_on("debian:bookworm").is_some() {
        let slow = ["--nodes", "16M,16M:slow"];
        refused(
            "debian:bookworm",
            &slow,
            &["6.1.", "a slow memory tier", "6.10"],
        );
    }
}

#[test]
fn unreadable_nodes_are_refused_by_name() {
    let lab = Lab::new();
    for (nodes, word) in [
        ("64M", "one node"),
        ("64M,64M,64M,64M,64M", "5 nodes"),
        ("64M:slow,64M", "first node"),
        ("64M,4M", "at least 8 MiB"),
        ("64M,much", "`much`"),
    ] {
        let output = lab
            .pagetide(["run", "linear", "--nodes", nodes])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4), "{nodes}");
        let said = crate::common::text(&output.stderr);
        assert!(said.contains(word), "{nodes}: {said}");
    }
    for (words, parts) in [
        (
            ["--nodes", "64M,64M", "--slow-latency", "1us"],
            ["--slow-latency", "slow node"],
        ),
        (
            ["--nodes", "64M,64M:slow", "--slow-latency", "0ns"],
            ["cannot cost 0 ns", "1 ms"],
        ),
        (
            ["--memory", "16777215T", "-p", "pages=9"],
            ["--memory", "use at most"],
        ),
        (
            ["--swap-size", "16777215T", "--nodes", "9M,9M"],
            ["--swap-size", "use at most"],
        ),
    ] {
        let words = [&["run", "linear"], &words[..]].concat();
        let output = lab.pagetide(words).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{parts:?}");
        one_sentence(&crate::common::text(&output.stderr), &parts);
    }
}
