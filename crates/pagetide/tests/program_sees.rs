//! Tests of the size of the machine as a program sees it, and of the heap sizes that language runtimes choose from it.

use std::process::Command;

use crate::common::{KERNEL, Lab};
use pagetide_testing::{Need, skip};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Runs a command with these options and one seed; returns its record, which must be valid.
fn run(lab: &Lab, options: &[&str], command: &[&str]) -> Value {
    let mut words = vec!["run", "--kernel", KERNEL, "--seeds", "1"];
    words.extend(options);
    words.push("--");
    words.extend(command);
    lab.ends(0, words);
    lab.newest(1).remove(0)
}

/// Standard output and standard error of the program.
fn texts(record: &Value) -> [&str; 2] {
    ["stdout", "stderr"].map(|name| record["results"]["texts"][name].as_str().unwrap())
}

/// Size of the memory that the guest's kernel manages, in bytes.
fn managed(record: &Value) -> u64 {
    let fact = record["results"]["facts"]["managed"].as_str().unwrap();
    fact.parse().unwrap()
}

/// Runs a command twice with the same memory: with a limit of its control group, and without. Fails if the machine is
/// larger than a machine that has this memory free.
fn with_and_without_limit(lab: &Lab, memory: &str, limit: &str, command: &[&str]) -> [Value; 2] {
    let records = [
        run(lab, &["--memory", memory, "--limit", limit], command),
        run(lab, &["--memory", memory], command),
    ];
    let free: u64 = memory.trim_end_matches('M').parse().unwrap();
    for record in &records {
        let counted = managed(record) / MIB;
        assert!(
            (free..free + 96).contains(&counted),
            "{counted} MiB, with {memory} free"
        );
    }
    records
}

/// True if this machine has the program. If not, reports that the test is skipped and names the program.
fn has(program: &str) -> bool {
    let is_here = Command::new(program).arg("--version").output().is_ok();
    if !is_here {
        skip(Need::Runtimes, format!("{program} is not installed"));
    }
    is_here
}

/// A script that consists of shell builtins. It reads files of the control group and of the system, tries to write
/// them, and reads them again.
const SCRIPT: &str = r#"
    show() { while read -r line; do echo "$1 $line"; done < "$1"; }
    own=/sys/fs/cgroup
    show /proc/self/cgroup
    for name in memory.max memory.high memory.swap.max; do show $own/$name; done
    for name in memory.current memory.stat; do read -r line < $own/$name && echo "$name there"; done
    show /sys/devices/system/cpu/online
    read -r line < /proc/meminfo; echo "$line"
    for name in $own/memory.max $own/memory.low $own/memory.reclaim /sys/kernel/mm/lru_gen/enabled \
        /sys/module/zswap/parameters/enabled /sys/block/x /proc/sys/vm/swappiness /proc/sysrq-trigger; do
        (echo 0 > $name) || echo "no $name"
    done
    show $own/memory.max
    while read -r line; do case $line in *" - cgroup2 "*|*" - sysfs "*) echo "$line"; esac; done < /proc/self/mountinfo
    echo shared > /dev/shm/x && show /dev/shm/x
    read -r line < /dev/stdin || echo "no input"
    echo output > /dev/stdout; echo descriptor > /dev/fd/1; echo errors > /dev/stderr
"#;

#[test]
fn a_program_sees_its_machine_and_its_own_memory_group_and_can_change_neither() {
    let Some(lab) = Lab::that_runs() else { return };
    let text_style = |more: &[&str]| {
        let options = [&["--memory", "24M", "--swap", "none"], more].concat();
        run(&lab, &options, &["sh", "-c", SCRIPT])
    };
    let limited = text_style(&["--limit", "12M", "--high", "11M", "--swap-max", "3M"]);
    let [out, errors] = texts(&limited);
    let own = "/sys/fs/cgroup";
    for line in [
        "/proc/self/cgroup 0::/".to_owned(),
        format!("{own}/memory.max {}", 12 * MIB),
        format!("{own}/memory.high {}", 11 * MIB),
        format!("{own}/memory.swap.max {}", 3 * MIB),
        "memory.current there".to_owned(),
        "memory.stat there".to_owned(),
        "/sys/devices/system/cpu/online 0".to_owned(),
        format!("MemTotal:         {} kB", managed(&limited) >> 10),
        "/dev/shm/x shared".to_owned(),
        "no input".to_owned(),
        "output".to_owned(),
        "descriptor".to_owned(),
    ] {
        assert!(
            out.lines().any(|found| words(found) == words(&line)),
            "{line} is not in {out}"
        );
    }
    let refused = out.lines().filter(|line| line.starts_with("no /"));
    assert_eq!(refused.count(), 8, "{out}\n{errors}");
    assert!(errors.contains("Read-only file system") && errors.ends_with("errors\n"));
    let kept = format!("{own}/memory.max {}", 12 * MIB);
    assert_eq!(out.lines().filter(|line| **line == kept).count(), 2);
    // The program's control group is the root of the hierarchy that the program sees.
    for (place, mode, kind) in [("/sys", "ro", "sysfs"), (own, "rw", "cgroup2")] {
        let wanted = format!(" / {place} {mode},nosuid,nodev,noexec,relatime - {kind} ");
        assert!(out.contains(&wanted), "{wanted} is not in {out}");
    }
    // A program without limits also runs in a control group.
    let free = text_style(&[]);
    let [out, _] = texts(&free);
    for name in ["memory.max", "memory.high", "memory.swap.max"] {
        let line = format!("{own}/{name} max");
        assert!(out.contains(&line), "{line} is not in {out}");
    }
    assert_eq!(text_style(&["--fresh"])["digest"], free["digest"]);
}

