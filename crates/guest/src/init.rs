//! The guest from start to end: boot, ready point, trial, results.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use pagetide_harness::counters::{self, CounterSet, Idle};
use pagetide_harness::judgement::{self, Report};
use pagetide_harness::peak::{ZSWAP_PEAK, ZswapPeak};
use pagetide_harness::sequence::{self, MachineState, Steps};
use pagetide_harness::settings::{self, Settings};
use pagetide_harness::swap::{Swap, fill, zswap};
use pagetide_harness::{MachineFate, log, supervise};
use pagetide_probe::Scope;
use pagetide_quantity::Bytes;
use pagetide_record::nodes::POLICY;
use pagetide_record::outcome::{Invalid, Warning};
use pagetide_record::wire::{Kind, Phase, Region};
use pagetide_record::{Counters, FileSystem, FilesOn, Pass, SwapDisk, SwapSpec, TraceRing};

use pagetide_scenario::Group;
use pagetide_system::idle::Timers;
use pagetide_system::{Syntax, meminfo};

use crate::ballast::{Ballast, Reserve};
use crate::error::{GuestError, io};
use crate::idle::Spinner;
use crate::observer::Observer;
use crate::size::Held;
use crate::spec::{BOOT_SPEC, BootSpec, Order, TRIAL_ITEM};
use crate::start::Start;
use crate::tiers::SwapAreas;
use crate::workload::Workload;
use crate::{
    ballast, disk, files, filesystem, maker, modules, mount, nodes, port, region, root, size, ssd,
    start, tiers, tracearea, turns,
};

/// Time that the guest waits for work that the kernel defers until after boot, so that this work does not run during a
/// trial. The wait costs almost no wall-clock time, because the CPU is idle.
const SETTLE: Duration = Duration::from_millis(500);

/// Memory that the arena holds while it tells the kernel the size of a machine with several CPUs, and frees again at the
/// ready point. Meanwhile tasks on other CPUs allocate some pages, and without this reserve too few would be free then.
const RESERVE: Bytes = Bytes::from_mib(2);

/// Device node of the zram device used for swap.
const ZRAM: &str = "/dev/zram0";

/// Runs PID 1 of the guest. Never returns; a panic ends the emulator.
pub fn main() -> ! {
    // On a panic, print the message on the console and end the emulator.
    std::panic::set_hook(Box::new(|info| {
        port::say(&format!("pagetide: guest program: {info}\n"));
        port::exit(false);
    }));
    let _ = port::allow();
    match prepare() {
        Ok(ready) => {
            ready.region.set_phase(Phase::Ready);
            let resume = start::after(start::now());
            port::ready();
            start::wait_until(resume);
            trial(ready);
            port::exit(true)
        }
        Err(why) => {
            // Shows a reader of the console how memory is used.
            port::say(&fs::read_to_string(meminfo::PATH).unwrap_or_default());
            port::say(&format!("pagetide: {why}\n"));
            port::exit(false)
        }
    }
}

/// State of the guest at the ready point, where its snapshot is taken.
struct ReadyGuest {
    boot: BootSpec,
    known: MachineFacts,
    region: Region<'static>,
    workload: Workload,
    spare: Ballast,
    jitter: Reserve,
    settings: Settings,
    swap: SwapAreas,
    counters: CounterSet,
    /// Reader of the peak memory of zswap; `None` if zswap is off at the ready point.
    peak: Option<ZswapPeak>,
    /// Idle counters at the ready point, after which the CPU must not halt.
    idle: Idle,
    /// Spinner of PID 1. It spins only while the workload's spinner does not.
    spinner: Spinner,
}

