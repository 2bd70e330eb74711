//! The report that the kernel logs before it OOM-kills a process (`mm/oom_kill.c`, `mm/show_mem.c`). The report shows
//! whether there was memory to spare.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use pagetide_quantity::{Bytes, Pages};

/// Minimum amount that counts as memory to spare. The LRU lists always keep some pages, so a smaller amount means
/// nothing.
const MIN_TO_SPARE: Bytes = Bytes::from_mib(1);
/// Multiple of the high watermarks that counts as memory to spare. If the kernel had reclaimed that much, any waiting
/// allocation of a single page would have succeeded.
const WATERMARKS_TO_SPARE: u64 = 2;
/// A swap limit of at least this size means that there is no limit.
const NO_LIMIT: Bytes = Bytes::from_mib(1 << 30);

/// A report in the kernel log: its text from the first line with counters on. A report describes the machine
/// (`Mem-Info:`) or a memory cgroup.
#[derive(Clone, Copy, Debug)]
pub struct OomReport<'a> {
    text: &'a str,
    is_group: bool,
}

impl<'a> OomReport<'a> {
    /// Finds the first report in a part of the kernel log; `None` if there is none.
    pub fn find(log: &'a str) -> Option<Self> {
        let machine = log.find("Mem-Info:").map(|from| (from, false));
        let group = log.find("Memory cgroup stats for").map(|from| (from, true));
        // The limits of a group are in the lines before its counters.
        let group =
            group.map(|(from, is)| (log[..from].rfind("memory: usage").unwrap_or(from), is));
        let found = machine.into_iter().chain(group).min();
        found.map(|(from, is_group)| Self {
            text: &log[from..],
            is_group,
        })
    }

    /// Finds the report of the last kill in the log: the first report after the last line with `invoked oom-killer`.
    /// `None` if there is none.
    pub fn last(log: &'a str) -> Option<Self> {
        Self::find(&log[log.rfind("invoked oom-killer")?..])
    }

    /// Returns the number after a name and a separator in the report of a machine, such as `number("free", ':')`; else
    /// `None`. Spaces around the separator are skipped.
    pub fn number(&self, name: &str, separator: char) -> Option<u64> {
        let report = self.text;
        let mut from = 0;
        while let Some(found) = report[from..].find(name) {
            let start = from + found;
            from = start + name.len();
            let before = report[..start].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = report[from..].trim_start_matches(' ');
            let Some(rest) = rest.strip_prefix(separator) else {
                continue;
            };
            let rest = rest.trim_start_matches(' ');
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if let Ok(number) = rest[..digits].parse() {
                return Some(number);
            }
        }
        None
    }

    /// Returns the total size of several counts of pages in the report of a machine; `None` if a count does not occur.
    pub fn pages(&self, names: &[&str]) -> Option<Bytes> {
        let all = names.iter().map(|name| self.number(name, ':'));
        Some(Pages(all.sum::<Option<u64>>()?).bytes())
    }

    /// Returns the free and total size of swap in the report of a machine; `None` if the report does not contain them.
    pub fn swap(&self) -> Option<[Bytes; 2]> {
        let size = |name| Some(Bytes::from_kib(self.number(name, '=')?));
        Some([size("Free swap")?, size("Total swap")?])
    }

    /// Returns the memory at the time of the report; `None` if the report is incomplete.
    pub fn memory(&self) -> Option<MemoryAtKill> {
        if self.is_group {
            self.memory_of_group()
        } else {
            self.memory_of_machine()
        }
    }

    fn memory_of_machine(&self) -> Option<MemoryAtKill> {
        let [swap_free, swap] = self.swap()?;
        // "Node 0 DMA free:632kB boost:0kB min:32kB low:40kB high:48kB": a line for each zone.
        let zones = self.text.lines().filter(|line| line.contains(" low:"));
        let high = zones.filter_map(|line| {
            let (_, rest) = line.split_once(" high:")?;
            rest.split_once("kB")?.0.trim().parse::<u64>().ok()
        });
        Some(MemoryAtKill {
            anon: self.pages(&["active_anon", "inactive_anon"])?,
            file: self.pages(&["active_file", "inactive_file"])?,
            dirty: self.pages(&["dirty"])?,
            writeback: self.pages(&["writeback"])?,
            swap: Some([swap_free, swap]),
            needed: Bytes::from_kib(high.sum::<u64>() * WATERMARKS_TO_SPARE),
            is_group: false,
        })
    }

