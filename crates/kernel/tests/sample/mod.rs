//! Small images, modules and packages, created here so that tests need neither network nor a real kernel.

// Each test binary uses some of these.
#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};

/// A vmlinux that contains only notes: the build id, preceded by another note.
pub fn vmlinux(id: &[u8]) -> Vec<u8> {
    let mut notes = Vec::new();
    for (name, kind, value) in [(&b"Xen\0"[..], 6_u32, &b"linux"[..]), (b"GNU\0", 3, id)] {
        notes.extend(u32::try_from(name.len()).unwrap().to_le_bytes());
        notes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
        notes.extend(kind.to_le_bytes());
        notes.extend(name);
        notes.extend(value);
        notes.resize(notes.len().next_multiple_of(4), 0);
    }
    let mut elf = vec![0; 512];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[32..40].copy_from_slice(&64_u64.to_le_bytes());
    elf[54..56].copy_from_slice(&56_u16.to_le_bytes());
    elf[56..58].copy_from_slice(&1_u16.to_le_bytes());
    elf[64..68].copy_from_slice(&4_u32.to_le_bytes());
    elf[72..80].copy_from_slice(&512_u64.to_le_bytes());
    elf[96..104].copy_from_slice(&(notes.len() as u64).to_le_bytes());
    elf.extend(notes);
    elf
}

/// A bzImage with this release. It contains `payload` as the compressed kernel.
pub fn bzimage(release: &str, payload: &[u8]) -> Vec<u8> {
    let mut image = vec![0; 1024];
    image[0x1f1] = 1;
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
    image[0x236..0x238].copy_from_slice(&1_u16.to_le_bytes());
    image[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
    let banner = format!("{release} (me@here) #1 SMP\0");
    image[0x300..0x300 + banner.len()].copy_from_slice(banner.as_bytes());
    image.extend(payload);
    image
}

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

/// The configuration of a sample kernel.
pub const CONFIG: &str =
    "CONFIG_MODULES=y\nCONFIG_SWAP=y\nCONFIG_BLK_DEV_NULL_BLK=m\n# CONFIG_ZRAM is not set\n";

/// A sample package, before it is built.
pub struct Deb {
    /// The field `Package`: name of the package.
    pub name: String,
    /// The field `Version`.
    pub version: String,
    /// The field `Architecture`.
    pub architecture: String,
    /// The field `Depends`.
    pub depends: String,
    /// Files of the data archive, each with its stored path and its content.
    pub files: Vec<(String, Vec<u8>)>,
    /// Suffix of the names of the package's archives: `.xz`, `.zst`, `.gz` or empty.
    pub ending: &'static str,
}

impl Deb {
    /// An amd64 package without files.
    pub fn new(name: &str, version: &str, depends: &str) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            architecture: "amd64".into(),
            depends: depends.into(),
            files: Vec::new(),
            ending: ".xz",
        }
    }

    /// A complete kernel in one package with the layout of Debian 12, with `null_blk` and `configfs` as modules.
    pub fn kernel(release: &str, version: &str) -> Self {
        let vermagic = format!("vermagic={release} SMP");
        let modules = format!("./lib/modules/{release}/kernel");
        let mut deb = Self::new(&format!("linux-image-{release}-unsigned"), version, "kmod");
        deb.files = vec![
            (
                format!("./boot/vmlinuz-{release}"),
                bzimage(release, &vmlinux(&[7; 20])),
            ),
            (
                format!("./boot/config-{release}"),
                // As in Debian's packages, so that no two builds have the same content.
                format!("{CONFIG}CONFIG_BUILD_SALT=\"{version}\"\n").into_bytes(),
            ),
            (
                format!("./boot/System.map-{release}"),
                b"0 T _text\n".to_vec(),
            ),
            (
                format!("{modules}/drivers/null_blk.ko"),
                module(&["depends=configfs", &vermagic]),
            ),
            (
                format!("{modules}/fs/configfs.ko.xz"),
                packed(".xz", &module(&["depends=", &vermagic])),
            ),
            ("./usr/share/doc/x/copyright".into(), b"free".to_vec()),
        ];
        deb
    }

    /// Content of the package file.
    pub fn build(&self) -> Vec<u8> {
        let control = format!(
            "Package: {}\nVersion: {}\nArchitecture: {}\nDepends: {}\nDescription: sample\n",
            self.name, self.version, self.architecture, self.depends
        );
        let control = archive(&[("./control".into(), control.into_bytes())]);
        let data = archive(&self.files);
        let mut out = b"!<arch>\n".to_vec();
        for (name, bytes) in [
            ("debian-binary".to_owned(), b"2.0\n".to_vec()),
            (
                format!("control.tar{}", self.ending),
                packed(self.ending, &control),
            ),
            (
                format!("data.tar{}", self.ending),
                packed(self.ending, &data),
            ),
        ] {
            let length = bytes.len();
            out.extend(
                format!(
                    "{name:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n",
                    0, 0, 0, 100_644
                )
                .bytes(),
            );
            out.extend(&bytes);
            out.resize(out.len().next_multiple_of(2), b'\n');
        }
        out
    }

    /// Writes the package into `folder` under its usual name and returns the path.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join(format!(
            "{}_{}_{}.deb",
            self.name, self.version, self.architecture
        ));
        std::fs::write(&path, self.build()).unwrap();
        path
    }
}

/// `bytes` compressed in the format of this suffix.
pub fn packed(ending: &str, bytes: &[u8]) -> Vec<u8> {
    match ending {
        ".xz" => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        ".gz" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        ".zst" => zstd::encode_all(bytes, 1).unwrap(),
        _ => bytes.to_vec(),
    }
}

/// Content of a tar archive with these files. Names are stored unchanged, even names that common archivers refuse.
fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, &bytes[..]).unwrap();
    }
    builder.into_inner().unwrap()
}
