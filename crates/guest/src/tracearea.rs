//! The trace area: memory of the host, behind the output region, that receives the trace of an observed trial.
//!
//! The area is far larger than the region. Only a window of the area is mapped at a time, so that page tables use no
//! memory of the workload. Layout: pieces one after the other, each with the CPU (32 bits), the length (32 bits) and
//! that many bytes of packed sub-buffers, little-endian. The frame [`FRAME`] states how much of the area is used.
//!
//! The last [`LIST_BYTES`] are for the list of the kernel's functions, which gives the names in stacks: its length (64
//! bits) and that many bytes. The kernel needs a second to generate the list, which is the same after each trial of a
//! guest. So the list is written last, and a controller that already has the list does not wait.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;

use pagetide_probe::trace::{KALLSYMS, TraceMeta};
use pagetide_system::{Mapping, Source};
use serde::{Deserialize, Serialize};

use crate::error::{GuestError, io};

/// Name of the frame in the output region that describes the trace area: [`Contents`] as JSON.
pub const FRAME: &str = "trace-contents";
/// Size reserved for the list of the kernel's functions ([`KALLSYMS`]) at the end of the area; three times what
/// Debian's kernels need.
pub const LIST_BYTES: u64 = 32 << 20;
/// Size of the mapped window of the area in bytes.
const WINDOW_BYTES: usize = 1 << 20;

/// Description of the area's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Everything about the trace except the events themselves.
    pub meta: TraceMeta,
    /// Number of bytes of the area that contain pieces.
    pub used: u64,
}

/// Returns the number of bytes available for pieces in an area of `size` bytes.
pub const fn room(size: u64) -> u64 {
    size.saturating_sub(LIST_BYTES)
}

/// The trace area as mapped and written by the guest.
#[derive(Debug)]
pub struct TraceArea {
    memory: File,
    at: u64,
    size: u64,
    used: u64,
    /// The mapped window, and its offset in the area in bytes; `None` before the first write.
    window: Option<(Mapping, u64)>,
    /// Number of pieces that were not stored, because the area was full.
    refused: u64,
}

impl TraceArea {
    /// Opens the area of `size` bytes at a physical address.
    pub fn open(at: u64, size: u64) -> Result<Self, GuestError> {
        let memory = File::options()
            .read(true)
            .write(true)
            .open("/dev/mem")
            .map_err(io("opening the trace area in", "/dev/mem"))?;
        Ok(Self {
            memory,
            at,
            size,
            used: 0,
            window: None,
            refused: 0,
        })
    }

    /// Appends a piece of a CPU's trace. If a piece does not fit, this piece and all later ones are only counted.
    pub fn append(&mut self, cpu: u32, bytes: &[u8]) -> Result<(), GuestError> {
        let Ok(length) = u32::try_from(bytes.len()) else {
            self.refused += 1;
            return Ok(());
        };
        if length == 0 {
            return Ok(());
        }
        let step = 8 + u64::from(length);
        if self.refused > 0 || self.size - self.used < step {
            self.refused += 1;
            return Ok(());
        }
        self.put(&cpu.to_le_bytes())?;
        self.put(&length.to_le_bytes())?;
        self.put(bytes)
    }

    /// Returns the number of bytes written to the area so far.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns the number of pieces that were not stored, because the area was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<(), GuestError> {
        while !bytes.is_empty() {
            let used = self.used;
            let (window, from) = self.window()?;
            let within = usize::try_from(used - from).unwrap_or(WINDOW_BYTES);
            let length = bytes.len().min(WINDOW_BYTES - within);
            window.write(within, &bytes[..length]);
            bytes = &bytes[length..];
            self.used += length as u64;
        }
        Ok(())
    }

    /// Returns the window that contains the next free byte, and the window's offset in the area. Maps it if needed.
    fn window(&mut self) -> Result<(&Mapping, u64), GuestError> {
        let size = WINDOW_BYTES as u64;
        let from = self.used / size * size;
        let window = match self.window.take() {
            Some((window, at)) if at == from => window,
            old => {
                drop(old);
                Mapping::new(
                    Source::File(self.memory.as_fd(), self.at + from),
                    WINDOW_BYTES,
                )
                .map_err(io("mapping the trace area in", "/dev/mem"))?
            }
        };
        Ok((&self.window.insert((window, from)).0, from))
    }
}

/// Writes the list of the kernel's functions to the end of an area. Leaves the list empty if the kernel does not
/// provide one (no `CONFIG_KALLSYMS`) or the list does not fit; stacks then have no names.
pub fn list_functions(at: u64, size: u64) -> Result<(), GuestError> {
    let at = at + room(size);
    match File::open(KALLSYMS) {
        Ok(list) => write_list(|| TraceArea::open(at, LIST_BYTES), list),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io("reading", KALLSYMS)(error)),
    }
}

