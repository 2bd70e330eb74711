//! Names of the files in a kernel's folder.

/// Name of the boot image.
pub const IMAGE: &str = "image";
/// Name of the build configuration.
pub const CONFIG: &str = "config";
/// Name of the folder of modules, which has the layout of `/lib/modules/RELEASE`.
pub const MODULES: &str = "modules";
/// Name of the file with the kernel's description, which the kernel's digest does not cover.
pub const FACTS: &str = "kernel.json";
