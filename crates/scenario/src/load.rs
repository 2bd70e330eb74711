//! A load on memory and files that ages a machine, as compile jobs do: processes grow and shrink, files come and go.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use pagetide_quantity::{Bytes, Nanos, Pages};
use pagetide_reference::Rng;

use crate::clock;
use crate::error::Stop;
use crate::files::read_through;
use crate::fill::Filler;
use crate::mapping::{Mapping, PAGE};
use crate::trial::Trial;
use crate::workers::{Member, Team};

/// Files that a job keeps.
const FILES: u64 = 16;

/// How heavy the load is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Processes.
    pub jobs: u32,
    /// Memory that each holds at most.
    pub memory: Bytes,
    /// Size of a file.
    pub file: Bytes,
    /// Pause between two steps of a job.
    pub pause: Nanos,
}

impl Load {
    /// Starts the jobs; they run until they are asked to stop.
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
        let mut regions: VecDeque<Mapping> = VecDeque::new();
        let mut held = 0;
        let mut buffer = [0; PAGE];
        let mut steps = 0;
        member.gate();
        while !member.asked_to_stop() {
            // Regions of 16 KiB to 1 MiB, as a compiler's arenas; the oldest go when the job holds too much.
            let pages = Pages(4 + rng.below(252));
            let region = Mapping::anonymous(pages)?;
            region.fill(filler, 0, pages.0);
            held += pages.bytes().0;
            regions.push_back(region);
            while held > self.memory.0 {
                // Not always the oldest: holes of all ages are what fragments memory.
                let victim = if rng.below(4) == 0 {
                    regions.len() / 2
                } else {
                    0
                };
                match regions.remove(victim) {
                    Some(region) => held -= region.size().0,
                    None => break,
                }
            }
            let path = file(folder, member.number, rng.below(FILES));
            if rng.below(2) == 0 {
                // A job whose disk is full goes on: it still reads and allocates.
                let _ = write(&path, self.file, filler, &mut buffer, steps);
            } else {
                let _ = read_through(&path);
            }
            steps += 1;
            member.put(0, steps);
            clock::sleep(self.pause);
        }
        Ok(())
    }

    /// Deletes what the jobs left behind.
    pub(crate) fn delete_files(self, folder: &Path) {
        for job in 0..self.jobs {
            for number in 0..FILES {
                let _ = fs::remove_file(file(folder, job, number));
            }
        }
    }

    /// Room for all files.
    pub(crate) fn files(self) -> Bytes {
        Bytes(self.file.0 * FILES * u64::from(self.jobs))
    }
}

fn file(folder: &Path, job: u32, number: u64) -> PathBuf {
    folder.join(format!("pagetide-job-{job}-{number}"))
}

fn write(
    path: &Path,
    size: Bytes,
    filler: &Filler,
    buffer: &mut [u8; PAGE],
    step: u64,
) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    for page in 0..size.pages().0 {
        filler.write(buffer, step << 16 | page);
        file.write_all(buffer)?;
    }
    Ok(())
}
