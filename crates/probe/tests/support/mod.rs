//! A small workload under real memory pressure: a memory cgroup (version 1) with a limit and a swap file.
//!
//! Everything is undone on drop, even after a panic. If a run is killed, the next run removes what it left.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pagetide_host::ForeignUse;
use pagetide_probe::ProbeError;
use pagetide_probe::trace::{Capture, TraceFile};
use pagetide_quantity::Nanos;

const MEMORY: &str = "/sys/fs/cgroup/memory";
const PREFIX: &str = "pagetide-probe-";
/// Environment variable of the child that touches memory. Holds the cgroup to join, the size in MiB and the number of
/// passes.
const WORKLOAD: &str = "PAGETIDE_PROBE_WORKLOAD";

/// Environment variable of a child that enables and disables events between its passes. Holds the directory of the
/// instance.
const TOGGLED: &str = "PAGETIDE_PROBE_TOGGLED";

/// A cgroup with a memory limit, and a swap file.
pub struct Pressure {
    cgroup: PathBuf,
    swap: PathBuf,
}

impl Pressure {
    /// Sets up the limit and swap. Fails with the reason if this machine does not allow it.
    pub fn new(name: &str, limit_mib: u64, swap_mib: u64) -> Result<Self, String> {
        let pressure = Self::without_swap(name, limit_mib, swap_mib)?;
        Self::swap_on(&pressure.swap)?;
        Ok(pressure)
    }

