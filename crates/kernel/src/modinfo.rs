//! The `.modinfo` section of a kernel module's ELF file: `key=value` strings, each terminated by a zero byte.

use object::{Object, ObjectSection};

/// Contents of a module's `.modinfo` section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modinfo {
    /// Modules that must be loaded before this module.
    pub depends: Vec<String>,
    /// Modules that should be loaded before this module if they exist (`softdep=pre:`).
    pub before: Vec<String>,
    /// Modules that should be loaded after this module if they exist (`softdep=post:`).
    pub after: Vec<String>,
    /// Release that the module was built for: the first word of `vermagic`.
    pub release: Option<String>,
}

impl Modinfo {
    /// Parses the `.modinfo` of an uncompressed module. The error says what is wrong with the file.
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

    /// Adds the modules of a soft dependency such as `pre: a b post: c` (format: modprobe.d(5)).
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
mod tests {
    use super::*;
    use crate::sample;
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
