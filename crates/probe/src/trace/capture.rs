//! Reads the trace buffers during or after recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::BufReader;
use std::os::unix::fs::OpenOptionsExt;

use rustix::io::Errno;
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::container::{CpuBuffer, TraceFile, TraceMeta};
use super::instance::Instance;
use super::subbuffer::{Losses, pack};
use crate::ProbeError;
use pagetide_quantity::Nanos;
use pagetide_system::swaps;

/// The file with the addresses of the kernel's functions. Unprivileged readers see only zeros.
pub const KALLSYMS: &str = "/proc/kallsyms";

/// Statistics of the ring buffer of one CPU (`per_cpu/cpuN/stats`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuStats {
    /// Number of the CPU.
    pub cpu: u32,
    /// Number of events in the buffer.
    pub entries: u64,
    /// Number of events overwritten before they were read.
    pub overrun: u64,
    /// Number of events lost because the buffer wrapped around to an interrupted, uncommitted event.
    pub commit_overrun: u64,
    /// Number of events dropped because the buffer was full.
    pub dropped: u64,
    /// Number of events read from the buffer.
    pub read: u64,
}

impl CpuStats {
    /// Parses the text of `per_cpu/cpuN/stats`. A missing number becomes 0.
    pub fn parse(cpu: u32, text: &str) -> Self {
        let value = |key: &str| {
            text.lines()
                .find_map(|line| {
                    line.strip_prefix(key)?
                        .strip_prefix(':')?
                        .trim()
                        .parse()
                        .ok()
                })
                .unwrap_or(0)
        };
        Self {
            cpu,
            entries: value("entries"),
            overrun: value("overrun"),
            commit_overrun: value("commit overrun"),
            dropped: value("dropped events"),
            read: value("read events"),
        }
    }
}

/// Raw pipe of the ring buffer of one CPU (`trace_pipe_raw`).
#[derive(Debug)]
struct Pipe {
    cpu: u32,
    file: File,
}

/// A trace instance whose buffers are read into memory.
#[derive(Debug)]
pub struct Capture {
    // This field is dropped before the instance: an instance cannot be removed while its files are open.
    pipes: Vec<Pipe>,
    page: Vec<u8>,
    packed: Vec<u8>,
    kept: Vec<CpuBuffer>,
    damaged: u64,
    begin: Nanos,
    tasks: BTreeMap<u32, String>,
    swap_devices: BTreeSet<u64>,
    instance: Instance,
}

