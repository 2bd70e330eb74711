//! Tests of the whole language: a workload is unchanged after writing and reading it, and no workload exceeds the
//! bounds.

#![allow(clippy::unwrap_used, reason = "tests")]

use pagetide_quantity::Bytes;
use pagetide_workload::{Workload, WorkloadError};

const EXAMPLE: &str = r#"
time-limit = "20s"

[machine]
memory = "16M"
swap = "zram"
settings = { "vm.swappiness" = "100" }

[[group]]
name = "apps"
max = "50%"
low = "10%"

[[process]]
name = "server"
group = "apps"
segment = [
  { name = "heap", size = "40%", content = "redis", pages = "huge" },
  { name = "log", kind = "file", size = "60%", empty = true },
]
phase = [
  { do = "fill", segment = "heap" },
  { do = "mark", name = "ready" },
  { do = "repeat", times = 2, phases = [
    { do = "access", segment = "heap", pattern = "zipf(0.9)", writes = 0.25, count = "1.5x", pause = "1ms", every = 64, part = [0.0, 0.5] },
    { do = "fork", count = 2, phases = [{ do = "copy", from = "heap", to = "log" }] },
    { do = "join" },
  ] },
  { do = "advise", segment = "heap", advice = "cold" },
]

[[process]]
name = "reader"
count = 3
stagger = "10ms"
segment = [{ name = "data", kind = "file", size = "100%", file = "data" }]
phase = [
  { do = "wait", for = "ready" },
  { do = "access", segment = "data", by = "call", amount = "page", count = 5000, until = "server" },
  { do = "reclaim", group = "apps", amount = "1M" },
]
"#;

fn with(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    EXAMPLE.replacen(from, to, 1)
}

fn refused(text: &str) -> String {
    Workload::from_toml(text).unwrap_err().to_string()
}

#[test]
fn what_a_person_wrote_is_the_same_in_every_form() {
    let workload = Workload::from_toml(EXAMPLE).unwrap();
    assert_eq!(Workload::from_toml(&workload.to_toml()).unwrap(), workload);
    let again = Workload::from_canonical(&workload.canonical()).unwrap();
    assert_eq!(again.canonical(), workload.canonical());
    assert_eq!(again.processes, workload.processes);
    assert_eq!(again.groups, workload.groups);
    // The campaign determines sizes and devices of the machine; the settings belong to the workload.
    let machine = again.machine.unwrap();
    assert_eq!(machine.memory, None);
    assert_eq!(machine.settings["vm.swappiness"], "100");
}

#[test]
fn needs_follow_the_memory() {
    let workload = Workload::from_toml(EXAMPLE).unwrap();
    let mib = Bytes::from_mib;
    let needed = workload.needed(mib(10), mib(10)).unwrap();
    assert_eq!(needed.memory, mib(4));
    assert_eq!(needed.files, mib(16), "the readers share a file");
    // Process `server` fills 1024 pages. Twice, it accesses half of them 1.5 times, and two children copy all of them.
    // Readers: 5000 each.
    assert_eq!(needed.accesses, 1024 + 2 * (768 + 2 * 1024) + 3 * 5000);
}

#[test]
fn mistakes_are_named_with_their_place_and_remedy() {
    let cases = [
        (
            "segment = \"heap\" }",
            "segment = \"haep\" }",
            "did you mean \"heap\"?",
        ),
        (
            "group = \"apps\"\nsegment",
            "group = \"app\"\nsegment",
            "did you mean \"apps\"?",
        ),
        (
            "for = \"ready\"",
            "for = \"redy\"",
            "did you mean \"ready\"?",
        ),
        ("count = 3", "count = 0", "1 or more"),
        ("count = 3", "count = 600", "the most is 512"),
        ("count = 2,", "count = 300,", "the most is 512"),
        ("writes = 0.25", "writes = 1.5", "from 0 to 1"),
        (
            "part = [0.0, 0.5]",
            "part = [0.5, 0.5]",
            "the smaller one first",
        ),
        (
            "time-limit = \"20s\"",
            "time-limit = \"20h\"",
            "1ms to 600s",
        ),
        ("to = \"log\"", "to = \"heap\"", "is no file"),
        ("size = \"60%\"", "size = \"2Q\"", "line 19"),
        ("by = \"call\", amount", "by = \"cal\", amount", "call"),
        ("do = \"join\"", "do = \"jion\"", "jion"),
        ("name = \"reader\"", "name = \"server\"", "name of its own"),
        ("name = \"reader\"", "name = \"../up\"", "lower-case"),
        ("file = \"data\"", "file = \"../data\"", "lower-case"),
        ("until = \"server\"", "untill = \"server\"", "untill"),
        (
            "pattern = \"zipf(0.9)\"",
            "pattern = \"file:x\"",
            "no file of references",
        ),
    ];
    for (from, to, message) in cases {
        let found = refused(&with(from, to));
        assert!(found.contains(message), "{to}: {found}");
    }
}

#[test]
fn processes_that_wait_for_each_other_are_refused() {
    let text = |a: &str, b: &str| {
        format!(
            "[[process]]\nname = \"a\"\nphase = [{a}]\n[[process]]\nname = \"b\"\ncount = 2\nphase = [{b}]\n"
        )
    };
    let mark = |name: &str| format!("{{ do = \"mark\", name = \"{name}\" }}");
    let wait = |name: &str| format!("{{ do = \"wait\", for = \"{name}\" }}");
    let join = |parts: &[String]| parts.join(", ");
    let fine = text(
        &join(&[mark("x"), wait("y")]),
        &join(&[wait("x"), mark("y"), wait("y")]),
    );
    Workload::from_toml(&fine).unwrap();
    let circle = text(
        &join(&[wait("y"), mark("x")]),
        &join(&[wait("x"), mark("y")]),
    );
    assert!(matches!(
        Workload::from_toml(&circle),
        Err(WorkloadError::Standstill { .. })
    ));
    // A process cannot end before itself.
    let own = text(&wait("a"), &mark("y"));
    assert!(refused(&own).contains("waits for `a` for ever"));
    // A fork that waits for its parent is no deadlock, as long as the parent does not join the fork.
    let child = format!("{{ do = \"fork\", phases = [{}] }}", wait("a"));
    Workload::from_toml(&text(&child, &mark("y"))).unwrap();
    let joined = join(&[child, "{ do = \"join\" }".to_owned()]);
    assert!(refused(&text(&joined, &mark("y"))).contains("for ever"));
}
