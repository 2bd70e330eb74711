//! The output region of a trial: an unnamed file in memory (memfd) that the tool and the workload share.
//!
//! The tool touches all of it before the workload starts, so that its pages are charged to the tool's own cgroup and
//! not to the workload's.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

use pagetide_quantity::{Bytes, PAGE_SIZE};
use pagetide_record::Subject;
use pagetide_record::wire::{self, FramePosition, HEAD, Region};
use pagetide_system::{Mapping, Source};

use crate::refusal::Refusal;

/// Minimum and maximum size of the part for frames. All of it is memory that a trial takes from the rest of the machine.
const SIZES: [Bytes; 2] = [Bytes::from_mib(8), Bytes::from_mib(32)];
/// Part for frames that depends on nothing: the outcome, with what a program printed.
const ALWAYS: Bytes = Bytes::from_mib(4);
/// Bytes for each access. Its entry in the log takes 8, and a log gets at most half of the region.
const OF_ACCESS: u64 = 16;
/// Bytes for each page: its uses, its place in swap and its tier.
const OF_PAGE: u64 = 48;
/// Bytes for each page in each snapshot: a series with up to five columns, and one byte for its presence.
const OF_SNAPSHOT: u64 = 48;
/// Parameters of scenarios with the number of accesses that they log.
const ACCESSES: [&str; 2] = ["refs", "operations"];
/// Maximum size of the bulk input.
const MAX_INPUT: Bytes = Bytes::from_mib(64);

/// Size of the pieces in which a region is filled.
const PIECE: Bytes = Bytes::from_mib(1);

/// Returns the size of the part for frames that a trial with this subject can need. A trial that needs more than the
/// maximum has shorter logs.
fn size_for(subject: &Subject) -> Bytes {
    let [least, most] = SIZES;
    // A number that cannot be read could be any.
    let number = |name: &str| {
        let text = subject.params.get(name);
        text.map_or(0, |text| text.parse().unwrap_or(most.0))
    };
    let accesses = ACCESSES
        .map(number)
        .into_iter()
        .fold(0, u64::saturating_add);
    let of_page = number("snapshots")
        .saturating_mul(OF_SNAPSHOT)
        .saturating_add(OF_PAGE);
    let pages = (subject.room().0.saturating_add(subject.swap_size.0)) / PAGE_SIZE;
    let size = accesses
        .saturating_mul(OF_ACCESS)
        .saturating_add(pages.saturating_mul(of_page))
        .saturating_add(ALWAYS.0);
    // In whole MiB, because it is filled by pieces of this size.
    let size = size.clamp(least.0, most.0).next_multiple_of(PIECE.0);
    Bytes(size)
}

/// The output region of a trial, mapped by the tool. The workload inherits its file.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    memory: Mapping,
    /// Size of the part for frames. The bulk input comes behind it.
    size: Bytes,
}

impl Output {
    /// Creates a region without frames for a trial with this subject, and with this bulk input at its end. Fails if the
    /// input is too long.
    pub(crate) fn new(subject: &Subject, input: &[u8]) -> Result<Self, Refusal> {
        let size = size_for(subject);
        let failed = || Refusal::failed("making the output region of the trial");
        // SAFETY: the name is a C string; the descriptor is new and owned by the file.
        let file = unsafe {
            let number = libc::memfd_create(c"pagetide-output".as_ptr(), libc::MFD_CLOEXEC);
            if number < 0 {
                return Err(failed()(io::Error::last_os_error()));
            }
            File::from_raw_fd(number)
        };
        if input.len() as u64 > MAX_INPUT.0 {
            let why = io::Error::other(format!("{} bytes of references are too many", input.len()));
            return Err(failed()(why));
        }
        let whole = size.0 + (input.len() as u64).next_multiple_of(PAGE_SIZE);
        file.set_len(whole).map_err(failed())?;
        // Writing allocates every page. A later read of a hole by the workload would allocate it in the workload's group.
        let zeros = vec![0; usize::try_from(PIECE.0).unwrap_or(0)];
        let mut at = 0;
        while at < size.0 {
            file.write_all_at(&zeros, at).map_err(failed())?;
            at += PIECE.0;
        }
        file.write_all_at(input, size.0).map_err(failed())?;
        let memory = map(&file).map_err(failed())?;
        let output = Self { file, memory, size };
        // SAFETY: nobody else has the memory yet, so there are no frames.
        unsafe { output.region().format() };
        Ok(output)
    }

    /// Returns the size of the part for frames.
    pub(crate) const fn size(&self) -> Bytes {
        self.size
    }

