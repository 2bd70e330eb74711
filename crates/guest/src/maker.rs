//! Creates a file system by running a program from a Debian package, such as `mkfs.xfs`. The program runs in the guest,
//! where the clock and all random numbers are the same for every boot, so that the resulting device is always the same.

use std::fs::{self, File};
use std::io;
use std::process::{Command, Stdio};

use crate::error::{GuestError, io};
use crate::spec::{MAKER_FOLDER, MAKER_LOADER, MakerSpec};

/// Creates the file system on a device, and deletes the program from the initial file system.
pub fn run(maker: &MakerSpec, device: &str) -> Result<(), GuestError> {
    let fault = |e| io("making the file system on", device)(e);
    let said = format!("{MAKER_FOLDER}/said");
    let log = File::create(&said).map_err(fault)?;
    let (name, options) = match maker.words.split_first() {
        Some((name, options)) => (name.as_str(), options),
        None => return Err(fault(io::Error::other("no program is named"))),
    };
    let status = Command::new(format!("{MAKER_FOLDER}/{MAKER_LOADER}"))
        .args(["--library-path", MAKER_FOLDER])
        .arg(format!("{MAKER_FOLDER}/{name}"))
        .args(options)
        .arg(device)
        .env_clear()
        // mkfs.xfs requires at least 300 MB except on a test device; a simulated disk may be smaller.
        .envs(["TEST_DIR", "TEST_DEV", "QA_CHECK_FS"].map(|name| (name, "1")))
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(fault)?)
        .stderr(log)
        .status()
        .map_err(fault)?;
    if !status.success() {
        let text = fs::read_to_string(&said).unwrap_or_default();
        // The lines after the first explain the usage.
        let first = text.lines().find(|line| !line.trim().is_empty());
        let why = format!("{name} said `{}` ({status})", first.unwrap_or_default());
        return Err(fault(io::Error::other(why)));
    }
    fs::remove_dir_all(MAKER_FOLDER).map_err(io("removing", MAKER_FOLDER))
}
