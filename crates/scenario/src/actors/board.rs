//! The board: shared memory with one line for each process of a workload, for its state and counts.

// Pages have a larger alignment than any word.
#![allow(clippy::cast_ptr_alignment)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pagetide_quantity::{Histogram, Nanos, Pages};
use pagetide_workload::MAX_NAMES;

use crate::error::Stop;
use crate::mapping::Mapping;
use crate::number;
use crate::page::PAGE;

/// Number of buckets for the latencies of one process: four for each power of two nanoseconds.
const COARSE: usize = 4 * 40;
/// Maximum length in bytes of the reason why a process failed.
const REASON_BYTES: usize = 160;
/// Interval at which a process that waits for others checks whether the workload has ended.
const POLL: Nanos = Nanos::from_millis(200);

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No process has this line.
    Unused,
    /// The process runs.
    Running,
    /// The process has done all of its phases.
    Ended,
    /// The kernel killed the process.
    Killed,
    /// The process was stopped by the time limit before it had done all of its phases.
    Unfinished,
    /// The process failed; the line contains the reason.
    Failed,
}

impl State {
    const ALL: [Self; 6] = [
        Self::Unused,
        Self::Running,
        Self::Ended,
        Self::Killed,
        Self::Unfinished,
        Self::Failed,
    ];
}

#[repr(C)]
struct Head {
    /// Number of lines in use.
    used: AtomicU32,
    /// Number of processes that are ready to start.
    ready: AtomicU32,
    /// 1 once the workload has started.
    open: AtomicU32,
    /// 1 once the time limit is reached.
    stop: AtomicU32,
    /// For each mark, the number of processes that have not passed it yet.
    left: [AtomicU32; MAX_NAMES],
    /// Start time of the workload on the trial's clock, in nanoseconds.
    started: AtomicU64,
    /// Sum of all latencies in nanoseconds. `min` (`u64::MAX` before the first access) and `max` follow.
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    /// Number of latencies in each bucket of a [`Histogram`].
    dense: [AtomicU64; Histogram::BUCKETS],
}

/// State and counts of one process.
#[repr(C)]
pub(crate) struct Line {
    state: AtomicU32,
    /// Process ID.
    pub pid: AtomicU32,
    /// Index of the kind of process in the workload.
    pub process: AtomicU32,
    /// Number of the process among those of the same kind.
    pub number: AtomicU32,
    /// Depth of forks: 0 for a process of the workload.
    pub depth: AtomicU32,
    /// 1 while the process sleeps or waits for another process.
    pub waits: AtomicU32,
    /// Bit mask of the marks that the process has passed.
    pub passed: AtomicU64,
    /// Start time of the process on the trial's clock. `end` is its end time. Both in nanoseconds.
    pub begin: AtomicU64,
    pub end: AtomicU64,
    /// Number of accesses, plus pages filled or copied, forks, and requests to reclaim.
    pub steps: AtomicU64,
    /// Number of accesses.
    pub accesses: AtomicU64,
    /// Time in nanoseconds for which the process slept or waited for another process.
    pub waited: AtomicU64,
    /// Sum of the latencies of the process's accesses in nanoseconds. `max` is the longest one.
    pub sum: AtomicU64,
    pub max: AtomicU64,
    /// Time spent in fork, in nanoseconds.
    pub forking: AtomicU64,
    /// Time spent in madvise and similar calls, in nanoseconds.
    pub advising: AtomicU64,
    /// Number of bytes that the process asked the kernel to reclaim. The next two fields are the number of bytes
    /// reclaimed and the time that this took, in nanoseconds.
    pub asked: AtomicU64,
    pub taken: AtomicU64,
    pub reclaiming: AtomicU64,
    /// Number of page faults without I/O. `major` is the number of page faults with I/O.
    pub minor: AtomicU64,
    pub major: AtomicU64,
    reason: [AtomicU64; REASON_BYTES / 8],
    reason_length: AtomicU32,
    coarse: [AtomicU32; COARSE],
}

/// The board of a workload.
pub(crate) struct Board {
    memory: Mapping,
    lines: u32,
}

impl Board {
    /// Creates a board with `lines` lines. `left` contains, for each mark, the number of processes that pass it.
    pub(crate) fn new(lines: u32, left: &[u32]) -> Result<Self, Stop> {
        let size = size_of::<Head>() + lines as usize * size_of::<Line>();
        let memory = Mapping::shared(Pages(size.div_ceil(PAGE) as u64))?;
        // Locked if the process has the privilege: a fault on it would be charged to the process that reports.
        let _ = memory.lock();
        let board = Self { memory, lines };
        let head = board.head();
        head.min.store(u64::MAX, Ordering::Relaxed);
        for (mark, count) in head.left.iter().zip(left) {
            mark.store(*count, Ordering::Relaxed);
        }
        Ok(board)
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is large enough and page aligned, and a head is all atomics, for which every bit pattern is
        // valid.
        unsafe { &*self.memory.start().cast::<Head>() }
    }

