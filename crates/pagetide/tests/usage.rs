//! Tests that wrong usage is refused in one clear sentence with exit code 4, and that failures of the machine have exit
//! code 2.

use std::fs;

use crate::common::{Lab, one_sentence, text, told};
use pagetide_testing::{Need, skip};

#[test]
fn help_and_version_are_answers_and_end_with_zero() {
    let lab = Lab::new();
    for arguments in [
        vec!["--help"],
        vec!["-h"],
        vec!["--version"],
        vec!["run", "--help"],
        vec!["kernel", "--help"],
        vec!["ideal", "references", "--help"],
    ] {
        let (out, _) = lab.ends(0, &arguments);
        assert!(out.len() > 10, "{arguments:?}: {out}");
    }
    let (out, _) = lab.ends(0, ["run", "--help"]);
    assert!(out.contains("Examples:") && out.contains("campaigns/quick.toml"));
}

#[test]
fn mistyped_words_are_answered_with_near_ones_and_exit_code_4() {
    let lab = Lab::new();
    for (arguments, near) in [
        (vec!["comprae"], "compare"),
        (vec!["run", "--kernl", "x", "linear"], "--kernel"),
        (vec!["list", "scenario"], "scenarios"),
    ] {
        let (_, err) = lab.ends(4, &arguments);
        assert!(err.contains(near), "{arguments:?}: {err}");
    }
    for (arguments, near) in [
        (vec!["run", "smoth-sin-randm"], "smooth-sin-random"),
        (vec!["list", "scenarios", "contswp"], "contswap"),
        (vec!["history", "swap-inn"], "swap-in"),
        (
            vec!["run", "linear", "--set", "vm.swapiness=1"],
            "vm.swappiness",
        ),
        (
            vec!["run", "linear", "--kernel", "debain:sid"],
            "debian:sid",
        ),
        (
            vec![
                "ideal",
                "references",
                "smooth-sinn",
                "--pages",
                "5",
                "--refs",
                "5",
            ],
            "smooth-sin",
        ),
    ] {
        let (_, err) = lab.ends(4, &arguments);
        one_sentence(&err, &["did you mean", near]);
    }
    // If no name is similar enough, the error contains the most similar names, not all names, and says how to list all.
    let (_, err) = lab.ends(4, ["run", "copy"]);
    one_sentence(&err, &["filecopy", "pagetide list scenarios"]);
    assert!(err.matches(", ").count() <= 2, "{err}");
}

#[test]
fn quantities_without_sense_are_refused_with_what_is_known() {
    let lab = Lab::new();
    for (option, value, hint) in [
        ("--memory", "24Q", "unknown unit"),
        ("--memory", "much", "not a size"),
        ("--swap", "tape", "zram"),
        ("--swap", "ssd:80parsecs", "unit"),
        ("--cache-limit", "-1", "size"),
        ("--seeds", "0", "1"),
        ("--timeout", "5", "unit"),
        ("--set", "vm.swappiness", "KEY=VALUE"),
        ("--vs", "zram", "KEY=VALUE"),
    ] {
        let argument = format!("{option}={value}");
        let (_, err) = lab.ends(4, ["run", "linear", &argument]);
        assert!(err.contains(hint), "{argument}: {err}");
    }
    let (_, err) = lab.ends(4, ["run", "linear", "--memory", "4M", "--kernel", "x.deb"]);
    one_sentence(&err, &["4", "at least 8"]);
}

#[test]
fn a_hunt_that_would_profile_some_seeds_is_refused() {
    let lab = Lab::new();
    let (_, err) = lab.ends(4, ["hunt", "--profile=3"]);
    one_sentence(&err, &["--profile without a number"]);
}

#[test]
fn bad_parameters_are_refused_before_even_the_kernel_is_looked_for() {
    let lab = Lab::with_own_cache();
    std::fs::write(lab.folder().join("words.txt"), "4\n0\nmany\n").unwrap();
    std::fs::write(lab.folder().join("range.txt"), "1\n4\n0\n").unwrap();
    for (arguments, words) in [
        ("linear -p pages=0", ["pages", "from 1"]),
        ("linear -p refs=0", ["refs", "from 1"]),
        ("linear -p pages=-5M", ["pages", "negative"]),
        ("filecopy -p size=-1M", ["size", "negative"]),
        ("swapbench -p locked=100M", ["100 MiB", "lock at most"]),
        ("file:words.txt", ["line 3", "\"many\""]),
        ("file:range.txt -p pages=3", ["line 2", "page 4"]),
    ] {
        let kernel = ["--kernel", "image:/nonexistent"];
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let (_, err) = lab.ends(4, [&["run"], &arguments[..], &kernel].concat());
        one_sentence(&err, &words);
        assert!(lab.incoming().is_empty() && lab.in_the_making().is_empty());
    }
}

