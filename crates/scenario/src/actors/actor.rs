//! A running process of a workload.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pagetide_quantity::{Bytes, Nanos};
use pagetide_reference::Rng;
use pagetide_workload::{Access, Advice, Amount, By, Phase, Process, Segment, Workload};

use crate::clock::{self, Clock};
use crate::error::{ScenarioError, Stop};
use crate::groups::MemoryGroup;
use crate::harness::LockedBuffer;
use crate::number;
use crate::page::PAGE;
use crate::touch::WRITE;
use crate::workers::Usage;

use super::board::{Board, Line, State};
use super::memory::{Library, Mapped};

/// Maximum number of references that are generated at a time.
const BATCH: usize = 256;
/// Mask of the bits of a reference that contain the page number.
const PAGE_BITS: u32 = WRITE - 1;

/// Data that all processes of a workload share.
pub(crate) struct Stage<'w> {
    pub workload: &'w Workload,
    pub library: Library<'w>,
    pub board: Board,
    /// Memory cgroups of the workload, by the names of their folders.
    pub groups: BTreeMap<String, MemoryGroup>,
    /// Amount of memory to which sizes in percent refer.
    pub memory: Bytes,
    pub clock: Clock,
    pub seed: u64,
    /// Names for which processes can wait (marks). The index of a name is also its index on the board.
    pub names: Vec<&'w str>,
}

/// A process of the workload, or a child that one of its processes has forked.
pub(crate) struct Actor<'s> {
    stage: &'s Stage<'s>,
    process: &'s Process,
    /// Index of the kind of process in the workload, and number of the process among those of the same kind.
    index: usize,
    number: u32,
    line: u32,
    /// PIDs of the children that have not been joined, each with the index of its line on the board.
    children: Vec<(libc::pid_t, u32)>,
    /// Number of access phases started so far. It is added to the seed, so that phases get different random numbers.
    phases: u64,
}

/// Whether a process goes on with its phases, or stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Go {
    On,
    /// The process must stop, because the time limit is reached.
    Stop,
}

impl Stage<'_> {
    /// Starts process number `number` of the kind at `index`, and returns its PID.
    pub(crate) fn start(&self, index: usize, number: u32) -> Result<libc::pid_t, Stop> {
        let process = &self.workload.processes[index];
        let line = self.board.take().ok_or_else(|| too_many(process))?;
        self.describe(line, index, number, 0);
        // SAFETY: scenarios run in processes of one thread, so no lock can be held in the child.
        match unsafe { libc::fork() } {
            0 => {
                let mut actor = Actor {
                    stage: self,
                    process,
                    index,
                    number,
                    line,
                    children: Vec::with_capacity(64),
                    phases: 0,
                };
                end(self, line, catch_unwind(AssertUnwindSafe(|| actor.live())))
            }
            -1 => Err(Stop::last(format!(
                "cannot start {} {number}",
                process.name
            ))),
            pid => Ok(pid),
        }
    }

    fn describe(&self, line: u32, index: usize, number: u32, depth: u32) {
        let line = self.board.line(line);
        line.process
            .store(number::narrow(index as u64), Ordering::Relaxed);
        line.number.store(number, Ordering::Relaxed);
        line.depth.store(depth, Ordering::Relaxed);
        line.begin.store(self.clock.now().0, Ordering::Relaxed);
        line.set_state(State::Running);
    }

    /// Returns the index of a mark. The mark exists, because the workload was validated before.
    fn mark(&self, name: &str) -> usize {
        self.names
            .iter()
            .position(|known| *known == name)
            .unwrap_or(usize::MAX)
    }

    /// Passes all marks of a process that has ended, so that no process waits for it. Does nothing for a forked child.
    pub(crate) fn pass_all(&self, line: &Line) {
        if line.depth.load(Ordering::Relaxed) > 0 {
            return;
        }
        let index = line.process.load(Ordering::Relaxed) as usize;
        if let Some(process) = self.workload.processes.get(index) {
            for mark in process.marks() {
                self.board.pass(line, self.mark(mark));
            }
            self.board.pass(line, self.mark(&process.name));
        }
    }
}

