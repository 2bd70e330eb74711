//! The boot image (bzImage): its header fields, and the build id of the compressed kernel inside.
//!
//! Layout: the kernel's Documentation/arch/x86/boot.rst. The payload is a compressed `vmlinux`, an ELF file.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use pagetide_outside::{FileOrigin, open};
use serde::{Deserialize, Serialize};

use crate::compress::Compression;
use crate::digest::hex;
use crate::error::KernelError;

/// GNU build ID of a kernel, or the reason why it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildId {
    /// The build ID in lower-case hexadecimal, as shown by `file vmlinux` and stored in `/sys/kernel/notes`.
    Known(String),
    /// Why the build ID could not be read.
    Unknown(String),
}

impl BuildId {
    /// Returns the build ID; `None` if unknown.
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(id) => Some(id),
            Self::Unknown(_) => None,
        }
    }
}

/// A boot image (bzImage) of an x86-64 Linux kernel. Its header has been checked.
#[derive(Debug, Clone)]
pub struct Image {
    path: PathBuf,
    /// The version line of the image (kernel `arch/x86/boot/version.c`): release, builder and `uname -v`.
    pub banner: String,
    payload_at: u64,
    payload_length: u64,
}

/// Number of bytes of the header that must be present: the fields used here end at 0x250.
const HEADER_BYTES: usize = 0x250;
/// Maximum number of bytes read to find the version line: the setup code has at most 64 sectors of 512 bytes.
const SETUP_BYTES: usize = 0x8200;

impl Image {
    /// Reads the header of the image at `path`. Fails if the image is not an x86-64 Linux kernel or the file is
    /// truncated.
    pub fn open(path: &Path) -> Result<Self, KernelError> {
        let mut file = open(path, FileOrigin::Listed).map_err(KernelError::read(path))?;
        let length = file.metadata().map_err(KernelError::read(path))?.len();
        let mut start = Vec::new();
        file.by_ref()
            .take(SETUP_BYTES as u64)
            .read_to_end(&mut start)
            .map_err(KernelError::read(path))?;
        let (banner, payload_at, payload_length) =
            header(&start).map_err(|why| KernelError::NotAKernel {
                path: path.to_owned(),
                why: why.to_owned(),
            })?;
        if payload_at.saturating_add(payload_length) > length {
            return Err(KernelError::Truncated {
                path: path.to_owned(),
                what: format!(
                    "the kernel inside ends at byte {}, the file at {length}",
                    payload_at + payload_length
                ),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            banner,
            payload_at,
            payload_length,
        })
    }

    /// Returns the release of the kernel, as `uname -r` prints it: the first word of the banner.
    pub fn release(&self) -> &str {
        self.banner.split_whitespace().next().unwrap_or_default()
    }

    /// Returns a reader of the decompressed `vmlinux` in the image.
    fn vmlinux(&self) -> io::Result<Box<dyn Read>> {
        let mut file = open(&self.path, FileOrigin::Listed)?;
        file.seek(SeekFrom::Start(self.payload_at))?;
        let mut magic = [0; 8];
        file.read_exact(&mut magic)?;
        file.seek(SeekFrom::Start(self.payload_at))?;
        let payload = file.take(self.payload_length);
        match Compression::of(&magic) {
            Some(compression) => compression.reader(payload),
            None if magic.starts_with(b"\x7fELF") => Ok(Box::new(payload)),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the payload's compression is not known",
            )),
        }
    }

    /// Returns the GNU build ID from the ELF notes of the `vmlinux`. Decompresses only up to the notes.
    pub fn build_id(&self) -> BuildId {
        match self.vmlinux().and_then(build_id) {
            Ok(id) => BuildId::Known(id),
            Err(reason) => BuildId::Unknown(reason.to_string()),
        }
    }

    /// Returns the configuration compiled into the kernel (CONFIG_IKCONFIG). `None` if the kernel has none or cannot be
    /// decompressed.
    pub fn built_in_config(&self) -> Option<String> {
        let mut vmlinux = self.vmlinux().ok()?;
        let mut window = Vec::new();
        // The marker is searched in windows that overlap by its length, so that memory use is bounded.
        loop {
            let before = window.len();
            vmlinux
                .by_ref()
                .take(1 << 20)
                .read_to_end(&mut window)
                .ok()?;
            if let Some(at) = find(&window, IKCONFIG) {
                window.drain(..at + IKCONFIG.len());
                vmlinux
                    .by_ref()
                    .take(1 << 20)
                    .read_to_end(&mut window)
                    .ok()?;
                let mut text = String::new();
                let packed = flate2::read::GzDecoder::new(&window[..]);
                packed.take(8 << 20).read_to_string(&mut text).ok()?;
                return Some(text);
            }
            if window.len() == before {
                return None;
            }
            window.drain(..window.len().saturating_sub(IKCONFIG.len()));
        }
    }
}

