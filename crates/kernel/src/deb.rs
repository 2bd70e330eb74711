//! Debian packages, unpacked without dpkg: an `ar` archive that holds a version, a control archive and a data archive
//! (deb(5)).

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::compress::Compression;
use crate::error::KernelError;
use crate::modules::module_name;
use crate::names;
use crate::stage::Stage;

/// An opened package file, whose list of members and control fields have been read.
#[derive(Debug)]
pub struct Package {
    path: PathBuf,
    members: Vec<Member>,
    /// The fields of the package's control file.
    pub control: Control,
}

/// Fields of a control paragraph, as far as they are used here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// The field `Package`: name of the package.
    pub package: String,
    /// The field `Version`.
    pub version: String,
    /// The field `Architecture`, such as `amd64`.
    pub architecture: String,
    /// The field `Depends`: the dependencies as one string.
    pub depends: String,
    /// The field `Size`: size of the package file in bytes. `None` outside of package lists.
    pub size: Option<u64>,
}

impl Control {
    /// Parses one paragraph of a control file (deb822(5)). Continuation lines are joined.
    pub fn parse(paragraph: &str) -> Self {
        let mut control = Self::default();
        let mut field: Option<&mut String> = None;
        for line in paragraph.lines() {
            if line.starts_with([' ', '\t']) {
                if let Some(field) = &mut field {
                    field.push_str(line.trim_end());
                }
                continue;
            }
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            if key.eq_ignore_ascii_case("size") {
                control.size = value.trim().parse().ok();
            }
            field = match key.to_ascii_lowercase().as_str() {
                "package" => Some(&mut control.package),
                "version" => Some(&mut control.version),
                "architecture" => Some(&mut control.architecture),
                "depends" => Some(&mut control.depends),
                _ => None,
            };
            if let Some(field) = &mut field {
                value.trim().clone_into(field);
            }
        }
        control
    }

    /// Returns the package as `NAME=VERSION`.
    pub fn id(&self) -> String {
        format!("{}={}", self.package, self.version)
    }

    /// Returns the names of the packages split off from this package: its dependencies on `linux-*` packages in exactly
    /// the same version.
    pub fn parts(&self) -> Vec<String> {
        let exactly = format!("(= {})", self.version);
        self.depends
            .split(',')
            .filter_map(|dependency| {
                let (name, relation) = dependency.trim().split_once(' ')?;
                (name.starts_with("linux-") && relation.trim() == exactly).then(|| name.to_owned())
            })
            .collect()
    }
}

#[derive(Debug)]
struct Member {
    name: String,
    at: u64,
    length: u64,
}

/// Maximum number of bytes read from a control archive, as a protection against hostile packages. A few kilobytes are
/// usual.
const MAX_CONTROL_BYTES: u64 = 16 << 20;

impl Package {
    /// Opens the package at `path` and reads its control fields. Fails if the file is truncated or built for another
    /// architecture.
    pub fn open(path: &Path) -> Result<Self, KernelError> {
        let members = members(path)?;
        let mut package = Self {
            path: path.to_owned(),
            members,
            control: Control::default(),
        };
        package.control = package.read_control()?;
        match package.control.architecture.as_str() {
            "amd64" | "all" => Ok(package),
            other => Err(KernelError::OtherArchitecture {
                path: path.to_owned(),
                architecture: other.to_owned(),
            }),
        }
    }

    fn not_a_package(&self, what: &str) -> KernelError {
        KernelError::NotAPackage {
            path: self.path.clone(),
            what: what.to_owned(),
        }
    }

    /// Returns a reader of the decompressed contents of the first member whose name begins with `start`. Fails if there
    /// is none.
    pub(crate) fn member(&self, start: &str) -> Result<Box<dyn Read>, KernelError> {
        let member = self
            .members
            .iter()
            .find(|member| member.name.starts_with(start))
            .ok_or_else(|| self.not_a_package(&format!("it has no member {start}*")))?;
        let mut file = File::open(&self.path).map_err(KernelError::read(&self.path))?;
        file.seek(SeekFrom::Start(member.at))
            .map_err(KernelError::read(&self.path))?;
        let packed = BufReader::new(file.take(member.length));
        let plain: io::Result<Box<dyn Read>> = match member.name.strip_prefix(start) {
            Some("") => Ok(Box::new(packed)),
            Some(".gz") => Compression::Gzip.reader(packed),
            Some(".xz") => Compression::Xz.reader(packed),
            Some(".zst") => Compression::Zstd.reader(packed),
            Some(".lzma") => Compression::Lzma.reader(packed),
            _ => {
                return Err(self.not_a_package(&format!(
                    "{} is compressed in a way not known here",
                    member.name
                )));
            }
        };
        plain.map_err(|e| KernelError::decode(&self.path, &member.name, e))
    }

