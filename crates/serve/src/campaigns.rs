//! Campaigns: progress, time left, stopping and resuming.

use std::os::unix::process::CommandExt;
use std::path::Path as FilePath;
use std::process::{Command, Stdio};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use pagetide_compare::show_campaign;
use pagetide_outside::FileOrigin;
use pagetide_quantity::Nanos;
use pagetide_quantity::command::shell;
use pagetide_report::date;
use pagetide_report::draw::clean;
use pagetide_report::html::card;
use pagetide_store::Store;
use pagetide_store::{CampaignNote, Filter, RunEnd, RunState};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::form::{Form, is_own};
use crate::pages::{NAME_CHARS, answer, message, rendered};
use crate::site::Site;

/// Maximum length of a line of a run's output, in characters.
const LINE_CHARS: usize = 300;
/// Maximum size in bytes of the output of a run that ended at once. Larger output is not read.
const MAX_LOG_BYTES: u64 = 16 << 20;
/// Maximum time to wait until a run has started or ended, so that the next page shows the new state.
const SOON: Duration = Duration::from_secs(3);

/// Number of newest campaigns whose results are shown in the list. Results of older campaigns are on their own pages.
const ANSWERED: usize = 40;

struct TrialRow {
    what: String,
    phase: String,
    done: u64,
    total: u64,
}

struct CampaignRow {
    id: String,
    name: String,
    /// Which variants the campaign compares, as text ([`question`]).
    question: String,
    cells: String,
    date: String,
    /// Result as HTML, computed from the trials that have run; empty if there is no result or the campaign is not among
    /// the newest ([`ANSWERED`]).
    answer: String,
    done: usize,
    all: usize,
    /// State of the campaign, such as `running`, `done` or `was killed`.
    state: String,
    left: String,
    running: bool,
    /// Command that resumes the campaign. Empty if the campaign is running, if its last run completed, or if the
    /// command is unknown.
    resume: String,
    trials: Vec<TrialRow>,
    said: Vec<String>,
}

#[derive(Template)]
#[template(path = "campaigns.html")]
struct Campaigns {
    title: &'static str,
    key: String,
    rows: Vec<CampaignRow>,
    /// Number of records in the store.
    records: u64,
}

pub(crate) async fn list(State(shared): State<Arc<Site>>) -> Response {
    let key = shared.key.clone();
    answer(shared.clone(), move |store| {
        let ids = store.campaigns().map_err(|error| error.to_string())?;
        let mut notes: Vec<CampaignNote> = ids
            .iter()
            .filter_map(|id| store.campaign(id).ok().flatten())
            .collect();
        notes.sort_by_key(|note| std::cmp::Reverse(note.started));
        let mut rows = Vec::new();
        for note in &notes {
            let mut row = row(store, note)?;
            if rows.len() < ANSWERED {
                row.answer = answer_of(&shared, store, &row);
            }
            rows.push(row);
        }
        let records = store.count(&Filter::default());
        rendered(&Campaigns {
            title: "Campaigns",
            key,
            rows,
            records: records.unwrap_or_default(),
        })
    })
    .await
}

/// Returns the result of a campaign as HTML; empty if no trial has run or a comparison is not possible. A cached result
/// is used if the number of trials that have run is still the same.
fn answer_of(shared: &Site, store: &Store, row: &CampaignRow) -> String {
    let known = || {
        shared
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    };
    if row.done == 0 {
        return String::new();
    }
    if let Some((done, answer)) = known().get(&row.id)
        && *done == row.done
    {
        return answer.clone();
    }
    // If the comparison is not possible, only the campaign's own page states the reason.
    let answer = show_campaign(store, Some(&row.id)).map_or_else(|_| String::new(), |c| card(&c));
    known().insert(row.id.clone(), (row.done, answer.clone()));
    answer
}

/// Describes the variants of a campaign: `B and C against A`, where A is the first variant, or `A alone`. Empty without
/// variants.
fn question(note: &CampaignNote) -> String {
    let names: Vec<String> = note
        .variants
        .iter()
        .map(|name| clean(name, NAME_CHARS, false))
        .collect();
    match &names[..] {
        [] => String::new(),
        [only] => format!("{only} alone"),
        [baseline, others @ ..] => format!("{} against {baseline}", others.join(" and ")),
    }
}

/// Lists the scenarios of a campaign without repetitions, and the number of cells: `swapbench, kv (3 cells)`.
fn scenarios(note: &CampaignNote) -> String {
    let mut all: Vec<String> = Vec::new();
    for cell in &note.cells {
        let scenario = cell.label.split([' ', '·']).next().unwrap_or_default();
        let scenario = clean(scenario, NAME_CHARS, false);
        if !all.contains(&scenario) {
            all.push(scenario);
        }
    }
    let cells = match note.cells.len() {
        1 => "one cell".to_owned(),
        n => format!("{n} cells"),
    };
    format!("{} ({cells})", all.join(", "))
}