    /// Returns the region as mapped by this process.
    pub(crate) fn region(&self) -> Region<'_> {
        let frames = usize::try_from(self.size.0).unwrap_or(0);
        // SAFETY: the mapping has at least this length and lives as long as `self`; other processes use it through regions
        // only.
        unsafe { Region::new(self.memory.start(), frames) }
    }

    /// Returns the number of the region's file descriptor, to pass it to a child.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Returns the positions of the complete frames.
    pub(crate) fn frames(&self) -> io::Result<Vec<FramePosition>> {
        wire::places(self.size.0, |at, buffer| {
            self.file.read_exact_at(buffer, at)
        })
    }

    /// Returns the content of a frame.
    pub(crate) fn bytes(&self, frame: &FramePosition) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(frame.length).unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, frame.at)?;
        Ok(bytes)
    }

    /// Reads the content of a frame piece by piece.
    pub(crate) fn body<'a>(&'a self, frame: &FramePosition) -> impl Read + 'a {
        Body {
            file: &self.file,
            at: frame.at,
            left: frame.length,
        }
    }
}

/// Reader of the rest of a frame's content.
struct Body<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = most.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..length], self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

/// Maps the whole region of a file and populates its page tables.
fn map(file: &File) -> io::Result<Mapping> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    Mapping::with(Source::file(file), length, libc::MAP_POPULATE)
}

/// Maps the region of an inherited file descriptor. The mapping stays until this process exits. Returns the part for frames
/// of `size`, and the bulk input of `input` bytes.
pub(crate) fn inherited(
    descriptor: RawFd,
    size: Bytes,
    input: u64,
) -> io::Result<(Region<'static>, &'static [u8])> {
    // SAFETY: the parent passed this descriptor for this purpose, and nothing else uses it.
    let file = unsafe { File::from_raw_fd(descriptor) };
    let memory = map(&file)?;
    let (start, length) = (memory.start(), memory.length());
    std::mem::forget(memory);
    let frames = usize::try_from(size.0).map_err(io::Error::other)?;
    let input = usize::try_from(input).map_err(io::Error::other)?;
    if frames.checked_add(input).is_none_or(|end| end > length) {
        return Err(io::Error::other("the output region is too short"));
    }
    // SAFETY: the mapping has at least these two parts and is never unmapped. The parent uses the first through regions
    // only, and wrote the second before it started this process.
    Ok(unsafe {
        (
            Region::new(start, frames),
            std::slice::from_raw_parts(start.add(frames), input),
        )
    })
}

/// Excludes an inherited region, except its first page, from processes forked later. They write no frames, and each
/// would need memory for page tables of the region.
pub(crate) fn keep_from_children(region: &Region<'static>, size: Bytes) {
    let head: *const wire::Head = region.head();
    let length = usize::try_from(size.0).unwrap_or(0).saturating_sub(HEAD);
    // SAFETY: the range is our own mapping after its first page; the advice changes what a child inherits, not what
    // this process sees.
    unsafe {
        libc::madvise(
            head.cast::<u8>().add(HEAD).cast_mut().cast(),
            length,
            libc::MADV_DONTFORK,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_record::wire::Kind;

    #[test]
    fn frames_are_read_back_and_the_input_lies_behind_them() {
        let output = Output::new(&Subject::default(), b"references").unwrap();
        output.region().write(Kind::Blob, "name", b"12345").unwrap();
        let frames = output.frames().unwrap();
        assert_eq!(frames.len(), 1);
        assert_eq!(output.bytes(&frames[0]).unwrap(), b"12345");
        let mut text = Vec::new();
        output.body(&frames[0]).read_to_end(&mut text).unwrap();
        assert_eq!(text, b"12345");
        let mut input = [0; 10];
        output
            .file
            .read_exact_at(&mut input, output.size.0)
            .unwrap();
        assert_eq!(&input, b"references");
    }

    #[test]
    fn a_trial_takes_as_much_memory_for_its_output_as_it_can_need() {
        let of = |memory: u64, params: &[(&str, &str)]| {
            let params = params.iter();
            size_for(&Subject {
                limit: Some(Bytes::from_mib(memory)),
                swap_size: Bytes::from_mib(3 * memory),
                params: params
                    .map(|(name, text)| ((*name).into(), (*text).into()))
                    .collect(),
                ..Subject::default()
            })
        };
        let mib = Bytes::from_mib;
        assert_eq!(of(64, &[]), mib(8));
        assert_eq!(of(64, &[("refs", "100000"), ("snapshots", "2")]), mib(15));
        assert_eq!(of(64, &[("operations", "1000000")]), mib(23));
        assert_eq!(of(64, &[("refs", "4294967295")]), mib(32));
        assert_eq!(of(1 << 20, &[("snapshots", "16")]), mib(32));
        // What is not a number may be large.
        assert_eq!(of(64, &[("refs", "many")]), mib(32));
    }
}
