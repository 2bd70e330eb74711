//! The emulated machine: its devices, and the emulator's arguments for them.
//!
//! Each choice makes trials exact or cheap:
//! - `-icount shift=0,sleep=off`: virtual time is counted in instructions, one per nanosecond, and a guest that waits
//!   takes no wall-clock time.
//! - CPUs of a fixed model that announces no fast byte-wise string instructions: emulation counts these byte by byte.
//! - the machine type is pinned, so that an upgrade of the emulator changes no device.
//! - `nokaslr norandmaps`, a fixed seed and clock: nothing random at boot.
//! - `tsc=reliable clocksource=tsc tsc_early_khz=1000000`: the guest's clock is the instruction counter itself.
//! - `rootfstype=ramfs`: the initial file system, which contains the guest's program, stays in memory. On tmpfs, the
//!   kernel's default, unlocked parts of the program would be swapped out: 12 MiB of pages that are not the workload's.
//! - `swiotlb=noforce`: no bounce buffers, because no device needs them.
//! - `earlyprintk` to the debug console with `loglevel=1`: the kernel prints there, synchronously, only when it dies.

use pagetide_guest::tracearea::LIST_BYTES;
use pagetide_guest::{port, spec};
use pagetide_quantity::Bytes;
use pagetide_record::{CpusSpec, MemorySpec, SwapSpec};

use crate::timing::Timing;

/// Name of the emulator's machine type.
pub const MACHINE: &str = "pc-q35-7.2";
/// The emulated CPU model: all features of the emulator except fast byte-wise string instructions.
pub const CPU: &str = "max,-erms,-fsrm";
/// The CPU model of emulators that also know FZRM, FSRS and FSRC. With FSRS, the kernel sets memory byte by byte.
const CPU_OF_NEWER: &str = "max,-erms,-fsrm,-fzrm,-fsrs,-fsrc";
/// Major and minor number of the first QEMU that knows FZRM, FSRS and FSRC.
const NEWER: (u32, u32) = (8, 1);
/// Time per instruction while a guest boots, as a power of two in nanoseconds; in a trial it is one nanosecond. A
/// booting kernel busy-waits by the clock, 100 ms to calibrate its timer alone, and a `PAUSE` costs the emulator as
/// much as hundreds of instructions. With an eighth of the instructions per virtual second, a boot takes half the
/// processor time. Fewer instructions still would gain little, and would make the guest's check of its disks' latency
/// less precise.
pub const BOOT_SHIFT: u32 = 3;
/// Size of the output region. Its file is sparse, so only what a trial writes takes memory.
pub const REGION: Bytes = Bytes::from_mib(64);
/// Size of the memory behind the output region. It holds the trace of an observed trial (about 20 million events) and
/// the list of the kernel's functions. Its file is sparse too.
pub const TRACE: Bytes = Bytes(960 * (1 << 20) + LIST_BYTES);
/// Memory reserved for observing a trial: the ring buffer, the observer's process, and the kernel's own structures. It
/// is locked in every trial, so that timed and observed passes have the same memory.
pub const SPARE: Bytes = Bytes::from_mib(8);
/// Memory reserved for each CPU beyond the first: the kernel's per-CPU data, buffers of compressors, and a spinner.
const OF_CPU: Bytes = Bytes::from_mib(8);
/// Memory for the ring buffer of each CPU beyond the first, for observed trials.
const RING_OF_CPU: Bytes = Bytes::from_mib(4);
/// Boot arguments of a guest with several CPUs. The guest's program uses the HPET timer to end turns, so the kernel
/// must not use this timer (`hpet`) and must let the program map the timer's registers (`iomem`).
const OF_SEVERAL: &str = " hpet=disable iomem=relaxed";

/// Returns the memory reserved for observing a machine with these CPUs. Each CPU has its own ring buffer.
pub fn spare(cpus: CpusSpec) -> Bytes {
    Bytes(SPARE.0 + RING_OF_CPU.0 * u64::from(cpus.count.saturating_sub(1)))
}

