//! The kernel's own memory: read through `/proc/kcore`, written by the emulator on the guest's request.
//!
//! The kernel does not let a program write the kernel's memory: `/proc/kcore` is read-only, and `/dev/mem` excludes
//! RAM. But the emulator's configuration device copies its items to any physical address that the guest specifies,
//! within the instruction that requests it. No kernel driver and no clock take part, so the copy is deterministic.
//! Sources: QEMU `docs/specs/fw_cfg.rst`; kernel `fs/proc/kcore.c`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;

use pagetide_quantity::PAGE_SIZE;
use pagetide_system::pagemap::PageMap;
use pagetide_system::{Mapping, Source};

use crate::port;

/// Path of the kernel's memory, which the kernel presents as an ELF file.
const KCORE: &str = "/proc/kcore";
/// Path of the list of the kernel's symbols.
const KALLSYMS: &str = "/proc/kallsyms";
/// Type of a loadable segment in an ELF program header (`PT_LOAD`).
const LOAD: u32 = 1;
/// Physical address that the kernel states for a segment that is not in RAM.
const NO_ADDRESS: u64 = u64::MAX;

/// Returns all 256 values of a byte in ascending order. While a guest boots, the configuration item for the trial's
/// order has this content, so that the emulator can copy any byte value from it to memory.
pub fn bytes() -> [u8; 256] {
    std::array::from_fn(|value| u8::try_from(value).unwrap_or(u8::MAX))
}

/// A range of the kernel's address space that is mapped to RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Virtual address of the first byte.
    address: u64,
    /// Physical address of the first byte.
    physical: u64,
    /// Size in bytes.
    size: u64,
    /// Offset of the range in `/proc/kcore`.
    offset: u64,
}

impl Segment {
    fn has(&self, address: u64) -> bool {
        (self.address..self.address + self.size).contains(&address)
    }
}

/// The memory of the running kernel, open for reading.
#[derive(Debug)]
pub struct KernelMemory {
    file: File,
    segments: Vec<Segment>,
}

impl KernelMemory {
    /// Opens the kernel's memory. Fails on a kernel without `CONFIG_PROC_KCORE`.
    pub fn open() -> io::Result<Self> {
        let file = File::open(KCORE)?;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0)?;
        let (at, size, count) = (long(&head, 32), half(&head, 54), half(&head, 56));
        let mut table = vec![0; usize::from(size) * usize::from(count)];
        file.read_exact_at(&mut table, at)?;
        Ok(Self {
            file,
            segments: segments(&table, usize::from(size)),
        })
    }

    /// Fills `buffer` with the kernel's memory at a virtual address. Fails if the address is not in RAM.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<()> {
        let segment = self.segment(address)?;
        self.file
            .read_exact_at(buffer, segment.offset + (address - segment.address))
    }

    /// Reads the eight bytes at a virtual address as a number. Fails if the address is not in RAM.
    pub fn number(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Returns the physical address of a virtual address. Fails if the address is not in RAM.
    pub fn physical(&self, address: u64) -> io::Result<u64> {
        let segment = self.segment(address)?;
        Ok(segment.physical + (address - segment.address))
    }

    fn segment(&self, address: u64) -> io::Result<&Segment> {
        self.segments
            .iter()
            .find(|segment| segment.has(address))
            .ok_or_else(|| io::Error::other(format!("{KCORE} has no address {address:#x}")))
    }
}

/// Parses a table of ELF program headers, each of `size` bytes. Returns the segments that are in RAM.
fn segments(table: &[u8], size: usize) -> Vec<Segment> {
    const HEADER_BYTES: usize = 56;
    table
        .chunks_exact(size.max(HEADER_BYTES))
        .filter(|header| word(header, 0) == LOAD && long(header, 24) != NO_ADDRESS)
        .map(|header| Segment {
            address: long(header, 16),
            physical: long(header, 24),
            size: long(header, 40),
            offset: long(header, 8),
        })
        .collect()
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

/// Returns the addresses of the kernel's symbols with these names; `None` for a name that is not listed. Kernels
/// without `CONFIG_KALLSYMS_ALL` list no variables, and those without `CONFIG_KALLSYMS` have no list.
pub fn symbols<const N: usize>(names: [&str; N]) -> io::Result<[Option<u64>; N]> {
    let file = match File::open(KALLSYMS) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok([None; N]),
        file => file?,
    };
    let mut list = BufReader::with_capacity(1 << 16, file);
    let (mut found, mut line) = ([None; N], Vec::new());
    while found.contains(&None) && list.read_until(b'\n', &mut line)? > 0 {
        if let Some((name, address)) = symbol(&line)
            && let Some(place) = names.iter().position(|wanted| wanted.as_bytes() == name)
        {
            found[place] = Some(address);
        }
        line.clear();
    }
    Ok(found)
}

