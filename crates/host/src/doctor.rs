//! Checks what this machine provides for trials on its kernel. Changes nothing.

use std::fs;
use std::path::Path;

use pagetide_arena::doctor::{Diagnosis, State};
use pagetide_arena::host;
use pagetide_quantity::Bytes;
use rustix::process::geteuid;

use crate::hierarchy::{DELEGATE, Hierarchy};
use crate::proactive;
use crate::state::StateFolder;
use crate::tracing;

/// Checks everything that the host arena needs. `cache` is the folder of the cache.
pub fn examine(cache: &Path) -> Vec<Diagnosis> {
    vec![
        groups(),
        swap(cache),
        memory(),
        reclaim(),
        pressure(),
        traces(),
        journals(),
    ]
}

fn groups() -> Diagnosis {
    const NAME: &str = "memory groups";
    match Hierarchy::find() {
        Ok(Hierarchy::Root { root }) => {
            Diagnosis::works(NAME, format!("version 2 on {}, as root", root.display()))
        }
        Ok(Hierarchy::Delegated { own }) => Diagnosis::new(
            NAME,
            State::Limits,
            format!(
                "version 2, in the delegated group {}: no swap or settings of its own",
                own.display()
            ),
            "run it as root for all of it",
        ),
        Ok(Hierarchy::Version1 { memory, unified }) => {
            let pressure = if unified.is_some() {
                "pressure from version 2 beside it"
            } else {
                "no pressure"
            };
            Diagnosis::new(
                NAME,
                State::Limits,
                format!(
                    "version 1 on {}, as root: no memory.high, reclaim and swap are not counted by group; {pressure}",
                    memory.display()
                ),
                "boot with systemd.unified_cgroup_hierarchy=1 for version 2",
            )
        }
        Err(why) => {
            let remedy = format!("run it as root, or with `{DELEGATE}`");
            Diagnosis::new(NAME, State::Missing, why.to_string(), remedy)
        }
    }
}

fn swap(cache: &Path) -> Diagnosis {
    const NAME: &str = "swap of its own";
    if !geteuid().is_root() {
        return Diagnosis::new(
            NAME,
            State::Limits,
            "not root: only the swap that this machine has, which other processes use too",
            "run it as root",
        );
    }
    let names = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let free = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("zram"))
        .find(|name| {
            let state = fs::read_to_string(format!("/sys/block/{name}/initstate"));
            state.is_ok_and(|state| state.trim() == "0")
        });
    let has_loops = Path::new("/dev/loop-control").exists();
    let room = rustix::fs::statvfs(cache).map_or(Bytes(0), |v| Bytes(v.f_bavail * v.f_frsize));
    let found: Vec<String> = [
        has_loops.then(|| {
            format!(
                "loop devices on the disk of {} with {room} free",
                cache.display()
            )
        }),
        free.map(|name| format!("{name} is free")),
    ]
    .into_iter()
    .flatten()
    .collect();
    match found.len() {
        2 => Diagnosis::works(NAME, found.join("; ")),
        1 => Diagnosis::new(
            NAME,
            State::Limits,
            found.join("; "),
            if has_loops {
                "modprobe zram, for --swap zram"
            } else {
                "modprobe loop, for --swap ssd"
            },
        ),
        _ => Diagnosis::new(
            NAME,
            State::Limits,
            "neither loop devices nor a free zram device: only --swap none",
            "modprobe loop zram",
        ),
    }
}

fn memory() -> Diagnosis {
    let available = host::available();
    let part = Bytes(available.0 / 4);
    let found = format!(
        "{} processors; {available} available, of which a trial may take {part} with its swap",
        host::cpus()
    );
    if part < Bytes::from_mib(64) {
        let remedy = "end other programs, or use a smaller --memory and --swap-size";
        return Diagnosis::new("memory", State::Limits, found, remedy);
    }
    Diagnosis::works("memory", found)
}

fn reclaim() -> Diagnosis {
    const NAME: &str = "proactive reclaim";
    match proactive::find() {
        None => Diagnosis::works(NAME, "no DAMON scheme pages out memory before it is short"),
        Some(found) => Diagnosis::new(
            NAME,
            State::Limits,
            format!(
                "{} pages out what was not used for a while: also pages of trials, and pages of other processes into a \
                 trial's swap, which makes it invalid",
                found.what
            ),
            match found.stop {
                Some(command) => format!("`{command}` as root while trials run"),
                None => "ask root to stop it while trials run".to_owned(),
            },
        ),
    }
}

fn pressure() -> Diagnosis {
    if Path::new("/proc/pressure/cpu").exists() {
        return Diagnosis::works(
            "pressure",
            "the kernel reports how long processes wait for memory and processors",
        );
    }
    Diagnosis::new(
        "pressure",
        State::Limits,
        "the kernel does not report pressure, so fewer doubtful trials are found",
        "boot with psi=1",
    )
}

fn traces() -> Diagnosis {
    const NAME: &str = "traces of trials";
    match tracing::possible() {
        Ok(()) => Diagnosis::works(NAME, "tracefs can be used, with instances of its own"),
        Err(why) => Diagnosis::new(
            NAME,
            State::Limits,
            format!("observed trials have counters and samples, but no trace: {why}"),
            "run it as root, outside of containers",
        ),
    }
}

fn journals() -> Diagnosis {
    let folder = StateFolder::of_user();
    let left = folder.journals().len();
    let path = folder.path().display();
    if left == 0 {
        return Diagnosis::works(
            "undoing",
            format!("journals of changes in {path}, none open"),
        );
    }
    Diagnosis::new(
        "undoing",
        State::Limits,
        format!("{left} journals in {path}: another run is at work, or was killed"),
        "the next run with --on host undoes what a killed run left",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_does_not_work_has_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let found = examine(folder.path());
        assert_eq!(found.len(), 7);
        for one in found {
            assert!(!one.found.is_empty());
            assert_eq!(one.state == State::Works, one.remedy.is_empty(), "{one:?}");
        }
    }
}
