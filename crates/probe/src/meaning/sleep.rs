//! Finds what a task slept on, from its kernel stack at the task switch.
//!
//! The innermost functions of the stack belong to the tracer and the scheduler. The next function is the one that
//! waits, and the name of its caller shows what it waits for.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::trace::Function;

/// Location in the kernel code where a task slept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SleepSite {
    /// The function that waits.
    pub function: String,
    /// The caller of the function that waits; `None` if the stack is too short or the caller has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

impl SleepSite {
    /// Returns what the function waits for, in words; `None` for an unknown function.
    pub fn meaning(&self) -> Option<&'static str> {
        MEANINGS
            .iter()
            .find(|(begin, _)| self.function.starts_with(begin))
            .map(|(_, meaning)| *meaning)
    }
}

impl fmt::Display for SleepSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        if let Some(caller) = &self.caller {
            write!(f, " in {caller}")?;
        }
        match self.meaning() {
            Some(meaning) => write!(f, " ({meaning})"),
            None => Ok(()),
        }
    }
}

/// What waiting functions wait for, by prefix of the function's name. The first match is used. Sources: kernel/locking,
/// mm/filemap.c, mm/vmscan.c, mm/page-writeback.c, kernel/sched/completion.c, block/.
const MEANINGS: [(&str, &str); 18] = [
    ("__mutex_lock", "a mutex"),
    ("mutex_lock", "a mutex"),
    ("rwsem_down", "a read-write semaphore"),
    ("down_", "a semaphore"),
    ("__down", "a semaphore"),
    ("folio_wait_bit", "a page that is locked or being written"),
    ("__folio_lock", "a locked page"),
    ("folio_lock", "a locked page"),
    ("swap_readpage", "a page that is read from swap"),
    ("wait_on_page", "a page that is locked or being written"),
    ("balance_dirty_pages", "the dirty limits"),
    ("reclaim_throttle", "throttled reclaim"),
    ("throttle_direct_reclaim", "throttled reclaim"),
    ("wait_for_completion", "a completion"),
    ("__wait_for_common", "a completion"),
    ("blk_mq_get_tag", "a free request of the device"),
    ("rq_qos_wait", "a free request of the device"),
    ("mempool_alloc", "memory set aside"),
];

/// Name prefixes of functions that are skipped at the innermost end of a stack: tracing, the scheduler and interrupt
/// entry (kernel/trace, kernel/stacktrace.c, kernel/sched, kernel/time, arch/x86).
const MACHINERY: [&str; 22] = [
    "trace_event_",
    "__traceiter_",
    "__trace_",
    "trace_",
    "ftrace_",
    "__ftrace_",
    "stack_trace_",
    "stacktrace_",
    "event_triggers_",
    "__event_triggers",
    "perf_trace_",
    "__bpf_trace_",
    "__schedule",
    "schedule",
    "io_schedule",
    "preempt_schedule",
    "bit_wait",
    "__wait_on_bit",
    "out_of_line_wait_on_bit",
    "wait_woken",
    "prepare_to_wait",
    "asm_sysvec_",
];

/// Prefixes of helper functions inside waiting functions. A caller with such a name is skipped, because the caller of
/// the helper is more informative.
const INNER: [&str; 10] = [
    "__mutex_lock",
    "mutex_lock",
    "rwsem_",
    "down_",
    "__down",
    "wait_for_completion",
    "wait_for_common",
    "__wait_for_common",
    "do_wait_for_common",
    "mempool_alloc",
];

/// Index of a site in [`SleepSites`].
pub type SiteNumber = u32;

/// The distinct locations in a trace where tasks slept, and the names of kernel functions.
#[derive(Debug, Clone, Default)]
pub struct SleepSites {
    names: HashMap<u64, String>,
    sites: Vec<SleepSite>,
    numbers: HashMap<SleepSite, SiteNumber>,
}