#[test]
fn a_campaign_file_is_refused_with_line_key_and_suggestion() {
    let lab = Lab::new();
    let file = lab.folder().join("c.toml");
    let write = |text: &str| fs::write(&file, text).unwrap();
    write("name = \"c\"\nmemroy = \"24M\"\n");
    let (_, err) = lab.ends(4, ["run", "c.toml"]);
    one_sentence(&err, &["c.toml:2", "memroy", "did you mean `memory`?"]);
    write("name = \"c\"\n[[variant]]\nname = \"a\"\n[[scenario]]\nname = \"lineer\"\n");
    let (_, err) = lab.ends(4, ["plan", "c.toml"]);
    one_sentence(&err, &["c.toml:5", "linear"]);
    let (_, err) = lab.ends(2, ["run", "nowhere.toml"]);
    one_sentence(&err, &["nowhere.toml"]);
    write("name = \"c\"\n[[variant]]\nname = \"a\"\n[[scenario]]\nname = \"linear\"\n");
    let (_, err) = lab.ends(4, ["run", "c.toml", "--kernel", "debian:sid"]);
    one_sentence(&err, &["--kernel", "c.toml"]);
}

#[test]
fn without_an_emulator_the_program_says_what_to_install() {
    // The shared cache may have an emulator that `pagetide emulator add` fetched.
    let lab = Lab::with_own_cache();
    for (name, value) in [("PAGETIDE_QEMU", "/nonexistent"), ("PATH", "")] {
        let output = lab
            .pagetide(["run", "linear"])
            .env(name, value)
            .output()
            .unwrap();
        let (_, err) = told(&output, 2);
        one_sentence(&err, &["apt-get install qemu-system-x86"]);
    }
    let doctor = lab
        .pagetide(["doctor"])
        .env("PAGETIDE_QEMU", "/nonexistent")
        .output()
        .unwrap();
    let (out, _) = told(&doctor, 2);
    assert!(
        out.contains("missing") && out.contains("apt-get install qemu-system-x86"),
        "{out}"
    );
}

#[test]
fn doctor_says_which_arenas_there_are_and_json_has_the_same() {
    let lab = Lab::with_own_cache();
    let output = lab.pagetide(["doctor", "--json"]).output().unwrap();
    let pieces: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    for arena in ["exact", "vm", "host"] {
        assert!(
            pieces.iter().any(|piece| piece["arena"] == arena),
            "{arena}"
        );
    }
    let vm = pieces.iter().find(|piece| piece["arena"] == "vm").unwrap();
    assert!(vm["found"].as_str().unwrap().contains("KVM"), "{vm}");
}

#[test]
fn files_that_are_no_kernels_are_refused_by_name() {
    let lab = Lab::with_own_cache();
    let path = |name: &str| lab.folder().join(name);
    fs::write(path("notes"), "no kernel at all").unwrap();
    fs::write(path("empty.deb"), "").unwrap();
    fs::create_dir(path("tree")).unwrap();
    for name in ["./notes", "./empty.deb", "./tree", "./nowhere"] {
        let (_, err) = lab.ends(2, ["kernel", "add", name]);
        one_sentence(&err, &[name.trim_start_matches("./")]);
    }
}

/// Builds a package with this control file and some content; `None` if the package tool is not installed.
fn package(lab: &Lab, name: &str, control: &str) -> Option<Vec<u8>> {
    let folder = lab.folder().join(name);
    fs::create_dir_all(folder.join("DEBIAN")).unwrap();
    fs::create_dir_all(folder.join("boot")).unwrap();
    fs::write(folder.join("DEBIAN/control"), control).unwrap();
    fs::write(folder.join("boot/vmlinuz-9.9.9"), vec![7; 100_000]).unwrap();
    let file = lab.folder().join(format!("{name}.deb"));
    let made = std::process::Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group"])
        .args([&folder, &file])
        .output();
    match made {
        Ok(output) if output.status.success() => Some(fs::read(&file).unwrap()),
        Ok(output) => panic!("{}", text(&output.stderr)),
        Err(error) => {
            skip(
                Need::PackageTools,
                format!("dpkg-deb cannot be run ({error})"),
            );
            None
        }
    }
}

