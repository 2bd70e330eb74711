//! Tests of campaign files: what they mean, and the message on each mistake.

use std::fmt::Write;
use std::path::Path;

use pagetide_campaign::file::{parse, read, read_at};
use pagetide_campaign::{
    Campaign, FileError, Observe, ProgramPlace, ScenarioWords, Until, Vocabulary,
};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::ArenaKind;
use proptest::prelude::*;

fn vocabulary() -> Vocabulary {
    let words = |params: &[&str], metrics: &[&str]| ScenarioWords {
        params: params.iter().map(|p| (*p).to_owned()).collect(),
        metrics: metrics.iter().map(|m| (*m).to_owned()).collect(),
        ..ScenarioWords::default()
    };
    Vocabulary {
        arenas: vec![ArenaKind::Exact],
        scenarios: [
            (
                "smooth-sin-random".to_owned(),
                words(
                    &["pages", "refs", "touch"],
                    &["access-mean", "access-p99", "access-time"],
                ),
            ),
            (
                "zipf".to_owned(),
                words(&["pages", "exponent"], &["access-mean"]),
            ),
            (
                "swapbench".to_owned(),
                words(
                    &["locked", "processes", "size"],
                    &["read-mean", "write-mean", "total"],
                ),
            ),
        ]
        .into(),
        settings: vec![
            "lru_gen/enabled".into(),
            "vm.swappiness".into(),
            "vm.page-cluster".into(),
        ],
        ..Vocabulary::default()
    }
}

const GOOD: &str = r#"name = "good"
arena = "exact"
seed = 9
kernel = "debian:sid"
memory = ["64M", "total:160M"]
swap = ["zram", "ssd:80us"]
swap_size = "256M"
observe = "first"
primary = "access-mean"
[margins]
access-p99 = "5%"
[sampling]
seeds = 8
first-seed = 100
[[variant]]
name = "off"
settings = { "lru_gen/enabled" = 0, "vm.swappiness" = "60" }
[[variant]]
name = "on"
kernel = "debian:bookworm"
boot = ["thp=never", "mitigations=off"]
[[scenario]]
name = "smooth-sin-random"
params = { pages = ["2 * memory", 25_000], refs = 0x10, touch = "page" }
margins = { access-mean = 0.01 }
[[scenario]]
name = "swapbench"
as-written = true
memory = "128M"
swap = "none"
primary = ["read-mean"]
"#;

fn good() -> Campaign {
    parse("good.toml", GOOD, &vocabulary()).unwrap()
}

#[test]
fn a_file_means_what_it_says() {
    let campaign = good();
    assert_eq!((campaign.name.as_str(), campaign.seed), ("good", 9));
    assert_eq!(campaign.arena, ArenaKind::Exact);
    assert_eq!(campaign.observe, Observe::Seeds(1));
    assert_eq!(campaign.sampling.until, Until::Blocks(8));
    assert_eq!(campaign.sampling.first_seed, 100);
    let [off, on] = &campaign.variants[..] else {
        panic!("two variants");
    };
    assert_eq!(
        (off.kernel.as_str(), on.kernel.as_str()),
        ("debian:sid", "debian:bookworm")
    );
    assert_eq!(off.settings["lru_gen/enabled"], "0");
    assert_eq!(on.boot, ["thp=never", "mitigations=off"]);
    let [sine, bench] = &campaign.scenarios[..] else {
        panic!("two scenarios");
    };
    assert_eq!(sine.params["pages"], ["2 * memory", "25000"]);
    assert_eq!(sine.params["refs"], ["16"]);
    assert_eq!(
        sine.primary.as_deref(),
        Some(&["access-mean".to_owned()][..])
    );
    assert!((sine.margins["access-p99"] - 0.05).abs() < 1e-12);
    assert!((sine.margins["access-mean"] - 0.01).abs() < 1e-12);
    assert_eq!(sine.swap_size, Some(Bytes::from_mib(256)));
    assert!(bench.as_written);
    assert_eq!(
        bench.primary.as_deref(),
        Some(&["read-mean".to_owned()][..])
    );
    // There are two memory sizes, two kinds of swap and two values of `pages`, and one cell of the other scenario.
    assert_eq!(campaign.cells().count(), 9);
}