    /// Returns the line with this number. Panics if there is none.
    pub(crate) fn line(&self, number: u32) -> &Line {
        assert!(number < self.lines, "no line {number}");
        let at = size_of::<Head>() + number as usize * size_of::<Line>();
        // SAFETY: the mapping is large enough for all lines, both sizes are multiples of 8, and a line is all atomics.
        unsafe { &*self.memory.start().add(at).cast::<Line>() }
    }

    /// Returns the lines in use.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line> {
        let used = self.head().used.load(Ordering::Acquire).min(self.lines);
        (0..used).map(|number| self.line(number))
    }

    /// Takes an unused line for a new process and returns its number; `None` if all lines are in use.
    pub(crate) fn take(&self) -> Option<u32> {
        let number = self.head().used.fetch_add(1, Ordering::AcqRel);
        (number < self.lines).then_some(number)
    }

    /// Reports that this process is ready, and waits for the start. Returns the time of the start.
    pub(crate) fn arrive(&self) -> Nanos {
        let head = self.head();
        head.ready.fetch_add(1, Ordering::AcqRel);
        wake(&head.ready);
        while head.open.load(Ordering::Acquire) == 0 {
            wait(&head.open, 0, None);
        }
        Nanos(head.started.load(Ordering::Acquire))
    }

    /// Returns true if at least `processes` processes are ready to start. If not, waits a moment and returns false.
    pub(crate) fn are_ready(&self, processes: u32) -> bool {
        let ready = &self.head().ready;
        let now = ready.load(Ordering::Acquire);
        if now >= processes {
            return true;
        }
        wait(ready, now, Some(POLL));
        false
    }

    /// Lets all processes start at once. `now` is the time on the trial's clock.
    pub(crate) fn start(&self, now: Nanos) {
        let head = self.head();
        head.started.store(now.0, Ordering::Release);
        head.open.store(1, Ordering::Release);
        wake(&head.open);
    }

    /// Tells all processes to stop. They do so at their next step.
    pub(crate) fn stop(&self) {
        let head = self.head();
        head.stop.store(1, Ordering::Release);
        for mark in &head.left {
            wake(mark);
        }
    }

    /// Returns true if the processes have been told to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.head().stop.load(Ordering::Acquire) != 0
    }

    /// Returns true if every process has passed the mark.
    pub(crate) fn is_passed(&self, mark: usize) -> bool {
        self.head()
            .left
            .get(mark)
            .is_none_or(|left| left.load(Ordering::Acquire) == 0)
    }

    /// Records that the process of this line has passed a mark. Passing it again has no effect.
    pub(crate) fn pass(&self, line: &Line, mark: usize) {
        let bit = 1_u64 << (mark % 64);
        let before = line.passed.fetch_or(bit, Ordering::AcqRel);
        if before & bit != 0 {
            return;
        }
        if let Some(left) = self.head().left.get(mark) {
            left.fetch_sub(1, Ordering::AcqRel);
            wake(left);
        }
    }

    /// Waits until every process has passed the mark. Returns false if the workload ends first.
    pub(crate) fn wait_for(&self, mark: usize) -> bool {
        while !self.is_passed(mark) {
            if self.is_stopped() {
                return false;
            }
            if let Some(left) = self.head().left.get(mark) {
                let now = left.load(Ordering::Acquire);
                if now > 0 {
                    wait(left, now, Some(POLL));
                }
            }
        }
        !self.is_stopped()
    }

    /// Adds the latency of an access, in nanoseconds, to the board and to the line of the process.
    pub(crate) fn add(&self, line: &Line, nanos: u64) {
        let head = self.head();
        let relaxed = Ordering::Relaxed;
        if let Some(bucket) = head.dense.get(Histogram::index(nanos) as usize) {
            bucket.fetch_add(1, relaxed);
        }
        head.sum.fetch_add(nanos, relaxed);
        head.min.fetch_min(nanos, relaxed);
        head.max.fetch_max(nanos, relaxed);
        line.sum.fetch_add(nanos, relaxed);
        line.max.fetch_max(nanos, relaxed);
        line.accesses.fetch_add(1, relaxed);
        line.steps.fetch_add(1, relaxed);
        line.coarse[coarse(nanos)].fetch_add(1, relaxed);
    }

    /// Returns the histogram of the latencies of all processes.
    pub(crate) fn histogram(&self) -> Histogram {
        let head = self.head();
        let dense: Vec<u64> = head
            .dense
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .collect();
        let value = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let max = value(&head.max);
        Histogram::from_dense(&dense, value(&head.sum), value(&head.min).min(max), max)
    }
}

