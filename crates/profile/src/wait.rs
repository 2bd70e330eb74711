//! Waits: the time in which no task of the workload could run. A wait belongs to the task that ran next, and to the
//! call stack at which this task waited. Each wait has a cause.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::profile::{Profile, Wait};

/// The cause of a task's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A read or write of a device, or a full queue of the device.
    Device,
    /// A lock held by another task.
    Lock,
    /// A timer: a sleep of a stated length.
    Timer,
    /// Another task, such as its end, its output or a signal from it.
    OtherTask,
    /// The CPU: the task was runnable, but the scheduler ran another one.
    RunQueue,
    /// The call stack does not show the cause.
    Unknown,
}

impl Cause {
    /// Returns the name of the cause, for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Lock => "lock",
            Self::Timer => "timer",
            Self::OtherTask => "other task",
            Self::RunQueue => "run queue",
            Self::Unknown => "unknown",
        }
    }
}

/// Functions that take a lock.
pub(crate) const TAKES: [&str; 13] = [
    "__mutex_lock*",
    "mutex_lock*",
    "ww_mutex_lock*",
    "rwsem_*",
    "down",
    "down_*",
    "__down*",
    "percpu_rwsem_wait",
    "__percpu_down_*",
    "__folio_lock*",
    "__lock_page*",
    "rt_mutex*",
    "__rt_mutex*",
];

/// Functions by which each cause is recognised. An entry that ends with `*` is the beginning of a name, any other entry
/// a whole name. The innermost function that matches an entry decides; [`Wait::cause`] makes one exception.
///
/// A folio is locked while it is read, so a wait for its lock in `io_schedule` is one for the device, whether or not the
/// compiler inlined `folio_wait_bit_common`.
const CAUSES: [(Cause, &[&str]); 5] = [
    (
        Cause::Device,
        &[
            "io_schedule*",
            "blk_io_schedule",
            "blk_mq_get_tag",
            "blk_mq_freeze*",
            "blk_queue_enter",
            "folio_wait_*",
            "wait_on_page_*",
            "wait_on_buffer",
            "__wait_on_buffer",
            "submit_bio_wait",
            "rq_qos_wait",
            "jbd2_*",
        ],
    ),
    (Cause::Lock, &TAKES),
    (
        Cause::Timer,
        &[
            "schedule_timeout*",
            "do_nanosleep",
            "hrtimer_nanosleep",
            "schedule_hrtimeout*",
            "msleep*",
            "reclaim_throttle",
            "balance_dirty_pages",
            "congestion_wait",
        ],
    ),
    (
        Cause::OtherTask,
        &[
            "throttle_direct_reclaim",
            "do_wait",
            "__do_wait",
            "kernel_wait4",
            "futex_*",
            "__futex_wait*",
            "pipe_*",
            "anon_pipe_*",
            "do_poll*",
            "do_select",
            "ep_poll",
            "do_epoll_wait",
            "wait_for_completion*",
            "__wait_for_common",
            "__flush_work*",
            "flush_work*",
            "do_signal*",
            "sigsuspend",
            "unix_*",
            "synchronize_*",
            "wait_for_common*",
            "__skb_wait_for_more_packets",
            "sk_wait_data",
            "inet_csk_accept",
        ],
    ),
    (
        Cause::RunQueue,
        &[
            "preempt_schedule*",
            "__cond_resched",
            "irqentry_exit*",
            "exit_to_user_mode_loop",
            "syscall_exit_to_user_mode*",
            "exit_to_user_mode_prepare",
            "raw_irqentry_exit*",
            "do_sched_yield",
            "yield",
        ],
    ),
];

/// Functions that only implement waiting. The function that wanted to wait is further out in the stack.
const CARRIERS: [&str; 19] = [
    "__switch_to_asm",
    "__switch_to",
    "__schedule",
    "schedule*",
    "__schedule_loop",
    "io_schedule*",
    "finish_task_switch",
    "preempt_schedule*",
    "wait_woken",
    "__wait_for_common",
    "wait_for_completion*",
    "folio_wait_bit*",
    "__folio_lock*",
    "__wait_on_bit*",
    "out_of_line_wait_on_bit*",
    "bit_wait*",
    "submit_bio_wait",
    "rwsem_*",
    "do_nanosleep",
];

