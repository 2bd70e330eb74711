//! The guest's life, from first line to last.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pagetide_probe::meaning::TaskAccounting;
use pagetide_probe::observed::{PHASES, PhaseBegin, TASKS};
use pagetide_record::outcome::{Invalid, Warning};
use pagetide_record::wire::{Kind, Phase, Region};
use pagetide_record::{Bytes, Pass, SwapSpec};

use crate::ballast::Held;
use crate::error::{GuestError, io};
use crate::observer::Observer;
use crate::report::{self, Ran, Report};
use crate::spec::{BOOT_SPEC, BootSpec, MOUNT_POINT, TRIAL_ITEM, TrialSpec};
use crate::{
    ballast, counters, filesystem, idle, log, modules, mount, port, region, settings, supervise,
    swap,
};

/// The largest jitter of the ballast: it moves every trajectory a little, so that a verdict rests on several.
const JITTER_PAGES: u64 = 64;

/// Runs as PID 1 to the end; never returns and never panics.
pub fn main() -> ! {
    // A panic's message goes where a person can find it, and the emulator ends.
    std::panic::set_hook(Box::new(|info| {
        port::say(&format!("pagetide: guest program: {info}\n"));
        port::exit(false);
    }));
    let _ = port::allow();
    match prepare() {
        Ok((boot, known, region, spare)) => {
            region.set_phase(Phase::Ready);
            port::ready();
            trial(&boot, &known, &region, spare);
            port::exit(true)
        }
        Err(why) => {
            // For a person who looks at the console: where memory went.
            port::say(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
            port::say(&format!("pagetide: {why}\n"));
            port::exit(false)
        }
    }
}

/// Everything up to the ready point.
fn prepare() -> Result<(BootSpec, Known, Region, Held), GuestError> {
    mount::all()?;
    let text = fs::read(BOOT_SPEC).map_err(io("reading", BOOT_SPEC))?;
    let boot: BootSpec = serde_json::from_slice(&text).map_err(|why| GuestError::Spec {
        what: "boot",
        why: why.to_string(),
    })?;
    // Before the region is mapped, whose page tables the spinner would carry.
    idle::start()?;
    let region = region::map(boot.region_at, boot.region_size)?;
    modules::load(&boot.modules)?;
    let (_, refused) = settings::apply(&settings::fixed(boot.intended, managed()?));
    if let Some(why) = refused.first() {
        return Err(io("preparing watermarks", why.to_string())(
            std::io::Error::other("refused"),
        ));
    }
    let disk = if matches!(boot.swap, SwapSpec::Ssd(_)) {
        "/dev/nullb1"
    } else {
        "/dev/nullb0"
    };
    swap::prepare(boot.swap, boot.swap_size, &boot.compressor)?;
    if let Some(size) = boot.filesystem {
        filesystem::prepare(disk, size)?;
    }
    let known = facts(&boot)?;
    supervise::lock_what_is_here();
    let spare = ballast::hold(boot.spare)?;
    if let Some(free) = boot.free {
        // The jitter of each seed is taken from what is left over, so that no seed has less than was promised.
        ballast::leave(Bytes(
            free.0 + JITTER_PAGES * pagetide_record::units::PAGE_SIZE,
        ))?;
    }
    ballast::drop_caches();
    // The mapping outlives a restore, but what it shows does not: pages of the snapshot's own region are gone.
    Ok((boot, known, region, spare))
}

/// Managed memory of the machine.
fn managed() -> Result<Bytes, GuestError> {
    let text = fs::read_to_string("/proc/meminfo").map_err(io("reading", "/proc/meminfo"))?;
    text.lines()
        .find_map(|line| {
            line.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix(" kB")?
                .trim()
                .parse()
                .ok()
        })
        .map(Bytes::from_kib)
        .ok_or(GuestError::Unexpected {
            file: "/proc/meminfo",
            what: "MemTotal",
        })
}

/// From the ready point to the last frame.
fn trial(boot: &BootSpec, known: &Known, region: &Region, spare: Held) {
    let mut report = Report::default();
    region.set_phase(Phase::Preparing);
    match serde_json::from_slice::<TrialSpec>(&port::text(known.trial)) {
        Ok(spec) => run(boot, known, &spec, region, spare, &mut report),
        Err(why) => {
            let why = why.to_string();
            let why = GuestError::Spec { what: "trial", why }.to_string();
            report.results.invalid.push(Invalid::Scenario { why });
        }
    }
    let json = serde_json::to_vec(&report).unwrap_or_default();
    let written = region
        .write(Kind::Blob, report::LOG, log::read().as_bytes())
        .and_then(|()| region.write(Kind::Results, report::REPORT, &json));
    // A region that is full keeps the phase below `Done`, which the controller reports.
    if written.is_ok() {
        region.set_phase(Phase::Done);
    }
}

fn run(
    boot: &BootSpec,
    known: &Known,
    spec: &TrialSpec,
    region: &Region,
    spare: Held,
    report: &mut Report,
) {
    let results = &mut report.results;
    let (read, refused) = settings::apply(&spec.settings);
    results.invalid.extend(refused);
    results.settings = known.settings.clone();
    if !spec.settings.is_empty() {
        if settings::move_watermarks(spec.settings.keys()) {
            let fixed: BTreeMap<_, _> = settings::fixed(boot.intended, known.managed)
                .into_iter()
                .filter(|(name, _)| !spec.settings.contains_key(name))
                .collect();
            settings::apply(&fixed);
        }
        // What was set may have changed what lies beside it.
        results.settings.extend(settings::survey(|name| {
            settings::beside(name, spec.settings.keys())
        }));
    }
    results.settings.extend(read);
    results.facts = known.facts.clone();
    results.warnings = known.warnings.clone();
    let observer = match spec.pass {
        Pass::Timed => None,
        Pass::Observed => match observer(boot, region, spare) {
            Ok(observer) => Some(observer),
            Err(why) => {
                let why = why.to_string();
                results.invalid.push(Invalid::Scenario { why });
                return;
            }
        },
    };
    if boot.free.is_some() {
        let spare = spec.seed % (JITTER_PAGES + 1);
        let _ = ballast::take(Bytes(
            (JITTER_PAGES - spare) * pagetide_record::units::PAGE_SIZE,
        ));
    }
    if !results.invalid.is_empty() {
        return;
    }
    let started = supervise::now();
    let before = counters::now();
    let idle_before = counters::idle();
    let observing = observer.as_ref().map_or(Ok(()), Observer::begin);
    results
        .invalid
        .extend(supervise::run(region, spec.hang_after, || {
            scenario(boot, spec, region)
        }));
    let observed = observing.and_then(|()| observer.map_or(Ok(()), Observer::end));
    if let Err(why) = observed {
        let why = why.to_string();
        results.invalid.push(Invalid::Scenario { why });
    }
    let idle_after = counters::idle();
    let after = counters::now();
    report.ran = Some(Ran {
        started,
        ended: supervise::now(),
        before,
        after,
        idle_before,
        idle_after,
    });
}

/// Starts the observer in the place of the spare memory, and leaves as much free as there was.
fn observer(boot: &BootSpec, region: &Region, spare: Held) -> Result<Observer, GuestError> {
    ballast::drop_caches();
    let free = ballast::free()?;
    spare.release();
    let observer = Observer::start(boot, region)?;
    ballast::leave(free)?;
    Ok(observer)
}

/// Notes when phases begin.
struct PhaseLog(Vec<PhaseBegin>);

impl pagetide_scenario::Observer for PhaseLog {
    fn phase(&mut self, name: &str) {
        self.0.push(PhaseBegin {
            name: name.to_owned(),
            begin: moment(),
        });
    }
}

/// The time on the trace's clock.
fn moment() -> pagetide_probe::Nanos {
    pagetide_probe::Nanos(supervise::now().0)
}

/// What the kernel accounted to the processes of the workload: the main one between two moments, the others from their
/// begin to their end, which the trace tells.
fn accounting(
    outcome: &pagetide_scenario::Outcome,
    begin: pagetide_probe::Nanos,
    end: pagetide_probe::Nanos,
) -> Vec<TaskAccounting> {
    let nanos = |time: pagetide_record::Nanos| Some(pagetide_probe::Nanos(time.0));
    let own = std::process::id();
    outcome
        .processes
        .iter()
        .map(|process| {
            let is_main = process.pid == own;
            TaskAccounting {
                pid: process.pid,
                begin: is_main.then_some(begin),
                end: is_main.then_some(end),
                user: nanos(process.user),
                system: nanos(process.system),
            }
        })
        .collect()
}

/// What is known at the ready point and stays so.
struct Known {
    /// Where the trial's specification will be.
    trial: u16,
    managed: Bytes,
    settings: BTreeMap<String, String>,
    facts: BTreeMap<String, String>,
    warnings: Vec<Warning>,
}

/// What the machine is like at the ready point.
fn facts(boot: &BootSpec) -> Result<Known, GuestError> {
    let mut known = Known {
        trial: port::find(TRIAL_ITEM).ok_or_else(|| GuestError::Spec {
            what: "trial",
            why: "there is none".to_owned(),
        })?,
        managed: managed()?,
        settings: settings::survey(|_| true),
        facts: BTreeMap::new(),
        warnings: Vec::new(),
    };
    let line = |path: &str| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let facts = [
        ("managed", known.managed.0.to_string()),
        ("release", line("/proc/sys/kernel/osrelease")),
        ("version", line("/proc/sys/kernel/version")),
        (
            "clocksource",
            line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        ("compressor", boot.compressor.clone()),
    ];
    known.facts = facts.map(|(name, value)| (name.to_owned(), value)).into();
    let timers = fs::read_to_string("/proc/timer_list").unwrap_or_default();
    if !timers
        .lines()
        .any(|line| line.contains(".hres_active") && line.ends_with('1'))
    {
        known.warnings.push(Warning::CoarseTimers);
    }
    Ok(known)
}

/// Runs the scenario in the child; what it returns is the encoded outcome.
fn scenario(boot: &BootSpec, spec: &TrialSpec, region: &Region) -> Vec<u8> {
    // The scenario's own processes write nothing there, and its page tables would take memory from each.
    region::keep_from_children(region, boot.region_size);
    let data = spec.data.map_or(&[][..], |(offset, length)| {
        let fits = offset
            .checked_add(length)
            .is_some_and(|end| end <= boot.region_size);
        let (Ok(offset), Ok(length), true) =
            (usize::try_from(offset), usize::try_from(length), fits)
        else {
            return &[];
        };
        // SAFETY: the range lies within the region, and the controller put it where no frame reaches.
        unsafe { region::bytes(region, offset, length) }
    });
    let work_dir = if boot.filesystem.is_some() {
        MOUNT_POINT
    } else {
        "/tmp"
    };
    let _ = fs::create_dir_all(work_dir);
    let mut nobody = pagetide_scenario::NoObserver;
    let mut phases = PhaseLog(Vec::with_capacity(32));
    let observed = spec.pass == Pass::Observed;
    let observer: &mut dyn pagetide_scenario::Observer =
        if observed { &mut phases } else { &mut nobody };
    let begin = moment();
    let outcome = pagetide_scenario::run(pagetide_scenario::Setup {
        name: &spec.scenario,
        as_written: spec.as_written,
        params: &spec.params,
        seed: spec.seed,
        context: pagetide_scenario::Context {
            memory: spec.memory,
            swap_size: spec.swap_size,
            cpus: 1,
        },
        region: *region,
        clock: pagetide_scenario::Clock::RawTsc,
        work_dir: Path::new(work_dir),
        data,
        observer,
    });
    if observed {
        let tasks = accounting(&outcome, begin, moment());
        let tasks = serde_json::to_vec(&tasks).unwrap_or_default();
        let phases = serde_json::to_vec(&phases.0).unwrap_or_default();
        // A region that is full says so by itself.
        let _ = region.write(Kind::Blob, TASKS, &tasks);
        let _ = region.write(Kind::Blob, PHASES, &phases);
    }
    serde_json::to_vec(&outcome).unwrap_or_default()
}
