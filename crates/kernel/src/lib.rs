//! Kernels: where they come from, how packages are unpacked into the cache, which modules they need.
