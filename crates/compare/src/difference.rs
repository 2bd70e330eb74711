//! Differences between two trials other than variant and seed.

use std::collections::BTreeSet;
use std::fmt;

use pagetide_record::text::exact_size;
use pagetide_record::{MemorySpec, Subject};
use serde::Serialize;

/// One difference between two trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs, such as "memory" or "parameter pages".
    pub what: String,
    /// Value in the first trial.
    pub a: String,
    /// Value in the second trial.
    pub b: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} against {}", self.what, self.a, self.b)
    }
}

/// Returns the differences that make two trials incomparable; empty if the trials can be compared.
pub fn differences(a: &Subject, b: &Subject) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut look = |what: &str, a: String, b: String| {
        if a != b {
            let shown = |text: String| {
                if text.is_empty() {
                    "not set".to_owned()
                } else {
                    text
                }
            };
            all.push(Difference {
                what: what.to_owned(),
                a: shown(a),
                b: shown(b),
            });
        }
    };
    look("scenario", a.scenario.clone(), b.scenario.clone());
    let form = |subject: &Subject| {
        let form = if subject.as_written {
            "as written"
        } else {
            "repaired"
        };
        form.to_owned()
    };
    look("form", form(a), form(b));
    if a.scenario == b.scenario {
        let names: BTreeSet<&String> = a.params.keys().chain(b.params.keys()).collect();
        for name in names {
            let value = |subject: &Subject| subject.params.get(name).cloned().unwrap_or_default();
            look(&format!("parameter {name}"), value(a), value(b));
        }
    }
    look("memory", a.memory.to_string(), b.memory.to_string());
    look("nodes", a.nodes.to_string(), b.nodes.to_string());
    let limit = |subject: &Subject| subject.limit.map_or_else(String::new, exact_size);
    look("limit", limit(a), limit(b));
    look("swap", a.swap_label(), b.swap_label());
    // Swap sizes are printed exactly, like memory, so that different sizes look different.
    let size = |subject: &Subject| MemorySpec::Free(subject.swap_size).to_string();
    look("swap size", size(a), size(b));
    let on = |subject: &Subject| format!("on {}", subject.files_on);
    look("files", on(a), on(b));
    look("CPUs", a.cpus.to_string(), b.cpus.to_string());
    look("pass", a.pass.to_string(), b.pass.to_string());
    look(
        "trace ring",
        a.trace_ring.to_string(),
        b.trace_ring.to_string(),
    );
    look("arena", a.arena.kind.to_string(), b.arena.kind.to_string());
    if a.arena.kind == b.arena.kind {
        look(
            "emulator",
            a.arena.emulator.clone(),
            b.arena.emulator.clone(),
        );
        look(
            "machine type",
            a.arena.machine.clone(),
            b.arena.machine.clone(),
        );
        look("processor model", a.arena.cpu.clone(), b.arena.cpu.clone());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Subject);

    #[test]
    fn everything_that_a_cell_holds_fixed_is_named_when_it_differs() {
        let a = Subject::default();
        let mut b = a.clone();
        b.seed = 9;
        b.variant.name = "other".into();
        assert_eq!(differences(&a, &b), []);
        assert_eq!(a.cell(), b.cell());
        let changes: [(&str, Change); 14] = [
            ("scenario is not set against x", |s| {
                s.scenario = "x".into();
            }),
            ("form is repaired against as written", |s| {
                s.as_written = true;
            }),
            ("parameter n is not set against 4", |s| {
                s.params.insert("n".into(), "4".into());
            }),
            ("memory is 64M against 1G", |s| {
                s.memory = "1G".parse().unwrap();
            }),
            ("nodes is not set against 8M,8M", |s| {
                s.nodes = "8M,8M".parse().unwrap();
            }),
            ("limit is not set against 32M", |s| {
                s.limit = Some(pagetide_quantity::Bytes::from_mib(32));
            }),
            ("swap is zram against none", |s| {
                s.swap = "none".parse().unwrap();
            }),
            ("swap size is 0 against 1M", |s| {
                s.swap_size = "1M".parse().unwrap();
            }),
            ("files is on ssd against on disk:8ms,20MB/s", |s| {
                s.files_on = "disk,20MB/s".parse().unwrap();
            }),
            ("CPUs is 1 against 4:5us", |s| {
                s.cpus = pagetide_record::CpusSpec::of(4);
            }),
            ("pass is timed against observed", |s| {
                s.pass = pagetide_record::Pass::Observed;
            }),
            ("trace ring is 4M against 64K", |s| {
                s.trace_ring = "64K".parse().unwrap();
            }),
            ("arena is exact against vm", |s| {
                s.arena.kind = pagetide_record::ArenaKind::Vm;
            }),
            ("emulator is not set against q", |s| {
                s.arena.emulator = "q".into();
            }),
        ];
        for (text, change) in changes {
            let mut c = a.clone();
            change(&mut c);
            let found: Vec<String> = differences(&a, &c)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(found, [text]);
            assert_ne!(a.cell(), c.cell(), "{text}");
        }
    }
}
