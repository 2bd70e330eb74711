//! Handles Ctrl-C. The first signal stops running work in an orderly way; the second one ends the program at once. Work
//! that does not stop in time is killed. A kill loses nothing, because files are replaced atomically and emulators end
//! with their parent.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// Number of the last signal received; 0 if none was received.
static CAME: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
/// Time that an orderly stop may take. The documentation promises users two seconds.
const ORDERLY: Duration = Duration::from_millis(1500);

/// A flag that is set when the user asks to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the signal handlers. After this, the program ends within two seconds of the first signal.
    pub fn listen() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut signals, told) = UnixStream::pair()?;
        // Under nohup, the program must outlive the terminal.
        let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
            // Because of this order, the first signal finds the flag unset and sets it. The second signal finds it set
            // and ends the program.
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
                    // Errors are ignored, because standard error may be closed.
                    let _ = writeln!(
                        io::stderr(),
                        "pagetide: stopped: what is stored stays, and the same command goes on from here"
                    );
                    // The kernel kills the children of this process together with it, but not the children of the
                    // children.
                    pagetide_system::child::kill_all();
                    low_level::exit(code().map_or(code_of(SIGTERM), i32::from));
                }
            })?;
        Ok(Self(stop))
    }

    /// True if the user has asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the flag that is set when the user asks to stop.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Returns the exit code after a signal, in the convention of shells: 128 + signal.
const fn code_of(signal: i32) -> i32 {
    128 + signal
}

/// Returns the exit code if a signal stopped the work; `None` if no signal was received.
pub fn code() -> Option<u8> {
    let came = CAME.get()?.load(Ordering::Relaxed);
    let signal = i32::try_from(came).ok().filter(|signal| *signal > 0)?;
    u8::try_from(code_of(signal)).ok()
}

/// True if the signal was already ignored when the program started. Source: proc_pid_status(5), `SigIgn`.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