/// The marker that precedes the gzipped configuration in a `vmlinux` (kernel/configs.c).
const IKCONFIG: &[u8] = b"IKCFG_ST";

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// Parses the header of an image. Returns the version line, and offset and length of the payload in bytes. The error
/// says what is wrong with the header.
fn header(start: &[u8]) -> Result<(String, u64, u64), &'static str> {
    if start.get(0x202..0x206) != Some(b"HdrS") {
        return Err(match start {
            [0x7f, b'E', b'L', b'F', ..] => {
                "it is an ELF file; the boot image is arch/x86/boot/bzImage"
            }
            _ if start.get(56..60) == Some(b"ARM\x64") => "it is an arm64 kernel",
            _ => "it has no boot header",
        });
    }
    if start.len() < HEADER_BYTES {
        return Err("its boot header is cut short");
    }
    // Protocol 2.12 added xloadflags, whose lowest bit marks a 64-bit kernel.
    if u16_at(start, 0x206) < 0x020c {
        return Err("its boot protocol is older than 2.12");
    }
    if u16_at(start, 0x236) & 1 == 0 {
        return Err("it is a 32-bit kernel");
    }
    // Zero means four, for compatibility with very old boot loaders.
    let sectors = match start[0x1f1] {
        0 => 4,
        sectors => u64::from(sectors),
    };
    let text = start
        .get(usize::from(u16_at(start, 0x20e)) + 0x200..)
        .unwrap_or_default();
    let end = text
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(text.len());
    let banner = String::from_utf8_lossy(&text[..end]).trim().to_owned();
    let plausible =
        banner.starts_with(|c: char| c.is_ascii_digit()) && !banner.contains(['/', '\n']);
    if !plausible {
        return Err("it names no version");
    }
    let payload_at = (sectors + 1) * 512 + u64::from(u32_at(start, 0x248));
    Ok((banner, payload_at, u64::from(u32_at(start, 0x24c))))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Reads an ELF file from a stream until it finds the build ID: header, program headers, then each note segment in file
/// order. Fails if there is no build ID.
fn build_id(mut elf: impl Read) -> io::Result<String> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut head = [0; 64];
    elf.read_exact(&mut head)?;
    // 64-bit, little endian.
    if head[..6] != *b"\x7fELF\x02\x01" {
        return Err(wrong("the payload is not a 64-bit ELF file"));
    }
    let (headers_at, entry, count) = (u64_at(&head, 32), u16_at(&head, 54), u16_at(&head, 56));
    if headers_at != 64 || entry != 56 {
        return Err(wrong("the ELF program headers do not follow the header"));
    }
    let mut headers = vec![0; usize::from(entry) * usize::from(count)];
    elf.read_exact(&mut headers)?;
    let mut at = 64 + headers.len() as u64;
    let mut notes: Vec<(u64, u64)> = headers
        .chunks_exact(usize::from(entry))
        .filter(|header| u32_at(header, 0) == PT_NOTE)
        .map(|header| (u64_at(header, 8), u64_at(header, 32)))
        .collect();
    notes.sort_unstable();
    for (start, length) in notes {
        let Some(gap) = start.checked_sub(at) else {
            continue;
        };
        if length > MAX_NOTE_BYTES {
            return Err(wrong("the notes are implausibly long"));
        }
        io::copy(&mut elf.by_ref().take(gap), &mut io::sink())?;
        let mut segment = Vec::new();
        elf.by_ref().take(length).read_to_end(&mut segment)?;
        at = start + length;
        if let Some(id) = gnu_build_id(&segment) {
            return Ok(id);
        }
    }
    Err(wrong("there is no GNU build id note"))
}

/// Type of note segments in ELF program headers.
const PT_NOTE: u32 = 4;
/// Maximum number of bytes read from a note segment. The notes of a kernel have a few hundred bytes.
const MAX_NOTE_BYTES: u64 = 1 << 20;

