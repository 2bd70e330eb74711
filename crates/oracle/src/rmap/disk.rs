//! Model of a disk of 2002: seek time, rotation, and one request at a time.

use super::parameters::Parameters;

/// The swap area on a disk. Times are in nanoseconds from the start.
pub(super) struct Disk {
    parameters: Parameters,
    /// The slot after the last transferred slot, where the disk head is.
    head: u32,
    free_at: u64,
    slots: u32,
}

impl Disk {
    pub fn new(parameters: &Parameters, slots: u32) -> Self {
        Self {
            parameters: *parameters,
            head: 0,
            free_at: 0,
            slots,
        }
    }

    /// Transfers `count` slots from `first` on, as soon as the disk is free. Returns the time at which the transfer is
    /// complete.
    ///
    /// A transfer that continues the previous one within a rotation needs neither seek nor rotation. Otherwise the seek
    /// time grows with the square root of the distance (Ruemmler and Wilkes, "An introduction to disk drive modeling",
    /// IEEE Computer 27(3), 1994), and the disk rotates by half a turn on average.
    pub fn transfer(&mut self, now: u64, first: u32, count: u32) -> u64 {
        let p = &self.parameters;
        let start = now.max(self.free_at);
        let mut time = u64::from(count) * p.transfer;
        if first != self.head || start > self.free_at + p.turn {
            let distance = f64::from(first.abs_diff(self.head).min(self.slots));
            let third = f64::from(p.disk_pages) / 3.0;
            let more =
                p.seek_average.saturating_sub(p.seek_least) as f64 * (distance / third).sqrt();
            time += p.seek_least + u64::from(crate::number::whole(more)) + p.turn / 2;
        }
        self.head = first + count;
        self.free_at = start + time;
        self.free_at
    }
}
