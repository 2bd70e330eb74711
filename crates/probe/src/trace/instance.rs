//! A private tracing instance with its own buffers and events; or the global ones, for [`Instance::of_machine`].
//!
//! The name of the instance identifies the process that created it: `pagetide-PID-START-N`, with the start time of the
//! process in clock ticks since boot. So a later process can recognise the instances of killed processes and remove
//! them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::container::StoredFormat;
use super::event_name::{EventName, SLEEP_STACK};
use super::format::PageLayout;
use super::tracefs::Tracefs;
use crate::ProbeError;

/// Settings of a trace.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// Events to enable. Events that the kernel does not have are listed in [`Instance::absent`].
    pub events: Vec<EventName>,
    /// Buffer size of each CPU, in KiB. When the buffer is full, new events are dropped and counted.
    pub buffer_kib: u64,
    /// Name of the trace clock. Times of the clock `mono` are comparable with `CLOCK_MONOTONIC`.
    pub clock: &'static str,
    /// Thread IDs to trace. Empty means all threads.
    pub pids: Vec<u32>,
    /// True to record the kernel stack at every switch of a task into an uninterruptible sleep. The stack shows what
    /// the task waits for. Needs `sched_switch` among the events. If the kernel does not support stacks,
    /// [`SLEEP_STACK`] is listed as absent.
    pub sleep_stacks: bool,
}

/// Trigger file of the task switch event, after which a stack is recorded.
const TRIGGER: &str = "events/sched/sched_switch/trigger";
/// Trigger that records the stack of the task that is switched out (kernel `Documentation/trace/events.rst`, section
/// 6). Bit 1 is `TASK_UNINTERRUPTIBLE` (`include/linux/sched.h`); interruptible sleeps and idle workers have other
/// bits.
const STACK_OF_SLEEP: &str = "stacktrace if prev_state & 2";

impl Default for TraceSettings {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            buffer_kib: 4096,
            clock: "mono",
            pids: Vec::new(),
            sleep_stacks: false,
        }
    }
}

/// A tracing instance, or the machine's global buffer. Drop disables it, and removes an instance.
#[derive(Debug)]
pub struct Instance {
    /// True if this process created the directory of the instance. Drop then removes it.
    made: bool,
    // This field is declared before `tracefs`, so that it is dropped, and its directory removed, while the file system
    // is still mounted.
    path: PathBuf,
    formats: Vec<StoredFormat>,
    absent: Vec<String>,
    layout: PageLayout,
    clock: String,
    tracefs: Tracefs,
}

const PREFIX: &str = "pagetide-";
static NEXT: AtomicU32 = AtomicU32::new(0);

impl Instance {
    /// Removes the instances of dead processes, creates an instance and enables its events. Recording starts with
    /// [`Self::start`].
    pub fn new(tracefs: Tracefs, settings: &TraceSettings) -> Result<Self, ProbeError> {
        let instances = tracefs.root().join("instances");
        remove_stale(&instances);
        let pid = std::process::id();
        let start = start_ticks(pid).unwrap_or(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = instances.join(format!("{PREFIX}{pid}-{start}-{number}"));
        fs::create_dir(&path).map_err(|error| ProbeError::io("make", &path, error))?;
        Self::at(path, true, tracefs, settings)
    }

    /// Uses the machine's global buffer instead of an instance, for a guest that runs nothing else. An instance would
    /// need about 10 MB of memory on kernels before 6.6, which create all event directories again.
    pub fn of_machine(tracefs: Tracefs, settings: &TraceSettings) -> Result<Self, ProbeError> {
        let path = tracefs.root().to_owned();
        let instance = Self::at(path, false, tracefs, settings)?;
        // This write removes the events that were recorded before.
        instance.write("trace", "")?;
        Ok(instance)
    }

    fn at(
        path: PathBuf,
        made: bool,
        tracefs: Tracefs,
        settings: &TraceSettings,
    ) -> Result<Self, ProbeError> {
        let mut instance = Self {
            made,
            path,
            formats: Vec::new(),
            absent: Vec::new(),
            layout: PageLayout::default(),
            clock: settings.clock.to_owned(),
            tracefs,
        };
        instance.set_up(settings)?;
        Ok(instance)
    }

    fn set_up(&mut self, settings: &TraceSettings) -> Result<(), ProbeError> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", settings.clock)?;
        self.write("buffer_size_kb", &settings.buffer_kib.to_string())?;
        // Keep the oldest events: a begin without its end is better than ends without their begins.
        self.write("options/overwrite", "0")?;
        // Recording task names hooks every task switch of the machine; names are read from /proc instead.
        // Older kernels have the option only for the global buffer; then it is not changed.
        let _ = self.write("options/record-cmd", "0");
        let _ = self.write("options/record-tgid", "0");
        if !settings.pids.is_empty() {
            let list: Vec<_> = settings.pids.iter().map(u32::to_string).collect();
            self.write("set_event_pid", &list.join(" "))?;
        }
        let header = self.tracefs.root().join("events/header_page");
        self.layout = PageLayout::parse(&read_at_once(&header)?)?;
        for event in &settings.events {
            let directory = format!("events/{}/{}", event.system, event.name);
            let Ok(text) = fs::read_to_string(self.path.join(&directory).join("format")) else {
                self.absent.push(format!("{}/{}", event.system, event.name));
                continue;
            };
            self.formats.push(StoredFormat {
                system: event.system.to_owned(),
                name: event.name.to_owned(),
                text,
            });
            self.write(&format!("{directory}/enable"), "1")?;
        }
        if settings.sleep_stacks && !self.record_stacks() {
            let EventName { system, name } = SLEEP_STACK;
            self.absent.push(format!("{system}/{name}"));
        }
        Ok(())
    }

