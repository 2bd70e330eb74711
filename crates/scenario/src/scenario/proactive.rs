//! What does a request to `memory.reclaim` take, and what does it cost?
//!
//! A process in a memory group uses a part of its memory and no longer needs the rest. Requests ask the kernel to reclaim
//! from the group, at stated moments. Origin: proactive reclaim by a user-space agent; there is no original program.

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Unit};
use pagetide_record::Invalid;

use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts, must_fit};
use crate::error::{ScenarioError, Stop};
use crate::expr::Names;
use crate::fill::{Filler, check_content};
use crate::groups::{
    self, GroupSpec, GroupUse, Limit, MadeRequest, MemoryGroup, ReclaimRequest, Watch, optional,
};
use crate::paced::{BURST, Paced, PacedReport};
use crate::page_size::PageSize;
use crate::params::{choice, params};
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::workers::Team;

/// Name of the cgroup from which memory is reclaimed.
const TARGET: &str = "target";
/// Name of the latency-sensitive process's cgroup.
const SENSITIVE: &str = "sensitive";
/// Name of the cgroup that contains these two.
const PARENT: &str = "both";

choice! {
    /// Cgroup from which reclaim is requested.
    pub(crate) enum Asked {
        /// The cgroup with the cold memory.
        Target = "target",
        /// The cgroup that contains the one with the cold memory and the latency-sensitive one.
        Both = "both",
    }
}

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Proactive {
        /// Memory of the group that memory is reclaimed from.
        size: Bytes = "0.5 * memory", min = "256K";
        /// Part of this memory that its process no longer uses.
        cold: f64 = "0.5", max = "0.99";
        /// Amount that each request asks for.
        request: Bytes = "0.05 * size", min = "4K";
        /// Number of requests.
        requests: u32 = "8", min = "1", max = "10000";
        /// Time between the starts of two requests.
        interval: Nanos = "100ms", min = "1ms", max = "60s";
        /// Group to which requests are made: the one with the cold memory (target), or the one that contains it and the
        /// latency-sensitive group (both).
        asked: Asked = "target";
        /// Pause of a process after every 32 accesses.
        pause: Nanos = "1ms", max = "1s";
        /// Working set of a latency-sensitive group beside it; 0 for none.
        sensitive: Bytes = "0.15 * memory";
        /// Protection of the latency-sensitive group (memory.low); 0 for none.
        low: Bytes = "sensitive";
        /// Further limits of the group that memory is reclaimed from, as KEY=VALUE words without spaces in them: min,
        /// low, max, high, swap.max, zswap.max, and reclaim=AMOUNT@TIME for further requests.
        limits: String = "";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of anonymous memory: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if
        /// the kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no
        /// madvise).
        page_size: PageSize = "small";
    }
}

impl Proactive {
    /// Returns the description of the process called `name`: that with the cold memory, or the latency-sensitive one.
    fn process<'a>(
        &self,
        name: &'static str,
        group: &'a MemoryGroup,
        filler: &'a Filler,
    ) -> Paced<'a> {
        let (size, cold) = match name {
            TARGET => (self.size, self.cold),
            _ => (self.sensitive, 0.0),
        };
        let pages = size.pages();
        let used = pagetide_quantity::floor(pages.0 as f64 * (1.0 - cold));
        Paced {
            name,
            group,
            file: None,
            filler,
            page_size: self.page_size,
            pages,
            used: pagetide_quantity::Pages(used.max(1)),
            pause: self.pause,
            // Each page is accessed about twice before the first request.
            alone: 2 * used.max(BURST),
            beside: None,
        }
    }
}

