//! Adds what Java needs: the modules and libraries of its home folder, and the archives and class folders named in its
//! arguments.

use std::path::Path;

use super::ends;
use crate::error::RootError;
use crate::host::{Change, Host, Wants, take};
use crate::tree::Tree;

/// Options of Java that take a list of archives and folders.
const LISTS: [&str; 5] = ["-cp", "-classpath", "--class-path", "-p", "--module-path"];
/// Files in the `lib` folder of a Java home that are only needed with a display or for debugging.
const LEFT_OUT: [&str; 6] = [
    "src.zip",
    "libawt_xawt.so",
    "libsplashscreen.so",
    "libjsound.so",
    "libsaproc.so",
    "libatk-wrapper.so",
];

impl Host {
    /// Adds everything that Java needs when started as `program` with the arguments `words`.
    pub(super) fn java(
        &mut self,
        tree: &mut Tree,
        program: &Path,
        words: &[String],
    ) -> Result<(), RootError> {
        let Some(home) = program.parent().and_then(Path::parent) else {
            return Ok(());
        };
        let is_wanted = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| !LEFT_OUT.contains(&name) && !ends(name, "debuginfo"))
        };
        let wants = Wants {
            is_wanted: &is_wanted,
            change: &|_| Change::None,
        };
        for part in ["lib", "conf"] {
            let folder = home.join(part);
            if folder.is_dir() {
                self.library(tree, &folder, None, &wants)?;
            }
        }
        let release = home.join("release");
        if release.is_file() {
            take(tree, &release)?;
        }
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "-jar" {
                if let Some(archive) = words.next() {
                    self.script(tree, archive)?;
                }
                break;
            } else if LISTS.contains(&word.as_str()) {
                let list = words.next().map_or("", String::as_str);
                for path in list.split(':').filter(|path| !path.is_empty()) {
                    // `DIR/*` means all archives in the folder `DIR`.
                    self.script(tree, path.trim_end_matches("/*"))?;
                }
            } else if !word.starts_with('-') {
                if ends(word, "java") {
                    self.script(tree, word)?;
                }
                break;
            }
        }
        Ok(())
    }
}
