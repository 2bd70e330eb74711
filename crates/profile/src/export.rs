//! Profiles in the formats of other tools.

use std::fmt::Write;

use serde_json::json;

use crate::profile::Profile;

/// Returns the names of the task and the functions in the call stack of a node, outermost first.
fn frames(profile: &Profile, node: usize) -> Vec<String> {
    // Semicolons separate names in the output, so a semicolon in a name becomes a comma.
    let path = profile.path(node);
    path.into_iter()
        .map(|name| name.replace(';', ","))
        .collect()
}

/// Formats call stacks with their numbers of instructions, one stack a line, as flame graph programs read them:
/// `task;function;function 123`. Source: https://github.com/brendangregg/FlameGraph, `flamegraph.pl`.
pub fn folded(profile: &Profile) -> String {
    let mut text = String::new();
    for (at, node) in profile.nodes.iter().enumerate() {
        if node.own > 0 {
            let _ = writeln!(text, "{} {}", frames(profile, at).join(";"), node.own);
        }
    }
    text
}

/// Formats call stacks of two profiles with the numbers of instructions in `a` and in `b`, one stack a line. Programs
/// for differential flame graphs read this format: `task;function;function 123 456`. Source:
/// https://github.com/brendangregg/FlameGraph, `difffolded.pl`.
pub fn folded_difference(a: &Profile, b: &Profile) -> String {
    let mut all: std::collections::BTreeMap<String, [u64; 2]> = std::collections::BTreeMap::new();
    for (side, profile) in [a, b].into_iter().enumerate() {
        for (at, node) in profile.nodes.iter().enumerate() {
            if node.own > 0 {
                all.entry(frames(profile, at).join(";")).or_default()[side] += node.own;
            }
        }
    }
    let mut text = String::new();
    for (stack, [a, b]) in all {
        let _ = writeln!(text, "{stack} {a} {b}");
    }
    text
}

/// Returns a profile as a JSON file for speedscope. `name` is the title. Source:
/// https://www.speedscope.app/file-format-schema.json.
pub fn speedscope(profile: &Profile, name: &str) -> String {
    let functions = profile.functions.len();
    let names = profile
        .functions
        .iter()
        .map(|function| match &function.module {
            Some(module) => json!({ "name": function.name, "file": module }),
            None => json!({ "name": function.name }),
        });
    let tasks = profile.tasks.iter().map(|task| json!({ "name": task }));
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for (at, node) in profile.nodes.iter().enumerate() {
        if node.own == 0 {
            continue;
        }
        let frame = |here: usize| {
            let what = profile.nodes[here].what as usize;
            if profile.is_root(here) {
                functions + what
            } else {
                what
            }
        };
        let mut stack: Vec<usize> = profile.up(at).map(frame).collect();
        stack.reverse();
        samples.push(stack);
        weights.push(node.own);
    }
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": "pagetide",
        "shared": { "frames": names.chain(tasks).collect::<Vec<_>>() },
        "profiles": [{
            "type": "sampled",
            "name": name,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": weights.iter().sum::<u64>(),
            "samples": samples,
            "weights": weights,
        }],
    });
    format!("{file}\n")
}

/// Returns a profile as text in the format of `perf script`, for tools that read this format. Each call stack is a
/// sample whose period is its number of instructions. Source: Linux `tools/perf/Documentation/perf-script.txt`.
pub fn perf_script(profile: &Profile) -> String {
    let mut text = String::new();
    let mut clock = 0_u64;
    let of_tasks = profile.tasks.iter().map(|task| task.replace(' ', "_"));
    let of_tasks: Vec<String> = of_tasks.collect();
    for (at, node) in profile.nodes.iter().enumerate() {
        if node.own == 0 {
            continue;
        }
        clock += node.own;
        let (seconds, nanos) = (clock / 1_000_000_000, clock % 1_000_000_000);
        let task = profile.task_of(at);
        let _ = writeln!(
            text,
            "{} {} [000] {seconds}.{nanos:09}: {} instructions:",
            of_tasks[task],
            task + 1,
            node.own
        );
        for here in profile.up(at).filter(|here| !profile.is_root(*here)) {
            let what = profile.nodes[here].what as usize;
            let function = &profile.functions[what];
            let file = match &function.module {
                Some(file) if function.is_program => file.clone(),
                Some(module) => format!("[{module}]"),
                None => "[kernel.kallsyms]".to_owned(),
            };
            let _ = writeln!(
                text,
                "\t{:16x} {} ({})",
                0xffff_ffff_8100_0000_u64 + what as u64 * 16,
                function.name.replace(' ', "_"),
                file
            );
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::profile::{Function, Node};

    pub(crate) fn sample() -> Profile {
        let function = |name: &str, module: Option<&str>| Function {
            name: name.to_owned(),
            module: module.map(str::to_owned),
            ..Function::default()
        };
        Profile {
            functions: vec![
                function("user code", None),
                function("zram_write", Some("zram")),
            ],
            tasks: vec!["workload".to_owned()],
            nodes: [(0, 0, 0, 0), (0, 0, 5, 0), (1, 1, 7, 3)]
                .map(Node::from)
                .into(),
            ..Profile::new()
        }
    }

    #[test]
    fn each_format_has_every_stack_with_its_instructions() {
        let profile = sample();
        assert_eq!(
            folded(&profile),
            "workload;user code 5\nworkload;user code;zram_write 7\n"
        );
        let mut other = sample();
        other.nodes[2].own = 9;
        let difference = folded_difference(&profile, &other);
        assert_eq!(
            difference,
            "workload;user code 5 5\nworkload;user code;zram_write 7 9\n"
        );
        let scope: serde_json::Value = serde_json::from_str(&speedscope(&profile, "x")).unwrap();
        assert_eq!(scope["profiles"][0]["endValue"], 12);
        assert_eq!(scope["profiles"][0]["samples"][1], json!([2, 0, 1]));
        assert_eq!(scope["shared"]["frames"][2]["name"], "workload");
        let script = perf_script(&profile);
        assert!(
            script.contains("workload 1 [000] 0.000000012: 7 instructions:\n"),
            "{script}"
        );
        assert!(script.contains(" zram_write ([zram])\n"), "{script}");
    }
}
