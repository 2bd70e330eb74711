//! Settings and caches that all requests share.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;

/// Settings and caches that all requests share.
pub(crate) struct Site {
    /// Absolute path of the store's folder.
    pub folder: PathBuf,
    /// Absolute path of the cache folder with kernels and snapshots.
    pub cache: PathBuf,
    /// Path of the pagetide program, which is started to resume a campaign.
    pub program: PathBuf,
    /// Secret that forms must send back. It changes with each start of the server.
    pub key: String,
    /// Token that every request must contain, in a cookie or its address. It changes with each start of the server.
    pub token: String,
    /// The address on which the server listens.
    pub address: SocketAddr,
    /// Cached results of campaigns, so that a page need not compute them again.
    pub answers: Mutex<Answers>,
}

/// Cached results by campaign ID: the number of trials that had run, and the result as HTML.
pub(crate) type Answers = HashMap<String, (usize, String)>;
