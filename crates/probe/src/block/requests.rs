//! Requests to block devices, from the events `block_rq_issue` and `block_rq_complete`.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::meaning::{Event, TraceEvent};
use pagetide_quantity::{Bytes, Histogram, Nanos};

/// A read or write request to a device. Sectors are 512 bytes, whatever the sector size of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// First sector of the request.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// True for a write, false for a read.
    pub write: bool,
}

/// Device number as encoded in trace events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Device(pub u64);

impl Device {
    /// Returns the major number: the bits above the lowest 20 (include/linux/kdev_t.h).
    pub const fn major(self) -> u64 {
        self.0 >> 20
    }

    /// Returns the minor number: the lowest 20 bits.
    pub const fn minor(self) -> u64 {
        self.0 & 0xf_ffff
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major(), self.minor())
    }
}

/// Number of requests in one size class: at least `from` bytes and less than twice `from`; exactly 0 if `from` is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeClass {
    /// Smallest size of the class.
    pub from: Bytes,
    /// Number of requests in the class.
    pub requests: u64,
}

/// Sums over the read requests, or over the write requests, of one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direction {
    /// Number of requests.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: Bytes,
    /// Number of requests that began at the sector where the previous request in the same direction ended.
    pub sequential: u64,
    /// Number of requests by size class, in ascending order of size. Empty classes are left out.
    pub sizes: Vec<SizeClass>,
    /// Time from issue to completion, in nanoseconds.
    pub latency: Histogram,
    #[serde(skip)]
    next: Option<u64>,
}

impl Direction {
    fn add(&mut self, request: Request) {
        self.requests += 1;
        let bytes = request.sectors.saturating_mul(512);
        self.bytes = self.bytes.saturating_add(Bytes(bytes));
        self.sequential += u64::from(self.next == Some(request.sector));
        self.next = request.sector.checked_add(request.sectors);
        let from = Bytes(bytes.checked_ilog2().map_or(0, |power| 1 << power));
        match self.sizes.binary_search_by_key(&from, |class| class.from) {
            Ok(at) => self.sizes[at].requests += 1,
            Err(at) => self.sizes.insert(at, SizeClass { from, requests: 1 }),
        }
    }

    /// Returns the fraction of requests that began at the sector where the previous one ended; `None` without requests.
    pub fn sequentiality(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.sequential as f64 / self.requests as f64)
    }

    /// Returns the mean size of a request in bytes; `None` without requests.
    pub fn mean_size(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.bytes.0 as f64 / self.requests as f64)
    }
}

/// Sums over the reads and over the writes of one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionSums {
    /// Sums over the reads.
    pub reads: Direction,
    /// Sums over the writes.
    pub writes: Direction,
}

/// Time of issue in nanoseconds, and true for a write.
type OpenRequest = (u64, bool);

/// Sums up the block events of each device.
#[derive(Debug, Clone, Default)]
pub struct BlockObserver {
    devices: BTreeMap<Device, DirectionSums>,
    open: HashMap<(u64, u64), OpenRequest>,
    /// Discards and flushes that were issued and have not completed, each as device and sector.
    others: HashSet<(u64, u64)>,
    uncompleted: u64,
    unissued: u64,
}

impl BlockObserver {
    /// Creates an observer without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next event. Events must be added in order of time. Returns device and request if the event issues a
    /// read or a write for the first time; else `None`.
    pub fn observe(&mut self, traced: &TraceEvent) -> Option<(Device, Request)> {
        match traced.event {
            Event::BlockIssue {
                device,
                sector,
                sectors,
                write,
            } => {
                let request = Request {
                    sector,
                    sectors,
                    write,
                };
                // A requeued request is issued again: count it once, and measure its time from the first issue.
                if self.open.contains_key(&(device, sector)) {
                    return None;
                }
                self.open.insert((device, sector), (traced.time, write));
                let sums = self.devices.entry(Device(device)).or_default();
                if write {
                    sums.writes.add(request);
                } else {
                    sums.reads.add(request);
                }
                Some((Device(device), request))
            }
            Event::BlockOther { device, sector } => {
                self.others.insert((device, sector));
                None
            }
            Event::BlockComplete { device, sector, .. } => {
                let Some((since, write)) = self.open.remove(&(device, sector)) else {
                    let other = self.others.remove(&(device, sector));
                    self.unissued += u64::from(!other);
                    return None;
                };
                let took = Nanos(traced.time.saturating_sub(since));
                let sums = self.devices.entry(Device(device)).or_default();
                let direction = if write {
                    &mut sums.writes
                } else {
                    &mut sums.reads
                };
                direction.latency.record(took.0);
                None
            }
            _ => None,
        }
    }

    /// Counts the reads and writes that have not completed. Must be called after the last event.
    pub fn finish(&mut self) {
        self.uncompleted += u64::try_from(self.open.len()).unwrap_or(u64::MAX);
        self.open.clear();
    }

    /// Returns the read and write sums of every device.
    pub fn devices(&self) -> impl Iterator<Item = (Device, &DirectionSums)> {
        self.devices.iter().map(|(&device, sums)| (device, sums))
    }

    /// Returns the number of reads and writes that [`Self::finish`] found open, and of completions without a request.
    pub fn unmatched(&self) -> (u64, u64) {
        (self.uncompleted, self.unissued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issue(time: u64, sector: u64, sectors: u64, write: bool) -> TraceEvent {
        TraceEvent {
            time,
            cpu: 0,
            pid: 1,
            event: Event::BlockIssue {
                device: 8 << 20 | 1,
                sector,
                sectors,
                write,
            },
        }
    }

    fn complete(time: u64, sector: u64) -> TraceEvent {
        TraceEvent {
            time,
            cpu: 0,
            pid: 0,
            event: Event::BlockComplete {
                device: 8 << 20 | 1,
                sector,
                sectors: 8,
            },
        }
    }

    #[test]
    fn sizes_sequentiality_mix_and_times_are_told() {
        let mut observer = BlockObserver::new();
        for event in [
            issue(0, 0, 8, false),
            issue(5, 8, 8, false),
            complete(100, 0),
            issue(110, 1000, 256, true),
            // The request is requeued and issued again.
            issue(120, 1000, 256, true),
            complete(205, 8),
            complete(310, 1000),
            complete(400, 77),
            issue(500, 16, 8, false),
        ] {
            observer.observe(&event);
        }
        observer.finish();
        let (device, sums) = observer.devices().next().unwrap();
        assert_eq!(device.to_string(), "8:1");
        assert_eq!((sums.reads.requests, sums.reads.sequential), (3, 2));
        assert_eq!(
            sums.reads.sizes,
            [SizeClass {
                from: Bytes(4096),
                requests: 3
            }]
        );
        assert_eq!(sums.writes.requests, 1);
        assert_eq!(sums.writes.latency.sum, 200);
        assert_eq!(sums.reads.latency.sum, 300);
        let written = 256.0 / (256.0 + 24.0);
        assert!(
            (sums.writes.bytes.0 as f64 / (sums.reads.bytes.0 + sums.writes.bytes.0) as f64
                - written)
                .abs()
                < 1e-12
        );
        assert_eq!(observer.unmatched(), (1, 1));
    }

    #[test]
    fn absurd_sectors_do_not_overflow() {
        let mut observer = BlockObserver::new();
        observer.observe(&issue(0, u64::MAX, u64::MAX, true));
        observer.observe(&issue(0, u64::MAX - 1, 0, true));
        assert_eq!(observer.devices().count(), 1);
    }
}
