//! Loads kernel modules in the order given by the controller.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use pagetide_harness::log;

use crate::error::{GuestError, io};
use crate::spec::ModuleSpec;

/// Loads all modules and deletes their files, because the files would use memory of the workload.
pub fn load(modules: &[ModuleSpec]) -> Result<(), GuestError> {
    for module in modules {
        let file = File::open(&module.file).map_err(io("opening module", &module.file))?;
        let params = CString::new(module.params.as_str()).unwrap_or_default();
        // SAFETY: the descriptor is open and the parameters are a C string that lives through the call.
        let status =
            unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), params.as_ptr(), 0) };
        if status != 0 {
            let source = io::Error::last_os_error();
            if source.raw_os_error() != Some(libc::EEXIST) {
                return Err(GuestError::Module {
                    name: module.name.clone(),
                    params: module.params.clone(),
                    source,
                    log: log::tail(400),
                });
            }
        }
        drop(file);
        let _ = std::fs::remove_file(&module.file);
    }
    Ok(())
}
