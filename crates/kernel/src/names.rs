//! Names of the files in the folder of a cached kernel.

/// Name of the boot image.
pub const IMAGE: &str = "image";
/// Name of the file with the kernel's build configuration.
pub const CONFIG: &str = "config";
/// Name of the folder with the modules. Its layout is that of `/lib/modules/RELEASE`.
pub const MODULES: &str = "modules";
/// Name of the file with the kernel's description. The digest of a kernel does not include this file.
pub const FACTS: &str = "kernel.json";
/// Name of the file with the code that a patch changed. The digest of a kernel does not include this file.
pub const CHANGED: &str = "changed.json";
