//! Tests of the workshop with a source tree of a few lines, whose Makefile imitates Kbuild with sed and cat.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pagetide_kernel::Stop;
use tempfile::TempDir;

use super::*;
use crate::variants::{Order, VariantForecast};

#[path = "../../kernel/tests/sample/mod.rs"]
mod sample;

/// Makefile of the source tree. One of its programs writes two files of a parser, and checks only whether the first one
/// exists. Options whose value is a word are accepted, except `CONFIG_ABSENT`. A source line that begins with `//` is a
/// comment, `fault` does not compile, and compiling `slow` takes a minute.
const MAKEFILE: &str = r#"
RELEASE := 6.12.0-pagetide
allnoconfig:
	@mkdir -p $(O)/scripts
	@test -e $(O)/scripts/parser.tab.h || { : > $(O)/scripts/parser.tab.h; : > $(O)/scripts/parser.tab.c; }
	@test -e $(O)/scripts/parser.tab.c || { echo "cc1: fatal error: parser.tab.c: No such file"; exit 1; }
	@grep -v ABSENT $(KCONFIG_ALLCONFIG) > $(O)/.config
olddefconfig:
	@echo "CONFIG_DEFAULTED=y" >> $(O)/.config
OBJECTS := $(O)/mm/vmscan.o $(O)/mm/swap.o
bzImage: $(O)/arch/x86/boot/bzImage
modules:
	@: > $(O)/modules.order
$(O)/arch/x86/boot/bzImage: $(OBJECTS) $(O)/.config
	@mkdir -p $(O)/arch/x86/boot $(O)/include/config
	@echo $(RELEASE) > $(O)/include/config/kernel.release
	@cat boot.bin $(OBJECTS) > $@
mm/%.o: $(O)/mm/%.o ;
$(O)/mm/%.o: mm/%.c
	@mkdir -p $(O)/mm
	@echo "  CC      mm/$*.o"
	@if grep -q slow $<; then sleep 60; fi
	@if grep -qn fault $<; then echo "$(CURDIR)/$<:$$(grep -n fault $< | cut -d: -f1):1: error: a fault"; exit 1; fi
	@cat /proc/self/net/dev > $(O)/net 2>/dev/null || cat /proc/thread-self/net/dev > $(O)/net
	@grep -v '^//' $< > $@
	@echo "cmd" > $(O)/mm/.$*.o.cmd
"#;

/// A user's git tree and a cache for a test.
struct Bench {
    theirs: TempDir,
    root: TempDir,
    stop: Arc<AtomicBool>,
    said: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            theirs: tempfile::tempdir().unwrap(),
            root: tempfile::tempdir().unwrap(),
            stop: Arc::default(),
            said: Vec::new(),
        };
        let top = bench.theirs.path();
        write(&top.join("Makefile"), MAKEFILE.as_bytes()).unwrap();
        let image = sample::bzimage("6.12.0-pagetide", &sample::vmlinux(b"0123456789"));
        write(&top.join("boot.bin"), &image).unwrap();
        write(&top.join("mm/vmscan.c"), b"one\ntwo\nthree\n").unwrap();
        write(&top.join("mm/swap.c"), b"swap\n").unwrap();
        write(&top.join("mm/zswap.c"), b"zswap\n").unwrap();
        write(
            &top.join("mm/Makefile"),
            b"obj-$(CONFIG_ZSWAP) += zswap.o\n",
        )
        .unwrap();
        pagetide_testing::git::tree_of(top);
        bench
    }

    fn recipe(&self, patches: &[&str]) -> Recipe {
        let patches = patches
            .iter()
            .enumerate()
            .map(|(place, text)| {
                let name = Digest::of(text.as_bytes());
                let path = self
                    .root
                    .path()
                    .join(format!("{place}-{}.patch", name.short()));
                fs::write(&path, text).unwrap();
                path
            })
            .collect();
        Recipe {
            source: SourceRef::Git {
                folder: self.theirs.path().to_owned(),
                revision: None,
            },
            config: None,
            patches,
            first: None,
            control: false,
        }
    }

    /// Returns the only build folder in the cache.
    fn only_build(&self) -> PathBuf {
        let mut builds = fs::read_dir(self.root.path().join("cache/builds")).unwrap();
        builds.next().unwrap().unwrap().path()
    }

    fn workshop(&self) -> Workshop {
        let cache = Cache::open(self.root.path().join("cache")).unwrap();
        let cache = cache.stopping_by(Stop::by(Arc::clone(&self.stop)));
        let mut workshop = Workshop::open(cache, Freshness::Pinned, 1 << 30);
        workshop.compiler.command = "gcc".to_owned();
        // Building this tree needs only make.
        workshop.needs = || Ok(());
        workshop
    }

    fn build(&mut self, recipe: &Recipe) -> Result<BuiltKernel, SourceError> {
        self.said.clear();
        let mut workshop = self.workshop();
        workshop.build(recipe, &mut |step| self.said.push(step.to_string()))
    }

    /// Returns the number of objects that the last build compiled; `None` if make did not run.
    fn objects(&self) -> Option<usize> {
        let line = self.said.iter().find(|line| line.starts_with("built "))?;
        line.rsplit_once(": ")?.1.split(' ').next()?.parse().ok()
    }
}

