//! Tests that external input which is endless, unusual or wrong leads to one clear sentence and does no harm.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::common::{Lab, one_sentence, text, told};

/// A table of two variants; every value of the second variant is `value`.
fn table(value: &str) -> String {
    let mut table = "scenario,variant,metric,value,seed,unit\n".to_owned();
    for seed in 1..=6 {
        let _ = writeln!(
            table,
            "build,old,time,1{seed},{seed},s\nbuild,new,time,{value},{seed},s"
        );
    }
    table
}

#[test]
fn an_endless_patch_is_read_to_its_limit_and_one_may_come_through_a_pipe() {
    let lab = Lab::new();
    let plan = |patch: &'static str| ["plan", "hot-cold", "--each", "--patch", patch];
    let (_, err) = lab.ends(4, plan("/dev/zero"));
    one_sentence(&err, &["/dev/zero", "32 MiB", "those of a change"]);
    for patch in ["-", "/dev/stdin"] {
        let output = lab.pagetide(plan(patch)).write_stdin("hello\n").output();
        let (_, err) = told(&output.unwrap(), 4);
        one_sentence(&err, &[patch, "holds no patch"]);
    }
}

#[test]
fn a_store_and_a_table_may_have_names_that_are_no_text_and_a_cache_is_refused() {
    let lab = Lab::new();
    let (store, file) = (
        OsStr::from_bytes(b"st\xffre"),
        OsStr::from_bytes(b"t\xfe.csv"),
    );
    fs::write(lab.folder().join(file), table("12")).unwrap();
    let own = |words: &[&str]| -> Vec<OsString> {
        let words = words.iter().map(OsString::from);
        let places = ["--store".into(), store.to_owned()];
        places.into_iter().chain(words).collect()
    };
    let mut import = own(&["import", "csv"]);
    import.push(file.to_owned());
    lab.ends(0, import);
    let (out, _) = lab.ends(0, own(&["store", "verify"]));
    assert!(out.contains("12 records are whole"), "{out}");
    lab.ends(0, own(&["store", "rebuild"]));
    let note = fs::read_to_string(lab.folder().join(store).join("campaigns/t.json")).unwrap();
    // The printed command can be typed again by the user.
    assert!(
        note.contains(r"--store $'st\\xffre' import csv $'t\\xfe.csv'"),
        "{note}"
    );
    let cache = [
        OsStr::new("--cache"),
        store,
        OsStr::new("kernel"),
        OsStr::new("list"),
    ];
    let (_, err) = lab.ends(4, cache);
    one_sentence(&err, &["no UTF-8", "PAGETIDE_CACHE"]);
}

#[test]
fn a_value_beyond_all_is_refused_with_its_line_and_the_store_stays_whole() {
    let lab = Lab::new();
    fs::write(lab.folder().join("t.csv"), table("1e308")).unwrap();
    let (_, err) = lab.ends(2, ["import", "csv", "t.csv"]);
    one_sentence(&err, &["t.csv line 3", "1e308", "12.5"]);
    lab.ends(0, ["store", "verify"]);
    let (out, _) = lab.ends(0, ["list", "records"]);
    assert!(!out.contains("build"), "{out}");
}

#[test]
fn what_a_message_quotes_is_cut() {
    let lab = Lab::new();
    let long = "x".repeat(100_000);
    let parameter = format!("{long}=1");
    let unknown = format!("name = \"c\"\n{long} = 1\n");
    fs::write(lab.folder().join("c.toml"), unknown).unwrap();
    for arguments in [
        vec![&*long],
        vec!["run", &long],
        vec!["run", "linear", "--memory", &long],
        vec!["run", "linear", "--kernel", &long],
        vec!["run", "linear", "-p", &parameter],
        vec!["compare", &long],
        vec!["compare", &long, &long],
        vec!["show", &long],
        vec!["history", &long],
        vec!["import", "csv", &long],
        vec!["plan", "c.toml"],
        vec!["store", "remove", &long],
    ] {
        let output = lab.pagetide(&arguments).output().unwrap();
        let err = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 4)), "{err:.2000}");
        assert!(err.contains("xxx") && err.contains("[…]"), "{err:.2000}");
        assert!(err.len() < 5_000, "{} bytes: {err:.2000}", err.len());
    }
}
