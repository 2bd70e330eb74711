//! Makes the same changes to the machine as a trial on the running kernel. Tests kill this program at random moments.
//!
//! `host_trial --state DIR [--folder DIR] [--swap loop|zram|none] [--limit SIZE] [--size SIZE] [--set NAME=VALUE]…
//! [--trials N] [--trace] [--sweep]`. Each trial makes a memory group, a swap area, settings, a folder and, with
//! `--trace`, two tracing instances. Then it runs a workload of this size (by default 1.5 times the limit) in the
//! group, and undoes everything. `--sweep` only undoes what earlier runs left. `host_trial --workload BYTES SECONDS` is
//! the workload.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use pagetide_host::swap_device::SwapOn;
use pagetide_host::{
    Change, Conditions, Group, Hierarchy, Limits, Session, StateFolder, SwapDevice, guardian,
    setting, sweep,
};
use pagetide_probe::trace::Tracefs;
use pagetide_quantity::Bytes;

fn main() -> ExitCode {
    if guardian::serve_if_asked() {
        return ExitCode::SUCCESS;
    }
    match go() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    state: StateFolder,
    folder: PathBuf,
    swap: String,
    limit: Bytes,
    size: Option<Bytes>,
    settings: BTreeMap<String, String>,
    trials: u32,
    trace: bool,
}

fn go() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut options = Options {
        state: StateFolder::of_user(),
        folder: std::env::temp_dir(),
        swap: "loop".to_owned(),
        limit: Bytes::from_mib(16),
        size: None,
        settings: BTreeMap::new(),
        trials: 1,
        trace: false,
    };
    let mut is_sweep = false;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("an option lacks its value");
        match argument.as_str() {
            "--workload" => return work(value()?.parse()?, value()?.parse()?),
            "--state" => options.state = StateFolder::at(value()?),
            "--folder" => options.folder = value()?.into(),
            "--swap" => options.swap = value()?,
            "--size" => options.size = Some(value()?.parse()?),
            "--limit" => options.limit = value()?.parse()?,
            "--trials" => options.trials = value()?.parse()?,
            "--trace" => options.trace = true,
            "--sweep" => is_sweep = true,
            "--set" => {
                let text = value()?;
                let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
                options.settings.insert(name.to_owned(), value.to_owned());
            }
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    if is_sweep {
        return told(&sweep(&options.state)?);
    }
    let (session, swept) = Session::start(&options.state)?;
    told(&swept)?;
    let hierarchy = Hierarchy::find()?;
    say(&format!("hierarchy {}", hierarchy.name()));
    let mut left = Vec::new();
    for number in 0..options.trials {
        say(&format!("guardian {}", session.guarded()?));
        trial(&options, &session, &hierarchy, &mut left)?;
        say(&format!("trial {number}"));
    }
    left.extend(session.end());
    for left in left {
        say(&format!("left {left}"));
    }
    Ok(())
}

fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn told(swept: &pagetide_host::Swept) -> Result<(), Box<dyn Error>> {
    for change in &swept.undone {
        say(&format!("undone {change}"));
    }
    for left in &swept.left {
        say(&format!("left {left}"));
    }
    match swept.untouched.first() {
        Some((path, why)) => Err(format!("{}: {why}", path.display()).into()),
        None => Ok(()),
    }
}

