//! Prepares and runs trials.
//!
//! A trial is prepared once: the kernel is found, parameters are resolved, and everything that cannot run is refused.
//! Then the trial runs from a snapshot of its guest at the ready point.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pagetide_arena::{
    Arena, ArenaError, Finding, Guest, Options, PreparedTrial, Progress, Trial, VariantSpec, host,
};
use pagetide_guest::spec::{BootSpec, ModuleSpec, SsdSpec};
use pagetide_harness::{range, settings};
use pagetide_kernel::{
    Cache, Digest, Freshness, Kernel, KernelError, KernelRef, Need, Setting, Stop,
};
use pagetide_quantity::{Bytes, Nanos, nearest};
use pagetide_record::swap::SSD_LATENCY;
use pagetide_record::swap::tiers::DeviceKind;
use pagetide_record::{
    ArenaKind, ArenaSpec, FileSystem, FilesOn, FilesSpec, KernelId, Machine, MemorySpec, Pass,
    RecordWriter, Subject, SwapDisk, SwapSpec, SwapTiers,
};
use pagetide_root::{Root, Roots};
use pagetide_scenario::Needs;

use crate::able;
use crate::boot::Boot;
use crate::emulator::Emulator;
use crate::error::{ExactError, ended, io, is_restore};
use crate::estimate;
use crate::filesystem_image;
use crate::handover::Handover;
use crate::machine::{CPU, LEAST, MACHINE, MachineSpec, REGION, SPARE, TRACE};
use crate::making::Maker;
use crate::measured;
use crate::place::Places;
use crate::program::{self, PROGRAM};
use crate::recipe::{Contents, Recipe};
use crate::snapshot::{Snapshot, Snapshots};
use crate::trial;

/// Virtual time without progress after which a trial is ended.
const HANG_VIRTUAL: Nanos = Nanos::from_secs(300);

/// Files for the guest, each with path and content.
type Files = Vec<(String, Vec<u8>)>;

/// The exact arena on this machine.
pub struct Exact {
    options: Options,
    emulator: Emulator,
    places: Places,
    snapshots: Snapshots,
    guest: String,
    kernels: Mutex<BTreeMap<String, Arc<Kernel>>>,
    /// Digests of kernels, with needs and swap that each was found to meet. A kernel's configuration is then read once
    /// for all trials with the same needs.
    able: Mutex<HashSet<(Digest, Vec<Need>, SwapSpec)>>,
    /// Names of snapshots by the inputs that determine them. A kernel's modules are then read once for all trials of a
    /// machine.
    named: Mutex<BTreeMap<String, String>>,
    machine: Machine,
    say: Box<dyn Fn(&str) + Send + Sync>,
}

/// Intermediate results of preparing a trial.
struct Preparation {
    kernel: Arc<Kernel>,
    needs: Needs,
    machine: MachineSpec,
    maker: Option<Maker>,
}

/// Default size of the swap device: three times the memory, enough for scenarios that use up to that much.
pub fn default_swap_size(memory: Bytes) -> Bytes {
    Bytes((memory.0 * 3).next_multiple_of(1 << 20))
}

