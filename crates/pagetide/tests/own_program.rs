//! Tests of unmodified programs of this machine in the exact arena.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::common::{KERNEL, Lab, metric, one_sentence};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Arguments of `run` with these options, one seed, and this command.
fn program<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["run", "--kernel", KERNEL, "--seeds", "1"];
    all.extend(options);
    all.push("--");
    all.extend(command);
    all
}

/// Busy processes, one for each processor, which live as long as this value.
struct Load(Vec<Child>);

impl Load {
    fn new() -> Self {
        let spin = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        let processors = std::thread::available_parallelism().unwrap().get();
        Self((0..processors).map(|_| spin()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
#[ignore = "test-all"]
fn sort_of_more_than_memory_gives_the_same_record_alone_and_beside_load() {
    let Some(lab) = Lab::that_runs() else { return };
    // The numbers are all integers below a prime, each once, in the order of a multiplicative generator.
    let prime = 200_003_u64;
    let mut text = String::new();
    for number in 1..prime {
        writeln!(text, "{:012}", number * 7919 % prime).unwrap();
    }
    fs::write(lab.folder().join("numbers"), text).unwrap();
    let run = |more: &[&'static str]| {
        let mut options = vec!["--memory", "10M", "--file", "numbers"];
        options.extend(more);
        lab.ends(0, program(&options, &["sort", "numbers"]));
        lab.newest(1).remove(0)
    };
    let alone = run(&[]);
    let load = Load::new();
    let beside = run(&["--fresh"]);
    drop(load);
    assert_eq!(alone["digest"], beside["digest"]);
    assert_ne!(
        alone["wall"]["started"], beside["wall"]["started"],
        "it ran twice"
    );

    let output = alone["results"]["texts"]["stdout"].as_str().unwrap();
    assert!(output.starts_with("000000000001\n000000000002\n"));
    assert!(output.ends_with("000000200001\n000000200002\n"));
    assert!(output.contains("bytes left out"));
    // More was moved than fits in memory, and the input file was read from the disk.
    assert!(metric(&alone, "swapped-out") > 100.0 || metric(&alone, "refaults") > 100.0);
    assert!(metric(&alone, "read") > 2.5e6, "{}", metric(&alone, "read"));
    assert!(metric(&alone, "elapsed") > 1e8);
    // The record is used again for the same program, but not for a different program.
    let started = beside["wall"]["started"].clone();
    assert_eq!(run(&[])["wall"]["started"], started, "it is not run again");
    lab.ends(
        0,
        program(
            &["--memory", "10M", "--file", "numbers"],
            &["sort", "-r", "numbers"],
        ),
    );
    assert_ne!(lab.newest(1).remove(0)["wall"]["started"], started);
}

/// Runs a shell command in a small machine without swap; returns the record.
fn shell(lab: &Lab, code: i32, options: &[&str], line: &str) -> serde_json::Value {
    let mut all = vec!["--memory", "24M", "--swap", "none"];
    all.extend(options);
    lab.ends(code, program(&all, &["sh", "-c", line]));
    lab.newest(1).remove(0)
}

fn why(record: &serde_json::Value) -> String {
    record["results"]["invalid"].to_string()
}

#[test]
fn a_program_sees_its_own_files_its_seed_and_nothing_of_this_machine() {
    let Some(lab) = Lab::that_runs() else { return };
    let line = r#"printf "\033[31mseed {seed}\n"; pwd; export -p; echo /*; echo > /work/x && echo written; echo > /x || true;
                  while read name value; do case $name in Sig[BI]*) echo "$name $value";; esac; done < /proc/self/status;
                  read a < /dev/urandom; [ -n "$a" ] && echo random; echo "rate 12.5 per second""#;
    let metric_option = "rate=rate ([0-9.]+):higher";
    let record = shell(
        &lab,
        0,
        &["--metric", metric_option, "--env", "A=b c"],
        line,
    );
    let out = record["results"]["texts"]["stdout"].as_str().unwrap();
    for word in ["seed 1\n", "/work\n", "A='b c'", "written\n", "random\n"] {
        assert!(out.contains(word), "{word} is not in {out}");
    }
    // Programs start with the signal masks that a shell gives them.
    for word in ["SigBlk", "SigIgn"] {
        let line = format!("{word}: 0000000000000000\n");
        assert!(out.contains(&line), "{line:?} is not in {out}");
    }
    let secret = std::env::var("PAGETIDE_TEST_CACHE").unwrap_or_else(|_| "CARGO".to_owned());
    assert!(!out.contains(&secret), "{out}");
    assert!(out.contains("/bin /dev /etc"), "{out}");
    assert!(!out.contains("/root") && !out.contains("/home"), "{out}");
    let errors = record["results"]["texts"]["stderr"].as_str().unwrap();
    assert!(
        errors.contains("Permission denied"),
        "it is no root: {errors}"
    );
    assert!((metric(&record, "rate") - 12.5).abs() < 1e-9);
    let id = json(&lab.ends(0, ["list", "records", "--json"]).0)[0]["id"].clone();
    let shown = lab.ends(0, ["show", id.as_str().unwrap()]).0;
    assert!(
        shown.contains("seed 1") && !shown.contains('\u{1b}'),
        "{shown}"
    );
}

#[test]
#[ignore = "test-all"]
fn a_program_that_does_not_end_as_it_should_makes_the_trial_invalid_for_one_clear_reason() {
    let Some(lab) = Lab::that_runs() else { return };
    let said = why(&shell(
        &lab,
        3,
        &[],
        "echo first >&2; echo the reason >&2; exit 3",
    ));
    assert!(
        said.contains("status 3") && said.contains("the reason"),
        "{said}"
    );
    shell(&lab, 0, &["--expect-exit", "3"], "exit 3");
    let said = why(&shell(&lab, 3, &[], "kill -SEGV $$"));
    assert!(said.contains("SIGSEGV"), "{said}");
    let record = shell(
        &lab,
        3,
        &["--time-limit", "2s"],
        "while :; do echo flood; done",
    );
    let said = why(&record);
    assert!(
        said.contains("time limit of 2") && !said.contains("status"),
        "{said}"
    );
    let kept = record["results"]["texts"]["stdout"].as_str().unwrap();
    assert!(kept.contains("bytes left out") && kept.len() < 70 << 10);
    let said = why(&shell(&lab, 3, &[], "read -r a </dev/sda"));
    assert!(said.contains("no devices but null"), "{said}");
    let said = why(&shell(
        &lab,
        3,
        &[],
        "echo 'example.org: Temporary failure in name resolution' >&2; exit 1",
    ));
    assert!(said.contains("no network but loopback"), "{said}");
    let said = why(&shell(&lab, 3, &[], "(while :; do :; done) & exit 0"));
    assert!(said.contains("in the foreground"), "{said}");
    let hog = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done";
    let record = shell(&lab, 3, &[], hog);
    let invalid = record["results"]["invalid"].as_array().unwrap();
    assert_eq!(invalid.len(), 1, "{invalid:?}");
    assert_eq!(invalid[0]["kind"], "out-of-memory", "{invalid:?}");
    let record = shell(&lab, 3, &["--limit", "8M"], hog);
    let invalid = record["results"]["invalid"].as_array().unwrap();
    assert_eq!(invalid.len(), 1, "{invalid:?}");
    assert_eq!(invalid[0]["kind"], "out-of-limit", "{invalid:?}");
    let record = shell(&lab, 0, &["--limit", "8M"], "echo small");
    let peak = metric(&record, "group-peak");
    assert!((1e5..=8.0 * 1048576.0).contains(&peak), "{peak}");
}

#[test]
#[ignore = "test-all"]
fn a_script_alone_brings_its_interpreter_and_what_it_loads() {
    let Some(lab) = Lab::that_runs() else { return };
    let folder = lab.folder();
    fs::write(folder.join("beside.py"), "NUMBER = 40\n").unwrap();
    let own = "#!/usr/bin/env python3\nimport beside, json, sqlite3\n\
               print(json.dumps({'sum': beside.NUMBER + sqlite3.connect(':memory:').execute('select 2').fetchone()[0]}))\n";
    fs::write(folder.join("job.py"), own).unwrap();
    fs::set_permissions(folder.join("job.py"), fs::Permissions::from_mode(0o755)).unwrap();
    let perl = "use strict; use List::Util qw(sum); use POSIX; print '{\"sum\": ', sum(40, floor(2.5)), \"}\\n\";";
    fs::write(folder.join("job.pl"), perl).unwrap();
    let is_here = |name: &str| Command::new(name).arg("--version").output().is_ok();
    // `python3` may be a program or a wrapper that selects one.
    for (name, command) in [
        ("python3", &["python3", "job.py"][..]),
        ("python3", &["./job.py"]),
        ("perl", &["env", "A=b", "perl", "job.pl"]),
    ] {
        if is_here(name) {
            lab.ends(0, program(&["--memory", "64M", "--swap", "none"], command));
            let record = lab.newest(1).remove(0);
            let out = record["results"]["texts"]["stdout"].as_str().unwrap();
            assert_eq!(out, "{\"sum\": 42}\n", "{command:?}");
        }
    }
    let line = ["sh", "-c", "no-such-program < job.pl | sort"];
    let (_, err) = lab.ends(3, program(&["--memory", "64M", "--swap", "none"], &line));
    let before = err.split("trials to run").next().unwrap();
    assert!(
        before.contains("`sort`") && before.contains("--file"),
        "{err}"
    );
    assert!(before.contains("`no-such-program`"), "{err}");
}

#[test]
fn what_cannot_be_run_is_refused_before_a_guest_is_booted() {
    let lab = Lab::new();
    fs::write(lab.folder().join("text"), "no program\n").unwrap();
    let refused = |arguments: &[&str], words: &[&str]| {
        let (_, err) = lab.ends(4, program(&[], arguments));
        one_sentence(&err, words);
    };
    refused(&["no-such-program"], &["no-such-program", "PATH"]);
    refused(&["./absent"], &["absent"]);
    refused(&["./text"], &["text"]);
    refused(&["/"], &["ELF"]);
    let (_, err) = lab.ends(4, program(&["--file", "../x"], &["sh"]));
    one_sentence(&err, &["x"]);
    let (_, err) = lab.ends(4, program(&["--dir", "text"], &["sh"]));
    one_sentence(&err, &["--file"]);
    let server = |options: &[&str], words: &[&str]| {
        let (_, err) = lab.ends(4, program(options, &["sh"]));
        one_sentence(&err, words);
    };
    server(
        &["--server", "no-such-server", "--ready", "port 1"],
        &["no-such-server"],
    );
    server(&["--server", "sh", "--ready", "port 0"], &["no port"]);
    server(
        &["--server", "sh", "--ready", "80"],
        &["port N", "file PATH"],
    );
    server(&["--server", "sh", "--ready", "line ("], &["expression"]);
    let (_, err) = lab.ends(4, program(&["--server", "sh"], &["sh"]));
    assert!(err.contains("--ready"), "{err}");
    let (_, err) = lab.ends(4, ["run", "--file", "text", "linear"]);
    assert!(err.contains("COMMAND"), "{err}");
    let (_, err) = lab.ends(4, ["run", "linear", "--", "sh"]);
    one_sentence(&err, &["linear"]);
}

/// A Perl server on port 7777; its argument selects its behaviour. It needs only Perl's core, which every Debian system
/// has.
const SERVER: &str = r#"
$| = 1;
my ($how, $port) = ($ARGV[0], 7777);
if ($how eq "dies") { print STDERR "no such database\n"; exit 3 }
if ($how eq "sleeps") { print "asleep\n"; sleep 1000 }
if ($how eq "background") { exit 0 if fork; sleep 1000 }
socket(S, 2, 1, 6) && bind(S, pack("Sna4x8", 2, $port, "\x7f\0\0\1")) && listen(S, 5) or die "cannot listen: $!";
open(F, ">", "is-ready") or die; close(F);
print "first line\nready on $port\n";
while (accept(C, S)) {
    if ($how eq "crashes") { kill 9, $$ }
    if ($how eq "ends") { syscall 231, 5 }
    if ($how eq "grows") { $x .= "x" x 1048576 for 1 .. 200 }
    if (fork) { close(C); if ($how eq "once") { wait; exit 0 } next }
    select(C); $| = 1;
    while (<C>) { print "echo $_" }
    exit 0;
}
"#;

/// The load for the server: sends lines and prints the number of answers. It succeeds even if the server is gone.
const LOAD: &str = r#"
$| = 1;
$SIG{PIPE} = "IGNORE";
socket(S, 2, 1, 6) && connect(S, pack("Sna4x8", 2, 7777, "\x7f\0\0\1")) or die "cannot connect: $!";
select(S); $| = 1; select(STDOUT);
for (1 .. 200) { print S "line $_\n"; my $answer = <S>; $n++ if $answer eq "echo line $_\n" }
print "answers $n\n";
"#;

/// Runs the load against a server with the behaviour `how`; returns the record.
fn served(lab: &Lab, code: i32, how: &str, ready: &str, more: &[&str]) -> serde_json::Value {
    fs::write(lab.folder().join("server.pl"), SERVER).unwrap();
    fs::write(lab.folder().join("load.pl"), LOAD).unwrap();
    let server = format!("perl server.pl {how}");
    let mut options = vec!["--memory", "24M", "--swap", "none", "--file", "server.pl"];
    options.extend(["--file", "load.pl", "--server", &server, "--ready", ready]);
    options.extend(more);
    lab.ends(code, program(&options, &["perl", "load.pl"]));
    lab.newest(1).remove(0)
}

#[test]
fn a_server_is_ready_by_its_port_and_the_load_is_the_result() {
    let Some(lab) = Lab::that_runs() else { return };
    by_port(&lab);
}

/// Runs the server, which is ready by its port, and checks the result of its load.
fn by_port(lab: &Lab) -> serde_json::Value {
    let answers = ["--metric", "answers=answers ([0-9]+):higher"];
    let record = served(lab, 0, "serves", "port 7777", &answers);
    assert!((metric(&record, "answers") - 200.0).abs() < 1e-9);
    let texts = &record["results"]["texts"];
    assert_eq!(texts["stdout"], "answers 200\n");
    assert_eq!(texts["server-stdout"], "first line\nready on 7777\n");
    record
}

#[test]
#[ignore = "test-all"]
fn a_server_is_ready_by_port_line_or_file_and_the_load_is_the_result_alone_and_beside_load() {
    let Some(lab) = Lab::that_runs() else { return };
    let by = |ready, more: &[&str]| served(&lab, 0, "serves", ready, more);
    let alone = by_port(&lab);
    let load = Load::new();
    let again = ["--metric", "answers=answers ([0-9]+):higher", "--fresh"];
    let beside = by("port 7777", &again);
    drop(load);
    assert_eq!(alone["digest"], beside["digest"]);
    assert_ne!(alone["wall"]["started"], beside["wall"]["started"]);
    // A server that exits successfully when its load ends has served it.
    let once = served(&lab, 0, "once", "port 7777", &[]);
    assert_eq!(once["results"]["texts"]["stdout"], "answers 200\n");

    for ready in [
        "line ^ready on [0-9]+$",
        "file is-ready",
        "file /work/is-ready",
    ] {
        let record = by(ready, &[]);
        assert_eq!(
            record["results"]["texts"]["stdout"], "answers 200\n",
            "{ready}"
        );
        // The start of the server is not part of the elapsed time.
        let (elapsed, whole) = (metric(&record, "elapsed"), &record["results"]["elapsed"]);
        assert!(
            elapsed < 0.9 * whole.as_f64().unwrap(),
            "{elapsed} of {whole}"
        );
    }
}

#[test]
#[ignore = "test-all"]
fn a_server_that_does_not_serve_makes_the_trial_invalid_for_one_clear_reason() {
    let Some(lab) = Lab::that_runs() else { return };
    let fails = |how: &str, ready: &str, more: &[&str], words: &[&str]| {
        let record = served(&lab, 3, how, ready, more);
        let invalid = record["results"]["invalid"].as_array().unwrap();
        assert_eq!(invalid.len(), 1, "{how}: {invalid:?}");
        let said = invalid[0].to_string();
        for word in words {
            assert!(said.contains(word), "{how}: `{word}` is not in {said}");
        }
    };
    let port = "port 7777";
    fails(
        "dies",
        port,
        &[],
        &["status 3", "before it was ready", "no such database"],
    );
    fails("crashes", port, &[], &["SIGKILL", "while the load ran"]);
    fails("ends", port, &[], &["status 5", "while the load ran"]);
    fails("background", port, &[], &["foreground", "--no-daemon"]);
    let soon = ["--time-limit", "3s"];
    fails("sleeps", port, &soon, &["not ready", "3 s", "asleep"]);
    fails("serves", "port 7778", &soon, &["port 7778", "--ready"]);
    // The server is in the same memory group as its load.
    fails("grows", port, &["--limit", "10M"], &["out-of-limit"]);
}