fn row(store: &Store, note: &CampaignNote) -> Result<CampaignRow, String> {
    let id = note.id();
    let said = |error: pagetide_store::StoreError| error.to_string();
    let keys: Vec<String> = note.entries.iter().map(|entry| entry.key.clone()).collect();
    let mut keys_once = keys.clone();
    keys_once.sort_unstable();
    keys_once.dedup();
    let found = store.by_keys(&keys_once).map_err(said)?;
    let own = |row: &&pagetide_store::Row| !row.accident && (!note.fresh || *row.campaign == *id);
    let walls: Vec<u64> = found.iter().filter(own).map(|row| row.wall.0).collect();
    let all = keys.len();
    let done = walls.len().min(all);
    // A generation with a successor is finished.
    let last = store.latest_of(&note.name).map_err(said)?;
    let is_last = last.is_none_or(|last| last.id() == id);
    let state = store.run_of(&note.name).filter(|_| is_last);
    let running = is_last && store.runner(&note.name).map_err(said)?.is_some();
    let mean = walls.iter().sum::<u64>() / (walls.len() as u64).max(1);
    let guess = match (done, all - done) {
        (_, 0) => "–".to_owned(),
        (0, _) => "not known yet".to_owned(),
        (_, left) => format!("{}, one at a time", Nanos(mean * left as u64).about()),
    };
    let mut row = CampaignRow {
        name: note.name.clone(),
        question: question(note),
        cells: scenarios(note),
        date: match note.started {
            Nanos(0) => String::new(),
            started => {
                // Minutes are precise enough for a list.
                let utc = date::utc(started);
                let minute = utc.get(..16).unwrap_or(&utc).replace('T', " ");
                format!("{minute} UTC")
            }
        },
        answer: String::new(),
        done,
        all,
        state: if done >= all { "done" } else { "not finished" }.to_owned(),
        left: guess,
        running,
        resume: String::new(),
        trials: Vec::new(),
        said: Vec::new(),
        id,
    };
    if let Some(state) = &state {
        follow(&mut row, state);
    }
    Ok(row)
}

/// Adds the state that the campaign's process has saved: messages, and the progress of a run or how it ended.
fn follow(row: &mut CampaignRow, state: &RunState) {
    row.said = once(&state.said)
        .iter()
        .map(|line| clean(line, LINE_CHARS, false))
        .collect();
    if row.running {
        "running".clone_into(&mut row.state);
        (row.done, row.all) = (state.done, state.total.max(state.done));
        row.left = state.left.about();
        row.trials = state
            .trials
            .iter()
            .map(|trial| TrialRow {
                what: clean(
                    &format!(
                        "{} under {}, seed {}",
                        trial.scenario, trial.variant, trial.seed
                    ),
                    LINE_CHARS,
                    false,
                ),
                phase: match trial.clock {
                    Nanos(0) => clean(&trial.phase, 40, false),
                    clock => format!(
                        "{}, {clock} on its own clock",
                        clean(&trial.phase, 40, false)
                    ),
                },
                done: trial.done.min(trial.total),
                total: trial.total,
            })
            .collect();
        return;
    }
    match &state.end {
        RunEnd::Whole => "done".clone_into(&mut row.state),
        RunEnd::Stopped => "stopped".clone_into(&mut row.state),
        RunEnd::Open => "was killed".clone_into(&mut row.state),
        RunEnd::Unable(why) => {
            "could not go on".clone_into(&mut row.state);
            let why = clean(why, LINE_CHARS, false);
            // The output of a run often already contains the reason why the run ended.
            if !row.said.iter().any(|line| line.contains(&why)) {
                row.said.push(why);
            }
        }
    }
    if state.end != RunEnd::Whole && !state.arguments.is_empty() {
        row.resume = clean(
            &format!("pagetide {}", shell(&state.arguments)),
            LINE_CHARS,
            false,
        );
    }
}

/// Merges lines that are equal or differ only in their seed into one line. If the lines have a seed, their number
/// replaces it.
fn once(lines: &[String]) -> Vec<String> {
    /// Splits a line into the texts before and after a seed; `None` if the line contains no seed.
    fn parts(line: &str) -> Option<(&str, &str)> {
        let (before, rest) = line.split_once(", seed ")?;
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        Some((before, after))
    }
    let mut all: Vec<(&str, usize)> = Vec::new();
    for line in lines {
        let same =
            |known: &str| known == line || (parts(line).is_some() && parts(known) == parts(line));
        match all.iter_mut().find(|(known, _)| same(known)) {
            Some((_, count)) => *count += 1,
            None => all.push((line, 1)),
        }
    }
    all.into_iter()
        .map(|(line, count)| match parts(line) {
            Some((before, after)) if count > 1 => format!("{before}, {count} trials{after}"),
            _ => line.to_owned(),
        })
        .collect()
}

