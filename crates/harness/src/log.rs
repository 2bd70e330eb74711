//! The kernel log: its last lines for the record, and the lines that make a trial invalid.

use pagetide_quantity::Nanos;
use pagetide_record::OomReport;
use pagetide_record::outcome::Invalid;

/// Process name of the guest's spinner, which keeps the CPU from idling. It shares the address space of the workload's
/// main process. When the kernel kills both, its message may name either.
const SPINNER: &str = "pagetide-idle";

/// Reads the whole kernel log; empty if it cannot be read.
pub fn read() -> String {
    const READ_ALL: libc::c_int = 3;
    const SIZE: libc::c_int = 10;
    // SAFETY: this action returns a number and ignores the pointer.
    let size = unsafe { libc::klogctl(SIZE, std::ptr::null_mut(), 0) };
    let Ok(length) = usize::try_from(size) else {
        return String::new();
    };
    let mut buffer = vec![0_u8; length];
    // SAFETY: the buffer has `size` bytes, of which the kernel writes no more, and lives through the call.
    let read = unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), size) };
    buffer.truncate(usize::try_from(read).unwrap_or(0));
    String::from_utf8_lossy(&buffer).into_owned()
}

/// Returns the last whole lines of the kernel log, at most `bytes` bytes.
pub fn tail(bytes: usize) -> String {
    last(&read(), bytes).to_owned()
}

/// Returns the last whole lines of `text`, which ends a line, at most `bytes` bytes; none if the last one is longer.
pub fn last(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    match text[from..].find('\n') {
        Some(line) if from > 0 => &text[from + line + 1..],
        _ => &text[from..],
    }
}

/// Returns the time stamp of a log line such as `<4>[    1.476988] text`; `None` if it has none.
fn stamp(line: &str) -> Option<Nanos> {
    let (inside, _) = line.split_once('[')?.1.split_once(']')?;
    let (seconds, micros) = inside.trim().split_once('.')?;
    Some(Nanos(
        seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1_000,
    ))
}

/// Finds the log lines that make a trial invalid and returns the reasons. Lines without a time stamp, or with one
/// before `from`, are ignored.
pub fn judge(log: &str, from: Nanos) -> Vec<Invalid> {
    let mut found = Vec::new();
    let mut end = 0;
    for line in log.split_inclusive('\n') {
        end += line.len();
        let Some(at) = stamp(line).filter(|at| *at >= from) else {
            continue;
        };
        let text = line.split_once(']').map_or(line, |(_, text)| text).trim();
        if text.contains("Killed process") {
            // "Out of memory: Killed process 123 (name) total-vm:…" or "Memory cgroup out of memory: …".
            let process = text
                .split_once('(')
                .and_then(|(_, rest)| rest.split_once(')'))
                .map_or("a process", |(name, _)| match name {
                    SPINNER => "the workload's main process",
                    name => name,
                });
            let (process, after) = (process.to_owned(), at.since(from));
            let memory = OomReport::last(&log[..end]).and_then(|report| report.memory());
            let is_group = text.starts_with("Memory cgroup out of memory");
            found.push(
                match memory.filter(|m| m.is_to_spare() && m.is_group == is_group) {
                    Some(memory) => Invalid::GaveUp {
                        process,
                        after,
                        memory,
                    },
                    None if is_group => Invalid::OutOfLimit { process, after },
                    None => Invalid::OutOfMemory { process, after },
                },
            );
        } else if [
            "BUG:",
            "Oops:",
            "WARNING:",
            "general protection fault",
            "blocked for more than",
        ]
        .iter()
        .any(|word| text.contains(word))
        {
            found.push(Invalid::Oops {
                line: text.chars().take(200).collect(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_and_oopses_are_found_after_the_start_only() {
        let log = "<4>[    0.500000] WARNING: old\n\
                   <3>[    2.250000] Out of memory: Killed process 77 (swapbench) total-vm:1kB\n\
                   <0>[    3.000000] BUG: unable to handle page fault\n";
        let found = judge(log, Nanos::from_secs(1));
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            Invalid::OutOfMemory {
                process: "swapbench".into(),
                after: Nanos::from_millis(1250)
            }
        );
        assert!(matches!(&found[1], Invalid::Oops { line } if line.starts_with("BUG")));
    }

    #[test]
    fn a_kill_at_a_groups_limit_is_told_from_one_for_want_of_memory() {
        let log =
            "<3>[    2.000000] Memory cgroup out of memory: Killed process 9 (sort) total-vm:1kB\n";
        let found = judge(log, Nanos::from_secs(1));
        assert!(
            matches!(&found[..], [Invalid::OutOfLimit { process, .. }] if process == "sort"),
            "{found:?}"
        );
        let said = found[0].to_string();
        assert!(
            said.contains("--limit") && !said.contains("--memory"),
            "{said}"
        );
    }

    #[test]
    fn a_kill_with_memory_to_spare_is_told_from_a_lack_of_memory() {
        let log = |file: u64, swap: u64| {
            format!(
                "<4>[    1.900000] init invoked oom-killer: gfp_mask=0x1\n\
                 <4>[    1.900000] Mem-Info:\n\
                 <4>[    1.900000] active_anon:0 inactive_anon:900 isolated_anon:0\n\
                 <4>[    1.900000]  active_file:0 inactive_file:{file} isolated_file:0\n\
                 <4>[    1.900000]  unevictable:0 dirty:{file} writeback:0\n\
                 <4>[    1.900000] Node 0 DMA32 free:300kB min:368kB low:460kB high:552kB\n\
                 <4>[    1.900000] Free swap  = {swap}kB\n<4>[    1.900000] Total swap = 30716kB\n\
                 <3>[    2.000000] Out of memory: Killed process 128 (pagetide-idle) total-vm:1kB\n"
            )
        };
        let found = judge(&log(1800, 30716), Nanos::from_secs(1));
        assert!(matches!(&found[..], [Invalid::GaveUp { .. }]), "{found:?}");
        let said = found[0].to_string();
        let start = "the kernel killed the workload's main process after 1 s with memory to spare, 7.03 MiB";
        assert!(said.starts_with(start), "{said}");
        assert!(!said.contains("raise"), "{said}");
        let found = judge(&log(40, 0), Nanos::from_secs(1));
        assert!(
            matches!(&found[..], [Invalid::OutOfMemory { .. }]),
            "{found:?}"
        );
        assert!(
            found[0]
                .to_string()
                .ends_with("raise --memory or the swap size")
        );
    }

    #[test]
    fn the_tail_begins_with_a_whole_line() {
        assert_eq!(last("one\ntwo\nthree", 8), "three");
        assert_eq!(last("one", 10), "one");
    }
}
