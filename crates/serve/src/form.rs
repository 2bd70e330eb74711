//! Protection of write actions: what a form must contain.
//!
//! The cookie alone is not enough, because a browser also sends it for forms of other sites. A form must contain a
//! second secret of this server process, which only pages of this server contain. If the browser sends headers that
//! state a form's origin, they must name this server.

use axum::http::{HeaderMap, header};
use serde::Deserialize;

use crate::guard::same;
use crate::site::Site;

/// Field that the forms for stopping and resuming a campaign contain: the second secret.
#[derive(Deserialize)]
pub(crate) struct Form {
    #[serde(default)]
    key: String,
}

/// True if a form was sent from a page of this server: its key is right, and no header of the browser names another
/// origin.
pub(crate) fn is_own(shared: &Site, headers: &HeaderMap, form: &Form) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let site = text(header::HeaderName::from_static("sec-fetch-site"));
    // If the browser states the origin of a form, it must be this server.
    let from_here = site.is_none_or(|site| site == "same-origin")
        && text(header::ORIGIN).is_none_or(|origin| {
            let host = text(header::HOST).unwrap_or("");
            origin.strip_prefix("http://") == Some(host)
        });
    from_here && same(&form.key, &shared.key)
}
