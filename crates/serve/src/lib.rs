//! The store in a browser: browse, filter, compare any two, follow a metric, watch campaigns.
//!
//! Pages are made on loopback for whoever has the token of this start. The only write actions are to stop a running
//! campaign and to go on with one, and they need a second secret, which stands in pages of this start alone (see
//! [`form`]). Names and logs are data: templates escape them, controls are shown, and the policy of
//! every page forbids inline script and all other hosts. This crate knows nothing of arenas and judges nothing.
//!
//! Begin reading at [`Server`], then [`guard`] (who may ask) and [`pages`] (what is answered).

mod address;
mod campaigns;
mod form;
mod guard;
mod history;
mod listener;
mod pages;
mod records;

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

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("listening on {address} was refused ({source}): choose another with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The system gives no random numbers.
    #[error("drawing a token was refused ({0}): run on a system with getrandom(2)")]
    Token(io::Error),
    /// The server ended.
    #[error("serving ended ({0}): start it again")]
    Serve(io::Error),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is served, and with which program campaigns go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Folder of the store, from the root.
    pub folder: PathBuf,
    /// Folder of kernels and snapshots, from the root.
    pub cache: PathBuf,
    /// The program that runs campaigns.
    pub program: PathBuf,
}

/// What every answer needs.
pub(crate) struct Site {
    /// Folder of the store.
    pub folder: PathBuf,
    /// Folder of kernels and snapshots.
    pub cache: PathBuf,
    /// The program that runs campaigns.
    pub program: PathBuf,
    /// What forms of this start carry.
    pub key: String,
    /// Token of this start.
    pub token: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// What campaigns came to, by their identity.
    pub answers: Mutex<campaigns::Answers>,
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: std::net::TcpListener,
    shared: Arc<Site>,
    patience: Duration,
}

impl Server {
    /// Listens for questions about a store; port 0 takes a free one.
    pub fn bind(options: Options, address: SocketAddr) -> Result<Self, ServeError> {
        // What is wrong with the store is told now and not on the first page.
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

    /// Ends connections on which nothing comes or goes for so long, a minute where nothing else is said.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The address to open first; it carries the token.
    pub fn url(&self) -> String {
        format!(
            "http://{}/?token={}",
            self.shared.address, self.shared.token
        )
    }

    /// What to warn of: other machines can reach the address, and nothing is encrypted.
    pub fn warning(&self) -> Option<String> {
        let address = self.shared.address;
        (!address.ip().is_loopback()).then(|| {
            format!(
                "{address} can be reached from other machines, and neither token nor data are encrypted: use loopback and an SSH tunnel"
            )
        })
    }

    /// Answers until the process is interrupted.
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

/// Waits for Ctrl-C or the signal to terminate.
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        // No signal will come: then it serves for ever.
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

/// Sixteen random bytes as text.
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
