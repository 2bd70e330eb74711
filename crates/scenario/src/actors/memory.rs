//! Memory of a process of a workload: its mapped segments, and page contents and files that processes share.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};

use pagetide_quantity::{Bytes, Pages};
use pagetide_workload::{Kind, PageSize as Size, Segment, Workload};

use crate::content::Content;
use crate::error::Stop;
use crate::files::{forget, make_file};
use crate::fill::Filler;
use crate::mapping::Mapping;
use crate::page_size::PageSize;

/// Page contents and files, which the main process prepares for all processes.
pub(crate) struct Library<'w> {
    /// Amount of memory to which sizes in percent refer.
    memory: Bytes,
    folder: &'w Path,
    fillers: BTreeMap<&'w str, Filler>,
    /// Files in tmpfs that several processes share.
    shared: BTreeMap<&'w str, File>,
}

/// A segment that is mapped.
pub(crate) struct Mapped<'w> {
    pub segment: &'w Segment,
    pub memory: Mapping,
    /// The file of a file or tmpfs segment.
    pub file: Option<File>,
    pub filler: &'w Filler,
}

impl<'w> Library<'w> {
    /// Prepares the page contents and files of a workload. Files are written to the disk and not cached.
    pub(crate) fn make(
        workload: &'w Workload,
        memory: Bytes,
        folder: &'w Path,
        seed: u64,
    ) -> Result<Self, Stop> {
        let mut library = Self {
            memory,
            folder,
            fillers: BTreeMap::new(),
            shared: BTreeMap::new(),
        };
        for process in &workload.processes {
            for segment in &process.segments {
                if !library.fillers.contains_key(segment.content.as_str()) {
                    let content = Content::read(&segment.content).unwrap_or(Content::Share(0.35));
                    library
                        .fillers
                        .insert(&segment.content, Filler::new(&content, seed)?);
                }
                match (segment.kind, segment.file.as_deref()) {
                    (Kind::File, Some(_)) => library.make_file(segment, &process.name, 0)?,
                    (Kind::File, None) => {
                        for number in 0..process.count {
                            library.make_file(segment, &process.name, number)?;
                        }
                    }
                    (Kind::Tmpfs, Some(name)) if !library.shared.contains_key(name) => {
                        library
                            .shared
                            .insert(name, in_tmpfs(segment.size.of(memory))?);
                    }
                    _ => {}
                }
            }
        }
        Ok(library)
    }

    fn filler(&self, segment: &Segment) -> &Filler {
        &self.fillers[segment.content.as_str()]
    }

    fn path(&self, segment: &Segment, process: &str, number: u32) -> PathBuf {
        let name = match &segment.file {
            Some(file) => format!("pagetide-shared-{file}"),
            None => format!("pagetide-{process}-{number}-{}", segment.name),
        };
        self.folder.join(name)
    }

    fn make_file(&self, segment: &Segment, process: &str, number: u32) -> Result<(), Stop> {
        let path = self.path(segment, process, number);
        if path.exists() {
            return Ok(());
        }
        let pages = segment.size.pages(self.memory);
        let file = make_file(
            &path,
            if segment.empty { 0 } else { pages.0 },
            self.filler(segment),
        )?;
        if segment.empty {
            // The file has a hole: pages can be mapped, but nothing is on the disk.
            file.set_len(pages.bytes().0)
                .map_err(Stop::system(format!("cannot enlarge {}", path.display())))?;
        }
        drop(file);
        forget(&path);
        Ok(())
    }

    /// Removes all files from the disk.
    pub(crate) fn remove(&self, workload: &Workload) {
        for process in &workload.processes {
            for segment in process
                .segments
                .iter()
                .filter(|segment| segment.kind == Kind::File)
            {
                for number in 0..process.count {
                    let _ = fs::remove_file(self.path(segment, &process.name, number));
                }
            }
        }
    }

    /// Maps a segment of process number `number` of the kind named `process`. A locked segment is filled and locked.
    pub(crate) fn map(
        &'w self,
        segment: &'w Segment,
        process: &str,
        number: u32,
    ) -> Result<Mapped<'w>, Stop> {
        let pages: Pages = segment.size.pages(self.memory);
        let filler = self.filler(segment);
        let file = match segment.kind {
            Kind::Anonymous | Kind::Shared => None,
            Kind::File => {
                let path = self.path(segment, process, number);
                let file = File::options().read(true).write(true).open(&path);
                Some(file.map_err(Stop::system(format!("cannot open {}", path.display())))?)
            }
            Kind::Tmpfs => Some(
                match segment
                    .file
                    .as_deref()
                    .and_then(|name| self.shared.get(name))
                {
                    Some(file) => file
                        .try_clone()
                        .map_err(Stop::system("cannot share a file in tmpfs"))?,
                    None => in_tmpfs(pages.bytes())?,
                },
            ),
        };
        let memory = match (&file, segment.kind) {
            (Some(file), _) => Mapping::file(file, pages)?,
            (None, Kind::Shared) => Mapping::shared_later(pages)?,
            (None, _) => match segment.pages {
                Size::Small => PageSize::Small,
                Size::Huge => PageSize::Huge,
                Size::Default => PageSize::Default,
            }
            .map(pages)?,
        };
        if segment.locked {
            memory.fill(filler, 0, pages.0);
            memory.lock()?;
        }
        Ok(Mapped {
            segment,
            memory,
            file,
            filler,
        })
    }
}

/// Creates a file in the kernel's internal tmpfs, which is deleted when no process has it open.
fn in_tmpfs(size: Bytes) -> Result<File, Stop> {
    // SAFETY: the name is a C string that lives through the call.
    let file = unsafe { libc::memfd_create(c"pagetide".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(Stop::last("cannot create a file in tmpfs"));
    }
    // SAFETY: the descriptor was just created and belongs to nobody else.
    let file = unsafe { File::from_raw_fd(file) };
    file.set_len(size.0).map_err(Stop::system(format!(
        "cannot enlarge a file in tmpfs to {size}"
    )))?;
    Ok(file)
}
