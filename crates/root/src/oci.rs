//! Adds the content of a saved container image to a root. The image is a tar archive with a list of layers, which are
//! applied in order.
//!
//! Formats: OCI Image Layout 1.1 (`index.json`, blobs named by their digest), and the output of `docker save`
//! (`manifest.json`). From the image's configuration only the architecture is used, because the user gives the command.
//! No name in the archive is used as a path on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;
use serde_json::Value;

use crate::error::{RootError, io};
use crate::image::MAX_SIZE;
use crate::members::{self, opened, spool_file};
use crate::path::RootPath;
use crate::tree::{Tree, digest_of};

/// Prefix of a path that marks a saved image.
const SCHEME: &str = "oci:";
/// Maximum size of a JSON member in bytes: list, manifest or configuration.
const MAX_TEXT: u64 = 4 << 20;
/// Maximum number of layers in an image: four times the limit of container engines.
const MAX_LAYERS: usize = 512;
/// Name of the guest's architecture in container images.
const ARCHITECTURE: &str = "amd64";

/// Returns the path of the saved image in a text with the prefix `oci:`; `None` if the prefix is missing.
pub(crate) fn named(text: &str) -> Option<&Path> {
    text.strip_prefix(SCHEME).map(Path::new)
}

/// A saved image whose members have been written to numbered files.
struct Saved<'a> {
    path: &'a Path,
    members: BTreeMap<String, PathBuf>,
}

/// State of applying one layer of an image. Files that the layer marks as removed are removed only from the layers
/// below.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    added: BTreeSet<RootPath>,
    /// Folders whose lower layers were hidden by this layer. All that they contain now is from this layer, so they are
    /// not cleared again.
    cleared: BTreeSet<RootPath>,
}

impl Tree {
    /// Adds the content of the saved image at `path`. The contents of its files are written to the empty folder
    /// `spool`. Fails if the image is damaged, or is for another architecture.
    pub fn image(&mut self, path: &Path, spool: &Path) -> Result<(), RootError> {
        let blobs = spool.join("blobs");
        fs::create_dir(&blobs).map_err(io("making", &blobs))?;
        let saved = Saved::read(path, &blobs)?;
        for (number, layer) in saved.layers()?.iter().enumerate() {
            let own = spool.join(format!("layer-{number}"));
            fs::create_dir(&own).map_err(io("making", &own))?;
            self.layer(layer, &own)?;
            // The layer's compressed file is no longer needed.
            fs::remove_file(layer).map_err(io("removing", layer))?;
        }
        Ok(())
    }
}

impl Layer {
    /// Prepares a tree for a name in this layer. For a removal mark (whiteout), removes the lower layers' files that it
    /// names, and returns true because the mark itself is no file. For other names, removes an existing file of another
    /// type.
    pub fn admit(
        &mut self,
        tree: &mut Tree,
        path: &RootPath,
        is_folder: bool,
    ) -> Result<bool, RootError> {
        let Some(parent) = path.parent() else {
            return Ok(false);
        };
        let folder = tree.follow(&parent).unwrap_or(parent);
        let real = folder.join(path.name())?;
        if path.name() == ".wh..wh..opq" {
            if self.cleared.insert(folder.clone()) {
                tree.remove(&folder, &|path| {
                    *path == folder || self.added.contains(path)
                });
            }
            return Ok(true);
        }
        if let Some(name) = path.name().strip_prefix(".wh.") {
            let gone = folder.join(name)?;
            if gone.parent() != Some(folder) {
                return Err(RootError::BadPath {
                    path: path.to_string(),
                    why: "it removes what lies elsewhere",
                });
            }
            if self.cleared.insert(gone.clone()) {
                tree.remove(&gone, &|path| self.added.contains(path));
            }
            return Ok(true);
        }
        if !tree.is_kind(&real, is_folder) {
            tree.remove(&real, &|_| false);
        }
        let mut at = Some(real);
        while let Some(path) = at {
            at = path.parent();
            // If this folder was added before, its parents were added too.
            if !self.added.insert(path) {
                break;
            }
        }
        Ok(false)
    }
}

impl<'a> Saved<'a> {
    /// Writes the members of the image at `path` to numbered files in `spool`.
    fn read(path: &'a Path, spool: &Path) -> Result<Self, RootError> {
        let (mut files, mut links) = (BTreeMap::new(), Vec::new());
        let mut size = 0_u64;
        members::each(opened(path)?, path, &mut |member| {
            let name = plain(&member.name);
            if member.is_file() {
                size = size.saturating_add(member.size);
                if size > MAX_SIZE.0 {
                    let size = Bytes(size);
                    return Err(RootError::TooLarge {
                        size,
                        most: MAX_SIZE,
                    });
                }
                let kept = spool.join(member.number.to_string());
                spool_file(member.content, &kept, path)?;
                files.insert(name, kept);
            } else if member.is_link() {
                // Older archives store a repeated layer as a link to the first copy.
                links.push((name, member.target));
            }
            Ok(())
        })?;
        for (name, target) in links {
            let target = target.trim_start_matches("../");
            let same = files.get(&plain(target)).cloned();
            if let Some(same) = same.filter(|_| !files.contains_key(&name)) {
                files.insert(name, same);
            }
        }
        Ok(Self {
            path,
            members: files,
        })
    }

