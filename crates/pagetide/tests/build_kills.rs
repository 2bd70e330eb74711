//! Tests with interruptions at random moments of a run that fetches, unpacks, configures and builds a kernel. In the
//! end, the same command always produces the right records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::rot::{Random, kernel_files};
use crate::common::{Lab, TINY, wait_until};
use pagetide_testing::{Need, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Default number of interruptions; `PAGETIDE_TEST_BUILD_KILLS` overrides it.
const KILLS: u64 = 10;
/// Maximum time from the start of a run to its interruption. Fetching and unpacking together take about this long, and
/// so does a part of a build.
const LATEST: Duration = Duration::from_secs(40);
/// Number of completed runs after which the source is deleted, so that it is fetched again.
const SOURCES: u64 = 3;

/// The patch whose kernel is built.
const PATCH: &str = include_str!("../../../patches/used-once-2008.patch");
/// Kernel options that the trials do not need; without them a build is as small as possible.
const SMALLER: &str = "# CONFIG_EXT4_FS is not set\n# CONFIG_BLK_DEV_NBD is not set\n";

/// Digests of the results of a store's records, each once. Asserts that all records are valid.
fn digests(lab: &Lab, store: &str) -> BTreeSet<String> {
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--store", store]);
    let records: Vec<Value> = serde_json::from_str(&list).unwrap();
    let of = |record: &Value| {
        assert!(record["invalid"].is_null(), "{record}");
        record["digest"].as_str().unwrap().to_owned()
    };
    records.iter().map(of).collect()
}

/// Command lines of all processes that use a cache: its path is in their arguments, their environment or their working
/// folder.
fn at_work_for(cache: &Path) -> Vec<String> {
    let name = cache.as_os_str().as_encoded_bytes();
    let has = |bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let works_there =
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(cache));
        if works_there || has(&read("cmdline")) || has(&read("environ")) {
            found.push(String::from_utf8_lossy(&read("cmdline")).replace('\0', " "));
        }
    }
    found
}

/// Name of the step that a run had reached, according to the files in its cache.
fn phase(cache: &Path) -> &'static str {
    let first = |folder: &str| -> Option<PathBuf> {
        let mut entries = fs::read_dir(cache.join(folder)).ok()?.flatten();
        entries
            .find(|entry| entry.path().is_dir())
            .map(|entry| entry.path())
    };
    let Some(source) = first("sources") else {
        return match first("tmp") {
            Some(scratch) if scratch.join("unpacked").is_dir() => {
                match fs::read_dir(scratch.join("unpacked")).map(Iterator::count) {
                    Ok(0) | Err(_) => "fetching",
                    Ok(_) => "unpacking",
                }
            }
            _ => "before there is a source",
        };
    };
    assert!(source.is_dir());
    match first("builds") {
        None => "before configuring",
        Some(build) if !build.join("configured").is_file() => "configuring",
        Some(build) if build.join("building").is_file() => "building",
        Some(_) => "between builds and trials",
    }
}

/// A command to be interrupted at random moments.
struct Trouble<'a> {
    lab: &'a Lab,
    /// Arguments of the command, without store and cache.
    words: Vec<String>,
    /// Maximum time from the start of a run to its interruption.
    latest: Duration,
    /// Function that returns the folders to remove from the cache, given the number of completed runs. The next run
    /// makes them again.
    removed: &'a dyn Fn(u64) -> Vec<&'static str>,
}

