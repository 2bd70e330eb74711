//! Records references to the pages of programs, in the form that `profile/src/references.rs` describes.

use crate::form::{
    AT_BYTES, AT_COUNTS, AT_CUT, AT_END, AT_OWN, AT_RECORDED, AT_WORKLOAD, EVENT, HEADER_NUMBERS,
    KINDS, MAGIC, MAPPING, MAX_NAME, NEW, REPEAT, REPEAT_MASK, SLOTS, TASK, TIME, key, of_key,
    slot_of,
};

/// Size of the buffer, in bytes.
const BUFFER: usize = 1 << 16;
/// Maximum number of bytes that are added at once: a reference is a task, a time and two codes with four numbers; a
/// mapping is five numbers and a name.
const LONGEST: usize = 64 + MAX_NAME;
/// Number of instructions after which the time is written again: times of references are precise to this number.
const STEP: u64 = 1024;

/// When and by whom a reference is made.
#[derive(Clone, Copy)]
pub struct Moment {
    /// Instructions since the start of the scenario.
    pub at: u64,
    /// Number of the task.
    pub task: u32,
    /// Number of the task's address space.
    pub space: u32,
}

/// Codes the references of one trial.
pub struct Recorder<W> {
    /// Receives the header's empty place first, then the codes in pieces.
    put: W,
    buffer: [u8; BUFFER],
    used: usize,
    /// Number of bytes that may still be recorded.
    left: u64,
    /// Number of bytes passed to `put`, without the header.
    bytes: u64,
    slots: [u64; SLOTS],
    bases: [u64; KINDS],
    /// Key of the last reference; `u64::MAX` if the next one cannot be its repetition.
    key: u64,
    /// Number of repetitions of the last reference that are not coded yet.
    run: u64,
    moment: Moment,
    counts: [u64; KINDS],
    /// Number of recorded references, and the time of the last one, once the record is cut.
    cut: Option<(u64, u64)>,
    /// Number of accesses of the kernel to its own memory.
    pub own: u64,
}

impl<W: FnMut(&[u8])> Recorder<W> {
    /// Creates a recorder whose record has at most `left` bytes.
    pub fn new(left: u64, put: W) -> Self {
        Self {
            put,
            buffer: [0; BUFFER],
            used: 0,
            left,
            bytes: 0,
            slots: [u64::MAX; SLOTS],
            bases: [0; KINDS],
            key: u64::MAX,
            run: 0,
            moment: Moment {
                at: 0,
                task: u32::MAX,
                space: u32::MAX,
            },
            counts: [0; KINDS],
            cut: None,
            own: 0,
        }
    }

    /// Starts the record.
    pub fn begin(&mut self) {
        (self.put)(&[0; HEADER_NUMBERS * 8]);
    }

    /// Records a repetition of the last reference. The caller must know that page, kind and task are the same.
    #[inline]
    pub fn repeat(&mut self) {
        self.run += 1;
    }

    /// Records a reference.
    pub fn add(&mut self, page: u64, kind: u8, moment: Moment) {
        let key = key(page, kind);
        let is_other = (moment.task, moment.space) != (self.moment.task, self.moment.space);
        if key == self.key && !is_other {
            self.run += 1;
            return;
        }
        self.end_run();
        self.key = key;
        self.counts[kind as usize % KINDS] += 1;
        // This reference is counted already, but not recorded yet.
        if !self.has_room(1) {
            return;
        }
        if is_other {
            self.code(TASK);
            self.number(moment.task.into());
            self.number(moment.space.into());
            self.moment.task = moment.task;
            self.moment.space = moment.space;
        }
        self.pass(moment.at);
        let slot = slot_of(key) % SLOTS;
        if self.slots[slot] == key {
            self.code(slot as u8);
            return;
        }
        self.slots[slot] = key;
        let base = &mut self.bases[kind as usize % KINDS];
        let distance = page.wrapping_sub(*base);
        *base = page;
        self.code(NEW + kind);
        self.number((distance << 1) ^ (distance.cast_signed() >> 63).cast_unsigned());
    }

