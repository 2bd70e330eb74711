//! How scattered are pages in swap after concurrent reclaim?
//!
//! Many reclaimers at once push a first mapping out to swap. The time to read it back in address order depends on how
//! its pages were placed on the device. Origin: contswap (2009). As written it only *read* its pages, which maps the
//! shared zero page on kernels since 2.6.32 and swaps nothing; here every page is written with data of a given
//! compressibility. Its processes stopped themselves and were continued by a signal that could come before the stop;
//! here they wait at a gate. The cause is measured too: the position of each page on the device before the timed
//! read-back.

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Pages, Unit};

use crate::bulk::write_series;
use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts, must_fit};
use crate::error::{ScenarioError, Stop};
use crate::fill::{Filler, check_content};
use crate::harness::LockedBuffer;
use crate::layout::SwapLayout;
use crate::mapping::Mapping;
use crate::number;
use crate::page_size::PageSize;
use crate::pagemap::PageMap;
use crate::params::params;
use crate::scenario::patterns::Access;
use crate::scenario::swapbench::usages;
use crate::touch::{Amount, BATCH, Offset, Recorder, Touch};
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::workers::Usage;

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Contswap {
        /// Size of the mapping that is pushed out to swap and read back.
        mapping: Bytes = "0.8 * memory", min = "64K";
        /// Number of concurrent processes that fault in memory; together they map as much as the first mapping. The
        /// original had 128. The default gives each at least 1 MiB, because the processes themselves need memory, and
        /// 128 of them would use all of 64M with zram.
        reclaimers: u32 = "max(1, min(128, mapping / 1M))", min = "1", max = "4096";
        /// Time that a reclaimer keeps its memory.
        hold: Nanos = "5s", max = "1h";
        /// How the mappings are touched: write, or read (as in the original), which maps the shared zero page.
        access: Access = "write", as_written = "read";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of the mappings: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if the
        /// kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no madvise).
        page_size: PageSize = "small", as_written = "default";
    }
}

impl Contswap {
    fn reclaimer_pages(&self) -> Pages {
        Pages((self.mapping.pages().0 / u64::from(self.reclaimers)).max(1))
    }

    /// Touches every page for the first time, in ascending order. Returns the number of pages touched.
    fn touch(&self, mapping: &Mapping, filler: &Filler) -> u64 {
        if self.access == Access::Read {
            mapping.read_all();
        } else {
            mapping.fill(filler, 0, mapping.pages());
        }
        mapping.pages()
    }
}

impl Scenario for Contswap {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::time("swap-in", "time to read one word of every page of the first mapping, in ascending order, after the reclaimers ended").primary(),
        MetricDef::share(
            "contiguity",
            Direction::Higher,
            "fraction of neighbouring pages in swap that are also neighbours, in the same order, on the device"
        )
        .primary(),
        MetricDef::of(
            "mean-jump",
            Unit::Pages,
            Direction::Lower,
            "mean distance on the device between neighbouring pages; 1 if none is scattered"
        ),
        MetricDef::of("mean-run", Unit::Pages, Direction::Higher, "mean length of runs that are contiguous both in memory and on the device"),
        MetricDef::of("swapped", Unit::Pages, Direction::Neutral, "pages of the first mapping in swap before the timed read-back"),
        MetricDef::count("swap-in-major-faults", Direction::Lower, "page faults of the timed read-back that waited for a device"),
        MetricDef::time("access-min", "shortest access of the timed read-back"),
        MetricDef::time("access-mean", "mean access of the timed read-back"),
        MetricDef::time("access-p50", "median access of the timed read-back"),
        MetricDef::time("access-p90", "90th percentile of the accesses of the timed read-back"),
        MetricDef::time("access-p99", "99th percentile of the accesses of the timed read-back"),
        MetricDef::time("access-p999", "99.9th percentile of the accesses of the timed read-back"),
        MetricDef::time("access-max", "longest access of the timed read-back"),
        MetricDef::time("reclaim", "time from opening the gate to the end of the last reclaimer, including its hold"),
        MetricDef::time("total", "time from the first mapping to the end of the timed read-back"),
        COMPRESSED,
        MetricDef::count("pages-touched", Direction::Neutral, "pages touched by all processes before the timed read-back"),
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        if self.access == Access::Mixed {
            return Err(ScenarioError::BadValue {
                scenario: name.to_owned(),
                parameter: "access",
                given: "mixed".to_owned(),
                why: "give write or read".to_owned(),
            });
        }
        if self.mapping.pages().0 < u64::from(self.reclaimers) {
            return Err(ScenarioError::Contradiction {
                scenario: name.to_owned(),
                why: format!(
                    "{} shared by {} reclaimers is less than a page for each: enlarge mapping",
                    self.mapping, self.reclaimers
                ),
            });
        }
        must_fit(Bytes(self.mapping.0.saturating_mul(2)), context)
    }

    fn needs(&self, form: Form) -> Needs {
        Needs {
            swap: true,
            pressure: form == Form::Repaired && self.access == Access::Write,
            ..self.page_size.needs()
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let pages = self.mapping.pages();
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let mut recorder = Recorder::without_log()?;
        recorder.log_to(&trial.place.region, "access-log", pages.0);
        let mut batch = LockedBuffer::<u32>::new(BATCH)?;
        let mut page_map = PageMap::open()?;
        trial.settle();

        trial.phase("map");
        let start = trial.place.clock.now();
        let mapping = self.page_size.map(pages)?;
        let mut touched = self.touch(&mapping, &filler);

        trial.phase("reclaim");
        let share = self.reclaimer_pages();
        let mut team = trial.team("reclaimer", self.reclaimers, |member| {
            member.gate();
            let own = self.page_size.map(share)?;
            member.put(0, self.touch(&own, &filler));
            trial.sleep(self.hold);
            Ok(())
        })?;
        team.open()?;
        let (reclaim, ended) = trial.time(|| team.join());
        let ended = ended?;
        for member in &ended {
            trial.account(member.usage);
            trial.must_count("pages touched by a reclaimer", share.0, member.values[0]);
            touched += member.values[0];
        }
        trial.time_metric("reclaim", reclaim);
        trial.metric("pages-touched", touched as f64);
        trial.series(&usages(&ended));

        trial.phase("layout");
        observe_layout(trial, &mapping, &mut page_map)?;
        trial.compressed();

        trial.phase("swap-in");
        let touch = Touch::mapping(&mapping, Amount::Word, Offset::Spread);
        let before = Usage::own();
        let swap_in = trial.place.clock.now();
        let mut page = 0;
        while page < pages.0 {
            let filled = number::index(pages.0 - page).min(BATCH);
            for (item, next) in batch[..filled].iter_mut().zip(page..) {
                *item = number::narrow(next);
            }
            recorder.touch(trial.place.clock, &touch, &batch[..filled]);
            page += filled as u64;
            trial.tick();
        }
        let end = trial.place.clock.now();
        trial.time_metric("swap-in", end.since(swap_in));
        trial.time_metric("total", end.since(start));
        let faults = Usage::own().since(before);

        trial.phase("report");
        trial.metric("swap-in-major-faults", faults.major_faults as f64);
        trial.must_count("pages of the timed touch", pages.0, recorder.count());
        trial.accesses("access", &mut recorder);
        trial.finish_log(&mut recorder);
        Ok(())
    }
}

