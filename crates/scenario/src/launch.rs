//! Starts a user's program as an unprivileged user in a separate root directory.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::capture::Capture;
use crate::clock::Clock;
use crate::error::Stop;
use crate::group::{Group, USER};
use crate::running::RunningProgram;

/// What to start and where: command, environment and root of a program.
pub(crate) struct Launch<'a> {
    /// Folder that becomes the root directory of the program.
    pub root: &'a Path,
    /// Arguments of the program; the first is the path of the executable in the root.
    pub command: &'a [String],
    /// Environment of the program, as `NAME=VALUE`.
    pub environment: &'a [String],
    /// Working directory of the program, a path in the root.
    pub folder: &'a str,
    /// Path in the root of the file that is the standard input of the program.
    pub input: &'a str,
    /// Memory cgroup that the program joins. The program sees this cgroup as the root of all cgroups. `None` if the
    /// program joins no cgroup.
    pub group: Option<&'a Group>,
    /// True if the program must see its own cgroup in its `/sys/fs/cgroup`. If false, the program sees the cgroup that
    /// is mounted there in its root, which is that of the first program.
    pub shows_group: bool,
}

/// Strings as a null-terminated array of C strings, as system calls need them.
struct Words {
    /// Owns the strings that the pointers refer to.
    _texts: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Words {
    fn new(words: &[String]) -> Result<Self, Stop> {
        let texts = words.iter().map(|word| text(word.as_bytes()));
        let texts = texts.collect::<Result<Vec<CString>, Stop>>()?;
        let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Ok(Self {
            _texts: texts,
            pointers,
        })
    }
}

fn text(bytes: &[u8]) -> Result<CString, Stop> {
    CString::new(bytes).map_err(|_| {
        Stop::system("cannot start the program")(io::Error::other("a word has a zero byte"))
    })
}

/// Returns the read end and the write end of a new pipe. `flags` are added to `O_CLOEXEC`.
fn pipe(flags: libc::c_int) -> Result<[OwnedFd; 2], Stop> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), flags | libc::O_CLOEXEC) } != 0 {
        return Err(Stop::last("cannot make a pipe for the program"));
    }
    // SAFETY: both descriptors are open, and no other code uses them.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// What a child needs to execute the program. It is prepared before the fork, where errors can be handled.
struct Child<'a> {
    procs_file: Option<CString>,
    /// Folder of the cgroup, and the mount point at which this program alone sees it; `None` for no mount.
    view: Option<[CString; 2]>,
    root: CString,
    folder: CString,
    input: CString,
    program: &'a CStr,
    words: Words,
    environment: Words,
    output: OwnedFd,
    errors: OwnedFd,
}

impl Child<'_> {
    /// Executes the program. Returns only on failure, with the index in [`STEPS`] and the error number.
    fn go(&self) -> (u8, i32) {
        let failed = |step| {
            let why = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            (step, why)
        };
        // SAFETY: all pointers are C strings, or arrays of them with a null at their end, that live through the calls. The
        // child has a single thread, and what it changes is its own.
        unsafe {
            if libc::setsid() < 0 {
                return failed(0);
            }
            if let Some(procs_file) = &self.procs_file {
                let procs_file = libc::open(procs_file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                // Writing 0 adds the writing process to the group.
                if procs_file < 0 || libc::write(procs_file, c"0".as_ptr().cast(), 1) != 1 {
                    return failed(7);
                }
                // The root of the new namespace is the group of this process.
                if libc::unshare(libc::CLONE_NEWCGROUP) != 0 {
                    return failed(8);
                }
            }
            if let Some([group, place]) = &self.view
                && (libc::unshare(libc::CLONE_NEWNS) != 0 || !bind_read_only(group, place))
            {
                return failed(9);
            }
            if libc::chroot(self.root.as_ptr()) != 0 || libc::chdir(c"/".as_ptr()) != 0 {
                return failed(1);
            }
            if !leave_groups()
                || libc::setresgid(USER, USER, USER) != 0
                || libc::setresuid(USER, USER, USER) != 0
                || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            {
                return failed(2);
            }
            libc::umask(0o022);
            // Rust's runtime ignores the signal, and programs inherit this. Without the default action, a write to a
            // closed pipe would not end the program.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            if libc::chdir(self.folder.as_ptr()) != 0 {
                return failed(3);
            }
            let input = libc::open(self.input.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if input < 0 {
                return failed(4);
            }
            if libc::dup2(input, 0) < 0
                || libc::dup2(self.output.as_raw_fd(), 1) < 0
                || libc::dup2(self.errors.as_raw_fd(), 2) < 0
            {
                return failed(5);
            }
            libc::execve(
                self.program.as_ptr(),
                self.words.pointers.as_ptr(),
                self.environment.pointers.as_ptr(),
            );
            failed(6)
        }
    }
}

