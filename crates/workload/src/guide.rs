//! The reference of the workload language, `docs/workload.md`: every key with its meaning, and the bounds.

use std::fmt::Write;

use pagetide_quantity::Nanos;

use crate::bounds::{
    MAX_ACCESSES, MAX_DEPTH, MAX_FILES, MAX_GROUPS, MAX_NAMES, MAX_PHASES, MAX_PROCESSES,
    MAX_SEGMENTS, MAX_TIME,
};
use crate::form::plain_time;

/// A key of a table: its name, the form of its value, and its meaning.
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Form of the key's value.
    pub value: &'static str,
    /// Meaning and default of the key.
    pub meaning: &'static str,
}

/// Reference text of one table of a workload file, or of one kind of phase.
pub struct Keys {
    /// Header of the table, or name of the kind of phase.
    pub place: &'static str,
    /// Purpose of the table, or what the phase does.
    pub meaning: &'static str,
    /// Keys in the order of the reference.
    pub keys: &'static [Key],
}

macro_rules! keys {
    ($($name:literal = $value:literal: $meaning:literal;)*) => {
        &[$(Key { name: $name, value: $value, meaning: $meaning }),*]
    };
}

/// Reference texts of the tables of a workload file.
pub const TABLES: &[Keys] = &[
    Keys {
        place: "[workload]",
        meaning: "The whole workload. In a file for `--workload`, its keys stand above all tables, and the tables below are `[machine]`, `[[group]]` and `[[process]]`.",
        keys: keys! {
            "time-limit" = "\"60s\"": "Time of the guest after which processes that still run are ended and counted as `unfinished`. Without it: 60s.";
            "machine" = "table": "The machine: see [workload.machine].";
            "group" = "tables": "Memory groups: see [[workload.group]].";
            "process" = "tables": "What runs: see [[workload.process]]. Must be there.";
        },
    },
    Keys {
        place: "[workload.machine]",
        meaning: "The machine. Values of the campaign or the command line take precedence.",
        keys: keys! {
            "memory" = "\"16M\"": "Memory that is free at the start.";
            "swap" = "\"zram\"": "Kind of swap, as in campaign files.";
            "swap-size" = "\"48M\"": "Size of all swap devices together.";
            "files-on" = "\"disk:8ms,20MB/s\"": "Device of the files.";
            "fs" = "\"ext4\"": "File system of the files.";
            "settings" = "{ \"vm.swappiness\" = \"100\" }": "Settings that apply unless the variant sets them.";
        },
    },
    Keys {
        place: "[[workload.group]]",
        meaning: "A memory control group (version 2). Sizes are shares of memory or bytes.",
        keys: keys! {
            "name" = "\"apps\"": "Its name. Must be there.";
            "each" = "true": "Each process of the group gets a group of its own with these limits.";
            "max" = "\"50%\"": "`memory.max`: above it the group reclaims from itself, and one of its processes is killed if that fails.";
            "high" = "\"40%\"": "`memory.high`: above it the group is reclaimed and throttled.";
            "low" = "\"20%\"": "`memory.low`: this memory is reclaimed only if no unprotected memory is left.";
            "min" = "\"10%\"": "`memory.min`: this memory is never reclaimed.";
            "swap-max" = "\"0\"": "`memory.swap.max`: `0` for no swap.";
        },
    },
    Keys {
        place: "[[workload.process]]",
        meaning: "One process, or several that do the same. All start together, after they have mapped their segments.",
        keys: keys! {
            "name" = "\"reader\"": "Name of the processes. Other processes can wait for their end by this name. Must be there.";
            "count" = "3": "Number of processes. Without it: 1.";
            "group" = "\"apps\"": "Name of the group that the processes are in. Without it: no group.";
            "start" = "\"100ms\"": "Time before the first process begins.";
            "stagger" = "\"20ms\"": "Time from the start of one process to the start of the next.";
            "turn" = "\"launched\"": "Name of a mark by which these processes take turns: each begins when the one before it has passed the mark.";
            "segment" = "tables": "Memory that it maps: see segments.";
            "phase" = "tables": "What it does, in order: see phases.";
        },
    },
    Keys {
        place: "segment",
        meaning: "Memory that a process maps. Nothing is in it until a phase touches it, except the content of files.",
        keys: keys! {
            "name" = "\"heap\"": "Name of the segment, by which phases refer to it. Must be there.";
            "kind" = "\"file\"": "`anonymous`, `shared` (anonymous, shared with forked children), `file` (mapped, on the disk) or `tmpfs` (a file in memory and swap). Without it: anonymous.";
            "size" = "\"80%\"": "A share of memory, or bytes as `\"8M\"`. Must be there.";
            "content" = "\"redis\"": "What pages contain: a share to which they compress (`\"0.35\"`), or a content of the scenarios. Without it: 0.35.";
            "pages" = "\"huge\"": "Page size of anonymous memory: `small`, `huge` or `default`. Without it: small.";
            "locked" = "true": "The segment is filled and locked before the start.";
            "file" = "\"data\"": "Segments with the same file share it.";
            "empty" = "true": "The file is empty at the start. Without it, the file has its content, and none of it is cached.";
        },
    },
];

