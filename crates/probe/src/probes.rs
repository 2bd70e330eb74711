//! The set of all probes.

use std::path::{Path, PathBuf};

use pagetide_quantity::Nanos;

use crate::ProbeError;
use crate::probe::{Probe, ProbeResult};
use crate::text::{Owner, SOURCES, Text};

/// The cgroup and the zram devices of the workload, whose counters are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Folder of the workload's cgroup. If set, the counters of the whole machine are only read if `machine` is true as
    /// well.
    pub group: Option<PathBuf>,
    /// True to read the counters of the whole machine in addition to those of the cgroup. They then include what other
    /// processes do.
    pub machine: bool,
    /// Folder in sysfs of the zram device to which only this workload swaps, such as `/sys/block/zram0`.
    pub zram: Option<PathBuf>,
    /// Folders in sysfs of the zram devices to which only this workload swaps, if there are several or one has a
    /// backing device; otherwise empty.
    pub devices: Vec<PathBuf>,
    /// Folders in sysfs of the memory nodes, if the machine has several; otherwise empty.
    pub nodes: Vec<PathBuf>,
}

impl Scope {
    /// Returns the folder with the files of an owner; `None` if the owner is not in scope, and for [`Owner::Device`]
    /// and [`Owner::Node`].
    fn folder(&self, owner: Owner) -> Option<&Path> {
        match owner {
            Owner::Machine => (self.machine || self.group.is_none()).then_some(Path::new("/")),
            Owner::Group => self.group.as_deref(),
            Owner::Zram => self.zram.as_deref(),
            // `Probes::open` opens the sources of each device and node separately.
            Owner::Device | Owner::Node => None,
        }
    }
}

/// A source that cannot be observed on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSource {
    /// Name of the source.
    pub source: String,
    /// Why the source cannot be observed.
    pub why: String,
}

/// All probes that this kernel supports.
#[derive(Default)]
pub struct Probes {
    open: Vec<Box<dyn Probe>>,
    unsupported: Vec<MissingSource>,
}

impl Probes {
    /// Opens every probe in scope. Each probe stores at most `capacity` samples; 0 means that no samples are stored.
    pub fn open(scope: &Scope, capacity: usize) -> Self {
        let mut probes = Self::default();
        for source in SOURCES {
            let Some(folder) = scope.folder(source.of) else {
                continue;
            };
            match Text::open(source, folder, capacity) {
                Ok(text) => probes.open.push(Box::new(text)),
                Err(why) => probes.unsupported.push(MissingSource {
                    source: source.name.to_owned(),
                    why: why.to_string(),
                }),
            }
        }
        let of_devices = scope.devices.iter().map(|folder| (folder, false));
        let of_nodes = scope.nodes.iter().map(|folder| (folder, true));
        for (folder, is_node) in of_devices.chain(of_nodes) {
            let sources = SOURCES.iter().filter(|source| match source.of {
                Owner::Device | Owner::Zram => !is_node,
                Owner::Node => is_node,
                Owner::Machine | Owner::Group => false,
            });
            for source in sources {
                // A kernel without writeback has no statistics of backing devices.
                if let Ok(text) = Text::open(source, folder, capacity) {
                    let text = text.named(source.of_device(folder));
                    probes.open.push(Box::new(text));
                }
            }
        }
        probes
    }

    /// Returns the sources that cannot be observed on this machine.
    pub fn unsupported(&self) -> &[MissingSource] {
        &self.unsupported
    }

    /// Reads the state of all probes before the trial, in reverse order of the probes.
    pub fn before(&mut self) -> Result<(), ProbeError> {
        self.open
            .iter_mut()
            .rev()
            .try_for_each(|probe| probe.before())
    }

    /// Adds a sample to every probe, taken at `time`. Allocates nothing.
    pub fn sample(&mut self, time: Nanos) -> Result<(), ProbeError> {
        self.open
            .iter_mut()
            .try_for_each(|probe| probe.sample(time))
    }