#[test]
fn a_truncated_package_and_one_of_another_machine_are_refused_by_name() {
    let lab = Lab::with_own_cache();
    let control = |architecture: &str| {
        format!(
            "Package: linux-image-9.9.9\nVersion: 9.9.9-1\nArchitecture: {architecture}\nMaintainer: t <t@t>\n\
             Description: a kernel\n"
        )
    };
    let Some(whole) = package(&lab, "native", &control("amd64")) else {
        return;
    };
    let half = lab.folder().join("half.deb");
    fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    let (_, err) = lab.ends(2, ["kernel", "add", "./half.deb"]);
    one_sentence(&err, &["half.deb"]);
    package(&lab, "foreign", &control("arm64")).unwrap();
    let (_, err) = lab.ends(2, ["kernel", "add", "./foreign.deb"]);
    one_sentence(&err, &["foreign.deb", "arm64"]);
    assert!(lab.ends(0, ["kernel", "list", "--json"]).0.trim() == "[]");
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let lab = Lab::new();
    fs::create_dir_all(lab.store()).unwrap();
    fs::write(lab.store().join("format"), "99\n").unwrap();
    let (_, err) = lab.ends(2, ["list", "records"]);
    one_sentence(&err, &["99"]);
    assert_eq!(
        fs::read_dir(lab.store()).unwrap().count(),
        1,
        "nothing was added"
    );
}