impl Scenario for Proactive {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::of(
            "overshoot",
            Unit::Count,
            Direction::Lower,
            "memory that all requests took, divided by what they asked for: 1 is exact"
        )
        .primary(),
        MetricDef::of(
            "asked",
            Unit::Bytes,
            Direction::Neutral,
            "memory that all requests asked for"
        ),
        MetricDef::of(
            "taken",
            Unit::Bytes,
            Direction::Neutral,
            "memory that the kernel reclaimed from the group during the requests, by its own count"
        ),
        MetricDef::of(
            "freed",
            Unit::Bytes,
            Direction::Neutral,
            "amount by which the memory of the group shrank during the requests"
        ),
        MetricDef::count(
            "short",
            Direction::Lower,
            "requests that took less than they asked for, as the kernel said"
        ),
        MetricDef::time("request-mean", "mean time of a request").primary(),
        MetricDef::time("request-max", "longest request"),
        MetricDef::of(
            "rate",
            Unit::BytesPerSecond,
            Direction::Higher,
            "memory taken per second of the requests' time"
        ),
        MetricDef::time(
            "access-mean",
            "mean access of the group's process while requests are made"
        )
        .primary(),
        MetricDef::time("access-p50", "median of these accesses"),
        MetricDef::time("access-p99", "99th percentile of these accesses"),
        MetricDef::time(
            "before-mean",
            "mean access of the group's process before the first request"
        ),
        MetricDef::count(
            "refaults",
            Direction::Lower,
            "pages of the group that were taken and came back"
        ),
        MetricDef::share(
            "returned",
            Direction::Lower,
            "part of the memory taken that came back: it was not cold"
        ),
        MetricDef::time(
            "stalled",
            "time in which the group waited for memory (its memory.pressure)"
        ),
        MetricDef::time(
            "sensitive-mean",
            "mean access of the latency-sensitive process while requests are made"
        ),
        MetricDef::time("sensitive-p99", "99th percentile of these accesses"),
        MetricDef::time(
            "sensitive-before-mean",
            "mean access of the latency-sensitive process before the first request"
        ),
        MetricDef::of(
            "sensitive-taken",
            Unit::Pages,
            Direction::Lower,
            "pages that the kernel reclaimed from the latency-sensitive group"
        ),
        MetricDef::count(
            "sensitive-refaults",
            Direction::Lower,
            "pages of the latency-sensitive group that were taken and came back"
        ),
        COMPRESSED,
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        let contradiction = |why: String| ScenarioError::Contradiction {
            scenario: name.to_owned(),
            why,
        };
        let all = Bytes(self.size.0.saturating_add(self.sensitive.0));
        must_fit(all, context)?;
        if all > context.memory {
            return Err(contradiction(format!(
                "its groups hold {all} of {} of memory, so that the kernel reclaims without being asked: lower size or \
                 sensitive",
                context.memory
            )));
        }
        if self.request > self.size {
            return Err(contradiction(format!(
                "a request of {} is more than the {} of the group: lower request",
                self.request, self.size
            )));
        }
        let names = groups::names(context.memory, context.swap_size);
        self.groups(&names)
            .and_then(|groups| groups::check(&groups, context.memory))
            .map_err(contradiction)
    }

    fn needs(&self, _form: Form) -> Needs {
        Needs {
            swap: true,
            groups: true,
            reclaim_requests: true,
            ..self.page_size.needs()
        }
    }

    /// Returns the descriptions of the cgroups: first the one that contains the others, then the target, then the
    /// latency-sensitive one if there is one.
    fn groups(&self, names: &Names) -> Result<Vec<GroupSpec>, String> {
        let mut target = GroupSpec::read(&format!("{TARGET} {}", self.limits), names)?;
        // The protection of a group is limited by the protection of the group around it.
        let mut parent = GroupSpec::new(PARENT).with(Limit::Low, optional(self.low));
        parent.is_around = true;
        let requests = (1..=u64::from(self.requests)).map(|number| ReclaimRequest {
            at: Nanos(self.interval.0.saturating_mul(number)),
            size: self.request,
        });
        match self.asked {
            Asked::Target => target.requests.extend(requests),
            Asked::Both => parent.requests.extend(requests),
        }
        let mut groups = vec![parent, target];
        if self.sensitive.0 > 0 {
            groups.push(GroupSpec::new(SENSITIVE).with(Limit::Low, optional(self.low)));
        }
        Ok(groups)
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let specs = groups::of_trial(trial.subject, |names| self.groups(names))?;
        let (around, inside) = specs.split_at(1);
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let parent = MemoryGroup::create(&around[0])?;
        let groups = inside
            .iter()
            .map(|spec| parent.create_inside(spec))
            .collect::<Result<Vec<_>, Stop>>()?;
        trial.settle();

        trial.phase("fill");
        let mut teams: Vec<Team> = Vec::new();
        for (name, group) in [TARGET, SENSITIVE].into_iter().zip(&groups) {
            let mut team = self.process(name, group, &filler).start(trial)?;
            team.gathered()?;
            teams.push(team);
        }
        trial.phase("before");
        teams.iter_mut().try_for_each(Team::open)?;
        teams.iter_mut().try_for_each(Team::gathered)?;

        trial.phase("requests");
        let mut watched: Vec<_> = groups.iter().zip(inside).collect();
        watched.push((&parent, &around[0]));
        let mut watch = Watch::begin(&watched, trial.place.clock);
        teams.iter_mut().try_for_each(Team::open)?;
        let end = self.interval.0.saturating_mul(u64::from(self.requests) + 1);
        let started = trial.place.clock.now();
        while !watch.has_asked_all() || trial.place.clock.now().since(started).0 < end {
            for team in &mut teams {
                team.look_for_the_dead()?;
            }
            watch.step()?;
            trial.tick();
        }
        trial.compressed();
        let watched = watch.end(trial);
        teams.iter().for_each(Team::ask_to_stop);
        trial.phase("report");
        let mut reports = Vec::new();
        for mut team in teams {
            team.open()?;
            for ended in team.join()? {
                trial.account(ended.usage);
                reports.push(PacedReport::of(&ended));
            }
        }
        Self::report(trial, &reports, &watched.uses, &watched.requests);
        Ok(())
    }
}