impl Capture {
    /// Opens the buffers of all CPUs.
    pub fn new(instance: Instance) -> Result<Self, ProbeError> {
        let directory = instance.path().join("per_cpu");
        let listing =
            fs::read_dir(&directory).map_err(|error| ProbeError::io("list", &directory, error))?;
        let mut pipes = Vec::new();
        for entry in listing.flatten() {
            let name = entry.file_name();
            let cpu = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            let Some(cpu) = cpu.and_then(|cpu| cpu.parse().ok()) else {
                continue;
            };
            let path = entry.path().join("trace_pipe_raw");
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&path)
                .map_err(|error| ProbeError::io("open", &path, error))?;
            pipes.push(Pipe { cpu, file });
        }
        pipes.sort_by_key(|pipe| pipe.cpu);
        Ok(Self {
            pipes,
            page: vec![0; instance.layout().page],
            packed: Vec::with_capacity(instance.layout().page),
            kept: Vec::new(),
            damaged: 0,
            begin: Nanos(0),
            tasks: BTreeMap::new(),
            swap_devices: BTreeSet::new(),
            instance,
        })
    }

    /// Starts recording.
    pub fn start(&mut self) -> Result<(), ProbeError> {
        self.note_tasks();
        self.note_swap();
        self.begin = self.now();
        self.instance.start()
    }

    /// Reads and stores everything recorded so far, without blocking, and returns the number of sub-buffers read.
    pub fn drain(&mut self) -> Result<u64, ProbeError> {
        let mut kept = std::mem::take(&mut self.kept);
        let result = self.drain_to(|cpu, packed| keep(&mut kept, cpu, packed));
        self.kept = kept;
        result
    }

    /// Reads everything recorded so far, without blocking, and calls `sink` with the CPU and each packed sub-buffer.
    /// Stores nothing, because stored data would change the memory use of a trial. The concatenated sub-buffers of a
    /// CPU form a [`CpuBuffer`]. Returns the number of sub-buffers.
    pub fn drain_to(&mut self, mut sink: impl FnMut(u32, &[u8])) -> Result<u64, ProbeError> {
        let layout = self.instance.layout();
        let mut pages = 0;
        for pipe in &self.pipes {
            loop {
                match rustix::io::read(&pipe.file, &mut self.page[..]) {
                    Ok(0) | Err(Errno::AGAIN) => break,
                    Ok(length) => {
                        pages += 1;
                        self.packed.clear();
                        if !pack(&self.page[..length], &layout, &mut self.packed) {
                            self.damaged += 1;
                        }
                        sink(pipe.cpu, &self.packed);
                    }
                    Err(Errno::INTR) => {}
                    Err(error) => {
                        let path = format!("per_cpu/cpu{}/trace_pipe_raw", pipe.cpu);
                        return Err(ProbeError::io("read", path, error));
                    }
                }
            }
        }
        Ok(pages)
    }

    /// Stops recording, reads the remaining events, removes the instance and returns the trace.
    pub fn finish(mut self) -> Result<TraceFile, ProbeError> {
        let mut kept = std::mem::take(&mut self.kept);
        let meta = self.finish_to(|cpu, packed| keep(&mut kept, cpu, packed))?;
        kept.sort_by_key(|buffer| buffer.cpu);
        let mut trace = TraceFile { meta, cpus: kept };
        if let Ok(symbols) = File::open(KALLSYMS) {
            trace.name_functions(BufReader::new(symbols))?;
        }
        Ok(trace)
    }

    /// Stops recording, calls `sink` with each remaining packed sub-buffer, and removes the instance. Returns
    /// everything in a [`TraceFile`] except its events and the names of functions.
    pub fn finish_to(mut self, sink: impl FnMut(u32, &[u8])) -> Result<TraceMeta, ProbeError> {
        self.instance.stop()?;
        let end = self.now();
        self.drain_to(sink)?;
        self.note_tasks();
        self.note_swap();
        let mut losses = Losses {
            damaged: self.damaged,
            ..Losses::default()
        };
        for stats in self.stats() {
            // Overruns are also visible in the buffers as gaps; drops are only visible here.
            let lost = stats.dropped.saturating_add(stats.commit_overrun);
            losses.events = losses.events.saturating_add(lost);
        }
        Ok(TraceMeta {
            kernel_release: kernel_release(),
            clock: self.instance.clock().to_owned(),
            layout: self.instance.layout(),
            formats: self.instance.formats().to_vec(),
            absent: self.instance.absent().to_vec(),
            lru_gen: lru_gen(),
            tasks: std::mem::take(&mut self.tasks).into_iter().collect(),
            swap_devices: std::mem::take(&mut self.swap_devices).into_iter().collect(),
            functions: Vec::new(),
            begin: self.begin,
            end,
            losses,
        })
    }

    /// Returns the statistics of every CPU's buffer.
    pub fn stats(&self) -> Vec<CpuStats> {
        self.pipes
            .iter()
            .map(|pipe| {
                let path = self
                    .instance
                    .path()
                    .join(format!("per_cpu/cpu{}/stats", pipe.cpu));
                CpuStats::parse(pipe.cpu, &fs::read_to_string(path).unwrap_or_default())
            })
            .collect()
    }

    /// Returns the total size of the events read and stored so far, in bytes.
    pub fn size(&self) -> usize {
        self.kept.iter().map(|buffer| buffer.bytes.len()).sum()
    }

    /// Returns the trace instance whose buffers are read.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Returns the current time on the trace's clock; 0 if user space cannot read this clock.
    fn now(&self) -> Nanos {
        let clock = match self.instance.clock() {
            "mono" => ClockId::Monotonic,
            "mono_raw" => ClockId::MonotonicRaw,
            "boot" => ClockId::Boottime,
            _ => return Nanos(0),
        };
        pagetide_system::clock::of(clock)
    }

    /// Records the device numbers of swap areas that are whole devices. Swap files are left out, because they share
    /// their device with a file system.
    fn note_swap(&mut self) {
        for area in swaps::areas() {
            if is_handed_pages(&area, &kernel_release()) {
                continue;
            }
            if let Ok(stat) = rustix::fs::stat(area.as_str())
                && rustix::fs::FileType::from_raw_mode(stat.st_mode).is_block_device()
            {
                let (major, minor) = (
                    rustix::fs::major(stat.st_rdev),
                    rustix::fs::minor(stat.st_rdev),
                );
                self.swap_devices
                    .insert(u64::from(major) << 20 | u64::from(minor));
            }
        }
    }

    /// Records the names of the main threads of all current processes.
    fn note_tasks(&mut self) {
        let Ok(listing) = fs::read_dir("/proc") else {
            return;
        };
        for entry in listing.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if let Ok(comm) = fs::read_to_string(entry.path().join("comm")) {
                self.tasks.insert(pid, comm.trim_end().to_owned());
            }
        }
    }
}

/// Appends a packed sub-buffer to the buffer of its CPU.
fn keep(kept: &mut Vec<CpuBuffer>, cpu: u32, packed: &[u8]) {
    let at = kept
        .iter()
        .position(|buffer| buffer.cpu == cpu)
        .unwrap_or_else(|| {
            kept.push(CpuBuffer {
                cpu,
                bytes: Vec::new(),
            });
            kept.len() - 1
        });
    kept[at].bytes.extend_from_slice(packed);
}

/// Returns true if the kernel passes single pages to this device without a bio, so that no event shows the I/O. zram
/// worked like this until 6.2 (block/bdev.c, `bdev_write_page`).
fn is_handed_pages(device: &str, release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return false;
    };
    device.starts_with("/dev/zram") && (major, minor) < (6, 3)
}

fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// Returns the value of `/sys/kernel/mm/lru_gen/enabled`, which is hexadecimal (`0x0007`); `None` without the
/// multi-generational LRU.
fn lru_gen() -> Option<u64> {
    let text = fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").ok()?;
    u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zram_before_6_3_is_handed_pages_without_io() {
        assert!(is_handed_pages("/dev/zram0", "6.1.0-50-cloud-amd64"));
        assert!(!is_handed_pages("/dev/zram0", "6.12.117+deb12-cloud-amd64"));
        assert!(!is_handed_pages("/dev/nullb0", "6.1.0-50-cloud-amd64"));
        assert!(!is_handed_pages("/dev/zram0", "strange"));
    }

    #[test]
    fn the_statistics_name_what_was_lost() {
        let text = "entries: 4\noverrun: 1\ncommit overrun: 2\nbytes: 100\noldest event ts:  1.5\nnow ts:  2.5\ndropped events: 7\nread events: 9\n";
        let stats = CpuStats::parse(3, text);
        assert_eq!(
            (
                stats.overrun,
                stats.commit_overrun,
                stats.dropped,
                stats.read
            ),
            (1, 2, 7, 9)
        );
        assert_eq!(CpuStats::parse(0, "").dropped, 0);
    }
}