/// Returns the GNU build ID in a sequence of ELF notes; `None` if there is none. A note consists of name length,
/// description length, type, name and description; the last two are padded to four bytes.
fn gnu_build_id(mut notes: &[u8]) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    while notes.len() >= 12 {
        let name_length = usize::try_from(u32_at(notes, 0)).ok()?;
        let length = usize::try_from(u32_at(notes, 4)).ok()?;
        let kind = u32_at(notes, 8);
        let id_at = 12_usize.checked_add(name_length.checked_next_multiple_of(4)?)?;
        let next = id_at.checked_add(length.checked_next_multiple_of(4)?)?;
        let name = notes.get(12..12_usize.checked_add(name_length)?)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return notes.get(id_at..id_at.checked_add(length)?).map(hex);
        }
        notes = notes.get(next..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use proptest::prelude::*;

    fn write(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn release_and_build_id_are_read_from_a_compressed_image() {
        let vmlinux = sample::vmlinux(&[0xab; 20]);
        let packed = zstd::encode_all(&vmlinux[..], 3).unwrap();
        for payload in [&vmlinux, &packed] {
            let file = write(&sample::bzimage("6.12.1-test", payload));
            let image = Image::open(file.path()).unwrap();
            assert_eq!(image.release(), "6.12.1-test");
            assert_eq!(image.build_id(), BuildId::Known("ab".repeat(20)));
        }
    }

    #[test]
    fn an_image_packed_in_an_unread_format_still_opens_and_says_why_the_id_is_unknown() {
        let file = write(&sample::bzimage("6.12.1", b"BZh91AY&SY..."));
        match Image::open(file.path()).unwrap().build_id() {
            BuildId::Unknown(reason) => assert!(reason.contains("Bzip2"), "{reason}"),
            BuildId::Known(id) => panic!("{id}"),
        }
    }

    #[test]
    fn a_configuration_built_into_the_kernel_is_found() {
        use std::io::Write;
        let mut vmlinux = sample::vmlinux(&[1; 20]);
        // The marker straddles two windows.
        vmlinux.resize((1 << 20) - 3, 0);
        vmlinux.extend(IKCONFIG);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"CONFIG_SWAP=y\n").unwrap();
        vmlinux.extend(gzip.finish().unwrap());
        let file = write(&sample::bzimage("6.12.1", &vmlinux));
        let image = Image::open(file.path()).unwrap();
        assert_eq!(image.built_in_config().as_deref(), Some("CONFIG_SWAP=y\n"));
        let without = write(&sample::bzimage("6.12.1", &sample::vmlinux(&[1; 20])));
        assert_eq!(Image::open(without.path()).unwrap().built_in_config(), None);
    }

    #[test]
    fn files_that_are_no_kernel_are_refused_by_name_with_the_reason() {
        let good = sample::bzimage("6.1.0", &sample::vmlinux(&[1; 20]));
        let mut narrow = good.clone();
        narrow[0x236] = 0;
        let mut old = good.clone();
        old[0x207] = 1;
        for (bytes, why) in [
            (&b"#!/bin/sh\n"[..], "no boot header"),
            (&narrow, "32-bit"),
            (&old, "older than 2.12"),
        ] {
            let file = write(bytes);
            let error = Image::open(file.path()).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, KernelError::NotAKernel { .. }));
            assert!(
                text.contains(why) && text.contains(&file.path().display().to_string()),
                "{text}"
            );
        }
        let cut = write(&good[..good.len() - 1]);
        assert!(matches!(
            Image::open(cut.path()),
            Err(KernelError::Truncated { .. })
        ));
    }

    proptest! {
        #[test]
        fn a_corrupted_image_never_panics(at in 0_usize..1700, byte: u8, cut in 0_usize..1800) {
            let mut bytes = sample::bzimage("6.1.0", &sample::vmlinux(&[1; 20]));
            if let Some(slot) = bytes.get_mut(at) {
                *slot = byte;
            }
            bytes.truncate(cut);
            let file = write(&bytes);
            if let Ok(image) = Image::open(file.path()) {
                let _ = (image.release().to_owned(), image.build_id(), image.built_in_config());
            }
        }

        #[test]
        fn notes_of_garbage_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = gnu_build_id(&bytes);
        }
    }
}
