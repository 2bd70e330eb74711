//! Ctrl-C: the first stops what runs in order, the second ends the program at once. What does not end in order soon is ended
//! all the same: every file is written so that a kill loses nothing, and emulators end with their parent.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// The signal that came last, 0 where none came.
static CAME: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
/// How long it may take to end in order; two seconds are what a user is promised.
const ORDERLY: Duration = Duration::from_millis(1500);

/// Whether the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on. Whatever the program does, it ends within two seconds of the first signal.
    pub fn listen() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut signals, told) = UnixStream::pair()?;
        // Who runs it under nohup wants it to outlive the terminal.
        let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
            // In this order: the first signal finds the flag unset and sets it, the second finds it set and ends.
            flag::register_conditional_shutdown(signal, code_of(signal), Arc::clone(&stop))?;
            let came = CAME.get_or_init(Arc::default);
            flag::register_usize(signal, Arc::clone(came), signal.unsigned_abs() as usize)?;
            flag::register(signal, Arc::clone(&stop))?;
            low_level::pipe::register(signal, told.try_clone()?)?;
        }
        std::thread::Builder::new()
            .name("interrupt".to_owned())
            .spawn(move || {
                if signals.read_exact(&mut [0]).is_ok() {
                    std::thread::sleep(ORDERLY);
                    // Standard error may be closed, or nobody reads it.
                    let _ = writeln!(
                        io::stderr(),
                        "pagetide: stopped: what is stored stays, and the same command goes on from here"
                    );
                    // The kernel ends our children with us, but not theirs.
                    pagetide_system::child::kill_all();
                    low_level::exit(code().map_or(code_of(SIGTERM), i32::from));
                }
            })?;
        Ok(Self(stop))
    }

    /// Whether it has been asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag that is set when it is asked for.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Exit code of what a signal ended, as shells tell it.
const fn code_of(signal: i32) -> i32 {
    128 + signal
}

/// Exit code where the work could not be done because a signal came; `None` where none came.
pub fn code() -> Option<u8> {
    let came = CAME.get()?.load(Ordering::Relaxed);
    let signal = i32::try_from(came).ok().filter(|signal| *signal > 0)?;
    u8::try_from(code_of(signal)).ok()
}

/// Whether a signal is ignored already. Source: proc_pid_status(5), `SigIgn`.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
