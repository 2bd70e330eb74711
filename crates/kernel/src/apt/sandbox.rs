//! The user that apt's download programs run as. They read data from the network, so apt does not run them as root.
//!
//! apt itself gives this user its folders for partial files. The folder of a single package (`apt-get download`) must
//! belong to this user before apt starts. Otherwise apt fetches as root.

use std::fs;
use std::os::unix::fs::{chown, lchown};
use std::path::Path;

/// User that apt uses if its configuration names none. Source: apt.conf(5), `APT::Sandbox::User`.
const DEFAULT: &str = "_apt";
/// Beginning of the configuration line that names the user.
const KEY: &str = "APT::Sandbox::User ";

/// The user that apt's download programs run as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// User ID; `None` if the download programs run as the user of this process.
    user: Option<u32>,
}

/// A folder that temporarily belongs to the user of the download programs. On drop, the folder and its files belong to
/// root again.
#[derive(Debug)]
pub struct Lent<'a> {
    folder: Option<&'a Path>,
}

impl Sandbox {
    /// Determines the user from the lines of apt's configuration. If this process is not root, it cannot change to
    /// another user, so the download programs run as its own user.
    pub fn of(config: &str) -> Self {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let is_root = rustix::process::geteuid().is_root();
        Self {
            user: is_root.then(|| number(config, &users)).flatten(),
        }
    }

    /// Makes the user of the download programs the owner of a folder until the result is dropped. Permissions of its
    /// parent folders are not changed, so that this may have no effect.
    pub fn lend<'a>(&self, folder: &'a Path) -> Lent<'a> {
        let is_lent = |user| chown(folder, Some(user), None).is_ok();
        Lent {
            folder: self.user.is_some_and(is_lent).then_some(folder),
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // apt has checked what it fetched. From now on no other user must be able to change it.
        let Some(folder) = self.folder else {
            return;
        };
        let own = |path: &Path| {
            let _ = lchown(path, Some(0), Some(0));
        };
        own(folder);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            own(&entry.path());
        }
    }
}

/// Returns the ID of the user that apt's configuration names, looked up in the text of `/etc/passwd`. `None` for root
/// and for an unknown user.
fn number(config: &str, users: &str) -> Option<u32> {
    let named = config
        .lines()
        .filter_map(|line| line.strip_prefix(KEY))
        .filter_map(|value| value.split('"').nth(1))
        .next_back();
    let name = named.unwrap_or(DEFAULT);
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let mut found = fields.filter(|fields| fields.first() == Some(&name));
    let number: u32 = found.next()?.get(2)?.parse().ok()?;
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/bin/false\n\
                         fetch:x:700:700::/:/bin/false\n";

    #[test]
    fn the_user_is_the_one_that_the_machine_names_or_apts_own() {
        for (config, user) in [
            ("", Some(42)),
            ("Acquire::Retries \"2\";\n", Some(42)),
            ("APT::Sandbox::User \"fetch\";\n", Some(700)),
            ("APT::Sandbox::User \"root\";\n", None),
            ("APT::Sandbox::User \"nobody-here\";\n", None),
        ] {
            assert_eq!(number(config, USERS), user, "{config}");
        }
    }

    #[test]
    fn a_folder_is_the_downloaders_for_as_long_as_it_is_lent() {
        if !rustix::process::geteuid().is_root() {
            return pagetide_testing::skip(
                pagetide_testing::Need::Root,
                "only root can give a folder away",
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let owner = |path: &Path| fs::symlink_metadata(path).unwrap().uid();
        let sandbox = Sandbox { user: Some(42) };
        let lent = sandbox.lend(folder.path());
        assert_eq!(owner(folder.path()), 42);
        let file = folder.path().join("x.deb");
        fs::write(&file, "x").unwrap();
        chown(&file, Some(42), Some(42)).unwrap();
        drop(lent);
        assert_eq!((owner(folder.path()), owner(&file)), (0, 0));
        drop(Sandbox::default().lend(folder.path()));
        assert_eq!(owner(folder.path()), 0);
    }
}
