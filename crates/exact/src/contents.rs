//! Collects the content of the initial file system of a guest that boots.

use pagetide_record::swap::tiers::DeviceKind;
use pagetide_record::{FileSystem, Subject, SwapSpec};
use pagetide_root::Roots;

use crate::error::{ExactError, io};
use crate::filesystem_image;
use crate::handover::Handover;
use crate::machine::TRACE;
use crate::modules::modules;
use crate::preparation::Preparation;
use crate::program::PROGRAM;
use crate::recipe::Contents;

/// Returns the content of the guest's initial file system: its program, the modules that it loads, the programs that
/// make its file system or an image of it, and the file systems for swap files. If the trial runs a program from a
/// root, the result also contains the image of the root.
pub(crate) fn contents(
    roots: &Roots,
    subject: &Subject,
    ready: &Preparation,
) -> Result<Contents, ExactError> {
    let system = subject.files_on.system;
    let (_, mut files) = modules(&ready.kernel, subject, &ready.needs)?;
    if let Some(maker) = &ready.maker {
        files.extend(maker.files(roots)?);
    }
    let mut root = None;
    match (&ready.needs.root, ready.needs.filesystem) {
        (Some(digest), _) => {
            let (handover, file) = handover(roots, digest, system)?;
            files.push(file);
            root = Some(handover);
        }
        (None, Some(size)) if system == FileSystem::Ext4 => files.push((
            pagetide_guest::filesystem::PIECES.to_owned(),
            filesystem_image::ext4(size)?,
        )),
        _ => {}
    }
    if let SwapSpec::Tiers(tiers) = subject.swap {
        let disks = tiers.disks(subject.swap_size).into_iter();
        let with_disk = tiers.devices.iter().filter(|device| match device.kind {
            DeviceKind::Zram(zram) => zram.writeback.is_some(),
            DeviceKind::Disk(_) | DeviceKind::File(_) => true,
        });
        let holders = with_disk
            .zip(disks)
            .filter(|(device, _)| matches!(device.kind, DeviceKind::File(_)));
        for (number, (_, (_, size))) in (0..).zip(holders) {
            let image = filesystem_image::ext4(size)?;
            files.push((pagetide_guest::tiers::pieces(number), image));
        }
    }
    Ok(Contents {
        program: PROGRAM,
        files,
        root,
    })
}

/// Returns the verified image of the root with this digest, and the file that describes the root to the guest. Fails if
/// the data to hand over is larger than [`TRACE`].
fn handover(
    roots: &Roots,
    digest: &str,
    system: FileSystem,
) -> Result<(Handover, (String, Vec<u8>)), ExactError> {
    let root = roots.get(digest)?;
    let fault = || io("reading", root.image.display().to_string());
    let image = root.open()?;
    let (handover, file) = if system == FileSystem::Ext4 {
        let handover = Handover::of(image).map_err(fault())?;
        let table = handover.table();
        (handover, (pagetide_guest::root::PIECES.to_owned(), table))
    } else {
        let entries = root.entries(&image)?;
        let (handover, list) = Handover::of_files(image, entries);
        let list = serde_json::to_vec(&list).unwrap_or_default();
        (handover, (pagetide_guest::files::LIST.to_owned(), list))
    };
    if handover.size() > TRACE {
        let why = std::io::Error::other(format!("{} are more than fit", handover.size()));
        return Err(fault()(why));
    }
    Ok((handover, file))
}
