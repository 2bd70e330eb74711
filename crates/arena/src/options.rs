//! User options that do not change the result of any trial.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pagetide_quantity::Bytes;

/// User options that do not change results. An arena ignores options that do not apply to it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder for kernels and snapshots.
    pub cache: PathBuf,
    /// Maximum total size of snapshots, built kernels, packages and roots; in an opened arena, of the snapshots.
    pub cache_limit: Bytes,
    /// Maximum wall-clock time without progress, after which a trial is ended as a hang.
    pub hang_wall: Duration,
    /// Maximum size of the trace of an observed trial. Later events are lost, and an incomplete trace is not used for
    /// explanations.
    pub trace_limit: Bytes,
    /// Maximum number of concurrent trials; `None` for the arena's default, which is one trial per CPU in the exact
    /// arena, and one trial in the others.
    pub jobs: Option<usize>,
    /// True to query the package archive again for kernels that were resolved before.
    pub refresh: bool,
    /// True if trials in the host arena may apply settings that affect the whole machine.
    pub may_change_machine: bool,
    /// True if the arena vm may run guests in plain emulation, whose times say nothing about a real machine.
    pub emulated: bool,
    /// Flag for stopping: once it is true, work outside of trials ends early, such as fetching a kernel.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Default of the maximum size of the cache (`cache_limit`): 8 GiB.
    pub const CACHE_LIMIT: Bytes = Bytes(8 << 30);

    /// Default of the maximum size of a trace (`trace_limit`): 960 MiB.
    pub const TRACE_LIMIT: Bytes = Bytes(960 << 20);

    /// Default of the maximum wall-clock time without progress (`hang_wall`): one minute.
    pub const HANG_WALL: Duration = Duration::from_mins(1);

    /// Creates default options with this cache folder.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            cache: cache.into(),
            cache_limit: Self::CACHE_LIMIT,
            hang_wall: Self::HANG_WALL,
            trace_limit: Self::TRACE_LIMIT,
            jobs: None,
            refresh: false,
            may_change_machine: false,
            emulated: false,
            stop: Arc::default(),
        }
    }
}
