//! Simulated solid-state disks: the kernel's null_blk driver, configured and then verified.
//!
//! Some drivers ignore their parameters: an older null_blk has no parameter for memory, and a built-in driver only
//! reads the command line. Such a disk loses its data and completes at once, so every trial on it would be wrong
//! without notice. So disks that the parameters did not configure are created through configfs. Each disk must then
//! return the data written to it, after the configured latency.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pagetide_harness::swap::present;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_system::clock::monotonic;
use pagetide_system::idle::Timers;

use crate::error::{GuestError, io};
use crate::mount::mount;
use crate::spec::SsdSpec;

/// Folder in sysfs with the parameters of the driver.
const PARAMETERS: &str = "/sys/module/null_blk/parameters";
/// Mount point of configfs, where creating a folder creates a kernel object.
const CONFIGFS: &str = "/sys/kernel/config";
/// Number of the first disk created through configfs. It is high, because the driver may have created `nullb0` itself.
const FIRST: u32 = 64;
/// Number, counted from [`FIRST`], of the first disk that [`one`] starts.
const MORE: u32 = 16;
/// Maximum time that reading a page may take in addition to the disk's latency. The kernel itself needs some 20 us.
const WAY: Nanos = Nanos::from_micros(250);
/// Maximum time that reading a page may take in addition to the disk's latency if timers fire only at ticks. The guest
/// warns about such kernels.
const WAY_COARSE: Nanos = Nanos::from_micros(25_000);
/// Maximum time that reading a page may take in addition to the disk's latency on several CPUs. Until the guest is
/// ready, their turns are as long as the time until the next timer (`turns.rs`), and the reading CPU waits for its turn.
const WAY_WITHOUT_TURNS: Nanos = WAY_COARSE;
/// Maximum time beyond the disk's latency that reading a page may take in real time, when the host is busy.
const WAY_IN_REAL_TIME: Nanos = Nanos::from_secs(10);
/// True if time passes as on the host instead of by instructions.
static REAL_TIME: AtomicBool = AtomicBool::new(false);
/// True if several CPUs run, whose turns do not have their stated length yet.
static SEVERAL_CPUS: AtomicBool = AtomicBool::new(false);
/// Number of timed reads for verification. The fastest one counts.
const REQUESTS: usize = 3;
/// Byte that is written to a disk for verification.
const MARK: u8 = 0xa5;
/// A buffer of one page, aligned as required for direct I/O.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Accepts reads that take longer than the disk's latency because the host is busy.
pub fn in_real_time() {
    REAL_TIME.store(true, Ordering::Relaxed);
}

/// Accepts reads that take longer than the disk's latency because other CPUs run meanwhile.
pub fn beside_other_cpus() {
    SEVERAL_CPUS.store(true, Ordering::Relaxed);
}

/// Starts the simulated disks, verifies them and returns the paths of their devices.
pub fn start(spec: &SsdSpec) -> Result<Vec<String>, GuestError> {
    let is_told = is_told(Path::new(PARAMETERS), spec.latency);
    if !is_told || spec.other.is_some() {
        mount("configfs", CONFIGFS, "configfs", "")?;
    }
    let mut devices = Vec::new();
    for number in 0..spec.devices {
        let device = if is_told {
            format!("/dev/nullb{number}")
        } else {
            through_configfs(number, spec.size, spec.latency)?
        };
        devices.push((device, spec.latency));
    }
    if let Some(latency) = spec.other {
        let device = through_configfs(spec.devices, spec.size, latency)?;
        devices.push((device, latency));
    }
    for (device, latency) in &devices {
        verify(device, *latency)?;
    }
    Ok(devices.into_iter().map(|(device, _)| device).collect())
}

/// Starts a simulated disk with its own size and latency, verifies it, and returns the path of its device. `number` is
/// the number of disks that this function has already started.
pub fn one(number: u32, size: Bytes, latency: Nanos) -> Result<String, GuestError> {
    if !Path::new(CONFIGFS).join("nullb").exists() {
        mount("configfs", CONFIGFS, "configfs", "")?;
    }
    let device = through_configfs(MORE + number, size, latency)?;
    verify(&device, latency)?;
    Ok(device)
}

/// Fails unless a device returns the data that was written to it, and takes its latency to do so.
fn verify(device: &str, latency: Nanos) -> Result<(), GuestError> {
    let way = if REAL_TIME.load(Ordering::Relaxed) {
        WAY_IN_REAL_TIME
    } else if SEVERAL_CPUS.load(Ordering::Relaxed) {
        WAY_WITHOUT_TURNS
    } else if Timers::now().are_fine() {
        WAY
    } else {
        WAY_COARSE
    };
    present(device)?;
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(device)
        .map_err(io("opening", device))?;
    prove(&file, device, latency, way)
}

