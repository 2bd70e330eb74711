//! What do page faults cost on the way down to a level of free memory, and how many pages must be faulted again?
//!
//! Memory is mapped and written from its last page to its first until free memory reaches a level between the zone
//! watermarks. Later passes touch only absent pages. Origin: VM Regress's *fault* test (2002), a kernel module. Here
//! the same is done from user space, with pages that contain data, and the page map after each pass is read from
//! `/proc/self/pagemap`.

use pagetide_quantity::{Direction, MetricDef, Nanos, Series, Unit};
use pagetide_record::wire::Kind;

use crate::bulk::write_series;
use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts};
use crate::error::{ScenarioError, Stop};
use crate::fill::{Filler, check_content};
use crate::floors::{FLOORS, Floor, InitialMemory};
use crate::number;
use crate::page_size::PageSize;
use crate::pagemap::PageMap;
use crate::params::{choice, params};
use crate::trial::{Trial, metrics};
use pagetide_quantity::Bytes;

choice! {
    /// Level of free memory to reach.
    pub(crate) enum Depth {
        /// All levels, one after the other.
        All = "all",
        /// Free memory stays above the high watermark.
        Fast = "fast",
        /// Free memory ends between the high and the low watermark.
        Low = "low",
        /// Free memory ends between the low and the min watermark.
        Min = "min",
        /// No memory stays free.
        Zero = "zero",
    }
}

impl Depth {
    /// Returns the levels that this value selects, from the highest to the lowest.
    pub(crate) fn floors(self) -> impl Iterator<Item = Floor> {
        let wanted = match self {
            Self::All => None,
            Self::Fast => Some(Floor::Fast),
            Self::Low => Some(Floor::Low),
            Self::Min => Some(Floor::Min),
            Self::Zero => Some(Floor::Zero),
        };
        FLOORS
            .into_iter()
            .filter(move |floor| wanted.is_none_or(|wanted| wanted == *floor))
    }
}

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Fault {
        /// Level of free memory to reach: fast (four times the high watermark stays free), low (between high and low),
        /// min (between low and min), zero (nothing stays free), or all of these in turn.
        floor: Depth = "all";
        /// Number of passes over the mapping; the first writes every page, later ones touch absent pages.
        passes: u32 = "3", min = "1", max = "100";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of the mapping: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if the
        /// kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no madvise).
        page_size: PageSize = "small";
    }
}

macro_rules! floor_metrics {
    ($($floor:literal),*) => {
        metrics![
            MetricDef::time("fault-time", "total time to touch pages, over all levels and passes").primary(),
            MetricDef::count("absent", Direction::Lower, "pages that later passes found absent, over all levels").primary(),
            $(
                MetricDef::of(concat!("pages-", $floor), Unit::Pages, Direction::Neutral, concat!("pages mapped at level ", $floor)),
                MetricDef::time(concat!("first-", $floor), concat!("time of the first pass at level ", $floor)),
                MetricDef::time(concat!("again-", $floor), concat!("time of all later passes at level ", $floor)),
                MetricDef::count(
                    concat!("absent-", $floor),
                    Direction::Lower,
                    concat!("pages that later passes found absent at level ", $floor)
                ),
            )*
        ]
    };
}

/// Returns why a scenario that allocates down to `down` needs a machine of its own; `None` if it allocates until
/// nothing is free, which is also possible in a memory cgroup.
pub(crate) fn levels_need(down: Depth) -> Option<&'static str> {
    let needs = down.floors().any(|floor| floor != Floor::Zero);
    needs.then_some(
        "its levels lie between the watermarks of a machine, which a memory group does not have (give -p floor=zero)",
    )
}

/// Leaves out of the results the metrics of levels that were not requested.
pub(crate) fn omit_others(trial: &mut Trial<'_>, down: Depth, prefixes: &[&str]) {
    for floor in FLOORS {
        if !down.floors().any(|wanted| wanted == floor) {
            for prefix in prefixes {
                trial.omit(&format!("{prefix}-{}", floor.name()));
            }
        }
    }
}

impl Scenario for Fault {
    const METRICS: &'static [MetricDef] = floor_metrics!["fast", "low", "min", "zero"];