/// Prepares the guest up to the ready point.
fn prepare() -> Result<ReadyGuest, GuestError> {
    mount::all()?;
    let text = fs::read(BOOT_SPEC).map_err(io("reading", BOOT_SPEC))?;
    let boot: BootSpec = serde_json::from_slice(&text).map_err(|why| GuestError::Spec {
        what: "boot",
        why: why.to_string(),
    })?;
    // Start it before the region is mapped, otherwise it would inherit the page tables of the region.
    let spinner = if boot.real_time {
        ssd::in_real_time();
        Spinner::none()
    } else {
        Spinner::start()?
    };
    if boot.cpus.are_several() && !boot.real_time {
        turns::start_spinners(boot.cpus, &spinner)?;
        ssd::beside_other_cpus();
    }
    let region = region::map(boot.region_at, boot.region_size)?;
    modules::load(&boot.modules)?;
    let settings = Settings::of_machine(MachineFate::Ends);
    prepare_settings(
        &settings,
        &settings::fixed(boot.intended, size::of_machine()?),
    )?;
    let mut held = Held::default();
    let ssds = match &boot.ssd {
        Some(spec) => ssd::start(spec)?,
        None => Vec::new(),
    };
    // The first disk is the swap device if the trial swaps to one; otherwise it holds the file system.
    let mut ssds = ssds.into_iter();
    let swap = swap(&boot, &mut ssds, &mut held)?;
    let turning = boot.swap.rotating_disks();
    let mut disks = swap.disks.clone();
    if let Some(size) = boot.filesystem {
        disks.extend(disk_for_files(&boot, size, turning, &mut ssds, &mut held)?);
    }
    let counters = CounterSet::open(&scope(&swap, &boot));
    let missing: Vec<String> = counters
        .unsupported()
        .iter()
        .map(|missing| format!("{}: {}", missing.source, missing.why))
        .collect();
    // Reads the facts once in advance, so that memory for their texts is allocated before the ballast.
    let first = facts(&boot, &settings, &disks, &missing)?;
    let is_zswap = first.settings.get("zswap/enabled");
    let peak = match is_zswap.map(|state| state.trim()) {
        Some("Y") => ZswapPeak::open().ok(),
        _ => None,
    };
    drop(first);
    // This includes memory for the texts of the counters: without the lock, 3 pages of it were swapped out together
    // with the workload's pages.
    supervise::lock_everything();
    let workload = Workload::stand_by(&boot, &region)?;
    tiers::group(boot.swap, workload.id())?;
    if !boot.cpus.are_several() {
        spinner.pause();
    }
    std::thread::sleep(SETTLE);
    ballast::drop_caches();
    let tiers = nodes::proven_tiers(&boot.nodes)?;
    let (spare, jitter, reserve) = held.add(|| {
        let spare = ballast::hold(boot.spare)?;
        let jitter = Reserve::new(start::MAX_PAGES)?;
        let is_needed = boot.cpus.are_several() && !boot.real_time;
        let reserve = is_needed.then(|| ballast::hold(RESERVE)).transpose()?;
        leave(&boot)?;
        Ok((spare, jitter, reserve))
    })?;
    let lacking = resize(&held, &settings, &boot)?;
    let mut known = facts(&boot, &settings, &disks, &missing)?;
    let fact = ("held".to_owned(), held.size().0.to_string());
    known.facts.extend([fact]);
    known.warnings.extend(lacking);
    if !boot.nodes.is_default() {
        known.facts.extend([("memory-tiers".to_owned(), tiers)]);
    }
    if matches!(boot.swap, SwapSpec::Tiers(_)) {
        let fact = ("swap-areas".to_owned(), swap.names());
        known.facts.extend([fact]);
        known.warnings.extend(tiers::warnings(boot.swap));
    }
    drop(reserve);
    leave(&boot)?;
    // Allocating the ballast may have mixed page types within pageblocks. The kernel then raises the watermarks for a
    // while (watermark boost). Writing this setting again removes the boost.
    settings.rewrite("vm.min_free_kbytes");
    ballast::drop_caches();
    workload.waits()?;
    if boot.cpus.are_several() && !boot.real_time {
        turns::start(boot.cpus)?;
    }
    // The mapping survives a restore, but its content does not: the restored guest has a new region.
    Ok(ReadyGuest {
        boot,
        known,
        region,
        workload,
        spare,
        jitter,
        settings,
        swap,
        counters,
        peak,
        idle: counters::idle(),
        spinner,
    })
}