    fn read_control(&self) -> Result<Control, KernelError> {
        let mut archive = tar::Archive::new(self.member("control.tar")?.take(MAX_CONTROL_BYTES));
        let wrong = |e| KernelError::decode(&self.path, "control.tar", e);
        for entry in archive.entries().map_err(wrong)? {
            let mut entry = entry.map_err(wrong)?;
            if entry
                .path_bytes()
                .strip_prefix(b"./")
                .unwrap_or(&entry.path_bytes())
                == b"control"
            {
                let mut text = Vec::new();
                entry.read_to_end(&mut text).map_err(wrong)?;
                return Ok(Control::parse(&String::from_utf8_lossy(&text)));
            }
        }
        Err(self.not_a_package("it has no control file"))
    }

    /// Stores the kernel files of the package in `stage`: image, configuration and modules. Fails if a path in it leads
    /// outside of the package, or if its data is damaged.
    pub fn unpack(&self, stage: &mut Stage) -> Result<(), KernelError> {
        let wrong = |e| KernelError::decode(&self.path, "data.tar", e);
        let mut data = self.member("data.tar")?;
        let mut archive = tar::Archive::new(&mut data);
        for entry in archive.entries().map_err(wrong)? {
            let mut entry = entry.map_err(wrong)?;
            let bytes = entry.path_bytes();
            let member = String::from_utf8_lossy(&bytes).into_owned();
            drop(bytes);
            let inner = member.strip_prefix("./").unwrap_or(&member);
            if inner.starts_with('/')
                || inner.split('/').any(|part| part == "..")
                || inner.contains('\0')
            {
                return Err(KernelError::UnsafeMember {
                    path: self.path.clone(),
                    member,
                });
            }
            // Links are ignored: no file that a kernel needs is a link.
            if entry.header().entry_type().is_file()
                && let Some(name) = place(inner)
            {
                stage.put(&name, &mut entry, &member)?;
            }
        }
        // Read to the end, so that the checksums of the compression format are checked.
        io::copy(&mut data, &mut io::sink()).map_err(wrong)?;
        Ok(())
    }
}

/// Returns the name under which a file of a package is stored in the kernel's folder; `None` if the file is not needed.
///
/// Debian 12 and 13 ship `/boot/vmlinuz-RELEASE` and `/lib/modules/RELEASE/`; later releases put everything into
/// `/usr/lib/modules/RELEASE/`.
fn place(path: &str) -> Option<String> {
    if let Some(file) = path
        .strip_prefix("boot/")
        .filter(|file| !file.contains('/'))
    {
        let (kind, _release) = file.split_once('-')?;
        return top(kind);
    }
    let path = path.strip_prefix("usr/").unwrap_or(path);
    let (_release, inner) = path.strip_prefix("lib/modules/")?.split_once('/')?;
    top(inner).or_else(|| is_module_file(inner).then(|| format!("{}/{inner}", names::MODULES)))
}

fn top(kind: &str) -> Option<String> {
    match kind {
        "vmlinuz" => Some(names::IMAGE.to_owned()),
        "config" => Some(names::CONFIG.to_owned()),
        _ => None,
    }
}

/// Returns true if a file under `/lib/modules/RELEASE` is stored: a module, or a list that the kernel's build creates.
///
/// Files that depmod creates on a machine are left out, so that the digest depends on the kernel alone.
pub fn is_module_file(inner: &str) -> bool {
    let file = inner.rsplit('/').next().unwrap_or(inner);
    module_name(file).is_some()
        || [
            "modules.builtin",
            "modules.builtin.modinfo",
            "modules.order",
        ]
        .contains(&inner)
}

