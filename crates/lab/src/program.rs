//! Puts the files of a user's own program into a root, a file system image in the cache.

use std::path::PathBuf;
use std::sync::Arc;

use pagetide_campaign::{ProgramFiles, ProgramPlace};
use pagetide_kernel::{Freshness, PackageSet, Step};
use pagetide_root::{Contents, Roots};

use crate::error::LabError;
use crate::lab::Lab;

impl Lab {
    /// Creates the root file system of a program in the cache. Returns the paths of the program's files in it.
    pub(crate) fn install(&self, files: &ProgramFiles) -> Result<ProgramPlace, LabError> {
        let files = files.clone();
        let cache = self.cache()?;
        let (root, packages) = match files.root {
            Some(text) if PackageSet::is_one(&text) => {
                let set = PackageSet::parse(&text)?;
                let mut watch = |step: &Step| self.say(&step.to_string());
                (None, cache.packages(&set, Freshness::Pinned, &mut watch)?)
            }
            root => (root.map(PathBuf::from), Vec::new()),
        };
        let contents = Contents {
            command: files.command,
            server: files.server,
            beside: files.beside,
            root,
            packages,
            files: files.files,
            dirs: files.dirs,
            input: files.input,
            folder: files.folder,
            space: files.space,
        };
        let roots = Roots::of(self.folder()).stopping_by(Arc::clone(&self.options().stop));
        let made = contents.install(&roots, &|text| self.say(text))?;
        Ok(ProgramPlace {
            root: made.root.digest,
            command: made.command,
            server: made.server,
            beside: made.beside,
            input: made.input.map(|path| path.to_string()),
            folder: made.folder.map(|path| path.to_string()),
            library_folders: made.library_folders,
        })
    }
}