#[test]
fn cpus_are_a_number_or_a_list_and_make_cells() {
    let with = |line: &str, own: &str| {
        let text = GOOD
            .replace("seed = 9", &format!("seed = 9\n{line}"))
            .replace("swap = \"none\"", &format!("swap = \"none\"\n{own}"));
        parse("good.toml", &text, &vocabulary())
    };
    let cpus = |line: &str, own: &str| {
        let campaign = with(line, own).unwrap();
        let texts = campaign.cells().map(|cell| cell.cpus.to_string());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(cpus("", ""), ["1"; 9]);
    assert_eq!(cpus("cpus = 4", ""), ["4:5us"; 9]);
    let mixed = cpus("cpus = [1, \"4:10us\"]", "cpus = 2");
    assert_eq!(mixed.len(), 17);
    assert_eq!((&*mixed[0], &*mixed[16]), ("1", "2:5us"));
    assert!(mixed[1..16].contains(&"4:10us".to_owned()));
    let labels = with("cpus = 4", "").unwrap();
    assert!(
        labels
            .cells()
            .all(|cell| cell.label().ends_with(" · 4 CPUs"))
    );
    for (wrong, word) in [
        ("cpus = 0", "`0` CPUs"),
        ("cpus = 9", "`9` CPUs"),
        ("cpus = \"four\"", "`four` CPUs"),
        ("cpus = [2, 2]", "given twice"),
        ("cpus = \"4:1s\"", "turns of `1s`"),
        ("cpus = true", "from 1 to 8"),
    ] {
        let why = with(wrong, "").unwrap_err().to_string();
        assert!(why.contains(word) && why.contains(":4:"), "{wrong}: {why}");
    }
}

#[test]
fn until_sure_takes_a_cap_and_looks() {
    let until = |sampling: &str| {
        let text = GOOD.replace("seeds = 8", sampling);
        parse("good.toml", &text, &vocabulary())
            .unwrap()
            .sampling
            .until
    };
    let sure = |cap, looks: &[u32]| Until::Sure {
        cap,
        looks: looks.to_vec(),
    };
    assert_eq!(until("until = \"sure\""), sure(40, &[]));
    assert_eq!(
        until("until = \"sure\"\ncap = 20\nlooks = 2"),
        sure(20, &[10, 20])
    );
    assert_eq!(
        until("until = \"sure\"\ncap = 20\nlooks = [6, 9]"),
        sure(20, &[6, 9, 20])
    );
}

#[test]
fn a_scenario_may_carry_its_arguments_in_its_name() {
    let text = GOOD
        .replace("name = \"swapbench\"", "name = \"zipf(1.1)\"")
        .replace("primary = [\"read-mean\"]", "");
    let campaign = parse("good.toml", &text, &vocabulary()).unwrap();
    assert_eq!(campaign.scenarios[1].name, "zipf(1.1)");
}

#[test]
fn an_arena_that_is_not_there_is_refused_with_what_there_is() {
    for absent in ["host", "vm"] {
        let text = GOOD.replace("arena = \"exact\"", &format!("arena = \"{absent}\""));
        let message = parse("c.toml", &text, &vocabulary())
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("c.toml:2:"), "{message}");
        assert!(
            message.contains(absent) && message.contains("exact"),
            "{message}"
        );
    }
}

#[test]
fn a_primary_above_all_scenarios_is_a_metric_of_one_of_them() {
    let text = GOOD.replace("primary = \"access-mean\"", "primary = \"acess-mean\"");
    let message = parse("c.toml", &text, &vocabulary())
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("c.toml:9:"), "{message}");
    assert!(message.contains("did you mean `access-mean`?"), "{message}");
    let text = GOOD.replace("primary = \"access-mean\"", "primary = \"zzz\"");
    let message = parse("c.toml", &text, &vocabulary())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("use one of") && message.contains("read-mean"),
        "{message}"
    );
    let text = GOOD.replace("primary = \"access-mean\"", "primary = []");
    assert!(parse("c.toml", &text, &vocabulary()).is_err());
    let text = GOOD.replace("access-p99 = \"5%\"", "acess-p99 = \"5%\"");
    let message = parse("c.toml", &text, &vocabulary())
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("c.toml:11:"), "{message}");
}

