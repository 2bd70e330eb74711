//! How long do programs take to come to the foreground when many share a small memory, as on a phone?
//!
//! Each program is a process in a memory cgroup of its own, with anonymous memory and a mapped file. All start once,
//! then they come to the foreground in turn. Whether the kernel reclaimed files or anonymous memory meanwhile decides
//! what a program has to wait for. Origin: the question of MGLRU on phones; there is no original program.

use std::fs::File;
use std::path::PathBuf;

use pagetide_quantity::{Bytes, Direction, Histogram, MetricDef, Nanos, Series, Unit};
use pagetide_reference::Rng;
use pagetide_system::{Counters, Syntax, meminfo};

use crate::clock::Clock;
use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts, must_fit};
use crate::error::{ScenarioError, Stop};
use crate::expr::Names;
use crate::files::{filesystem_for, forget, make_file};
use crate::fill::{Filler, check_content};
use crate::groups::{self, GroupLog, GroupSpec, Limit, MemoryGroup, optional};
use crate::mapping::Mapping;
use crate::number;
use crate::order::Order;
use crate::page_size::PageSize;
use crate::params::params;
use crate::relay::Relay;
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::workers::{Member, Team, Usage};

/// Order to a program to come to the foreground.
const LAUNCH: u64 = 1;
/// Order to a program to exit.
const EXIT: u64 = 2;

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Launches {
        /// Number of programs.
        programs: u32 = "8", min = "2", max = "200";
        /// Number of times that a program comes to the foreground, after each has been started once.
        launches: u32 = "4 * programs", min = "1", max = "100000";
        /// Anonymous memory of each program.
        anon: Bytes = "1.3 * memory / programs", min = "64K";
        /// File that each program maps: its code and data.
        file: Bytes = "1.1 * memory / programs", min = "64K";
        /// Part of its anonymous memory that a program needs to come to the foreground; the rest is used once.
        anon_share: f64 = "0.5", max = "1";
        /// Part of its file that a program needs to come to the foreground; the rest is used once.
        file_share: f64 = "0.5", max = "1";
        /// Memory that a program allocates and fills with each launch, and frees when the launch has ended.
        fresh: Bytes = "0.03 * memory";
        /// Time between two launches.
        pause: Nanos = "20ms", max = "60s";
        /// Protection of the program in the foreground (memory.low); programs in the background have none; 0 for none.
        low: Bytes = "0";
        /// Memory above which a program is throttled and reclaimed (memory.high); 0 for none.
        high: Bytes = "0";
        /// Amount to reclaim from a program by memory.reclaim when it goes to the background; 0 for none.
        reclaim: Bytes = "0";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of anonymous memory: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if
        /// the kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no
        /// madvise).
        page_size: PageSize = "small";
    }
}

/// Data that all programs share.
struct Programs<'a> {
    params: &'a Launches,
    groups: &'a [MemoryGroup],
    files: Vec<PathBuf>,
    filler: &'a Filler,
    relay: &'a Relay,
    clock: Clock,
    seed: u64,
}

impl Programs<'_> {
    /// Runs a program. It starts with the first order, and comes to the foreground with each further order. For each
    /// order, it reports the time that its work took and its number of major faults.
    fn live(&self, number: u32) -> Result<(), Stop> {
        self.groups[number as usize].join()?;
        let mut own: Option<Memory> = None;
        for seen in 0_u32.. {
            let order = self.relay.next(number, seen);
            if order == EXIT {
                self.relay.report(number, [0, 0]);
                break;
            }
            let (start, before) = (self.clock.now(), Usage::own());
            let fresh = match &own {
                None => {
                    own = Some(self.start(number)?);
                    None
                }
                Some(memory) => Some(self.launch(memory, number, seen)?),
            };
            let time = self.clock.now().since(start);
            let faults = Usage::own().since(before).major_faults;
            drop(fresh);
            self.relay.report(number, [time.0, faults]);
        }
        Ok(())
    }

    /// Starts a program: it maps and reads its file, and fills its memory.
    fn start(&self, number: u32) -> Result<Memory, Stop> {
        let path = &self.files[number as usize];
        let cannot = format!("cannot open {}", path.display());
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(Stop::system(cannot))?;
        let file = Mapping::file(&file, self.params.file.pages())?;
        file.read_all();
        let pages = self.params.anon.pages();
        let anon = self.params.page_size.map(pages)?;
        anon.fill(self.filler, 0, pages.0);
        Ok(Memory { file, anon })
    }

    /// Brings a program to the foreground: it reads the parts of its file and of its memory that it needs, and fills
    /// fresh memory. Returns the fresh memory.
    fn launch(&self, memory: &Memory, number: u32, launch: u32) -> Result<Option<Mapping>, Stop> {
        let fresh = self.params.fresh.pages();
        let needed = |pages: u64, share: f64| number::floor(pages as f64 * share);
        let file = needed(memory.file.pages(), self.params.file_share);
        let anon = needed(memory.anon.pages(), self.params.anon_share);
        for page in 0..file {
            memory.file.read_page(page);
        }
        // Objects lie in memory in the order of their allocation, but are needed in another order.
        let own = u64::from(number) << 32 | u64::from(launch);
        let seed = self.seed ^ own.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for page in Order::scattered(anon, seed) {
            memory.anon.read_page(page);
        }
        if fresh.0 == 0 {
            return Ok(None);
        }
        let memory = self.params.page_size.map(fresh)?;
        memory.fill(self.filler, 0, fresh.0);
        Ok(Some(memory))
    }
}

