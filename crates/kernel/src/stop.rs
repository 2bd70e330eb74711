//! Whether whoever asked for a kernel has given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::KernelError;

/// A flag that is set when fetching and unpacking should end. Cheap to clone and to ask; by default it is never set.
#[derive(Clone, Debug, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// Set when this flag is.
    pub fn by(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// An error if it is set.
    pub fn check(&self) -> Result<(), KernelError> {
        if self.is_set() {
            Err(KernelError::Stopped)
        } else {
            Ok(())
        }
    }
}
