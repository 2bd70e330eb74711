//! Runs one scenario as a plain process and prints its outcome as JSON, for tests and for a quick look.
//!
//! `run_scenario NAME [--as-written] [--seed N] [--memory SIZE] [--swap SIZE] [--region FILE] [--work-dir DIR]
//! [key=value]…`. The process has a single thread, as scenarios require. A region file is not deleted.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use pagetide_quantity::Bytes;
use pagetide_record::wire::Region;
use pagetide_record::{MemorySpec, Subject};
use pagetide_scenario::{
    Clock, Context, NoPhaseWatch, Surroundings, TrialContext, needs, resolve, run,
};

/// Size of the output region in bytes. A file is sparse until written.
const REGION: u64 = 32 << 20;

fn main() -> std::process::ExitCode {
    match go() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn go() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("name a scenario")?;
    let mut given = BTreeMap::new();
    let mut context = Context {
        memory: Bytes::from_mib(64),
        swap_size: Bytes::from_mib(1024),
        cpus: 1,
    };
    let (mut as_written, mut seed) = (false, 1);
    let (mut region_file, mut work_dir) = (None, std::env::temp_dir());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("an option lacks its value");
        match argument.as_str() {
            "--as-written" => as_written = true,
            "--seed" => seed = value()?.parse()?,
            "--memory" => context.memory = value()?.parse()?,
            "--swap" => context.swap_size = value()?.parse()?,
            "--region" => region_file = Some(PathBuf::from(value()?)),
            "--work-dir" => work_dir = PathBuf::from(value()?),
            other => {
                let (key, value) = other
                    .split_once('=')
                    .ok_or("write parameters as key=value")?;
                given.insert(key.to_owned(), value.to_owned());
            }
        }
    }
    let params = resolve(&name, as_written, None, &given, &context)?;
    let subject = Subject {
        scenario: name,
        as_written,
        params,
        seed,
        memory: MemorySpec::Free(context.memory),
        swap_size: context.swap_size,
        ..Subject::default()
    };
    let mut data = Vec::new();
    if let Some(path) = needs(&subject)?.data {
        pagetide_reference::pack_file(&path, pagetide_reference::MAX_PAGES, &mut data)?;
    }
    let region = map(region_file)?;
    let place = TrialContext {
        region,
        clock: Clock::Monotonic,
        work_dir: &work_dir,
        data: &data,
        watch: &mut NoPhaseWatch,
        surroundings: Surroundings::default(),
    };
    let outcome = run(&subject, place);
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    Ok(())
}

/// Maps the output region from a file, or from anonymous memory if `path` is `None`.
fn map(path: Option<PathBuf>) -> Result<Region<'static>, Box<dyn Error>> {
    let size = usize::try_from(REGION)?;
    let (flags, file) = match path {
        Some(path) => {
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(path)?;
            file.set_len(REGION)?;
            (libc::MAP_SHARED, Some(file))
        }
        None => (
            libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            None,
        ),
    };
    let descriptor = file.as_ref().map_or(-1, File::as_raw_fd);
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses the address, so no memory in use is touched.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, flags, descriptor, 0) };
    if base == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: the mapping is page aligned, of this size, and stays until the process ends; no frame was handed out yet.
    let region = unsafe {
        let region = Region::new(base.cast(), size);
        region.format();
        region
    };
    Ok(region)
}
