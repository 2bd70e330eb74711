//! References to the pages of programs: which callbacks are references, and to which address space they belong.

use alloc::boxed::Box;
use alloc::ffi::CString;
use alloc::vec::Vec;

use crate::damon;
use crate::form::{
    AT_TOLD, AT_UNKNOWN, FETCH, KERNEL_READ, KERNEL_WRITE, READ, REGION, REGIONS, WRITE,
};
use crate::heap;
use crate::mappings::{Mapping, Mappings, Places};
use crate::ram::Ram;
use crate::recorder::{Moment, Recorder};
use crate::tables::{Event, Page, Tables};

/// Base-2 logarithm of the size of a page.
const PAGE_SHIFT: u32 = 12;
/// Maximum size of an access in bytes. Source: Intel SDM, volume 1, 4.6.2 (512-bit vectors).
const LONGEST_ACCESS: u64 = 64;
/// Number of a page that does not exist.
const NO_PAGE: u64 = u64::MAX;

/// Address spaces of tasks. A task that is created shares the space of its parent, unless the kernel has copied that
/// space for it. A task that executes a program gets a new space.
#[derive(Default)]
struct Spaces {
    /// Space of each task.
    of: Vec<u32>,
    /// For each task: true if it is creating a task for which its space was copied.
    copied: Vec<bool>,
    /// Spaces of tasks that were created but have not run yet, in the order of their creation.
    waiting: Vec<u32>,
    /// Number of the next new space.
    next: u32,
}

impl Spaces {
    fn new_space(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Space of a task.
    fn of(&mut self, task: usize) -> u32 {
        while self.of.len() <= task {
            let space = self.new_space();
            self.of.push(space);
            self.copied.push(false);
        }
        self.of[task]
    }
}

/// What a task does to address spaces.
#[derive(Clone, Copy)]
pub enum Change {
    /// It copies its space for a task that it creates.
    Copies,
    /// It lets the created task run for the first time.
    Wakes,
    /// It executes another program.
    Executes,
}

/// Records references while the scenario runs.
pub struct Pages {
    recorder: Recorder<Box<dyn FnMut(&[u8])>>,
    out: CString,
    is_recording: bool,
    /// Page, description and data of the last reference's callback. [`NO_PAGE`] if the next one is no repetition.
    page: u64,
    access: u32,
    data: u64,
    /// Page of the code that is executed; [`NO_PAGE`] if it is not known.
    code: u64,
    spaces: Spaces,
    tables: Tables,
    /// Reads the mappings of address spaces; `None` if the guest's memory or its kernel's structures are not known.
    mappings: Option<(Ram, Mappings)>,
    /// Time at which the regions of DAMON were last recorded.
    monitored: u64,
}

impl Pages {
    /// Creates a record of at most `most` bytes in the file `out`. `flags` are those of all functions of the kernel. `None`
    /// if the file cannot be opened.
    pub fn new(out: CString, most: u64, flags: u32) -> Option<Self> {
        let mut file = heap::Writer::open(&out)?;
        let mut tables = Tables::new();
        tables.flags = flags;
        let put: Box<dyn FnMut(&[u8])> = Box::new(move |bytes| file.write(bytes));
        Some(Self {
            recorder: Recorder::new(most, put),
            out,
            is_recording: false,
            page: NO_PAGE,
            access: 0,
            data: 0,
            code: NO_PAGE,
            spaces: Spaces::default(),
            tables,
            mappings: None,
            monitored: 0,
        })
    }

    /// Makes it possible to read mappings.
    pub fn read_mappings(&mut self, ram: Ram, places: Places) {
        self.mappings = Some((ram, Mappings::new(places)));
    }