/// Memory of a program.
struct Memory {
    file: Mapping,
    anon: Mapping,
}

/// Measurements of one launch.
struct Launched {
    program: u32,
    /// Time from the order to the end of the program's work.
    time: Nanos,
    major_faults: u64,
    /// Memory that was available after the launch, as the kernel estimates it (MemAvailable).
    available: Bytes,
}

impl Scenario for Launches {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::time("launch-p50", "median time of a launch").primary(),
        MetricDef::time("launch-p90", "90th percentile of the times of launches").primary(),
        MetricDef::time("launch-mean", "mean time of a launch"),
        MetricDef::time("launch-max", "longest launch"),
        MetricDef::time("start-p50", "median time of a program's first start"),
        MetricDef::time("start-p90", "90th percentile of the times of first starts"),
        MetricDef::count(
            "refaults-anon",
            Direction::Lower,
            "evicted anonymous pages that programs needed again, in all launches"
        )
        .primary(),
        MetricDef::count(
            "refaults-file",
            Direction::Lower,
            "evicted pages of their files that programs needed again, in all launches"
        ),
        MetricDef::of(
            "reclaimed-anon",
            Unit::Pages,
            Direction::Neutral,
            "anonymous pages that the kernel reclaimed during the launches"
        ),
        MetricDef::of(
            "reclaimed-file",
            Unit::Pages,
            Direction::Neutral,
            "file pages that the kernel reclaimed during the launches"
        ),
        MetricDef::share(
            "reclaimed-file-share",
            Direction::Neutral,
            "part of all reclaimed pages that were pages of files"
        ),
        MetricDef::of(
            "available-mean",
            Unit::Bytes,
            Direction::Higher,
            "memory available after a launch (MemAvailable), mean"
        ),
        MetricDef::of(
            "available-min",
            Unit::Bytes,
            Direction::Higher,
            "memory available after a launch, least"
        ),
        MetricDef::count(
            "launch-major-faults",
            Direction::Lower,
            "page faults during launches that waited for a device"
        ),
        MetricDef::count("launches", Direction::Neutral, "launches made"),
        COMPRESSED,
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        let anonymous = self.anon.0.saturating_mul(u64::from(self.programs));
        must_fit(Bytes(anonymous.saturating_add(self.fresh.0)), context)?;
        let contradiction = |why: String| ScenarioError::Contradiction {
            scenario: name.to_owned(),
            why,
        };
        let names = groups::names(context.memory, context.swap_size);
        let mut groups = self.groups(&names).map_err(contradiction)?;
        // Only one program at a time is in the foreground.
        if let Some(first) = groups.first_mut() {
            *first = first.clone().with(Limit::Low, optional(self.low));
        }
        groups::check(&groups, context.memory).map_err(contradiction)?;
        if self.reclaim > context.memory {
            return Err(contradiction(format!(
                "{} cannot be reclaimed from a program in {} of memory: lower reclaim",
                self.reclaim, context.memory
            )));
        }
        Ok(())
    }

    fn needs(&self, _form: Form) -> Needs {
        let files = self.file.0.saturating_mul(u64::from(self.programs));
        Needs {
            swap: true,
            // A program whose pages are reclaimed on request when it leaves the foreground may leave enough memory.
            pressure: self.reclaim.0 == 0,
            filesystem: Some(filesystem_for(Bytes(files))),
            groups: true,
            reclaim_requests: self.reclaim.0 > 0,
            ..self.page_size.needs()
        }
    }

    /// Returns the description of each program's cgroup, with the limits for the background.
    fn groups(&self, _names: &Names) -> Result<Vec<GroupSpec>, String> {
        let high = optional(self.high);
        let groups = (0..self.programs).map(|number| {
            GroupSpec::new(format!("program-{}", number + 1)).with(Limit::High, high)
        });
        Ok(groups.collect())
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let specs = groups::of_trial(trial.subject, |names| self.groups(names))?;
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let relay = Relay::new(self.programs)?;
        let groups = specs
            .iter()
            .map(MemoryGroup::create)
            .collect::<Result<Vec<_>, Stop>>()?;
        trial.settle();

        trial.phase("prepare");
        let path = |number| {
            let name = format!("pagetide-program-{number}");
            trial.place.work_dir.join(name)
        };
        let programs = Programs {
            params: self,
            groups: &groups,
            files: (0..self.programs).map(path).collect(),
            filler: &filler,
            relay: &relay,
            clock: trial.place.clock,
            seed: trial.subject.seed,
        };
        for path in &programs.files {
            make_file(path, self.file.pages().0, &filler)?;
        }
        let mut team = trial.team("program", self.programs, |member: &mut Member<'_>| {
            programs.live(member.number)
        })?;

        trial.phase("start");
        let total = u64::from(self.programs) + u64::from(self.launches);
        trial.steps(total);
        let mut order = Foreground::new(trial.rng("launches"), self.programs);
        let mut starts = Vec::with_capacity(self.programs as usize);
        for number in 0..self.programs {
            starts.push(self.launch(trial, &programs, &mut team, &mut order, number)?);
            trial.done(starts.len() as u64);
        }

        trial.phase("launch");
        let reclaimed = Reclaimed::now();
        let mut log = GroupLog::begin(&groups, trial.place.clock.now());
        let mut launches = Vec::with_capacity(self.launches as usize);
        for _ in 0..self.launches {
            let number = order.next();
            launches.push(self.launch(trial, &programs, &mut team, &mut order, number)?);
            log.sample(trial.place.clock.now());
            trial.done((starts.len() + launches.len()) as u64);
        }
        let uses = log.end(trial);
        let reclaimed = Reclaimed::now().since(reclaimed);
        trial.compressed();

        trial.phase("report");
        for number in 0..self.programs {
            relay.order(number, EXIT, || team.look_for_the_dead())?;
        }
        for ended in team.join()? {
            trial.account(ended.usage);
        }
        for path in &programs.files {
            forget(path);
            let _ = std::fs::remove_file(path);
        }
        let sum = |of: fn(&groups::GroupUse) -> u64| uses.iter().map(of).sum::<u64>() as f64;
        trial.metric("refaults-anon", sum(groups::GroupUse::refaults_anon));
        trial.metric("refaults-file", sum(groups::GroupUse::refaults_file));
        reclaimed.report(trial);
        report(trial, &starts, &launches);
        Ok(())
    }
}

