//! Memory shared with an emulator: anonymous files that vanish with their last user, however it ends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

use pagetide_quantity::Bytes;
use pagetide_record::wire::Region;
use rustix::fs::MemfdFlags;

use crate::error::{ExactError, io};

/// Makes an anonymous file.
pub fn anonymous(name: &str) -> Result<File, ExactError> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(|errno| io("making shared memory for", name)(errno.into()))
}

/// Makes an anonymous file with this content.
pub fn holding(name: &str, content: &[u8]) -> Result<File, ExactError> {
    let mut file = anonymous(name)?;
    file.write_all(content)
        .map_err(io("writing shared memory for", name))?;
    Ok(file)
}

/// Path by which a child that inherits the descriptor opens the file.
pub fn path(fd: RawFd) -> String {
    format!("/proc/self/fd/{fd}")
}

/// Reads a whole anonymous file from its start, as text.
pub fn text(file: &File) -> String {
    let mut reader = file;
    let mut bytes = Vec::new();
    let _ = reader.seek(SeekFrom::Start(0));
    let _ = reader.take(1 << 20).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An output region of this process: an anonymous file and its mapping.
pub struct Output {
    file: File,
    region: Region,
    base: *mut libc::c_void,
    /// Of the region.
    size: usize,
    /// Of the region and the trace area behind it.
    whole: usize,
}

// SAFETY: the mapping belongs to this value alone and is read and written through atomics or after the guest ended.
unsafe impl Send for Output {}
// SAFETY: as above.
unsafe impl Sync for Output {}

impl Output {
    /// Makes an empty region of `size` bytes with a trace area of `trace` bytes behind it; only what is written takes
    /// memory.
    pub fn new(size: Bytes, trace: Bytes) -> Result<Self, ExactError> {
        let file = anonymous("pagetide-region")?;
        file.set_len(size.0 + trace.0)
            .map_err(io("sizing", "the output region"))?;
        let bytes = |size: u64| {
            usize::try_from(size)
                .map_err(|_| io("sizing", "the output region")(io::Error::other("too large")))
        };
        let (length, whole) = (bytes(size.0)?, bytes(size.0 + trace.0)?);
        // SAFETY: a new shared mapping of a file of this length.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                whole,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io("mapping", "the output region")(
                io::Error::last_os_error(),
            ));
        }
        // SAFETY: the mapping is page aligned, `length` long, and lives as long as `self`.
        let region = unsafe { Region::new(base.cast(), length) };
        region.format();
        Ok(Self {
            file,
            region,
            base,
            size: length,
            whole,
        })
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Its size and that of the trace area, together.
    pub fn whole(&self) -> u64 {
        self.whole as u64
    }

    /// The first `used` bytes of the trace area after the guest ended.
    pub fn trace(&self, used: u64) -> &[u8] {
        let room = self.whole - self.size;
        let used = usize::try_from(used).unwrap_or(room).min(room);
        // SAFETY: the mapping is `whole` bytes long and nobody writes it any more.
        unsafe { std::slice::from_raw_parts(self.base.cast::<u8>().add(self.size), used) }
    }

    /// The file behind it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts bulk input at the region's end, out of the way of frames. Returns its offset and length.
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

    /// Bytes of the region after the guest ended. Reading heads of frames through it touches few pages; bodies are
    /// better read through [`Output::body`].
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is `size` bytes long and nobody writes it any more.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.size) }
    }

    /// A reader of part of the region that does not make it part of this process' memory.
    pub fn body(&self, part: &[u8]) -> impl Read {
        let offset = (part.as_ptr() as usize).saturating_sub(self.base as usize) as u64;
        Body {
            file: &self.file,
            at: offset,
            left: part.len() as u64,
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.base, self.whole) };
    }
}

struct Body<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Body<'_> {
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
