//! Descriptions of this machine and its kernel, for records.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pagetide_record::subject::hex;
use pagetide_record::text::exact_size;
use pagetide_record::{KernelId, Machine, SwapSpec};
use pagetide_system::swaps;

use crate::plan::SwapPlan;

/// Type of the ELF note with the build ID. Source: `elf.h`, `NT_GNU_BUILD_ID`.
const BUILD_ID: u32 = 3;

fn line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

/// Returns what a record states about the running kernel. Its digest consists of release and build ID, or version line
/// if the build ID is unknown.
pub(crate) fn kernel() -> KernelId {
    let release = line("/proc/sys/kernel/osrelease");
    let version = line("/proc/version");
    let build_id = fs::read("/sys/kernel/notes").ok();
    let build_id = build_id.and_then(|notes| build_id_of(&notes));
    // The image itself may not be readable, so its build id stands for it.
    let digest = build_id.clone().unwrap_or_else(|| version.clone());
    KernelId {
        source: "running".to_owned(),
        digest: format!("{release} {digest}"),
        release,
        version,
        build_id,
    }
}

/// Returns the build ID in a series of ELF notes; `None` if there is none. Each note has the lengths of name and
/// content, the type, the name and the content; name and content are padded to four bytes.
fn build_id_of(mut notes: &[u8]) -> Option<String> {
    loop {
        let word = |at: usize| {
            let bytes = notes.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_ne_bytes(bytes)).ok()
        };
        let (name, length, kind) = (word(0)?, word(4)?, word(8)?);
        let body = 12 + name.next_multiple_of(4);
        let end = body.checked_add(length.next_multiple_of(4))?;
        if kind == BUILD_ID as usize && notes.get(12..16) == Some(b"GNU\0") {
            return notes.get(body..body + length).map(hex);
        }
        notes = notes.get(end..)?;
    }
}

/// Returns a short description of the machine: CPUs and memory. Trials are only comparable if their descriptions are
/// equal.
pub(crate) fn machine(machine: &Machine) -> String {
    format!("{} CPUs, {}", machine.cpus, exact_size(machine.memory))
}

/// Returns the device of a trial's swap as the record and all tables name it: `loop on vda`, or `existing zram0` for
/// swap that was on already. Empty if the kind of swap says it: without swap, and for zram of the trial's own. `folder`
/// is the folder for swap files.
pub(crate) fn swap(plan: &SwapPlan, kind: SwapSpec, folder: &Path) -> String {
    match plan {
        SwapPlan::None | SwapPlan::Zram(_) => String::new(),
        SwapPlan::Loop => {
            let device = format!("loop on {}", disk(folder));
            match kind {
                SwapSpec::Zswap(zswap) => {
                    let simulated = zswap.before.to_string();
                    zswap.to_string().replace(&simulated, &device)
                }
                _ => device,
            }
        }
        SwapPlan::Existing => {
            let areas = swaps::areas();
            let names: Vec<&str> = areas
                .iter()
                .map(|path| path.rsplit('/').next().unwrap_or(path))
                .collect();
            format!("existing {}", names.join(", "))
        }
    }
}

/// Returns the name of the block device of the file system on which the folder is or will be, such as `vda`.
fn disk(folder: &Path) -> String {
    let unknown = || "this machine's disk".to_owned();
    let known = folder.ancestors().find_map(|path| fs::metadata(path).ok());
    let Some(number) = known.map(|known| known.dev()) else {
        return unknown();
    };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    // File systems on several devices, such as btrfs, have a number that no device has.
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}"));
    let name = link
        .ok()
        .and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    name.unwrap_or_else(unknown)
}

/// Returns the boot command line of the running kernel.
pub(crate) fn command_line() -> String {
    line("/proc/cmdline")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let note = |kind: u32, name: &[u8; 4], content: &[u8]| {
            let mut all = 4_u32.to_ne_bytes().to_vec();
            all.extend(u32::try_from(content.len()).unwrap().to_ne_bytes());
            all.extend(kind.to_ne_bytes());
            all.extend(name);
            all.extend(content);
            all.resize(all.len().next_multiple_of(4), 0);
            all
        };
        let mut notes = note(1, b"Xen\0", b"12345");
        notes.extend(note(3, b"GNU\0", &[0xab, 0xcd]));
        assert_eq!(build_id_of(&notes).unwrap(), "abcd");
        assert_eq!(build_id_of(&notes[..20]), None);
        assert!(!kernel().release.is_empty());
    }
}