impl Actor<'_> {
    fn line(&self) -> &Line {
        self.stage.board.line(self.line)
    }

    /// Maps the segments, waits for the start, and does all phases.
    fn live(&mut self) -> Result<(), Stop> {
        let stage = self.stage;
        // Messages of the kernel identify processes by this name; the kernel keeps its first 15 bytes.
        if let Ok(name) = std::ffi::CString::new(self.process.name.as_str()) {
            // SAFETY: the name is a C string that lives through the call.
            unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        }
        if let Some(name) = stage.workload.group_of(self.index, self.number)
            && let Some(group) = stage.groups.get(&name)
        {
            group.join()?;
        }
        let mut segments = Vec::with_capacity(self.process.segments.len());
        for segment in &self.process.segments {
            segments.push(
                stage
                    .library
                    .map(segment, &self.process.name, self.number)?,
            );
        }
        let mut tools = Tools::new()?;
        let started = stage.board.arrive();
        self.line().begin.store(started.0, Ordering::Relaxed);
        if self.take_turn() == Go::On {
            let start = self.process.start.0 + self.process.stagger.0 * u64::from(self.number);
            self.sleep(Nanos(start));
            self.play(&self.process.phases, &segments, &mut tools)?;
        }
        self.leave();
        Ok(())
    }

    /// Records that the process has ended, with its page faults and the time.
    fn leave(&self) {
        let line = self.line();
        let usage = Usage::own();
        line.minor.store(usage.minor_faults, Ordering::Relaxed);
        line.major.store(usage.major_faults, Ordering::Relaxed);
        line.end.store(self.stage.clock.now().0, Ordering::Relaxed);
        line.set_state(if self.stage.board.is_stopped() {
            State::Unfinished
        } else {
            State::Ended
        });
    }

    /// Waits until the process with the number before has passed the mark after which this one may begin.
    fn take_turn(&self) -> Go {
        let stage = self.stage;
        let Some(turn) = self.process.turn.as_deref().filter(|_| self.number > 0) else {
            return Go::On;
        };
        let bit = 1_u64 << (stage.mark(turn) % 64);
        let before = |line: &&Line| {
            line.process.load(Ordering::Relaxed) as usize == self.index
                && line.number.load(Ordering::Relaxed) == self.number - 1
                && line.depth.load(Ordering::Relaxed) == 0
        };
        let Some(before) = stage.board.lines().find(before) else {
            return Go::On;
        };
        self.waiting(|| {
            while before.passed.load(Ordering::Acquire) & bit == 0 {
                if stage.board.is_stopped() {
                    return Go::Stop;
                }
                clock::sleep(Nanos::from_millis(1));
            }
            Go::On
        })
    }

    /// Runs `work`, in which the process sleeps or waits, and adds its duration to the time waited.
    fn waiting<T>(&self, work: impl FnOnce() -> T) -> T {
        let line = self.line();
        let start = self.stage.clock.now();
        line.waits.store(1, Ordering::Release);
        let value = work();
        line.waits.store(0, Ordering::Release);
        let time = self.stage.clock.now().since(start);
        line.waited.fetch_add(time.0, Ordering::Relaxed);
        value
    }

    fn sleep(&self, time: Nanos) {
        if time.0 == 0 {
            return;
        }
        self.waiting(|| {
            // The sleep is done in short steps, so that the process notices the end of the workload.
            let slice = Nanos::from_millis(200);
            let mut left = time;
            while left > slice && !self.stage.board.is_stopped() {
                clock::sleep(slice);
                left = left.since(slice);
            }
            clock::sleep(left.min(slice));
        });
    }

    fn play(
        &mut self,
        phases: &[Phase],
        segments: &[Mapped<'_>],
        tools: &mut Tools,
    ) -> Result<Go, Stop> {
        for phase in phases {
            if self.stage.board.is_stopped() || self.step(phase, segments, tools)? == Go::Stop {
                return Ok(Go::Stop);
            }
        }
        Ok(Go::On)
    }

    fn step(
        &mut self,
        phase: &Phase,
        segments: &[Mapped<'_>],
        tools: &mut Tools,
    ) -> Result<Go, Stop> {
        let find = |name: &str| find(segments, name);
        match phase {
            Phase::Fill { segment, by, part } => {
                return self.fill(find(segment)?, *by, *part, tools);
            }
            Phase::Access(access) => return self.access(find(&access.segment)?, access, tools),
            Phase::Copy { from, to } => return self.copy(find(from)?, find(to)?),
            Phase::Sync { segment } => {
                if let Some(file) = &find(segment)?.file {
                    file.sync_data()
                        .map_err(Stop::system(format!("cannot sync {segment}")))?;
                }
            }
            Phase::Advise {
                segment,
                advice,
                part,
            } => self.advise(find(segment)?, *advice, *part)?,
            Phase::Fork { count, phases } => {
                for _ in 0..*count {
                    self.fork(phases, segments, tools)?;
                }
            }
            Phase::Join {} => self.join()?,
            Phase::Mark { name } => self.stage.board.pass(self.line(), self.stage.mark(name)),
            Phase::Wait { r#for } => {
                let mark = self.stage.mark(r#for);
                if !self.waiting(|| self.stage.board.wait_for(mark)) {
                    return Ok(Go::Stop);
                }
            }
            Phase::Pause { time } => self.sleep(*time),
            Phase::Reclaim { group, amount, .. } => {
                self.reclaim(group, amount.of(self.stage.memory))?;
            }
            Phase::Repeat { times, phases } => {
                for _ in 0..*times {
                    if self.play(phases, segments, tools)? == Go::Stop {
                        return Ok(Go::Stop);
                    }
                }
            }
        }
        Ok(Go::On)
    }

    fn fill(
        &self,
        on: &Mapped<'_>,
        by: By,
        part: Option<[f64; 2]>,
        tools: &mut Tools,
    ) -> Result<Go, Stop> {
        let [begin, end] = Segment::part_of(on.memory.pages(), part);
        for page in begin..end {
            if page.is_multiple_of(64) && self.stage.board.is_stopped() {
                return Ok(Go::Stop);
            }
            match (&on.file, by) {
                (Some(file), By::Call) => {
                    on.filler.write(tools.page_mut(), page);
                    file.write_all_at(tools.page_mut(), page * PAGE as u64)
                        .map_err(Stop::system(format!("cannot write {}", on.segment.name)))?;
                }
                _ => on.memory.fill_page(on.filler, page),
            }
            self.line().steps.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Go::On)
    }

    fn access(&mut self, on: &Mapped<'_>, access: &Access, tools: &mut Tools) -> Result<Go, Stop> {
        let stage = self.stage;
        let [begin, end] = Segment::part_of(on.memory.pages(), access.part);
        let pages = number::narrow(end - begin);
        self.phases += 1;
        let label = format!(
            "workload {} {} {}",
            self.process.name, self.number, self.line
        );
        let mut rng = Rng::stream(stage.seed.wrapping_add(self.phases), &label);
        let mut references = access
            .pattern
            .references(pages, access.count.over(pages.into()), rng.next_u64())
            .map_err(ScenarioError::from)?;
        let writes = number::floor(access.writes * 9_007_199_254_740_992.0);
        let until = access.until.as_deref().map(|name| stage.mark(name));
        let size = if access.pause.0 > 0 {
            (access.every as usize).min(BATCH)
        } else {
            BATCH
        };
        let mut since_pause = 0;
        loop {
            if stage.board.is_stopped() {
                return Ok(Go::Stop);
            }
            if until.is_some_and(|mark| stage.board.is_passed(mark)) {
                return Ok(Go::On);
            }
            let room = if access.pause.0 > 0 {
                size.min((access.every - since_pause) as usize)
            } else {
                size
            };
            let filled = references.fill(&mut tools.batch[..room]);
            if filled == 0 {
                return Ok(Go::On);
            }
            for at in 0..filled {
                let page = begin + u64::from(tools.batch[at] & PAGE_BITS);
                let is_write = writes > 0 && rng.next_u64() >> 11 < writes;
                let start = stage.clock.now();
                tools.touch(on, page, is_write, access)?;
                let time = stage.clock.now().since(start);
                stage.board.add(self.line(), time.0);
            }
            since_pause += number::narrow(filled as u64);
            if access.pause.0 > 0 && since_pause >= access.every {
                since_pause = 0;
                self.sleep(access.pause);
            }
        }
    }

    fn copy(&self, from: &Mapped<'_>, to: &Mapped<'_>) -> Result<Go, Stop> {
        let Some(file) = &to.file else {
            return Ok(Go::On);
        };
        for page in 0..from.memory.pages() {
            if page.is_multiple_of(64) && self.stage.board.is_stopped() {
                return Ok(Go::Stop);
            }
            // SAFETY: the page lies within the mapping. Other processes may write to it meanwhile if it is shared, but the
            // slice is only handed to the kernel, which copies whatever is there.
            let bytes = unsafe { std::slice::from_raw_parts(from.memory.page(page), PAGE) };
            file.write_all_at(bytes, page * PAGE as u64)
                .map_err(Stop::system(format!(
                    "cannot copy {} to {}",
                    from.segment.name, to.segment.name
                )))?;
            self.line().steps.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Go::On)
    }

    fn advise(&self, on: &Mapped<'_>, advice: Advice, part: Option<[f64; 2]>) -> Result<(), Stop> {
        let [begin, end] = Segment::part_of(on.memory.pages(), part);
        let start = self.stage.clock.now();
        let is_taken = match (advice.number(), &on.file) {
            (Some(number), _) => on.memory.advise_part(begin, end - begin, number),
            (None, Some(file)) => {
                let bytes = |pages: u64| number::signed(pages * PAGE as u64);
                // SAFETY: the descriptor is open; advice changes no content.
                unsafe {
                    libc::posix_fadvise(
                        file.as_raw_fd(),
                        bytes(begin),
                        bytes(end - begin),
                        libc::POSIX_FADV_DONTNEED,
                    ) == 0
                }
            }
            (None, None) => true,
        };
        let time = self.stage.clock.now().since(start);
        self.line().advising.fetch_add(time.0, Ordering::Relaxed);
        if is_taken {
            return Ok(());
        }
        Err(Stop::last(format!(
            "cannot give the advice {advice:?} on {}",
            on.segment.name
        )))
    }

    fn fork(
        &mut self,
        phases: &[Phase],
        segments: &[Mapped<'_>],
        tools: &mut Tools,
    ) -> Result<(), Stop> {
        let stage = self.stage;
        let line = stage.board.take().ok_or_else(|| too_many(self.process))?;
        let depth = self.line().depth.load(Ordering::Relaxed) + 1;
        stage.describe(line, self.index, self.number, depth);
        let start = stage.clock.now();
        // SAFETY: processes of a workload have one thread, so no lock can be held in the child.
        let pid = unsafe { libc::fork() };
        match pid {
            0 => {
                self.line = line;
                self.children.clear();
                let work = || {
                    self.play(phases, segments, tools)?;
                    self.leave();
                    Ok(())
                };
                end(stage, line, catch_unwind(AssertUnwindSafe(work)))
            }
            -1 => {
                stage.board.line(line).set_state(State::Unused);
                Err(Stop::last(format!("cannot fork in {}", self.process.name)))
            }
            pid => {
                let time = stage.clock.now().since(start);
                self.line().forking.fetch_add(time.0, Ordering::Relaxed);
                self.line().steps.fetch_add(1, Ordering::Relaxed);
                stage
                    .board
                    .line(line)
                    .pid
                    .store(pid.cast_unsigned(), Ordering::Release);
                self.children.push((pid, line));
                Ok(())
            }
        }
    }

    fn join(&mut self) -> Result<(), Stop> {
        let children = std::mem::take(&mut self.children);
        self.waiting(|| {
            for (pid, line) in children {
                let status = wait_for(pid)?;
                note_end(self.stage, self.stage.board.line(line), status);
            }
            Ok(())
        })
    }

    fn reclaim(&self, group: &str, amount: Bytes) -> Result<(), Stop> {
        let own = self.stage.workload.group_of(self.index, self.number);
        let group = self
            .stage
            .groups
            .get(group)
            .or_else(|| self.stage.groups.get(&own?));
        let Some(group) = group else {
            return Ok(());
        };
        let done = group.reclaim(self.stage.clock, amount)?;
        let line = self.line();
        let add = |word: &AtomicU64, value: u64| word.fetch_add(value, Ordering::Relaxed);
        add(&line.asked, done.asked.0);
        add(&line.taken, done.taken.0);
        add(&line.reclaiming, done.time.0);
        add(&line.steps, 1);
        Ok(())
    }
}

fn too_many(process: &Process) -> Stop {
    Stop::Refused(ScenarioError::Contradiction {
        scenario: "workload".to_owned(),
        why: format!(
            "{} forks more processes than were counted, please report it",
            process.name
        ),
    })
}

fn find<'m, 'w>(segments: &'m [Mapped<'w>], name: &str) -> Result<&'m Mapped<'w>, Stop> {
    segments
        .iter()
        .find(|mapped| mapped.segment.name == name)
        .ok_or_else(|| {
            Stop::Refused(ScenarioError::Contradiction {
                scenario: "workload".to_owned(),
                why: format!("it has no segment {name}: add one"),
            })
        })
}

/// Buffers of a process, allocated once.
struct Tools {
    batch: LockedBuffer<u32>,
    page: LockedBuffer<u8>,
}

impl Tools {
    fn new() -> Result<Self, Stop> {
        Ok(Self {
            batch: LockedBuffer::new(BATCH)?,
            page: LockedBuffer::new(PAGE)?,
        })
    }

    fn page_mut(&mut self) -> &mut [u8] {
        &mut self.page
    }

    /// Makes one access.
    #[inline]
    fn touch(
        &mut self,
        on: &Mapped<'_>,
        page: u64,
        is_write: bool,
        access: &Access,
    ) -> Result<(), Stop> {
        let length = match access.amount {
            Amount::Word => 8,
            Amount::Page => PAGE,
        };
        if let (By::Call, Some(file)) = (access.by, &on.file) {
            let at = page * PAGE as u64;
            let bytes = &mut self.page[..PAGE];
            let done = if is_write {
                on.filler.write(bytes, page);
                file.write_all_at(&bytes[..length], at)
            } else {
                file.read_at(&mut bytes[..length], at).map(drop)
            };
            return done.map_err(Stop::system(format!("cannot access {}", on.segment.name)));
        }
        match (access.amount, is_write) {
            (Amount::Word, false) => {
                on.memory.read_page(page);
            }
            (Amount::Word, true) => on.memory.write_word(page, page | u64::from(WRITE)),
            (Amount::Page, true) => on.memory.fill_page(on.filler, page),
            (Amount::Page, false) => on.memory.copy_out(page, &mut self.page),
        }
        Ok(())
    }
}

/// Waits for the end of a child and returns its status.
fn wait_for(pid: libc::pid_t) -> Result<libc::c_int, Stop> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid to write to, and the process is this one's child, not yet reaped.
        match unsafe { libc::waitpid(pid, &raw mut status, 0) } {
            -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            -1 => return Err(Stop::last("cannot wait for a child")),
            _ => return Ok(status),
        }
    }
}

