//! Stores part of a program's output: its beginning, its end, and the number of bytes in between.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::error::Stop;
use crate::harness::LockedBuffer;

/// Number of bytes that are stored from the beginning of the output.
const HEAD_BYTES: usize = 48 << 10;
/// Number of bytes that are stored from the end of the output.
const TAIL_BYTES: usize = 16 << 10;
/// Number of bytes read at once: the capacity of a pipe.
const CHUNK_BYTES: usize = 64 << 10;

/// Read end of a pipe, and the stored part of the output that came from it.
pub(crate) struct Capture {
    pipe: Option<OwnedFd>,
    kept: LockedBuffer<u8>,
    chunk: LockedBuffer<u8>,
    total: u64,
}

impl Capture {
    /// Creates a capture of what comes from a non-blocking pipe. Allocates all memory. Fails if it cannot be mapped.
    pub(crate) fn new(pipe: OwnedFd) -> Result<Self, Stop> {
        Ok(Self {
            pipe: Some(pipe),
            kept: LockedBuffer::new(HEAD_BYTES + TAIL_BYTES)?,
            chunk: LockedBuffer::new(CHUNK_BYTES)?,
            total: 0,
        })
    }

    /// Returns the event to poll for. Its file descriptor is negative if the write end of the pipe is closed.
    pub(crate) fn waits_for(&self) -> libc::pollfd {
        libc::pollfd {
            fd: self.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            events: libc::POLLIN,
            revents: 0,
        }
    }

    /// Reads everything that is available from the pipe.
    pub(crate) fn take(&mut self) {
        while let Some(pipe) = &self.pipe {
            // SAFETY: the buffer has `CHUNK_BYTES` bytes and lives through the call.
            let read = unsafe {
                libc::read(
                    pipe.as_raw_fd(),
                    self.chunk.as_mut_ptr().cast(),
                    CHUNK_BYTES,
                )
            };
            match usize::try_from(read) {
                Ok(0) => self.pipe = None,
                Ok(length) => keep(&mut self.kept, &mut self.total, &self.chunk[..length]),
                // Nothing is available, or the call was interrupted: the next poll reports more.
                Err(_) => return,
            }
        }
    }

    /// Returns the number of bytes read so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the stored output as text, with a line in place of the bytes that were left out.
    pub(crate) fn text(&self) -> String {
        text(&self.kept, self.total)
    }
}

/// Stores bytes: the first `HEAD_BYTES` in order, later ones in a ring buffer after them.
fn keep(kept: &mut [u8], total: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        let at = usize::try_from(*total).unwrap_or(usize::MAX);
        let place = if at < HEAD_BYTES {
            at
        } else {
            HEAD_BYTES + (at - HEAD_BYTES) % TAIL_BYTES
        };
        kept[place] = *byte;
        *total += 1;
    }
}

fn text(kept: &[u8], total: u64) -> String {
    let length = usize::try_from(total).unwrap_or(usize::MAX);
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if length <= HEAD_BYTES + TAIL_BYTES {
        return lossy(&kept[..length]);
    }
    // The oldest byte of the ring is at the position of the next write.
    let oldest = HEAD_BYTES + (length - HEAD_BYTES) % TAIL_BYTES;
    let tail: Vec<u8> = [
        &kept[oldest..HEAD_BYTES + TAIL_BYTES],
        &kept[HEAD_BYTES..oldest],
    ]
    .concat();
    format!(
        "{}\n[… {} bytes left out …]\n{}",
        lossy(&kept[..HEAD_BYTES]),
        length - HEAD_BYTES - TAIL_BYTES,
        lossy(&tail)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes: &[u8]) -> String {
        let mut buffer = vec![0; HEAD_BYTES + TAIL_BYTES];
        let mut total = 0;
        for piece in bytes.chunks(1000) {
            keep(&mut buffer, &mut total, piece);
        }
        assert_eq!(total, bytes.len() as u64);
        text(&buffer, total)
    }

    #[test]
    fn output_within_bounds_is_kept_whole_and_more_is_cut_in_the_middle() {
        for length in [0, 1, HEAD_BYTES, HEAD_BYTES + 1, HEAD_BYTES + TAIL_BYTES] {
            let bytes: Vec<u8> = (b'a'..=b'z').cycle().take(length).collect();
            assert_eq!(kept(&bytes).as_bytes(), bytes, "{length}");
        }
        for more in [1, TAIL_BYTES - 1, TAIL_BYTES, 5 * TAIL_BYTES + 7] {
            let length = HEAD_BYTES + TAIL_BYTES + more;
            let bytes: Vec<u8> = (b'a'..=b'z').cycle().take(length).collect();
            let text = kept(&bytes);
            let (head, rest) = text.split_once('\n').unwrap();
            let (cut, tail) = rest.split_once('\n').unwrap();
            assert_eq!(head.as_bytes(), &bytes[..HEAD_BYTES]);
            assert_eq!(cut, format!("[… {more} bytes left out …]"));
            assert_eq!(tail.as_bytes(), &bytes[length - TAIL_BYTES..]);
        }
    }
}