/// True if a name matches one of the patterns.
pub(crate) fn any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// Function of a stack that wanted to wait, as [`Wait::waiter`].
pub(crate) fn waiter(stack: &[String]) -> Option<&str> {
    let inward = stack.iter().skip(1).rev().map(String::as_str);
    let carries = |name: &&str| any(&CARRIERS, name) || any(&TAKES, name);
    inward.into_iter().find(|name| !carries(name))
}

impl Wait {
    /// Returns the cause of the wait.
    pub fn cause(&self) -> Cause {
        let inward = self.stack.iter().skip(1).rev();
        let mut causes = inward.filter_map(|name| {
            let of = |(_, patterns): &&(Cause, &[&str])| any(patterns, name);
            CAUSES.iter().find(of).map(|(cause, _)| *cause)
        });
        let Some(first) = causes.next() else {
            return Cause::Unknown;
        };
        // Sleeps of a stated length are also used to wait for an event with a timeout. The function around the sleep
        // shows which.
        match (first, causes.next()) {
            (Cause::Timer, Some(Cause::OtherTask)) => Cause::OtherTask,
            _ => first,
        }
    }

    /// Returns the name of the function that wanted to wait: the innermost one that does not merely implement the wait.
    /// `None` if the stack is not known or has no such function.
    pub fn waiter(&self) -> Option<&str> {
        waiter(&self.stack)
    }

    /// Cause and waiting function, such as `device: swap_read_folio`.
    pub fn name(&self) -> String {
        match self.waiter() {
            Some(waiter) => format!("{}: {waiter}", self.cause().name()),
            None => self.cause().name().to_owned(),
        }
    }
}

impl Profile {
    /// Waits by cause and waiting function: name, nanoseconds and number of waits; longest first. The times add up to
    /// [`Profile::idle`]. Empty if the profile was made by a version that did not store waits.
    pub fn waits_by_name(&self) -> Vec<(String, u64, u64)> {
        let mut sums: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for wait in &self.waits {
            let sum = sums.entry(wait.name()).or_default();
            sum[0] += wait.time;
            sum[1] += wait.count;
        }
        let mut all: Vec<_> = sums
            .into_iter()
            .map(|(name, [time, count])| (name, time, count))
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(stack: &str) -> Wait {
        Wait {
            stack: stack.split(';').map(str::to_owned).collect(),
            time: 1,
            count: 1,
        }
    }

    #[test]
    fn the_stack_at_which_a_task_waits_tells_what_for() {
        for (stack, expected) in [
            (
                "workload;user code;asm_exc_page_fault;do_swap_page;__folio_lock_or_retry;folio_wait_bit_common;io_schedule;schedule;__schedule",
                "device: do_swap_page",
            ),
            (
                "workload;user code;asm_exc_page_fault;do_swap_page;__folio_lock_or_retry;io_schedule;schedule;__schedule",
                "device: do_swap_page",
            ),
            (
                "workload;vfs_read;filemap_get_pages;filemap_update_page;folio_wait_bit_common;io_schedule;schedule;__schedule",
                "device: filemap_update_page",
            ),
            (
                "workload;zcomp_stream_get;__mutex_lock;schedule_preempt_disabled;__schedule;__switch_to_asm",
                "lock: zcomp_stream_get",
            ),
            (
                "workload;__x64_sys_nanosleep;hrtimer_nanosleep;do_nanosleep;schedule;__schedule",
                "timer: hrtimer_nanosleep",
            ),
            (
                "workload;kernel_wait4;do_wait;schedule;__schedule",
                "other task: do_wait",
            ),
            (
                "workload;user code;asm_sysvec_apic_timer_interrupt;irqentry_exit;preempt_schedule_irq;__schedule",
                "run queue: irqentry_exit",
            ),
            ("workload;odd", "unknown: odd"),
            ("", "unknown"),
        ] {
            assert_eq!(wait(stack).name(), expected, "{stack}");
        }
    }
}
