//! Tests of output to the terminal: no text controls the terminal, and the program does not panic if it cannot write.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use crate::common::{Lab, text};

/// A name that would clear the screen and set the window's title.
const NASTY: &str = "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m";

/// Runs a shell command in the laboratory's folder; `$P` is the program. Returns status, output and error output.
fn shell(lab: &Lab, line: &str) -> (ExitStatus, String, String) {
    let output = Command::new("bash")
        .args(["-c", line])
        .env("P", crate::common::program())
        .env("PAGETIDE_STORE", lab.store())
        .env("PAGETIDE_CACHE", lab.cache())
        .current_dir(lab.folder())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status, text(&output.stdout), text(&output.stderr))
}

/// Asserts that no character has an effect on a terminal.
fn is_harmless(what: &str, said: &str) {
    let bad: Vec<char> = said
        .chars()
        .filter(|c| *c != '\n' && c.is_control())
        .collect();
    assert!(bad.is_empty(), "{what}: {bad:?} in {said:?}");
}

#[test]
fn a_standard_error_that_cannot_be_written_changes_no_exit_code() {
    let lab = Lab::new();
    fs::write(lab.folder().join("c.toml"), "nmae = 1\n").unwrap();
    fs::write(lab.folder().join("x"), "no kernel").unwrap();
    for (line, code) in [
        ("$P run c.toml", 4),
        ("$P show abcd", 2),
        ("$P comprae", 4),
        ("$P kernel add ./x", 2),
        ("$P run linear --kernel image:/nonexistent", 2),
        ("$P list scenarios", 0),
    ] {
        for to in [
            "2>/dev/full",
            "2>&-",
            "2> >(exec true)",
            "2>/dev/full >/dev/null",
        ] {
            let (status, _, _) = shell(&lab, &format!("{line} {to}"));
            assert_eq!(status.code(), Some(code), "{line} {to}");
        }
    }
}

#[test]
fn progress_that_cannot_be_written_does_not_end_a_command() {
    let lab = Lab::new();
    fs::create_dir(lab.folder().join("tree")).unwrap();
    // Each of these prints progress on standard error before it ends.
    for (line, code) in [
        ("$P kernel add ./tree", 2),
        ("$P plan linear --kernel image:/nonexistent", 2),
        ("$P serve --listen 203.0.113.1:1", 2),
    ] {
        let (full, _, _) = shell(&lab, &format!("{line} 2>/dev/full"));
        assert_eq!(full.code(), Some(code), "{line}");
        assert_eq!(full.signal(), None, "{line}");
    }
}

#[test]
#[ignore = "test-all: the fetch is tried again for some seconds"]
fn progress_of_a_fetch_that_cannot_be_written_does_not_end_a_command() {
    let own = Lab::with_own_cache();
    let (status, _, _) = shell(
        &own,
        "http_proxy=http://127.0.0.1:1 $P kernel add debian:bookworm 2>/dev/full",
    );
    assert_eq!(status.code(), Some(2));
}

#[test]
fn a_standard_output_that_is_full_is_said_and_ends_with_2() {
    let lab = Lab::new();
    for line in [
        "$P list scenarios",
        "$P --help",
        "$P man",
        "$P list records --json",
    ] {
        let (status, _, err) = shell(&lab, &format!("{line} >/dev/full"));
        assert_eq!(status.code(), Some(2), "{line}: {err}");
        assert!(err.contains("No space left"), "{line}: {err}");
        let (status, _, err) = shell(&lab, &format!("{line} > >(exec true); sleep 0.1"));
        assert!(status.success(), "{line}: {err}");
        let (status, _, err) = shell(&lab, &format!("{line} >&-"));
        assert_ne!(status.code(), Some(101), "{line}: {err}");
    }
}

