//! Write actions: what a form must carry before anything is done.
//!
//! The cookie alone is not enough, for a browser sends it whoever made the page. A form carries a second secret of this
//! start, which stands only in pages of this server, and a browser says from which page a form came.

use axum::http::{HeaderMap, header};
use serde::Deserialize;

use crate::Site;
use crate::guard::same;

/// What every form of this server carries.
#[derive(Deserialize)]
pub(crate) struct Form {
    #[serde(default)]
    key: String,
}

/// Whether a form was sent from a page of this server.
pub(crate) fn is_own(shared: &Site, headers: &HeaderMap, form: &Form) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let site = text(header::HeaderName::from_static("sec-fetch-site"));
    // A browser that says where a form comes from must say that it comes from here.
    let from_here = site.is_none_or(|site| site == "same-origin")
        && text(header::ORIGIN).is_none_or(|origin| {
            let host = text(header::HOST).unwrap_or("");
            origin.strip_prefix("http://") == Some(host)
        });
    from_here && same(&form.key, &shared.key)
}
