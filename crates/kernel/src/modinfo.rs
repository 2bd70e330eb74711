//! What a kernel module says of itself: the `.modinfo` section of its ELF file, `key=value` strings ended by zeros.

use object::{Object, ObjectSection};

/// A module's own statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modinfo {
    /// Modules that must be loaded before it.
    pub depends: Vec<String>,
    /// Modules that should be loaded before it if they are there (`softdep=pre:`).
    pub before: Vec<String>,
    /// Modules that should be loaded after it if they are there (`softdep=post:`).
    pub after: Vec<String>,
    /// The release it was built for, the first word of `vermagic`.
    pub release: Option<String>,
}

impl Modinfo {
    /// Reads the statements of an uncompressed module; the error says what is wrong with it.
    pub fn parse(module: &[u8]) -> Result<Self, String> {
        let elf = object::File::parse(module).map_err(|e| e.to_string())?;
        let section = elf
            .section_by_name(".modinfo")
            .ok_or("it has no .modinfo section")?;
        Ok(Self::from_section(
            section.data().map_err(|e| e.to_string())?,
        ))
    }

    fn from_section(section: &[u8]) -> Self {
        let mut info = Self::default();
        for statement in section.split(|byte| *byte == 0) {
            let text = String::from_utf8_lossy(statement);
            match text.split_once('=') {
                Some(("depends", names)) => {
                    info.depends.extend(
                        names
                            .split(',')
                            .filter(|n| !n.is_empty())
                            .map(str::to_owned),
                    );
                }
                Some(("softdep", order)) => info.add_softdep(order),
                Some(("vermagic", magic)) => {
                    info.release = magic.split_whitespace().next().map(str::to_owned);
                }
                _ => {}
            }
        }
        info
    }

    /// `pre: a b post: c`, as modprobe.d(5) describes it.
    fn add_softdep(&mut self, order: &str) {
        let mut list = None;
        for word in order.split_whitespace() {
            match word {
                "pre:" => list = Some(&mut self.before),
                "post:" => list = Some(&mut self.after),
                name => {
                    if let Some(list) = &mut list {
                        list.push(name.to_owned());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
pub mod sample {
    //! The smallest ELF file with a `.modinfo` section.

    /// A relocatable 64-bit ELF file whose `.modinfo` holds `statements`.
    pub fn module(statements: &[&str]) -> Vec<u8> {
        let mut info = Vec::new();
        for statement in statements {
            info.extend(statement.as_bytes());
            info.push(0);
        }
        let names = b"\0.modinfo\0.shstrtab\0";
        let (info_at, names_at) = (64, 64 + info.len());
        let headers_at = (names_at + names.len()).next_multiple_of(8);
        let mut elf = vec![0_u8; headers_at + 3 * 64];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[16..18].copy_from_slice(&1_u16.to_le_bytes());
        elf[18..20].copy_from_slice(&62_u16.to_le_bytes());
        elf[20..24].copy_from_slice(&1_u32.to_le_bytes());
        elf[40..48].copy_from_slice(&(headers_at as u64).to_le_bytes());
        elf[52..54].copy_from_slice(&64_u16.to_le_bytes());
        elf[58..60].copy_from_slice(&64_u16.to_le_bytes());
        elf[60..62].copy_from_slice(&3_u16.to_le_bytes());
        elf[62..64].copy_from_slice(&2_u16.to_le_bytes());
        elf[info_at..names_at].copy_from_slice(&info);
        elf[names_at..names_at + names.len()].copy_from_slice(names);
        let sections = [
            (1_u32, 1_u32, info_at, info.len()),
            (10, 3, names_at, names.len()),
        ];
        for (index, (name, kind, at, size)) in sections.into_iter().enumerate() {
            let header = headers_at + 64 * (index + 1);
            elf[header..header + 4].copy_from_slice(&name.to_le_bytes());
            elf[header + 4..header + 8].copy_from_slice(&kind.to_le_bytes());
            elf[header + 24..header + 32].copy_from_slice(&(at as u64).to_le_bytes());
            elf[header + 32..header + 40].copy_from_slice(&(size as u64).to_le_bytes());
            elf[header + 48..header + 56].copy_from_slice(&1_u64.to_le_bytes());
        }
        elf
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> Vec<u8> {
        sample::module(&[
            "license=GPL",
            "depends=zsmalloc,lz4_compress",
            "softdep=pre: crc32c post: late",
            "vermagic=6.1.0-9 SMP mod_unload",
        ])
    }

    #[test]
    fn dependencies_soft_and_hard_and_the_release_are_read() {
        let info = Modinfo::parse(&example()).unwrap();
        assert_eq!(info.depends, ["zsmalloc", "lz4_compress"]);
        assert_eq!(
            (info.before, info.after),
            (vec!["crc32c".to_owned()], vec!["late".to_owned()])
        );
        assert_eq!(info.release.as_deref(), Some("6.1.0-9"));
    }

    #[test]
    fn a_module_without_dependencies_has_none() {
        let info = Modinfo::parse(&sample::module(&["depends=", "intree=Y"])).unwrap();
        assert_eq!(info, Modinfo::default());
    }

    #[test]
    fn a_file_that_is_no_module_is_an_error() {
        assert!(Modinfo::parse(b"not an ELF file").is_err());
        assert!(Modinfo::parse(&[]).is_err());
    }

    proptest! {
        #[test]
        fn a_corrupted_module_never_panics(
            changes in prop::collection::vec((0_usize..500, any::<u8>()), 0..8), cut in 0_usize..600
        ) {
            let mut bytes = example();
            for (at, byte) in changes {
                if let Some(slot) = bytes.get_mut(at) {
                    *slot = byte;
                }
            }
            bytes.truncate(cut);
            let _ = Modinfo::parse(&bytes);
        }

        #[test]
        fn a_section_of_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Modinfo::from_section(&bytes);
        }
    }
}
