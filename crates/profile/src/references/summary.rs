//! Summary of recorded references: the working set over time, tasks, and ranges of addresses.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use serde::Serialize;

use super::damon::{Damon, Monitor};
use super::mapping::Places;
use super::paging::Pager;
use super::{Header, Item, Kind, Mapping, Paging, Recorded, RecordedError, Run};

/// Number of pages without references that separate two ranges of addresses: 4 MiB.
const GAP_PAGES: u64 = 1024;
/// Maximum number of rows of a heat map.
const MAX_ROWS: usize = 256;
/// Maximum number of (page, window) pairs from which a heat map is made.
const MAX_TOUCHES: usize = 1 << 24;
/// Size of the table of recent pages, which are found in it without a search; a power of two.
const RECENT: usize = 1 << 12;

/// A part of the scenario's time. All windows of a trial are equally long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Instructions from the start of the scenario to the start of the window.
    pub start: u64,
    /// Number of references.
    pub references: u64,
    /// Number of pages that were referenced: the working set.
    pub pages: u64,
    /// Number of pages that were written.
    pub written: u64,
    /// Number of pages that were never referenced before this window.
    pub new: u64,
}

/// References of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskReferences {
    /// Number of the task.
    pub task: u32,
    /// True if the task ran the scenario.
    pub is_workload: bool,
    /// Number of references.
    pub references: u64,
}

/// Addresses of one address space and one mapping that are referenced, without large gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AddressRange {
    /// Number of the address space.
    pub space: u32,
    /// Number of the first page.
    pub first: u64,
    /// Number of pages from the first to the last one.
    pub pages: u64,
    /// Number of pages that were referenced.
    pub used: u64,
    /// Number of references.
    pub references: u64,
    /// Index of the mapping in [`Summary::mappings`]; `None` if the kernel's mapping was not seen.
    pub mapping: Option<usize>,
}

/// References as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Header of the recorded references.
    pub header: Header,
    /// Number of pages that were referenced.
    pub pages: u64,
    /// Number of pages that were written.
    pub written: u64,
    /// Parts of the recorded time, all equally long.
    pub windows: Vec<Window>,
    /// Tasks, the one with the most references first.
    pub tasks: Vec<TaskReferences>,
    /// Ranges of addresses, the one with the most references first.
    pub ranges: Vec<AddressRange>,
    /// Number of pages that were referenced, for each row and window. A row is a part of the used pages in the order of
    /// address space and address. At most 2^24 pairs of page and window are counted.
    pub heat: Vec<Vec<u32>>,
    /// Number of used pages in a row of `heat`; the last row may have fewer.
    pub row_pages: u64,
    /// Address space and number of the first page of each row of `heat`.
    pub row_starts: Vec<(u32, u64)>,
    /// What the kernel did with the pages.
    pub paging: Paging,
    /// How well DAMON saw the references; `None` if it did not watch physical memory for two intervals.
    pub damon: Option<Damon>,
    /// Mappings of all address spaces, in the order in which they were seen. Empty in records of earlier versions, and if
    /// the kernel's structures are not known.
    pub mappings: Vec<Mapping>,
    /// Number of pages that were referenced and are in no mapping that was seen.
    pub nameless: u64,
    /// Mapping of the first page of each row of `heat`, as an index in `mappings`.
    pub row_mappings: Vec<Option<usize>>,
}

/// What was counted for one page.
#[derive(Clone, Copy)]
struct Page {
    id: u64,
    references: u64,
    /// Last window in which the page was referenced.
    seen: u32,
    /// Last window in which the page was written; `u32::MAX` for none.
    written: u32,
}