/// Creates and mounts the trial's file system of `size` bytes: tmpfs, or on the kind of disk that the trial asks for.
/// Returns the device if it is a simulated rotating disk. `turning` is the number of rotating disks that swap uses. The
/// memory in which a simulated disk keeps its content is added to `held`.
fn disk_for_files(
    boot: &BootSpec,
    size: Bytes,
    turning: usize,
    ssds: &mut impl Iterator<Item = String>,
    held: &mut Held,
) -> Result<Option<String>, GuestError> {
    let mut rotating = None;
    let device = match (boot.files_on.system, boot.files_on.on) {
        (FileSystem::Tmpfs, _) => None,
        (_, FilesOn::Disk(spec)) => {
            let device = held.add(|| disk::start(turning, size, spec))?;
            rotating = Some(device.clone());
            Some(device)
        }
        (_, FilesOn::Ssd | FilesOn::Null) => {
            let device = next(ssds)?;
            held.add(|| Ok(fill(&device, size)?))?;
            Some(device)
        }
    };
    file_system(boot, device.as_deref(), size)?;
    Ok(rotating)
}

/// Locks memory until the specified amount is free. Does nothing if no amount is specified.
fn leave(boot: &BootSpec) -> Result<(), GuestError> {
    let Some(free) = boot.free else {
        return Ok(());
    };
    // Each seed leaves some pages free in addition to the specified amount; no seed leaves less.
    let most = start::MAX_PAGES * pagetide_quantity::PAGE_SIZE;
    if boot.nodes.is_default() {
        return ballast::leave(Bytes(free.0 + most));
    }
    let mut wanted: Vec<Bytes> = boot.nodes.all().iter().map(|node| node.free).collect();
    // The pages of seeds are on the first node.
    if let Some(first) = wanted.first_mut() {
        first.0 += most;
    }
    nodes::leave(&wanted)
}

/// Tells the kernel the size of the machine without the pages that the arena holds, and makes the kernel derive its
/// limits from this size. If the kernel lacks what this needs, returns a warning; then only the watermarks match this
/// size.
fn resize(
    held: &Held,
    settings: &Settings,
    boot: &BootSpec,
) -> Result<Option<Warning>, GuestError> {
    let counted = size::of_machine()?;
    let meant = Bytes(counted.0.saturating_sub(held.size().0));
    let lacking = held.take_out(trial_item()?)?;
    let mut derived = settings::derived(meant);
    derived.retain(|name, _| settings.read(name).is_some());
    prepare_settings(settings, &derived)?;
    prepare_settings(settings, &settings::fixed(meant, size::of_machine()?))?;
    for name in settings::REDERIVE {
        settings.rewrite(name);
    }
    if boot.root.is_some() {
        size::resize_shared_memory();
    }
    Ok(lacking.map(|why| Warning::LargerMachine {
        counted,
        meant,
        why,
    }))
}

/// Applies settings that the arena needs. Fails if the kernel refuses one.
fn prepare_settings(
    settings: &Settings,
    wanted: &BTreeMap<String, String>,
) -> Result<(), GuestError> {
    let applied = settings.apply(wanted);
    match applied.refused.first() {
        None => Ok(()),
        Some(why) => Err(io("preparing settings", why.to_string())(
            std::io::Error::other("refused"),
        )),
    }
}

