//! Names of trace events.

/// Subsystem and name of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventName {
    /// Name of the subsystem, such as `vmscan`.
    pub system: &'static str,
    /// Name of the event, such as `mm_vmscan_lru_isolate`.
    pub name: &'static str,
}

/// Name of the event that contains a kernel stack.
pub const SLEEP_STACK: EventName = EventName {
    system: "ftrace",
    name: "kernel_stack",
};
