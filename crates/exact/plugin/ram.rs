//! Reads the guest's memory, which the emulator maps from the files of a snapshot into its own address space.

use alloc::vec::Vec;
use core::ffi::CStr;

use crate::heap;
use crate::mappings::Memory;

/// Address at which the kernel maps its image. Source: Linux `Documentation/arch/x86/x86_64/mm.rst`.
const IMAGE: u64 = 0xffff_ffff_8000_0000;

/// A part of the guest's physical memory.
struct Part {
    /// Physical address of its first byte.
    start: u64,
    size: u64,
    /// Address of its first byte in the emulator.
    host: u64,
}

/// The guest's memory, and how its kernel maps it.
pub struct Ram {
    parts: Vec<Part>,
    /// Address at which the kernel maps all physical memory.
    pub direct: u64,
    /// Physical address of the first byte of the area in which the image is mapped.
    image: u64,
}

/// Parses a number and returns what follows it.
fn number(text: &[u8], radix: u64) -> (u64, &[u8]) {
    let digit = |byte: &u8| (*byte as char).to_digit(radix as u32);
    let end = text.iter().position(|byte| digit(byte).is_none());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let value = digits.iter().filter_map(digit);
    let value = value.fold(0_u64, |sum, digit| {
        sum.wrapping_mul(radix).wrapping_add(digit.into())
    });
    (value, rest)
}

/// Parses a line of `/proc/self/maps`: the start and end of the mapping, its offset in the file, and the file's inode.
/// `None` if the mapping is not private and writable.
fn line(text: &[u8]) -> Option<[u64; 4]> {
    let (start, rest) = number(text, 16);
    let (end, rest) = number(rest.strip_prefix(b"-")?, 16);
    let (offset, rest) = number(rest.strip_prefix(b" rw-p ")?, 16);
    let device = rest.strip_prefix(b" ")?;
    let space = device.iter().position(|byte| *byte == b' ')?;
    let (inode, _) = number(device.get(space + 1..)?, 10);
    Some([start, end, offset, inode])
}

impl Ram {
    /// Finds the memory of the emulator that contains the guest's, in the list of the emulator's mappings at `path`.
    /// `files` are inode and size of each file with the guest's memory, in the order of physical addresses, and `bases`
    /// the kernel's `page_offset_base` and `phys_base`. `None` if it is not found.
    pub fn find(path: &CStr, files: &[u64], bases: [u64; 2]) -> Option<Self> {
        let list = heap::content(path)?;
        let mut parts = Vec::new();
        for [start, end, offset, inode] in list.split(|byte| *byte == b'\n').filter_map(line) {
            let inodes = files.iter().step_by(2);
            let Some(place) = inodes.clone().position(|known| *known == inode) else {
                continue;
            };
            let sizes = files.iter().skip(1).step_by(2);
            let before: u64 = sizes.take(place).sum();
            parts.push(Part {
                start: before + offset,
                size: end - start,
                host: start,
            });
        }
        let [direct, image] = bases;
        (!parts.is_empty()).then_some(Self {
            parts,
            direct,
            image,
        })
    }

    /// Reads `N` bytes at an address of the guest's kernel. `None` if the address is not that of its memory.
    fn bytes<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let physical = match address {
            IMAGE.. => address - IMAGE + self.image,
            _ => address.checked_sub(self.direct)?,
        };
        let part = self.parts.iter().find(|part| {
            let offset = physical.checked_sub(part.start);
            offset.is_some_and(|offset| offset < part.size && part.size - offset >= N as u64)
        })?;
        let host = part.host + (physical - part.start);
        // SAFETY: the emulator maps these bytes until it ends, and they may change at any time.
        Some(unsafe { (host as *const [u8; N]).read_volatile() })
    }

}

impl Memory for Ram {
    fn number(&self, address: u64) -> Option<u64> {
        self.bytes(address).map(u64::from_le_bytes)
    }

    fn byte(&self, address: u64) -> Option<u8> {
        self.bytes(address).map(|[byte]| byte)
    }
}