/// Creates the file system of the trial and mounts it. If there is a program's root, copies the root into the file
/// system.
fn file_system(boot: &BootSpec, device: Option<&str>, size: Bytes) -> Result<(), GuestError> {
    let area = (boot.trace_at, boot.trace_size);
    match (boot.files_on.system, device) {
        (FileSystem::Ext4, Some(device)) => match &boot.root {
            None => return filesystem::prepare(device, size),
            Some(_) => root::prepare(device, size, area)?,
        },
        (system, device) => {
            if let (Some(maker), Some(device)) = (&boot.maker, device) {
                maker::run(maker, device)?;
            }
            let source = files::FileSystemSource {
                system,
                device,
                size,
            };
            source.mount()?;
            if boot.root.is_none() {
                return Ok(());
            }
            files::fill(area)?;
            source.settle()?;
        }
    }
    root::furnish()
}

/// Sets up the swap of the trial. Adds the memory that holds the content of simulated disks to `held`.
fn swap(
    boot: &BootSpec,
    ssds: &mut impl Iterator<Item = String>,
    held: &mut Held,
) -> Result<SwapAreas, GuestError> {
    let (size, after) = (boot.swap_size, MachineFate::Ends);
    match boot.swap {
        SwapSpec::Zram(_) => {
            let swap = Swap::on_zram(ZRAM, size, &boot.compressor, after)?;
            return Ok(SwapAreas::one(swap));
        }
        SwapSpec::Tiers(several) => return tiers::set_up(several, size, held),
        _ => {}
    }
    let Some(disk) = boot.swap.on_disk() else {
        return Ok(SwapAreas::default());
    };
    // zswap is enabled before there is swap space, so that no page bypasses zswap.
    if let SwapSpec::Zswap(cache) = boot.swap {
        zswap(&boot.compressor, cache.pool().name())?;
    }
    let device = match disk {
        SwapDisk::Ssd(_) => {
            let device = next(ssds)?;
            held.add(|| Ok(fill(&device, size)?))?;
            device
        }
        SwapDisk::Disk(spec) => held.add(|| disk::start(0, size, spec))?,
    };
    Ok(SwapAreas::one(Swap::on_disk(&device, size, after)?))
}

/// Returns the path of the next unused simulated disk. Fails if there is none.
fn next(ssds: &mut impl Iterator<Item = String>) -> Result<String, GuestError> {
    ssds.next().ok_or_else(|| GuestError::Spec {
        what: "boot",
        why: "there are too few simulated disks".to_owned(),
    })
}

/// Returns the scope of the counters: the whole machine, its memory nodes, and the zram devices of swap.
fn scope(swap: &SwapAreas, boot: &BootSpec) -> Scope {
    Scope {
        group: None,
        machine: true,
        zram: swap.zram(),
        devices: swap.devices(),
        nodes: nodes::folders(&boot.nodes),
    }
}

/// Runs a trial, from the ready point until the last frame is written.
fn trial(ready: ReadyGuest) {
    let mut report = Report::default();
    let region = ready.region;
    let area = (ready.boot.trace_at, ready.boot.trace_size);
    region.set_phase(Phase::Preparing);
    let text = port::text(ready.known.trial);
    match serde_json::from_slice::<Order>(&text) {
        Ok(order) => run(ready, &order, &text, &mut report),
        Err(why) => {
            let why = why.to_string();
            let why = GuestError::Spec { what: "trial", why }.to_string();
            report.results.invalid.push(Invalid::Scenario { why });
        }
    }
    let json = serde_json::to_vec(&report).unwrap_or_default();
    let written = region
        .write(Kind::Blob, judgement::LOG, log::read().as_bytes())
        .and_then(|()| region.write(Kind::Results, judgement::REPORT, &json));
    // If the region is full, the phase never reaches `Done`, and the controller reports that.
    if written.is_err() {
        return;
    }
    region.set_phase(Phase::Done);
    // A controller that needs no list of functions ends the guest here. A controller that waits for the list detects a
    // failure, because the phase then never becomes `Listed`.
    if tracearea::list_functions(area.0, area.1).is_ok() {
        region.set_phase(Phase::Listed);
    }
}