    /// Sets up the limit, and swap on a loop device over the file. Nothing else uses that device. Fails with the reason
    /// if this machine does not allow it.
    #[allow(dead_code)] // Not used by every test program.
    pub fn on_device(name: &str, limit_mib: u64, swap_mib: u64) -> Result<Self, String> {
        let pressure = Self::without_swap(name, limit_mib, swap_mib)?;
        let made = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&pressure.swap)
            .output();
        let made = made.map_err(|e| format!("losetup: {e}"))?;
        let device = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        if !made.status.success() || device.is_empty() {
            return Err("no loop device could be set up".into());
        }
        Self::swap_on(Path::new(&device))?;
        Ok(pressure)
    }

    /// Sets up everything, but does not enable swap.
    fn without_swap(name: &str, limit_mib: u64, swap_mib: u64) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("memory pressure needs root".into());
        }
        let memory = Path::new(MEMORY);
        if !memory.join("memory.limit_in_bytes").exists() {
            return Err("there is no memory cgroup of version 1 on this machine".into());
        }
        let name = format!("{PREFIX}{name}");
        let cgroup = memory.join(&name);
        // The file is next to the test program, in the target directory: on a disk, and never among a user's files.
        let program = std::env::current_exe().map_err(|e| format!("who am I: {e}"))?;
        let swap = program.with_file_name(format!("{name}.swap"));
        let pressure = Self { cgroup, swap };
        pressure.undo();
        fs::create_dir(&pressure.cgroup).map_err(|e| format!("no cgroup could be made: {e}"))?;
        let limit = (limit_mib << 20).to_string();
        fs::write(pressure.cgroup.join("memory.limit_in_bytes"), limit)
            .map_err(|e| format!("the limit could not be set: {e}"))?;
        fs::write(
            &pressure.swap,
            vec![
                0_u8;
                usize::try_from(swap_mib << 20)
                    .expect("the workload of a test is set up as its parent told")
            ],
        )
        .map_err(|e| format!("no swap file could be written: {e}"))?;
        let made = Command::new("mkswap")
            .arg(&pressure.swap)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return Err("mkswap is missing or refused the file".into());
        }
        Ok(pressure)
    }

    fn swap_on(area: &Path) -> Result<(), String> {
        let path = c_path(area);
        // SAFETY: the path is a valid C string for the duration of the call.
        let swapped = unsafe { libc::swapon(path.as_ptr(), 0) };
        if swapped == 0 {
            Ok(())
        } else {
            let error = std::io::Error::last_os_error();
            Err(format!("swapon {}: {error}", area.display()))
        }
    }

    /// Starts a child in the cgroup that writes `mib` of memory `passes` times. The calling test program must have
    /// [`workload`] among its tests.
    #[allow(dead_code)] // Not used by every test program.
    pub fn start(&self, mib: u64, passes: u64) -> Child {
        self.start_under(&[], mib, passes)
    }

    /// Starts the child of [`Self::start`] under a program that runs the command in its last arguments.
    #[allow(dead_code)] // Not used by every test program.
    pub fn start_under(&self, program: &[&str], mib: u64, passes: u64) -> Child {
        let own = std::env::current_exe().expect("a running program has a path");
        let own = own.to_str().expect("the target directory has a plain name");
        let line = [
            program,
            &[own, "--ignored", "--exact", "workload", "--nocapture"],
        ]
        .concat();
        Command::new(line[0])
            .args(&line[1..])
            .arg("--test-threads=1")
            .env(
                WORKLOAD,
                format!("{}:{mib}:{passes}", self.cgroup.display()),
            )
            .stdout(Stdio::piped())
            .spawn()
            .expect("the workload can be started")
    }

    /// Starts the child of [`Self::start`], which also enables and disables the events of an instance: of every four
    /// passes, the first and the fourth run with events, the others without. The child prints the time of each pass;
    /// see [`passes`].
    #[allow(dead_code)] // Only the measurement of overhead needs it.
    pub fn start_toggling(&self, instance: &Path, mib: u64, passes: u64) -> Child {
        let own = std::env::current_exe().expect("a running program has a path");
        Command::new(own)
            .env(
                WORKLOAD,
                format!("{}:{mib}:{passes}", self.cgroup.display()),
            )
            .env(TOGGLED, instance)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the workload can be started")
    }

    /// Makes the workload wait, instead of being killed, if its cgroup is full and nothing can be reclaimed at that
    /// moment (all pages are being written to swap). Source: kernel `Documentation/admin-guide/cgroup-v1/memory.rst`,
    /// OOM control.
    #[allow(dead_code)] // Only the measurement of overhead needs it.
    pub fn wait_when_full(&self) -> Result<(), String> {
        fs::write(self.cgroup.join("memory.oom_control"), "1")
            .map_err(|e| format!("the cgroup does not let its workload wait for memory: {e}"))
    }

    fn undo(&self) {
        swap_off(&self.swap);
        // Finds the loop devices over the file, of this or of a killed run: `/dev/loop0: [fe00]:123 (/path)`.
        if let Ok(listing) = Command::new("losetup").arg("-j").arg(&self.swap).output() {
            for line in String::from_utf8_lossy(&listing.stdout).lines() {
                if let Some((device, _)) = line.split_once(':') {
                    swap_off(Path::new(device));
                    let _ = Command::new("losetup").args(["-d", device]).status();
                }
            }
        }
        let _ = fs::remove_file(&self.swap);
        for _ in 0..50 {
            if fs::remove_dir(&self.cgroup).is_ok() || !self.cgroup.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes())
        .expect("the workload of a test is set up as its parent told")
}

