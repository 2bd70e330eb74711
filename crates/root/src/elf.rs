//! Reads which loader and libraries an ELF file needs. Format: System V ABI, chapters 4 and 5.

use std::path::Path;

use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, DynamicTag, ELFCLASS64, EM_386,
    EM_AARCH64, EM_ARM, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64, FileHeader64, Machine, PT_DYNAMIC,
    PT_INTERP, PT_LOAD,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use crate::error::RootError;

/// First bytes of every ELF file.
const MAGIC: &[u8] = b"\x7fELF";

/// Loader and libraries that an ELF file needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// Path of the loader (`PT_INTERP`); `None` for static programs and for most libraries (`libc.so.6` has one).
    pub interpreter: Option<String>,
    /// Names of the libraries that the file needs.
    pub needed: Vec<String>,
    /// Folders that the file itself names for its libraries (RPATH or RUNPATH); they may contain `$ORIGIN`.
    pub folders: Vec<String>,
}

/// Returns true if `bytes` begin with the ELF magic number.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns the name of the processor with this machine number in ELF.
fn machine(number: u16) -> String {
    match Machine(number) {
        EM_386 => "32-bit x86".to_owned(),
        EM_AARCH64 => "arm64".to_owned(),
        EM_ARM => "32-bit ARM".to_owned(),
        EM_RISCV => "RISC-V".to_owned(),
        EM_PPC64 => "PowerPC".to_owned(),
        EM_S390 => "s390".to_owned(),
        other => format!("processor {} of the ELF list", other.0),
    }
}

/// Reads which loader and libraries an ELF file for x86-64 needs. `path` is the file's name in messages. Fails for
/// other processors and for damaged files.
pub fn read(path: &Path, bytes: &[u8]) -> Result<Elf, RootError> {
    let fault = |why: String| RootError::Elf {
        path: path.to_owned(),
        why,
    };
    let ends = || fault("it ends early".to_owned());
    // The class, and the processor at offset 18, are at the same offsets in files of 32 and 64 bits.
    let class = *bytes.get(4).ok_or_else(ends)?;
    let is_big = *bytes.get(5).ok_or_else(ends)? == 2;
    let number = bytes.get(18..20).ok_or_else(ends)?;
    let number = [number[0], number[1]];
    let number = if is_big {
        u16::from_be_bytes(number)
    } else {
        u16::from_le_bytes(number)
    };
    if number != EM_X86_64.0 || class != ELFCLASS64.0 || is_big {
        let found = if number == EM_X86_64.0 {
            "x32".to_owned()
        } else {
            machine(number)
        };
        return Err(RootError::OtherArchitecture {
            path: path.to_owned(),
            found,
        });
    }
    parse(bytes).map_err(|why| fault(why.to_string()))
}

fn parse(bytes: &[u8]) -> Result<Elf, object::read::Error> {
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, bytes)?;
    let mut elf = Elf::default();
    for segment in segments {
        match segment.p_type(endian) {
            PT_INTERP => {
                let text = segment.data(endian, bytes).unwrap_or_default();
                elf.interpreter = text_at(text, 0);
            }
            PT_DYNAMIC => {
                let Some(dynamic) = segment.dynamic(endian, bytes)? else {
                    continue;
                };
                let value = |tag: DynamicTag| {
                    dynamic
                        .iter()
                        .find(|entry| entry.tag(endian) == tag)
                        .map(|entry| entry.d_val(endian))
                };
                let (Some(at), Some(size)) = (value(DT_STRTAB), value(DT_STRSZ)) else {
                    continue;
                };
                // The table is given by its address in memory, which is converted to an offset in the file.
                let table = segments.iter().find_map(|segment| {
                    if segment.p_type(endian) != PT_LOAD {
                        return None;
                    }
                    segment.data_range(endian, bytes, at, size).ok().flatten()
                });
                let table = table.unwrap_or_default();
                let texts = |tag: DynamicTag| {
                    dynamic
                        .iter()
                        .filter(move |entry| entry.tag(endian) == tag)
                        .filter_map(|entry| {
                            text_at(table, usize::try_from(entry.d_val(endian)).ok()?)
                        })
                        .collect::<Vec<String>>()
                };
                elf.needed = texts(DT_NEEDED);
                // If a file has RUNPATH, the loader ignores its RPATH.
                let mut paths = texts(DT_RUNPATH);
                if paths.is_empty() {
                    paths = texts(DT_RPATH);
                }
                elf.folders = paths
                    .iter()
                    .flat_map(|path| path.split(':'))
                    .filter(|folder| !folder.is_empty())
                    .map(str::to_owned)
                    .collect();
            }
            _ => {}
        }
    }
    Ok(elf)
}

/// Returns the text at offset `at` of a string table, up to a zero byte; `None` if it does not end within the table or
/// is not UTF-8.
fn text_at(table: &[u8], at: usize) -> Option<String> {
    let rest = table.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    String::from_utf8(rest[..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_names_its_interpreter_and_the_c_library() {
        let path = Path::new("/bin/sh");
        let elf = read(path, &std::fs::read(path).unwrap()).unwrap();
        assert!(elf.interpreter.unwrap().contains("ld-linux"));
        assert!(elf.needed.iter().any(|name| name == "libc.so.6"));
    }

    #[test]
    fn a_program_of_another_processor_and_a_damaged_one_are_refused_by_name() {
        let path = Path::new("/bin/x");
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        bytes.truncate(1 << 16);
        bytes[18..20].copy_from_slice(&EM_AARCH64.0.to_le_bytes());
        let said = read(path, &bytes).unwrap_err().to_string();
        assert!(said.contains("/bin/x") && said.contains("arm64"), "{said}");
        bytes[18..20].copy_from_slice(&EM_X86_64.0.to_le_bytes());
        for length in [0, 4, 5, 19, 60, 100] {
            assert!(read(path, &bytes[..length]).is_err(), "{length}");
        }
        // Every input gives a result or an error, never a panic.
        for at in 0..400 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            let _ = read(path, &bytes);
        }
    }
}