/// Reference texts of the kinds of phases.
pub const PHASES: &[Keys] = &[
    Keys {
        place: "access",
        meaning: "Touches pages of a segment in a pattern. Each access is timed.",
        keys: keys! {
            "segment" = "\"heap\"": "The segment. Must be there.";
            "pattern" = "\"zipf(0.9)\"": "A pattern of `pagetide list scenarios patterns`. Without it: linear.";
            "writes" = "0.25": "Share of the accesses that write. Without it: 0.";
            "count" = "5000, or \"2x\"": "Number of accesses, or passes over the part. Without it: 1x.";
            "amount" = "\"page\"": "`word`, or the whole `page`; only a whole page that is written gets the segment's content. Without it: word.";
            "by" = "\"call\"": "`mapping`, or `call` for pread and pwrite of a file. Without it: mapping.";
            "pause" = "\"1ms\"": "Pause after every `every` accesses: together they limit the rate.";
            "every" = "64": "Accesses between two pauses. Without it: 32.";
            "part" = "[0.0, 0.5]": "Part of the segment, as two shares. Without it: all.";
            "until" = "\"reader\"": "Stops early when every process with this mark has passed it, or when the processes of this name have ended.";
        },
    },
    Keys {
        place: "fill",
        meaning: "Writes every page once, in whole, in ascending order.",
        keys: keys! {
            "segment" = "\"heap\"": "The segment. Must be there.";
            "by" = "\"call\"": "As for access.";
            "part" = "[0.0, 0.5]": "As for access.";
        },
    },
    Keys {
        place: "copy",
        meaning: "Writes one segment to a file by pwrite, page by page.",
        keys: keys! {
            "from" = "\"heap\"": "The segment that is read. Must be there.";
            "to" = "\"dump\"": "A segment of kind file or tmpfs. Must be there.";
        },
    },
    Keys {
        place: "sync",
        meaning: "Writes the file's dirty pages to the disk and waits (fdatasync).",
        keys: keys! { "segment" = "\"log\"": "A segment of kind file. Must be there."; },
    },
    Keys {
        place: "advise",
        meaning: "Advises the kernel.",
        keys: keys! {
            "segment" = "\"heap\"": "The segment. Must be there.";
            "advice" = "\"cold\"": "`cold`, `pageout`, `free`, `dontneed`, `willneed`, `populate-read`, `populate-write`, `sequential`, `random` (madvise), or `drop-cache` (posix_fadvise on a file). Must be there.";
            "part" = "[0.0, 0.5]": "As for access.";
        },
    },
    Keys {
        place: "fork",
        meaning: "Forks children that share memory copy on write. The parent goes on; a child ends after its phases.",
        keys: keys! {
            "count" = "4": "Number of children. Without it: 1.";
            "phases" = "[…]": "What each child does. Must be there.";
        },
    },
    Keys {
        place: "join",
        meaning: "Waits for the end of all children.",
        keys: &[],
    },
    Keys {
        place: "mark",
        meaning: "Passes a mark. Cannot stand inside a fork.",
        keys: keys! { "name" = "\"ready\"": "Name of the mark. Must be there."; },
    },
    Keys {
        place: "wait",
        meaning: "Waits until every process with this mark has passed it or ended. A workload in which a process would wait for ever is refused.",
        keys: keys! { "for" = "\"ready\"": "Name of a mark, or of processes whose end is waited for. Must be there."; },
    },
    Keys {
        place: "pause",
        meaning: "Sleeps.",
        keys: keys! { "time" = "\"50ms\"": "Length of the pause. Must be there."; },
    },
    Keys {
        place: "reclaim",
        meaning: "Asks the kernel to reclaim from a group (memory.reclaim).",
        keys: keys! {
            "group" = "\"apps\"": "The group. Must be there.";
            "amount" = "\"1M\"": "Amount to reclaim. Must be there.";
        },
    },
    Keys {
        place: "repeat",
        meaning: "Does phases several times.",
        keys: keys! {
            "times" = "3": "Number of times. Must be there.";
            "phases" = "[…]": "The phases. Must be there.";
        },
    },
];

/// Text before the tables.
const HEAD: &str = include_str!("guide/head.md");
/// Text after the tables.
const TAIL: &str = include_str!("guide/tail.md");

/// Returns the text of `docs/workload.md`.
pub fn markdown() -> String {
    let mut text = HEAD.to_owned();
    for table in TABLES {
        let _ = write!(text, "\n### {}\n\n{}\n\n", table.place, table.meaning);
        rows(
            &mut text,
            "key",
            table.keys.iter().map(|key| (key.name.to_owned(), key)),
        );
    }
    text.push_str("\n## Phases\n\nA phase is a table with the key `do` and the keys below.\n\n| do | key | takes | meaning |\n|---|---|---|---|\n");
    for phase in PHASES {
        let _ = writeln!(text, "| **{}** | | | {} |", phase.place, phase.meaning);
        for key in phase.keys {
            let _ = writeln!(
                text,
                "| | `{}` | `{}` | {} |",
                key.name, key.value, key.meaning
            );
        }
    }
    text.push_str(&bounds());
    text.push_str(TAIL);
    text
}

fn rows<'k>(text: &mut String, head: &str, keys: impl Iterator<Item = (String, &'k Key)>) {
    let _ = writeln!(text, "| {head} | takes | meaning |\n|---|---|---|");
    for (name, key) in keys {
        let _ = writeln!(text, "| `{name}` | `{}` | {} |", key.value, key.meaning);
    }
}

fn bounds() -> String {
    let time = |time: Nanos| plain_time(time);
    format!(
        "\n## Bounds\n\nBounds are checked before a trial; time is enforced during it too. A workload may have {MAX_PROCESSES} processes \
         (forked ones included), {MAX_GROUPS} groups, {MAX_SEGMENTS} segments in a process, {MAX_PHASES} phases, {MAX_DEPTH} levels \
         of phases within phases, {MAX_NAMES} names of processes and marks, {} million accesses, {} of files on the disk and a time \
         limit of {}. Anonymous memory and tmpfs together must fit into memory and swap; at most 80 % of memory may be locked. The \
         files' disk is made in the size that they need, so no workload can fill another disk.\n",
        MAX_ACCESSES / 1_000_000,
        MAX_FILES,
        time(MAX_TIME),
    )
}