#[test]
fn a_scenario_without_the_primary_of_all_keeps_its_own() {
    let text = GOOD.replace("primary = [\"read-mean\"]", "");
    let campaign = parse("c.toml", &text, &vocabulary()).unwrap();
    assert_eq!(
        campaign.scenarios[0].primary,
        Some(vec!["access-mean".to_owned()])
    );
    assert_eq!(campaign.scenarios[1].primary, None);
}

#[test]
fn a_value_of_a_parameter_that_stands_twice_is_refused() {
    for twice in ["[25000, 25_000]", "[\"2 * memory\", \"2*memory\"]"] {
        let text = GOOD.replace("[\"2 * memory\", 25_000]", twice);
        let message = parse("c.toml", &text, &vocabulary())
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("c.toml:24:"), "{message}");
        assert!(message.contains("given twice"), "{message}");
    }
}

#[test]
fn a_file_that_is_no_text_is_wrong_at_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    std::fs::write(&path, b"name = \"x\"\nseed = \xff\n").unwrap();
    let error = read(&path, &vocabulary()).unwrap_err();
    assert!(matches!(error, FileError::Wrong { line: 2, .. }), "{error}");
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

/// Changes to the valid file that make it invalid.
const MISTAKES: &[(&str, &str)] = &[
    ("name = \"good\"", "name = good"),
    ("name = \"good\"", "name = \"a/b\""),
    ("name = \"good\"", "nmae = \"good\""),
    ("name = \"good\"", ""),
    ("name = \"good\"", "name = 5"),
    ("arena = \"exact\"", "arena = \"exakt\""),
    ("arena = \"exact\"", "arena = \"cloud\""),
    ("seed = 9", "seed = -1"),
    ("seed = 9", "seed = 1.5"),
    ("kernel = \"debian:sid\"", "kernl = \"debian:sid\""),
    ("[\"64M\", \"total:160M\"]", "[\"64M\", \"160Q\"]"),
    ("[\"64M\", \"total:160M\"]", "[\"64M\", \"65536K\"]"),
    ("[\"64M\", \"total:160M\"]", "[]"),
    ("[\"64M\", \"total:160M\"]", "64"),
    ("\"ssd:80us\"]", "\"ssd:80\"]"),
    ("\"ssd:80us\"]", "\"tape\"]"),
    ("swap_size = \"256M\"", "swap_size = \"-1M\""),
    ("observe = \"first\"", "observe = \"frist\""),
    ("access-p99 = \"5%\"", "access-p99 = \"much\""),
    ("access-p99 = \"5%\"", "access-p99 = 0"),
    ("[sampling]", "[samplin]"),
    ("seeds = 8", "seeds = 0"),
    ("seeds = 8", "seed = 8"),
    ("seeds = 8", "seeds = \"8\""),
    ("seeds = 8", "until = \"shure\""),
    ("seeds = 8", "seeds = 8\nuntil = \"sure\""),
    ("seeds = 8", "seeds = 8\ncap = 40"),
    ("seeds = 8", "until = \"sure\"\ncap = 20\nlooks = [10, 5]"),
    ("seeds = 8", "until = \"sure\"\ncap = 20\nlooks = [10, 50]"),
    (
        "[[variant]]\nname = \"off\"",
        "[[variants]]\nname = \"off\"",
    ),
    ("[[variant]]\nname = \"off\"", "[[variant]]"),
    ("name = \"on\"", "name = \"off\""),
    ("name = \"on\"", "name = \"a:b\""),
    ("\"vm.swappiness\" = \"60\"", "\"vm.swapiness\" = \"60\""),
    ("\"vm.swappiness\" = \"60\"", "vm.swappiness = 60"),
    ("\"vm.swappiness\" = \"60\"", "\"vm.swappiness\" = [60]"),
    ("boot = [", "bot = ["),
    ("boot = [\"thp=never\", \"mitigations=off\"]", "boot = [1]"),
    (
        "name = \"smooth-sin-random\"",
        "name = \"smoth-sin-random\"",
    ),
    ("name = \"smooth-sin-random\"", "name = \"memcached\""),
    ("refs = 0x10", "reffs = 0x10"),
    ("pages = [\"2 * memory\", 25_000]", "pages = []"),
    ("pages = [\"2 * memory\", 25_000]", "pages = [{}]"),
    (
        "margins = { access-mean = 0.01 }",
        "margins = { access-maen = 0.01 }",
    ),
    ("as-written = true", "as-written = \"yes\""),
    ("primary = [\"read-mean\"]", "primary = [\"read\"]"),
    ("memory = \"128M\"", "memroy = \"128M\""),
    (
        "[[scenario]]\nname = \"swapbench\"",
        "[scenario.x]\nname = \"swapbench\"",
    ),
];

