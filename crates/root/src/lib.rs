//! The root of a user's program: what its file system holds, and the image that a guest is given.
//!
//! A [`Tree`] lists folders, files and links by their path inside. [`Host`] adds programs of this machine with the libraries they
//! need, and data. [`Roots`] makes an ext4 image of a tree, once, and keeps it in the cache under a digest of all that the image
//! depends on. Nothing of a root is ever run on this machine, and no link of a root is followed here.
//!
//! This crate knows nothing of emulators, guests and trials. Begin reading in [`Contents`], then [`Tree`] and [`Host`].

mod archive;
mod contents;
mod elf;
mod error;
mod host;
mod image;
mod inodes;
mod libraries;
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

pub use contents::{Contents, Installation};
pub use error::RootError;
pub use host::Host;
pub use path::RootPath;
pub use reader::{ImageEntry, ImageKind};
pub use roots::{Root, Roots};
pub use tool::Tool;
pub use tree::{Entry, Source, Tree};

/// Folder inside in which relative paths lie, which belongs to the program, and in which it starts.
pub const WORK: &str = "/work";
/// The least free space that a program finds, unless another is asked for.
const LEAST_SPACE: Bytes = Bytes::from_mib(32);
/// User and group that the program runs as.
pub const USER: u32 = 1000;
