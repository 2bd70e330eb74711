//! What does one more page cost as free memory runs out?
//!
//! Pages are allocated one by one down to a level of free memory between the zone watermarks, each timed, then all are
//! freed at once. Origin: VM Regress's *alloc* test (2002), a kernel module that called the page allocator directly.
//! From user space an allocation is the first touch of a page, which also clears and maps it.

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Series, Unit};

use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts};
use crate::error::{ScenarioError, Stop};
use crate::floors::{FLOORS, Floor, InitialMemory};
use crate::harness::LockedBuffer;
use crate::number;
use crate::page_size::PageSize;
use crate::params::params;
use crate::scenario::fault::{Depth, levels_need, omit_others};
use crate::touch::{Amount, BATCH, Offset, Recorder, Touch, WRITE};
use crate::trial::{Trial, metrics};

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Alloc {
        /// Level of free memory to allocate down to: fast (four times the high watermark stays free), low (between high
        /// and low), min (between low and min), zero (nothing stays free), or all of these in turn.
        floor: Depth = "all";
        /// How often memory is allocated down to each level and freed.
        passes: u32 = "2", min = "1", max = "100";
        /// Page size of the mapping: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if the
        /// kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no madvise).
        page_size: PageSize = "small";
    }
}

macro_rules! floor_metrics {
    ($($floor:literal),*) => {
        metrics![
            MetricDef::time("alloc-mean", "mean time to allocate a page, over all levels").primary(),
            MetricDef::time("alloc-max", "longest time to allocate a page, over all levels"),
            MetricDef::time("free-time", "sum of the times to free all pages").primary(),
            MetricDef::count("allocated", Direction::Neutral, "pages allocated, over all levels and passes"),
            $(
                MetricDef::of(concat!("pages-", $floor), Unit::Pages, Direction::Neutral, concat!("pages allocated down to level ", $floor, ", summed over the passes")),
                MetricDef::time(concat!("alloc-mean-", $floor), concat!("mean time to allocate a page down to level ", $floor)),
                    MetricDef::time(concat!("alloc-p99-", $floor), concat!("99th percentile of the time to allocate a page down to level ", $floor)),
                MetricDef::time(concat!("alloc-max-", $floor), concat!("longest time to allocate a page down to level ", $floor)),
                MetricDef::time(concat!("free-", $floor), concat!("time to free all pages at level ", $floor)),
            )*
        ]
    };
}

impl Scenario for Alloc {
    const METRICS: &'static [MetricDef] = floor_metrics!["fast", "low", "min", "zero"];

    fn check(&self, _name: &str, _form: Form, _context: &Context) -> Result<(), ScenarioError> {
        Ok(())
    }

    fn needs(&self, _form: Form) -> Needs {
        Needs {
            swap: true,
            own_machine: levels_need(self.floor),
            ..self.page_size.needs()
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let mut batch = LockedBuffer::<u32>::new(BATCH)?;
        let mut recorders = Vec::with_capacity(FLOORS.len());
        for _ in FLOORS {
            recorders.push(Recorder::without_log()?);
        }
        trial.settle();
        let ground = InitialMemory::now(trial);
        omit_others(
            trial,
            self.floor,
            &["pages", "alloc-mean", "alloc-p99", "alloc-max", "free"],
        );
        let mut rows: Vec<[u64; 4]> = Vec::new();
        let (mut all, mut count, mut max, mut freed) = (0, 0, 0, 0);
        for ((number, floor), recorder) in (0..).zip(FLOORS).zip(&mut recorders) {
            if !self.floor.floors().any(|wanted| wanted == floor) {
                continue;
            }
            let name = floor.name();
            let free = self.at(
                trial,
                &ground,
                (number, floor),
                recorder,
                &mut batch,
                &mut rows,
            )?;
            trial.metric(&format!("pages-{name}"), recorder.count() as f64);
            trial.metric(&format!("alloc-mean-{name}"), recorder.histogram().mean());
            trial.metric(&format!("alloc-p99-{name}"), recorder.quantile(0.99) as f64);
            trial.metric(&format!("alloc-max-{name}"), recorder.range().1 as f64);
            trial.time_metric(&format!("free-{name}"), free);
            trial.histogram(&format!("alloc-{name}"), recorder.histogram());
            trial.finish_log(recorder);
            all += recorder.sum();
            count += recorder.count();
            max = max.max(recorder.range().1);
            freed += free.0;
        }
        trial.metric("alloc-mean", all as f64 / count as f64);
        trial.metric("alloc-max", max as f64);
        trial.metric("free-time", freed as f64);
        trial.metric("allocated", count as f64);
        let column = |index: usize| rows.iter().map(move |row| number::signed(row[index]));
        trial.series(
            &Series::new("passes")
                .int("floor", Unit::Count, column(0))
                .int("pages", Unit::Pages, column(1))
                .int("allocate", Unit::Nanos, column(2))
                .int("free", Unit::Nanos, column(3)),
        );
        Ok(())
    }
}

impl Alloc {
    fn at<'m>(
        &self,
        trial: &mut Trial<'m>,
        ground: &InitialMemory,
        (number, floor): (u64, Floor),
        recorder: &mut Recorder<'m>,
        batch: &mut [u32],
        rows: &mut Vec<[u64; 4]>,
    ) -> Result<Nanos, Stop> {
        let name = floor.name();
        let mut freed = 0;
        for pass in 0..self.passes {
            trial.phase(&format!("{name}-{pass}"));
            let pages = floor.pages(ground);
            if pass == 0 {
                let expected = pages.0 * u64::from(self.passes);
                recorder.log_to(&trial.place.region, &format!("alloc-log-{name}"), expected);
            }
            let mapping = self.page_size.map(pages)?;
            let touch = Touch::mapping(&mapping, Amount::Word, Offset::Spread);
            let before = (recorder.count(), recorder.sum());
            let mut page = 0;
            while page < pages.0 {
                let filled = number::index(pages.0 - page).min(batch.len());
                for (item, next) in batch[..filled].iter_mut().zip(page..) {
                    *item = number::narrow(next) | WRITE;
                }
                recorder.touch(trial.place.clock, &touch, &batch[..filled]);
                page += filled as u64;
                trial.tick();
            }
            trial.must_count(
                "pages allocated by a pass",
                pages.0,
                recorder.count() - before.0,
            );
            let (free, ()) = trial.time(|| drop(mapping));
            freed += free.0;
            rows.push([number, pages.0, recorder.sum() - before.1, free.0]);
        }
        Ok(Nanos(freed))
    }
}

/// Definition of the scenario `alloc`.
pub(crate) static ALLOC: Definition = Definition::of::<Alloc>(
    Texts {
        name: "alloc",
        summary: "what one more page costs as free memory runs out",
        docs: "For each level, allocates as many pages as are free above it, one by one by their first touch, and times each; \
               then frees all at once; `passes` times. Every allocation is in the log `alloc-log-FLOOR`.",
        origin: "VM Regress's alloc test (2002), a kernel module.",
        repaired: "",
    },
    Bytes(25_000 * 4096),
    &[],
);
