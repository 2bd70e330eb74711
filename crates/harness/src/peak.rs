//! Peak memory that zswap held for compressed pages during a trial.
//!
//! The kernel records this peak for zram (`mem_used_max`), but not for zswap. So the process that waits for the
//! workload reads the current amount once every [`INTERVAL`]. Each read takes about 20 µs of the trial's time.

use std::path::Path;

use pagetide_probe::ProbeError;
use pagetide_probe::text::TextFile;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_system::{Syntax, meminfo};

/// Polling interval of the zswap memory, in the trial's time.
pub const INTERVAL: Nanos = Nanos(50_000_000);
/// Name of the fact that contains the peak memory of zswap, in bytes.
pub const ZSWAP_PEAK: &str = "zswap-peak";

/// Peak memory of zswap: the open `/proc/meminfo`, and the largest amount read so far.
#[derive(Debug)]
pub struct ZswapPeak {
    file: TextFile,
    most: Bytes,
}

impl ZswapPeak {
    /// Opens `/proc/meminfo`. Later reads do not allocate.
    pub fn open() -> Result<Self, ProbeError> {
        Ok(Self {
            file: TextFile::open(Path::new(meminfo::PATH), Syntax::KeyColonKib)?,
            most: Bytes(0),
        })
    }

    /// Reads the current memory of zswap and updates the peak. Ignores a failed read.
    pub fn look(&mut self) {
        if let Ok(counters) = self.file.sample() {
            let now = counters.get("Zswap").unwrap_or(0);
            self.most = self.most.max(Bytes(now));
        }
    }

    /// Returns the peak: the largest amount of memory read so far.
    pub fn most(&self) -> Bytes {
        self.most
    }
}
