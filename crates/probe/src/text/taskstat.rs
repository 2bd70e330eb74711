//! `/proc/PID/stat` and `/proc/PID/schedstat`: a task's time and faults (proc_pid_stat(5)).

use serde::{Deserialize, Serialize};

use super::file::Parse;
use super::scan;
use pagetide_quantity::{Nanos, Pages};

/// What `/proc/PID/stat` says of a task. Times are clock ticks (100 a second on every Linux that user space sees).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStat {
    /// Process or thread id.
    pub pid: u32,
    /// `R`, `S`, `D`, …; `?` where it could not be read.
    pub state: char,
    /// Faults that needed no I/O.
    pub minor_faults: u64,
    /// Faults that had to wait for a read.
    pub major_faults: u64,
    /// Ticks in user mode.
    pub user_ticks: u64,
    /// Ticks in the kernel.
    pub system_ticks: u64,
    /// Ticks of waited-for children, user mode.
    pub children_user_ticks: u64,
    /// Ticks of waited-for children, kernel.
    pub children_system_ticks: u64,
    /// Threads in the process.
    pub threads: u64,
    /// Resident set.
    pub resident: Pages,
    /// The CPU it ran on last.
    pub cpu: u64,
    /// Ticks waiting for block I/O (zero unless delay accounting is on).
    pub block_delay_ticks: u64,
    /// Whether the last text was understood.
    pub valid: bool,
}

impl Parse for TaskStat {
    fn parse(&mut self, text: &[u8]) {
        *self = task_stat(text).unwrap_or(Self {
            state: '?',
            ..Self::default()
        });
    }
}

fn task_stat(text: &[u8]) -> Option<TaskStat> {
    // The name stands in parentheses and may itself contain blanks and parentheses: only the last one closes it.
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    let pid = u32::try_from(scan::number(scan::trim(&text[..open]))?).ok()?;
    let mut words = scan::words(text.get(close + 1..)?);
    let state = char::from(*words.next()?.first()?);
    // Fields 4 to 52 in the manual's numbering; some are negative, those are not wanted here.
    let mut fields = [0_u64; 49];
    let mut read = 0;
    for (field, word) in fields.iter_mut().zip(words) {
        *field = scan::number(word).unwrap_or(0);
        read += 1;
    }
    // Everything up to field 42 has been printed since 2.6.18.
    if read < 39 {
        return None;
    }
    let field = |number: usize| fields[number - 4];
    Some(TaskStat {
        pid,
        state,
        minor_faults: field(10),
        major_faults: field(12),
        user_ticks: field(14),
        system_ticks: field(15),
        children_user_ticks: field(16),
        children_system_ticks: field(17),
        threads: field(20),
        resident: Pages(field(24)),
        cpu: field(39),
        block_delay_ticks: field(42),
        valid: true,
    })
}

/// What `/proc/PID/schedstat` says of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedStat {
    /// Time on a CPU.
    pub running: Nanos,
    /// Time runnable but waiting for a CPU.
    pub waiting: Nanos,
    /// How often it was given a CPU.
    pub slices: u64,
    /// Whether the last text was understood.
    pub valid: bool,
}

impl Parse for SchedStat {
    fn parse(&mut self, text: &[u8]) {
        let mut numbers = scan::words(text).map(scan::number);
        let mut next = || numbers.next().flatten();
        *self = match (next(), next(), next()) {
            (Some(running), Some(waiting), Some(slices)) => Self {
                running: Nanos(running),
                waiting: Nanos(waiting),
                slices,
                valid: true,
            },
            _ => Self::default(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_shifts_no_field() {
        let mut stat = TaskStat::default();
        stat.parse(b"5801 (a) R 1 (b)) S 5792 5792 3440 0 -1 4194304 102 3 7 0 11 12 13 14 20 0 2 0 155702 3133440 388 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 9 0 0\n");
        assert!(stat.valid);
        assert_eq!((stat.pid, stat.state), (5801, 'S'));
        assert_eq!((stat.minor_faults, stat.major_faults), (102, 7));
        assert_eq!((stat.user_ticks, stat.system_ticks), (11, 12));
        assert_eq!(stat.resident, Pages(388));
        assert_eq!((stat.cpu, stat.block_delay_ticks), (1, 9));
    }

    #[test]
    fn text_cut_short_is_marked_invalid() {
        let mut stat = TaskStat::default();
        stat.parse(b"12 (x) R 1 2 3");
        assert!(!stat.valid);
        stat.parse(b")(");
        assert!(!stat.valid);
    }

    #[test]
    fn this_process_can_be_read() {
        let mut stat = TaskStat::default();
        stat.parse(&std::fs::read("/proc/self/stat").unwrap());
        assert!(stat.valid && stat.pid == std::process::id() && stat.minor_faults > 0);
        let mut sched = SchedStat::default();
        sched.parse(b"297913 54396 2\n");
        assert_eq!(sched.running, Nanos(297_913));
    }
}