/// Counts references while they are read.
struct Counter {
    pages: Vec<Page>,
    index: HashMap<u64, u32>,
    recent: Vec<(u64, u32)>,
    windows: Vec<Window>,
    /// Length of a window in instructions, at least 1.
    length: u64,
    tasks: BTreeMap<u32, u64>,
    /// Pairs of a page and a window in which it was referenced.
    touches: Vec<(u32, u32)>,
    written: u64,
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Counter {
    fn new(header: &Header, windows: u32) -> Self {
        let windows = windows.max(1);
        let length = header.until / u64::from(windows) + 1;
        let window = |at| Window {
            start: u64::from(at) * length,
            ..Window::default()
        };
        Self {
            pages: Vec::new(),
            index: HashMap::new(),
            recent: vec![(u64::MAX, 0); RECENT],
            windows: (0..windows).map(window).collect(),
            length,
            tasks: BTreeMap::new(),
            touches: Vec::new(),
            written: 0,
        }
    }

    /// Returns the index of a page. Adds the page if it was not referenced before.
    fn page(&mut self, id: u64) -> usize {
        let recent = &mut self.recent[usize::try_from(id).unwrap_or(0) % RECENT];
        if recent.0 == id {
            return recent.1 as usize;
        }
        let new = small(self.pages.len());
        let at = *self.index.entry(id).or_insert(new);
        if at == new {
            self.pages.push(Page {
                id,
                references: 0,
                seen: u32::MAX,
                written: u32::MAX,
            });
        }
        *recent = (id, at);
        at as usize
    }

    /// Adds references and returns the index of their page.
    fn add(&mut self, run: &Run) -> usize {
        *self.tasks.entry(run.task).or_default() += run.times;
        let at = usize::try_from(run.at / self.length).unwrap_or(usize::MAX);
        let at = at.min(self.windows.len() - 1);
        let number = small(at);
        let index = self.page(run.id());
        let page = &mut self.pages[index];
        let window = &mut self.windows[at];
        page.references += run.times;
        window.references += run.times;
        if page.seen != number {
            window.pages += 1;
            window.new += u64::from(page.seen == u32::MAX);
            page.seen = number;
            if self.touches.len() < MAX_TOUCHES {
                self.touches.push((small(index), number));
            }
        }
        if run.kind.writes() && page.written != number {
            window.written += 1;
            self.written += u64::from(page.written == u32::MAX);
            page.written = number;
        }
        index
    }

    /// Returns ranges of addresses. `order` has the indices of all pages in the order of their addresses.
    fn ranges(&self, order: &[u32], places: &Places) -> Vec<AddressRange> {
        let mut all: Vec<AddressRange> = Vec::new();
        let mut last = None;
        for at in order {
            let Page { id, references, .. } = self.pages[*at as usize];
            let (space, page) = super::parts(id);
            let is_near = last.is_some_and(|last| id - last <= GAP_PAGES);
            let mapping = places.find(space, page);
            let known = all
                .last_mut()
                .filter(|range| is_near && (range.space, range.mapping) == (space, mapping));
            if let Some(range) = known {
                range.pages = page - range.first + 1;
                range.used += 1;
                range.references += references;
            } else {
                all.push(AddressRange {
                    space,
                    first: page,
                    pages: 1,
                    used: 1,
                    references,
                    mapping,
                });
            }
            last = Some(id);
        }
        all.sort_by_key(|range| std::cmp::Reverse(range.references));
        all
    }

    fn summary(self, header: Header, pager: Pager, mappings: Vec<Mapping>) -> Summary {
        let places = Places::of(&mappings);
        let mut order: Vec<u32> = (0..small(self.pages.len())).collect();
        order.sort_unstable_by_key(|at| self.pages[*at as usize].id);
        let row_pages = order.len().div_ceil(MAX_ROWS).max(1);
        let mut row_of = vec![0; order.len()];
        for (rank, at) in order.iter().enumerate() {
            row_of[*at as usize] = rank / row_pages;
        }
        let mut heat = vec![vec![0; self.windows.len()]; order.len().div_ceil(row_pages)];
        for (page, window) in &self.touches {
            heat[row_of[*page as usize]][*window as usize] += 1;
        }
        let starts = order.iter().step_by(row_pages);
        let row_starts: Vec<(u32, u64)> = starts
            .map(|at| super::parts(self.pages[*at as usize].id))
            .collect();
        let of_row = |(space, page): &(u32, u64)| places.find(*space, *page);
        let row_mappings = row_starts.iter().map(of_row).collect();
        let ranges = self.ranges(&order, &places);
        let nameless = ranges.iter().filter(|range| range.mapping.is_none());
        let task = |(task, references): (&u32, &u64)| TaskReferences {
            task: *task,
            is_workload: *task == header.workload,
            references: *references,
        };
        let mut tasks: Vec<TaskReferences> = self.tasks.iter().map(task).collect();
        tasks.sort_by_key(|task| std::cmp::Reverse(task.references));
        let paging = pager.paging(&header, |at| super::parts(self.pages[at].id));
        Summary {
            paging,
            nameless: nameless.map(|range| range.used).sum(),
            ranges,
            mappings,
            row_mappings,
            damon: None,
            pages: order.len() as u64,
            written: self.written,
            header,
            windows: self.windows,
            tasks,
            heat,
            row_pages: row_pages as u64,
            row_starts,
        }
    }
}

impl Summary {
    /// Reads recorded references to their end, and divides their time into `windows` windows.
    pub fn of(recorded: Recorded<impl Read>, windows: u32) -> Result<Self, RecordedError> {
        let mut recorded = recorded;
        let header = *recorded.header();
        let mut counter = Counter::new(&header, windows);
        let mut pager = Pager::default();
        let mut monitor = Monitor::default();
        while let Some(item) = recorded.next_item()? {
            match item {
                Item::Run(run) => {
                    let index = counter.add(&run);
                    pager.refer(index, run.at);
                    monitor.refer(index, run.at);
                }
                Item::Region(region) => monitor.region(&region),
                Item::Regions { count, at } => {
                    let parts = |index: usize| super::parts(counter.pages[index].id);
                    monitor.end(count, at, parts);
                }
                Item::Event(event) => {
                    let index = counter.index.get(&event.id());
                    pager.event(&event, index.map(|index| *index as usize));
                }
            }
        }
        let mappings = recorded.take_mappings();
        Ok(Summary {
            damon: monitor.result(),
            ..counter.summary(header, pager, mappings)
        })
    }