/// Writes the list's text first, then its length at the start, through another window.
fn write_list(
    open: impl Fn() -> Result<TraceArea, GuestError>,
    mut list: impl Read,
) -> Result<(), GuestError> {
    let mut area = open()?;
    area.put(&0_u64.to_le_bytes())?;
    // The kernel returns one page per read.
    let mut part = [0; 4096];
    loop {
        let length = list.read(&mut part).map_err(io("reading", KALLSYMS))?;
        if length == 0 {
            break;
        }
        if area.size - area.used < length as u64 {
            return Ok(());
        }
        area.put(&part[..length])?;
    }
    let length = area.used() - 8;
    open()?.put(&length.to_le_bytes())
}

/// Position of a piece of the trace in the area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of the CPU that wrote the piece.
    pub cpu: u32,
    /// Offset of the piece's packed sub-buffers in the area.
    pub at: u64,
    /// Size of the piece's packed sub-buffers in bytes.
    pub length: u64,
}

/// Returns the pieces in the first `used` bytes of the area. `read` copies bytes from an offset of the area. Ends at a
/// piece that extends beyond the used bytes.
pub fn pieces(
    used: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Vec<Piece>> {
    let mut found = Vec::new();
    let mut next = 0;
    while used - next >= 8 {
        let mut head = [0; 8];
        read(next, &mut head)?;
        let [a, b, c, d, rest @ ..] = head;
        let piece = Piece {
            cpu: u32::from_le_bytes([a, b, c, d]),
            at: next + 8,
            length: u32::from_le_bytes(rest).into(),
        };
        if used - piece.at < piece.length {
            break;
        }
        next = piece.at + piece.length;
        found.push(piece);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns CPU and content of each piece in an area's bytes.
    fn pieces(area: &[u8]) -> Vec<(u32, &[u8])> {
        let part = |at: u64, length: usize| {
            let at = usize::try_from(at).unwrap();
            &area[at..at + length]
        };
        super::pieces(area.len() as u64, |at, buffer| {
            buffer.copy_from_slice(part(at, buffer.len()));
            Ok(())
        })
        .unwrap()
        .into_iter()
        .map(|piece| {
            (
                piece.cpu,
                part(piece.at, usize::try_from(piece.length).unwrap()),
            )
        })
        .collect()
    }

    #[test]
    fn pieces_come_back_and_a_cut_one_ends_the_walk() {
        let mut area = Vec::new();
        for (cpu, text) in [(0_u32, "abc"), (3, ""), (1, "defg")] {
            area.extend(cpu.to_le_bytes());
            area.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            area.extend(text.as_bytes());
        }
        let all = pieces(&area);
        assert_eq!(all, [(0, &b"abc"[..]), (3, b""), (1, b"defg")]);
        for cut in 0..area.len() {
            assert!(pieces(&area[..cut]).len() < 3);
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_nothing_follows_it() {
        // A plain file is used instead of the machine's memory: it is mapped with the same system calls.
        let file = tempfile::tempfile().unwrap();
        let size = 2 * WINDOW_BYTES as u64;
        file.set_len(size).unwrap();
        let mut area = TraceArea {
            memory: file.try_clone().unwrap(),
            at: 0,
            size,
            used: 0,
            window: None,
            refused: 0,
        };
        let piece: Vec<u8> = (0..=250).cycle().take(300_000).collect();
        for cpu in 0..8 {
            area.append(cpu, &piece).unwrap();
        }
        area.append(9, b"x").unwrap();
        assert_eq!(area.refused(), 3);
        let used = usize::try_from(area.used()).unwrap();
        drop(area);
        let mut bytes = vec![0; used];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
        let back = pieces(&bytes);
        assert_eq!(back.len(), 6);
        assert!(back.iter().all(|(_, bytes)| *bytes == &piece[..]));
    }

    #[test]
    fn a_list_is_as_long_as_it_says_and_one_that_does_not_fit_is_empty() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LIST_BYTES).unwrap();
        let open = |size| {
            let memory = file.try_clone().unwrap();
            Ok(TraceArea {
                memory,
                at: 0,
                size,
                used: 0,
                window: None,
                refused: 0,
            })
        };
        let read = |at, length| {
            let mut bytes = vec![0; length];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, at).unwrap();
            bytes
        };
        // Longer than a window, and not a multiple of the read size.
        let list: Vec<u8> = (0..=250).cycle().take(2 * WINDOW_BYTES + 77).collect();
        write_list(|| open(LIST_BYTES), &list[..]).unwrap();
        let length = u64::try_from(list.len()).unwrap();
        assert_eq!(read(0, 8), length.to_le_bytes());
        assert!(read(8, list.len()) == list);
        write_list(|| open(length), &list[..]).unwrap();
        assert_eq!(read(0, 8), 0_u64.to_le_bytes());
    }
}