/// Parses a line of `/proc/kallsyms`, such as `ffffffff82a01234 D name`, to the name and address of the symbol. Ignores
/// the letter of the type, which differs between kernels: `_totalram_pages` has D on 6.12 and T on 7.2. For a symbol of
/// a module, the name includes the module. `None` if the address is hidden (all zeros).
fn symbol(line: &[u8]) -> Option<(&[u8], u64)> {
    let (address, rest) = line.split_at_checked(16)?;
    let [b' ', _, b' ', name @ ..] = rest else {
        return None;
    };
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    Some((name.trim_ascii_end(), address)).filter(|_| address != 0)
}

/// Writes physical memory, through requests to the emulator's configuration device to copy bytes of an item.
#[derive(Debug)]
pub struct Copier {
    /// A locked page that contains the request to the device.
    page: Mapping,
    physical: u64,
    /// Selector of the configuration item that contains all values of a byte.
    item: u16,
}

impl Copier {
    /// Prepares copies from the configuration item with this selector. The content of the item must be [`bytes`].
    pub fn new(item: u16) -> io::Result<Self> {
        let length = usize::try_from(PAGE_SIZE).unwrap_or(4096);
        let page = Mapping::with(Source::Private, length, libc::MAP_POPULATE)?;
        page.write(0, &[0; 16]);
        page.lock(0)?;
        let mut frame = None;
        PageMap::open()?.each(page.start() as usize, 1, &mut [0], |_, entry| {
            frame = entry.frame();
        })?;
        let physical = frame.ok_or_else(|| io::Error::other("a page has no frame"))? * PAGE_SIZE;
        Ok(Self {
            page,
            physical,
            item,
        })
    }

    /// Writes a number to the eight bytes at a physical address, in native byte order.
    pub fn write(&self, physical: u64, number: u64) -> io::Result<()> {
        const READ: u32 = 2;
        const SKIP: u32 = 4;
        const SELECT: u32 = 8;
        for (address, byte) in (physical..).zip(number.to_ne_bytes()) {
            let select = u32::from(self.item) << 16 | SELECT;
            self.ask(select | SKIP, u32::from(byte), 0)?;
            self.ask(READ, 1, address)?;
        }
        Ok(())
    }

    /// Sends a request to the device, which completes it at once. The numbers in the request are big-endian. Fails if
    /// the device reports an error.
    fn ask(&self, control: u32, length: u32, address: u64) -> io::Result<()> {
        self.page.write(0, &control.to_be_bytes());
        self.page.write(4, &length.to_be_bytes());
        self.page.write(8, &address.to_be_bytes());
        port::copy(self.physical);
        // SAFETY: the page is mapped and larger than the number. The read is volatile because the device may have
        // written it.
        let left = unsafe { self.page.start().cast::<[u8; 4]>().read_volatile() };
        match u32::from_be_bytes(left) {
            0 => Ok(()),
            left => Err(io::Error::other(format!(
                "the emulator's configuration device answered {left:#x}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_the_kernel_are_found_in_the_list() {
        let of = |line: &'static str| symbol(line.as_bytes());
        for kind in ["D", "T"] {
            let line = format!("ffffffff82a01234 {kind} _totalram_pages\n");
            assert_eq!(
                symbol(line.as_bytes()),
                Some((&b"_totalram_pages"[..], 0xffff_ffff_82a0_1234))
            );
        }
        // A reader without the right to see addresses gets zeros.
        assert_eq!(of("0000000000000000 b node_data\n"), None);
        assert_eq!(of("short\n"), None);
        let module = of("ffffffffc0a01234 d node_data\t[nfit]\n");
        assert!(module.is_none_or(|(name, _)| name != b"node_data"));
    }

    #[test]
    fn addresses_are_found_in_the_segments_that_are_in_memory() {
        let header = |kind: u32, numbers: [u64; 4]| {
            let mut bytes = [0; 56];
            bytes[..4].copy_from_slice(&kind.to_le_bytes());
            let [offset, address, physical, size] = numbers;
            for (at, number) in [(8, offset), (16, address), (24, physical), (40, size)] {
                bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            bytes
        };
        let table = [
            header(4, [10, 0, 0, 20]),
            header(LOAD, [100, 0x1000, NO_ADDRESS, 50]),
            header(LOAD, [200, 0xffff_0000, 0x10_0000, 0x800]),
        ]
        .concat();
        let found = segments(&table, 56);
        assert_eq!(found.len(), 1);
        assert!(found[0].has(0xffff_07ff) && !found[0].has(0xffff_0800));
        assert_eq!((found[0].physical, found[0].offset), (0x10_0000, 200));
    }
}
