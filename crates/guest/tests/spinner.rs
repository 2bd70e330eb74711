//! Tests of the spinner in the workload's address space: it shares the memory, has the lowest priority, and ends on
//! request.

use std::fmt::Debug;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagetide_guest::idle::Spinner;

/// Content of a file in `/proc/ID`, such as `maps`.
fn of(id: libc::pid_t, what: &str) -> String {
    fs::read_to_string(format!("/proc/{id}/{what}")).unwrap_or_default()
}

/// State letter of a process: R for running, T for stopped.
fn state(id: libc::pid_t) -> Option<char> {
    let stat = of(id, "stat");
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Waits until `what` returns the wanted value.
fn becomes<T: PartialEq + Debug>(wanted: &T, what: impl Fn() -> T) {
    let since = Instant::now();
    loop {
        let found = what();
        if found == *wanted {
            return;
        }
        let waited = since.elapsed();
        assert!(
            waited < Duration::from_secs(20),
            "{found:?}, not {wanted:?}"
        );
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_has_the_workloads_memory_gives_way_to_all_and_outlives_the_workload_until_it_is_ended() {
    let (mut ours, mut theirs) = io::pipe().unwrap();
    let (wait, go) = io::pipe().unwrap();
    // SAFETY: the child makes system calls and a small allocation, and ends without going back to the harness of tests.
    let workload = unsafe { libc::fork() };
    if workload == 0 {
        drop(go);
        let told = Spinner::share()
            .map_err(|_| ())
            .and_then(|spinner| theirs.write_all(&spinner.id().to_ne_bytes()).map_err(drop));
        // Waits until the test closes its end.
        let _ = (&wait).read(&mut [0]);
        // SAFETY: ends the child alone.
        unsafe { libc::_exit(i32::from(told.is_err())) };
    }
    assert!(workload > 0, "{}", io::Error::last_os_error());
    drop((theirs, wait));
    let mut id = [0; size_of::<libc::pid_t>()];
    ours.read_exact(&mut id).unwrap();
    let id = libc::pid_t::from_ne_bytes(id);
    let spinner = Spinner::child(id);

    becomes(&Some('R'), || state(id));
    // Scheduling class and name are set first.
    becomes(&"pagetide-idle\n".to_owned(), || of(id, "comm"));
    // SAFETY: plain system call.
    let class = unsafe { libc::sched_getscheduler(id) };
    assert_eq!(class, libc::SCHED_IDLE, "whoever has work to do goes first");
    // SAFETY: plain system call; 1 is KCMP_VM, and 0 the answer where two processes have one address space.
    let same = |other: libc::pid_t| unsafe { libc::syscall(libc::SYS_kcmp, id, other, 1, 0, 0) };
    // If the kernel does not support the comparison, compare the maps.
    match same(workload) {
        -1 => assert_eq!(of(id, "maps"), of(workload, "maps")),
        found => assert_eq!(found, 0),
    }
    // SAFETY: plain system call.
    let own = unsafe { libc::getpid() };
    assert_ne!(same(own), 0, "a memory of its own, not that of all");

    spinner.pause();
    becomes(&Some('T'), || state(id));
    spinner.resume();
    becomes(&Some('R'), || state(id));

    drop(go);
    let mut status = 0;
    // SAFETY: the status lives through the call.
    let ended = unsafe { libc::waitpid(workload, &raw mut status, 0) };
    assert_eq!((ended, status), (workload, 0));
    assert_eq!(
        state(id),
        Some('R'),
        "the CPU would halt between the workload's end and ours"
    );
    spinner.end();
    assert_eq!(state(id), None);
    // The second time there is nothing to end and nothing to wait for.
    Spinner::child(id).end();
}
