//! The events of all CPUs in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::subbuffer::{CpuReader, Losses, RawEvent};

/// Iterates over the events of all CPUs in order of time. Events at the same time are in order of CPU. Memory use
/// depends only on the number of CPUs.
#[derive(Debug)]
pub struct Merge<'a> {
    readers: Vec<CpuReader<'a>>,
    heads: Vec<Option<RawEvent<'a>>>,
    /// For each CPU that has a next event: the time of the event and the index of the CPU. Does not contain the CPU in
    /// `hand`.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// Index of the CPU with the earliest next event.
    hand: Option<usize>,
}

impl<'a> Merge<'a> {
    /// Merges the events that these readers return, one reader per CPU.
    pub fn new(readers: impl IntoIterator<Item = CpuReader<'a>>) -> Self {
        let mut readers: Vec<_> = readers.into_iter().collect();
        let heads: Vec<_> = readers.iter_mut().map(Iterator::next).collect();
        let mut waiting: BinaryHeap<_> = heads
            .iter()
            .enumerate()
            .filter_map(|(at, head)| head.map(|event| Reverse((event.time, at))))
            .collect();
        let hand = waiting.pop().map(|Reverse((_, at))| at);
        Self {
            readers,
            heads,
            waiting,
            hand,
        }
    }

    /// Returns the amount of lost and damaged data so far, over all CPUs.
    pub fn losses(&self) -> Losses {
        self.readers
            .iter()
            .fold(Losses::default(), |sum, reader| sum.plus(reader.losses()))
    }
}

impl<'a> Iterator for Merge<'a> {
    type Item = RawEvent<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawEvent<'a>> {
        let at = self.hand?;
        let event = self.heads[at];
        let next = self.readers[at].next();
        self.heads[at] = next;
        match (next, self.waiting.peek()) {
            // Usually the same CPU has several events in a row; then the heap does not change.
            (Some(next), Some(&Reverse(first))) if (next.time, at) > first => {
                if let Some(mut top) = self.waiting.peek_mut() {
                    *top = Reverse((next.time, at));
                }
                self.hand = Some(first.1);
            }
            (Some(_), _) => {}
            (None, _) => self.hand = self.waiting.pop().map(|Reverse((_, at))| at),
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::PageLayout;
    use super::super::subbuffer::{Stride, tests::PageBuilder};
    use super::*;

    #[test]
    fn events_of_several_cpus_come_in_order_of_time_and_none_is_lost() {
        let buffers: Vec<Vec<u8>> = (0..3_u32)
            .map(|cpu| {
                (0..50)
                    .fold(PageBuilder::default(), |page, at| {
                        page.event(1 + (at * 7 + cpu * 3) % 5, &[1, 0, 0, 0])
                    })
                    .packed(u64::from(cpu), 0)
            })
            .collect();
        let readers = buffers
            .iter()
            .zip(0..)
            .map(|(bytes, cpu)| CpuReader::new(cpu, bytes, PageLayout::default(), Stride::Packed));
        let events: Vec<_> = Merge::new(readers).map(|e| (e.time, e.cpu)).collect();
        assert_eq!(events.len(), 150);
        assert!(events.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn no_cpu_gives_no_event() {
        assert_eq!(Merge::new([]).next(), None);
    }
}
