//! The store in a browser: browse, filter, compare any two records, follow a metric, watch campaigns.
//!
//! The server listens on loopback by default, and requests need the token of this server process. The only write
//! actions are stopping and resuming a campaign. They require a second secret, which only pages of this server process
//! contain (see [`form`]). Names and logs are untrusted: templates escape them and show control characters. The content
//! security policy of every page forbids inline scripts and all other hosts. This crate does not depend on arenas and
//! judges nothing.
//!
//! Begin reading at [`Server`], then [`guard`] (access control) and [`pages`] (responses).

mod address;
mod campaigns;
mod form;
mod guard;
mod history;
mod listener;
mod pages;
mod records;
mod site;

pub use address::{PORT, address};

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::middleware;
use axum::routing::{get, post};
use pagetide_record::subject::hex;
use pagetide_store::{Store, StoreError};
use rustix::rand::{GetRandomFlags, getrandom};

use listener::{PATIENCE, PatientListener};
use site::Site;

/// Reasons why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server cannot listen on the address.
    #[error("listening on {address} was refused ({source}): choose another with --listen")]
    Listen {
        /// The address on which the server should listen.
        address: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The system provides no random numbers.
    #[error("drawing a token was refused ({0}): run on a system with getrandom(2)")]
    Token(io::Error),
    /// The server stopped with an error.
    #[error("serving ended ({0}): start it again")]
    Serve(io::Error),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Folders and program of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Absolute path of the store's folder.
    pub folder: PathBuf,
    /// Absolute path of the folder of kernels and snapshots.
    pub cache: PathBuf,
    /// Path of the pagetide program, which is started to resume campaigns.
    pub program: PathBuf,
}

/// A server that is bound to its address but does not accept requests yet.
pub struct Server {
    listener: std::net::TcpListener,
    shared: Arc<Site>,
    patience: Duration,
}

impl Server {
    /// Binds the server of a store to `address`; port 0 selects a free port. Creates the store if it does not exist.
    pub fn bind(options: Options, address: SocketAddr) -> Result<Self, ServeError> {
        // Errors of the store must be reported at the start, not on the first page.
        drop(Store::open(&options.folder)?);
        let listen = |source| ServeError::Listen { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self {
            listener,
            patience: PATIENCE,
            shared: Arc::new(Site {
                folder: options.folder,
                cache: options.cache,
                program: options.program,
                key: secret()?,
                token: secret()?,
                address,
                answers: Mutex::default(),
            }),
        })
    }

    /// Sets the time after which a connection without traffic is closed; the default is one minute.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Returns the URL to open first; it contains the token.
    pub fn url(&self) -> String {
        format!(
            "http://{}/?token={}",
            self.shared.address, self.shared.token
        )
    }

    /// Returns a warning if other machines can reach the address, because nothing is encrypted; otherwise `None`.
    pub fn warning(&self) -> Option<String> {
        let address = self.shared.address;
        (!address.ip().is_loopback()).then(|| {
            format!(
                "{address} can be reached from other machines, and neither token nor data are encrypted: use loopback and an SSH tunnel"
            )
        })
    }

    /// Responds to requests until the process receives SIGINT (Ctrl-C) or SIGTERM.
    pub fn run(self) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ServeError::Serve)?;
        runtime.block_on(async {
            let listener =
                tokio::net::TcpListener::from_std(self.listener).map_err(ServeError::Serve)?;
            let patience = self.patience;
            axum::serve(PatientListener { listener, patience }, router(self.shared))
                .with_graceful_shutdown(told_to_end())
                .await
                .map_err(ServeError::Serve)
        })
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        // If signals cannot be received, the server never stops.
        return std::future::pending().await;
    };
    std::future::poll_fn(|context| {
        if interrupt.poll_recv(context).is_ready() || terminate.poll_recv(context).is_ready() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Returns sixteen random bytes as hexadecimal text. Fails if the system provides no random numbers.
fn secret() -> Result<String, ServeError> {
    let mut bytes = [0_u8; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|error| ServeError::Token(error.into()))?;
    Ok(hex(&bytes))
}

fn router(shared: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(campaigns::list))
        .route("/records", get(records::list))
        .route("/record/{id}", get(pages::record))
        .route("/compare", get(pages::compare))
        .route("/campaigns", get(campaigns::list))
        .route("/campaigns/{name}/stop", post(campaigns::stop))
        .route("/campaigns/{name}/resume", post(campaigns::resume))
        .route("/campaign/{id}", get(pages::campaign))
        .route("/history", get(history::page))
        .route("/assets/bundle.js", get(pages::script))
        .route("/assets/live.js", get(pages::live))
        .route("/assets/bundle.css", get(pages::style))
        .fallback(pages::nothing)
        .layer(middleware::from_fn_with_state(shared.clone(), guard::guard))
        .with_state(shared)
}