impl Launches {
    /// Brings a program to the foreground and sends the previous one to the background.
    fn launch(
        &self,
        trial: &Trial<'_>,
        programs: &Programs<'_>,
        team: &mut Team,
        order: &mut Foreground,
        number: u32,
    ) -> Result<Launched, Stop> {
        if let Some(before) = order.current.filter(|before| *before != number) {
            let group = &programs.groups[before as usize];
            if self.low.0 > 0 {
                group.set(Limit::Low, Some(Bytes(0)))?;
            }
            if self.reclaim.0 > 0 {
                group.reclaim(programs.clock, self.reclaim)?;
            }
        }
        order.current = Some(number);
        if self.low.0 > 0 {
            programs.groups[number as usize].set(Limit::Low, Some(self.low))?;
        }
        trial.sleep(self.pause);
        let relay = programs.relay;
        let (time, done) = trial.time(|| relay.order(number, LAUNCH, || team.look_for_the_dead()));
        let [_, major_faults] = done?;
        Ok(Launched {
            program: number,
            time,
            major_faults,
            available: meminfo::amount("MemAvailable").unwrap_or(Bytes(0)),
        })
    }
}

/// Chooses which program comes to the foreground next: one of the others, all equally likely.
struct Foreground {
    rng: Rng,
    programs: u32,
    /// The program in the foreground; `None` before the first start.
    current: Option<u32>,
}

impl Foreground {
    fn new(rng: Rng, programs: u32) -> Self {
        Self {
            rng,
            programs,
            current: None,
        }
    }

    fn next(&mut self) -> u32 {
        let other = self.rng.below_u32(self.programs.saturating_sub(1).max(1));
        match self.current {
            Some(current) if other >= current => (other + 1) % self.programs,
            _ => other,
        }
    }
}

/// Number of pages reclaimed on the whole machine; `None` on kernels without these counters.
#[derive(Clone, Copy)]
struct Reclaimed {
    anon: Option<u64>,
    file: Option<u64>,
}

impl Reclaimed {
    fn now() -> Self {
        let mut counters = Counters::new();
        let text = std::fs::read("/proc/vmstat").unwrap_or_default();
        counters.parse(&text, Syntax::KeyValue);
        Self {
            anon: counters.get("pgsteal_anon"),
            file: counters.get("pgsteal_file"),
        }
    }

    fn since(self, before: Self) -> Self {
        let since = |now: Option<u64>, before: Option<u64>| Some(now? - before?);
        Self {
            anon: since(self.anon, before.anon),
            file: since(self.file, before.file),
        }
    }

