//! User options that do not change any result.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pagetide_quantity::Bytes;

/// User options that do not change results. An arena ignores those that do not apply to it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder for kernels and snapshots.
    pub cache: PathBuf,
    /// Limit for the total size of snapshots on disk.
    pub cache_limit: Bytes,
    /// A trial without progress for this long, in wall-clock time, is ended as a hang.
    pub hang_wall: Duration,
    /// Limit for the trace of an observed trial. Later events are lost, and the trace of that trial is then not used
    /// for explanations.
    pub trace_limit: Bytes,
    /// Limit for concurrent trials; `None` for one per processor.
    pub jobs: Option<usize>,
    /// Query the package archive again even if the kernels are known.
    pub refresh: bool,
    /// Set to true to stop work outside of trials, such as fetching a kernel.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Default for `cache_limit`.
    pub const CACHE_LIMIT: Bytes = Bytes(8 << 30);

    /// Default for `trace_limit`.
    pub const TRACE_LIMIT: Bytes = Bytes(960 << 20);

    /// Default for `hang_wall`.
    pub const HANG_WALL: Duration = Duration::from_mins(1);

    /// Default options with this cache folder.
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