fn swap_off(area: &Path) {
    // The last pages of a process that has just ended take a moment. Pages of other processes are read back only where
    // there is room for them, because it could kill these processes.
    let device = area.display().to_string();
    for _ in 0..100 {
        if ForeignUse::of(&device, None).allows_switching_off() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let foreign = ForeignUse::of(&device, None);
    if !foreign.allows_switching_off() {
        eprintln!("{device} stays on: other processes have pages in it, {foreign:?}");
        return;
    }
    let path = c_path(area);
    // SAFETY: the path is a valid C string for the duration of the call; an area that is not in use is refused.
    unsafe { libc::swapoff(path.as_ptr()) };
}

impl Drop for Pressure {
    fn drop(&mut self) {
        self.undo();
    }
}

/// CPU accounting of a finished child process.
#[allow(dead_code)] // Not every test program uses every field.
pub struct Measured {
    /// Thread ID of the thread that touched the memory.
    pub pid: u32,
    /// Process ID of that thread's process.
    pub process: u32,
    pub begin: Nanos,
    pub end: Nanos,
    pub user: Nanos,
    pub system: Nanos,
}

/// One pass of a child that switches events on and off.
#[allow(dead_code)] // Only the measurement of overhead needs it.
#[derive(Clone, Copy)]
pub struct Pass {
    pub traced: bool,
    pub elapsed: Nanos,
    pub cpu: Nanos,
}

/// Waits for a child and returns its output; `None` if the child was killed. In about one of several hundred passes, a
/// memory cgroup this small finds nothing to reclaim, because all its pages are being written to swap.
#[allow(dead_code)] // Not used by every test program.
pub fn printed(child: Child) -> Option<String> {
    /// Exit code with which a wrapper program reports that the child was killed.
    const TOLD: i32 = 128 + libc::SIGKILL;
    let output = child.wait_with_output().expect("a child can be waited for");
    if output.status.signal() == Some(libc::SIGKILL) || output.status.code() == Some(TOLD) {
        return None;
    }
    assert!(output.status.success(), "{}", output.status);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a test, which returns `None` if its workload was killed. In that case the test is repeated, a few times at
/// most.
#[allow(dead_code)] // Only tests need it.
pub fn unless_killed(test: impl Fn() -> Option<()>) {
    let tries = 4;
    assert!(
        (0..tries).any(|_| test().is_some()),
        "the workload was killed for lack of memory {tries} times"
    );
}

/// Waits for a child that switches events on and off. Returns its passes and true if the child was killed; then the
/// passes are those before its death. The child is killed after `patience`, or as soon as `stopped` returns true.
#[allow(dead_code)] // Only the measurement of overhead needs it.
pub fn passes(
    mut child: Child,
    patience: Duration,
    stopped: &dyn Fn() -> bool,
) -> (Vec<Pass>, bool) {
    let began = Instant::now();
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if began.elapsed() > patience || stopped() {
            // The child waits for memory that nothing frees, or the measurement was stopped.
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("a child can be waited for");
    let killed = !output.status.success();
    let passes = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("pass ")?.split(' ');
            Some(Pass {
                traced: words.next()? == "traced",
                elapsed: Nanos(words.next()?.parse().ok()?),
                cpu: Nanos(words.next()?.parse().ok()?),
            })
        })
        .collect();
    (passes, killed)
}

/// Enables or disables the events of an instance one by one, in the order in which they were enabled.
fn toggle(instance: &Path, on: bool) {
    for event in pagetide_probe::meaning::RECLAIM_EVENTS {
        let file = format!("events/{}/{}/enable", event.system, event.name);
        // Some kernels do not have some of the events.
        let _ = fs::write(instance.join(file), if on { "1" } else { "0" });
    }
}

/// Waits for the child's task that touches memory, and returns its accounting; `None` if the child was killed.
#[allow(dead_code)] // Not used by every test program.
pub fn measured(child: Child) -> Option<Measured> {
    let text = printed(child)?;
    let line = text
        .lines()
        .find_map(|line| line.split_once("measured "))
        .expect("the workload of a test is set up as its parent told")
        .1;
    let mut numbers = line.split(' ').map(|word| {
        word.parse::<u64>()
            .expect("the workload of a test is set up as its parent told")
    });
    let mut next = || {
        numbers
            .next()
            .expect("the workload of a test is set up as its parent told")
    };
    Some(Measured {
        process: u32::try_from(next())
            .expect("the workload of a test is set up as its parent told"),
        pid: u32::try_from(next()).expect("the workload of a test is set up as its parent told"),
        begin: Nanos(next()),
        end: Nanos(next()),
        user: Nanos(next()),
        system: Nanos(next()),
    })
}

/// Current time on the trace's clock.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec).expect("the workload of a test is set up as its parent told")
        * 1_000_000_000
        + u64::try_from(time.tv_nsec).expect("the workload of a test is set up as its parent told")
}

