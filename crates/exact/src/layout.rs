//! Where the kernel of a guest keeps what the profiler's plugin reads: places of members in its structures, and addresses
//! of its memory. Both come from the memory of the snapshot itself, in which every kernel with `CONFIG_DEBUG_INFO_BTF`
//! has its types.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use crate::btf::Btf;
use crate::profiler::format::{NEEDED, NO_PLACE, PLACES};

/// Address at which the kernel maps its image. Source: Linux `Documentation/arch/x86/x86_64/mm.rst`.
const IMAGE: u64 = 0xffff_ffff_8000_0000;
/// Largest memory that the emulated machine has without a gap below 4 GiB. Source: QEMU `hw/i386/pc_piix.c`.
const MAX_MEMORY: u64 = 3 << 30;
/// Maximum size of a kernel's type data; Debian's 7.2 has 5 MB.
const MAX_BTF: u64 = 256 << 20;

/// Places in the kernel's structures and addresses of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The places of [`PLACES`].
    places: Vec<u64>,
    /// The kernel's `page_offset_base` and `phys_base`, then inode and size of each file with the guest's memory.
    ram: Vec<u64>,
}

/// Addresses of symbols in a list of lines `address type name`; `None` for those that it does not have.
fn addresses<const N: usize>(list: &[u8], names: [&str; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    for line in str::from_utf8(list).unwrap_or_default().split('\n') {
        // Sixteen digits, the letter of the type between spaces, and the name.
        let (Some(digits), Some(name)) = (line.get(..16), line.get(19..)) else {
            continue;
        };
        if let Some(at) = names.iter().position(|wanted| *wanted == name)
            && found[at].is_none()
        {
            found[at] = u64::from_str_radix(digits, 16).ok();
        }
    }
    found
}

impl Layout {
    /// Reads the layout of the kernel in a snapshot. `list` has the kernel's symbols, and `rams` are the files with the
    /// guest's memory. `None` if the kernel has no type data, or lists no variables.
    pub fn read(list: &[u8], rams: &[PathBuf]) -> Option<Self> {
        let first = File::open(rams.first()?).ok()?;
        let names = ["__start_BTF", "__stop_BTF", "page_offset_base", "phys_base"];
        // The image is mapped at its own physical addresses, since the guest's kernel is not moved.
        let place = |address: Option<u64>| address?.checked_sub(IMAGE);
        let [start, stop, offset, base] = addresses(list, names).map(place);
        let number = |place: Option<u64>| {
            let mut bytes = [0; 8];
            first.read_exact_at(&mut bytes, place?).ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let start = start?;
        let size = stop?.checked_sub(start)?;
        let mut bytes = vec![0; usize::try_from(size.min(MAX_BTF)).ok()?];
        first.read_exact_at(&mut bytes, start).ok()?;
        let btf = Btf::read(&bytes)?;
        let places = (0..).zip(PLACES).map(|(at, path)| {
            let found = btf.place(path);
            if at < NEEDED {
                found
            } else {
                found.or(Some(NO_PLACE))
            }
        });
        let mut ram = vec![number(offset)?, number(base)?];
        let mut all = 0;
        for path in rams {
            let file = path.metadata().ok()?;
            ram.extend([file.ino(), file.len()]);
            all += file.len();
        }
        (ram[1] == 0 && all <= MAX_MEMORY).then_some(())?;
        Some(Self {
            places: places.collect::<Option<_>>()?,
            ram,
        })
    }

    /// Returns the plugin's arguments.
    pub fn arguments(&self) -> String {
        let numbers = |numbers: &[u64]| {
            let all: Vec<String> = numbers.iter().map(u64::to_string).collect();
            all.join("+")
        };
        format!(
            ",places={},ram={}",
            numbers(&self.places),
            numbers(&self.ram)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_found_by_its_whole_name() {
        let list =
            b"ffffffff81000010 T not_phys_base\nffffffff81000020 D phys_base\nshort phys_base\n";
        assert_eq!(
            addresses(list, ["phys_base", "base", "not_phys_base"]),
            [
                Some(0xffff_ffff_8100_0020),
                None,
                Some(0xffff_ffff_8100_0010)
            ]
        );
        assert_eq!(Layout::read(list, &[]), None);
    }
}