#[test]
fn every_mistake_is_told_with_its_line_its_key_and_what_was_meant() {
    let mut told = String::new();
    for (right, wrong) in MISTAKES {
        assert_eq!(GOOD.matches(right).count(), 1, "{right}");
        let text = GOOD.replace(right, wrong);
        let error = parse("bad.toml", &text, &vocabulary()).unwrap_err();
        let message = error.to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        let FileError::Wrong { line, .. } = error else {
            panic!("{message}");
        };
        // The expected line is that of the change, or that of the table or file that lacks something.
        let shown = text.lines().nth(line - 1).unwrap();
        writeln!(
            told,
            "{}\n    {}: {shown}\n    {message}\n",
            wrong.replace('\n', " ⏎ "),
            line
        )
        .unwrap();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_file_that_is_not_there_is_told_by_name() {
    let error = read(Path::new("/nowhere/x.toml"), &vocabulary()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("reading campaign /nowhere/x.toml: ")
    );
}

/// Parses the valid file with this line about its scale, at the scale `asked` if given.
fn scaled(line: &str, asked: Option<f64>) -> Result<Campaign, FileError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.toml");
    let text = GOOD.replace("seed = 9\n", &format!("seed = 9\n{line}\n"));
    std::fs::write(&path, text).unwrap();
    read_at(&path, asked, &vocabulary())
}

#[test]
fn a_scale_is_a_share_of_memory_and_of_the_swap_device_and_of_nothing_else() {
    let sizes = |line: &str, asked: Option<f64>| {
        let campaign = scaled(line, asked).unwrap();
        let first = &campaign.scenarios[0];
        let memory: Vec<String> = first.memory.iter().map(ToString::to_string).collect();
        (
            campaign.name,
            memory.join(" "),
            first.swap_size.unwrap().to_string(),
            first.params.clone(),
        )
    };
    let whole = sizes("", None);
    assert_eq!(whole.1, "64M total:160M");
    let (name, memory, swap, params) = sizes("scale = 0.25", None);
    assert_eq!(
        (name.as_str(), memory.as_str(), swap.as_str()),
        ("good", "16M total:40M", "64 MiB")
    );
    assert_eq!(params, whole.3);
    // Another size gives another campaign name. The same size stated in another way gives the same name. A scale of 1
    // is exact.
    let (name, memory, ..) = sizes("scale = 0.25", Some(0.1));
    assert_eq!(
        (name.as_str(), memory.as_str()),
        ("good-scale-0-1", "7M total:16M")
    );
    assert_eq!(sizes("scale = 0.25", Some(0.25)).0, "good");
    let (name, memory, ..) = sizes("scale = 0.25", Some(1.0));
    assert_eq!(
        (name.as_str(), memory.as_str()),
        ("good-scale-1", "64M total:160M")
    );
    assert_eq!(sizes("scale = 1", Some(1.0)).0, "good");
    assert_eq!(sizes("scale = 1e-9", None).1, "1M total:1M");
}

#[test]
fn a_scale_that_is_none_is_refused() {
    let why = |line: &str, asked: Option<f64>| scaled(line, asked).unwrap_err().to_string();
    let nothing = why("", Some(1.0));
    assert!(nothing.contains("names no scale"), "{nothing}");
    for asked in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let text = why("scale = 0.25", Some(asked));
        assert!(
            text.ends_with("is no size: give a number above 0"),
            "{text}"
        );
    }
    for line in ["scale = 0", "scale = -0.5", "scale = nan", "scale = inf"] {
        let text = why(line, None);
        assert!(text.contains(":4: `scale` cannot be"), "{text}");
    }
    let text = why("scale = \"half\"", None);
    assert!(
        text.contains("`scale` is text: give a number above 0"),
        "{text}"
    );
}