fn diff(file: &str, line: &str) -> String {
    format!(
        "Subject: [PATCH] mm: {line}\n\n--- a/mm/{file}.c\n+++ b/mm/{file}.c\n@@ -1,1 +1,2 @@\n {}\n+{line}\n",
        match file {
            "vmscan" => "one",
            other => other,
        }
    )
}

#[test]
fn a_patch_compiles_only_what_it_touches_and_the_base_is_not_built_again() {
    let mut bench = Bench::new();
    let (base, patched) = (bench.recipe(&[]), bench.recipe(&[&diff("vmscan", "more")]));
    let first = bench.build(&base).unwrap();
    assert_eq!(bench.objects(), Some(2), "{:?}", bench.said);
    let second = bench.build(&patched).unwrap();
    assert_eq!(bench.objects(), Some(1), "{:?}", bench.said);
    assert_ne!(first.kernel.digest, second.kernel.digest);
    assert!(
        second.name.contains(" + mm: more (patch "),
        "{}",
        second.name
    );
    for (recipe, built) in [(&base, &first), (&patched, &second)] {
        let again = bench.build(recipe).unwrap();
        assert_eq!(bench.objects(), None);
        assert_eq!(again.kernel.digest, built.kernel.digest);
        assert_eq!(again.name, built.name);
    }
    let found = bench.workshop().cache.resolve(
        &second.name.parse().unwrap(),
        Freshness::Pinned,
        &mut |_| {},
    );
    assert_eq!(found.unwrap().digest, second.kernel.digest);
}

#[test]
fn a_comment_gives_the_very_same_kernel_and_a_control_gives_another() {
    let mut bench = Bench::new();
    let base = bench.recipe(&[]);
    let base = bench.build(&base).unwrap();
    let comment = bench.recipe(&[&diff("vmscan", "// a word")]);
    let same = bench.build(&comment).unwrap();
    assert_eq!(same.kernel.digest, base.kernel.digest);
    // The lines of the comment are not those of the kernel without it.
    assert_eq!(same.kernel.changed_code(), None);
    let other = bench.recipe(&[&diff("vmscan", "more")]);
    assert!(bench.build(&other).unwrap().kernel.changed_code().is_some());
    let control = Recipe {
        control: true,
        ..bench.recipe(&[&diff("vmscan", "more")])
    };
    let control = bench.build(&control).unwrap();
    assert_ne!(control.kernel.digest, base.kernel.digest);
    assert!(control.name.ends_with("a nop (control)"));
}

#[test]
fn what_does_not_compile_is_shown_with_its_hunk_and_the_next_build_is_whole() {
    let mut bench = Bench::new();
    let faulty = bench.recipe(&[&diff("vmscan", "fault")]);
    let error = bench.build(&faulty).unwrap_err().to_string();
    assert!(
        error.contains("mm/vmscan.c:2:1: error: a fault") && error.contains("@@ -1,1 +1,2 @@"),
        "{error}"
    );
    assert!(
        bench
            .said
            .iter()
            .any(|line| line.contains("error: a fault")),
        "{:?}",
        bench.said
    );
    let right = bench.recipe(&[&diff("vmscan", "right")]);
    bench.build(&right).unwrap();
}

