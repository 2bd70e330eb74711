//! A load on memory and files that ages a machine like a parallel compilation. Each job compiles one unit after the
//! other. Each unit is a process of its own that maps and fills memory, reads sources, writes an object and exits.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use pagetide_quantity::{Bytes, Nanos, Pages};
use pagetide_reference::Rng;

use crate::clock;
use crate::error::Stop;
use crate::files::read_through;
use crate::fill::Filler;
use crate::page::PAGE;
use crate::page_size::PageSize;
use crate::trial::Trial;
use crate::workers::{Member, Team};

/// Size of a source file.
const SOURCE: Bytes = Bytes::from_kib(32);
/// Size of an object file.
const OBJECT: Bytes = Bytes::from_kib(128);
/// Number of sources and headers that compiling one unit reads.
const READS: u64 = 16;
/// Index of the value in which jobs report the number of units compiled.
pub(crate) const COMPILED: usize = 0;
/// Index of the value in which jobs report the size of the files written, in bytes.
pub(crate) const WRITTEN: usize = 1;

/// Parameters of the load that ages memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Number of processes that compile concurrently.
    pub jobs: u32,
    /// Maximum amount of memory that compiling a unit uses.
    pub memory: Bytes,
    /// Page size of the memory of these processes.
    pub page_size: PageSize,
    /// Total size of the files of each job: half sources, half objects.
    pub files: Bytes,
    /// Pause of a job between two compiles.
    pub pause: Nanos,
}

impl Load {
    /// Starts the jobs. Each job first writes its source files, then compiles until it is asked to stop. Fails if a job
    /// fails before it compiles.
    pub(crate) fn start(self, trial: &Trial<'_>, filler: &Filler) -> Result<Team, Stop> {
        let folder = trial.place.work_dir.to_owned();
        let mut team = trial.team("job", self.jobs, |member| {
            self.job(member, &folder, filler, trial.subject.seed)
        })?;
        team.open()?;
        Ok(team)
    }

    fn job(
        self,
        member: &mut Member<'_>,
        folder: &Path,
        filler: &Filler,
        seed: u64,
    ) -> Result<(), Stop> {
        let mut rng = Rng::stream(seed ^ u64::from(member.number) << 32, "load");
        let mut written = 0;
        for number in 0..self.sources() {
            let path = file(folder, member.number, "source", number);
            written += write(&path, SOURCE, filler, number);
        }
        member.gate();
        let mut compiled = 0;
        while !member.asked_to_stop() {
            let unit = Unit {
                memory: Pages(self.memory.pages().0 * (1 + rng.below(8)) / 8),
                rng: Rng::stream(seed ^ compiled << 8, &format!("unit of {}", member.number)),
            };
            member.process("compile", |member| {
                self.compile(member, unit, folder, filler)
            })?;
            // A job whose disk is full continues: it still reads and allocates.
            let object = file(folder, member.number, "object", compiled % self.objects());
            written += fs::metadata(object).map_or(0, |data| data.len());
            compiled += 1;
            member.put(COMPILED, compiled);
            member.put(WRITTEN, written);
            clock::sleep(self.pause);
        }
        Ok(())
    }

    /// Compiles one unit in a process of its own. Its memory grows while it reads, and is freed when it exits.
    fn compile(
        self,
        member: &Member<'_>,
        mut unit: Unit,
        folder: &Path,
        filler: &Filler,
    ) -> Result<(), Stop> {
        let mut arenas = Vec::new();
        let (mut held, mut read) = (0, 0);
        while held < unit.memory.0 && !member.asked_to_stop() {
            // Allocations of 16 KiB to 1 MiB, so that memory of all sizes is mapped and unmapped.
            let pages = Pages((4 + unit.rng.below(252)).min(unit.memory.0 - held));
            let arena = self.page_size.map(pages)?;
            arena.fill(filler, 0, pages.0);
            held += pages.0;
            arenas.push(arena);
            while read < READS && read * unit.memory.0 < held * READS {
                let number = unit.rng.below(self.sources());
                let _ = read_through(&file(folder, member.number, "source", number));
                read += 1;
            }
        }
        let compiled = member.own(COMPILED);
        let path = file(folder, member.number, "object", compiled % self.objects());
        write(&path, OBJECT, filler, compiled << 16);
        Ok(())
    }

    fn sources(self) -> u64 {
        (self.files.0 / 2 / SOURCE.0).max(READS)
    }

    fn objects(self) -> u64 {
        (self.files.0 / 2 / OBJECT.0).max(4)
    }

    /// Deletes the files of all jobs in `folder`.
    pub(crate) fn delete_files(self, folder: &Path) {
        for job in 0..self.jobs {
            for (kind, count) in [("source", self.sources()), ("object", self.objects())] {
                for number in 0..count {
                    let _ = fs::remove_file(file(folder, job, kind, number));
                }
            }
        }
    }

    /// Returns the total size of the files of all jobs.
    pub(crate) fn room(self) -> Bytes {
        let each = self.sources() * SOURCE.0 + self.objects() * OBJECT.0;
        Bytes(each * u64::from(self.jobs))
    }
}

/// One unit to compile: the size of its memory, and its random numbers.
struct Unit {
    memory: Pages,
    rng: Rng,
}

fn file(folder: &Path, job: u32, kind: &str, number: u64) -> PathBuf {
    folder.join(format!("pagetide-job-{job}-{kind}-{number}"))
}

/// Writes a file of generated pages, up to the point where the disk is full. Returns the number of bytes written.
fn write(path: &Path, size: Bytes, filler: &Filler, from: u64) -> u64 {
    let Ok(mut file) = fs::File::create(path) else {
        return 0;
    };
    let mut buffer = [0; PAGE];
    let mut written = 0;
    for page in 0..size.pages().0 {
        filler.write(&mut buffer, from + page);
        if file.write_all(&buffer).is_err() {
            break;
        }
        written += PAGE as u64;
    }
    written
}
