//! Model of a rotating disk of 2009, which computes the time that the traced requests would have taken on it.
//!
//! The drive is Seagate's Barracuda 7200.12 (ST3500418AS, product manual 100529369, 2009): 7,200 rpm, 8.5 ms average
//! and 1.0 ms track-to-track seek when reading, 125 MB/s sustained at the outer edge, 500 GB. The seek curve is that of
//! Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer, March 1994): a constant plus the root
//! of the distance for short seeks, linear for long ones. The average seek covers a third of the stroke.
//! The full-stroke seek (twice the average) and the transfer rate at the inner edge (half of the outer) are not in the
//! manual; they are usual ratios.
//!
//! Requests are served in order of issue, without queue, cache or idle time. So the modelled time of scattered requests
//! is an upper bound: a real drive would reorder them.

use serde::{Deserialize, Serialize};

use super::requests::Request;
use pagetide_quantity::{Nanos, floor};

/// Parameters of a rotating drive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskModel {
    /// Capacity in sectors of 512 bytes.
    pub sectors: u64,
    /// Number of tracks from the outer edge to the inner.
    pub cylinders: u64,
    /// Time of one rotation.
    pub rotation: Nanos,
    /// Time of a seek to the next track.
    pub seek_track: Nanos,
    /// Time of a seek over a third of the stroke: the average for random pairs of sectors.
    pub seek_average: Nanos,
    /// Time of a seek over the whole stroke.
    pub seek_full: Nanos,
    /// Additional time of a seek before a write, because the head must settle more precisely.
    pub write_settle: Nanos,
    /// Transfer rate at the outer edge, in bytes per second.
    pub outer_rate: f64,
    /// Transfer rate at the inner edge, in bytes per second.
    pub inner_rate: f64,
}

impl DiskModel {
    /// Returns the Seagate Barracuda 7200.12 of 2009, which is described at the top of this file.
    pub const fn barracuda_2009() -> Self {
        Self {
            sectors: 976_773_168,
            cylinders: 150_000,
            rotation: Nanos(60_000_000_000 / 7200),
            seek_track: Nanos(1_000_000),
            seek_average: Nanos(8_500_000),
            seek_full: Nanos(17_000_000),
            write_settle: Nanos(1_000_000),
            outer_rate: 125e6,
            inner_rate: 62.5e6,
        }
    }

    /// Returns the position of a sector as a fraction of the stroke, from 0 (outer edge) to 1 (inner edge).
    fn position(&self, sector: u64) -> f64 {
        (sector as f64 / self.sectors.max(1) as f64).min(1.0)
    }

    /// Returns the time of a seek over this many tracks, in nanoseconds.
    fn seek(&self, tracks: f64) -> f64 {
        if tracks < 1.0 {
            return 0.0;
        }
        let third = (self.cylinders as f64 / 3.0).max(2.0);
        let (track, average) = (self.seek_track.0 as f64, self.seek_average.0 as f64);
        if tracks <= third {
            track + (average - track) * ((tracks - 1.0) / (third - 1.0)).sqrt()
        } else {
            let full = self.seek_full.0 as f64;
            average + (full - average) * ((tracks - third) / (2.0 * third)).min(1.0)
        }
    }

    /// Returns the transfer rate at a position, in bytes per second.
    fn rate(&self, position: f64) -> f64 {
        self.outer_rate + (self.inner_rate - self.outer_rate) * position
    }
}

/// Modelled time of a sequence of requests, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCost {
    /// Number of requests served.
    pub requests: u64,
    /// Number of requests that needed a seek.
    pub seeks: u64,
    /// Total time for seeks.
    pub seek: Nanos,
    /// Total rotational latency: time until the sector is under the head.
    pub rotation: Nanos,
    /// Total time for transfers.
    pub transfer: Nanos,
}

impl DiskCost {
    /// Returns the sum of seek time, rotational latency and transfer time.
    pub fn total(&self) -> Nanos {
        self.seek
            .saturating_add(self.rotation)
            .saturating_add(self.transfer)
    }
}

/// A modelled disk that serves requests.
#[derive(Debug, Clone)]
pub struct Disk {
    model: DiskModel,
    /// Current model time in nanoseconds.
    time: f64,
    /// The sector after the last one served, where the head is.
    head: u64,
    seek: f64,
    rotation: f64,
    transfer: f64,
    requests: u64,
    seeks: u64,
}