/// Returns true if the driver's parameters in sysfs have the requested values: data stored in memory, and this latency.
fn is_told(parameters: &Path, latency: Nanos) -> bool {
    let reads = |name: &str, value: &str| {
        fs::read_to_string(parameters.join(name)).is_ok_and(|text| text.trim() == value)
    };
    reads("memory_backed", "Y") && reads("completion_nsec", &latency.0.to_string())
}

/// Creates a disk through configfs and returns the path of its device. Source: kernel `drivers/block/null_blk/main.c`,
/// `nullb_device_attrs`.
fn through_configfs(number: u32, size: Bytes, latency: Nanos) -> Result<String, GuestError> {
    let name = format!("nullb{}", FIRST + number);
    let folder = format!("{CONFIGFS}/nullb/{name}");
    fs::create_dir(&folder).map_err(io(
        "making a disk by null_blk, which ignores its parameters, as",
        folder.as_str(),
    ))?;
    let mib = size.0.div_ceil(1 << 20).max(1);
    for (file, value) in [
        ("size", mib),
        ("memory_backed", 1),
        ("irqmode", 2),
        ("completion_nsec", latency.0),
        ("queue_mode", 2),
        ("submit_queues", 1),
        ("hw_queue_depth", 64),
        ("power", 1),
    ] {
        let path = format!("{folder}/{file}");
        fs::write(&path, value.to_string()).map_err(io("setting", format!("{path} to {value}")))?;
    }
    // Newer kernels name the device like the folder, older ones number it.
    let named = format!("/dev/{name}");
    if Path::new(&named).exists() {
        return Ok(named);
    }
    let path = format!("{folder}/index");
    let index = fs::read_to_string(&path).map_err(io("reading", path.as_str()))?;
    Ok(format!("/dev/nullb{}", index.trim()))
}

/// Verifies a disk. Fails unless the disk returns the data written to it, after at least `latency` and at most `latency
/// + way`.
fn prove(file: &File, device: &str, latency: Nanos, way: Nanos) -> Result<(), GuestError> {
    let fault = |error: io::Error| io("proving", device)(error);
    let is_false = |what: String| GuestError::FalseDisk {
        device: device.to_owned(),
        what,
    };
    file.write_all_at(&Page([MARK; 4096]).0, 0).map_err(fault)?;
    let mut quickest = Nanos(u64::MAX);
    for _ in 0..REQUESTS {
        let mut page = Page([0; 4096]);
        let began = monotonic();
        file.read_exact_at(&mut page.0, 0).map_err(fault)?;
        quickest = quickest.min(monotonic().saturating_sub(began));
        if page.0.iter().any(|byte| *byte != MARK) {
            return Err(is_false("forgets what is written to it".to_owned()));
        }
    }
    if quickest < latency || quickest.saturating_sub(latency) > way {
        return Err(is_false(format!(
            "answers after {quickest} instead of {latency}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(file: &File, latency: Nanos, way: Nanos) -> String {
        prove(file, "/dev/nullb0", latency, way)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_disk_must_remember_and_take_its_time() {
        let remembers = tempfile::tempfile().unwrap();
        let long = Nanos::from_secs(60);
        prove(&remembers, "file", Nanos(0), long).unwrap();
        // A file is faster than a second, and never takes zero time.
        let why = refused(&remembers, Nanos::from_secs(1), long);
        assert!(
            why.contains("/dev/nullb0 answers after") && why.contains("instead of 1 s"),
            "{why}"
        );
        let why = refused(&remembers, Nanos(0), Nanos(0));
        assert!(why.contains("answers after"), "{why}");
        let forgets = File::options()
            .read(true)
            .write(true)
            .open("/dev/zero")
            .unwrap();
        let why = refused(&forgets, Nanos(0), long);
        assert!(
            why.contains("/dev/nullb0 forgets what is written to it"),
            "{why}"
        );
        assert!(!why.contains('\n') && why.contains("CONFIG_BLK_DEV_NULL_BLK=m"));
    }

    #[test]
    fn parameters_that_did_not_arrive_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let latency = Nanos::from_micros(80);
        assert!(!is_told(folder.path(), latency));
        let set = |name: &str, value: &str| fs::write(folder.path().join(name), value).unwrap();
        set("completion_nsec", "80000\n");
        // An older driver has no parameter for memory.
        assert!(!is_told(folder.path(), latency));
        set("memory_backed", "N\n");
        assert!(!is_told(folder.path(), latency));
        set("memory_backed", "Y\n");
        assert!(is_told(folder.path(), latency));
        assert!(!is_told(folder.path(), Nanos::from_micros(10)));
    }
}