impl Exact {
    /// Opens the exact arena. `say` receives a message for each long step, such as fetching or booting a kernel.
    pub fn open(
        options: Options,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ExactError> {
        let emulator = Emulator::find()?;
        let snapshots = Snapshots::open(&options.cache, options.cache_limit)?;
        let processors = host::cpus();
        let most = options.jobs.map_or(processors, |jobs| jobs.max(processors));
        Ok(Self {
            places: Places::of(&options.cache, most),
            options,
            emulator,
            snapshots,
            guest: program::digest(),
            kernels: Mutex::default(),
            able: Mutex::default(),
            named: Mutex::default(),
            machine: host::machine(),
            say: Box::new(say),
        })
    }

    /// The emulator in use.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// The kernel with this name, fetched if it is not in the cache.
    pub fn kernel(&self, name: &str) -> Result<Arc<Kernel>, ExactError> {
        // The lock is held while a kernel is fetched, so that no other thread fetches the same kernel.
        let mut kernels = locked(&self.kernels);
        if let Some(kernel) = kernels.get(name) {
            return Ok(Arc::clone(kernel));
        }
        let cache =
            Cache::open(&self.options.cache)?.stopping_by(Stop::by(self.options.stop.clone()));
        let reference: KernelRef = name.parse()?;
        let freshness = Freshness::new(self.options.refresh);
        let kernel = Arc::new(cache.resolve(&reference, freshness, &mut |step| {
            (self.say)(&step.to_string());
        })?);
        kernels.insert(name.to_owned(), Arc::clone(&kernel));
        Ok(kernel)
    }

    /// Fails if the kernel lacks one of these features or the requested compressor.
    fn require(
        &self,
        kernel: &Kernel,
        wanted: Vec<Need>,
        swap: SwapSpec,
    ) -> Result<(), ArenaError> {
        let asked = (kernel.digest.clone(), wanted, swap);
        if !locked(&self.able).contains(&asked) {
            able::check(kernel, &asked.1, swap).map_err(|why| {
                let cache = Cache::open(&self.options.cache).ok();
                match cache.and_then(|cache| able::another(&cache, &why, &asked.1, swap)) {
                    Some(kernel) => ArenaError::OtherKernel {
                        why: why.into(),
                        kernel,
                    },
                    None => ArenaError::refused(why),
                }
            })?;
            locked(&self.able).insert(asked);
        }
        Ok(())
    }

    /// Name of the snapshot from which a trial starts; `None` if it cannot be determined.
    fn snapshot_of(&self, prepared: &PreparedTrial) -> Option<String> {
        let (subject, ready) = (prepared.subject(), prepared.own::<Preparation>().ok()?);
        // The modules follow from the other inputs, and from whether the kernel has packet sockets, so they can be left
        // out of the key.
        let rest = self.recipe_with(subject, ready, Vec::new());
        let what = serde_json::to_string(&(rest, ready.needs.packet)).ok()?;
        if let Some(name) = locked(&self.named).get(&what) {
            return Some(name.clone());
        }
        let name = self.recipe(subject, ready).ok()?.0.key();
        locked(&self.named).insert(what, name.clone());
        Some(name)
    }

    fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Names of the modules that a machine needs, in loading order, and the modules' files.
    fn modules(
        kernel: &Kernel,
        subject: &Subject,
        needs: &Needs,
    ) -> Result<(Vec<ModuleSpec>, Files), ExactError> {
        let mut modules = Vec::new();
        // A kernel without packet sockets is not refused here: the scenario reports it.
        if needs.packet && kernel.require(Need::Packet).is_ok() {
            modules.extend(kernel.modules_for(&["af_packet"])?);
        }
        let compressor = subject.swap.compressor().name();
        match subject.swap {
            SwapSpec::Zram(_) => modules.extend(kernel.zram_modules(Some(compressor))?),
            SwapSpec::Zswap(zswap) => {
                modules.extend(kernel.zswap_modules(compressor, zswap.pool().name())?);
            }
            SwapSpec::Tiers(tiers) => {
                if let Some(front) = tiers.zswap {
                    modules.extend(kernel.zswap_modules(compressor, front.pool().name())?);
                }
                for compressor in able::compressors(tiers) {
                    modules.extend(kernel.zram_modules(Some(compressor))?);
                }
                if has_file(tiers) {
                    modules.extend(kernel.modules_for(&["ext4"])?);
                    modules.extend(kernel.modules_for(&["crc32c_generic"]).unwrap_or_default());
                }
            }
            SwapSpec::None | SwapSpec::Ssd(_) | SwapSpec::Disk(_) => {}
        }
        let disk = ssds(subject, needs);
        if disk.is_some() || has_ssd(subject) {
            modules.extend(kernel.modules_for(&["null_blk"])?);
        }
        if needs.filesystem.is_some()
            && let Some(module) = need_of(subject.files_on.system).module()
        {
            modules.extend(kernel.modules_for(&[module])?);
            // File systems need this module for checksums. Debian's plain kernels have it, but no file system lists it
            // as a dependency.
            modules.extend(kernel.modules_for(&["crc32c_generic"]).unwrap_or_default());
        }
        let turning = turning_disks(subject);
        if turning > 0 {
            modules.extend(kernel.modules_for(&["nbd"])?);
            // A kernel without this scheduler keeps its own default.
            modules.extend(kernel.modules_for(&["mq_deadline"]).unwrap_or_default());
        }
        let mut specs: Vec<ModuleSpec> = Vec::new();
        let mut files = Vec::new();
        for module in modules {
            if specs.iter().any(|known| known.name == module.name) {
                continue;
            }
            let file = format!("/modules/{}.ko", module.name);
            let params = match module.name.as_str() {
                // For swap on several devices, the guest creates each simulated disk itself.
                "null_blk" => disk.as_ref().map_or("nr_devices=0".to_owned(), ssd_params),
                "zram" => format!("num_devices={}", zrams(subject.swap)),
                "nbd" => format!("nbds_max={turning} max_part=0"),
                _ => String::new(),
            };
            files.push((file.clone(), module.bytes));
            specs.push(ModuleSpec {
                name: module.name,
                file,
                params,
            });
        }
        Ok((specs, files))
    }

    /// The kernel of a variant. Fails if there is no such kernel, or if one of the variant's settings is unknown.
    fn kernel_of(&self, spec: &VariantSpec) -> Result<Arc<Kernel>, ArenaError> {
        for (name, value) in &spec.settings {
            check_setting(name, value).map_err(ArenaError::wrong)?;
        }
        let kernel = self.kernel(&spec.kernel).map_err(|why| match why {
            ExactError::Kernel(KernelError::UnknownReference { .. }) => ArenaError::wrong(why),
            why => ended(ArenaError::refused)(why),
        })?;
        Ok(kernel)
    }

    /// The verified image of the root with this digest, and the file that describes the root to the guest.
    fn handover(
        &self,
        digest: &str,
        system: FileSystem,
    ) -> Result<(Handover, (String, Vec<u8>)), ExactError> {
        let root = Roots::of(&self.options.cache).get(digest)?;
        let fault = || io("reading", root.image.display().to_string());
        let image = root.open()?;
        let (handover, file) = if system == FileSystem::Ext4 {
            let handover = Handover::of(image).map_err(fault())?;
            let table = handover.table();
            (handover, (pagetide_guest::root::PIECES.to_owned(), table))
        } else {
            let entries = root.entries(&image)?;
            let (handover, list) = Handover::of_files(image, entries);
            let list = serde_json::to_vec(&list).unwrap_or_default();
            (handover, (pagetide_guest::files::LIST.to_owned(), list))
        };
        if handover.size() > TRACE {
            let why = std::io::Error::other(format!("{} are more than fit", handover.size()));
            return Err(fault()(why));
        }
        Ok((handover, file))
    }

    /// Size of the files that are handed over when a program's guest boots; zero for other scenarios.
    fn handed_over(&self, prepared: &PreparedTrial) -> Bytes {
        let ready = prepared.own::<Preparation>().ok();
        let digest = ready.and_then(|ready| ready.needs.root.as_deref());
        let root = digest.and_then(|digest| Roots::of(&self.options.cache).get(digest).ok());
        let size = root.and_then(|root| root.in_memory().ok());
        size.unwrap_or_default()
    }

    /// Content of the guest's initial file system: its program, `files`, and the image or maker of its file system.
    fn contents(
        &self,
        subject: &Subject,
        ready: &Preparation,
        mut files: Files,
    ) -> Result<Contents, ExactError> {
        let system = subject.files_on.system;
        if let Some(maker) = &ready.maker {
            files.extend(maker.files(&Roots::of(&self.options.cache))?);
        }
        let mut root = None;
        match (&ready.needs.root, ready.needs.filesystem) {
            (Some(digest), _) => {
                let (handover, file) = self.handover(digest, system)?;
                files.push(file);
                root = Some(handover);
            }
            (None, Some(size)) if system == FileSystem::Ext4 => files.push((
                pagetide_guest::filesystem::PIECES.to_owned(),
                filesystem_image::ext4(size)?,
            )),
            _ => {}
        }
        if let SwapSpec::Tiers(tiers) = subject.swap {
            let disks = tiers.disks(subject.swap_size).into_iter();
            let with_disk = tiers.devices.iter().filter(|device| match device.kind {
                DeviceKind::Zram(zram) => zram.writeback.is_some(),
                DeviceKind::Disk(_) | DeviceKind::File(_) => true,
            });
            let holders = with_disk
                .zip(disks)
                .filter(|(device, _)| matches!(device.kind, DeviceKind::File(_)));
            for (number, (_, (_, size))) in (0..).zip(holders) {
                let image = filesystem_image::ext4(size)?;
                files.push((pagetide_guest::tiers::pieces(number), image));
            }
        }
        Ok(Contents {
            program: PROGRAM,
            files,
            root,
        })
    }

    /// Inputs that determine the snapshot for this subject, and the files of the modules that it loads.
    fn recipe(
        &self,
        subject: &Subject,
        ready: &Preparation,
    ) -> Result<(Recipe, Files), ExactError> {
        let (modules, files) = Self::modules(&ready.kernel, subject, &ready.needs)?;
        Ok((self.recipe_with(subject, ready, modules), files))
    }

    /// Inputs that determine the snapshot for this subject if it loads these modules.
    fn recipe_with(
        &self,
        subject: &Subject,
        ready: &Preparation,
        modules: Vec<ModuleSpec>,
    ) -> Recipe {
        let (machine, needs) = (&ready.machine, &ready.needs);
        let boot = BootSpec {
            region_at: machine.region_at,
            region_size: REGION.0,
            trace_at: machine.region_at + REGION.0,
            trace_size: TRACE.0,
            spare: SPARE,
            modules,
            ssd: ssds(subject, needs),
            swap: subject.swap,
            swap_size: subject.swap_size,
            compressor: subject.swap.compressor().name().to_owned(),
            filesystem: needs.filesystem,
            files_on: subject.files_on,
            root: needs.root.clone(),
            maker: ready.maker.as_ref().map(|maker| maker.spec.clone()),
            free: match subject.memory {
                MemorySpec::Free(free) => Some(free),
                MemorySpec::Total(_) => None,
            },
            intended: subject.memory.bytes(),
        };
        Recipe {
            kernel: ready.kernel.digest.to_string(),
            emulator: self.emulator.version.clone(),
            guest: self.guest.clone(),
            arguments: machine.arguments(),
            boot,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fails if a root on tmpfs is larger than the memory. The kernel would then swap the root's files, which would distort
/// the program's results.
fn fits(root: &Root, subject: &Subject) -> Result<(), ExactError> {
    if subject.files_on.system != FileSystem::Tmpfs {
        return Ok(());
    }
    let (files, memory) = (root.in_memory()?, subject.memory.bytes());
    if files > memory {
        return Err(ExactError::RootInMemory { files, memory });
    }
    Ok(())
}

/// Identity of a kernel for records.
fn kernel_id(kernel: &Kernel, source: &str) -> KernelId {
    KernelId {
        source: source.to_owned(),
        release: kernel.release.clone(),
        version: kernel.banner.clone(),
        build_id: kernel.build_id.known().map(ToOwned::to_owned),
        digest: kernel.digest.to_string(),
    }
}

/// All features that a kernel must have for a trial. They are checked together, so that all missing features are
/// reported at once.
fn wanted(subject: &Subject, needs: &Needs) -> Vec<Need> {
    let mut wanted = vec![
        Need::Initramfs,
        Need::PortAccess,
        Need::Devtmpfs,
        Need::Devmem,
        Need::Proc,
        Need::VmEvents,
        Need::EarlyPrintk,
    ];
    match subject.swap {
        SwapSpec::None | SwapSpec::Ssd(_) | SwapSpec::Disk(_) => {}
        SwapSpec::Zram(None) => wanted.extend([Need::Swap, Need::Zram, Need::ZramLz4]),
        SwapSpec::Zram(Some(_)) => wanted.extend([Need::Swap, Need::Zram]),
        SwapSpec::Zswap(_) => wanted.push(Need::Zswap),
        SwapSpec::Tiers(tiers) => {
            let zrams = || tiers.zrams();
            let front = tiers.zswap;
            let all = [
                (Need::Zram, zrams().next().is_some()),
                (
                    Need::ZramWriteback,
                    zrams().any(|zram| zram.writeback.is_some()),
                ),
                (
                    Need::ZramRecompression,
                    zrams().any(|zram| zram.recompress.is_some()),
                ),
                (Need::Zswap, front.is_some()),
                (
                    Need::ZswapShrinker,
                    front.is_some_and(|front| front.shrinker),
                ),
                (Need::Memcg, front.is_some_and(|front| front.shrinker)),
                (
                    Need::ZswapNoWriteback,
                    front.is_some_and(|front| !front.writeback),
                ),
                (Need::Ext4, has_file(tiers)),
            ];
            wanted.push(Need::Swap);
            wanted.extend(
                all.into_iter()
                    .filter(|(_, is_needed)| *is_needed)
                    .map(|(need, _)| need),
            );
        }
    }
    for (disk, _) in subject.swap.disks(subject.swap_size) {
        wanted.extend(match disk {
            SwapDisk::Ssd(_) => [Need::Swap, Need::NullBlk],
            SwapDisk::Disk(_) => [Need::Swap, Need::Nbd],
        });
    }
    if needs.filesystem.is_some() {
        let FilesSpec { system, on } = subject.files_on;
        if system != FileSystem::Tmpfs {
            wanted.push(match on {
                FilesOn::Ssd | FilesOn::Null => Need::NullBlk,
                FilesOn::Disk(_) => Need::Nbd,
            });
        }
        wanted.push(need_of(system));
    }
    if needs.thp {
        wanted.push(Need::Thp);
    }
    if subject.pass == Pass::Observed {
        wanted.push(Need::Tracing);
    }
    let of_settings = [
        ("lru_gen/", Need::LruGen),
        ("zswap/", Need::Zswap),
        ("thp/", Need::Thp),
    ];
    for (prefix, need) in of_settings {
        let mut names = subject.variant.settings.keys();
        if names.any(|name| name.starts_with(prefix)) && !wanted.contains(&need) {
            wanted.push(need);
        }
    }
    let mut seen = HashSet::new();
    wanted.retain(|need| seen.insert(*need));
    wanted
}

/// True if one of the swap devices is a file.
fn has_file(tiers: &SwapTiers) -> bool {
    let mut kinds = tiers.devices.iter().map(|device| device.kind);
    kinds.any(|kind| matches!(kind, DeviceKind::File(_)))
}

/// True if swap on several devices uses a simulated solid-state disk.
fn has_ssd(subject: &Subject) -> bool {
    let disks = subject.swap.disks(subject.swap_size);
    matches!(subject.swap, SwapSpec::Tiers(_))
        && disks
            .iter()
            .any(|(disk, _)| matches!(disk, SwapDisk::Ssd(_)))
}

/// Number of zram devices that the guest must have; 1 if swap is not on several devices.
fn zrams(swap: SwapSpec) -> usize {
    match swap {
        SwapSpec::Tiers(tiers) => tiers.zrams().count(),
        _ => 1,
    }
}

/// The feature that a kernel needs for a file system.
fn need_of(system: FileSystem) -> Need {
    match system {
        FileSystem::Ext4 => Need::Ext4,
        FileSystem::Xfs => Need::Xfs,
        FileSystem::Btrfs => Need::Btrfs,
        FileSystem::Tmpfs => Need::Tmpfs,
    }
}

/// Number of rotating disks that a trial uses.
fn turning_disks(subject: &Subject) -> usize {
    subject.swap.rotating_disks() + usize::from(subject.files_on.disk().is_some())
}

/// The simulated solid-state disks of a trial; `None` if there are none.
fn ssds(subject: &Subject, needs: &Needs) -> Option<SsdSpec> {
    let is_simulated =
        subject.files_on.system != FileSystem::Tmpfs && subject.files_on.disk().is_none();
    let filesystem = needs.filesystem.filter(|_| is_simulated);
    let files = filesystem.unwrap_or_default();
    let is_null = subject.files_on.on == FilesOn::Null;
    let of = |devices, latency, size, other| {
        Some(SsdSpec {
            devices,
            size,
            latency,
            other,
        })
    };
    match (subject.swap.on_disk(), filesystem) {
        (Some(SwapDisk::Ssd(latency)), filesystem) => {
            let size = subject.swap_size.max(files);
            match filesystem {
                Some(_) if is_null => of(1, latency, size, Some(Nanos(0))),
                Some(_) => of(2, latency, size, None),
                None => of(1, latency, size, None),
            }
        }
        (_, Some(size)) if is_null => of(1, Nanos(0), size, None),
        (_, Some(size)) => of(1, SSD_LATENCY, size, None),
        (_, None) => None,
    }
}

/// Boot arguments of a trial's kernel. A built-in driver of simulated disks takes its parameters from these arguments;
/// a module gets them when it is loaded.
fn boot_arguments(
    kernel: &Kernel,
    subject: &Subject,
    needs: &Needs,
) -> Result<Vec<String>, KernelError> {
    let mut arguments = subject.variant.boot.clone();
    if let Some(disk) = ssds(subject, needs)
        && kernel.config()?.get("CONFIG_BLK_DEV_NULL_BLK") == Setting::Yes
    {
        let of_driver = ssd_params(&disk);
        let of_driver = of_driver
            .split_whitespace()
            .map(|word| format!("null_blk.{word}"));
        arguments.extend(of_driver);
    }
    let zrams = zrams(subject.swap);
    if zrams > 1 && kernel.config()?.get("CONFIG_ZRAM") == Setting::Yes {
        arguments.push(format!("zram.num_devices={zrams}"));
    }
    Ok(arguments)
}

/// Module parameters of the simulated disk: content in memory, completion by timer after the latency, one queue.
/// Source: kernel `Documentation/block/null_blk.rst`.
fn ssd_params(disk: &SsdSpec) -> String {
    let gb = disk.size.0.div_ceil(1 << 30).max(1);
    format!(
        "memory_backed=1 gb={gb} irqmode=2 completion_nsec={} nr_devices={} queue_mode=2 submit_queues=1 hw_queue_depth=64",
        disk.latency.0, disk.devices
    )
}

/// Fails if a setting's name has no known form, or if no kernel accepts the value. The error suggests a similar name,
/// or states the accepted range.
fn check_setting(name: &str, value: &str) -> Result<(), ExactError> {
    if let Some((least, greatest)) = range::exceeded(name, value) {
        return Err(ExactError::SettingOutOfRange {
            name: name.to_owned(),
            value: value.to_owned(),
            least,
            greatest,
        });
    }
    if settings::path(name).is_some() {
        return Ok(());
    }
    if let Some((controller, _)) = name.split_once('.')
        && ["memory", "cpu", "io", "pids", "cpuset", "hugetlb"].contains(&controller)
    {
        return Err(ExactError::SettingOfGroup {
            name: name.to_owned(),
        });
    }
    // Users often remember only the last part of a name.
    let known = settings::KNOWN.iter().copied();
    let near = nearest(name, known.clone()).or_else(|| {
        let part = nearest(last_part(name), known.clone().map(last_part))?;
        known
            .map(str::to_owned)
            .find(|known| last_part(known) == part)
    });
    let suggestion = near.map_or(String::new(), |known| format!(", did you mean `{known}`?"));
    Err(ExactError::UnknownSetting {
        name: name.to_owned(),
        suggestion,
    })
}

fn last_part(name: &str) -> &str {
    name.rsplit(['.', '/']).next().unwrap_or(name)
}

impl Arena for Exact {
    fn kind(&self) -> ArenaKind {
        ArenaKind::Exact
    }

    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError> {
        let memory = trial.memory.bytes();
        if memory < LEAST {
            return Err(ArenaError::wrong(ExactError::TooLittleMemory {
                asked: memory,
                least: LEAST,
            }));
        }
        let swap_size = trial
            .swap
            .total(trial.swap_size, default_swap_size(memory))
            .map_err(ArenaError::wrong)?;
        let context = pagetide_scenario::Context {
            memory,
            swap_size,
            cpus: 1,
        };
        let params = pagetide_scenario::resolve(
            &trial.scenario,
            trial.as_written,
            None,
            &trial.params,
            &context,
        )
        .map_err(ArenaError::wrong)?;
        let kernel = self.kernel_of(&trial.variant)?;
        let id = kernel_id(&kernel, &trial.variant.kernel);
        let mut subject = Subject {
            params,
            swap_size,
            ..trial.subject(id, swap_size)
        };
        measured::check(&subject).map_err(ArenaError::wrong)?;
        let mut needs = pagetide_scenario::needs(&subject).map_err(ArenaError::wrong)?;
        if let Some(digest) = &needs.root {
            let root = Roots::of(&self.options.cache).get(digest);
            let root = root.map_err(ArenaError::wrong)?;
            fits(&root, &subject).map_err(ArenaError::wrong)?;
            needs.filesystem = Some(root.size);
        }
        let system = subject.files_on.system;
        let (mut maker, mut on_disk) = (None, Bytes(0));
        match &mut needs.filesystem {
            // A trial without files does not depend on the disk for files, so that disk is not part of its subject.
            None => subject.files_on = FilesSpec::default(),
            Some(size) if system == FileSystem::Tmpfs => {
                subject.files_on.on = FilesOn::Ssd;
                // A program's root exists before free memory is measured. Files written later count as the workload's
                // memory.
                on_disk = needs.root.as_ref().map_or(Bytes(0), |_| *size);
            }
            Some(size) => {
                *size = system.device(*size);
                on_disk = *size;
            }
        }
        self.require(&kernel, wanted(&subject, &needs), subject.swap)?;
        if let Some(size) = needs.filesystem {
            let cache = Cache::open(&self.options.cache)
                .map_err(|why| ArenaError::refused(ExactError::from(why)))?
                .stopping_by(Stop::by(self.options.stop.clone()));
            let say = |text: &str| self.say(text);
            maker = Maker::of(subject.files_on.system, size, &cache, &say)
                .map_err(ArenaError::refused)?;
        }
        let boot = boot_arguments(&kernel, &subject, &needs).map_err(ArenaError::refused)?;
        let machine = MachineSpec::new(
            subject.memory,
            subject.swap,
            subject.swap_size,
            Some(on_disk),
            &boot,
        );
        subject.arena = ArenaSpec {
            kind: ArenaKind::Exact,
            emulator: self.emulator.version.clone(),
            machine: MACHINE.to_owned(),
            cpu: CPU.to_owned(),
            cmdline: machine.cmdline.clone(),
            guest: self.guest.clone(),
        };
        let ready = Preparation {
            kernel,
            needs,
            machine,
            maker,
        };
        Ok(PreparedTrial::new(trial.clone(), subject, ready))
    }

    fn side_by_side(&self, largest: &PreparedTrial) -> usize {
        let wanted = self.options.jobs.unwrap_or_else(host::cpus).max(1);
        let Ok(ready) = largest.own::<Preparation>() else {
            return 1;
        };
        let one = ready.machine.memory.0 + (64 << 20);
        let free = host::available().0.saturating_sub(host::KEPT.0);
        usize::try_from(free / one)
            .unwrap_or(wanted)
            .clamp(1, wanted)
    }

    fn estimate(&self, subject: &Subject) -> Option<Nanos> {
        estimate::of(subject)
    }

    fn here(&self, there: Nanos) -> Nanos {
        estimate::here(there).unwrap_or(there)
    }

    fn guest(&self, prepared: &PreparedTrial) -> Option<Guest> {
        let key = self.snapshot_of(prepared)?;
        let boot = if self.snapshots.has(&key) {
            Nanos(0)
        } else {
            estimate::of_boot(self.handed_over(prepared))?
        };
        Some(Guest { key, boot })
    }

    fn run(
        &self,
        prepared: &PreparedTrial,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<Finding, ArenaError> {
        let subject = prepared.subject();
        let ready = prepared.own::<Preparation>()?;
        let Preparation {
            kernel,
            needs,
            machine,
            ..
        } = ready;
        let free = host::available();
        if free.0 < machine.memory.0 + host::KEPT.0 {
            return Err(ArenaError::broken(ExactError::HostMemory {
                wanted: machine.memory,
                free,
                kept: host::KEPT,
            }));
        }
        let (recipe, files) = self.recipe(subject, ready).map_err(ArenaError::broken)?;
        let contents = || self.contents(subject, ready, files.clone());
        let boot = Boot {
            recipe: &recipe,
            kernel,
            machine,
            emulator: &self.emulator,
            places: &self.places,
            patience: self.options.hang_wall,
            progress,
        };
        let snapshot = || {
            self.snapshots
                .get(&boot, &contents, &mut |text| self.say(&text))
                .map_err(ended(|why| match why {
                    ExactError::FileSystem { .. } => ArenaError::broken(why),
                    _ => ArenaError::refused(why),
                }))
        };
        let run = |snapshot: &Snapshot, sink: &mut RecordWriter| {
            let run = trial::Run {
                emulator: &self.emulator,
                places: &self.places,
                kernel,
                machine,
                recipe: &recipe,
                snapshot,
                hang_wall: self.options.hang_wall,
                trace_limit: self.options.trace_limit,
            };
            run.execute(subject, needs, HANG_VIRTUAL, &self.machine, sink, progress)
        };
        match run(&snapshot()?, sink) {
            Err(ArenaError::Broken(why)) if is_restore(&*why) => {
                self.say(&format!("{why}; booting the guest again"));
                self.snapshots.discard(&recipe);
                run(&snapshot()?, sink)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_settings_are_refused_with_a_near_suggestion() {
        let text = |name| check_setting(name, "1").unwrap_err().to_string();
        assert!(text("swappiness").contains("vm.swappiness"));
        assert!(text("vm/swapiness").contains("vm.swappiness"));
        assert!(!text("zzz").contains("did you mean"));
        assert!(check_setting("vm.anything", "1").is_ok());
    }

    #[test]
    fn a_value_that_no_kernel_accepts_and_a_limit_of_a_group_are_refused() {
        let text = |name, value| check_setting(name, value).unwrap_err().to_string();
        let range = text("vm.swappiness", "201");
        assert!(
            range.contains("201") && range.contains("0 to 200"),
            "{range}"
        );
        assert!(check_setting("vm.swappiness", "200").is_ok());
        let group = text("memory.high", "10M");
        assert!(
            group.contains("--limit") && group.contains("--high"),
            "{group}"
        );
    }
}
