//! What is answered: lists, and reports made on the spot.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use pagetide_compare::comparison::Comparison;
use pagetide_compare::{compare_note, compare_two};
use pagetide_record::store::Filter;
use pagetide_record::{Nanos, Store};
use pagetide_report::About;
use pagetide_report::draw::clean;
use pagetide_report::html::{Assets, Input, SCRIPT, STYLE, single, write};
use serde::Deserialize;

use crate::Shared;

/// Records on one page.
const ROWS: u32 = 200;
/// Longest name.
const NAME: usize = 80;

/// A page, or a sentence that says why there is none.
pub(crate) type Answer = Result<Html<String>, String>;

#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    title: &'a str,
    text: &'a str,
}

/// Does what blocks beside the answers to others.
pub(crate) async fn answer(
    shared: Arc<Shared>,
    work: impl FnOnce(&Store) -> Answer + Send + 'static,
) -> Response {
    let done = tokio::task::spawn_blocking(move || {
        let store = Store::open(&shared.folder).map_err(|error| error.to_string())?;
        work(&store)
    })
    .await;
    match done {
        Ok(Ok(page)) => page.into_response(),
        Ok(Err(why)) => message(StatusCode::NOT_FOUND, "Nothing to show", &why),
        Err(_) => message(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Nothing to show",
            "Making this page panicked, please report it.",
        ),
    }
}

fn message(status: StatusCode, title: &str, text: &str) -> Response {
    let text = clean(text, 1000, false);
    let page = Message { title, text: &text }.render().unwrap_or_default();
    (status, Html(page)).into_response()
}

/// Renders a template.
pub(crate) fn rendered(page: &impl Template) -> Answer {
    page.render()
        .map(Html)
        .map_err(|error| format!("the page could not be made ({error})"))
}

pub(crate) async fn nothing() -> Response {
    message(
        StatusCode::NOT_FOUND,
        "Nothing to show",
        "There is no such page.",
    )
}

pub(crate) async fn script() -> Response {
    (
        [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")],
        SCRIPT,
    )
        .into_response()
}

pub(crate) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

/// Which records are wanted; empty fields do not matter.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    variant: String,
    #[serde(default)]
    release: String,
    #[serde(default)]
    campaign: String,
}