    /// Reads the state of all probes after the trial, in their order. Returns each result with the name of its source.
    pub fn after(self) -> Result<Vec<(String, ProbeResult)>, ProbeError> {
        self.open
            .into_iter()
            .map(|probe| Ok((probe.name().to_owned(), probe.after()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Unit;

    use super::*;

    #[test]
    fn a_trial_on_this_machine_is_observed_before_over_time_and_after() {
        let mut probes = Probes::open(&Scope::default(), 8);
        let said: Vec<String> = probes
            .unsupported()
            .iter()
            .map(|one| one.source.clone())
            .collect();
        probes.before().unwrap();
        for at in 0..20 {
            std::hint::black_box(vec![1_u8; 1 << 20]);
            probes.sample(Nanos(at)).unwrap();
        }
        let found = probes.after().unwrap();
        // Each source of the machine is either observed or reported as unsupported.
        let of_machine = SOURCES.iter().filter(|source| source.of == Owner::Machine);
        assert_eq!(found.len() + said.len(), of_machine.count());
        let of = |name: &str| &found.iter().find(|(probe, _)| probe == name).unwrap().1;
        let vmstat = of("vmstat");
        let faults = vmstat
            .counters
            .iter()
            .find(|(name, _)| name == "pgfault")
            .unwrap()
            .1;
        assert!(faults[1] > faults[0]);
        let series = vmstat.series.as_ref().unwrap();
        assert!(series.rows() >= 4);
        let meminfo = of("meminfo").series.as_ref().unwrap();
        let unit = |name: &str| {
            let column = meminfo
                .columns
                .iter()
                .find(|(column, _)| column.name == name);
            column.map(|(column, _)| column.unit)
        };
        assert_eq!(
            (unit("time"), unit("MemFree")),
            (Some(Unit::Nanos), Some(Unit::Bytes))
        );
        let free = meminfo.column("MemFree").unwrap();
        assert!((0..meminfo.rows()).all(|row| free.get(row) > Some(0.0)));
    }

    #[test]
    fn with_a_group_nothing_of_the_machine_is_read() {
        let group = tempfile::tempdir().unwrap();
        let stat = group.path().join("memory.stat");
        std::fs::write(&stat, "pgmajfault 5\n").unwrap();
        let scope = Scope {
            group: Some(group.path().to_owned()),
            ..Scope::default()
        };
        let mut probes = Probes::open(&scope, 0);
        assert_eq!(probes.unsupported()[0].source, "memory.events");
        probes.before().unwrap();
        std::fs::write(&stat, "pgmajfault 9\n").unwrap();
        let found = probes.after().unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["memory.stat"]);
        assert_eq!(found[0].1.counters, [("pgmajfault".to_owned(), [5, 9])]);
    }

    #[test]
    fn each_device_behind_swap_is_a_source_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let device = |name: &str, files: &[(&str, &str)]| {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            for (file, text) in files {
                std::fs::write(folder.join(file), text).unwrap();
            }
            folder
        };
        let devices = vec![device(
            "zram1",
            &[("mm_stat", "8192 90\n"), ("bd_stat", "3 1 4\n")],
        )];
        let group = tempfile::tempdir().unwrap();
        let mut probes = Probes::open(
            &Scope {
                group: Some(group.path().to_owned()),
                devices,
                ..Scope::default()
            },
            4,
        );
        probes.before().unwrap();
        std::fs::write(root.path().join("zram1/bd_stat"), "3 1 9\n").unwrap();
        let found = probes.after().unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["zram-zram1", "writeback-zram1"]);
        assert_eq!(
            found[0].1.counters[1],
            ("compr_data_size".to_owned(), [90, 90])
        );
        assert_eq!(found[1].1.counters[2], ("bd_writes".to_owned(), [4, 9]));
        let series = found[1].1.series.as_ref().unwrap();
        assert_eq!(series.name, "writeback-zram1");
        let source = crate::text::Source::named("writeback-zram1").unwrap();
        assert!(source.key("bd_writes").is_some());
    }

    #[test]
    fn each_memory_node_is_a_source_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let node = root.path().join("node1");
        std::fs::create_dir(&node).unwrap();
        let write = |name: &str, text: &str| std::fs::write(node.join(name), text).unwrap();
        write("vmstat", "nr_free_pages 70\npgdemote_kswapd 1\n");
        write(
            "meminfo",
            "Node 1 MemTotal:       65536 kB\nNode 1 AnonPages:  8 kB\nNode 1 HugePages_Total:     0\n",
        );
        write("numastat", "numa_hit 5\nnuma_miss 0\n");
        let group = tempfile::tempdir().unwrap();
        let scope = Scope {
            group: Some(group.path().to_owned()),
            nodes: vec![node.clone()],
            ..Scope::default()
        };
        let mut probes = Probes::open(&scope, 4);
        probes.before().unwrap();
        write("vmstat", "nr_free_pages 60\npgdemote_kswapd 1000\n");
        write("numastat", "numa_hit 5\nnuma_miss 9\n");
        probes.sample(Nanos(1)).unwrap();
        let found = probes.after().unwrap();
        let of = |name: &str| &found.iter().find(|(probe, _)| probe == name).unwrap().1;
        let counter = |source: &str, name: &str| {
            let mut all = of(source).counters.iter();
            all.find(|(counter, _)| counter == name).unwrap().1
        };
        assert_eq!(counter("node_vmstat-node1", "pgdemote_kswapd"), [1, 1000]);
        assert_eq!(counter("node_meminfo-node1", "MemTotal"), [64 << 20; 2]);
        assert_eq!(counter("node_numastat-node1", "numa_miss"), [0, 9]);
        let source = crate::text::Source::named("node_meminfo-node1").unwrap();
        assert!(source.key("AnonPages").is_some());
        let series = of("node_meminfo-node1").series.as_ref().unwrap();
        assert_eq!(series.name, "node_meminfo-node1");
    }

    #[test]
    fn without_samples_there_is_no_series() {
        let mut probes = Probes::open(&Scope::default(), 0);
        probes.before().unwrap();
        probes.sample(Nanos(1)).unwrap();
        assert!(
            probes
                .after()
                .unwrap()
                .iter()
                .all(|(_, found)| found.series.is_none())
        );
    }
}