    fn check(&self, name: &str, form: Form, _context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)
    }

    fn needs(&self, _form: Form) -> Needs {
        Needs {
            swap: true,
            own_machine: levels_need(self.floor),
            ..self.page_size.needs()
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let mut page_map = PageMap::open()?;
        trial.settle();
        let ground = InitialMemory::now(trial);
        omit_others(trial, self.floor, &["pages", "first", "again", "absent"]);
        let mut rows: Vec<[u64; 5]> = Vec::new();
        for (number, floor) in (0..).zip(FLOORS) {
            if self.floor.floors().any(|wanted| wanted == floor) {
                self.at(
                    trial,
                    &ground,
                    (number, floor),
                    &filler,
                    &mut page_map,
                    &mut rows,
                )?;
            }
        }
        let later = |row: &&[u64; 5]| row[1] > 0;
        trial.metric(
            "fault-time",
            rows.iter().map(|row| row[4]).sum::<u64>() as f64,
        );
        trial.metric(
            "absent",
            rows.iter().filter(later).map(|row| row[2]).sum::<u64>() as f64,
        );
        let column = |index: usize| rows.iter().map(move |row| number::signed(row[index]));
        trial.series(
            &Series::new("passes")
                .int("floor", Unit::Count, column(0))
                .int("pass", Unit::Count, column(1))
                .int("referenced", Unit::Pages, column(2))
                .int("present", Unit::Pages, column(3))
                .int("time", Unit::Nanos, column(4)),
        );
        Ok(())
    }
}

impl Fault {
    fn at(
        &self,
        trial: &mut Trial<'_>,
        ground: &InitialMemory,
        (number, floor): (u64, Floor),
        filler: &Filler,
        page_map: &mut PageMap,
        rows: &mut Vec<[u64; 5]>,
    ) -> Result<(), Stop> {
        let name = floor.name();
        let pages = floor.pages(ground);
        trial.metric(&format!("pages-{name}"), pages.0 as f64);
        let mapping = self.page_size.map(pages)?;
        // The presence of every page is kept in an unfinished frame of the output region, which takes no memory of
        // the workload. Later passes find the absent pages there.
        let size = number::index(pages.0);
        let mut frame = trial
            .place
            .region
            .frame(Kind::Blob, "presence", size)
            .map_err(|error| {
                Stop::Invalid(pagetide_record::Invalid::Full {
                    what: "the output region".to_owned(),
                    size: Bytes(error.size as u64),
                })
            })?;
        let presence = frame.body();
        presence.fill(0);
        let (mut first, mut again, mut absent) = (Nanos(0), Nanos(0), 0);
        for pass in 0..u64::from(self.passes) {
            trial.phase(&format!("{name}-{pass}"));
            let (time, referenced) = trial.time(|| {
                let mut referenced = 0;
                for page in (0..pages.0)
                    .rev()
                    .filter(|page| presence[number::index(*page)] == 0)
                {
                    if pass == 0 {
                        mapping.fill_page(filler, page);
                    } else {
                        mapping.read_page(page);
                    }
                    referenced += 1;
                }
                referenced
            });
            let mut present = 0;
            page_map.each(&mapping, |page, entry| {
                presence[number::index(page)] = u8::from(entry.present());
                present += u64::from(entry.present());
            })?;
            if pass == 0 {
                trial.must_count("pages written by the first pass", pages.0, referenced);
                first = time;
            } else {
                again = Nanos(again.0 + time.0);
                absent += referenced;
            }
            rows.push([number, pass, referenced, present, time.0]);
            write_series(
                &trial.place.region,
                &format!("pages-{name}-{pass}"),
                size,
                &mut [("present", Unit::Count, &mut |row| i64::from(presence[row]))],
            );
        }
        trial.time_metric(&format!("first-{name}"), first);
        trial.time_metric(&format!("again-{name}"), again);
        trial.metric(&format!("absent-{name}"), absent as f64);
        Ok(())
    }
}

/// Definition of the scenario `fault`.
pub(crate) static FAULT: Definition = Definition::of::<Fault>(
    Texts {
        name: "fault",
        summary: "what page faults cost on the way down to a level of free memory",
        docs: "For each level, maps as much as is free above it and writes every page in descending order, then makes passes \
               that touch only absent pages. Series `passes` has pages referenced, pages present and time of each pass, \
               and the series `pages-FLOOR-PASS` says whether each page was in memory after it.",
        origin: "VM Regress's fault test (2002), a kernel module.",
        repaired: "",
    },
    Bytes(25_000 * 4096),
    &[],
);
