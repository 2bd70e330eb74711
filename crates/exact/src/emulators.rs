//! Selects the emulator that runs a trial.
//!
//! A machine with one CPU runs in the installed emulator. Several CPUs need a newer version than some distributions
//! have: before QEMU 8.1, the first CPU keeps its turn until a timer is due, and the other CPUs get no time. If the
//! installed emulator is older, an emulator that was added to the cache is used.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pagetide_kernel::Cache;
use pagetide_record::CpusSpec;

use crate::emulator::{Emulator, Launch};
use crate::error::ExactError;
use crate::lock::locked;

/// Major and minor number of the oldest QEMU that divides time evenly among CPUs. Source: QEMU 8.1,
/// `accel/tcg/tcg-accel-ops-icount.c`, `icount_percpu_budget`.
const OLDEST_FOR_SEVERAL: (u32, u32) = (8, 1);

/// The emulators of this machine, by number of CPUs.
#[derive(Debug)]
pub struct Emulators {
    cache: PathBuf,
    first: Arc<Emulator>,
    /// The emulator for several CPUs; `None` until it is first needed, or if it is the one for a single CPU.
    several: Mutex<Option<Arc<Emulator>>>,
}

impl Emulators {
    /// Finds the emulator for one CPU: the installed one or the one that `PAGETIDE_QEMU` names, or the newest one in the
    /// cache if none is installed and none is named. Fails if there is no emulator.
    pub fn open(cache: &Path) -> Result<Self, ExactError> {
        let first = match Emulator::find() {
            Err(why @ ExactError::NoEmulator { .. }) if Emulator::named().is_none() => {
                added(cache).ok_or(why)?
            }
            found => found?,
        };
        Ok(Self {
            cache: cache.to_owned(),
            first: Arc::new(first),
            several: Mutex::default(),
        })
    }

    /// Returns the emulator for machines with one CPU.
    pub fn first(&self) -> &Emulator {
        &self.first
    }

    /// Returns the emulator for a machine with these CPUs. Fails if no emulator is new enough.
    pub fn of(&self, cpus: CpusSpec) -> Result<Arc<Emulator>, ExactError> {
        if !cpus.are_several() || runs_several(&self.first) {
            return Ok(Arc::clone(&self.first));
        }
        let mut several = locked(&self.several);
        if let Some(emulator) = &*several {
            return Ok(Arc::clone(emulator));
        }
        let found = added(&self.cache).filter(runs_several);
        let emulator = Arc::new(found.ok_or_else(|| ExactError::EmulatorForSeveral {
            cpus: cpus.count,
            version: self.first.version.clone(),
        })?);
        *several = Some(Arc::clone(&emulator));
        Ok(emulator)
    }
}

/// Returns true if this emulator divides time evenly among several CPUs.
pub(crate) fn runs_several(emulator: &Emulator) -> bool {
    emulator
        .numbers()
        .is_some_and(|numbers| numbers >= OLDEST_FOR_SEVERAL)
}

/// Returns the newest emulator of the cache that works; `None` if there is none.
pub fn added(cache: &Path) -> Option<Emulator> {
    let folders = Cache::open(cache).ok()?.emulators();
    let found = folders.iter().filter_map(|folder| {
        let launch = Launch::of(folder)?;
        Emulator::unpacked(launch).ok()
    });
    found.max_by_key(Emulator::numbers)
}
