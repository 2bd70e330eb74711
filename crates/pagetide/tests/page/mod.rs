//! Tests of the web page and the server with Chromium: charts, zoom, downloads, keyboard, dark mode, a width of 400 px,
//! hostile names, and watching, stopping and resuming campaigns. Tests that cannot run print the reason.

mod sample;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::common::{KERNEL, Lab, TINY, is_alive, one_sentence, program, text, wait_until};

/// Path of a browser that scripts can control. `None` if there is none; then the reason is printed.
fn browser() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(find) {
        Ok(chromium) => Some(chromium),
        Err(why) => {
            pagetide_testing::skip(pagetide_testing::Need::Browser, why);
            None
        }
    }
}

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

fn find() -> Result<PathBuf, String> {
    let chromium =
        std::env::var_os("CHROMIUM").map_or_else(|| "/usr/bin/chromium".into(), PathBuf::from);
    if !chromium.exists() {
        return Err(format!(
            "{} is not there; install chromium, or name one with CHROMIUM",
            chromium.display()
        ));
    }
    for tool in ["node", "npm"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return Err(format!("{tool} is not installed"));
        }
    }
    if !web().join("node_modules/playwright-core").exists() {
        let output = Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund"])
            .current_dir(web())
            .output()
            .map_err(|error| format!("npm cannot be run ({error})"))?;
        if !output.status.success() {
            return Err(format!(
                "the packages of web/package-lock.json cannot be had: {}",
                text(&output.stderr)
            ));
        }
    }
    Ok(chromium)
}

/// How many checks a script of `web/test` makes.
#[derive(Clone, Copy)]
enum Checks {
    /// The important ones, in `make test`.
    Few,
    All,
}

/// Runs a script of `web/test`, which prints a line for each of its checks.
fn drive(chromium: &Path, script: &str, checks: Checks, arguments: &[&Path]) {
    let pages = match checks {
        Checks::Few => "few",
        Checks::All => "all",
    };
    let output = Command::new("node")
        .arg(format!("test/{script}"))
        .args(arguments)
        .env("CHROMIUM", chromium)
        .env("PAGETIDE_TEST_PAGES", pages)
        .current_dir(web())
        .output()
        .unwrap();
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    println!("{said}");
    assert!(output.status.success(), "{script}:\n{said}");
    assert!(said.contains("ok   "), "{script} checked nothing:\n{said}");
}