    fn memory_of_group(&self) -> Option<MemoryAtKill> {
        let bytes = |name: &str| self.line(name).map(Bytes);
        let usage = |head: &str| -> Option<[Bytes; 2]> {
            let line = self.text.lines().find(|line| line.contains(head))?;
            let size = |word: &str| {
                let (_, rest) = line.split_once(word)?;
                Some(Bytes::from_kib(
                    rest.split_once("kB")?.0.trim().parse().ok()?,
                ))
            };
            Some([size("usage ")?, size("limit ")?])
        };
        let [_, limit] = usage("memory: usage")?;
        // Without a limit, the group's swap is that of the machine, whose size this report does not contain.
        let swap = usage("swap: usage").filter(|[_, limit]| *limit < NO_LIMIT);
        Some(MemoryAtKill {
            anon: bytes("active_anon")?.saturating_add(bytes("inactive_anon")?),
            file: bytes("active_file")?.saturating_add(bytes("inactive_file")?),
            dirty: bytes("file_dirty")?,
            writeback: bytes("file_writeback")?,
            swap: swap.map(|[used, limit]| [limit.saturating_sub(used), limit]),
            needed: Bytes(limit.0 / 16),
            is_group: true,
        })
    }

    /// Returns the number in the line that contains only a time stamp, `name` and the number; `None` if there is none.
    fn line(&self, name: &str) -> Option<u64> {
        self.text.lines().find_map(|line| {
            let text = line.split_once("] ").map_or(line, |(_, text)| text);
            text.trim()
                .strip_prefix(name)?
                .strip_prefix(' ')?
                .parse()
                .ok()
        })
    }
}

/// Memory of the machine, or of a memory cgroup, when the kernel OOM-killed a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MemoryAtKill {
    /// Size of anonymous memory on the LRU lists.
    pub anon: Bytes,
    /// Size of the page cache on the LRU lists, including dirty pages.
    pub file: Bytes,
    /// Size of dirty pages, which must be written before they can be reclaimed.
    pub dirty: Bytes,
    /// Size of pages under writeback.
    pub writeback: Bytes,
    /// Free and total size of swap, both zero without swap; `None` if the report does not contain them.
    pub swap: Option<[Bytes; 2]>,
    /// Minimum size that counts as memory to spare: for a machine, twice its high watermarks; for a memory cgroup, a
    /// sixteenth of its limit. Less than 1 MiB never counts.
    pub needed: Bytes,
    /// True if this is the memory of a memory cgroup.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_group: bool,
}

impl MemoryAtKill {
    /// Returns true if the kernel gave up too early: it could have freed enough by reclaiming page cache, or by
    /// swapping out anonymous memory for which swap had room.
    pub fn is_to_spare(&self) -> bool {
        let needed = self.needed.max(MIN_TO_SPARE);
        self.file >= needed || self.swappable() >= needed
    }

    /// Returns true if most of the page cache had to be written before it could be reclaimed.
    pub fn waits_for_disk(&self) -> bool {
        2 * (self.dirty.0 + self.writeback.0) > self.file.0
    }

    /// Returns the size of the anonymous memory for which swap had room.
    fn swappable(&self) -> Bytes {
        let [free, _] = self.swap.unwrap_or_default();
        self.anon.min(free)
    }

    /// Returns advice for the user after a kill with memory to spare, as the end of a message; empty if there is none.
    pub fn remedy(&self) -> &'static str {
        let needed = self.needed.max(MIN_TO_SPARE);
        if self.file >= needed && self.waits_for_disk() {
            ", as most of it waited for the disk: a lower vm.dirty_bytes makes writers wait earlier"
        } else if self.file < needed && self.is_group {
            ": a larger --limit gives it more time"
        } else if self.file < needed {
            ": more --memory gives it more time"
        } else {
            ""
        }
    }
}

