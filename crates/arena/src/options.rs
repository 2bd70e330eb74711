//! What a user may choose that changes no result.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pagetide_quantity::Bytes;

/// Choices of a user that do not change results. An arena ignores those that mean nothing to it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of kernels and snapshots.
    pub cache: PathBuf,
    /// Total size of snapshots on disk.
    pub cache_limit: Bytes,
    /// End a trial that does not move for this long, wall time.
    pub hang_wall: Duration,
    /// Most that the trace of an observed trial may take; what comes after is lost, and the trial explains nothing.
    pub trace_limit: Bytes,
    /// Most trials side by side; `None` for as many as there are processors.
    pub jobs: Option<usize>,
    /// Ask the package archive again, although the kernels are known.
    pub refresh: bool,
    /// Set by whoever wants no more: what runs outside of trials, such as fetching a kernel, ends as well.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Total size of snapshots on disk, unless chosen otherwise.
    pub const CACHE_LIMIT: Bytes = Bytes(8 << 30);

    /// Most that a trace may take, unless chosen otherwise.
    pub const TRACE_LIMIT: Bytes = Bytes(960 << 20);

    /// How long a trial may stand still, unless chosen otherwise.
    pub const HANG_WALL: Duration = Duration::from_mins(1);

    /// The choices of somebody who made none, with this cache.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            cache: cache.into(),
            cache_limit: Self::CACHE_LIMIT,
            hang_wall: Self::HANG_WALL,
            trace_limit: Self::TRACE_LIMIT,
            jobs: None,
            refresh: false,
            stop: Arc::default(),
        }
    }
}