/// Minimum memory of a workload.
pub const MIN_MEMORY: Bytes = Bytes::from_mib(8);

/// Maximum memory of a workload, and maximum size of its swap if that is stated. The emulated CPU addresses 1 TiB (40
/// bits), which contains the memory, simulated disks and the output region. Source: QEMU `target/i386/cpu.h`,
/// `TCG_PHYS_ADDR_BITS`.
pub const MAX_MEMORY: Bytes = Bytes(256 << 30);

/// Memory for the kernel, its page tables, the guest's program and the initial file system. Measured on 7.2, the
/// largest kernel tried, and rounded up. What a kernel does not use is locked as ballast.
const OVERHEAD: Bytes = Bytes::from_mib(128);

/// Boot arguments of every guest. Without `cryptomgr.notests`, the kernel's self-tests of ciphers and compressors would
/// run during a trial, for up to 200 ms.
const CMDLINE: &str = "quiet loglevel=1 panic=-1 nokaslr norandmaps mitigations=off tsc=reliable clocksource=tsc \
     tsc_early_khz=1000000 rootfstype=ramfs swiotlb=noforce random.trust_cpu=on cryptomgr.notests earlyprintk=serial,0x4e0,115200,keep";

/// Memory of one node of the emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineNode {
    /// Total memory of the node.
    pub memory: Bytes,
    /// True if the node is slow and has no processor.
    pub is_slow: bool,
}

/// The emulated machine of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Total memory of the machine.
    pub memory: Bytes,
    /// Physical address at which the output region begins.
    pub region_at: u64,
    /// Boot arguments of the kernel.
    pub cmdline: String,
    /// Memory nodes; empty if the machine has one node.
    pub nodes: Vec<MachineNode>,
    /// CPUs of the machine.
    pub cpus: CpusSpec,
    /// True if each CPU is a package of its own. Otherwise all CPUs are cores of one package.
    pub are_packages: bool,
    /// How the guest's clock advances.
    pub timing: Timing,
    /// Model of the emulated CPUs.
    pub cpu: &'static str,
}

/// Returns the number of bytes of memory that a simulated disk of this size takes: its pages, and the tree that indexes
/// them.
fn disk(size: Bytes) -> u64 {
    size.0 + size.0 / 50
}

impl MachineSpec {
    /// Creates the machine for a trial with this much memory for the workload, this swap and this file system.
    pub fn new(
        memory: MemorySpec,
        swap: SwapSpec,
        swap_size: Bytes,
        filesystem: Option<Bytes>,
        boot: &[String],
    ) -> Self {
        let of_swap = swap
            .disks(swap_size)
            .into_iter()
            .map(|(_, size)| disk(size));
        let disks = filesystem.map_or(0, disk) + of_swap.sum::<u64>();
        let bare = match memory {
            MemorySpec::Free(free) => free.0 + OVERHEAD.0 + SPARE.0 + disks,
            MemorySpec::Total(total) => total.0 + SPARE.0 + disks,
        };
        // The kernel needs a struct page of 64 bytes per page. The sum is rounded up to a whole MiB for the emulator.
        let memory = (bare + bare / 60).next_multiple_of(1 << 20);
        let mut cmdline = CMDLINE.to_owned();
        for argument in boot {
            cmdline.push(' ');
            cmdline.push_str(argument);
        }
        Self {
            memory: Bytes(memory),
            region_at: region_at(memory),
            cmdline,
            nodes: Vec::new(),
            cpus: CpusSpec::ONE,
            are_packages: false,
            timing: Timing::Counted,
            cpu: CPU,
        }
    }

    /// Returns this machine with the CPU model for an emulator with this major and minor version number.
    #[must_use]
    pub fn for_emulator(mut self, version: Option<(u32, u32)>) -> Self {
        if version.is_some_and(|version| version >= NEWER) {
            self.cpu = CPU_OF_NEWER;
        }
        self
    }