    /// Records the regions of DAMON, if it has added up since the last time. `saved` is where the stack pointer of its
    /// thread is saved, and `known` has this for all tasks.
    pub fn monitor(&mut self, saved: u64, known: &[(u64, usize)], at: u64) {
        let Some((ram, mappings)) = self.mappings.as_ref().filter(|_| self.is_recording) else {
            return;
        };
        let Some(view) = damon::view(ram, &mappings.places, saved) else {
            return;
        };
        // DAMON looks at pages many times before it adds up.
        if !view.is_fresh || at.saturating_sub(self.monitored) < view.interval / 2 {
            return;
        }
        self.monitored = at;
        self.page = NO_PAGE;
        let mut seen = Vec::new();
        for (saved, task) in known {
            let space = self.spaces.of(*task);
            if seen.contains(&space) {
                continue;
            }
            seen.push(space);
            let runs = damon::pages(ram, &mappings.places, *saved, ram.direct, &view.regions);
            for (first, pages) in runs {
                let numbers = [space.into(), first, pages];
                self.recorder.numbers(REGION, &numbers, at);
            }
        }
        let count = view.regions.len() as u64;
        self.recorder.numbers(REGIONS, &[count], at);
    }

    /// Records the mappings of a task's address space. `saved` is the address at which its stack pointer is saved.
    pub fn list_mappings(&mut self, task: usize, saved: u64) {
        let space = self.space(task);
        if !self.is_recording {
            return;
        }
        let Some((ram, mappings)) = &mut self.mappings else {
            return;
        };
        self.page = NO_PAGE;
        for mapping in mappings.list(ram, space, saved) {
            let Mapping {
                first,
                pages,
                offset,
                name,
            } = mapping;
            let numbers = [space.into(), first, pages, offset];
            self.recorder.mapping(numbers, &name);
        }
    }

    /// Returns true if the caller need not record this reference of a program's instruction: nothing is being recorded,
    /// or the reference repeats the last one. In the second case, this function has counted the repetition. The
    /// arguments are those of the callback: `data` is the page of the instruction.
    #[inline]
    pub fn repeats(&mut self, access: u32, at: u64, data: u64) -> bool {
        if !self.is_recording {
            return true;
        }
        let is_same = at >> PAGE_SHIFT == self.page
            && (access, data) == (self.access, self.data)
            && !ends_beyond(at, LONGEST_ACCESS);
        if is_same {
            self.recorder.repeat();
        }
        is_same
    }

    /// Records the reference of an instruction of a program. The access is a write if `is_store`, and has `size` bytes.
    #[inline]
    pub fn refer(
        &mut self,
        access: u32,
        at: u64,
        data: u64,
        (is_store, size): (bool, u64),
        moment: Moment,
    ) {
        self.execute(data, moment);
        let kind = if is_store { WRITE } else { READ };
        self.page = at >> PAGE_SHIFT;
        self.access = access;
        self.data = data;
        self.record(self.page, kind, moment);
        if ends_beyond(at, size) {
            self.page = NO_PAGE;
            self.record((at >> PAGE_SHIFT) + 1, kind, moment);
        }
    }

    /// Records that code of this page is executed.
    #[inline]
    pub fn execute(&mut self, page: u64, moment: Moment) {
        if self.is_recording && page != self.code {
            self.code = page;
            self.page = NO_PAGE;
            self.record(page, FETCH, moment);
        }
    }

    /// Records a reference of the kernel to the memory of a program. The access is as for [`Self::refer`].
    pub fn refer_by_kernel(&mut self, at: u64, (is_store, size): (bool, u64), moment: Moment) {
        if !self.is_recording {
            return;
        }
        self.page = NO_PAGE;
        let kind = if is_store { KERNEL_WRITE } else { KERNEL_READ };
        self.record(at >> PAGE_SHIFT, kind, moment);
        if ends_beyond(at, size) {
            self.record((at >> PAGE_SHIFT) + 1, kind, moment);
        }
    }

    /// Records a reference, and before it what the kernel did with its page.
    #[inline]
    fn record(&mut self, page: u64, kind: u8, moment: Moment) {
        let place = Page {
            space: moment.space,
            number: page,
        };
        self.end_check(moment);
        let event = self.tables.refer(place, moment.task as usize);
        self.event(event, moment);
        self.recorder.add(page, kind, moment);
    }

