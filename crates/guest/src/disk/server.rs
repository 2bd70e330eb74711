//! The process that implements the disk: it receives requests from the kernel's nbd driver, waits until the model
//! completes each, and sends the reply.
//!
//! Reclaim may wait for this process. So it needs no additional memory after its start: all its pages are locked and
//! present, and its replies go through a small buffer. The kernel may take the memory for these replies from reserves,
//! because the process has a real-time class and is marked as an I/O flusher. Source of the protocol:
//! <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>, "Transmission phase".

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use pagetide_harness::log;
use pagetide_quantity::{Nanos, PAGE_SIZE};
use pagetide_record::DiskSpec;
use pagetide_record::outcome::Invalid;
use pagetide_system::clock::monotonic;
use pagetide_system::{Mapping, Source};

use super::arm::Arm;
use crate::port;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const REQUEST_BYTES: usize = 28;
const READ: u16 = 0;
const WRITE: u16 = 1;
/// Error number in a reply: invalid argument.
const INVALID: u32 = 22;

/// A decoded NBD request. On the socket, in network byte order: magic, flags, type, handle, offset, length.
struct Request {
    kind: u16,
    handle: [u8; 8],
    from: u64,
    length: u32,
}

impl Request {
    fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_at(16);
        let number = |part: &[u8]| {
            part.iter()
                .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        if number(&head[..4]) != u64::from(REQUEST_MAGIC) {
            return None;
        }
        Some(Self {
            kind: u16::from_be_bytes([head[6], head[7]]),
            handle: head[8..].try_into().ok()?,
            from: number(&rest[..8]),
            length: u32::try_from(number(&rest[8..])).ok()?,
        })
    }

    /// Returns offset and length of the request, in bytes; `None` if it extends beyond the end of the disk.
    fn range(&self, size: usize) -> Option<(usize, usize)> {
        let from = usize::try_from(self.from).ok()?;
        let length = usize::try_from(self.length).ok()?;
        (from.checked_add(length)? <= size).then_some((from, length))
    }
}

/// Turns this process into the disk. Ends the guest if it cannot continue, but not if the kernel has killed a process of
/// the workload: that ends the trial anyway, and PID 1 reports it.
///
/// Before Linux 6.13, the driver nbd cannot resume a request that it has sent partly: if the task that sends it is
/// killed, the rest goes out under another tag, and the driver gives up when the reply names the first one (Linux commit
/// "nbd: fix partial sending").
pub(super) fn run(socket: &OwnedFd, size: usize, spec: DiskSpec) -> ! {
    let why = match begin(size).and_then(|memory| serve(socket, &memory, Arm::new(spec))) {
        Ok(()) => "the kernel closed it".to_owned(),
        Err(why) => why.to_string(),
    };
    let log = log::read();
    if log::judge(&log, Nanos(0)).iter().any(Invalid::is_death) {
        // SAFETY: ends this process without running the exit handlers of PID 1, which it is a copy of.
        unsafe { libc::_exit(1) }
    }
    port::say(&format!("pagetide: {}\n", lost(&why, &log)));
    port::exit(false)
}

/// Says why the disk ended, with the first line about it in the kernel log, and what to do.
fn lost(why: &str, log: &str) -> String {
    let about = |line: &str| Some(line.split_once("block nbd")?.1.trim().to_owned());
    let reason = match log.lines().find_map(about) {
        Some(line) => format!("{why}; the kernel says `nbd{line}`"),
        None => why.to_owned(),
    };
    format!("the simulated disk ended ({reason}): use another kernel, or --swap ssd")
}

/// Allocates the content of the disk, and makes this a process that reclaim can wait for.
fn begin(size: usize) -> io::Result<Mapping> {
    const IO_FLUSHER: libc::c_int = 57;
    // Lock the memory that the program itself uses.
    // SAFETY: changes only how this process' pages are treated.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let memory = Mapping::new(Source::Private, size)?;
    // Huge pages would make its size inexact.
    memory.advise(0, size, libc::MADV_NOHUGEPAGE);
    memory.lock(0)?;
    let page = usize::try_from(PAGE_SIZE).unwrap_or(4096);
    for at in (0..size).step_by(page) {
        memory.write(at, &[0]);
    }
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: plain system calls on this process; `param` lives through the call, the name is a C string.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NAME, c"pagetide-disk".as_ptr());
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) != 0
            || libc::prctl(IO_FLUSHER, 1, 0, 0, 0) != 0
    };
    if refused {
        return Err(io::Error::last_os_error());
    }
    Ok(memory)
}

fn serve(socket: &OwnedFd, memory: &Mapping, mut arm: Arm) -> io::Result<()> {
    let socket = socket.as_raw_fd();
    let mut head = [0_u8; REQUEST_BYTES];
    loop {
        let waited = is_readable(socket);
        if !receive(socket, head.as_mut_ptr(), head.len())? {
            return Ok(());
        }
        let now = monotonic();
        let request = Request::decode(&head)
            .ok_or_else(|| io::Error::other("the kernel sent something that is not a request"))?;
        let mut reply = [0_u8; 16];
        reply[..4].copy_from_slice(&REPLY_MAGIC.to_be_bytes());
        reply[8..].copy_from_slice(&request.handle);
        let range = request.range(memory.length());
        match (request.kind, range) {
            (READ, Some((from, length))) => {
                let done = arm.serve(now, waited, request.from, u64::from(request.length));
                sleep_until(done);
                answer(socket, &reply, Some((memory.at(from), length)))?;
            }
            (WRITE, Some((from, length))) => {
                let done = arm.serve(now, waited, request.from, u64::from(request.length));
                if !receive(socket, memory.at(from), length)? {
                    return Ok(());
                }
                sleep_until(done);
                answer(socket, &reply, None)?;
            }
            // The data could not be distinguished from the next request.
            (WRITE, None) => return Err(io::Error::other("a write beyond its end")),
            (READ, None) => {
                reply[4..8].copy_from_slice(&INVALID.to_be_bytes());
                answer(socket, &reply, None)?;
            }
            // Nothing is cached, so a flush or a discard has no work to do.
            _ => answer(socket, &reply, None)?,
        }
    }
}

