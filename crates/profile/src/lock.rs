//! Waits for locks, and who held them: the task that released the lock is the one that woke the task that waited.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::profile::{Holder, LockWait, Profile, Wait};
use crate::wait::{Cause, TAKES, any, waiter};

/// Functions that release a lock and then wake a task that waits for it.
const RELEASES: [&str; 19] = [
    "mutex_unlock",
    "__mutex_unlock*",
    "ww_mutex_unlock",
    "up_*",
    "__up*",
    "up",
    "rwsem_*",
    "percpu_up_*",
    "__percpu_up*",
    "rt_mutex_*",
    "__rt_mutex_*",
    "rt_spin_unlock",
    "folio_unlock",
    "unlock_page",
    "folio_wake_bit",
    "unlock_buffer",
    "bit_spin_unlock",
    "clear_and_wake_up_bit",
    "wake_up_bit",
];
/// Functions by which the completion of a request to a device is recognised. It also releases the locks of pages.
const COMPLETIONS: [&str; 8] = [
    "bio_endio",
    "blk_mq_end_request*",
    "blk_update_request",
    "end_swap_bio*",
    "__end_swap_bio*",
    "end_buffer_*",
    "mpage_*end_io",
    "iomap_*end_bio*",
];
/// Functions in which the kernel interrupts a task. What they do is not done by the task.
const INTERRUPTS: [&str; 4] = [
    "asm_sysvec_*",
    "asm_common_interrupt",
    "__do_softirq",
    "handle_softirqs",
];

/// Maximum number of locks in a comparison.
const MAX_LOCKS: usize = 3;

/// Waits for a lock with one holder, in two profiles A and B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockChange {
    /// Function that wanted the lock.
    pub taker: String,
    /// Task that held the lock and its function, as [`Holder::name`]; `None` if the holder is not known.
    pub holder: Option<String>,
    /// Time of the waits in A and in B, in nanoseconds. Other tasks may have run meanwhile.
    pub time: [u64; 2],
    /// Number of waits in A and in B.
    pub waits: [u64; 2],
}

impl LockChange {
    fn size(&self) -> u64 {
        let [a, b] = self.time;
        a.abs_diff(b)
    }
}

/// Returns the locks and holders whose time of waits differs most between two profiles, largest difference first; at
/// most three.
pub(crate) fn lock_changes(sides: [&Profile; 2]) -> Vec<LockChange> {
    let mut all: BTreeMap<(String, Option<String>), LockChange> = BTreeMap::new();
    for (side, profile) in sides.into_iter().enumerate() {
        for (taker, holder, [time, _, waits]) in profile.locks_by_holder() {
            let key = (taker, holder.as_ref().map(Holder::name));
            let change = all.entry(key.clone()).or_insert_with(|| LockChange {
                taker: key.0,
                holder: key.1,
                time: [0; 2],
                waits: [0; 2],
            });
            change.time[side] += time;
            change.waits[side] += waits;
        }
    }
    let mut all: Vec<LockChange> = all.into_values().filter(|one| one.size() > 0).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.size()));
    all.truncate(MAX_LOCKS);
    all
}

impl Holder {
    /// Returns the task and the function that held the lock, such as `kswapd in zram_submit_bio`.
    pub fn name(&self) -> String {
        format!("{} in {}", self.task, self.function)
    }
}

impl LockWait {
    /// Creates a wait without counts from the call stack at which a task slept, that at which the task that woke it stood
    /// then, and that at which it was woken. `None` if the task did not wait for a lock.
    pub(crate) fn of(slept: Vec<String>, before: &[String], woken: &[String]) -> Option<Self> {
        let takes = |name: &String| any(&TAKES, name);
        slept.iter().skip(1).any(takes).then_some(())?;
        let is_completion = |name: &String| any(&COMPLETIONS, name);
        if woken.iter().any(is_completion) {
            return None;
        }
        Some(Self {
            holder: holder(before, woken),
            stack: slept,
            ..Self::default()
        })
    }

    /// Returns the function that wanted the lock.
    pub fn taker(&self) -> &str {
        waiter(&self.stack).unwrap_or_default()
    }
}

/// The holder of a lock, from the call stacks of the task that woke the waiting one.
fn holder(before: &[String], woken: &[String]) -> Option<Holder> {
    let releases = |name: &String| any(&RELEASES, name);
    let inmost = woken.iter().rposition(releases)?;
    // Several functions that release may be within each other.
    let outmost = woken[..=inmost].iter().rposition(|name| !releases(name))?;
    let is_interrupt = |name: &String| any(&INTERRUPTS, name);
    // The task is at the start of its stack. An interrupt that wakes another task holds no lock.
    if outmost == 0 || woken.iter().any(is_interrupt) {
        return None;
    }
    let was = Wait {
        stack: before.to_vec(),
        ..Wait::default()
    };
    Some(Holder {
        task: woken.first()?.clone(),
        function: woken.get(outmost)?.clone(),
        was_in: match was.cause() {
            Cause::Unknown => was.waiter().unwrap_or_default().to_owned(),
            _ => was.name(),
        },
    })
}

