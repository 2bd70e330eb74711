//! Executable code in the files of a root, and the symbols that name its functions. Formats: System V ABI, chapters 4
//! and 5.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use object::LittleEndian;
use object::elf::{
    FileHeader64, PF_X, PT_LOAD, SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use sha2::{Digest, Sha256};

use crate::elf;
use crate::reader::{ImageEntry, ImageKind};

/// Maximum size in bytes of a file that is searched for code.
const MAX_FILE_BYTES: u64 = 512 << 20;
/// Maximum size in bytes of the code of all files together. A file that would exceed it is left out.
const MAX_CODE_BYTES: usize = 256 << 20;

/// A file with executable code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeFile {
    /// Path inside the root.
    pub path: String,
    /// Executable parts of the file.
    pub segments: Vec<CodeSegment>,
}

/// An executable part of a file, which is mapped as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// Address of the first byte, as written in the file.
    pub start: u64,
    /// Content of the part.
    pub bytes: Vec<u8>,
    /// Functions in this part in order of address, at most one for each address. Empty if the file has no symbols.
    pub symbols: Vec<CodeSymbol>,
}

/// A function in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSymbol {
    /// Address of the function, as written in the file.
    pub start: u64,
    /// Size of the function in bytes.
    pub size: u64,
    /// Name of the symbol. Names of C++ and Rust functions are mangled.
    pub name: String,
}

/// Returns the code of the ELF files for x86-64 among the entries of an image; files with identical code are listed
/// once. Leaves out files that cannot be parsed, because the loader could not load them either, and files beyond
/// [`MAX_FILE_BYTES`] or [`MAX_CODE_BYTES`].
pub fn files(image: &File, entries: &[ImageEntry]) -> io::Result<Vec<CodeFile>> {
    let (mut all, mut seen, mut sum) = (Vec::new(), HashSet::new(), 0);
    for entry in entries {
        let ImageKind::File { size, parts } = &entry.kind else {
            continue;
        };
        if *size > MAX_FILE_BYTES || !begins_as_elf(image, parts)? {
            continue;
        }
        let mut bytes = vec![0; usize::try_from(*size).unwrap_or(0)];
        for (at, from, length) in parts {
            let at = usize::try_from(*at).unwrap_or(usize::MAX);
            let end = bytes
                .len()
                .min(at.saturating_add(usize::try_from(*length).unwrap_or(0)));
            if let Some(piece) = bytes.get_mut(at..end) {
                image.read_exact_at(piece, *from)?;
            }
        }
        let Ok(segments) = segments(&bytes) else {
            continue;
        };
        let length: usize = segments.iter().map(|segment| segment.bytes.len()).sum();
        let digest = segments
            .iter()
            .fold(Sha256::new(), |sum, one| sum.chain_update(&one.bytes));
        if length == 0 || sum + length > MAX_CODE_BYTES || !seen.insert(digest.finalize()) {
            continue;
        }
        sum += length;
        all.push(CodeFile {
            path: entry.path.clone(),
            segments,
        });
    }
    Ok(all)
}

fn begins_as_elf(image: &File, parts: &[(u64, u64, u64)]) -> io::Result<bool> {
    let mut start = [0; 20];
    match parts.first() {
        Some((0, from, _)) => image.read_exact_at(&mut start, *from)?,
        _ => return Ok(false),
    }
    // Class 64, little-endian, and the number of x86-64.
    Ok(elf::is_elf(&start) && start[4..6] == [2, 1] && start[18..20] == [62, 0])
}

/// Returns the executable segments of an ELF file.
fn segments(bytes: &[u8]) -> Result<Vec<CodeSegment>, object::read::Error> {
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    let endian = header.endian()?;
    let mut symbols: BTreeMap<u64, CodeSymbol> = BTreeMap::new();
    // A file without section headers has no symbols here, and its code no names.
    if let Ok(sections) = header.sections(endian, bytes) {
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            let Ok(table) = sections.symbols(endian, bytes, kind) else {
                continue;
            };
            for symbol in table.iter() {
                let is_function = [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.st_type());
                let name = symbol.name(endian, table.strings()).unwrap_or_default();
                if !is_function || symbol.st_value(endian) == 0 || name.is_empty() {
                    continue;
                }
                add(
                    &mut symbols,
                    CodeSymbol {
                        start: symbol.st_value(endian),
                        size: symbol.st_size(endian),
                        name: String::from_utf8_lossy(name).into_owned(),
                    },
                );
            }
        }
        for section in sections.iter() {
            let name = sections.section_name(endian, section).unwrap_or_default();
            let flags = section.sh_flags(endian);
            if flags & SHF_EXECINSTR == SHF_EXECINSTR && name.starts_with(b".plt") {
                add(
                    &mut symbols,
                    CodeSymbol {
                        start: section.sh_addr(endian),
                        size: section.sh_size(endian),
                        name: "(calls of libraries)".to_owned(),
                    },
                );
            }
        }
    }
    let mut found = Vec::new();
    for segment in header.program_headers(endian, bytes)? {
        if segment.p_type(endian) != PT_LOAD || segment.p_flags(endian) & PF_X != PF_X {
            continue;
        }
        let start = segment.p_vaddr(endian);
        let code = segment.data(endian, bytes).unwrap_or_default();
        let end = start + code.len() as u64;
        found.push(CodeSegment {
            start,
            bytes: code.to_vec(),
            symbols: symbols
                .range(start..end)
                .map(|(_, symbol)| symbol.clone())
                .collect(),
        });
    }
    Ok(found)
}

/// Adds a symbol. If an address has several names, the shortest name is used; among equally short names, the first in
/// alphabetical order.
fn add(symbols: &mut BTreeMap<u64, CodeSymbol>, new: CodeSymbol) {
    let order = |symbol: &CodeSymbol| (symbol.name.len(), symbol.name.clone());
    match symbols.get(&new.start) {
        Some(known) if order(known) <= order(&new) => {}
        _ => {
            symbols.insert(new.start, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_of_this_program_are_found_and_a_file_that_is_cut_off_is_left_out() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let found = segments(&own).unwrap();
        let names = |name: &str| {
            let all = found.iter().flat_map(|segment| &segment.symbols);
            all.filter(|symbol| symbol.name.contains(name)).count()
        };
        assert!(names("the_functions_of_this_program_are_found") > 0);
        assert!(found.iter().all(|segment| !segment.bytes.is_empty()));
        assert!(segments(&own[..40]).is_err());
    }
}