    /// Returns this machine with another clock.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self {
            cmdline: timing.boot_arguments(&self.cmdline),
            timing,
            ..self
        }
    }

    /// Returns this machine with `cpus`, and with additional memory for each CPU beyond the first.
    #[must_use]
    pub fn with_cpus(mut self, cpus: CpusSpec) -> Self {
        if !cpus.are_several() {
            return self;
        }
        let more = u64::from(cpus.count - 1) * (OF_CPU.0 + RING_OF_CPU.0);
        let memory = (self.memory.0 + more).next_multiple_of(1 << 20);
        self.cmdline.insert_str(CMDLINE.len(), OF_SEVERAL);
        self.memory = Bytes(memory);
        self.region_at = region_at(memory);
        self.cpus = cpus;
        self
    }

    /// Returns this machine such that a kernel without ACPI finds all CPUs. Such a kernel reads the firmware's table of
    /// processors (MP table), which has only the first core of each package, so each CPU is then a package.
    #[must_use]
    pub fn for_kernel(mut self, has_acpi: bool) -> Self {
        self.are_packages = self.cpus.are_several() && !has_acpi;
        self
    }

    /// Returns the emulator's arguments that determine the machine. They are the same for creating and for restoring a
    /// snapshot.
    pub fn arguments(&self) -> Vec<String> {
        let text = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let mut all = text(&["-M"]);
        let memory = self.memory_option();
        let takes_turns = self.cpus.are_several() && !self.timing.is_real();
        let hpet = if takes_turns { "on" } else { "off" };
        all.push(format!("{MACHINE},{memory}hpet={hpet},nvdimm=on"));
        all.extend(self.node_arguments());
        all.extend(self.timing.arguments(self.cpu));
        let mut count = self.cpus.count.to_string();
        if self.are_packages {
            count = format!("{count},sockets={count},cores=1,threads=1");
        }
        all.extend(text(&["-smp", &count, "-seed", "42"]));
        all.extend(text(&[
            "-rtc",
            "base=2026-01-01,clock=vm",
            "-display",
            "none",
            "-serial",
            "none",
            "-nodefaults",
        ]));
        all.extend(text(&[
            "-no-user-config",
            "-no-reboot",
            "-device",
            "pvpanic",
            "-action",
            "panic=pause",
        ]));
        all.push("-device".to_owned());
        all.push(format!("isa-debug-exit,iobase={:#x},iosize=4", port::EXIT));
        all.push("-m".to_owned());
        all.push(format!(
            "{}M,slots=1,maxmem={}M",
            self.memory.0 >> 20,
            (self.memory.0 + 2 * (REGION.0 + TRACE.0) + (1 << 30)) >> 20
        ));
        all.push("-device".to_owned());
        all.push(format!(
            "nvdimm,memdev=region,id=region0,addr={:#x}",
            self.region_at
        ));
        all.push("-append".to_owned());
        all.push(self.cmdline.clone());
        all
    }

    /// Returns the arguments of the emulator that pass the trial's specification to the guest.
    pub fn trial_item(path: &str) -> [String; 2] {
        [
            "-fw_cfg".to_owned(),
            format!("name={},file={path}", spec::TRIAL_ITEM),
        ]
    }
}

/// Returns the physical address at which the emulator puts plugged-in memory: above all other memory, on a GiB
/// boundary. Source: QEMU `hw/i386/pc_q35.c` (memory below 4 GiB) and `hw/i386/pc.c` (`pc_memory_init`, device memory).
pub(crate) fn region_at(memory: u64) -> u64 {
    const FOUR_GIB: u64 = 4 << 30;
    (FOUR_GIB + memory.saturating_sub(low_memory(memory))).next_multiple_of(1 << 30)
}

