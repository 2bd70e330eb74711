//! Finds the folders in which this machine's dynamic loader searches for libraries. Source: ld.so(8), ldconfig(8).

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that dynamic loaders search by default: first Debian's, then those of other distributions.
pub(crate) const DEFAULT: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Maximum depth of nested `include` lines in the loader's configuration.
const MAX_DEPTH: usize = 8;

/// Returns the folders listed in the loader's configuration file and in the files that it includes.
pub(crate) fn configured(file: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    read(file, 0, &mut folders);
    folders
}

fn read(file: &Path, depth: usize, folders: &mut Vec<PathBuf>) {
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.split_once(char::is_whitespace) {
            Some(("include", pattern)) if depth < MAX_DEPTH => {
                for file in matching(file, pattern.trim()) {
                    read(&file, depth + 1, folders);
                }
            }
            _ if line.starts_with('/') => folders.push(PathBuf::from(line)),
            _ => {}
        }
    }
}

/// Returns the paths that match the pattern of an `include` line in `file`, sorted by name. Only the last component of
/// the pattern may contain a `*`, and only one.
fn matching(file: &Path, pattern: &str) -> Vec<PathBuf> {
    let whole = file.parent().unwrap_or(Path::new("/")).join(pattern);
    let (Some(folder), Some(name)) = (whole.parent(), whole.file_name().and_then(|n| n.to_str()))
    else {
        return Vec::new();
    };
    let Some((start, end)) = name.split_once('*') else {
        return vec![whole];
    };
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        })
    };
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.path()).filter(fits).collect();
    found.sort();
    found
}
