//! A flag that cancels fetching and unpacking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::KernelError;

/// A flag that cancels fetching and unpacking when set. Cloning and checking it is cheap. The default value is never
/// set.
#[derive(Clone, Debug, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// Creates a stop flag that is set while `flag` is true.
    pub fn by(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
    }

    /// Returns true if the flag is set.
    pub fn is_set(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Fails with [`KernelError::Stopped`] if the flag is set.
    pub fn check(&self) -> Result<(), KernelError> {
        if self.is_set() {
            Err(KernelError::Stopped)
        } else {
            Ok(())
        }
    }
}
