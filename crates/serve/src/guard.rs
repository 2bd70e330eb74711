//! Access control: requests need the token of this server process. If the server listens on a loopback address, the
//! `Host` header must name this server. Every response carries the content security policy.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::site::Site;

/// Content security policy of every response: only scripts and styles of this server, images of this server or within
/// the page, no other hosts, no embedding in frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Passes a request with the cookie on. A request with the token in its address is redirected ([`welcome`]); others get
/// a response with the reason of the refusal.
pub(crate) async fn guard(
    State(shared): State<Arc<Site>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let mut response = match admitted(&shared, &request) {
        Admission::Yes => next.run(request).await,
        Admission::WithToken { clean } => welcome(&shared, &clean),
        Admission::WrongHost => (
            StatusCode::MISDIRECTED_REQUEST,
            "This server answers under its own address only.\n",
        )
            .into_response(),
        Admission::No => (
            StatusCode::FORBIDDEN,
            "Open the address that `pagetide serve` printed: it carries this start's token.\n",
        )
            .into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

enum Admission {
    Yes,
    /// The address of the request contains the token; `clean` is the address without the token.
    WithToken {
        clean: String,
    },
    WrongHost,
    No,
}

fn admitted(shared: &Site, request: &Request<Body>) -> Admission {
    // A page of another site can make its host name resolve to this address (DNS rebinding), but it cannot change the
    // Host header.
    if shared.address.ip().is_loopback() && !is_own_name(shared, request.headers()) {
        return Admission::WrongHost;
    }
    let query = request.uri().query().unwrap_or_default();
    let (given, rest): (Vec<&str>, Vec<&str>) = query
        .split('&')
        .partition(|part| part.starts_with("token="));
    if given
        .iter()
        .filter_map(|part| part.strip_prefix("token="))
        .any(|token| same(token, &shared.token))
    {
        let path = request.uri().path();
        let clean = match rest.join("&") {
            rest if rest.is_empty() => path.to_owned(),
            rest => format!("{path}?{rest}"),
        };
        return Admission::WithToken { clean };
    }
    let name = cookie(shared);
    let known = request
        .headers()
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .any(|(key, value)| key == name && same(value, &shared.token));
    if known { Admission::Yes } else { Admission::No }
}

fn is_own_name(shared: &Site, headers: &HeaderMap) -> bool {
    let Some(host) = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
    else {
        return false;
    };
    let port = shared.address.port();
    host == shared.address.to_string() || host == format!("localhost:{port}")
}

/// Puts the token into a cookie and redirects to the address without it.
fn welcome(shared: &Site, clean: &str) -> Response {
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict",
        cookie(shared),
        shared.token
    );
    // A path with two leading slashes would be a different host.
    let to = format!("/{}", clean.trim_start_matches(['/', '\\']));
    (
        StatusCode::SEE_OTHER,
        [(header::SET_COOKIE, cookie), (header::LOCATION, to)],
    )
        .into_response()
}

/// Returns the name of the cookie with the token. The name contains the port, because a browser sends cookies to all
/// ports of a host, and each server needs its own.
fn cookie(shared: &Site) -> String {
    format!("pagetide-{}", shared.address.port())
}

/// True if both texts are equal. For texts of equal length, the time does not depend on the number of equal bytes, so
/// the token cannot be guessed byte by byte.
pub(crate) fn same(given: &str, token: &str) -> bool {
    given.len() == token.len()
        && given
            .bytes()
            .zip(token.bytes())
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}