/// A field of a form, if anything is in it.
pub(crate) fn given(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

struct RecordRow {
    id: String,
    short: String,
    cell: String,
    variant: String,
    release: String,
    seed: u64,
    elapsed: String,
    state: String,
}

#[derive(Template)]
#[template(path = "records.html")]
struct Records {
    title: &'static str,
    scenario: String,
    variant: String,
    release: String,
    campaign: String,
    total: u64,
    rows: Vec<RecordRow>,
}

pub(crate) async fn records(
    State(shared): State<Arc<Shared>>,
    Query(wanted): Query<Wanted>,
) -> Response {
    answer(shared, move |store| {
        let mut filter = Filter {
            scenario: given(&wanted.scenario),
            variant: given(&wanted.variant),
            release: given(&wanted.release),
            campaign: given(&wanted.campaign),
            ..Filter::default()
        };
        let total = store.count(&filter).map_err(|error| error.to_string())?;
        filter.limit = Some(ROWS);
        let rows = store.select(&filter).map_err(|error| error.to_string())?;
        let rows = rows.into_iter().map(|row| RecordRow {
            short: clean(&row.id, 12, false),
            cell: clean(&row.cell.subject.cell_label(), NAME, false),
            variant: clean(&row.variant.name, NAME, false),
            release: clean(&row.variant.kernel.release, NAME, false),
            seed: row.seed,
            elapsed: row.elapsed.to_string(),
            state: row
                .invalid
                .as_deref()
                .map_or_else(|| "valid".to_owned(), |why| clean(why, 120, false)),
            id: row.id,
        });
        rendered(&Records {
            title: "Records",
            rows: rows.collect(),
            total,
            scenario: wanted.scenario,
            variant: wanted.variant,
            release: wanted.release,
            campaign: wanted.campaign,
        })
    })
    .await
}

pub(crate) async fn record(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    answer(shared, move |store| {
        let row = store.find(&id).map_err(|error| error.to_string())?;
        let reader = store.load(&row.id).map_err(|error| error.to_string())?;
        let record = reader.into_record();
        let about = About {
            title: format!("Record {}", clean(&row.id, 13, false)),
            command: record.maker.command.clone(),
            machine: record.wall.machine.clone(),
            ..About::default()
        };
        report(store, &single(&record), &about)
    })
    .await
}

/// Two things to compare.
#[derive(Deserialize)]
pub(crate) struct Two {
    #[serde(default)]
    a: String,
    #[serde(default)]
    b: String,
    #[serde(default)]
    anyway: String,
}

pub(crate) async fn compare(State(shared): State<Arc<Shared>>, Query(two): Query<Two>) -> Response {
    answer(shared, move |store| {
        let (Some(a), Some(b)) = (given(&two.a), given(&two.b)) else {
            return Err("Choose one record as A and one as B.".to_owned());
        };
        let comparison = compare_two(store, &a, &b, !two.anyway.is_empty())
            .map_err(|error| error.to_string())?;
        let about = About {
            title: format!("{} against {}", clean(&b, 40, false), clean(&a, 40, false)),
            command: format!(
                "pagetide compare {} {}",
                clean(&a, NAME, false),
                clean(&b, NAME, false)
            ),
            ..About::default()
        };
        report(store, &comparison, &about)
    })
    .await
}

struct CampaignRow {
    id: String,
    variants: String,
    done: usize,
    all: usize,
    left: String,
}

#[derive(Template)]
#[template(path = "campaigns.html")]
struct Campaigns {
    title: &'static str,
    running: bool,
    rows: Vec<CampaignRow>,
}

pub(crate) async fn campaigns(State(shared): State<Arc<Shared>>) -> Response {
    answer(shared, |store| {
        let mut rows = Vec::new();
        for id in store.campaigns().map_err(|error| error.to_string())? {
            let Ok(Some(note)) = store.campaign(&id) else {
                continue;
            };
            let keys: Vec<String> = note.entries.iter().map(|entry| entry.key.clone()).collect();
            let found = store.by_keys(&keys).map_err(|error| error.to_string())?;
            let walls: BTreeMap<&String, Nanos> = found
                .iter()
                .filter(|row| !note.fresh || *row.campaign == *id)
                .map(|row| (&row.key, row.wall))
                .collect();
            let (done, all) = (walls.len(), keys.len());
            let spent: u64 = walls.values().map(|wall| wall.0).sum();
            let left = match done {
                _ if done >= all => "–".to_owned(),
                0 => "not known yet".to_owned(),
                _ => Nanos(spent / done as u64 * (all - done) as u64).to_string(),
            };
            rows.push(CampaignRow {
                variants: clean(&note.variants.join(", "), NAME, false),
                id,
                done,
                all,
                left,
            });
        }
        rendered(&Campaigns {
            title: "Campaigns",
            running: rows.iter().any(|row| row.done < row.all),
            rows,
        })
    })
    .await
}

pub(crate) async fn campaign(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> Response {
    answer(shared, move |store| {
        let ids = store.campaigns().map_err(|error| error.to_string())?;
        // Only a known name becomes part of a path.
        let note = ids
            .contains(&id)
            .then(|| store.campaign(&id))
            .transpose()
            .map_err(|error| error.to_string())?
            .flatten()
            .ok_or("There is no such campaign.")?;
        let comparison = compare_note(store, &note).map_err(|error| error.to_string())?;
        let about = About {
            title: format!("Campaign {id}"),
            command: format!("pagetide report {id}"),
            ..About::default()
        };
        report(store, &comparison, &about)
    })
    .await
}

/// The report as a page of this server: script and style are asked for, nothing of them stands in the page.
fn report(store: &Store, comparison: &Comparison, about: &About) -> Answer {
    let open = |id: &str| store.load(id).map_err(|error| error.to_string());
    let input = Input {
        comparison,
        about,
        why: &[],
        reclaim: &BTreeMap::new(),
        observed: &BTreeMap::new(),
        open: &open,
        assets: Assets::Served {
            script: "/assets/bundle.js",
            style: "/assets/bundle.css",
        },
    };
    let mut out = Vec::new();
    write(&input, &mut out).map_err(|error| error.to_string())?;
    String::from_utf8(out)
        .map(Html)
        .map_err(|_| "the page is no text, please report it".to_owned())
}