    fn fault(&self, why: impl Into<String>) -> RootError {
        RootError::SavedImage {
            path: self.path.to_owned(),
            why: why.into(),
        }
    }

    fn member(&self, name: &str) -> Result<&PathBuf, RootError> {
        let found = self.members.get(&plain(name));
        found.ok_or_else(|| self.fault(format!("there is no `{name}` in it")))
    }

    /// Reads a member and parses it as JSON.
    fn json(&self, name: &str) -> Result<Value, RootError> {
        let path = self.member(name)?;
        let size = fs::metadata(path).map_err(io("reading", path))?.len();
        if size > MAX_TEXT {
            return Err(self.fault(format!("its `{name}` is too long")));
        }
        let bytes = fs::read(path).map_err(io("reading", path))?;
        serde_json::from_slice(&bytes).map_err(|why| self.fault(format!("its `{name}`: {why}")))
    }

    /// Returns the name of the blob to which a descriptor refers. Fails if the blob's bytes do not match the digest.
    fn blob(&self, descriptor: &Value) -> Result<String, RootError> {
        let digest = descriptor["digest"].as_str().unwrap_or_default();
        let name = format!("blobs/{}", digest.replacen(':', "/", 1));
        let path = self.member(&name)?;
        let file = File::open(path).map_err(io("reading", path))?;
        let (sum, _) = digest_of(file).map_err(io("reading", path))?;
        if format!("sha256:{sum}") != digest {
            return Err(self.fault(format!("`{name}` is not what its name says")));
        }
        Ok(name)
    }

    fn check_architecture(&self, configuration: &Value) -> Result<(), RootError> {
        match configuration["architecture"].as_str() {
            None | Some(ARCHITECTURE) => Ok(()),
            Some(other) => Err(RootError::OtherArchitecture {
                path: self.path.to_owned(),
                found: other.to_owned(),
            }),
        }
    }

    /// Returns the paths of the layers' files, lowest layer first.
    fn layers(&self) -> Result<Vec<PathBuf>, RootError> {
        let names = if self.members.contains_key("index.json") {
            self.of_layout()?
        } else if self.members.contains_key("manifest.json") {
            self.of_docker()?
        } else {
            return Err(self.fault("it has neither an index.json nor a manifest.json"));
        };
        let mut layers: Vec<PathBuf> = Vec::new();
        for name in names {
            // Equal layers are stored once. Only the last occurrence has an effect.
            let path = self.member(&name)?.clone();
            layers.retain(|there| *there != path);
            layers.push(path);
        }
        if layers.is_empty() {
            return Err(self.fault("it has no layers"));
        }
        Ok(layers)
    }

    /// Returns the only entry of a list that is for the guest's architecture or states none. Fails if there is none, or
    /// more than one.
    fn one(&self, list: &Value) -> Result<Value, RootError> {
        let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
        let fits = |entry: &&Value| {
            let architecture = entry["platform"]["architecture"].as_str();
            architecture.is_none_or(|name| name == ARCHITECTURE)
        };
        match all.iter().filter(fits).collect::<Vec<_>>().as_slice() {
            [one] => Ok((*one).clone()),
            [] => match all.first().map(|entry| &entry["platform"]["architecture"]) {
                Some(other) => Err(RootError::OtherArchitecture {
                    path: self.path.to_owned(),
                    found: other.as_str().unwrap_or_default().to_owned(),
                }),
                None => Err(self.fault("it lists no image")),
            },
            several => Err(self.fault(format!("it has {} images", several.len()))),
        }
    }

    fn of_layout(&self) -> Result<Vec<String>, RootError> {
        let mut manifest = self.json("index.json")?;
        // Lists are nested: one by tag, then one by architecture.
        for _ in 0..3 {
            if manifest["manifests"].is_null() {
                break;
            }
            let one = self.one(&manifest["manifests"])?;
            manifest = self.json(&self.blob(&one)?)?;
        }
        self.check_architecture(&self.json(&self.blob(&manifest["config"])?)?)?;
        // Each layer is verified once, even if it is repeated.
        let mut proven = BTreeMap::new();
        let mut names = Vec::new();
        for layer in self.listed(&manifest["layers"])? {
            let digest = layer["digest"].as_str().unwrap_or_default();
            let name = match proven.get(digest) {
                Some(name) => String::clone(name),
                None => self.blob(layer)?,
            };
            proven.insert(digest, name.clone());
            names.push(name);
        }
        Ok(names)
    }

    /// Returns the entries of a list of layers. Fails if there are too many.
    fn listed<'v>(&self, list: &'v Value) -> Result<&'v [Value], RootError> {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        match list.len() {
            count if count > MAX_LAYERS => Err(self.fault(format!(
                "it has {count} layers, and {MAX_LAYERS} are the most"
            ))),
            _ => Ok(list),
        }
    }

    fn of_docker(&self) -> Result<Vec<String>, RootError> {
        let manifest = self.one(&self.json("manifest.json")?)?;
        if let Some(name) = manifest["Config"].as_str() {
            self.check_architecture(&self.json(name)?)?;
        }
        let layers = self.listed(&manifest["Layers"])?;
        Ok(layers
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect())
    }
}

/// Returns the name of a member without empty components and without `.` components.
fn plain(name: &str) -> String {
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}
