//! The page of records: filtered, divided into pages, with a form to compare any two records.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use pagetide_report::draw::clean;
use pagetide_store::Store;
use pagetide_store::{Filter, Row, short};
use serde::{Deserialize, Serialize};

use crate::pages::{NAME_CHARS, answer, given, rendered};
use crate::site::Site;

/// Number of records on one page.
const ROWS: u32 = 200;
/// Maximum number of campaigns whose variants are offered for a comparison; the most recent campaigns are used.
const OFFERED: usize = 20;

/// Filter of the records and number of the page, from 0. Empty fields match everything.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct RecordQuery {
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    variant: String,
    #[serde(default)]
    release: String,
    #[serde(default)]
    campaign: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    page: u32,
}

struct RecordRow {
    id: String,
    short: String,
    cell: String,
    variant: String,
    release: String,
    seed: u64,
    elapsed: String,
    campaign: String,
    state: String,
}

/// A text field of the filter, with the values that the form suggests.
struct Field {
    label: &'static str,
    name: &'static str,
    value: String,
    known: BTreeSet<String>,
}

#[derive(Template)]
#[template(path = "records.html")]
struct Records {
    title: &'static str,
    fields: Vec<Field>,
    states: [(&'static str, bool); 3],
    filtered: bool,
    total: u64,
    from: usize,
    to: usize,
    newer: String,
    older: String,
    rows: Vec<RecordRow>,
    sides: BTreeSet<String>,
}

pub(crate) async fn list(
    State(shared): State<Arc<Site>>,
    Query(wanted): Query<RecordQuery>,
) -> Response {
    answer(shared, move |store| {
        let mut filter = Filter {
            scenario: given(&wanted.scenario),
            variant: given(&wanted.variant),
            release: given(&wanted.release),
            campaign: given(&wanted.campaign),
            valid: match wanted.state.as_str() {
                "valid" => Some(true),
                "invalid" => Some(false),
                _ => None,
            },
            ..Filter::default()
        };
        let filtered = filter != Filter::default();
        let total = store.count(&filter).map_err(|error| error.to_string())?;
        let skip = wanted.page.saturating_mul(ROWS);
        filter.limit = Some(skip.saturating_add(ROWS));
        let mut rows = store.select(&filter).map_err(|error| error.to_string())?;
        rows.drain(..rows.len().min(skip as usize));
        let to = skip as usize + rows.len();
        let at = |page: u32| {
            address(&RecordQuery {
                page,
                ..wanted.clone()
            })
        };
        rendered(&Records {
            title: "Records",
            fields: fields(&wanted, &rows, store),
            states: ["all", "valid", "invalid"].map(|state| (state, state == wanted.state)),
            filtered,
            total,
            from: skip as usize + 1,
            to,
            newer: wanted.page.checked_sub(1).map_or(String::new(), at),
            older: if (to as u64) < total {
                at(wanted.page + 1)
            } else {
                String::new()
            },
            sides: sides(store, &rows),
            rows: rows.into_iter().map(shown).collect(),
        })
    })
    .await
}

fn shown(row: Row) -> RecordRow {
    RecordRow {
        short: clean(short(&row.id), 12, false),
        cell: clean(&row.cell.subject.cell_label(), NAME_CHARS, false),
        variant: clean(&row.variant.name, NAME_CHARS, false),
        release: clean(&row.variant.kernel.release, NAME_CHARS, false),
        seed: row.seed,
        elapsed: row.elapsed.to_string(),
        campaign: clean(&row.campaign, NAME_CHARS, false),
        state: row
            .invalid
            .as_deref()
            .map_or_else(|| "valid".to_owned(), |why| clean(why, 120, false)),
        id: row.id,
    }
}

/// Returns the address of the list of records with this filter and page number.
fn address(wanted: &RecordQuery) -> String {
    let pairs = [
        ("scenario", &wanted.scenario),
        ("variant", &wanted.variant),
        ("release", &wanted.release),
        ("campaign", &wanted.campaign),
        ("state", &wanted.state),
    ];
    let mut out = format!("/records?page={}", wanted.page);
    for (name, value) in pairs {
        if !value.is_empty() {
            let _ = write!(out, "&{name}={}", percent(value));
        }
    }
    out
}

/// Percent-encodes a value for an address (RFC 3986, 2.1).
fn percent(value: &str) -> String {
    value.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

fn fields(wanted: &RecordQuery, rows: &[Row], store: &Store) -> Vec<Field> {
    let known = |of: &dyn Fn(&Row) -> &str| -> BTreeSet<String> {
        rows.iter()
            .map(|row| clean(of(row), NAME_CHARS, false))
            .collect()
    };
    let field = |label, name, value: &str, known| Field {
        label,
        name,
        value: value.to_owned(),
        known,
    };
    vec![
        field(
            "Scenario",
            "scenario",
            &wanted.scenario,
            known(&|row| &row.cell.subject.scenario),
        ),
        field(
            "Variant",
            "variant",
            &wanted.variant,
            known(&|row| &row.variant.name),
        ),
        field(
            "Kernel",
            "release",
            &wanted.release,
            known(&|row| &row.variant.kernel.release),
        ),
        field(
            "Campaign",
            "campaign",
            &wanted.campaign,
            store.campaigns().unwrap_or_default().into_iter().collect(),
        ),
    ]
}

/// Returns the names that the form suggests as sides of a comparison: `CAMPAIGN:VARIANT` for the newest campaigns, and
/// kernel releases of the records shown.
fn sides(store: &Store, rows: &[Row]) -> BTreeSet<String> {
    let mut sides: BTreeSet<String> = rows
        .iter()
        .map(|row| clean(&row.variant.kernel.release, NAME_CHARS, false))
        .collect();
    for id in store.campaigns().unwrap_or_default().iter().take(OFFERED) {
        if let Ok(Some(note)) = store.campaign(id) {
            sides.extend(
                note.variants
                    .iter()
                    .map(|name| format!("{id}:{}", clean(name, NAME_CHARS, false))),
            );
        }
    }
    sides
}