/// Runs the trial that `order` specifies; `text` is the same order as received, in JSON. Adds the results to `report`.
fn run(ready: ReadyGuest, order: &Order, text: &[u8], report: &mut Report) {
    let mut steps = GuestSteps {
        boot: ready.boot,
        known: ready.known,
        region: ready.region,
        settings: ready.settings,
        swap: ready.swap,
        spinner: ready.spinner,
        jitter: ready.jitter,
        spare: Some(ready.spare),
        workload: Some(ready.workload),
        peak: ready.peak,
        observer: None,
        start: Start::of(order.subject.seed),
        order,
        text,
    };
    let idle = (!steps.boot.real_time).then_some(ready.idle);
    sequence::run(&mut steps, ready.counters, idle, report);
}

/// The steps of a trial in the guest.
struct GuestSteps<'a> {
    boot: BootSpec,
    known: MachineFacts,
    region: Region<'static>,
    settings: Settings,
    swap: SwapAreas,
    spinner: Spinner,
    jitter: Reserve,
    /// Memory for the observer; `None` once it has been freed.
    spare: Option<Ballast>,
    /// The workload; `None` once it has been started.
    workload: Option<Workload>,
    peak: Option<ZswapPeak>,
    /// The observer; `None` if the trial is not observed.
    observer: Option<Observer>,
    start: Start,
    order: &'a Order,
    /// The order of the trial as received, in JSON.
    text: &'a [u8],
}

impl Steps for GuestSteps<'_> {
    fn apply(&mut self) -> MachineState {
        let asked = &self.order.settings;
        let mut lacks_policy = None;
        let mut applied = match nodes::policy(asked) {
            None => self.settings.apply(asked),
            Some(policy) => {
                lacks_policy = nodes::tried(policy).err();
                let mut files = asked.clone();
                files.remove(POLICY);
                self.settings.apply(&files)
            }
        };
        applied.refused.extend(lacks_policy);
        let mut settings = self.known.settings.clone();
        if let Some(text) = asked.get(POLICY) {
            settings.insert(POLICY.to_owned(), text.clone());
        }
        if !asked.is_empty() {
            // A setting may have changed related ones, so those are read again.
            let beside = |name: &str| settings::beside(name, asked.keys());
            settings.extend(self.settings.survey(beside));
        }
        settings.append(&mut applied.read);
        MachineState {
            settings,
            refused: std::mem::take(&mut applied.refused),
            facts: self.known.facts.clone(),
            warnings: self.known.warnings.clone(),
        }
    }

    fn prepare(&mut self) -> Result<(), String> {
        if self.order.subject.pass == Pass::Observed
            && let Some(spare) = self.spare.take()
        {
            let ring = self.order.subject.trace_ring;
            let started = observer(&self.boot, &self.region, spare, &self.swap, ring);
            self.observer = Some(started.map_err(|why| why.to_string())?);
        }
        if self.boot.free.is_some() {
            self.jitter.take(start::MAX_PAGES - self.start.pages);
        }
        Ok(())
    }

    fn wait_for_start(&mut self) {
        std::thread::sleep(self.start.phase);
    }

    fn begin_observing(&mut self) -> Result<(), String> {
        let observer = self.observer.as_ref();
        let begun = observer.map_or(Ok(()), Observer::begin);
        begun.map_err(|why| why.to_string())
    }

    fn workload(&mut self) -> Vec<Invalid> {
        let Some(workload) = self.workload.take() else {
            return Vec::new();
        };
        workload.run(
            self.text,
            &self.region,
            self.order.hang_after,
            self.boot.real_time,
            self.peak.as_mut(),
            &self.spinner,
        )
    }

    fn facts(&mut self) -> BTreeMap<String, String> {
        let peak = self.peak.as_ref();
        let fact = |peak: &ZswapPeak| (ZSWAP_PEAK.to_owned(), peak.most().0.to_string());
        peak.map(fact).into_iter().collect()
    }

    fn counters(&mut self) -> BTreeMap<String, Counters> {
        // The kernel counts reclaim at the limit of a group in the group only.
        let group = self.order.subject.limit.and_then(|_| Group::limited());
        let counters = group.map(|group| (judgement::GROUP.to_owned(), grown(&group)));
        counters.into_iter().collect()
    }

    fn stop_observing(&mut self) -> Result<(), String> {
        let observer = self.observer.as_ref();
        let stopped = observer.map_or(Ok(()), Observer::stop);
        stopped.map_err(|why| why.to_string())
    }

    fn end_observing(&mut self) -> Result<(), String> {
        let observer = self.observer.take();
        let ended = observer.map_or(Ok(()), Observer::end);
        ended.map_err(|why| why.to_string())
    }
}

