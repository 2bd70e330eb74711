//! Copies kernels and root file systems of programs from the submitting machine's cache to a node's cache. Each is
//! copied once per node.

use std::fs;
use std::io;
use std::path::Path;

use pagetide_arena::ArenaError;
use pagetide_campaign::TaskTrial;

/// Copies the kernel and the root file system of a trial from the cache `from` to the cache `to`, unless they are
/// there. The copies are checked later, whenever they are used.
pub fn stage(from: &Path, to: &Path, trial: &TaskTrial) -> Result<(), ArenaError> {
    let kernel = Some(("kernels", trial.kernel.digest.as_str()));
    let root = trial.root.as_deref().map(|root| ("roots", root));
    for (folder, digest) in kernel.into_iter().chain(root) {
        let (source, target) = (from.join(folder).join(digest), to.join(folder).join(digest));
        if target.exists() || source == target {
            continue;
        }
        copy_once(&source, &target).map_err(|error| {
            ArenaError::broken(format!(
                "copying {} to {} stopped ({error}): make room there, or name another folder with --node-cache",
                source.display(),
                target.display()
            ))
        })?;
    }
    Ok(())
}

/// Copies a folder so that `target` is either complete or does not exist. Several processes may do this at the same
/// time.
fn copy_once(source: &Path, target: &Path) -> io::Result<()> {
    let parent = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent)?;
    let making = tempfile::Builder::new()
        .prefix(".staging-")
        .tempdir_in(parent)?;
    let copy = making.path().join("copy");
    copy_folder(source, &copy)?;
    match fs::rename(&copy, target) {
        Err(_) if target.exists() => Ok(()),
        renamed => renamed,
    }
}

fn copy_folder(source: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (kind, copy) = (entry.file_type()?, target.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &copy)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &copy)?;
        } else {
            fs::copy(entry.path(), &copy)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("from/kernels/ab");
        fs::create_dir_all(source.join("modules")).unwrap();
        fs::write(source.join("modules/zram.ko"), "z").unwrap();
        std::os::unix::fs::symlink("modules", source.join("link")).unwrap();
        let target = dir.path().join("to/kernels/ab");
        copy_once(&source, &target).unwrap();
        copy_once(&source, &target).unwrap();
        assert_eq!(
            fs::read_to_string(target.join("link/zram.ko")).unwrap(),
            "z"
        );
        copy_once(
            &dir.path().join("missing"),
            &dir.path().join("to/kernels/cd"),
        )
        .unwrap_err();
        let names: Vec<_> = fs::read_dir(dir.path().join("to/kernels"))
            .unwrap()
            .collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}