#[test]
fn options_that_are_not_taken_are_named_all_at_once_and_a_file_that_is_not_built_names_its_option()
{
    let mut bench = Bench::new();
    let config = bench.root.path().join("my.config");
    fs::write(
        &config,
        "CONFIG_ABSENT_A=y\nCONFIG_ABSENT_B=m\nCONFIG_OTHER=y\n",
    )
    .unwrap();
    let asked = Recipe {
        config: Some(ConfigRef::File(config.clone())),
        ..bench.recipe(&[])
    };
    let error = bench.build(&asked).unwrap_err().to_string();
    assert!(
        error.contains("CONFIG_ABSENT_A=y, CONFIG_ABSENT_B=m"),
        "{error}"
    );
    assert!(!error.contains("OTHER"), "{error}");
    fs::write(&config, "CONFIG_OTHER=y\n").unwrap();
    bench.build(&asked).unwrap();
    let elsewhere = bench.recipe(&[&diff("zswap", "more")]);
    let built = bench.build(&elsewhere).unwrap();
    assert_eq!(
        built.not_built,
        ["mm/zswap.c is not built: give --config a file with CONFIG_ZSWAP=y"]
    );
}

#[test]
fn a_distributions_configuration_is_completed_and_costs_are_said_before_the_first_build() {
    let mut bench = Bench::new();
    let sources = bench.root.path().join("cache/sources");
    fs::create_dir_all(&sources).unwrap();
    let distribution = "CONFIG_PSI=y\nCONFIG_DRM=m\nCONFIG_XFS_FS=m\n";
    fs::write(sources.join("debian-bookworm-6.12.config"), distribution).unwrap();
    let mut recipe = Recipe {
        config: Some(ConfigRef::Debian),
        ..bench.recipe(&[])
    };
    let built = bench.build(&recipe).unwrap();
    assert!(
        built.name.ends_with(" with Debian's configuration"),
        "{}",
        built.name
    );
    let cost = |line: &String| line.starts_with("Debian's configuration compiles about ");
    assert!(bench.said.iter().any(cost), "{:?}", bench.said);
    let text = fs::read_to_string(bench.only_build().join("out/.config")).unwrap();
    for line in [
        "CONFIG_PSI=y",
        "# CONFIG_DRM is not set",
        "CONFIG_XFS_FS=m",
        "CONFIG_BLK_DEV_NULL_BLK=m",
        "CONFIG_DEFAULTED=y",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    recipe.patches = bench.recipe(&[&diff("vmscan", "more")]).patches;
    let patched = bench.build(&recipe).unwrap();
    assert!(
        patched
            .name
            .contains(" with Debian's configuration + mm: more (patch "),
        "{}",
        patched.name
    );
    assert!(!bench.said.iter().any(cost), "{:?}", bench.said);
}

/// Configures the real Debian source in some seconds, if the tests' cache has it. Does not build it.
#[test]
fn debians_own_configuration_of_its_source_has_all_that_a_trial_needs() {
    use pagetide_kernel::Need;
    use pagetide_testing::skip;

    let lacks = |why: &str| skip(pagetide_testing::Need::Builds, why);
    let Some(root) = std::env::var_os("PAGETIDE_TEST_CACHE") else {
        return lacks("PAGETIDE_TEST_CACHE names no cache with a source");
    };
    let cache = Cache::open(root).unwrap();
    let recipe: Recipe = "source:debian:6.12,config:debian".parse().unwrap();
    let Some((folder, version)) = debian::here(&cache, "bookworm", "6.12") else {
        return lacks("the tests' cache has no linux-source-6.12, which a build fetches");
    };
    let mut workshop = Workshop::open(cache.clone(), Freshness::Pinned, 1 << 40);
    if let Err(why) = workshop.provide(&recipe, &mut |_| {}) {
        return lacks(&format!("Debian's configuration cannot be had: {why}"));
    }
    if tools::check().is_err() {
        return lacks("what a build needs is not installed");
    }
    let stop = Stop::default();
    let tree = Tree::take(&folder, &version, &stop, &mut |_| {}).unwrap();
    let asked = Asked::of(&recipe, &cache).unwrap();
    let opened = OpenSource { tree, id: version };
    let job = job(&recipe, asked, opened).unwrap();
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let scratch = place.path().join("tmp");
    for folder in [&out, &scratch] {
        fs::create_dir_all(folder).unwrap();
    }
    let isolation = workshop.isolation.take().unwrap_or_else(Isolation::find);
    let make = Make {
        source: &job.opened.tree.top(),
        out: &out,
        scratch: &scratch,
        ccache: &scratch,
        compiler: &workshop.compiler.command,
        jobs: 1,
        log: place.path().join("log"),
        isolation: &isolation,
        lock: job.opened.tree.lock(),
        stop: &stop,
    };
    configure(&make, place.path(), &job).unwrap();
    let text = fs::read_to_string(out.join(".config")).unwrap();
    let got = config::options(&text);
    // Debian's cloud kernels of 6.12 have neither zswap nor recompression in zram.
    let not_there = [
        Need::ZramRecompression,
        Need::Zswap,
        Need::ZswapShrinker,
        Need::ZswapNoWriteback,
        Need::ZswapMax,
    ];
    let config = pagetide_kernel::Config::parse(&text);
    let needs = Need::ALL
        .into_iter()
        .filter(|need| !not_there.contains(need));
    let missing: Vec<_> = needs
        .filter_map(|need| need.check("6.12.0", &config).err())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Overriding options have their values. Only an option that should be a module may be built in instead.
    let over = config::options(config::OVER_DISTRIBUTION);
    let other = config::not_taken(&over, &got);
    let is_built_in = |text: &String| text.ends_with("=m (it is y)");
    assert!(other.iter().all(is_built_in), "{other:?}");
    let modules = got.values().filter(|value| *value == "m").count();
    assert!((9..40).contains(&modules), "{modules} modules");
}

#[test]
fn a_build_that_shall_stop_ends_within_two_seconds_with_its_children_and_goes_on_later() {
    let mut bench = Bench::new();
    let slow = bench.recipe(&[&diff("vmscan", "slow")]);
    let (stop, began) = (Arc::clone(&bench.stop), Instant::now());
    let timer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1500));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(matches!(bench.build(&slow), Err(SourceError::Stopped)));
    assert!(
        began.elapsed() < Duration::from_millis(3500),
        "{:?}",
        began.elapsed()
    );
    timer.join().unwrap();
    // If a child survived, it would hold the tree's lock, which is its standard input.
    bench.stop.store(false, Ordering::Relaxed);
    let right = bench.recipe(&[&diff("vmscan", "right")]);
    bench.build(&right).unwrap();
    assert!(
        !bench.said.iter().any(|line| line.starts_with("waiting")),
        "{:?}",
        bench.said
    );
}