    fn report(self, trial: &mut Trial<'_>) {
        let total = self.anon.zip(self.file).map(|(anon, file)| anon + file);
        let share = self.file.zip(total).filter(|(_, total)| *total > 0);
        for (name, value) in [
            ("reclaimed-anon", self.anon.map(|pages| pages as f64)),
            ("reclaimed-file", self.file.map(|pages| pages as f64)),
            (
                "reclaimed-file-share",
                share.map(|(file, total)| file as f64 / total as f64),
            ),
        ] {
            match value {
                Some(value) => trial.metric(name, value),
                None if total == Some(0) => trial.absent(name, "nothing was reclaimed"),
                None => trial.absent(name, "not on this kernel"),
            }
        }
    }
}

/// Reports the times of all starts and launches.
fn report(trial: &mut Trial<'_>, starts: &[Launched], launches: &[Launched]) {
    let (cold, warm) = (times(starts), times(launches));
    for (name, value) in [
        ("start-p50", at(&cold, 50)),
        ("start-p90", at(&cold, 90)),
        ("launch-p50", at(&warm, 50)),
        ("launch-p90", at(&warm, 90)),
        ("launch-max", at(&warm, 100)),
    ] {
        trial.time_metric(name, value);
    }
    let count = launches.len() as f64;
    let mean = |of: fn(&Launched) -> u64| launches.iter().map(of).sum::<u64>() as f64 / count;
    trial.metric("launch-mean", mean(|launch| launch.time.0));
    trial.metric("available-mean", mean(|launch| launch.available.0));
    let least = launches.iter().map(|launch| launch.available).min();
    trial.metric("available-min", least.unwrap_or(Bytes(0)).0 as f64);
    let faults = launches.iter().map(|launch| launch.major_faults);
    trial.metric("launch-major-faults", faults.sum::<u64>() as f64);
    trial.metric("launches", count);
    let mut histogram = Histogram::default();
    for launch in launches {
        histogram.record(launch.time.0);
    }
    trial.histogram("launch", histogram);
    let all = || starts.iter().chain(launches);
    let column = |of: fn(&Launched) -> u64| all().map(move |launch| number::signed(of(launch)));
    trial.series(
        &Series::new("launches")
            .int(
                "program",
                Unit::Count,
                column(|one| u64::from(one.program) + 1),
            )
            .int("time", Unit::Nanos, column(|one| one.time.0))
            .int("major-faults", Unit::Count, column(|one| one.major_faults))
            .int("available", Unit::Bytes, column(|one| one.available.0)),
    );
}

/// Returns the durations of launches in ascending order.
fn times(launches: &[Launched]) -> Vec<Nanos> {
    let mut times: Vec<Nanos> = launches.iter().map(|launch| launch.time).collect();
    times.sort_unstable();
    times
}

/// Returns a percentile of ascending times by the nearest-rank method; zero if there are none.
fn at(times: &[Nanos], percent: usize) -> Nanos {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or(Nanos(0))
}

/// Definition of the scenario `launches`.
pub(crate) static LAUNCHES: Definition = Definition::of::<Launches>(
    Texts {
        name: "launches",
        summary: "how long programs take to come to the foreground when many share a small memory",
        docs: "Starts `programs` programs in turn, each a process in a memory group of its own that maps a `file` and fills `anon` \
               bytes of anonymous memory. Then programs come to the foreground `launches` times, one after the other, in an \
               order that the seed determines: a program reads the first part of its file (`file-share`) in order and of its memory \
               (`anon-share`) in scattered order, and fills `fresh` memory. The time of a launch is that from the order to its end. \
               All programs together are larger than memory, so the kernel must choose between their files and their \
               anonymous memory. `low` protects the program in the foreground, `reclaim` shrinks each program that leaves it. \
               The counters of each group are in the record as memory.stat-program-N, and over time as group-program-N.",
        origin: "none: the question of launch times on phones, for which MGLRU was made (multigen_lru.rst).",
        repaired: "",
    },
    Bytes::from_mib(4096),
    &[],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_comes_to_the_foreground_and_never_twice_in_a_row() {
        let mut order = Foreground::new(Rng::stream(7, "launches"), 5);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            let next = order.next();
            assert_ne!(Some(next), order.current);
            seen[next as usize] += 1;
            order.current = Some(next);
        }
        assert!(
            seen.iter().all(|count| (140..260).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn percentiles_are_times_that_occurred() {
        let times: Vec<Nanos> = (1..=10).map(Nanos).collect();
        assert_eq!([50, 90, 100].map(|p| at(&times, p).0), [5, 9, 10]);
        assert_eq!(at(&times[..1], 90), Nanos(1));
        assert_eq!(at(&[], 50), Nanos(0));
    }
}
