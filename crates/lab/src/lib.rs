//! Everything between the user's request and trials that can run: campaigns, kernels, programs and arenas.
//!
//! This crate knows all names that users may give and all available arenas. It builds kernels from source, and collects
//! the files of a user's program. It does not depend on verdicts or command lines: the caller supplies folders and the
//! receiver of messages. Start reading in [`Lab`].

pub mod arenas;
mod bisect;
mod building;
mod case;
mod disassembly;
pub mod emulators;
mod error;
mod interrupt;
mod lab;
mod needs;
mod program;
mod question;
mod recorded;
mod room;
mod slurm;
mod stage;
mod vocabulary;

pub use bisect::BisectPlan;
pub use building::Builds;
pub use case::{CaseError, case_in_c};
pub use disassembly::{disassembly, hex};
pub use error::LabError;
pub use interrupt::{Interrupt, code as interrupt_code};
pub use lab::{Lab, Say};
pub use pagetide_host::serve_if_asked;
pub use pagetide_system::limits::file_size_is_an_error;
pub use question::{KnownReferences, QuestionError, ReferencesQuestion};
pub use recorded::RecordedStringError;
pub use slurm::Slurm;
pub use stage::stage;
pub use vocabulary::{facts, vocabulary};