/// Reads the list of members of an `ar` archive. Each member has a header of 60 bytes of space-padded text, and starts
/// at an even offset. Fails if the file is not a Debian package, or is truncated.
fn members(path: &Path) -> Result<Vec<Member>, KernelError> {
    let mut file = File::open(path).map_err(KernelError::read(path))?;
    let total = file.metadata().map_err(KernelError::read(path))?.len();
    let not_a_package = |what: &str| KernelError::NotAPackage {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let mut magic = [0; 8];
    match file.read_exact(&mut magic) {
        Ok(()) if &magic == b"!<arch>\n" => {}
        Ok(()) => return Err(not_a_package("it does not begin with `!<arch>`")),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(not_a_package("it is shorter than a header"));
        }
        Err(e) => return Err(KernelError::read(path)(e)),
    }
    let mut members = Vec::new();
    let mut at = 8;
    while at < total {
        let mut header = [0; 60];
        file.seek(SeekFrom::Start(at))
            .map_err(KernelError::read(path))?;
        file.read_exact(&mut header)
            .map_err(|e| KernelError::decode(path, "an archive header", e))?;
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(header.get(range).unwrap_or_default())
                .trim()
                .trim_end_matches('/')
                .to_owned()
        };
        let name = text(0..16);
        let length: u64 = match text(48..58).parse() {
            Ok(length) if header.ends_with(b"`\n") => length,
            _ => {
                return Err(KernelError::Damaged {
                    path: path.to_owned(),
                    what: "an archive header is no such".into(),
                });
            }
        };
        let start = at + 60;
        let end = start.saturating_add(length);
        if end > total {
            return Err(KernelError::Truncated {
                path: path.to_owned(),
                what: format!(
                    "{} should end at byte {end}, the file ends at {total}",
                    name.escape_debug()
                ),
            });
        }
        members.push(Member {
            name,
            at: start,
            length,
        });
        at = end + end % 2;
    }
    match members.first() {
        Some(first) if first.name == "debian-binary" => {}
        _ => return Err(not_a_package("its first member is not debian-binary")),
    }
    // If a file was cut exactly between two members, only the missing member shows it.
    if members
        .iter()
        .any(|member| member.name.starts_with("data.tar"))
    {
        Ok(members)
    } else {
        Err(KernelError::Truncated {
            path: path.to_owned(),
            what: "it ends before data.tar".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_kernel_needs_has_a_place() {
        let cases = [
            ("boot/vmlinuz-6.1.0-9-cloud-amd64", Some("image")),
            ("boot/config-6.1.0-9", Some("config")),
            ("boot/System.map-6.1.0-9", None),
            ("boot/initrd.img-6.1.0-9", None),
            (
                "lib/modules/6.1/kernel/mm/zsmalloc.ko",
                Some("modules/kernel/mm/zsmalloc.ko"),
            ),
            ("usr/lib/modules/7.2/vmlinuz", Some("image")),
            ("usr/lib/modules/7.2/config", Some("config")),
            (
                "usr/lib/modules/7.2/kernel/a/b.ko.xz",
                Some("modules/kernel/a/b.ko.xz"),
            ),
            (
                "usr/lib/modules/7.2/modules.builtin",
                Some("modules/modules.builtin"),
            ),
            ("usr/lib/modules/7.2/modules.dep", None),
            ("usr/share/doc/linux-image/changelog.gz", None),
        ];
        for (path, expected) in cases {
            assert_eq!(place(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn parts_are_the_linux_packages_of_exactly_this_version() {
        let control = Control::parse(
            "Package: linux-image-7.2\nVersion: 7.2-1\nArchitecture: amd64\nDepends: dracut | initramfs-tools (>= 1),\n \
             linux-base-7.2 (= 7.2-1), linux-base (>= 4.3~), linux-modules-7.2 (= 7.2-1)\nDescription: x\n y: z\n",
        );
        assert_eq!(control.parts(), ["linux-base-7.2", "linux-modules-7.2"]);
        assert_eq!(
            (control.package.as_str(), control.architecture.as_str()),
            ("linux-image-7.2", "amd64")
        );
    }
}