    /// Enables recording of the stacks of sleeping tasks. Returns false if the kernel does not support it (no
    /// `CONFIG_STACKTRACE`).
    fn record_stacks(&mut self) -> bool {
        let EventName { system, name } = SLEEP_STACK;
        // The event is in the global tree of events, on some kernels only there. Its ID is the same in every instance.
        let format = format!("events/{system}/{name}/format");
        let Ok(text) = fs::read_to_string(self.tracefs.root().join(format)) else {
            return false;
        };
        if self.write(TRIGGER, STACK_OF_SLEEP).is_err() {
            return false;
        }
        self.formats.push(StoredFormat {
            system: system.to_owned(),
            name: name.to_owned(),
            text,
        });
        true
    }

    /// Writes `value` into a control file of the instance.
    fn write(&self, file: &str, value: &str) -> Result<(), ProbeError> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(|error| ProbeError::io("write", path, error))
    }

    /// Starts recording events.
    pub fn start(&self) -> Result<(), ProbeError> {
        self.write("tracing_on", "1")
    }

    /// Stops recording. The buffers keep their content.
    pub fn stop(&self) -> Result<(), ProbeError> {
        self.write("tracing_on", "0")
    }

    /// Returns the directory of the instance.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the formats of the enabled events, as the kernel printed them.
    pub fn formats(&self) -> &[StoredFormat] {
        &self.formats
    }

    /// Returns the requested events that this kernel does not have, as `system/name`.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    /// Returns the layout of this kernel's sub-buffers.
    pub fn layout(&self) -> PageLayout {
        self.layout
    }

    /// Returns the name of the trace clock in use.
    pub fn clock(&self) -> &str {
        &self.clock
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        switch_off(&self.path);
        if self.made {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Reads a file with a single large read. A second read of `header_page` returns nothing, and the standard library
/// begins with a small read.
fn read_at_once(path: &Path) -> Result<String, ProbeError> {
    let mut text = vec![0; 16 << 10];
    let length = fs::File::open(path)
        .and_then(|mut file| file.read(&mut text))
        .map_err(|error| ProbeError::io("read", path, error))?;
    text.truncate(length);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Disables recording and the events of the instance at `path`. Errors are ignored, because there is no other way to do
/// this.
fn switch_off(path: &Path) {
    let _ = fs::write(path.join("tracing_on"), "0");
    let _ = fs::write(path.join("events/enable"), "0");
    // The write fails if there is no trigger.
    let trigger = path.join(TRIGGER);
    if trigger.exists() {
        let _ = fs::write(trigger, "!stacktrace");
    }
}

/// Removes the instances of processes that no longer exist.
fn remove_stale(instances: &Path) {
    let Ok(listing) = fs::read_dir(instances) else {
        return;
    };
    for entry in listing.flatten() {
        let name = entry.file_name();
        if let Some((pid, start)) = name.to_str().and_then(maker)
            && start_ticks(pid) != Some(start)
        {
            switch_off(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Parses PID and start time from the name of an instance; `None` if the name does not match.
fn maker(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Returns the start time of a process in clock ticks since boot; `None` if the process does not exist. PID and start
/// time together are unique.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.rsplit_once(')')?.1;
    // Field 22; the first one after the name is field 3.
    after.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_named_by_us_are_candidates_for_removal() {
        assert_eq!(maker("pagetide-12-345-0"), Some((12, 345)));
        assert_eq!(maker("pagetide-x-345-0"), None);
        assert_eq!(maker("someone-elses"), None);
    }

    #[test]
    fn instances_of_dead_processes_are_removed_and_those_of_living_ones_stay() {
        let directory = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let start = start_ticks(own).unwrap();
        let living = format!("pagetide-{own}-{start}-0");
        // Same process ID, but another start time: the ID was reused.
        let reused = format!("pagetide-{own}-{}-0", start + 1);
        for name in [living.as_str(), &reused, "pagetide-4194305-1-0", "foreign"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        remove_stale(directory.path());
        let mut left: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        // Plain directories contain the control files that were written, so they are not removed: check what was
        // attempted.
        let off = |name: &str| directory.path().join(name).join("tracing_on").exists();
        assert!(left.contains(&living) && !off(&living));
        assert!(!off("foreign"));
        assert!(off(&reused) || !left.contains(&reused));
    }
}