/// A script that makes a control group with a limit, in which a process fills shared memory of 6 MiB.
const GROUPS: &str = "
    cd /sys/fs/cgroup
    mkdir self small && echo 0 > self/cgroup.procs && echo +memory > cgroup.subtree_control
    echo $1 > small/memory.max && echo 0 > small/memory.swap.max
    (echo 0 > small/cgroup.procs; dd if=/dev/zero of=/dev/shm/x bs=1M count=6) || echo ended
    while read -r line; do echo small $line; done < small/memory.events
";

#[test]
#[ignore = "test-all"]
fn a_program_makes_control_groups_with_limits_in_its_own() {
    let Some(lab) = Lab::that_runs() else { return };
    let files = [
        "--memory",
        "24M",
        "--file",
        "/usr/bin/mkdir",
        "--file",
        "/usr/bin/dd",
    ];
    let record = run(&lab, &files, &["sh", "-c", GROUPS, "sh", "12M"]);
    let [out, errors] = texts(&record);
    assert!(
        out.contains("small oom_kill 0") && !out.contains("ended"),
        "{out}\n{errors}"
    );
    // A kill at the limit of such a group is a death like one at the program's own limit.
    let mut words = vec!["run", "--kernel", KERNEL, "--seeds", "1"];
    words.extend(files);
    words.extend(["--", "sh", "-c", GROUPS, "sh", "4M"]);
    let output = lab.pagetide(words.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let invalid = lab.newest(1)[0]["results"]["invalid"].to_string();
    assert!(invalid.contains("out-of-limit"), "{invalid}\n{said}");
}

/// Splits a line into words.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
#[ignore = "test-all"]
fn node_is_constrained_to_its_limit_and_otherwise_by_the_machine() {
    let Some(lab) = Lab::that_runs() else { return };
    if !has("node") {
        return;
    }
    let code = "console.log([process.constrainedMemory(), os.totalmem(), \
                v8.getHeapStatistics().heap_size_limit].join(' '))";
    let [limited, free] = with_and_without_limit(&lab, "128M", "72M", &["node", "-e", code]);
    // Node may report a limit larger than any memory, which may need more than 64 bits.
    let numbers = |record| -> [u128; 3] {
        let [out, errors] = texts(record);
        let numbers = out.split_whitespace().map(|word| word.parse().unwrap());
        let numbers: Vec<u128> = numbers.collect();
        numbers
            .try_into()
            .unwrap_or_else(|_| panic!("{out}{errors}"))
    };
    let ([constrained, total, heap], [unconstrained, same, larger]) =
        (numbers(&limited), numbers(&free));
    assert_eq!(constrained, u128::from(72 * MIB));
    let machines = [&limited, &free].map(|record| u128::from(managed(record)));
    assert_eq!([total, same], machines);
    // Without a limit, Node reports zero or a number larger than any memory.
    assert!(
        unconstrained == 0 || unconstrained > total,
        "{unconstrained}"
    );
    // V8's smallest heap is larger than half of this memory, so the heap has the same size with and without the limit.
    assert_eq!(heap, larger);
    assert!(heap > constrained, "{heap}");
}

#[test]
#[ignore = "test-all"]
fn java_without_options_takes_a_share_of_its_limit_and_otherwise_of_the_machine() {
    let Some(lab) = Lab::that_runs() else { return };
    if !has("java") {
        return;
    }
    let command = ["java", "-XX:+PrintFlagsFinal", "-version"];
    for record in with_and_without_limit(&lab, "128M", "80M", &command) {
        let [out, errors] = texts(&record);
        let line = out.lines().find(|line| line.contains(" MaxHeapSize "));
        let line = line.unwrap_or_else(|| panic!("{out}{errors}"));
        let heap: u64 = line.split_whitespace().nth(3).unwrap().parse().unwrap();
        let is_limited = record["subject"]["params"]["limit"] != "0";
        let memory = if is_limited {
            80 * MIB
        } else {
            managed(&record)
        };
        // On small machines the heap is half of the memory, rounded to a multiple of the heap's alignment. Source:
        // OpenJDK 17 `src/hotspot/share/runtime/arguments.cpp`, `Arguments::set_heap_size`.
        let expected = memory / 2;
        assert!(
            heap.abs_diff(expected) <= 2 * MIB,
            "{heap} of {memory}: {line}"
        );
    }
}