#[test]
fn unknown_names_are_refused() {
    let lab = Lab::new();
    for arguments in [
        vec!["show", "abcd"],
        vec!["repeat", "abcd"],
        vec!["compare", "a", "b"],
        vec!["compare"],
        vec!["plan", "power"],
    ] {
        let (_, err) = lab.ends(2, &arguments);
        one_sentence(&err, &[]);
    }
    let (_, err) = lab.ends(4, ["kernel", "show", "6.99"]);
    one_sentence(&err, &["6.99", "pagetide kernel list"]);
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let lab = Lab::new();
    fs::write(lab.folder().join("file"), "in the way").unwrap();
    let (_, err) = lab.ends(2, ["kernel", "add", "--cache", "file"]);
    one_sentence(&err, &["file"]);
    // Read-only and full folders, mounted in a separate namespace that disappears with the process.
    for (options, word) in [("ro", "Read-only"), ("size=40k", "No space")] {
        let script = format!(
            "mkdir -p m && mount -t tmpfs -o {options} none m && exec {} kernel add ./big.deb --cache m",
            crate::common::program().display()
        );
        fs::write(lab.folder().join("big.deb"), vec![1; 300_000]).unwrap();
        let output = std::process::Command::new("unshare")
            .args(["-rm", "sh", "-c", &script])
            .current_dir(lab.folder())
            .output()
            .unwrap();
        let err = text(&output.stderr);
        if !err.contains("pagetide: ") {
            skip(
                Need::Root,
                format!("a mount of one's own is not possible here: {err}"),
            );
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{err}");
        if options == "ro" {
            one_sentence(&err, &[word]);
        } else {
            one_sentence(&err, &[]);
        }
    }
}

#[test]
fn a_closed_reader_is_no_error() {
    let lab = Lab::new();
    let program = crate::common::program();
    let script = format!(
        "{} ideal references random --pages 1000 --refs 3000000 --text | head -n 1; echo ${{PIPESTATUS[0]}}",
        program.display()
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env("PAGETIDE_STORE", lab.store())
        .output()
        .unwrap();
    let (out, err) = told(&output, 0);
    assert_eq!(err, "");
    assert_eq!(out.lines().last(), Some("0"), "{out}");
}

#[test]
fn output_without_a_terminal_has_no_colours() {
    let lab = Lab::new();
    for arguments in [vec!["list", "scenarios", "--long"], vec!["doctor"]] {
        let output = lab.pagetide(&arguments).output().unwrap();
        assert!(!output.stdout.contains(&0x1b), "{arguments:?}");
        assert!(!output.stderr.contains(&0x1b), "{arguments:?}");
    }
}

#[test]
fn a_mail_about_results_of_others_says_no_more_than_they_do() {
    let lab = Lab::new();
    lab.import_of_two_variants();
    let (mail, _) = lab.ends(0, ["compare", "r", "--as", "mail", "--exit-zero"]);
    assert!(mail.contains("time") && mail.contains('*'), "{mail}");
    let command = "$ pagetide import csv r.csv --json";
    assert!(mail.trim_end().ends_with(command), "{mail}");
    for unknown in ["Linux", "total:0"] {
        assert!(!mail.contains(unknown), "{mail}");
    }
}

#[test]
fn write_backs_are_counted_where_writes_are_known_and_refused_where_not() {
    let folder = tempfile::tempdir().unwrap();
    let ideal = |words: &[&str]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_pagetide"))
            .arg("ideal")
            .args(words)
            .env("XDG_CACHE_HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .output()
            .unwrap()
    };
    let scenario = ["scan-with-hot-core", "--memory", "2M", "-p", "refs=2400"];
    let with = |more: &[&str]| ideal(&[&scenario[..], more].concat());

    let read = with(&["--write-cost", "0.5", "--json"]);
    let read: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    let written = with(&["--write-cost", "0.5", "--json", "-p", "access=write"]);
    let written: serde_json::Value = serde_json::from_slice(&written.stdout).unwrap();
    for (read, written) in read["lines"]
        .as_array()
        .unwrap()
        .iter()
        .zip(written["lines"].as_array().unwrap())
    {
        // Filling writes all 1,024 pages; reading causes no further write-backs.
        let (few, many) = (
            read["write_backs"].as_u64(),
            written["write_backs"].as_u64(),
        );
        assert!(few >= Some(512) && few <= Some(1024), "{read}");
        assert!(many > few, "{written}");
        let cost = written["faults"].as_f64().unwrap() + 0.5 * many.unwrap() as f64;
        assert_eq!(written["cost"].as_f64(), Some(cost));
    }
    let bound = written["bounds"][0]["cost"].as_f64().unwrap();
    for line in written["lines"].as_array().unwrap() {
        assert!(line["cost"].as_f64().unwrap() >= bound, "{line}");
    }
    let shown = text(&with(&["--write-cost", "2"]).stdout);
    assert!(shown.contains("write-backs") && shown.contains("No policy costs less than"));
    // Without the option, write-backs are not mentioned.
    assert!(!text(&with(&["--json"]).stdout).contains("write_backs"));

    let trace = folder.path().join("trace.txt");
    fs::write(&trace, "1\n2\n1\n").unwrap();
    let trace = trace.to_str().unwrap();
    for (words, told) in [
        (
            vec![trace, "--pages", "1", "--write-cost", "1"],
            "do not say which references write",
        ),
        (
            [&scenario[..], &["--write-cost", "1", "-p", "access=mixed"]].concat(),
            "is not known",
        ),
        (
            [&scenario[..], &["--write-cost", "-1"]].concat(),
            "no cost of a write-back",
        ),
        (
            [&scenario[..], &["--write-cost", "nan"]].concat(),
            "no cost of a write-back",
        ),
    ] {
        let refused = ideal(&words);
        assert!(!refused.status.success(), "{words:?}");
        assert!(text(&refused.stderr).contains(told), "{words:?}");
    }
}

#[test]
#[ignore = "test-all"]
fn a_long_file_of_references_is_answered_in_little_memory_or_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let under_limit = |ids: &mut dyn Iterator<Item = u64>| {
        let path = folder.path().join("long.oracleGeneral.bin");
        let entries = ids.flat_map(|id| {
            let mut entry = [0; 24];
            entry[4..12].copy_from_slice(&id.to_le_bytes());
            entry[12] = 1;
            entry
        });
        fs::write(&path, entries.collect::<Vec<u8>>()).unwrap();
        let limited = "ulimit -v 100000; exec \"$@\"";
        std::process::Command::new("sh")
            .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_pagetide")])
            .arg("ideal")
            .arg(&path)
            .args(["--pages", "1000", "--policy", "lru"])
            .env("XDG_CACHE_HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .output()
            .unwrap()
    };
    // The first input has 144 MB and few pages, at 24 bytes per entry; the second has more pages than 100 MB can
    // number.
    let few = under_limit(&mut (0..6_000_000_u64).map(|time| time * time % 20_011));
    assert!(few.status.success(), "{}", text(&few.stderr));
    assert!(text(&few.stdout).contains("6,000,000 references"));
    let many =
        under_limit(&mut (0..3_000_000_u64).map(|id| id.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    assert!(!many.status.success());
    one_sentence(&text(&many.stderr), &["memory at hand", "--sample"]);
}

#[test]
fn an_atlas_of_nothing_is_a_sentence_and_never_an_empty_picture() {
    let lab = Lab::with_own_cache();
    let (out, _) = lab.ends(0, ["ideal", "atlas"]);
    assert!(out.starts_with("no record has known references"), "{out}");
    // An empty file could not say why it is empty.
    let (out, err) = lab.ends(2, ["ideal", "atlas", "--svg"]);
    assert_eq!(out, "");
    one_sentence(&err, &["no record has known references", "pagetide run"]);
    let (_, err) = lab.ends(4, ["ideal", "atlas", "--scenario", "zipff"]);
    one_sentence(&err, &["zipff", "zipf"]);
}