    /// Records that the kernel did something with a page.
    pub fn event(&mut self, kind: u8, space: u32, page: u64, at: u64) {
        self.end_run();
        if !self.has_room(0) {
            return;
        }
        self.pass(at);
        self.code(EVENT);
        self.code(kind);
        self.number(space.into());
        self.number(page);
    }

    /// Records a mapping: four numbers as the code [`MAPPING`] has them, and its name.
    pub fn mapping(&mut self, numbers: [u64; 4], name: &[u8]) {
        self.end_run();
        if !self.has_room(0) {
            return;
        }
        let name = name.get(..MAX_NAME).unwrap_or(name);
        self.code(MAPPING);
        for number in numbers {
            self.number(number);
        }
        self.number(name.len() as u64);
        for byte in name {
            self.code(*byte);
        }
    }

    /// Records a code with at most four numbers.
    pub fn numbers(&mut self, code: u8, numbers: &[u64], at: u64) {
        self.end_run();
        if !self.has_room(0) {
            return;
        }
        self.pass(at);
        self.code(code);
        for number in numbers.iter().take(4) {
            self.number(*number);
        }
    }

    /// Makes room in the buffer for the longest code. Returns false if the record is cut, now or before: its maximum size
    /// is reached. `waiting` is the number of references that are counted but not recorded yet.
    fn has_room(&mut self, waiting: u64) -> bool {
        if self.cut.is_some() {
            return false;
        }
        if self.used + LONGEST > BUFFER {
            self.flush();
        }
        if self.bytes + (self.used + LONGEST) as u64 > self.left {
            let recorded = self.counts.iter().sum::<u64>() - waiting;
            self.cut = Some((recorded, self.moment.at));
            return false;
        }
        true
    }

    /// Codes the time, if it has changed enough.
    fn pass(&mut self, at: u64) {
        let since = at.saturating_sub(self.moment.at);
        if since >= STEP {
            self.code(TIME);
            self.number(since);
            self.moment.at = at;
        }
    }

    /// Codes the repetitions of the last reference.
    fn end_run(&mut self) {
        let run = core::mem::take(&mut self.run);
        if run == 0 || self.key == u64::MAX {
            return;
        }
        self.counts[of_key(self.key).1 as usize % KINDS] += run;
        if self.cut.is_some() {
            return;
        }
        let rest = run - 1;
        if rest < u64::from(REPEAT_MASK) {
            self.code(REPEAT | rest as u8);
        } else {
            self.code(REPEAT | REPEAT_MASK);
            self.number(rest - u64::from(REPEAT_MASK));
        }
    }

    #[inline]
    fn code(&mut self, code: u8) {
        self.buffer[self.used % BUFFER] = code;
        self.used += 1;
    }

    #[inline]
    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.code(number as u8 | 0x80);
            number >>= 7;
        }
        self.code(number as u8);
    }

    fn flush(&mut self) {
        let used = self.used.min(BUFFER);
        (self.put)(&self.buffer[..used]);
        self.bytes += used as u64;
        self.used = 0;
    }

    /// Ends the record at this time. Returns the header. `workload` is the number of the task that ran the scenario.
    pub fn end(&mut self, at: u64, workload: u32) -> [u64; HEADER_NUMBERS] {
        self.end_run();
        self.key = u64::MAX;
        self.flush();
        let all = self.counts.iter().sum();
        let (recorded, until) = self.cut.unwrap_or((all, at));
        let mut header = [0; HEADER_NUMBERS];
        header[0] = MAGIC;
        header[AT_END] = at;
        header[AT_CUT] = until.min(at);
        header[AT_RECORDED] = recorded;
        header[AT_COUNTS..AT_COUNTS + KINDS].copy_from_slice(&self.counts);
        header[AT_OWN] = self.own;
        header[AT_WORKLOAD] = workload.into();
        header[AT_BYTES] = self.bytes;
        header
    }
}
