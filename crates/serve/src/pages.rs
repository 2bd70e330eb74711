//! Responses of the server: lists, and reports that are made on request.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use pagetide_compare::comparison::Comparison;
use pagetide_compare::{Names, compare_two, show_campaign};
use pagetide_quantity::command::command;
use pagetide_report::About;
use pagetide_report::draw::clean;
use pagetide_report::html::{Assets, LIVE, SCRIPT, STYLE, of_store, single, title, with_names};
use pagetide_store::Store;
use serde::Deserialize;

use crate::site::Site;

/// Maximum length of a name on a page, in characters; longer names are shortened.
pub(crate) const NAME_CHARS: usize = 80;

/// HTML of a page, or a sentence with the reason why there is no page.
pub(crate) type Answer = Result<Html<String>, String>;

#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    title: &'a str,
    text: &'a str,
}

/// Opens the store and makes a page with `work`, in a separate thread, so that other requests are not delayed. If there
/// is no page, responds with status 404 and the reason; if `work` panics, with status 500.
pub(crate) async fn answer(
    shared: Arc<Site>,
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

pub(crate) fn message(status: StatusCode, title: &str, text: &str) -> Response {
    let text = clean(text, 1000, false);
    let page = Message { title, text: &text }.render().unwrap_or_default();
    (status, Html(page)).into_response()
}

/// Renders a template as HTML. Fails with a sentence if that is not possible.
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

pub(crate) async fn live() -> Response {
    (
        [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")],
        LIVE,
    )
        .into_response()
}

pub(crate) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

/// Returns the text of a form's field without surrounding spaces; `None` if no text remains.
pub(crate) fn given(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

pub(crate) async fn record(State(shared): State<Arc<Site>>, Path(id): Path<String>) -> Response {
    answer(shared, move |store| {
        let row = store.find(&id).map_err(|error| error.to_string())?;
        let reader = store.load(&row.id).map_err(|error| error.to_string())?;
        let record = reader.into_record();
        let about = About {
            title: title(&record),
            command: record.maker.command.clone(),
            machine: record.wall.machine.clone(),
            ..About::default()
        };
        report(store, &single(&record), &about)
    })
    .await
}

/// Query parameters for the two sides of a comparison.
#[derive(Deserialize)]
pub(crate) struct PairNames {
    #[serde(default)]
    a: String,
    #[serde(default)]
    b: String,
    #[serde(default)]
    anyway: String,
}

pub(crate) async fn compare(
    State(shared): State<Arc<Site>>,
    Query(two): Query<PairNames>,
) -> Response {
    answer(shared, move |store| {
        let (Some(a), Some(b)) = (given(&two.a), given(&two.b)) else {
            return Err("Choose one record as A and one as B.".to_owned());
        };
        let mut comparison = compare_two(store, &a, &b, !two.anyway.is_empty())
            .map_err(|error| error.to_string())?;
        let about = About {
            title: with_names(&mut comparison),
            command: command(&["compare", &a, &b]),
            ..About::default()
        };
        report(store, &comparison, &about)
    })
    .await
}

pub(crate) async fn campaign(State(shared): State<Arc<Site>>, Path(id): Path<String>) -> Response {
    answer(shared, move |store| {
        let comparison = show_campaign(store, Some(&id)).map_err(|error| error.to_string())?;
        let names = Names {
            a: Some(id.clone()),
            ..Names::default()
        };
        let command = names
            .origin(store, &comparison, "report")
            .map_err(|error| error.to_string())?;
        let id = clean(&id, NAME_CHARS, false);
        let about = About {
            title: format!("Campaign {id}"),
            command,
            ..About::default()
        };
        report(store, &comparison, &about)
    })
    .await
}

/// Address and name of each link at the top of a report. The other pages have the same links in `base.html`.
const LINKS: &[(&str, &str)] = &[
    ("/", "Campaigns"),
    ("/records", "Records"),
    ("/history", "History"),
];

/// Renders the report on a comparison as a page of this server. The browser requests script and style separately.
fn report(store: &Store, comparison: &Comparison, about: &About) -> Answer {
    let assets = Assets::Served {
        script: "/assets/bundle.js",
        style: "/assets/bundle.css",
        links: LINKS,
    };
    let mut out = Vec::new();
    of_store(store, comparison, about, assets, &mut out).map_err(|error| error.to_string())?;
    String::from_utf8(out)
        .map(Html)
        .map_err(|_| "the page is no text, please report it".to_owned())
}
