//! Peak memory that zswap held for compressed pages during a trial.
//!
//! The kernel keeps such a peak for zram (`mem_used_max`), but not for zswap. So the process next to the workload reads
//! the current amount repeatedly. Reading takes about 20 µs of a trial's time for each [`INTERVAL`].

use std::path::Path;

use pagetide_probe::ProbeError;
use pagetide_probe::text::TextFile;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_system::{Syntax, meminfo};

/// Interval between two reads, in the trial's time.
pub const INTERVAL: Nanos = Nanos(50_000_000);
/// Name of the fact with the peak, in bytes.
pub const ZSWAP_PEAK: &str = "zswap-peak";

/// The open source of the amount, and the largest amount read so far.
#[derive(Debug)]
pub struct ZswapPeak {
    file: TextFile,
    most: Bytes,
}

impl ZswapPeak {
    /// Opens the source. Later reads do not allocate.
    pub fn open() -> Result<Self, ProbeError> {
        Ok(Self {
            file: TextFile::open(Path::new(meminfo::PATH), Syntax::KeyColonKib)?,
            most: Bytes(0),
        })
    }

    /// Reads the current amount. An amount that cannot be read is ignored.
    pub fn look(&mut self) {
        if let Ok(counters) = self.file.sample() {
            let now = counters.get("Zswap").unwrap_or(0);
            self.most = self.most.max(Bytes(now));
        }
    }

    /// The largest amount read so far.
    pub fn most(&self) -> Bytes {
        self.most
    }
}