impl Display for MemoryAtKill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of file pages reclaimable ({} dirty, {} under writeback)",
            self.file, self.dirty, self.writeback
        )?;
        if self.swappable() >= MIN_TO_SPARE {
            write!(
                f,
                ", {} of anonymous memory that swap has room for",
                self.swappable()
            )?;
        }
        match self.swap {
            None => Ok(()),
            Some([_, Bytes(0)]) => f.write_str(" and no swap"),
            Some([free, all]) => write!(f, " and {free} of {all} of swap free"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a report by Linux 6.12 on a machine with 10 MiB free, in which a file is written to a slow disk.
    const EARLY: &str = "<4>[ 10.3] init invoked oom-killer: gfp_mask=0x141cca, order=0\n\
        <4>[ 10.3] Mem-Info:\n\
        <4>[ 10.3] active_anon:0 inactive_anon:1 isolated_anon:0\n\
        <4>[ 10.3]  active_file:724 inactive_file:1066 isolated_file:0\n\
        <4>[ 10.3]  unevictable:36699 dirty:500 writeback:1275\n\
        <4>[ 10.3]  free:233 free_pcp:330 free_cma:0\n\
        <4>[ 10.3] Node 0 DMA free:632kB boost:0kB min:32kB low:40kB high:48kB active_anon:0kB\n\
        <4>[ 10.3] Node 0 DMA32 free:300kB boost:0kB min:368kB low:460kB high:552kB active_anon:0kB\n\
        <4>[ 10.3] Free swap  = 30460kB\n<4>[ 10.3] Total swap = 30716kB\n\
        <3>[ 10.3] Out of memory: Killed process 128 (init) total-vm:68968kB\n";

    #[test]
    fn pages_on_their_way_to_a_disk_with_swap_free_are_memory_to_spare() {
        let memory = OomReport::last(EARLY).unwrap().memory().unwrap();
        assert_eq!(memory.file, Pages(1790).bytes());
        assert_eq!(memory.needed, Bytes::from_kib(1200));
        assert!(memory.is_to_spare() && memory.waits_for_disk());
        assert_eq!(
            memory.to_string(),
            "6.99 MiB of file pages reclaimable (1.95 MiB dirty, 4.98 MiB under writeback) and 29.7 MiB of 30 MiB of swap free"
        );
        assert!(memory.remedy().contains("vm.dirty_bytes"));
    }

    #[test]
    fn full_swap_and_nothing_to_reclaim_is_a_true_lack() {
        let log = EARLY
            .replace(
                "active_file:724 inactive_file:1066",
                "active_file:60 inactive_file:90",
            )
            .replace("inactive_anon:1 ", "inactive_anon:1900 ")
            .replace("30460kB", "12kB");
        let memory = OomReport::last(&log).unwrap().memory().unwrap();
        assert!(!memory.is_to_spare(), "{memory:?}");
        // The same anonymous memory with free swap is memory to spare.
        let log = log.replace("= 12kB", "= 30000kB");
        let memory = OomReport::last(&log).unwrap().memory().unwrap();
        assert!(memory.is_to_spare(), "{memory:?}");
        assert!(memory.remedy().contains("--memory"));
        // Without swap it is not.
        let log = log.replace("30000kB", "0kB").replace("30716kB", "0kB");
        let memory = OomReport::last(&log).unwrap().memory().unwrap();
        assert!(!memory.is_to_spare(), "{memory:?}");
    }

    #[test]
    fn the_report_of_a_group_is_read_from_its_own_counters() {
        let log = "<4>[ 2.0] dd invoked oom-killer: gfp_mask=0x1, order=0\n\
            <6>[ 2.0] memory: usage 32768kB, limit 32768kB, failcnt 39\n\
            <6>[ 2.0] swap: usage 0kB, limit 9007199254740988kB, failcnt 0\n\
            <6>[ 2.0] Memory cgroup stats for /workload:\n\
            <6>[ 2.0] anon 12582912\n<6>[ 2.0] file 18874368\n\
            <6>[ 2.0] file_dirty 1048576\n<6>[ 2.0] file_writeback 16777216\n\
            <6>[ 2.0] inactive_anon 0\n<6>[ 2.0] active_anon 12582912\n\
            <6>[ 2.0] inactive_file 18874368\n<6>[ 2.0] active_file 0\n\
            <3>[ 2.0] Memory cgroup out of memory: Killed process 9 (dd) total-vm:1kB\n";
        let memory = OomReport::last(log).unwrap().memory().unwrap();
        assert_eq!(memory.file, Bytes::from_mib(18));
        assert_eq!(memory.anon, Bytes::from_mib(12));
        assert_eq!(memory.swap, None, "its size is that of the machine's");
        assert!(memory.is_to_spare() && memory.is_group);
        assert!(
            memory.to_string().ends_with("16 MiB under writeback)"),
            "{memory}"
        );
    }

    #[test]
    fn a_log_without_a_whole_report_tells_nothing() {
        assert!(OomReport::last("").is_none());
        let cut = &EARLY[..EARLY.find("Free swap").unwrap()];
        assert!(OomReport::last(cut).unwrap().memory().is_none());
        // The rotated log may begin within the report.
        assert!(OomReport::last(&EARLY[EARLY.find("Mem-Info").unwrap()..]).is_none());
    }
}