impl Trouble<'_> {
    fn command(&self, store: &str, cache: &Path) -> Vec<String> {
        let places = ["--store", store, "--cache", &cache.display().to_string()].map(str::to_owned);
        [&self.words[..], &places[..]].concat()
    }

    /// Runs the command without interruption; returns the digests of its records.
    fn finished(&self, store: &str, cache: &Path) -> BTreeSet<String> {
        let output = self
            .lab
            .pagetide(self.command(store, cache))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{said}");
        digests(self.lab, store)
    }

    /// Interrupts the command `kills` times. Returns the digests of all completed runs; the last run is not
    /// interrupted.
    fn interrupted(&self, kills: u64) -> Vec<BTreeSet<String>> {
        let cache = self.lab.cache();
        let mut random = Random::new(3);
        let (mut round, mut killed, mut whole) = (0_u64, 0, 0);
        let mut phases: BTreeMap<&str, u32> = BTreeMap::new();
        let mut ends = Vec::new();
        while killed < kills {
            round += 1;
            let store = format!("store-{whole}");
            let mut child = self.lab.start(self.command(&store, cache));
            // Some runs get enough time to complete, so that later interruptions happen in all steps again.
            let patience = if round % 6 == 0 { 6 } else { 1 };
            let latest = patience * u64::try_from(self.latest.as_millis()).unwrap();
            let moment = Duration::from_millis(random.below(latest));
            let began = Instant::now();
            while began.elapsed() < moment && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let was = phase(cache);
            let signals = [Signal::TERM, Signal::KILL, Signal::INT];
            let signal = signals[usize::try_from(round % 3).unwrap()];
            let is_killed = child.try_wait().unwrap().is_none();
            if is_killed {
                kill_process(Pid::from_child(&child), signal).unwrap();
                killed += 1;
                *phases.entry(was).or_default() += 1;
            }
            let status = child.wait().unwrap();
            let mut said = String::new();
            let _ = child.stderr.take().unwrap().read_to_string(&mut said);
            wait_until("the end of all that was started", SOON, || {
                at_work_for(cache).is_empty()
            });
            println!("round {round}: {was}, {signal:?}, {status}");
            if is_killed && !matches!(status.code(), Some(0 | 1 | 3)) {
                let by_signal = [None, Some(130), Some(143)];
                assert!(
                    by_signal.contains(&status.code()),
                    "round {round}: {status}: {said}"
                );
                continue;
            }
            assert!(
                matches!(status.code(), Some(0 | 1 | 3)),
                "round {round}: {status}: {said}"
            );
            ends.push(digests(self.lab, &store));
            whole += 1;
            for folder in (self.removed)(whole) {
                let _ = fs::remove_dir_all(cache.join(folder));
            }
        }
        println!("{killed} interruptions in {round} rounds, {whole} of them whole: {phases:?}");
        ends.push(self.finished("last", cache));
        ends
    }
}

/// Time limit only for tests that would never end; it is not a measurement, because the machine may be busy.
const SOON: Duration = Duration::from_mins(10);

fn kills() -> u64 {
    std::env::var("PAGETIDE_TEST_BUILD_KILLS").map_or(KILLS, |text| text.parse().unwrap())
}

/// Arguments of a run with a patch, with additional arguments. No trial is profiled, so each variant has one record for
/// each seed, unless it is observed too.
fn words(more: &[&str]) -> Vec<String> {
    let run = [
        "run",
        "random",
        "--seeds",
        "1",
        "--patch",
        "my.patch",
        "--profile=none",
    ];
    let all = [&run[..], more, &TINY[..]].concat();
    all.into_iter().map(str::to_owned).collect()
}

