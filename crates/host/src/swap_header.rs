//! The header of a swap area, with a UUID by which the area is recognised.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use pagetide_quantity::{Bytes, PAGE_SIZE};

/// Returns the path of the device node of a block device.
pub(crate) fn node(name: &str) -> String {
    format!("/dev/{name}")
}

/// Returns a random UUID as text; empty if the kernel does not provide one.
pub(crate) fn new_uuid() -> String {
    fs::read_to_string("/proc/sys/kernel/random/uuid")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns the bytes of a UUID; `None` if the text is not a UUID.
fn uuid_bytes(uuid: &str) -> Option<[u8; 16]> {
    let digits: String = uuid.chars().filter(|c| *c != '-').collect();
    Some(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes())
}

/// Writes a swap header with a UUID. Format: kernel `include/linux/swap.h`, `union swap_header`: at offset 1024 the
/// version, the last page, the number of bad pages and the UUID; the magic in the last ten bytes of the first page.
pub(crate) fn format(device: &str, size: Bytes, uuid: &str) -> io::Result<()> {
    let too_large = |_| io::Error::other("the device is too large");
    let mut header = vec![0_u8; usize::try_from(PAGE_SIZE).unwrap_or(4096)];
    let last = u32::try_from(size.0 / PAGE_SIZE - 1).map_err(too_large)?;
    header[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
    header[1028..1032].copy_from_slice(&last.to_le_bytes());
    header[1036..1052].copy_from_slice(&uuid_bytes(uuid).unwrap_or_default());
    let magic = header.len() - 10;
    header[magic..].copy_from_slice(b"SWAPSPACE2");
    let file = File::options().write(true).open(device)?;
    file.write_all_at(&header, 0)?;
    file.sync_all()
}

/// Returns the UUID in the swap header of a device; `None` if the device cannot be read or has no swap header.
pub(crate) fn uuid(device: &str) -> Option<String> {
    let mut file = File::open(device).ok()?;
    let mut header = vec![0_u8; usize::try_from(PAGE_SIZE).unwrap_or(4096)];
    file.read_exact(&mut header).ok()?;
    if !header.ends_with(b"SWAPSPACE2") {
        return None;
    }
    let bytes: [u8; 16] = header[1036..1052].try_into().ok()?;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    Some(parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_identity_that_is_read_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        assert_eq!(uuid(&path), None);
        let ours = new_uuid();
        format(&path, Bytes::from_mib(1), &ours).unwrap();
        assert_eq!(uuid(&path).unwrap(), ours);
    }
}