/// Folder of the screenshots of a test, for manual inspection; it is overwritten.
fn shots(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("shots")
        .join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A server process that ends with the test.
struct Serving {
    _child: Ending,
    url: String,
}

impl Serving {
    fn of(store: &Path, lab: &Lab) -> Self {
        let mut child = Command::new(program())
            .args(["serve", "--listen", "127.0.0.1:0", "--store"])
            .arg(store)
            .env("PAGETIDE_CACHE", lab.cache())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let url = url.trim().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self {
            _child: Ending(child),
            url,
        }
    }
}

/// A process that is killed at the end of the test, even if the test fails.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills the process that runs the store's long campaign when the test ends. The server started it, so it is not a
/// child of the test.
struct LastRun(PathBuf);

impl Drop for LastRun {
    fn drop(&mut self) {
        let state = fs::read_to_string(self.0.join("runs/long.json")).unwrap_or_default();
        let state: serde_json::Value = serde_json::from_str(&state).unwrap_or_default();
        let Some(process) = state["process"].as_i64() else {
            return;
        };
        let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let pid = i32::try_from(process)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid
            && text(&words).contains("refs=500000000")
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Runs the program with another store than the laboratory's. Returns standard output and standard error.
fn with_store(lab: &Lab, store: &Path, words: &[&str]) -> (String, String) {
    let store = store.to_str().unwrap();
    lab.ends(0, [words, &["--store", store]].concat())
}

#[test]
fn the_page_is_drawn_zoomed_and_saved_in_a_browser() {
    page_does_what_it_says(Checks::Few);
}

#[test]
#[ignore = "test-all"]
fn the_page_does_in_a_browser_all_that_it_says() {
    page_does_what_it_says(Checks::All);
}

fn page_does_what_it_says(checks: Checks) {
    let Some(chromium) = browser() else { return };
    let lab = Lab::new();
    let dir = lab.folder();
    sample::fill(dir);
    let (out, err) = with_store(&lab, &dir.join("store"), &["report", "6.1.0", "6.12.0"]);
    assert!(
        out.starts_with("report.html: 6.12.0 against 6.1.0, "),
        "{out}"
    );
    assert_eq!(err, "");
    sample::fill_hostile(dir);
    let words = ["report", "6.1.0", "6.12.0", "-o", "hostile.html"];
    with_store(&lab, &dir.join("hostile"), &words);
    sample::fill_dead(dir);
    let words = ["report", "6.1.0", "6.12.0", "-o", "dead.html"];
    with_store(&lab, &dir.join("dead"), &words);
    drive(chromium, "page.mjs", checks, &[dir, &shots("page")]);
}

#[test]
fn the_server_shows_the_store_in_a_browser_and_asks_nobody_else() {
    server_shows_the_store(Checks::Few);
}

#[test]
#[ignore = "test-all"]
fn every_page_of_the_server_fits_and_is_reached_with_the_keyboard() {
    server_shows_the_store(Checks::All);
}

fn server_shows_the_store(checks: Checks) {
    let Some(chromium) = browser() else { return };
    let lab = Lab::new();
    let dir = lab.folder();
    sample::fill(dir);
    sample::fill_history(dir);
    sample::fill_campaign(dir);
    sample::fill_hostile(dir);
    let (store, hostile) = (dir.join("store"), dir.join("hostile"));
    let (good, bad) = (Serving::of(&store, &lab), Serving::of(&hostile, &lab));
    let urls = [Path::new(&good.url), Path::new(&bad.url)];
    drive(
        chromium,
        "serve.mjs",
        checks,
        &[urls[0], urls[1], &shots("serve")],
    );
}

/// Arguments of a campaign of two variants that takes minutes, so that it is certainly running.
fn long() -> Vec<&'static str> {
    let mut words = vec![
        "run",
        "random",
        "--kernel",
        KERNEL,
        "--memory",
        "24M",
        "--swap-size",
        "64M",
    ];
    words.extend(["-p", "pages=40M", "-p", "refs=500000000", "--seeds", "1"]);
    words.extend(["--name", "long", "--jobs", "1"]);
    words
}

#[test]
fn a_running_campaign_is_watched_stopped_and_resumed_from_a_browser() {
    let Some(chromium) = browser() else { return };
    let Some(lab) = Lab::that_runs() else { return };
    let mut run = Ending(lab.start(long()));
    wait_until("the first trial", Duration::from_mins(10), || {
        !lab.incoming().is_empty()
    });
    let _last = LastRun(lab.store());
    let serving = Serving::of(&lab.store(), &lab);
    let url = Path::new(&serving.url);
    drive(chromium, "live.mjs", Checks::All, &[url, &shots("live")]);
    // The first run was stopped as with Ctrl-C; the run that resumed it was stopped as well.
    let status = run.0.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    let state = fs::read_to_string(lab.store().join("runs/long.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["end"], "stopped");
    let second = u32::try_from(state["process"].as_u64().unwrap()).unwrap();
    assert_ne!(second, run.0.id(), "it went on in another process");
    wait_until("its end", Duration::from_secs(20), || !is_alive(second));
    assert_eq!(lab.incoming(), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "test-all"]
fn a_report_of_real_trials_is_small_and_drawn() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = [
        &["run", "smooth-sin-random", "--kernel", KERNEL][..],
        &TINY,
        &["--seeds", "2", "--references"],
        &["--set", "lru_gen/enabled=0"],
        &[
            "--vs",
            "lru_gen/enabled=7",
            "--name",
            "small",
            "--exit-zero",
        ],
    ];
    lab.ends(0, words.concat());
    lab.ends(0, ["report", "small", "-o", "small.html"]);
    let page = fs::read_to_string(lab.folder().join("small.html")).unwrap();
    // Four timed trials with 5,000 references each, four observed ones and two profiled ones. A quick campaign has 66
    // trials in three cells, and its page has about 1.5 MiB.
    println!("{} bytes", page.len());
    assert!(page.len() < 640 << 10, "{} bytes", page.len());
    // Every command that the page suggests exists.
    let known = ["compare", "report", "show", "run"];
    for (_, rest) in page
        .match_indices("<code>pagetide ")
        .map(|(at, m)| page.split_at(at + m.len()))
    {
        let command = rest.split([' ', '<']).next().unwrap();
        assert!(known.contains(&command), "pagetide {command}");
        lab.ends(0, [command, "--help"]);
    }
    // The page of a single record, and of a campaign with one variant.
    let (json, _) = lab.ends(0, ["list", "records", "--json"]);
    let records: serde_json::Value = serde_json::from_str(&json).unwrap();
    let id = records[0]["id"].as_str().unwrap();
    lab.ends(0, ["report", id, "-o", "record.html"]);
    // The series named in the help of `show` exists in such a record.
    let (help, _) = lab.ends(0, ["show", "--help"]);
    let series = help.rsplit("--series ").next().unwrap();
    let series = series.split_whitespace().next().unwrap();
    lab.ends(0, ["show", id, "--series", series]);
    let Some(chromium) = browser() else { return };
    drive(
        chromium,
        "real.mjs",
        Checks::All,
        &[lab.folder(), &shots("real")],
    );
}

#[test]
fn a_report_replaces_a_file_only_with_force() {
    let lab = Lab::new();
    let dir = lab.folder();
    sample::fill_dead(dir);
    let store = dir.join("dead");
    let store = store.to_str().unwrap();
    let words = ["report", "6.1.0", "6.12.0", "--store", store];
    fs::write(dir.join("report.html"), "mine").unwrap();
    let (_, err) = lab.ends(4, words);
    one_sentence(&err, &["report.html", "-o", "--force"]);
    assert_eq!(fs::read_to_string(dir.join("report.html")).unwrap(), "mine");
    lab.ends(0, [&words[..], &["--force"]].concat());
    assert!(
        fs::read_to_string(dir.join("report.html"))
            .unwrap()
            .starts_with("<!doctype html>")
    );
    let (page, _) = lab.ends(0, [&words[..], &["-o", "-"]].concat());
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let (_, err) = lab.ends(2, [&words[..], &["-o", "no/such/folder.html"]].concat());
    one_sentence(&err, &["no/such/folder.html"]);
    let (_, err) = lab.ends(2, ["report", "nothing", "--store", store]);
    one_sentence(&err, &["nothing"]);
    let left: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "part"))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "nothing half written");
}

#[test]
fn serve_refuses_what_it_cannot_listen_on_in_a_sentence() {
    let lab = Lab::new();
    let (_, err) = lab.ends(2, ["serve", "--listen", "192.0.2.1:1"]);
    one_sentence(&err, &["192.0.2.1:1", "--listen"]);
    let (_, err) = lab.ends(4, ["serve", "--listen", "nowhere"]);
    assert!(err.contains("127.0.0.1:9000"), "{err}");
}
