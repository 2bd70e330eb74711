//! Extracts the lines of the kernel log that concern one memory cgroup.

use std::path::Path;

/// Text in the first line of the OOM killer's report. Source: kernel `mm/oom_kill.c`, `dump_header`.
const BEGIN: &str = "invoked oom-killer";
/// Text in the report's line that names the cgroup and the process to be killed.
const NAMES: &str = "oom-kill:constraint=";
/// Text in the line that says which process was killed.
const KILLED: &str = "Killed process";
/// Starts of that line. The name of a process may contain line breaks, and is printed in several lines of a report. But
/// it has at most 15 bytes, fewer than these starts, so no process can forge such a line. Source: kernel
/// `mm/oom_kill.c`, `__oom_kill_process`.
const KILLS: [&str; 2] = [
    "Memory cgroup out of memory: Killed process",
    "Out of memory: Killed process",
];

/// Returns the kernel's reports on processes killed in the cgroup at this path, in the order of the log. Leaves out
/// messages about the rest of the machine.
pub(crate) fn of_group(log: &str, group: &Path) -> String {
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    let mut found = String::new();
    let mut report = String::new();
    let mut is_ours = false;
    for line in log.split_inclusive('\n') {
        if line.contains(BEGIN) {
            report.clear();
            is_ours = false;
        }
        let message = line.split_once("] ").map_or(line, |(_, message)| message);
        let is_kill = KILLS.iter().any(|start| message.starts_with(start));
        if line.contains(KILLED) && !is_kill {
            // The name of a process.
            continue;
        }
        report.push_str(line);
        if message.starts_with(NAMES) {
            is_ours = is_in(line, &name);
        } else if is_kill {
            if is_ours {
                found.push_str(&report);
            }
            report.clear();
        }
    }
    found
}

/// Returns true if the line names this cgroup, or one in it, as the one that is out of memory.
fn is_in(line: &str, name: &str) -> bool {
    let mut parts = line.split(',').filter_map(|part| part.split_once('='));
    parts.any(|(key, value)| key == "oom_memcg" && value.trim().split('/').any(|part| part == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kills_of_the_group_are_taken_from_the_log() {
        let kill = |group: &str, pid: u32| {
            format!(
                "<4>[    1.0] work invoked oom-killer: gfp_mask=0x1\n\
                 <6>[    1.0] memory: usage 1kB, limit 1kB\n\
                 <6>[    1.0] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/{group},\
                 task_memcg=/{group},task=work,pid={pid},uid=0\n\
                 <3>[    1.0] Memory cgroup out of memory: Killed process {pid} (work) total-vm:1kB\n"
            )
        };
        let log = format!(
            "<0>[    0.5] BUG: somewhere else\n{}{}<4>[    2.0] WARNING: late\n",
            kill("other", 7),
            kill("pagetide-1", 8)
        );
        let found = of_group(&log, Path::new("/sys/fs/cgroup/memory/pagetide-1"));
        assert!(found.contains("Killed process 8") && found.contains("usage 1kB"));
        assert!(!found.contains("Killed process 7") && !found.contains("BUG"));
        assert_eq!(of_group(&log, Path::new("/x/pagetide")), "");
    }

    #[test]
    fn a_name_with_line_breaks_adds_no_kill() {
        // The process is called `\nKilled process`, and another one in the list `oom-kill:constr`.
        let log = "<4>[    1.0] \n<4>[    1.0] Killed process invoked oom-killer: gfp_mask=0x1\n\
                   <6>[    1.0] memory: usage 1kB, limit 1kB\n\
                   <6>[    1.0] [      8]     0     8        1 \n<6>[    1.0] Killed process\n\
                   <6>[    1.0] [      9]     0     9        1 oom-kill:constr\n\
                   <6>[    1.0] oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/pagetide-1,task_memcg=/pagetide-1,task=\n\
                   <6>[    1.0] Killed process,pid=8,uid=0\n\
                   <3>[    1.0] Memory cgroup out of memory: Killed process 8 (\n<3>[    1.0] Killed process) total-vm:1kB\n";
        let found = of_group(log, Path::new("/sys/fs/cgroup/pagetide-1"));
        assert_eq!(found.matches(KILLED).count(), 1, "{found}");
        assert!(found.ends_with("Killed process 8 (\n"), "{found}");
    }
}