impl Proactive {
    fn report(
        trial: &mut Trial<'_>,
        processes: &[PacedReport],
        uses: &[GroupUse],
        requests: &[MadeRequest],
    ) {
        let sum = |of: fn(&MadeRequest) -> u64| requests.iter().map(of).sum::<u64>() as f64;
        let asked = sum(|made| made.result.asked.0);
        let taken = sum(|made| made.result.taken.0);
        let time = sum(|made| made.result.time.0);
        if taken == 0.0 {
            trial.invalid(Invalid::NoReclaim);
        }
        trial.metric("asked", asked);
        trial.metric("taken", taken);
        trial.metric("freed", sum(|made| made.result.freed.0));
        trial.metric("overshoot", taken / asked.max(1.0));
        trial.metric("short", sum(|made| u64::from(!made.result.is_complete)));
        trial.metric("request-mean", time / requests.len().max(1) as f64);
        let longest = requests.iter().map(|made| made.result.time).max();
        trial.time_metric("request-max", longest.unwrap_or(Nanos(0)));
        trial.metric(
            "rate",
            taken / Nanos(pagetide_quantity::floor(time)).secs().max(1e-9),
        );

        let refaults = |used: &GroupUse| used.refaults_anon() + used.refaults_file();
        if let (Some(own), Some(used)) = (processes.first(), uses.first()) {
            trial.metric("access-mean", own.mean);
            trial.metric("access-p50", own.p50 as f64);
            trial.metric("access-p99", own.p99 as f64);
            trial.metric("before-mean", own.alone_mean);
            trial.metric("refaults", refaults(used) as f64);
            match used.stat("pgsteal") {
                0 => trial.absent("returned", "nothing was taken"),
                stolen => trial.metric("returned", refaults(used) as f64 / stolen as f64),
            }
            match used.stalled {
                Some(time) => trial.time_metric("stalled", time),
                None => trial.absent("stalled", "not on this kernel"),
            }
        }
        if let (Some(own), Some(used)) = (processes.get(1), uses.get(1)) {
            trial.metric("sensitive-mean", own.mean);
            trial.metric("sensitive-p99", own.p99 as f64);
            trial.metric("sensitive-before-mean", own.alone_mean);
            trial.metric("sensitive-taken", used.stat("pgsteal") as f64);
            trial.metric("sensitive-refaults", refaults(used) as f64);
        } else {
            let names = Self::METRICS.iter().map(|def| def.name);
            for name in names.filter(|name| name.starts_with("sensitive")) {
                trial.absent(name, "there is no latency-sensitive group");
            }
        }
    }
}

/// Definition of the scenario `proactive`.
pub(crate) static PROACTIVE: Definition = Definition::of::<Proactive>(
    Texts {
        name: "proactive",
        summary: "what requests to memory.reclaim take from a group, how long they last and what they cost it",
        docs: "A process in a memory group fills `size` bytes and then accesses all but the `cold` part of them at random, in \
               bursts of 32 with a `pause` between. Then `requests` requests are written to memory.reclaim, one every \
               `interval`, each for `request` bytes. For each, the record has what was asked, what the kernel took by its own \
               count, by how much the group shrank, and how long it lasted (series requests). What comes back was not \
               cold, and its accesses wait. Beside it a latency-sensitive group of `sensitive` bytes is protected by `low`; with \
               `asked=both` requests go to the group that contains both, and the protection decides. The counters of each \
               group are in the record as memory.stat-both-target and so on, and over time as group-both-target.",
        origin: "none: proactive reclaim by memory.reclaim (cgroup-v2.rst), as user-space agents use it.",
        repaired: "",
    },
    Bytes::from_mib(1024),
    &[],
);