#[test]
fn what_a_killed_build_left_half_made_is_made_again() {
    let mut bench = Bench::new();
    let base = bench.recipe(&[]);
    let whole = bench.build(&base).unwrap();
    let folder = bench.only_build();
    // The folder looks as after a kill: the build is marked as unfinished, and an object is newer than its `.cmd`.
    fs::write(folder.join("building"), "").unwrap();
    let object = folder.join("out/mm/vmscan.o");
    fs::write(&object, "ha").unwrap();
    fs::remove_dir_all(bench.root.path().join("cache/built")).unwrap();
    let again = bench.build(&base).unwrap();
    assert_eq!(again.kernel.digest, whole.kernel.digest);
    assert_eq!(fs::read_to_string(&object).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn a_killed_build_keeps_generated_headers_that_were_complete_long_before() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    fs::create_dir_all(folder.join("out/include")).unwrap();
    let now = SystemTime::now();
    let write = |name: &str, age: u64| {
        let file = fs::File::create(folder.join(name)).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
    };
    for (name, age) in [
        (CONFIGURED, 900),
        ("building", 800),
        ("out/include/types.h", 700),
        ("out/include/late.h", 30),
        ("out/whole.o", 600),
        ("out/.whole.o.cmd", 599),
        ("out/half.o", 500),
        ("out/.half.o.cmd", 650),
        ("out/last.o", 1),
        ("out/.last.o.cmd", 0),
    ] {
        write(name, age);
    }
    mend(folder).unwrap();
    let is_there = |name: &str| folder.join(name).exists();
    assert!(is_there("out/include/types.h") && is_there("out/whole.o"));
    for name in [
        "out/include/late.h",
        "out/half.o",
        "out/.half.o.cmd",
        "out/last.o",
        "building",
    ] {
        assert!(!is_there(name), "{name}");
    }
}

/// Damages a build folder: of the two files that one program writes, removes one, and gives the other and its `.cmd`
/// file an old modification time. Also removes the built kernels from the cache, so that the next build uses this
/// folder.
fn poison(folder: &Path) {
    fs::remove_file(folder.join("out/scripts/parser.tab.c")).unwrap();
    for file in ["parser.tab.h", ".parser.tab.h.cmd"] {
        let path = folder.join("out/scripts").join(file);
        let file = fs::File::create(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let bench = folder.ancestors().nth(2).unwrap();
    fs::remove_dir_all(bench.join("built")).unwrap();
}

#[test]
fn a_folder_in_which_configuring_was_cut_short_is_made_again() {
    let mut bench = Bench::new();
    let base = bench.recipe(&[]);
    let whole = bench.build(&base).unwrap();
    let folder = bench.only_build();
    poison(&folder);
    fs::remove_file(folder.join("configured")).unwrap();
    fs::write(folder.join("building"), "").unwrap();
    let again = bench.build(&base).unwrap();
    assert_eq!(again.kernel.digest, whole.kernel.digest);
    assert!(
        !bench
            .said
            .iter()
            .any(|line| line.contains("kept build folder")),
        "{:?}",
        bench.said
    );
    assert!(!folder.join("building").exists());
}

#[test]
fn a_build_that_fails_in_a_kept_folder_is_tried_in_a_clean_one_before_the_user_is_told() {
    let mut bench = Bench::new();
    let base = bench.recipe(&[]);
    let whole = bench.build(&base).unwrap();
    let folder = bench.only_build();
    poison(&folder);
    fs::remove_file(folder.join("configured")).unwrap();
    let again = bench.build(&base).unwrap();
    assert_eq!(again.kernel.digest, whole.kernel.digest);
    let tries = |bench: &Bench| {
        let told = bench.said.iter();
        told.filter(|line| line.contains("kept build folder"))
            .count()
    };
    assert_eq!(tries(&bench), 1, "{:?}", bench.said);

    // make wrongly considers this file up to date.
    fs::create_dir(folder.join("out/mm/.vmscan.o.cmd.new")).unwrap();
    let cmd = folder.join("out/mm/.vmscan.o.cmd");
    fs::remove_file(&cmd).unwrap();
    fs::rename(folder.join("out/mm/.vmscan.o.cmd.new"), &cmd).unwrap();
    let more = bench.recipe(&[&diff("vmscan", "more")]);
    bench.build(&more).unwrap();
    assert_eq!(tries(&bench), 1, "{:?}", bench.said);
    assert!(cmd.is_file() && !folder.join("kept").exists());
}

#[test]
fn an_error_of_a_patch_is_told_after_one_object_in_a_clean_folder_and_the_kept_folder_stays() {
    let mut bench = Bench::new();
    let base = bench.recipe(&[]);
    bench.build(&base).unwrap();
    let folder = bench.only_build();
    let stamp = |file: &str| {
        fs::metadata(folder.join("out/mm").join(file))
            .unwrap()
            .modified()
            .unwrap()
    };
    let kept = stamp("swap.o");
    let faulty = bench.recipe(&[&diff("vmscan", "fault")]);
    let error = bench.build(&faulty).unwrap_err().to_string();
    assert!(
        error.contains("mm/vmscan.c:2:1: error: a fault") && error.contains("@@ -1,1 +1,2 @@"),
        "{error}"
    );
    assert!(
        bench
            .said
            .iter()
            .any(|line| line.starts_with("mm/vmscan.o failed")),
        "{:?}",
        bench.said
    );
    assert_eq!(stamp("swap.o"), kept);
    assert!(!folder.join("kept").exists());
    let right = bench.recipe(&[&diff("vmscan", "right")]);
    bench.build(&right).unwrap();
    assert_eq!(bench.objects(), Some(1), "{:?}", bench.said);
}

#[test]
fn what_a_plan_refuses_is_refused_before_anything_is_fetched_and_all_that_is_missing_is_named() {
    let bench = Bench::new();
    let order = |name: &str, kernel: String| Order {
        name: name.to_owned(),
        kernel,
        is_kernel_alone: true,
    };
    let source = "source:debian:6.12";
    let patch = |name: &str, text: &str| {
        let path = bench.root.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let cut = patch(
        "cut.patch",
        "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,3 +1,4 @@\n one\n",
    );
    let good = patch("good.patch", &diff("vmscan", "more"));
    // The stop flag is set, so fetching would fail.
    bench.stop.store(true, Ordering::Relaxed);
    let refused = |patched: &str, needs: fn() -> Result<(), SourceError>| {
        let mut workshop = bench.workshop();
        workshop.needs = needs;
        let orders = [
            order("base", source.to_owned()),
            order("patched", patched.to_owned()),
        ];
        let plan = workshop
            .forecast(&orders, &mut |_| {})
            .map_err(|why| why.source.to_string());
        let run = workshop.deliver(&orders, &|| false, &|_| {}).unwrap_err();
        (plan.err(), run.source)
    };
    for text in [
        format!("{source},patch:{cut}"),
        format!("{source},patch:/no/such.patch"),
        format!("{source},config:/no/such.config,patch:{good}"),
    ] {
        let (plan, run) = refused(&text, || Ok(()));
        assert!(
            !matches!(run, SourceError::Stopped),
            "{text} was fetched for"
        );
        assert_eq!(plan, Some(run.to_string()));
    }
    let lacking = || {
        Err(SourceError::NoTools {
            missing: "flex, bison".to_owned(),
            remedy: "apt-get install flex bison".to_owned(),
        })
    };
    let (plan, run) = refused(&format!("{source},patch:{good}"), lacking);
    assert_eq!(plan, None);
    assert!(matches!(run, SourceError::NoTools { .. }), "{run}");
    // If the request is valid, the next step is fetching.
    let (_, run) = refused(&format!("{source},patch:{good}"), || Ok(()));
    let is_stopped = matches!(
        run,
        SourceError::Stopped | SourceError::Kernel(pagetide_kernel::KernelError::Stopped)
    );
    assert!(is_stopped, "{run}");
}

#[test]
fn the_build_sees_no_network_where_namespaces_work() {
    let mut bench = Bench::new();
    if Isolation::find().lacks.is_some() {
        return pagetide_testing::skip(
            pagetide_testing::Need::Root,
            "neither root nor user namespaces",
        );
    }
    let base = bench.recipe(&[]);
    bench.build(&base).unwrap();
    let folder = bench.only_build();
    let interfaces = fs::read_to_string(folder.join("out/net")).unwrap();
    let names: Vec<&str> = interfaces
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    assert!(names.iter().all(|name| *name == "lo"), "{names:?}");
}

#[test]
fn a_plan_builds_nothing_and_says_what_is_there_and_what_a_build_would_compile() {
    let mut bench = Bench::new();
    let order = |name: &str, recipe: &Recipe| Order {
        name: name.to_owned(),
        kernel: recipe.to_string(),
        is_kernel_alone: true,
    };
    let base = bench.recipe(&[]);
    let patched = bench.recipe(&[&diff("vmscan", "more")]);
    let orders = [order("base", &base), order("patched", &patched)];
    let states = |bench: &Bench, orders: &[Order]| -> Vec<BuildState> {
        let forecasts = bench.workshop().forecast(orders, &mut |_| {}).unwrap();
        let state = |forecasts| match forecasts {
            VariantForecast::Kernel(forecast) => forecast.state,
            other => panic!("{other:?}"),
        };
        forecasts.into_iter().map(state).collect()
    };
    let is_whole = |state: &BuildState| match state {
        BuildState::ToBuild { whole, .. } => Some(*whole),
        _ => None,
    };
    let before = states(&bench, &orders);
    assert_eq!(
        before.iter().map(is_whole).collect::<Vec<_>>(),
        [Some(true), Some(false)]
    );
    assert!(before[0].about() > before[1].about());
    let cache = bench.root.path().join("cache");
    assert!(!cache.join("builds").exists() && !cache.join("sources").exists());
    let built = bench.build(&base).unwrap();
    let after = states(&bench, &orders);
    assert_eq!(after[0], BuildState::Built(built.name));
    assert_eq!(is_whole(&after[1]), Some(false));
    bench.build(&patched).unwrap();
    let comment = order("comment", &bench.recipe(&[&diff("vmscan", "// a word")]));
    let misfit = order(
        "misfit",
        &bench.recipe(&[&diff("swap", "x").replace(" swap", " pawn")]),
    );
    bench
        .build(&bench.recipe(&[&diff("vmscan", "// a word")]))
        .unwrap();
    let all = [orders[0].clone(), comment, misfit.clone()];
    let forecasts = bench.workshop().forecast(&all, &mut |_| {}).unwrap();
    assert!(
        matches!(&forecasts[1], VariantForecast::LeftOut(why) if why.contains("no change in code")),
        "{forecasts:?}"
    );
    assert!(
        matches!(&forecasts[2], VariantForecast::LeftOut(why) if why.contains("rebase")),
        "{forecasts:?}"
    );
    let refused = bench
        .workshop()
        .forecast(&[orders[0].clone(), misfit], &mut |_| {})
        .unwrap_err();
    assert_eq!(refused.name, "misfit");
}