#[test]
fn the_campaigns_that_come_along_are_as_they_are_described() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let quick = read(&folder.join("quick.toml"), &vocabulary()).unwrap();
    assert_eq!((quick.variants.len(), quick.cells().count()), (2, 3));
    assert_eq!(quick.sampling.until.cap(), 8);
    let cells: Vec<String> = quick
        .cells()
        .map(|cell| format!("{} {} {}", cell.scenario, cell.memory, cell.swap))
        .collect();
    assert_eq!(
        cells,
        [
            "smooth-sin-random 32M zram",
            "swapbench 32M zram",
            "swapbench 32M ssd:80us"
        ]
    );
    // Every seed is timed. The first three are also observed, which is the default if variants are compared.
    assert_eq!(quick.observe, Observe::Seeds(3));
    assert_eq!(quick.trial_count(), 2 * 3 * (8 + 3));
    let kernels = read(&folder.join("kernels.toml"), &vocabulary()).unwrap();
    let refs: Vec<&str> = kernels.variants.iter().map(|v| v.kernel.as_str()).collect();
    assert_eq!(
        refs,
        ["debian:bookworm", "debian:bookworm/6.12", "debian:sid"]
    );
    let memory: Vec<String> = kernels.scenarios[0]
        .memory
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(memory, ["64M", "total:256M"]);
}

proptest! {
    #[test]
    fn no_file_however_garbled_is_more_than_one_line_of_complaint(
        at in 0..GOOD.len(),
        cut in 0..40_usize,
        noise in "[\\[\\]{}=\"\\n\\x00#.,a-z0-9 ]{0,12}",
    ) {
        let mut text = GOOD.to_owned();
        // The file is plain ASCII, so every position is a character boundary.
        text.replace_range(at..(at + cut).min(GOOD.len()), &noise);
        if let Err(error) = parse("bad.toml", &text, &vocabulary()) {
            let message = error.to_string();
            prop_assert_eq!(message.lines().count(), 1, "{}", message);
            prop_assert!(message.starts_with("bad.toml:"), "{}", message);
            let FileError::Wrong { line, .. } = error else { unreachable!() };
            prop_assert!(line <= text.lines().count() + 1);
        }
    }
}

#[test]
fn variants_with_patches_are_built_from_the_files_source() {
    let kernels = |text: &str| -> Vec<String> {
        let campaign = parse("c.toml", text, &vocabulary()).unwrap();
        campaign.variants.into_iter().map(|v| v.kernel).collect()
    };
    let rest = "[[scenario]]\nname = \"zipf\"\n";
    let text = format!(
        "name = \"p\"\nsource = \"debian:6.12\"\nconfig = \"my.config\"\n\
         [[variant]]\nname = \"base\"\n\
         [[variant]]\nname = \"one\"\npatch = \"a.patch\"\n\
         [[variant]]\nname = \"two\"\nsource = \"/l@v7\"\npatch = [\"a.patch\", \"b\"]\n\
         [[variant]]\nname = \"moved\"\npatch = \"a.patch\"\ncontrol = true\n\
         [[variant]]\nname = \"theirs\"\nkernel = \"debian:sid\"\n{rest}"
    );
    assert_eq!(
        kernels(&text),
        [
            "source:debian:6.12,config:my.config",
            "source:debian:6.12,config:my.config,patch:a.patch",
            "source:/l@v7,config:my.config,patch:a.patch,patch:b",
            "source:debian:6.12,config:my.config,patch:a.patch,control",
            "debian:sid",
        ]
    );
    let bare = format!(
        "name = \"p\"\n[[variant]]\nname = \"base\"\n[[variant]]\nname = \"x\"\npatch = \"a.patch\"\n{rest}"
    );
    assert_eq!(
        kernels(&bare),
        ["source:debian:6.12", "source:debian:6.12,patch:a.patch"]
    );
    for keys in ["control = true", "kernel = \"debian:sid\"\ncontrol = true"] {
        let text = format!("name = \"p\"\n[[variant]]\nname = \"x\"\n{keys}\n{rest}");
        let error = parse("c.toml", &text, &vocabulary())
            .unwrap_err()
            .to_string();
        assert!(error.contains("give that `patch` too"), "{error}");
    }
}

