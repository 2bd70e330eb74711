//! The scenarios, one file for each.

pub(crate) mod alloc;
pub(crate) mod contswap;
pub(crate) mod fault;
pub(crate) mod filecopy;
pub(crate) mod highalloc;
pub(crate) mod kv;
pub(crate) mod launches;
pub(crate) mod neighbours;
pub(crate) mod patterns;
pub(crate) mod proactive;
pub(crate) mod program;
pub(crate) mod swapbench;
pub(crate) mod usemem;
pub(crate) mod workload;