    /// Returns what is at a page: a place in a file, or a kind of memory. `None` if this is not known.
    pub fn describe(&self, space: u32, page: u64) -> Option<String> {
        let covers = |mapping: &&Mapping| {
            let offset = page.checked_sub(mapping.first);
            mapping.space == space && offset.is_some_and(|offset| offset < mapping.pages)
        };
        let last = self.mappings.iter().rev().find(covers);
        last.map(|mapping| mapping.describe(page))
    }

    /// Returns the number of references of a kind, including those that were cut.
    pub const fn of_kind(&self, kind: Kind) -> u64 {
        self.header.counts[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::{NEW, TASK, TIME, WRITE};
    use super::super::tests::stored;
    use super::*;

    #[test]
    fn the_working_set_counts_each_page_once_in_a_window() {
        // Pages 10 and 11 in the first half; 11 is written in the second, and 5000 pages above another range begins.
        let codes = [
            TASK,
            1,
            0,
            NEW,
            20,
            NEW,
            2,
            0x81,
            TIME,
            0xc6,
            0x13,
            NEW + WRITE,
            22,
            TASK,
            2,
            0,
            NEW,
            0x90,
            0x4e,
        ];
        let bytes = stored(6, &codes);
        let found = Summary::of(Recorded::new(&bytes[..]).unwrap(), 2).unwrap();
        assert_eq!((found.pages, found.written), (3, 1));
        let sets: Vec<[u64; 4]> = found
            .windows
            .iter()
            .map(|window| [window.references, window.pages, window.written, window.new])
            .collect();
        assert_eq!(sets, [[4, 2, 0, 2], [2, 2, 1, 1]]);
        assert_eq!(found.heat, [[1, 0], [1, 1], [0, 1]]);
        assert_eq!(found.row_starts, [(0, 10), (0, 11), (0, 5011)]);
        let ranges: Vec<(u64, u64, u64)> = found
            .ranges
            .iter()
            .map(|range| (range.first, range.pages, range.references))
            .collect();
        assert_eq!(ranges, [(10, 2, 5), (5011, 1, 1)]);
        let tasks: Vec<(u32, u64)> = found
            .tasks
            .iter()
            .map(|task| (task.task, task.references))
            .collect();
        assert_eq!(tasks, [(1, 5), (2, 1)]);
    }
}
