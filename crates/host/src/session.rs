//! A session: the time in which a tool may change the machine, from undoing the changes of earlier runs to the end of
//! its guardian.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::change::Left;
use crate::error::HostError;
use crate::guardian::Guardian;
use crate::journal::Journal;
use crate::state::StateFolder;
use crate::sweep::{self, Swept};

/// The right to change the machine. When it is dropped, all changes are undone.
#[derive(Debug)]
pub struct Session {
    journal: Journal,
    guardian: Mutex<Option<Guardian>>,
    program: PathBuf,
}

impl Session {
    /// Undoes what earlier runs left, creates a journal and starts a guardian. The running program must call
    /// [`crate::guardian::serve_if_asked`] at the start of its `main`. Fails if no journal can be written, or if the
    /// guardian cannot be started.
    pub fn start(folder: &StateFolder) -> Result<(Self, Swept), HostError> {
        // `/proc/self/exe` names the running program even if its file was replaced since the start.
        Self::start_with(folder, Path::new("/proc/self/exe"))
    }

    /// Like [`Session::start`], but with `program` as the guardian. It must call [`crate::guardian::serve_if_asked`].
    pub fn start_with(folder: &StateFolder, program: &Path) -> Result<(Self, Swept), HostError> {
        let lock = folder.lock()?;
        let swept = sweep::locked(folder, &lock);
        let journal = Journal::create(folder)?;
        let guardian = Guardian::start(program, &journal).inspect_err(|_| {
            journal.undo_all();
        })?;
        let session = Self {
            journal,
            guardian: Mutex::new(Some(guardian)),
            program: program.to_owned(),
        };
        Ok((session, swept))
    }

    /// Returns the journal of this session.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns the PID of the guardian. If the guardian was killed, starts another one. Must be called before each
    /// trial.
    pub fn guarded(&self) -> Result<u32, HostError> {
        let mut guardian = self.guardian.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guardian) = guardian.as_mut()
            && guardian.is_alive()
        {
            return Ok(guardian.id());
        }
        let new = Guardian::start(&self.program, &self.journal)?;
        Ok(guardian.insert(new).id())
    }

    /// Undoes all changes and stops the guardian. Returns what could not be undone; the next start tries again.
    pub fn end(self) -> Vec<Left> {
        self.finish()
    }

    fn finish(&self) -> Vec<Left> {
        let guardian = self
            .guardian
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(guardian) = guardian else {
            return Vec::new();
        };
        let left = self.journal.undo_all();
        guardian.end();
        left
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What could not be undone stays in the journal.
        self.finish();
    }
}