impl Line {
    /// Returns the state of the process.
    pub(crate) fn state(&self) -> State {
        let state = self.state.load(Ordering::Acquire) as usize;
        State::ALL.get(state).copied().unwrap_or(State::Unused)
    }

    /// Sets the state of the process.
    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::Release);
    }

    /// Stores the reason why the process failed. Long reasons are cut.
    pub(crate) fn say(&self, reason: &str) {
        let bytes = &reason.as_bytes()[..reason.len().min(REASON_BYTES)];
        for (word, chunk) in self.reason.iter().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Ordering::Release);
        }
        let length = number::narrow(bytes.len() as u64);
        self.reason_length.store(length, Ordering::Release);
    }

    /// Returns the reason why the process failed.
    pub(crate) fn reason(&self) -> String {
        let words = self
            .reason
            .iter()
            .map(|word| word.load(Ordering::Acquire).to_le_bytes());
        let bytes: Vec<u8> = words
            .flatten()
            .take(self.reason_length.load(Ordering::Acquire) as usize)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns quantile `q` of the process's latencies in nanoseconds: the upper bound of the bucket that contains it,
    /// which is at most a quarter too large, or the maximum if it is smaller. 0 if there are no latencies.
    pub(crate) fn quantile(&self, q: f64) -> u64 {
        let counts = self
            .coarse
            .iter()
            .map(|count| u64::from(count.load(Ordering::Relaxed)));
        let total: u64 = counts.clone().sum();
        let rank = number::floor((q.clamp(0.0, 1.0) * total as f64).ceil()).max(1);
        let mut seen = 0;
        for (index, count) in counts.enumerate() {
            seen += count;
            if seen >= rank {
                return upper(index).min(self.max.load(Ordering::Relaxed));
            }
        }
        0
    }
}

/// Returns the index of a latency's bucket, from its power of two and the two bits below the highest bit.
fn coarse(nanos: u64) -> usize {
    let nanos = nanos.max(4);
    let power = nanos.ilog2();
    let part = number::index(nanos >> (power - 2) & 3);
    (power as usize * 4 + part).min(COARSE - 1)
}

/// Returns the largest latency in a bucket, in nanoseconds.
fn upper(index: usize) -> u64 {
    let (power, part) = (index / 4, index % 4);
    if power < 2 {
        return 4;
    }
    ((part as u64 + 5) << (power - 2)) - 1
}

/// Waits until the word differs from `seen`, another process wakes this one, or `time` has passed.
fn wait(word: &AtomicU32, seen: u32, time: Option<Nanos>) {
    let time = time.map(|span| libc::timespec {
        tv_sec: number::signed(span.0 / 1_000_000_000),
        tv_nsec: number::signed(span.0 % 1_000_000_000),
    });
    let pointer = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word lives in shared memory for the whole call, and the time is null or valid.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            pointer,
            0,
            0,
        );
    }
}

/// Wakes all processes that wait on the word.
fn wake(word: &AtomicU32) {
    // SAFETY: the word lives in shared memory for the whole call; waking writes nothing to it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE,
            i32::MAX,
            0,
            0,
            0,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_lies_in_its_bucket_and_quantiles_are_near() {
        let board = Board::new(2, &[1]).unwrap();
        let line = board.line(board.take().unwrap());
        for nanos in 1..=10_000 {
            let bucket = coarse(nanos);
            assert!(nanos <= upper(bucket), "{nanos}");
            assert!(bucket == 8 || nanos > upper(bucket - 1), "{nanos}");
            board.add(line, nanos);
        }
        for (q, wanted) in [(0.5, 5_000), (0.99, 9_900), (1.0, 10_000)] {
            let found = line.quantile(q);
            assert!((wanted..=wanted * 5 / 4).contains(&found), "{q}: {found}");
        }
        let all = board.histogram();
        assert_eq!((all.count, all.min, all.max), (10_000, 1, 10_000));
        line.say("it had enough");
        assert_eq!(line.reason(), "it had enough");
    }

    #[test]
    fn a_mark_is_passed_once_by_each_process() {
        let board = Board::new(2, &[2]).unwrap();
        let (one, two) = (board.line(0), board.line(1));
        board.pass(one, 0);
        board.pass(one, 0);
        assert!(!board.is_passed(0));
        board.pass(two, 0);
        assert!(board.is_passed(0) && board.wait_for(0));
        board.stop();
        assert!(!board.wait_for(0));
    }
}