fn trial(
    options: &Options,
    session: &Session,
    hierarchy: &Hierarchy,
    left: &mut Vec<pagetide_host::Left>,
) -> Result<(), Box<dyn Error>> {
    let journal = session.journal();
    let size = Bytes(options.limit.0 * 4);
    let swap = match options.swap.as_str() {
        "none" => None,
        "zram" => {
            let compressor = "lz4".to_owned();
            let on = SwapOn::Zram { compressor };
            Some(SwapDevice::switch_on(journal, &on, size)?)
        }
        _ => {
            let folder = options.folder.clone();
            let on = SwapOn::Loop { folder };
            Some(SwapDevice::switch_on(journal, &on, size)?)
        }
    };
    let settings = setting::apply(journal, &options.settings)?;
    for refused in &settings.refused {
        say(&format!("refused {refused}"));
    }
    let work = options.folder.join(format!("work-{}", std::process::id()));
    let change = Change::Folder { path: work.clone() };
    let (folder, ()) = journal.make(change, || {
        std::fs::create_dir(&work).map_err(|source| pagetide_host::HostError::Io {
            what: "making",
            on: work.display().to_string(),
            source,
        })
    })?;
    std::fs::write(work.join("file"), vec![1; 1 << 16])?;
    let trace = options.trace.then(|| instance(journal)).transpose()?;
    let limits = Limits {
        swap_max: (options.swap == "none").then_some(Bytes(0)),
        ..Limits::of(options.limit)
    };
    let group = Group::make(journal, hierarchy, &limits)?;
    let mut conditions = Conditions::before(&group);
    let mut doors = group.doors()?;
    let workload = options.size.map_or(options.limit.0 * 3 / 2, |size| size.0);
    let workload = workload.to_string();
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["--workload", &workload, "0.4"])
        .stdin(Stdio::null());
    // SAFETY: only writes to open descriptors between fork and exec.
    unsafe {
        command.pre_exec(move || {
            for door in &mut doors {
                door.write_all(b"0")?;
            }
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    say("running");
    let mut gone = None;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        gone = gone.or(conditions.sample(&group, swap.as_ref()));
        std::thread::sleep(Conditions::INTERVAL);
    };
    say(&format!("status {status}"));
    if let Some(usage) = group.usage() {
        say(&format!(
            "hits {} kills {}",
            usage.limit_hits, usage.oom_kills
        ));
    }
    say(&format!("members {}", group.members().len()));
    for doubt in conditions.after(&group) {
        let word = if doubt.is_invalid() {
            "invalid"
        } else {
            "doubt"
        };
        say(&format!("{word} {doubt}"));
    }
    left.extend(group.remove());
    left.extend(journal.undo(&[folder]));
    left.extend(
        trace
            .map(|trace| journal.undo(&[trace]))
            .unwrap_or_default(),
    );
    left.extend(settings.restore());
    left.extend(swap.map(SwapDevice::switch_off).unwrap_or_default());
    Ok(())
}

/// Makes two tracing instances, each with an event switched on, as an observed trial does.
fn instance(
    journal: &pagetide_host::Journal,
) -> Result<pagetide_host::journal::Entry, Box<dyn Error>> {
    let tracefs = Tracefs::open()?;
    let name = format!("pagetide-trial-{}-", std::process::id());
    let folder = tracefs.root().join("instances");
    let paths = ["0", "1"].map(|number| folder.join(format!("{name}{number}")));
    let entry = journal.record(Change::TraceInstance { name })?;
    for path in paths {
        std::fs::create_dir(&path)?;
        let event = "events/vmscan/mm_vmscan_direct_reclaim_begin/enable";
        std::fs::write(path.join(event), "1")?;
    }
    Ok(entry)
}

/// Writes to `bytes` of memory for `seconds`; a child process writes to a quarter as much of its own. Leaves the child
/// and a daemon running.
fn work(bytes: u64, seconds: f64) -> Result<(), Box<dyn Error>> {
    // SAFETY: this process has one thread.
    if unsafe { libc::fork() } == 0 {
        // A child with a session of its own, whose parent ends.
        // SAFETY: no arguments.
        unsafe { libc::setsid() };
        std::thread::sleep(Duration::from_secs(1000));
        return Ok(());
    }
    // SAFETY: this process has one thread.
    let is_child = unsafe { libc::fork() } == 0;
    let size = usize::try_from(if is_child { bytes / 4 } else { bytes })?;
    let mut memory = vec![0_u8; size];
    let began = Instant::now();
    let mut round = 0_u8;
    while began.elapsed().as_secs_f64() < seconds {
        round = round.wrapping_add(1);
        for page in memory.iter_mut().step_by(4096) {
            *page = page.wrapping_add(round);
        }
    }
    if is_child {
        // This process outlives its parent.
        std::thread::sleep(Duration::from_secs(1000));
    }
    Ok(())
}
