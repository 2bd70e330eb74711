//! The user as whom apt's downloaders run: they talk to strangers, and apt does not let them do that as root.
//!
//! apt itself gives that user its folders of partial files. Only a folder into which a single package is fetched
//! (`apt-get download`) must be that user's before; of one that is not, apt fetches as root instead.

use std::fs;
use std::os::unix::fs::{chown, lchown};
use std::path::Path;

/// The user where the machine names none. Source: apt.conf(5), `APT::Sandbox::User`.
const DEFAULT: &str = "_apt";
/// How the line of a configuration begins that names it.
const KEY: &str = "APT::Sandbox::User ";

/// Whom apt's downloaders run as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Number of the user; `None` where downloaders run as this process does.
    user: Option<u32>,
}

/// A folder that is the downloaders' until this is dropped.
#[derive(Debug)]
pub struct Lent<'a> {
    folder: Option<&'a Path>,
}

impl Sandbox {
    /// The user that these lines of apt's configuration name. Only root can become another.
    pub fn of(config: &str) -> Self {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let is_root = rustix::process::geteuid().is_root();
        Self {
            user: is_root.then(|| number(config, &users)).flatten(),
        }
    }

    /// Lets downloaders write into a folder, as far as the folders above it let them.
    pub fn lend<'a>(&self, folder: &'a Path) -> Lent<'a> {
        let is_lent = |user| chown(folder, Some(user), None).is_ok();
        Lent {
            folder: self.user.is_some_and(is_lent).then_some(folder),
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // What was fetched was checked by apt: from now on nobody else shall change it.
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

/// The number of the user that a configuration names, by the lines of `/etc/passwd`; `None` for root and for unknown users.
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