/// A Makefile that imitates Kbuild in seconds. Its output is the image of the tests' kernel, followed by the objects.
/// One program makes two files of a parser, but make checks only the first file. Each object is incomplete for a
/// moment.
fn makefile(kernel: &Path, release: &str) -> String {
    let kernel = kernel.display();
    format!(
        r#"
OBJECTS := $(patsubst mm/%.c,$(O)/mm/%.o,$(sort $(wildcard mm/*.c)))
allnoconfig:
	@mkdir -p $(O)/scripts
	@test -e $(O)/scripts/parser.tab.h || {{ : > $(O)/scripts/parser.tab.h; sleep 0.3; : > $(O)/scripts/parser.tab.c; }}
	@test -e $(O)/scripts/parser.tab.c || {{ echo "cc1: fatal error: parser.tab.c: No such file"; exit 1; }}
	@sleep 0.2
	@cp {kernel}/config $(O)/.config
mm/%.o: $(O)/mm/%.o ;
$(O)/mm/%.o: mm/%.c
	@mkdir -p $(O)/mm
	@echo "  CC      mm/$*.o"
	@echo half > $@
	@sleep 0.1
	@cat $< > $@
	@echo "cmd" > $(O)/mm/.$*.o.cmd
bzImage: $(OBJECTS)
	@mkdir -p $(O)/arch/x86/boot $(O)/include/config
	@echo {release} > $(O)/include/config/kernel.release
	@cat {kernel}/image $(OBJECTS) > $(O)/arch/x86/boot/bzImage
modules:
	@mkdir -p $(O)/drivers $(O)/lib $(O)/crypto $(O)/mm
	@cd {kernel}/modules/kernel; find drivers/block lib/lz4 crypto mm -name '*.ko*' > $(O)/modules.found
	@cd {kernel}/modules/kernel; cp --parents $$(cat $(O)/modules.found) $(O)
	@cp {kernel}/modules/modules.builtin* $(O)
	@mv $(O)/modules.found $(O)/modules.order
"#
    )
}

/// Folder of the tests' kernel in the shared cache, and the kernel's release.
fn kernel_of_tests(shared: &Lab) -> (PathBuf, String) {
    let files = kernel_files(shared);
    let image = files
        .strip_prefix("image:")
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    let folder = Path::new(image).parent().unwrap().to_owned();
    let facts = fs::read_to_string(folder.join("kernel.json")).unwrap();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let release = facts["kernel"]["release"].as_str().unwrap().to_owned();
    (folder, release)
}

#[test]
#[ignore = "test-all"]
fn a_run_that_builds_in_seconds_comes_to_its_right_end_however_often_it_is_interrupted() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    let (kernel, release) = kernel_of_tests(&shared);
    let lab = Lab::with_own_cache();
    let tree = lab.folder().join("linux");
    fs::create_dir_all(tree.join("mm")).unwrap();
    fs::write(tree.join("Makefile"), makefile(&kernel, &release)).unwrap();
    for number in 0..20 {
        fs::write(tree.join(format!("mm/{number}.c")), format!("{number}\n")).unwrap();
    }
    pagetide_testing::git::tree_of(&tree);
    let patch = "--- a/mm/7.c\n+++ b/mm/7.c\n@@ -1 +1,2 @@\n 7\n+more\n";
    fs::write(lab.folder().join("my.patch"), patch).unwrap();
    let trouble = Trouble {
        lab: &lab,
        words: words(&["--source", "linux"]),
        latest: Duration::from_secs(4),
        removed: &|_| vec!["built", "builds", "kernels", "snapshots", "sources"],
    };
    let ends = trouble.interrupted(kills());
    let right = trouble.finished("right", &lab.folder().join("undisturbed"));
    assert_eq!(right.len(), 2);
    assert!(ends.iter().all(|end| *end == right), "{right:?} {ends:?}");
}

/// Fetches and builds a real kernel. This takes 7 minutes of processor time once, then 2 minutes for each completed run
/// if ccache is installed, and 20 s for each interruption.
#[test]
#[ignore = "test-all"]
fn a_run_that_fetches_and_builds_a_kernel_comes_to_its_right_end_however_often_it_is_interrupted() {
    let Some(builds) = std::env::var_os("PAGETIDE_TEST_BUILDS").map(PathBuf::from) else {
        return skip(
            Need::Builds,
            "PAGETIDE_TEST_BUILDS names no cache folder to build kernels in (6 minutes once)",
        );
    };
    let lab = Lab::with_own_cache();
    fs::write(lab.folder().join("my.patch"), PATCH).unwrap();
    fs::write(lab.folder().join("my.config"), SMALLER).unwrap();
    let trouble = Trouble {
        lab: &lab,
        words: words(&["--config", "my.config"]),
        latest: LATEST,
        removed: &|whole| {
            let mut all = vec!["built", "builds", "kernels", "snapshots"];
            if whole % SOURCES == 0 {
                all.push("sources");
            }
            all
        },
    };
    let ends = trouble.interrupted(kills());
    let right = trouble.finished("right", &builds);
    // There are kernels without the patch, with an inserted nop and with the patch. Some have observed trials too.
    assert!(right.len() >= 3, "{right:?}");
    assert!(ends.iter().all(|end| *end == right), "{right:?} {ends:?}");
}
