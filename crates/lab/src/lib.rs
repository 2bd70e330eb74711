//! The laboratory of a command: everything between the words of a user and trials that can run.
//!
//! It knows which words there are, which arenas, how kernels are built from source and how a user's program gets its files.
//! It knows nothing of verdicts, and nothing of command lines: whoever opens it says where things lie and whom to tell of long
//! steps. Begin reading in [`Lab`].

pub mod arenas;
mod bisect;
mod building;
mod error;
mod interrupt;
mod lab;
mod program;
mod question;
mod room;
mod vocabulary;

pub use bisect::BisectPlan;
pub use building::Builds;
pub use error::LabError;
pub use interrupt::{Interrupt, code as interrupt_code};
pub use lab::{Lab, Say};
pub use pagetide_system::limits::file_size_is_an_error;
pub use question::{KnownReferences, QuestionError, ReferencesQuestion};
pub use vocabulary::{facts, vocabulary};