impl SleepSites {
    /// Creates a table of sites that resolves the functions named in a trace.
    pub fn new(functions: &[Function]) -> Self {
        Self {
            names: functions
                .iter()
                .map(|function| (function.address, base(&function.name).to_owned()))
                .collect(),
            ..Self::default()
        }
    }

    /// Returns the number of the site of a stack, which is added if it is new. The stack starts with the innermost
    /// function. `None` if the stack contains only skipped functions, or an address without a name comes before the
    /// first other function.
    pub fn site(&mut self, stack: impl Iterator<Item = u64>) -> Option<SiteNumber> {
        let mut names = stack.map(|address| self.names.get(&address));
        let mut function = names.next()?;
        while function.is_some_and(|name| begins(name, &MACHINERY)) {
            function = names.next()?;
        }
        let function = function?;
        let mut caller = names.next().flatten();
        while caller.is_some_and(|name| begins(name, &INNER)) {
            caller = names.next().flatten();
        }
        let site = SleepSite {
            function: function.clone(),
            caller: caller.cloned(),
        };
        if let Some(number) = self.numbers.get(&site) {
            return Some(*number);
        }
        let number = SiteNumber::try_from(self.sites.len()).ok()?;
        self.sites.push(site.clone());
        self.numbers.insert(site, number);
        Some(number)
    }

    /// Returns the site with this index; `None` if there is none.
    pub fn get(&self, number: SiteNumber) -> Option<&SleepSite> {
        self.sites.get(number as usize)
    }
}

fn begins(name: &str, with: &[&str]) -> bool {
    with.iter().any(|begin| name.starts_with(begin))
}

/// Returns the name of a function without the suffixes that the compiler adds (`.isra.0`, `.constprop.0`, `.cold`).
fn base(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(names: &[&str]) -> SleepSites {
        let functions: Vec<_> = (1..)
            .zip(names)
            .map(|(address, name)| Function {
                address,
                name: (*name).to_owned(),
            })
            .collect();
        SleepSites::new(&functions)
    }

    fn site(names: &[&str]) -> Option<String> {
        let mut sites = sites(names);
        let number = sites.site(1..=names.len() as u64)?;
        sites.get(number).map(ToString::to_string)
    }

    #[test]
    fn a_wait_is_named_by_what_is_not_the_schedulers_and_by_its_caller() {
        let switch = [
            "trace_event_raw_event_sched_switch",
            "__traceiter_sched_switch",
            "__schedule",
            "schedule",
        ];
        let with = |more: &[&str]| site(&[&switch[..], more].concat());
        assert_eq!(
            with(&[
                "schedule_preempt_disabled",
                "__mutex_lock.constprop.0",
                "__mutex_lock_slowpath",
                "zcomp_stream_get",
                "zram_bvec_read"
            ])
            .as_deref(),
            Some("__mutex_lock in zcomp_stream_get (a mutex)")
        );
        assert_eq!(
            with(&["io_schedule", "folio_wait_bit_common", "do_swap_page"]).as_deref(),
            Some("folio_wait_bit_common in do_swap_page (a page that is locked or being written)")
        );
        assert_eq!(
            with(&["schedule_timeout", "do_something_new", "its_caller"]).as_deref(),
            Some("do_something_new in its_caller")
        );
        assert_eq!(with(&["msleep"]).as_deref(), Some("msleep"));
        assert_eq!(with(&[]), None);
        assert_eq!(site(&[]), None);
    }

    #[test]
    fn an_address_without_a_name_hides_the_wait_rather_than_naming_what_lies_further_out() {
        let mut sites = sites(&["__schedule", "schedule", "folio_wait_bit", "do_swap_page"]);
        assert_eq!(sites.site([1, 2, 99, 3].into_iter()), None);
        // If the caller has no name, no caller is reported.
        let number = sites.site([1, 2, 3, 99].into_iter()).unwrap();
        assert_eq!(sites.get(number).unwrap().caller, None);
        // The same wait gives the same site.
        assert_eq!(sites.site([1, 3, 99].into_iter()), Some(number));
        assert_ne!(sites.site([1, 3, 4].into_iter()), Some(number));
    }
}
