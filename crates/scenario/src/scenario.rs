//! One file per scenario.

pub(crate) mod alloc;
pub(crate) mod contswap;
pub(crate) mod fault;
pub(crate) mod filecopy;
pub(crate) mod patterns;
pub(crate) mod swapbench;
pub(crate) mod usemem;