#[test]
fn names_in_errors_cannot_steer_the_terminal() {
    let lab = Lab::new();
    let file = lab.folder().join("c.toml");
    for wrong in [
        format!("name = \"c\"\n\"{}\" = 1\n", toml(NASTY)),
        format!("name = \"{}\"\n", toml(NASTY)),
        format!(
            "name = \"c\"\n[[variant]]\nname = \"v\"\n[[scenario]]\nname = \"{}\"\n",
            toml(NASTY)
        ),
    ] {
        fs::write(&file, wrong).unwrap();
        let (_, err) = lab.ends(4, ["plan", "c.toml"]);
        is_harmless("a campaign file", &err);
        assert!(err.contains("\\e[2J") || err.contains("\\u{1b}"), "{err}");
    }
    for arguments in [
        vec!["run", NASTY],
        vec!["show", NASTY],
        vec!["compare", NASTY, NASTY],
        vec!["run", "linear", "--memory", NASTY],
        vec!["run", "linear", "--kernel", NASTY],
        vec!["kernel", "show", NASTY],
        vec!["import", "csv", NASTY],
        vec![NASTY],
        vec!["run", "linear", "--set", NASTY],
        vec!["run", NASTY, "--frobnicate"],
    ] {
        let output = lab.pagetide(&arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        is_harmless(&format!("{arguments:?}"), &text(&output.stderr));
        is_harmless(&format!("{arguments:?}"), &text(&output.stdout));
    }
}

#[test]
fn names_in_imported_results_cannot_steer_the_terminal() {
    let lab = Lab::new();
    let mut table = String::from("scenario,variant,seed,metric,value\n");
    for seed in 0..8 {
        for (variant, value) in [(NASTY, 100 + seed), ("b", 200 + seed)] {
            let row = format!("{NASTY},\"{variant}\",{seed},{NASTY}time,{value}\n");
            table.push_str(&row);
        }
    }
    fs::write(lab.folder().join("t.csv"), table).unwrap();
    for (arguments, codes) in [
        (vec!["import", "csv", "t.csv"], &[0][..]),
        (vec!["compare", "t"], &[0, 1, 3]),
        (vec!["list", "records"], &[0]),
        (vec!["list", "campaigns"], &[0]),
        (vec!["compare", "t", "--why"], &[0, 2, 3]),
        (vec!["plan", "power", "t"], &[0, 2, 3]),
        (vec!["history", "nothing"], &[2, 4]),
        (vec!["compare", "t", "--as", "mail"], &[0, 1, 3]),
    ] {
        let output = lab.pagetide(&arguments).output().unwrap();
        let said = (text(&output.stdout), text(&output.stderr));
        let code = output.status.code().unwrap();
        assert!(codes.contains(&code), "{arguments:?}: {code} {said:?}");
        is_harmless(&format!("{arguments:?}"), &said.0);
        is_harmless(&format!("{arguments:?}"), &said.1);
    }
}

#[test]
fn variants_of_a_plan_cannot_steer_the_terminal() {
    let lab = Lab::new();
    let name = toml(&NASTY.replace(':', ""));
    fs::write(
        lab.folder().join("c.toml"),
        format!(
            "name = \"c\"\nkernel = \"image:{}\"\n[[variant]]\nname = \"{name}\"\n[[scenario]]\nname = \"linear\"\n",
            toml(NASTY)
        ),
    )
    .unwrap();
    let output = lab.pagetide(["plan", "c.toml"]).output().unwrap();
    is_harmless("plan", &text(&output.stdout));
    is_harmless("plan", &text(&output.stderr));
}

#[test]
fn a_campaign_file_that_is_no_text_is_a_usage_error() {
    let lab = Lab::new();
    fs::write(lab.folder().join("c.toml"), b"name = \"\xff\"\n").unwrap();
    let (_, err) = lab.ends(4, ["run", "c.toml"]);
    crate::common::one_sentence(&err, &["c.toml:1", "UTF-8"]);
}

#[test]
fn an_arena_that_is_not_there_is_refused_by_plan_and_run_alike() {
    let lab = Lab::new();
    for (arena, hint) in [("metal", "exact"), ("kvm", "did you mean `vm`?")] {
        fs::write(
            lab.folder().join("c.toml"),
            format!(
                "name = \"c\"\narena = \"{arena}\"\n[[variant]]\nname = \"v\"\n[[scenario]]\nname = \"linear\"\n"
            ),
        )
        .unwrap();
        for command in ["plan", "run"] {
            let (_, err) = lab.ends(4, [command, "c.toml"]);
            crate::common::one_sentence(&err, &["c.toml:2", arena, hint]);
        }
    }
}

/// Escapes a text for a string in TOML.
fn toml(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() {
                format!("\\u{:04x}", u32::from(c))
            } else {
                c.to_string()
            }
        })
        .collect()
}

#[test]
fn a_value_of_a_parameter_given_twice_is_refused() {
    let lab = Lab::new();
    let (_, err) = lab.ends(
        4,
        [
            "plan",
            "linear",
            "-p",
            "pages=2*memory",
            "-p",
            "pages=2 * memory",
        ],
    );
    crate::common::one_sentence(&err, &["pages", "twice"]);
}