/// Records the end of a process that was killed or failed and could not do so itself. Calls [`Stage::pass_all`] for it.
pub(crate) fn note_end(stage: &Stage<'_>, line: &Line, status: libc::c_int) {
    if line.state() == State::Running {
        line.end.store(stage.clock.now().0, Ordering::Relaxed);
        if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL {
            // At the time limit the main process kills those that do not stop.
            let is_stopped = stage.board.is_stopped();
            line.set_state(if is_stopped {
                State::Unfinished
            } else {
                State::Killed
            });
        } else {
            if libc::WIFSIGNALED(status) {
                line.say(&format!("it died of signal {}", libc::WTERMSIG(status)));
            }
            line.set_state(State::Failed);
        }
    }
    stage.pass_all(line);
}

/// Exits this process. If it failed, stores the reason in its line on the board.
fn end(stage: &Stage<'_>, line: u32, result: std::thread::Result<Result<(), Stop>>) -> ! {
    let line = stage.board.line(line);
    let reason = match result {
        // SAFETY: ends this process at once, without running what the parent registered for its exit.
        Ok(Ok(())) => unsafe { libc::_exit(0) },
        Ok(Err(stop)) => stop.to_string(),
        Err(_) => "it panicked".to_owned(),
    };
    line.say(&reason);
    // SAFETY: as above.
    unsafe { libc::_exit(1) }
}

/// Returns the value of a 64-bit counter.
pub(crate) fn value(word: &AtomicU64) -> u64 {
    word.load(Ordering::Acquire)
}

/// Returns the value of a 32-bit counter.
pub(crate) fn small(word: &AtomicU32) -> u32 {
    word.load(Ordering::Acquire)
}