#[test]
fn patches_and_options_that_lie_beside_the_campaign_file_are_found_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("campaigns");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(folder.path().join("above.patch"), "").unwrap();
    std::fs::write(inner.join("my.config"), "").unwrap();
    let file = inner.join("c.toml");
    let text = "name = \"p\"\nconfig = \"my.config\"\n[[variant]]\nname = \"x\"\n\
                patch = [\"../above.patch\", \"elsewhere.patch\"]\n[[scenario]]\nname = \"zipf\"\n";
    std::fs::write(&file, text).unwrap();
    let campaign = read(&file, &vocabulary()).unwrap();
    let inner = inner.display();
    assert_eq!(
        campaign.variants[0].kernel,
        format!(
            "source:debian:6.12,config:{inner}/my.config,patch:{inner}/../above.patch,patch:elsewhere.patch"
        )
    );
}

#[test]
fn a_variant_has_a_kernel_or_a_patch() {
    let text = "name = \"p\"\n[[variant]]\nname = \"x\"\nkernel = \"debian:sid\"\npatch = \"a.patch\"\n\
                [[scenario]]\nname = \"zipf\"\n";
    let error = parse("c.toml", text, &vocabulary())
        .unwrap_err()
        .to_string();
    assert!(error.contains("patch") && error.contains('4'), "{error}");
}

const WITH_PROGRAM: &str = r#"name = "own"
swap = "none"
[[variant]]
name = "only"
[[program]]
command = "sort -R --random-source='a b' x{seed}"
server = "serve --at 'a b'"
ready = "port 80"
root = "deb:coreutils/bookworm"
file = ["a", "b:/etc/b"]
dir = "d"
env = { LEVEL = 3, NAME = "a b" }
folder = "/tmp"
input = "in"
space = "48M"
expect-exit = 1
time-limit = "30s"
limit = "8M"
high = "6M"
swap-max = "1M"
metric = 'ops=([0-9]+):higher'
memory = ["16M", "24M"]
margins = { ops = 0.01 }
takes = "1500ms"
[[program]]
command = ["echo", "it's"]
"#;

#[test]
fn a_program_of_ones_own_says_what_it_finds_and_how_it_runs() {
    let campaign = parse("own.toml", WITH_PROGRAM, &vocabulary()).unwrap();
    let [sort, echo] = &campaign.scenarios[..] else {
        panic!("two programs");
    };
    let program = sort.program.as_ref().unwrap();
    let files = &program.files;
    let words: Vec<&str> = files.command.iter().map(String::as_str).collect();
    assert_eq!(words, ["sort", "-R", "--random-source=a b", "x{seed}"]);
    assert_eq!(files.root.as_deref(), Some("deb:coreutils/bookworm"));
    assert_eq!(
        (files.files.len(), &files.dirs[..]),
        (2, &["d".to_owned()][..])
    );
    assert_eq!(files.server, ["serve", "--at", "a b"]);
    assert_eq!(program.spec.ready.as_deref(), Some("port 80"));
    assert_eq!(files.space, Some(Bytes::from_mib(48)));
    assert_eq!(program.spec.env, ["LEVEL=3", "NAME=a b"]);
    assert_eq!(program.spec.expect_exit, Some(1));
    assert_eq!(program.spec.limit, Some(Bytes::from_mib(8)));
    assert_eq!(sort.primary.as_deref(), Some(&["ops".to_owned()][..]));
    assert_eq!((sort.memory.len(), sort.swap.len()), (2, 1));
    assert_eq!(sort.takes, Some(Nanos::from_millis(1500)));
    assert_eq!(sort.cells().last().unwrap().takes, sort.takes);
    assert_eq!(echo.takes, None);
    // Once the program's files are found, its scenario is like any other.
    let mut settled = sort.clone();
    let place = ProgramPlace {
        root: "ab".to_owned(),
        command: vec!["/usr/bin/sort".to_owned()],
        ..ProgramPlace::default()
    };
    settled.settle(&place).unwrap();
    assert!(settled.program.is_none());
    assert_eq!(settled.params["time-limit"], ["30s"]);
    assert_eq!(settled.params["command"], ["/usr/bin/sort"]);
    let words = &echo.program.as_ref().unwrap().files.command;
    assert_eq!(words[..], ["echo", "it's"]);

    // A limit above all tables applies to programs that do not have one.
    let text = WITH_PROGRAM.replacen("swap = \"none\"", "limit = \"12M\"", 1);
    let campaign = parse("own.toml", &text, &vocabulary()).unwrap();
    let limits = campaign.scenarios.iter().map(|own| {
        let spec = &own.program.as_ref().unwrap().spec;
        spec.limit.map(|limit| limit.0 >> 20)
    });
    assert_eq!(limits.collect::<Vec<_>>(), [Some(8), Some(12)]);
}