/// Reads the position of each page in swap. Stores the series `swap-offsets` (−1 for a page that is not in swap) and
/// sets the metrics of the layout.
fn observe_layout(
    trial: &mut Trial<'_>,
    mapping: &Mapping,
    page_map: &mut PageMap,
) -> Result<(), Stop> {
    let rows = number::index(mapping.pages());
    let mut layout = SwapLayout::default();
    // One word per page, stored in the output region, which uses no memory of the workload.
    let mut frame = trial
        .place
        .region
        .frame(pagetide_record::wire::Kind::Blob, "offsets", rows * 8)
        .ok();
    let offsets = frame
        .as_mut()
        .map(|frame| frame.body().as_chunks_mut::<8>().0)
        .unwrap_or_default();
    page_map.each(mapping, |page, entry| {
        let place = entry.place();
        layout.add(place);
        if let Some(word) = offsets.get_mut(number::index(page)) {
            let offset = place.map_or(-1, |(_, offset)| number::signed(offset));
            *word = offset.to_le_bytes();
        }
    })?;
    layout.finish();
    trial.metric("swapped", layout.swapped as f64);
    let shape = ["contiguity", "mean-jump", "mean-run"];
    if layout.swapped == 0 {
        for name in shape {
            trial.absent(name, "nothing of the mapping was swapped");
        }
        return Ok(());
    }
    if !layout.is_told() {
        for name in shape {
            trial.absent(name, "swap offsets are shown to CAP_SYS_ADMIN only");
        }
        return Ok(());
    }
    trial.metric("contiguity", layout.contiguity());
    trial.metric("mean-jump", layout.mean_jump());
    trial.metric("mean-run", layout.mean_run());
    trial.histogram("swap-runs", layout.runs());
    if offsets.len() == rows {
        write_series(
            &trial.place.region,
            "swap-offsets",
            rows,
            &mut [
                ("page", Unit::Pages, &mut |row| number::signed(row as u64)),
                ("offset", Unit::Pages, &mut |row| {
                    i64::from_le_bytes(offsets[row])
                }),
            ],
        );
    }
    Ok(())
}

/// Definition of the scenario `contswap`.
pub(crate) static CONTSWAP: Definition = Definition::of::<Contswap>(
    Texts {
        name: "contswap",
        summary: "how scattered pages are in swap after concurrent reclaim, and what reading them back costs",
        docs: "Maps `mapping` bytes and touches them in ascending order. Then `reclaimers` processes, which wait at a \
               gate, start at once: each maps its part of the same amount again, touches it, keeps it for `hold`, unmaps it and \
               exits. When all have exited, the position of every page on the swap device is read (contiguity, runs, jumps, and \
               the series `swap-offsets`). Then one ascending pass over the first mapping, which is read back from swap, is \
               timed as a whole and page by page.",
        origin: "contswap (2009): 1650 MiB and 128 reclaimers on a machine of 2 GiB; swap-in 74.97 s (0.38) before, 45.26 s \
                 (0.68) after batched swap-slot allocation.",
        repaired: "A read maps the shared zero page on kernels since 2.6.32, so nothing was ever swapped; pages \
                   of zeros never reach the device; huge pages depended on chance. Also corrected in the original form: the signal to \
                   continue could come before the stop, and microseconds were printed without leading zeros.",
    },
    Bytes::from_mib(2048),
    &[],
);
