//! The guest's life, from first line to last.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pagetide_record::metric::{Direction, MetricDef, Unit};
use pagetide_record::outcome::{Invalid, Warning};
use pagetide_record::record::Results;
use pagetide_record::wire::{self, Kind, Phase, Region};
use pagetide_record::{Bytes, Metric, SwapSpec};

use crate::error::{GuestError, io};
use crate::spec::{BOOT_SPEC, BootSpec, MOUNT_POINT, TRIAL_ITEM, TrialSpec};
use crate::{
    ballast, counters, filesystem, idle, log, modules, mount, port, region, settings, supervise,
    swap,
};

/// How much of the kernel's log a record keeps.
const LOG_TAIL: usize = 16 << 10;
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
        Ok((boot, region)) => {
            region.set_phase(Phase::Ready);
            port::ready();
            trial(&boot, &region);
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
fn prepare() -> Result<(BootSpec, Region), GuestError> {
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
    supervise::lock_what_is_here();
    if let Some(free) = boot.free {
        // The jitter of each seed is taken from what is left over, so that no seed has less than was promised.
        ballast::leave(Bytes(
            free.0 + JITTER_PAGES * pagetide_record::units::PAGE_SIZE,
        ))?;
    }
    ballast::drop_caches();
    // The mapping outlives a restore, but what it shows does not: pages of the snapshot's own region are gone.
    Ok((boot, region))
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
fn trial(boot: &BootSpec, region: &Region) {
    let mut results = Results::default();
    region.set_phase(Phase::Preparing);
    let spec = port::configuration(TRIAL_ITEM)
        .ok_or_else(|| "there is none".to_owned())
        .and_then(|text| serde_json::from_slice::<TrialSpec>(&text).map_err(|why| why.to_string()));
    match spec {
        Ok(spec) => run(boot, &spec, region, &mut results),
        Err(why) => {
            let why = GuestError::Spec { what: "trial", why }.to_string();
            results.invalid.push(Invalid::Scenario { why });
        }
    }
    let json = serde_json::to_vec(&results).unwrap_or_default();
    // A region that is full keeps the phase below `Done`, which the controller reports.
    if region.write(Kind::Results, "results", &json).is_ok() {
        region.set_phase(Phase::Done);
    }
}

fn run(boot: &BootSpec, spec: &TrialSpec, region: &Region, results: &mut Results) {
    let (read, refused) = settings::apply(&spec.settings);
    results.invalid.extend(refused);
    // Watermarks may have been moved by other settings.
    let fixed: BTreeMap<_, _> = settings::fixed(boot.intended, managed().unwrap_or(boot.intended))
        .into_iter()
        .filter(|(name, _)| !spec.settings.contains_key(name))
        .collect();
    settings::apply(&fixed);
    results.settings = settings::survey();
    results.settings.extend(read);
    if boot.free.is_some() {
        let spare = spec.seed % (JITTER_PAGES + 1);
        let _ = ballast::take(Bytes(
            (JITTER_PAGES - spare) * pagetide_record::units::PAGE_SIZE,
        ));
    }
    ballast::drop_caches();
    facts(boot, results);
    if !results.invalid.is_empty() {
        return;
    }
    let started = supervise::now();
    let before = counters::now();
    let idle_before = counters::idle();
    results
        .invalid
        .extend(supervise::run(region, spec.hang_after, || {
            scenario(boot, spec, region)
        }));
    let idle_after = counters::idle();
    let after = counters::now();

    results.elapsed = supervise::now().since(started);
    results.counters = counters::between(&before, &after);
    results.texts = counters::texts(&before, &after);
    results.halts = Some(counters::halts(idle_before, idle_after));
    take_outcome(boot, region, results);
    judge(spec, results);
    let log = log::read();
    for reason in log::judge(&log, started) {
        // The kernel's own word for a death is better than the signal's number.
        results
            .invalid
            .retain(|known| !matches!(known, Invalid::ProcessDied { .. }));
        results.invalid.push(reason);
    }
    results.kernel_log = log::last(&log, LOG_TAIL).to_owned();
}

/// What the machine is like at the start.
fn facts(boot: &BootSpec, results: &mut Results) {
    let mut fact = |name: &str, value: String| {
        results.facts.insert(name.to_owned(), value);
    };
    if let Ok(free) = ballast::free() {
        fact("free-at-start", free.0.to_string());
    }
    if let Ok(managed) = managed() {
        fact("managed", managed.0.to_string());
    }
    let line = |path: &str| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    fact("release", line("/proc/sys/kernel/osrelease"));
    fact("version", line("/proc/sys/kernel/version"));
    fact(
        "clocksource",
        line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    );
    fact("compressor", boot.compressor.clone());
    let timers = fs::read_to_string("/proc/timer_list").unwrap_or_default();
    if !timers.lines().any(|l| {
        l.trim() == ".hres_active    : 1" || l.contains(".hres_active") && l.ends_with('1')
    }) {
        results.warnings.push(Warning::CoarseTimers);
    }
}

/// Judges what only counters tell.
fn judge(spec: &TrialSpec, results: &mut Results) {
    let halted = results
        .halts
        .as_ref()
        .map_or(0, pagetide_record::Halts::times);
    if halted > 0 {
        results.invalid.push(Invalid::Halted { times: halted });
    }
    let Some(vmstat) = results.counters.get("vmstat") else {
        return;
    };
    let reclaimed: u64 = vmstat
        .values
        .iter()
        .filter(|(name, _)| {
            name.starts_with("pgsteal_") && !name.ends_with("_anon") && !name.ends_with("_file")
        })
        .map(|(_, [before, after])| after.saturating_sub(*before))
        .sum();
    if spec.needs_pressure && reclaimed == 0 && results.invalid.is_empty() {
        results.invalid.push(Invalid::NoReclaim);
    }
    let count = |name: &str| vmstat.delta(name);
    let add = [
        (
            MetricDef::count("major-faults", Direction::Lower, ""),
            count("pgmajfault"),
        ),
        (
            MetricDef::of("swapped-in", Unit::Pages, Direction::Lower, ""),
            count("pswpin"),
        ),
        (
            MetricDef::of("swapped-out", Unit::Pages, Direction::Lower, ""),
            count("pswpout"),
        ),
        (
            MetricDef::of("reclaimed", Unit::Pages, Direction::Neutral, ""),
            Some(reclaimed),
        ),
    ];
    for (def, value) in add {
        if results.metrics.iter().all(|metric| metric.name != def.name) {
            match value {
                Some(value) => results.metrics.push(Metric::new(&def, value as f64)),
                None => results
                    .metrics
                    .push(Metric::absent(&def, "not on this kernel")),
            }
        }
    }
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
    let mut observer = pagetide_scenario::NoObserver;
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
        observer: &mut observer,
    });
    serde_json::to_vec(&outcome).unwrap_or_default()
}

/// Reads what the child left in the region and puts it into the results.
fn take_outcome(boot: &BootSpec, region: &Region, results: &mut Results) {
    let length = usize::try_from(boot.region_size).unwrap_or(0);
    // SAFETY: the child ended, so that nobody writes the region while it is read here.
    let bytes = unsafe { region::bytes(region, 0, length) };
    let outcome = wire::frames(bytes)
        .find(|frame| frame.kind == Kind::Blob && frame.name == supervise::OUTCOME)
        .and_then(|frame| serde_json::from_slice::<pagetide_scenario::Outcome>(frame.bytes).ok());
    match outcome {
        Some(outcome) => {
            results.elapsed = outcome.elapsed;
            results.metrics = outcome.metrics;
            results.histograms = outcome.histograms;
            results.invalid.extend(outcome.invalid);
            results.warnings.extend(outcome.warnings);
            results.texts.extend(outcome.texts);
        }
        None if results.invalid.is_empty() => {
            results.invalid.push(Invalid::Scenario {
                why: "it left no outcome".to_owned(),
            });
        }
        None => {}
    }
}