impl Disk {
    /// Creates an idle disk that has the head at the outer edge.
    pub fn new(model: DiskModel) -> Self {
        Self {
            model,
            time: 0.0,
            head: 0,
            seek: 0.0,
            rotation: 0.0,
            transfer: 0.0,
            requests: 0,
            seeks: 0,
        }
    }

    /// Serves one request and adds the time it takes. A sector beyond the end of the disk counts as its end.
    pub fn serve(&mut self, request: Request) {
        let model = &self.model;
        let sector = request.sector.min(model.sectors);
        let position = model.position(sector);
        let rate = model.rate(position).max(1.0);
        let mut now = self.time;
        if sector != self.head {
            let tracks = (position - model.position(self.head)).abs() * model.cylinders as f64;
            let mut seek = model.seek(tracks);
            if seek > 0.0 {
                self.seeks += 1;
                if request.write {
                    seek += model.write_settle.0 as f64;
                }
            }
            now += seek;
            self.seek += seek;
            // Target angle of the sector and current angle of the head, in rotations.
            let turn = (model.rotation.0 as f64).max(1.0);
            let track = (rate * turn / 1e9 / 512.0).max(1.0);
            let target = (sector as f64 / track).fract();
            let wait = (target - (now / turn).fract()).rem_euclid(1.0) * turn;
            now += wait;
            self.rotation += wait;
        }
        let transfer = request.sectors as f64 * 512.0 / rate * 1e9;
        self.transfer += transfer;
        self.time = now + transfer;
        self.head = sector.saturating_add(request.sectors);
        self.requests += 1;
    }

    /// Returns the time of all requests served so far.
    pub fn cost(&self) -> DiskCost {
        DiskCost {
            requests: self.requests,
            seeks: self.seeks,
            seek: nanos(self.seek),
            rotation: nanos(self.rotation),
            transfer: nanos(self.transfer),
        }
    }
}

/// Rounds to whole nanoseconds. A value that does not fit into 64 bits becomes `u64::MAX`.
fn nanos(value: f64) -> Nanos {
    Nanos(floor(value.round()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sector: u64, sectors: u64) -> Request {
        Request {
            sector,
            sectors,
            write: false,
        }
    }

    #[test]
    fn a_sequential_read_costs_its_transfer_alone() {
        let mut disk = Disk::new(DiskModel::barracuda_2009());
        for at in 0..1000 {
            disk.serve(read(at * 256, 256));
        }
        let cost = disk.cost();
        assert_eq!(
            (cost.seeks, cost.seek, cost.rotation),
            (0, Nanos(0), Nanos(0))
        );
        let expected = 1000.0 * 256.0 * 512.0 / 125e6;
        let seconds = cost.total().0 as f64 / 1e9;
        assert!((seconds / expected - 1.0).abs() < 0.01, "{seconds}");
    }

    #[test]
    fn random_reads_cost_the_average_seek_and_half_a_turn() {
        let model = DiskModel::barracuda_2009();
        let mut disk = Disk::new(model);
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            disk.serve(read((state >> 11) % model.sectors, 8));
        }
        let cost = disk.cost();
        let mean = |part: Nanos| part.0 as f64 / 20_000.0 / 1e6;
        // With Ruemmler and Wilkes' curve the mean over random pairs is a little less than the seek over the mean
        // distance.
        assert!((7.0..9.5).contains(&mean(cost.seek)), "{}", mean(cost.seek));
        assert!(
            (4.0..4.35).contains(&mean(cost.rotation)),
            "{}",
            mean(cost.rotation)
        );
    }

    #[test]
    fn scattered_swap_costs_many_times_what_contiguous_swap_does() {
        let pages = 4096_u64;
        let mut contiguous = Disk::new(DiskModel::barracuda_2009());
        let mut scattered = contiguous.clone();
        for page in 0..pages {
            contiguous.serve(read(page * 8, 8));
            scattered.serve(read(page * 2741 % pages * 8, 8));
        }
        assert!(scattered.cost().total() > Nanos(20 * contiguous.cost().total().0));
    }

    #[test]
    fn absurd_requests_stay_finite() {
        let mut disk = Disk::new(DiskModel::barracuda_2009());
        disk.serve(read(u64::MAX, u64::MAX));
        disk.serve(read(0, u64::MAX));
        assert!(disk.cost().total() > Nanos(0));
    }
}