/// Steps that a child takes before it executes the program. If a step fails, the child reports its index, which needs
/// no allocation.
const STEPS: [&str; 10] = [
    "starting a session",
    "entering the root",
    "becoming an unprivileged user",
    "entering the working folder",
    "opening the input",
    "connecting input and output",
    "executing it",
    "joining its memory group",
    "making its memory group the root of the groups that it sees",
    "showing it its memory group",
];

/// Leaves all supplementary groups. Returns false if the kernel refuses. In a user namespace of an ordinary user, groups
/// cannot be left (EPERM): the program then keeps those of this user, who started it.
fn leave_groups() -> bool {
    // SAFETY: with a length of zero, the pointer is not used.
    let left = unsafe { libc::setgroups(0, ptr::null()) } == 0;
    left || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Bind-mounts a folder read-only in this process's own mount namespace. Returns false if the kernel refuses.
fn bind_read_only(folder: &CStr, place: &CStr) -> bool {
    let mount = |from: *const libc::c_char, flags| {
        // SAFETY: both paths are C strings that live through the call; the other arguments are not used for a bind.
        unsafe { libc::mount(from, place.as_ptr(), ptr::null(), flags, ptr::null()) == 0 }
    };
    // A mount can only be made read-only after it exists.
    mount(folder.as_ptr(), libc::MS_BIND)
        && mount(
            ptr::null(),
            libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY,
        )
}

impl Launch<'_> {
    /// Starts the program. Allocates all memory for watching it. Fails if the child cannot be created.
    pub(crate) fn start(&self, clock: Clock) -> Result<RunningProgram, Stop> {
        let [output, output_end] = pipe(0)?;
        let [errors, errors_end] = pipe(0)?;
        let [fault, fault_end] = pipe(0)?;
        for end in [&output, &errors] {
            // SAFETY: changes a flag of an open descriptor that this process owns.
            unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        for end in [&output_end, &errors_end] {
            // The program can open `/dev/stdout` and `/dev/stderr` only if it owns the pipes.
            // SAFETY: changes the owner of an open pipe that no other code uses.
            if unsafe { libc::fchown(end.as_raw_fd(), USER, USER) } != 0 {
                return Err(Stop::last("cannot hand the program its output"));
            }
        }
        let (output, errors) = (Capture::new(output)?, Capture::new(errors)?);
        let program = text(self.command.first().map_or(&[][..], |word| word.as_bytes()))?;
        let procs_file = self
            .group
            .map(|group| text(group.procs_file().as_os_str().as_bytes()));
        let path = |path: &Path| text(path.as_os_str().as_bytes());
        let view = match self.group.filter(|_| self.shows_group) {
            Some(group) => Some([
                path(group.folder())?,
                path(&self.root.join("sys/fs/cgroup"))?,
            ]),
            None => None,
        };
        let child = Child {
            procs_file: procs_file.transpose()?,
            view,
            root: text(self.root.as_os_str().as_bytes())?,
            folder: text(self.folder.as_bytes())?,
            input: text(self.input.as_bytes())?,
            program: &program,
            words: Words::new(self.command)?,
            environment: Words::new(self.environment)?,
            output: output_end,
            errors: errors_end,
        };
        // Orphaned processes of the program become our children, so that they can be reaped.
        // SAFETY: changes an attribute of this process.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        let began = clock.now();
        // SAFETY: this process has a single thread, so the child may go on with ordinary code.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let (step, why) = child.go();
            let mut said = [step; 5];
            said[1..].copy_from_slice(&why.to_ne_bytes());
            // SAFETY: the buffer lives through the call; the child ends without running the parent's exit handlers.
            unsafe {
                libc::write(fault_end.as_raw_fd(), said.as_ptr().cast(), said.len());
                libc::_exit(127)
            }
        }
        if pid < 0 {
            return Err(Stop::last("cannot start the program"));
        }
        drop((child, fault_end));
        let name = self.command.first().cloned().unwrap_or_default();
        RunningProgram::new(name, pid, began, [output, errors], (fault, &STEPS))
    }
}