/// Asks the process that runs a campaign to stop, with SIGINT, the signal of Ctrl-C.
pub(crate) async fn stop(
    State(shared): State<Arc<Site>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    axum::Form(form): axum::Form<Form>,
) -> Response {
    act(shared, headers, form, name, |_, store, name| {
        let runner = || store.runner(name).map_err(|error| error.to_string());
        let Some(process) = runner()? else {
            return Err("It does not run any more.".to_owned());
        };
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        let refused = |error: rustix::io::Errno| {
            format!(
                "process {process} cannot be told to stop ({error}): press Ctrl-C where it runs"
            )
        };
        let pid =
            pid.ok_or("The process that runs it is not known: press Ctrl-C where it runs.")?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(refused)?;
        // The process id may have been reused, unless the campaign is still locked by this process.
        if runner()? != Some(process) {
            return Err("It does not run any more.".to_owned());
        }
        pidfd_send_signal(&handle, Signal::INT).map_err(refused)?;
        wait(|| matches!(store.runner(name), Ok(None)));
        Ok(())
    })
    .await
}

/// Starts the program again with the arguments of the campaign's last run.
pub(crate) async fn resume(
    State(shared): State<Arc<Site>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    axum::Form(form): axum::Form<Form>,
) -> Response {
    act(shared, headers, form, name, |shared, store, name| {
        if store
            .runner(name)
            .map_err(|error| error.to_string())?
            .is_some()
        {
            return Err("It runs already.".to_owned());
        }
        let state = store
            .run_of(name)
            .filter(|state| !state.arguments.is_empty())
            .ok_or("With which words it was run is not known: run it from the command line.")?;
        let log = shared.folder.join("runs").join(format!("{name}.log"));
        let ended = start(shared, &state, &log)?;
        wait(|| matches!(store.runner(name), Ok(Some(_))) || ended.is_finished());
        if ended.is_finished() && !matches!(store.runner(name), Ok(Some(_))) {
            let text = pagetide_outside::read_text(&log, FileOrigin::Own, MAX_LOG_BYTES);
            let text = text.unwrap_or_default();
            let last = text.lines().last().unwrap_or("it said nothing");
            return Err(format!(
                "The run ended at once: {}",
                clean(last, 500, false)
            ));
        }
        Ok(())
    })
    .await
}

/// Starts a run that survives the end of this server. The returned thread waits for the run and ends with it.
fn start(
    shared: &Site,
    state: &RunState,
    log: &FilePath,
) -> Result<std::thread::JoinHandle<()>, String> {
    let cannot = |error: std::io::Error| format!("the run could not be started ({error})");
    let out = pagetide_outside::create(log).map_err(cannot)?;
    let err = out.try_clone().map_err(cannot)?;
    let mut child = Command::new(&shared.program)
        .args(&state.arguments)
        .env("PAGETIDE_STORE", &shared.folder)
        .env("PAGETIDE_CACHE", &shared.cache)
        .current_dir(&state.folder)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        // Ctrl-C in the server's terminal must not stop the run.
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    Ok(std::thread::spawn(move || {
        let _ = child.wait();
    }))
}

/// Returns the name if the store has a campaign of this name; otherwise an error message. Only known names may become
/// part of a path.
fn known(store: &Store, name: &str) -> Result<String, String> {
    let ids = store.campaigns().map_err(|error| error.to_string())?;
    ids.iter()
        .filter_map(|id| store.campaign(id).ok().flatten())
        .map(|note| note.name)
        .find(|known| known == name)
        .ok_or_else(|| "There is no such campaign.".to_owned())
}

fn wait(holds: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !holds() && began.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Stops or resumes a campaign if the form was sent from a page of this server, then shows the list of campaigns.
async fn act(
    shared: Arc<Site>,
    headers: HeaderMap,
    form: Form,
    name: String,
    work: impl FnOnce(&Site, &Store, &str) -> Result<(), String> + Send + 'static,
) -> Response {
    if !is_own(&shared, &headers, &form) {
        return message(
            StatusCode::FORBIDDEN,
            "Not done",
            "This was not asked for from a page of this server: open the campaigns and press the button there.",
        );
    }
    let done = move || {
        let store = Store::open(&shared.folder).map_err(|error| error.to_string())?;
        let name = known(&store, &name)?;
        work(&shared, &store, &name)
    };
    match tokio::task::spawn_blocking(done).await {
        Ok(Ok(())) => Redirect::to("/").into_response(),
        Ok(Err(why)) => message(StatusCode::CONFLICT, "Not done", &why),
        Err(_) => message(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Not done",
            "Doing this panicked, please report it.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::once;

    #[test]
    fn what_all_seeds_died_of_is_said_once() {
        let said = [
            "invalid: filecopy under b, seed 4: setting x reads `0`",
            "invalid: filecopy under b, seed 4: setting x reads `0`",
            "invalid: filecopy under b, seed 15: setting x reads `0`",
            "invalid: filecopy under b, seed 6: out of memory",
            "a word of its own",
        ]
        .map(str::to_owned);
        assert_eq!(
            once(&said),
            [
                "invalid: filecopy under b, 3 trials: setting x reads `0`",
                "invalid: filecopy under b, seed 6: out of memory",
                "a word of its own",
            ]
        );
    }
}
