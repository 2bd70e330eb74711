//! State shared by all requests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;

/// State shared by all requests.
pub(crate) struct Site {
    /// Absolute path of the folder of the store.
    pub folder: PathBuf,
    /// Absolute path of the folder of kernels and snapshots.
    pub cache: PathBuf,
    /// Path of the program that runs and resumes campaigns.
    pub program: PathBuf,
    /// Secret in the forms of this server process.
    pub key: String,
    /// Token of this server process, which every request must contain.
    pub token: String,
    /// The address on which the server listens.
    pub address: SocketAddr,
    /// Results of campaigns by identity, kept so that a page does not compute them again.
    pub answers: Mutex<Answers>,
}

/// Results of campaigns by identity. A value is the number of trials in the result, and the result as HTML.
pub(crate) type Answers = HashMap<String, (usize, String)>;