    fn event(&mut self, event: Option<Event>, moment: Moment) {
        if let Some(Event { kind, page }) = event {
            self.recorder
                .event(kind, page.space, page.number, moment.at);
        }
    }

    /// Records that a function of the kernel with these flags begins. `is_unmapping` is true if code that evicts pages
    /// calls it.
    pub fn begun(&mut self, flags: u32, is_unmapping: bool, moment: Moment) {
        if self.is_recording {
            self.page = NO_PAGE;
            // The check of a page comes before its eviction.
            self.end_check(moment);
            let task = moment.task as usize;
            self.tables.begun(flags, task, is_unmapping);
        }
    }

    /// Records the checks that are finished because something else happens.
    #[inline]
    fn end_check(&mut self, moment: Moment) {
        while self.tables.is_checking() {
            let event = self.tables.end_check();
            self.event(event, moment);
        }
    }

    /// Records that a function of the kernel with these roles accesses its own memory. `is_unmapping` is as for
    /// [`Self::begun`].
    pub fn access_table(
        &mut self,
        roles: u32,
        at: u64,
        (is_store, size): (bool, u64),
        is_unmapping: bool,
        moment: Moment,
    ) {
        if self.is_recording {
            let task = moment.task as usize;
            let tables = &mut self.tables;
            let event = tables.access(roles, at, (is_store, size), task, is_unmapping);
            if event.is_some() || tables.is_checking() {
                self.page = NO_PAGE;
            }
            self.event(event, moment);
        }
    }

    /// Counts an access of the kernel to its own memory.
    #[inline]
    pub fn pass_over(&mut self) {
        self.recorder.own += u64::from(self.is_recording);
    }

    /// Records that another task or program will run, so that the next reference repeats nothing.
    pub fn interrupt(&mut self) {
        self.page = NO_PAGE;
        self.code = NO_PAGE;
    }

    /// Records that the task with this number changes address spaces.
    pub fn change(&mut self, task: usize, change: Change) {
        self.interrupt();
        let spaces = &mut self.spaces;
        let own = spaces.of(task);
        match change {
            Change::Copies => spaces.copied[task] = true,
            Change::Wakes => {
                let is_copied = core::mem::take(&mut spaces.copied[task]);
                let space = if is_copied { spaces.new_space() } else { own };
                spaces.waiting.push(space);
            }
            Change::Executes => {
                let space = spaces.new_space();
                spaces.of[task] = space;
            }
        }
    }

    /// Records that a task runs for the first time.
    pub fn born(&mut self, task: usize) {
        self.interrupt();
        self.spaces.of(task);
        if !self.spaces.waiting.is_empty() {
            self.spaces.of[task] = self.spaces.waiting.remove(0);
        }
    }

    /// Address space of a task.
    pub fn space(&mut self, task: usize) -> u32 {
        self.spaces.of(task)
    }

    /// Starts the record.
    pub fn begin(&mut self) {
        if !self.is_recording {
            self.recorder.begin();
            self.is_recording = true;
        }
    }

    /// Ends the record at this time. `workload` is the number of the task that ran the scenario.
    pub fn end(&mut self, at: u64, workload: u32) {
        if !self.is_recording {
            return;
        }
        self.is_recording = false;
        let mut header = self.recorder.end(at, workload);
        header[AT_UNKNOWN] = self.tables.unknown();
        header[AT_TOLD] = self.tables.told();
        let bytes: Vec<u8> = header.into_iter().flat_map(u64::to_le_bytes).collect();
        heap::store(&self.out, &bytes);
    }
}

/// True if an access of `size` bytes ends on the page after that of its address.
#[inline]
const fn ends_beyond(at: u64, size: u64) -> bool {
    let page = 1 << PAGE_SHIFT;
    at % page + size > page
}