/// Returns the counters of a memory cgroup that was created by the trial, so that all were zero before.
fn grown(group: &Group) -> Counters {
    let path = group.folder().join("memory.stat");
    let mut counters = pagetide_system::Counters::new();
    counters.parse(&fs::read(path).unwrap_or_default(), Syntax::KeyValue);
    let values = counters
        .iter()
        .map(|(name, value)| (name.to_owned(), [0, value]));
    Counters {
        values: values.collect(),
    }
}

/// Frees the spare memory and starts the observer in it. Then makes the same amount of memory free as before.
fn observer(
    boot: &BootSpec,
    region: &Region,
    spare: Ballast,
    swap: &SwapAreas,
    ring: TraceRing,
) -> Result<Observer, GuestError> {
    ballast::drop_caches();
    if !boot.nodes.is_default() {
        let free = nodes::free(&boot.nodes)?;
        spare.release();
        let observer = Observer::start(boot, region, &scope(swap, boot), ring)?;
        nodes::leave(&free)?;
        return Ok(observer);
    }
    let free = ballast::free()?;
    spare.release();
    let observer = Observer::start(boot, region, &scope(swap, boot), ring)?;
    ballast::leave(free)?;
    Ok(observer)
}

/// Facts about the machine that are known at the ready point and do not change later.
struct MachineFacts {
    /// Selector of the emulator's configuration item that contains the trial's order.
    trial: u16,
    settings: BTreeMap<String, String>,
    facts: BTreeMap<String, String>,
    warnings: Vec<Warning>,
}

/// Returns the selector of the emulator's configuration item that contains the trial's order. While the guest boots,
/// the item contains [`kernel_memory::bytes`](crate::kernel_memory::bytes).
fn trial_item() -> Result<u16, GuestError> {
    port::find(TRIAL_ITEM).ok_or_else(|| GuestError::Spec {
        what: "trial",
        why: "there is none".to_owned(),
    })
}

/// Collects the facts of the machine at the ready point. `disks` are paths of simulated disks; only rotating ones are
/// described. `missing` are the sources of counters that this kernel lacks.
fn facts(
    boot: &BootSpec,
    settings: &Settings,
    disks: &[String],
    missing: &[String],
) -> Result<MachineFacts, GuestError> {
    let mut known = MachineFacts {
        trial: trial_item()?,
        settings: settings.survey(|name| !boot.nodes.is_default() || !settings::is_of_nodes(name)),
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
        ("managed", size::of_machine()?.0.to_string()),
        ("release", line("/proc/sys/kernel/osrelease")),
        ("version", line("/proc/sys/kernel/version")),
        (
            "clocksource",
            line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        ("compressor", boot.compressor.clone()),
    ];
    known.facts = facts.map(|(name, value)| (name.to_owned(), value)).into();
    if let Some(maker) = &boot.maker {
        let fact = ("made-by".to_owned(), maker.package.clone());
        known.facts.extend([fact]);
    }
    let turning = disks
        .iter()
        .filter(|device| device.starts_with(disk::DEVICES));
    known
        .facts
        .extend(turning.flat_map(|device| disk::facts(device)));
    if !missing.is_empty() {
        let fact = ("not-observed".to_owned(), missing.join("; "));
        known.facts.extend([fact]);
    }
    if !Timers::now().are_fine() {
        known.warnings.push(Warning::CoarseTimers);
    }
    Ok(known)
}