/// Returns the number of bytes of a machine's memory that the emulator puts below 4 GiB if the machine has more than
/// that. The rest is at 4 GiB and above. Source: QEMU `hw/i386/pc_q35.c`.
pub(crate) fn low_memory(memory: u64) -> u64 {
    if memory >= 0xb000_0000 {
        0x8000_0000
    } else {
        0xb000_0000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_lies_above_all_memory() {
        for mib in [64_u64, 512, 2815, 2816, 4096, 9000] {
            let at = region_at(mib << 20);
            assert!(at.is_multiple_of(1 << 30));
            assert!(at >= (4 << 30) + (mib << 20).saturating_sub(0xb000_0000));
        }
    }

    #[test]
    fn several_cpus_get_a_timer_and_memory_and_leave_a_machine_with_one_as_it_was() {
        let free = MemorySpec::Free(Bytes::from_mib(64));
        let size = Bytes::from_mib(200);
        let one = MachineSpec::new(free, SwapSpec::ZRAM, size, None, &["quick".to_owned()]);
        assert_eq!(one.clone().with_cpus(CpusSpec::ONE), one);
        let four = one.clone().with_cpus(CpusSpec::of(4));
        assert!(four.memory > one.memory);
        let cmdline = &four.cmdline;
        assert!(cmdline.contains("keep hpet=disable ") && cmdline.ends_with(" quick"));
        let has = |machine: &MachineSpec, words: &[&str]| {
            machine.arguments().windows(2).any(|pair| pair == words)
        };
        assert!(has(&four, &["-smp", "4"]) && has(&one, &["-smp", "1"]));
        let of_packages = ["-smp", "4,sockets=4,cores=1,threads=1"];
        assert!(has(&four.clone().for_kernel(false), &of_packages));
        assert_eq!(four.clone().for_kernel(true), four);
        assert_eq!(one.clone().for_kernel(false), one);
        assert!(four.arguments()[1].contains("hpet=on"));
        assert!(one.arguments()[1].contains("hpet=off"));
    }

    #[test]
    fn no_emulator_announces_string_instructions_that_it_counts_by_the_byte() {
        let free = MemorySpec::Free(Bytes::from_mib(64));
        let one = MachineSpec::new(free, SwapSpec::ZRAM, Bytes::from_mib(200), None, &[]);
        let model = |version| {
            let all = one.clone().for_emulator(version).arguments();
            let at = all.iter().position(|argument| argument == "-cpu").unwrap();
            all[at + 1].clone()
        };
        // Older emulators refuse features that they do not know, and their trials keep their results.
        assert_eq!(model(Some((7, 2))), "max,-erms,-fsrm");
        assert_eq!(model(None), "max,-erms,-fsrm");
        for version in [(8, 1), (10, 0)] {
            assert!(model(Some(version)).contains("-fsrs"));
        }
    }

    #[test]
    fn a_disk_in_memory_enlarges_the_machine_and_zram_does_not() {
        let free = MemorySpec::Free(Bytes::from_mib(64));
        let size = Bytes::from_mib(200);
        let zram = MachineSpec::new(free, SwapSpec::ZRAM, size, None, &[]);
        let ssd = MachineSpec::new(
            free,
            SwapSpec::Ssd(pagetide_quantity::Nanos(80_000)),
            size,
            None,
            &[],
        );
        assert!(ssd.memory.0 - zram.memory.0 >= size.0);
        let zswap = MachineSpec::new(free, SwapSpec::ZSWAP, size, None, &[]);
        assert_eq!(zswap, ssd, "zswap sits in front of that disk");
        let tiers = |text: &str| MachineSpec::new(free, text.parse().unwrap(), size, None, &[]);
        assert_eq!(tiers("zram:100M@2,zram@1"), zram);
        let part = tiers("zram:100M@2,ssd@1").memory.0 - zram.memory.0;
        assert!((100 << 20..110 << 20).contains(&part), "{part}");
        assert!(tiers("zram:200M:writeback=ssd").memory >= ssd.memory);
    }
}