impl Profile {
    /// Waits for locks by the function that wanted the lock and the holder: both, the time, the part of it in which no
    /// task ran, and the number of waits; longest first.
    pub fn locks_by_holder(&self) -> Vec<(String, Option<Holder>, [u64; 3])> {
        let mut sums: BTreeMap<(String, Option<Holder>), [u64; 3]> = BTreeMap::new();
        for wait in &self.locks {
            let key = (wait.taker().to_owned(), wait.holder.clone());
            let sum = sums.entry(key).or_default();
            for (sum, own) in sum.iter_mut().zip([wait.time, wait.idle, wait.count]) {
                *sum += own;
            }
        }
        let mut all: Vec<_> = sums
            .into_iter()
            .map(|((taker, holder), sums)| (taker, holder, sums))
            .collect();
        all.sort_by_key(|(.., [time, ..])| std::cmp::Reverse(*time));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str) -> Vec<String> {
        text.split(';').map(str::to_owned).collect()
    }

    #[test]
    fn the_function_that_releases_a_lock_held_it_unless_an_interrupt_or_a_device_did() {
        let slept = stack(
            "other processes;zram_bvec_write;zcomp_stream_get;__mutex_lock.constprop.0;schedule_preempt_disabled;schedule;__schedule",
        );
        let before = stack(
            "other processes;zram_bvec_write;zcomp_compress;LZ4_compress_fast;asm_sysvec_apic_timer_interrupt;irqentry_exit;preempt_schedule_irq;__schedule",
        );
        let woken = stack(
            "other processes;zram_bvec_write;zcomp_stream_put;mutex_unlock;__mutex_unlock_slowpath;wake_up_q;try_to_wake_up",
        );
        let found = LockWait::of(slept.clone(), &before, &woken).unwrap();
        assert_eq!(found.taker(), "zcomp_stream_get");
        let holder = found.holder.unwrap();
        assert_eq!(
            [&*holder.task, &holder.function, &holder.was_in],
            [
                "other processes",
                "zcomp_stream_put",
                "run queue: irqentry_exit"
            ]
        );
        let timer = stack(
            "kswapd;shrink_list;asm_sysvec_apic_timer_interrupt;hrtimer_wakeup;mutex_unlock;try_to_wake_up",
        );
        let found = LockWait::of(slept, &[], &timer).unwrap();
        assert_eq!(found.holder, None);
        let page = stack(
            "workload;do_swap_page;__folio_lock_or_retry;folio_wait_bit_common;io_schedule;schedule;__schedule",
        );
        let device = stack(
            "ksoftirqd;bio_endio;end_swap_bio_read;folio_unlock;folio_wake_bit;try_to_wake_up",
        );
        assert_eq!(LockWait::of(page.clone(), &[], &device), None);
        let task = stack(
            "kswapd;shrink_folio_list;folio_unlock;folio_wake_bit;wake_page_function;try_to_wake_up",
        );
        let found = LockWait::of(page, &[], &task).unwrap();
        let holder = found.holder.unwrap();
        assert_eq!(
            [&*holder.task, &holder.function],
            ["kswapd", "shrink_folio_list"]
        );
        let timer = stack("workload;hrtimer_nanosleep;do_nanosleep;schedule;__schedule");
        assert_eq!(LockWait::of(timer, &[], &[]), None);
    }

    fn waits_of(taker: &str, task: Option<&str>, time: u64, count: u64) -> LockWait {
        LockWait {
            stack: stack(&format!("workload;{taker};__mutex_lock;schedule")),
            holder: task.map(|task| Holder {
                task: task.to_owned(),
                function: "zram_submit_bio".to_owned(),
                was_in: format!("run queue: {time}"),
            }),
            count,
            time,
            idle: 0,
        }
    }

    #[test]
    fn a_comparison_has_the_three_locks_and_holders_that_differ_most() {
        let profile = |locks: Vec<LockWait>| Profile {
            locks,
            ..Profile::new()
        };
        let a = profile(vec![
            waits_of("zcomp_stream_get", Some("kswapd"), 70, 3),
            // The same holder in another place: both are one row.
            waits_of("zcomp_stream_get", Some("kswapd"), 30, 1),
            waits_of("same", Some("kswapd"), 50, 5),
            waits_of("little", None, 1, 1),
        ]);
        let b = profile(vec![
            waits_of("zcomp_stream_get", Some("kswapd"), 40, 2),
            waits_of("zcomp_stream_get", Some("workload"), 9, 1),
            waits_of("same", Some("kswapd"), 50, 7),
            waits_of("unknown", None, 8, 1),
        ]);
        let found = lock_changes([&a, &b]);
        let rows: Vec<_> = found
            .iter()
            .map(|one| (&*one.taker, one.holder.as_deref(), one.time, one.waits))
            .collect();
        let kswapd = Some("kswapd in zram_submit_bio");
        let own = Some("workload in zram_submit_bio");
        assert_eq!(
            rows,
            [
                ("zcomp_stream_get", kswapd, [100, 40], [4, 2]),
                ("zcomp_stream_get", own, [0, 9], [0, 1]),
                ("unknown", None, [0, 8], [0, 1]),
            ]
        );
        assert_eq!(lock_changes([&a, &a]), []);
    }
}