/// Returns true if a request is already waiting in the socket.
fn is_readable(socket: RawFd) -> bool {
    let mut byte = 0_u8;
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the buffer is one byte and lives through the call.
    unsafe { libc::recv(socket, (&raw mut byte).cast(), 1, flags) == 1 }
}

/// Receives `length` bytes from the socket into memory at `at`. Returns false if the kernel has closed the socket.
fn receive(socket: RawFd, at: *mut u8, length: usize) -> io::Result<bool> {
    let mut done = 0;
    while done < length {
        // SAFETY: the caller's buffer holds `length` bytes, of which `done` are filled.
        let got = unsafe {
            libc::recv(
                socket,
                at.add(done).cast(),
                length - done,
                libc::MSG_WAITALL,
            )
        };
        match usize::try_from(got) {
            Ok(0) => return Ok(false),
            Ok(got) => done += got,
            Err(_) => interrupted()?,
        }
    }
    Ok(true)
}

/// Sends a reply: the header, then the data, if any, as address and length.
fn answer(socket: RawFd, head: &[u8; 16], data: Option<(*mut u8, usize)>) -> io::Result<()> {
    let (at, length) = data.unwrap_or((std::ptr::null_mut(), 0));
    let all = head.len() + length;
    let mut done = 0;
    while done < all {
        let skipped = done.saturating_sub(head.len());
        let parts = [
            libc::iovec {
                // The buffer is only read.
                iov_base: head[done.min(head.len())..].as_ptr().cast_mut().cast(),
                iov_len: head.len().saturating_sub(done),
            },
            libc::iovec {
                iov_base: at.wrapping_add(skipped).cast(),
                iov_len: length - skipped,
            },
        ];
        // SAFETY: both parts lie in memory that lives through the call: the head, and the disk's own.
        let sent = unsafe { libc::writev(socket, parts.as_ptr(), 2) };
        match usize::try_from(sent) {
            Ok(sent) => done += sent,
            Err(_) => interrupted()?,
        }
    }
    Ok(())
}

/// Succeeds if the last system call was interrupted by a signal; fails with its error otherwise.
fn interrupted() -> io::Result<()> {
    match io::Error::last_os_error() {
        why if why.kind() == io::ErrorKind::Interrupted => Ok(()),
        why => Err(why),
    }
}

/// Sleeps until the time `moment` on the monotonic clock. Returns immediately if this time has passed.
fn sleep_until(moment: Nanos) {
    let moment = Duration::from_nanos(moment.0);
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(moment.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(moment.subsec_nanos().cast_signed()),
    };
    // SAFETY: the time lives through the call, and nothing is written.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_in_network_order_and_one_beyond_the_end_has_no_place() {
        let mut bytes = [0_u8; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&[0x25, 0x60, 0x95, 0x13]);
        bytes[7] = 1;
        bytes[8..16].copy_from_slice(b"ABCDEFGH");
        bytes[22] = 0x10;
        bytes[26] = 0x20;
        let request = Request::decode(&bytes).unwrap();
        assert_eq!(request.kind, WRITE);
        assert_eq!(&request.handle, b"ABCDEFGH");
        assert_eq!((request.from, request.length), (0x1000, 0x2000));
        assert_eq!(request.range(0x3000), Some((0x1000, 0x2000)));
        assert_eq!(request.range(0x2fff), None);
        bytes[0] = 0;
        assert!(Request::decode(&bytes).is_none());
    }

    #[test]
    fn a_lost_disk_is_explained_in_the_words_of_the_kernels_driver() {
        let log = "<6>[    1.000000] nbd: registered device at major 43\n\
                   <3>[   16.416809] block nbd0: Double reply on req 0, cmd_cookie 6, handle cookie 5\n\
                   <4>[   16.429155] block nbd0: shutting down sockets\n";
        assert_eq!(
            lost("Broken pipe", log),
            "the simulated disk ended (Broken pipe; the kernel says `nbd0: Double reply on req 0, cmd_cookie 6, handle \
             cookie 5`): use another kernel, or --swap ssd"
        );
        assert_eq!(
            lost("the kernel closed it", ""),
            "the simulated disk ended (the kernel closed it): use another kernel, or --swap ssd"
        );
    }

    #[test]
    fn an_answer_goes_out_whole_through_a_buffer_smaller_than_itself() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let memory = Mapping::new(Source::Private, 1 << 20).unwrap();
        memory.write((1 << 20) - 4, &[1, 2, 3, 4]);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            io::Read::read_to_end(&mut { theirs }, &mut all).unwrap();
            all
        });
        answer(ours.as_raw_fd(), &[7; 16], Some((memory.at(0), 1 << 20))).unwrap();
        drop(ours);
        let all = reader.join().unwrap();
        assert_eq!(all.len(), 16 + (1 << 20));
        assert_eq!(all[..16], [7; 16]);
        assert_eq!(all[all.len() - 4..], [1, 2, 3, 4]);
    }
}