#[test]
fn mistakes_in_a_program_are_told_with_their_line_and_where_a_key_belongs() {
    let said = |from: &str, to: &str| {
        let text = WITH_PROGRAM.replacen(from, to, 1);
        parse("own.toml", &text, &vocabulary())
            .unwrap_err()
            .to_string()
    };
    for (from, to, words) in [
        (
            "command = \"sort",
            "comand = \"sort",
            "did you mean `command`",
        ),
        (
            "folder = \"/tmp\"",
            "params = { a = 1 }",
            "it belongs under [[scenario]]",
        ),
        (
            "swap = \"none\"",
            "high = \"8M\"",
            "it belongs under [[program]]",
        ),
        ("'a b' x", "'a b x", "quotes do not match"),
        (
            "server = \"serve --at 'a b'\"",
            "server = []",
            "give a command",
        ),
        ("expect-exit = 1", "expect-exit = 300", "from 0 to 255"),
        (
            "time-limit = \"30s\"",
            "time-limit = \"soon\"",
            "`time-limit` cannot be `soon`",
        ),
        ("limit = \"8M\"", "limit = 8", "give a size such as \"32M\""),
        (
            "metric = 'ops=([0-9]+):higher'",
            "metric = 'ops'",
            "NAME=REGEX:higher",
        ),
        (
            "command = [\"echo\", \"it's\"]",
            "command = []",
            "give a command",
        ),
    ] {
        let why = said(from, to);
        assert!(
            why.starts_with("own.toml:") && why.contains(words),
            "{words}: {why}"
        );
    }
}

#[test]
fn a_file_of_ten_megabytes_and_a_list_of_thousands_are_refused_with_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.toml");
    std::fs::write(&path, format!("{} = 1\n", "k".repeat(10 << 20))).unwrap();
    let said = read(&path, &vocabulary()).unwrap_err().to_string();
    assert!(said.contains("larger than 1 MiB"), "{said}");
    assert!(said.contains("give a smaller one"), "{said}");

    let sizes: Vec<String> = (1..=1_001).map(|size| format!("\"{size}M\"")).collect();
    let variants = "[[variant]]\nname = \"a\"\n";
    let scenario = "[[scenario]]\nname = \"zipf\"\n";
    let text = format!(
        "name = \"x\"\nmemory = [{}]\n{variants}{scenario}",
        sizes.join(", ")
    );
    let said = parse("x", &text, &vocabulary()).unwrap_err().to_string();
    assert!(said.contains("more than 1000 values of `memory`"), "{said}");

    let mut variants = String::new();
    for number in 0..=1_000 {
        writeln!(variants, "[[variant]]\nname = \"v{number}\"").unwrap();
    }
    let text = format!("name = \"x\"\n{variants}{scenario}");
    let said = parse("x", &text, &vocabulary()).unwrap_err().to_string();
    assert!(said.contains("more than 1000 variants"), "{said}");
}

#[test]
fn a_file_may_come_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    // A pipe in the folder is skipped without waiting for a writer.
    assert!(pagetide_campaign::file::find(folder.path(), &vocabulary()).is_empty());
    let text = "name = \"x\"\n[[variant]]\nname = \"a\"\n[[scenario]]\nname = \"zipf\"\n";
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, text)
    });
    assert_eq!(read(&pipe, &vocabulary()).unwrap().name, "x");
    writer.join().unwrap().unwrap();
}
