//! Tests with pages of other processes in pagetide's swap area, and with areas that cannot be made.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use pagetide_host::group_files;
use pagetide_host::swap_device::{SwapDevice, SwapOn};
use pagetide_host::{Group, Hierarchy, Journal, Limits, StateFolder, sweep};
use pagetide_quantity::Bytes;
use pagetide_system::swaps;

use crate::common::{program, turn, wait_until};

/// A process that does not belong to pagetide, in a group of its own at its limit.
struct Stranger {
    child: Child,
    group: std::path::PathBuf,
    /// File with the group's limit.
    limit: std::path::PathBuf,
}

impl Stranger {
    fn start(hierarchy: &Hierarchy) -> Self {
        let group = hierarchy
            .root()
            .join(format!("stranger-{}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        let limit = group.join(match hierarchy {
            Hierarchy::Version1 { .. } => "memory.limit_in_bytes",
            _ => "memory.max",
        });
        std::fs::write(&limit, "8M").unwrap();
        let procs = group.join("cgroup.procs");
        let mut command = Command::new(program());
        command
            .args(["--workload", "33554432", "1000"])
            .stdin(Stdio::null());
        // SAFETY: the test's other threads hold no lock that a write of a file needs.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                std::fs::write(&procs, "0")
            });
        }
        let child = command.spawn().unwrap();
        Self {
            child,
            group,
            limit,
        }
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        group_files::remove(&self.group).unwrap();
        let _ = self.child.wait();
    }
}

#[test]
fn swap_with_pages_of_a_stranger_is_left_on_and_said_and_the_stranger_lives() {
    let Some(_turn) = turn() else { return };
    if !swaps::table().is_empty() {
        return pagetide_testing::skip(pagetide_testing::Need::Swap, "other swap is on");
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let state = StateFolder::at(folder.path().join("state"));
    let journal = Journal::create(&state).unwrap();
    let hierarchy = Hierarchy::find().unwrap();
    let on = SwapOn::Loop {
        folder: folder.path().to_owned(),
    };
    let swap = SwapDevice::switch_on(&journal, &on, Bytes::from_mib(64)).unwrap();
    assert!(swap.is_direct());
    let group = Group::make(&journal, &hierarchy, &Limits::of(Bytes::from_mib(16))).unwrap();
    assert_eq!(swap.foreign_use(&group).certain(), Bytes(0));
    let mut stranger = Stranger::start(&hierarchy);
    let least = Bytes::from_mib(4);
    wait_until("pages of the stranger in swap", || {
        swap.foreign_use(&group).certain() > least
    });
    assert!(group.remove().is_empty());
    let device = swap.device().display().to_string();
    let left = swap.switch_off();
    assert!(stranger.is_alive());
    // The loop device is in use, so it is left too.
    let told: Vec<String> = left.iter().map(ToString::to_string).collect();
    assert!(
        told[0].contains(&format!("swap on {device} is left as it is")),
        "{told:?}"
    );
    assert!(
        told[0].contains("other processes have pages in it"),
        "{told:?}"
    );
    assert!(told[0].contains("host_trial"), "{told:?}");
    assert!(swaps::areas().contains(&device));
    // Now the stranger has room for its pages, so the next start can switch the area off.
    std::fs::write(&stranger.limit, "256M").unwrap();
    let left = journal.undo_all();
    assert!(left.is_empty(), "{left:?}");
    assert!(stranger.is_alive());
    drop(stranger);
    assert!(!swaps::areas().contains(&device));
    assert!(sweep(&state).unwrap().left.is_empty());
}

#[test]
fn swap_larger_than_the_free_disk_is_refused_without_filling_it() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let journal = Journal::create(&StateFolder::at(folder.path().join("state"))).unwrap();
    let on = SwapOn::Loop {
        folder: folder.path().to_owned(),
    };
    let why = SwapDevice::switch_on(&journal, &on, Bytes(1 << 43)).unwrap_err();
    let why = why.to_string();
    assert!(
        why.contains("free") && why.contains("use less swap"),
        "{why}"
    );
    assert!(journal.standing().is_empty());
    let on = SwapOn::Loop {
        folder: "/proc".into(),
    };
    let why = SwapDevice::switch_on(&journal, &on, Bytes::from_mib(1)).unwrap_err();
    assert!(why.to_string().contains("ext4"), "{why}");
    assert!(journal.undo_all().is_empty());
}

#[test]
fn zram_with_a_compressor_that_is_not_there_is_refused_and_reset() {
    let Some(_turn) = turn() else { return };
    let state = std::fs::read_to_string("/sys/block/zram0/initstate").unwrap_or_default();
    if state.trim() != "0" {
        return pagetide_testing::skip(pagetide_testing::Need::Swap, "no zram device is free");
    }
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(&StateFolder::at(folder.path())).unwrap();
    let before = std::fs::read_to_string("/sys/block/zram0/comp_algorithm").unwrap();
    let on = |compressor: &str| SwapOn::Zram {
        compressor: compressor.to_owned(),
    };
    let size = Bytes::from_mib(16);
    let why = SwapDevice::switch_on(&journal, &on("nonsense"), size).unwrap_err();
    assert!(why.to_string().contains("compressor"), "{why}");
    assert!(journal.standing().is_empty());
    let other = before
        .split_whitespace()
        .find(|name| !name.starts_with('['));
    let Some(other) = other else { return };
    let swap = SwapDevice::switch_on(&journal, &on(other), size).unwrap();
    assert_eq!(swap.zram(), Some("zram0"));
    // The device is already in use.
    let why = SwapDevice::switch_on(&journal, &on(other), size).unwrap_err();
    assert!(why.to_string().contains("in use"), "{why}");
    assert!(swap.switch_off().is_empty());
    assert_eq!(
        std::fs::read_to_string("/sys/block/zram0/comp_algorithm").unwrap(),
        before
    );
    assert!(journal.undo_all().is_empty());
}