/// CPU time stolen by a hypervisor since boot. It is read from `/proc/stat`, whose unit is a hundredth of a second.
#[allow(dead_code)] // Not used by every test program.
pub fn stolen() -> Nanos {
    let stat = fs::read_to_string("/proc/stat").expect("Linux has /proc/stat");
    let ticks = stat.split_whitespace().nth(8).map(str::parse::<u64>);
    let ticks = ticks.expect("the first line has ten columns");
    Nanos(ticks.expect("which are numbers") * 10_000_000)
}

/// User and system time of this thread in nanoseconds.
fn cpu_times() -> (u64, u64) {
    // SAFETY: all bits zero are a valid `rusage`, and the pointer is to a live one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    let nanos = |time: libc::timeval| {
        u64::try_from(time.tv_sec).expect("the workload of a test is set up as its parent told")
            * 1_000_000_000
            + u64::try_from(time.tv_usec)
                .expect("the workload of a test is set up as its parent told")
                * 1000
    };
    (nanos(usage.ru_utime), nanos(usage.ru_stime))
}

/// True if this process was started by [`Pressure::start`].
#[allow(dead_code)] // Tests are selected by name; programs need this.
pub fn is_child() -> bool {
    std::env::var_os(WORKLOAD).is_some()
}

/// Runs as the child process of [`Pressure::start`].
pub fn workload() {
    let order = std::env::var(WORKLOAD).expect("started by another test");
    let mut parts = order.rsplitn(3, ':');
    let passes: u64 = parts
        .next()
        .expect("the workload of a test is set up as its parent told")
        .parse()
        .expect("the workload of a test is set up as its parent told");
    let mib: usize = parts
        .next()
        .expect("the workload of a test is set up as its parent told")
        .parse()
        .expect("the workload of a test is set up as its parent told");
    let cgroup = Path::new(
        parts
            .next()
            .expect("the workload of a test is set up as its parent told"),
    );
    fs::write(cgroup.join("cgroup.procs"), std::process::id().to_string())
        .expect("the workload of a test is set up as its parent told");
    let (begin, (user, system)) = (now(), cpu_times());
    let mut memory = vec![0_u8; mib << 20];
    let instance = std::env::var_os(TOGGLED).map(PathBuf::from);
    for pass in 0..passes {
        let traced = matches!(pass % 4, 0 | 3);
        if let Some(instance) = &instance {
            toggle(instance, traced);
        }
        let (pass_begin, before) = (now(), cpu_times());
        for page in memory.chunks_mut(4096) {
            page[0] = page[0].wrapping_add(
                u8::try_from(pass % 250)
                    .expect("the workload of a test is set up as its parent told")
                    + 1,
            );
            page[4095] = page[0] ^ 0x5a;
        }
        if instance.is_some() {
            let (elapsed, after) = (now() - pass_begin, cpu_times());
            let cpu = after.0 + after.1 - before.0 - before.1;
            let name = if traced { "traced" } else { "plain" };
            println!("pass {name} {elapsed} {cpu}");
        }
    }
    std::hint::black_box(&memory);
    let (end, (user_after, system_after)) = (now(), cpu_times());
    println!(
        "measured {} {} {begin} {end} {} {}",
        std::process::id(),
        rustix::thread::gettid().as_raw_nonzero(),
        user_after - user,
        system_after - system
    );
}

/// A capture whose buffers a thread reads continuously. Drop ends the thread and removes the instance.
pub struct Background {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Capture, ProbeError>>>,
}

impl Background {
    /// Starts a thread that reads the capture every `interval`.
    pub fn new(mut capture: Capture, interval: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Acquire) {
                capture.drain()?;
                std::thread::park_timeout(interval);
            }
            Ok(capture)
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// Stops recording and returns the trace.
    pub fn finish(mut self) -> Result<TraceFile, ProbeError> {
        self.join().expect("the thread is joined once")?.finish()
    }

    fn join(&mut self) -> Option<Result<Capture, ProbeError>> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.join();
    }
}
