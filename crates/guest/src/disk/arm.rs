//! The model of a rotating disk that serves one request at a time.

use pagetide_quantity::Nanos;
use pagetide_record::DiskSpec;

/// State of the modelled disk: position of the head, and end time of the last request. A pure computation without
/// device or clock.
#[derive(Clone, Copy, Debug)]
pub struct Arm {
    spec: DiskSpec,
    /// Offset of the head, in bytes: after the last byte served. `None` before the first request.
    at: Option<u64>,
    done: Nanos,
}

impl Arm {
    /// Creates a disk that has not served a request.
    pub fn new(spec: DiskSpec) -> Self {
        Self {
            spec,
            at: None,
            done: Nanos(0),
        }
    }

    /// Serves a read or write of `length` bytes at offset `from`, and returns the time at which the request completes.
    /// `now` is the time when the request was received. If `waited` is true, the request arrived while the disk was
    /// busy, and is served from the end of the previous request on.
    pub fn serve(&mut self, now: Nanos, waited: bool, from: u64, length: u64) -> Nanos {
        let begin = if waited { self.done } else { now };
        let cost = self.spec.cost(length, self.at == Some(from));
        self.at = Some(from.saturating_add(length));
        self.done = begin.saturating_add(cost);
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns a disk for tests with 8 ms per seek and 4,096,000 bytes per second, so that a page takes a millisecond.
    fn arm() -> Arm {
        Arm::new(DiskSpec {
            seek: Nanos(8 * MS),
            rate: 4_096_000,
        })
    }

    #[test]
    fn the_first_request_seeks_and_one_that_continues_does_not() {
        let mut arm = arm();
        assert_eq!(arm.serve(Nanos(0), false, 0, 4096), Nanos(9 * MS));
        assert_eq!(arm.serve(Nanos(9 * MS), true, 4096, 8192), Nanos(11 * MS));
        // Seeking back to where it just was is a seek too.
        assert_eq!(arm.serve(Nanos(11 * MS), true, 8192, 4096), Nanos(20 * MS));
    }

    #[test]
    fn an_idle_disk_begins_when_it_is_asked_and_a_busy_one_when_it_is_done() {
        let mut arm = arm();
        assert_eq!(arm.serve(Nanos(5 * MS), false, 0, 4096), Nanos(14 * MS));
        // The request is received a little late, because the previous reply took time: this costs the disk nothing.
        let late = Nanos(14 * MS + 30_000);
        assert_eq!(arm.serve(late, true, 4096, 4096), Nanos(15 * MS));
        assert_eq!(arm.serve(Nanos(40 * MS), false, 8192, 4096), Nanos(41 * MS));
    }

    #[test]
    fn pages_in_order_take_their_bytes_and_shuffled_ones_a_seek_each() {
        let (mut ordered, mut shuffled) = (arm(), arm());
        let (mut a, mut b) = (Nanos(0), Nanos(0));
        for page in 0..1000_u64 {
            a = ordered.serve(a, false, page * 4096, 4096);
            b = shuffled.serve(b, false, page * 617 % 1000 * 4096, 4096);
        }
        assert_eq!(a, Nanos(1008 * MS));
        assert_eq!(b, Nanos(9000 * MS));
    }
}
