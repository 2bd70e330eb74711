//! Memory shared with an emulator: anonymous files, which the kernel frees when nobody uses them any more.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;

use pagetide_guest::tracearea::{self, Piece};
use pagetide_quantity::Bytes;
use pagetide_record::wire::{self, FramePosition, HEAD, Region};
use rustix::fs::MemfdFlags;

use crate::error::{ExactError, io};

/// Creates an empty anonymous file. `name` is for debugging and messages only.
pub fn anonymous(name: &str) -> Result<File, ExactError> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(|errno| io("making shared memory for", name)(errno.into()))
}

/// Creates an anonymous file with these bytes as content.
pub fn holding(name: &str, content: &[u8]) -> Result<File, ExactError> {
    let mut file = anonymous(name)?;
    file.write_all(content)
        .map_err(io("writing shared memory for", name))?;
    Ok(file)
}

/// Copies a guest's memory to a file at `path`. Zero-filled pages, which are most pages of a fresh guest, become holes.
pub fn keep(memory: &File, path: &Path) -> io::Result<()> {
    let file = File::create(path)?;
    file.set_len(memory.metadata()?.len())?;
    let mut at = 0;
    loop {
        // Untouched pages have no data, so they are skipped.
        let start = match rustix::fs::seek(memory, rustix::fs::SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        at = rustix::fs::seek(memory, rustix::fs::SeekFrom::Hole(start))?;
        keep_part(memory, &file, start..at)?;
    }
}

/// Copies the non-zero pages between these byte offsets.
fn keep_part(memory: &File, file: &File, part: Range<u64>) -> io::Result<()> {
    const CHUNK_BYTES: usize = 1 << 20;
    const ZEROS: [u8; 4096] = [0; 4096];
    let is_zero = |page: &&[u8]| **page == ZEROS[..page.len()];
    let mut buffer = vec![0; CHUNK_BYTES];
    for start in part.clone().step_by(CHUNK_BYTES) {
        let length = usize::try_from(part.end - start).unwrap_or(CHUNK_BYTES);
        let chunk = &mut buffer[..length.min(CHUNK_BYTES)];
        memory.read_exact_at(chunk, start)?;
        let pages: Vec<&[u8]> = chunk.chunks(ZEROS.len()).collect();
        let mut from = 0;
        for run in pages.chunk_by(|a, b| is_zero(a) == is_zero(b)) {
            let to = (from + run.len() * ZEROS.len()).min(chunk.len());
            if !run.iter().all(is_zero) {
                file.write_all_at(&chunk[from..to], start + from as u64)?;
            }
            from = to;
        }
    }
    Ok(())
}

/// Returns the path under which a child process that inherits the descriptor can open the file.
pub fn path(fd: RawFd) -> String {
    format!("/proc/self/fd/{fd}")
}

/// Returns the text of an anonymous file from its start, at most 1 MiB.
pub fn text(file: &File) -> String {
    let mut reader = file;
    let mut bytes = Vec::new();
    let _ = reader.seek(SeekFrom::Start(0));
    let _ = reader.take(1 << 20).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An output region, which a guest writes and this process reads: an anonymous file that the emulator maps, and this
/// process's mapping of the file.
///
/// Another process may write the file at any time. So the mapping is used for the head's atomics only, and everything
/// else is copied through the file. No reference to bytes that may change exists.
pub struct Output {
    file: File,
    base: NonNull<u8>,
    /// Size of the region and of its mapping, in bytes.
    size: usize,
    /// Size of the region together with the trace area behind it, in bytes.
    whole: u64,
}

// SAFETY: the mapping belongs to this value alone, is not tied to a thread, and is accessed through atomics only
// (`region`).
unsafe impl Send for Output {}
// SAFETY: a shared reference gives access to atomics and to the file, which threads may share.
unsafe impl Sync for Output {}

impl Output {
    /// Creates an empty region of `size` bytes, followed by a trace area of `trace` bytes. Only written pages take
    /// memory.
    pub fn new(size: Bytes, trace: Bytes) -> Result<Self, ExactError> {
        let file = anonymous("pagetide-region")?;
        let whole = size.0 + trace.0;
        file.set_len(whole)
            .map_err(io("sizing", "the output region"))?;
        let length = usize::try_from(size.0)
            .ok()
            .filter(|length| *length >= 2 * HEAD)
            .ok_or_else(|| {
                io("sizing", "the output region")(io::Error::other("too small or too large"))
            })?;
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        let base = if base == libc::MAP_FAILED {
            None
        } else {
            NonNull::new(base.cast())
        };
        let base =
            base.ok_or_else(|| io("mapping", "the output region")(io::Error::last_os_error()))?;
        let output = Self {
            file,
            base,
            size: length,
            whole,
        };
        // SAFETY: no other process has the file yet, so no frame is in use.
        unsafe { output.region().format() };
        Ok(output)
    }

    /// Returns the mapped region, which gives access to the head's atomics. Frames are read with [`Output::frames`].
    pub fn region(&self) -> Region<'_> {
        // SAFETY: `new` mapped `size` bytes, at least two pages, at the page-aligned `base`. `drop` unmaps these bytes,
        // which the borrow prevents meanwhile. The file can only be reached through this value and by the emulator,
        // whose guest uses regions too.
        unsafe { Region::new(self.base.as_ptr(), self.size) }
    }

    /// Returns the size of the region together with the trace area, in bytes.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Returns the anonymous file that contains the region.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes input for the guest to the end of the region, behind the space for frames. Returns the byte offset and
    /// length of the input. Fails if the input is too large.
    pub fn put(&self, data: &[u8]) -> Result<(u64, u64), ExactError> {
        let length = data.len() as u64;
        let offset = (self.size as u64)
            .checked_sub(length.next_multiple_of(4096))
            .filter(|offset| *offset > 1 << 20)
            .ok_or_else(|| {
                io("handing over", format!("{} of input", Bytes(length)))(io::Error::other(
                    "it is larger than the output region",
                ))
            })?;
        self.file
            .write_all_at(data, offset)
            .map_err(io("handing over", "the input"))?;
        Ok((offset, length))
    }

    /// Returns the positions of the complete frames in the region.
    pub fn frames(&self) -> Result<Vec<FramePosition>, ExactError> {
        wire::places(self.size as u64, |at, buffer| {
            self.file.read_exact_at(buffer, at)
        })
        .map_err(io("reading", "the output region"))
    }

    /// Returns the content of a frame.
    pub fn bytes(&self, frame: &FramePosition) -> Result<Vec<u8>, ExactError> {
        let mut bytes = Vec::new();
        self.body(frame)
            .read_to_end(&mut bytes)
            .map_err(io("reading", "the output region"))?;
        Ok(bytes)
    }

    /// Returns the reader of a frame's content.
    pub fn body(&self, frame: &FramePosition) -> impl Read {
        self.part(frame.at, frame.length)
    }

    /// Returns the pieces of the trace in the first `used` bytes of the trace area.
    pub fn pieces(&self, used: u64) -> Result<Vec<Piece>, ExactError> {
        let start = self.size as u64;
        let used = used.min(tracearea::room(self.whole - start));
        tracearea::pieces(used, |at, buffer| {
            self.file.read_exact_at(buffer, start + at)
        })
        .map_err(io("reading", "the trace area"))
    }

    /// Returns the reader of these pieces of the trace, one directly after another.
    pub fn trace(&self, pieces: Vec<Piece>) -> impl Read {
        let start = self.size as u64;
        let parts = pieces
            .into_iter()
            .map(move |piece| (start + piece.at, piece.length));
        Parts {
            file: &self.file,
            left: parts,
            part: self.part(0, 0),
        }
    }

    /// Returns the list of the kernel's functions, empty if the guest has written none. `None` if its stated size is
    /// larger than the area.
    pub fn functions(&self) -> Result<Option<Vec<u8>>, ExactError> {
        let fault = || io("reading", "the list of functions");
        let room = tracearea::room(self.whole - self.size as u64);
        let at = self.size as u64 + room;
        let mut length = [0; 8];
        self.file.read_exact_at(&mut length, at).map_err(fault())?;
        let length = u64::from_le_bytes(length);
        if length > self.whole - at - 8 {
            return Ok(None);
        }
        let mut list = Vec::new();
        self.part(at + 8, length)
            .read_to_end(&mut list)
            .map_err(fault())?;
        Ok(Some(list))
    }

    fn part(&self, at: u64, left: u64) -> Part<'_> {
        Part {
            file: &self.file,
            at,
            left,
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; regions borrow `self`, so none is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// Reader of a part of a file, given by byte offset and length.
struct Part<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let n = self.file.read_at(&mut buffer[..length], self.at)?;
        self.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

/// Reader of several parts of a file, one directly after another.
struct Parts<'a, I> {
    file: &'a File,
    left: I,
    part: Part<'a>,
}

impl<I: Iterator<Item = (u64, u64)>> Read for Parts<'_, I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.left == 0 {
            let Some((at, left)) = self.left.next() else {
                return Ok(0);
            };
            self.part = Part {
                file: self.file,
                at,
                left,
            };
        }
        self.part.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use pagetide_record::wire::Kind;

    use super::*;

    #[test]
    fn what_is_kept_of_memory_is_the_same_and_zeros_are_holes() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ram");
        let memory = anonymous("memory").unwrap();
        // Content lies in the middle, across the borders of pages and of read chunks. Zeros come before it, and the end
        // is untouched.
        memory.set_len(9 << 20).unwrap();
        memory.write_all_at(&vec![0; 2 << 20], 0).unwrap();
        for (at, bytes) in [
            (4_095, 2),
            (1 << 20, 1),
            ((2 << 20) - 5, 9_000),
            (5 << 20, 1),
        ] {
            memory.write_all_at(&vec![7; bytes], at).unwrap();
        }
        keep(&memory, &path).unwrap();
        let mut content = vec![0; 9 << 20];
        memory.read_exact_at(&mut content, 0).unwrap();
        assert!(std::fs::read(&path).unwrap() == content);
        assert!(std::fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
    }

    #[test]
    fn frames_and_trace_are_copied_out_as_they_were_written() {
        let trace = Bytes((1 << 16) + tracearea::LIST_BYTES);
        let output = Output::new(Bytes(1 << 16), trace).unwrap();
        output.region().write(Kind::Blob, "one", b"first").unwrap();
        let _unfinished = output.region().frame(Kind::Blob, "lost", 10);
        output.region().write(Kind::Series, "two", b"").unwrap();
        let frames = output.frames().unwrap();
        let names: Vec<_> = frames.iter().map(|frame| frame.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(output.bytes(&frames[0]).unwrap(), b"first");
        let mut trace = Vec::new();
        for (cpu, text) in [(0_u32, "ab"), (1, "xyz"), (0, "cd")] {
            trace.extend(cpu.to_le_bytes());
            trace.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            trace.extend(text.as_bytes());
        }
        output.file().write_all_at(&trace, 1 << 16).unwrap();
        let mut pieces = output.pieces(trace.len() as u64).unwrap();
        pieces.retain(|piece| piece.cpu == 0);
        let mut text = String::new();
        output.trace(pieces).read_to_string(&mut text).unwrap();
        assert_eq!(text, "abcd");
        // The list is stored behind the area for pieces. A list that states too large a size is ignored.
        let at = (1 << 16) + (1 << 16);
        output.file().write_all_at(b"a list", at + 8).unwrap();
        for (length, found) in [
            (0_u64, Some("")),
            (6, Some("a list")),
            (tracearea::LIST_BYTES, None),
        ] {
            output
                .file()
                .write_all_at(&length.to_le_bytes(), at)
                .unwrap();
            let list = output.functions().unwrap();
            assert_eq!(list.as_deref(), found.map(str::as_bytes));
        }
    }
}
