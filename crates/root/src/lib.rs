//! The root of a user's program: the content of the program's file system, and the image of it for the guest.
//!
//! A [`Tree`] lists folders, files and links by their path inside the root. [`Host`] adds programs of this machine with
//! their libraries, and data. [`Roots`] makes an ext4 image of a tree once, and caches it under a digest of everything
//! that the image depends on. Nothing in a root is run on this machine, and no link of a root is followed on this
//! machine.
//!
//! This crate does not depend on emulators, guests or trials. Start reading in [`Contents`], then [`Tree`] and
//! [`Host`].

mod archive;
mod code;
mod contents;
mod elf;
mod error;
mod host;
mod image;
mod inodes;
mod libraries;
mod loader;
mod members;
mod oci;
mod path;
mod program;
mod reader;
mod resident;
mod roots;
mod runtime;
mod shim;
mod skeleton;
mod tool;
mod tree;

use pagetide_quantity::Bytes;

pub use code::{CodeFile, CodeSegment, CodeSymbol};
pub use contents::{Contents, Installation};
pub use error::RootError;
pub use host::Host;
pub use path::RootPath;
pub use reader::{ImageEntry, ImageKind};
pub use roots::{Root, Roots};
pub use tool::Tool;
pub use tree::{Entry, Source, Tree};

/// Default working directory of the program inside the root. The program owns it, and relative paths refer to it.
pub const WORK: &str = "/work";
/// Minimum free space for files that the program writes, unless the user asks for another size.
const MIN_SPACE: Bytes = Bytes::from_mib(32);
/// ID of the user and of the group that run the program.
pub const USER: u32 = 1000;
