//! Does a big copy evict useful page cache?
//!
//! A file larger than memory is copied in several ways, each starting with empty caches, while a second process uses a
//! warm working set. Origin: mmap copy (2008), six ways to copy 1 GB on a machine of 512 MB. It measured the time of
//! the copy itself in one run, without variance. The decisive evidence later was a *victim*: the process whose cached
//! pages the copy evicts. Here its access times and refaults are measured during each copy, and each copy is compared
//! byte by byte.

use pagetide_quantity::hint;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Series, Unit};

use crate::content::Content;
use crate::copy::{CLASSIC, CopyEnd, Job, MODERN, Method};
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts};
use crate::error::{ScenarioError, Stop};
use crate::files::{drop_caches, filesystem_for, forget, make_file};
use crate::fill::{Filler, check_content};
use crate::harness::LockedBuffer;
use crate::number;
use crate::page::PAGE;
use crate::page_size::PageSize;
use crate::params::{choice, params};
use crate::scenario::patterns::Backing;
use crate::trial::{Trial, metrics};
use crate::victim::{self, Victim, VictimReport};

choice! {
    /// Which caches are dropped before each copy.
    pub(crate) enum DropScope {
        /// All caches of the machine.
        All = "all",
        /// Only the scenario's own files.
        Own = "own",
    }
}

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Filecopy {
        /// Ways to copy, in turn: classic (the original's six), modern, all, or names separated by commas.
        methods: String = "classic";
        /// Size of the file.
        size: Bytes = "2 * memory", min = "64K";
        /// Size of each read and write, for the methods that use them.
        chunk: Bytes = "8K", min = "4K", max = "1M";
        /// Warm working set of the victim process, accessed at random; 0 for no victim.
        victim: Bytes = "0.4 * memory", as_written = "0";
        /// Memory of the victim: file (a mapping of a separate file) or anon (memory that goes to swap).
        victim_mapping: Backing = "file";
        /// Pause of the victim after every 32 accesses.
        pause: Nanos = "1ms", min = "10us", max = "10s";
        /// What is dropped from the page cache before each copy: all caches of the machine (needs root), or own files
        /// only.
        forget: DropScope = "all";
        /// Whether each copy is compared with the content of the source, byte by byte, after its time was taken.
        verify: bool = "true";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of the victim's anonymous memory: small (huge pages disabled by madvise), huge (enabled by
        /// madvise, aligned; if the kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled),
        /// or default (no madvise).
        page_size: PageSize = "small";
    }
}

/// Returns all methods of copying, the classic ones first.
fn every() -> impl Iterator<Item = &'static Method> + Clone {
    CLASSIC.iter().chain(&MODERN)
}

impl Filecopy {
    /// Returns the size of the victim's file; `None` if the victim does not use a file.
    fn warm_file(&self) -> Option<Bytes> {
        let mapped = self.victim.0 > 0 && self.victim_mapping == Backing::File;
        mapped.then_some(self.victim)
    }

    fn chosen(&self, name: &str) -> Result<Vec<&'static Method>, ScenarioError> {
        let mut chosen = Vec::new();
        for word in self.methods.split(',').map(str::trim) {
            match word {
                "classic" => chosen.extend(CLASSIC.iter()),
                "modern" => chosen.extend(MODERN.iter()),
                "all" => chosen.extend(every()),
                // Names in the original had underscores.
                word => {
                    let found = every().find(|method| method.name == word.replace('_', "-"));
                    chosen.push(found.ok_or_else(|| {
                        ScenarioError::BadValue {
                            scenario: name.to_owned(),
                            parameter: "methods",
                            given: word.to_owned(),
                            why: hint(
                                word,
                                ["classic", "modern", "all"]
                                    .into_iter()
                                    .chain(every().map(|method| method.name)),
                                "`pagetide list scenarios filecopy --long` shows all",
                            ),
                        }
                    })?);
                }
            }
        }
        Ok(chosen)
    }
}

macro_rules! copy_metrics {
    ($($name:literal),*) => {
        metrics![
            MetricDef::time("copy-time", "total time of all copies, each until it is on the device").primary(),
            MetricDef::time("victim-mean", "mean access time of the victim during the copies").primary(),
            MetricDef::time("victim-max", "longest access of the victim during the copies"),
            MetricDef::count(
                "victim-refaults",
                Direction::Lower,
                "pages of the victim's working set that had to be read again during the copies"
            )
            .primary(),
            MetricDef::of("victim-accesses", Unit::Count, Direction::Neutral, "number of accesses of the victim during the copies"),
            MetricDef::of("copied", Unit::Bytes, Direction::Neutral, "bytes copied"),
            MetricDef::of("compared", Unit::Bytes, Direction::Neutral, "bytes compared and found equal"),
            $(
                MetricDef::time(concat!("time-", $name), concat!("time of the copy by ", $name, ", until it is on the device")),
                MetricDef::count(
                    concat!("victim-refaults-", $name),
                    Direction::Lower,
                    concat!("pages of the victim that had to be read again during ", $name)
                ),
            )*
        ]
    };
}

impl Scenario for Filecopy {
    const METRICS: &'static [MetricDef] = copy_metrics![
        "rw-cp",
        "rw-fadv-cp",
        "mm-sync-cp",
        "mm-sync-madv-cp",
        "mw-cp",
        "mw-madv-cp",
        "rw-dontneed-cp",
        "mm-cold-cp",
        "copy-file-range-cp",
        "sendfile-cp",
        "splice-cp",
        "direct-cp",
        "dontcache-cp",
        "uring-cp"
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        self.chosen(name)?;
        if self.victim > context.memory {
            return Err(ScenarioError::Contradiction {
                scenario: name.to_owned(),
                why: format!(
                    "a victim of {} is never warm in {} of memory: lower victim",
                    self.victim, context.memory
                ),
            });
        }
        Ok(())
    }

    fn needs(&self, _form: Form) -> Needs {
        let warm = self.warm_file().map_or(0, |size| size.0);
        let files = 2 * self.size.0 + warm;
        Needs {
            pressure: true,
            swap: self.victim.0 > 0 && self.victim_mapping == Backing::Anon,
            filesystem: Some(filesystem_for(Bytes(files))),
            ..self.page_size.needs()
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let chosen = self.chosen("filecopy")?;
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let mut buffer = LockedBuffer::<u8>::new(number::index(self.chunk.0).max(PAGE))?;
        let mut read_back = LockedBuffer::<u8>::new(READ_BACK_BYTES)?;
        trial.settle();

        trial.phase("prepare");
        let path = |name: &str| trial.place.work_dir.join(name);
        let (from, to, warm) = (
            path("pagetide-source"),
            path("pagetide-copy"),
            path("pagetide-warm"),
        );
        make_file(&from, self.size.pages().0, &filler)?;
        if let Some(size) = self.warm_file() {
            make_file(&warm, size.pages().0, &filler)?;
        }
        let victim = Victim {
            file: self.warm_file().map(|_| warm.as_path()),
            filler: &filler,
            page_size: self.page_size,
            pages: self.victim.pages(),
            pause: self.pause,
        };
        for method in every().filter(|method| !chosen.contains(method)) {
            trial.omit(&format!("time-{}", method.name));
            trial.omit(&format!("victim-refaults-{}", method.name));
        }

        trial.steps(chosen.len() as u64);
        let mut sums = Sums::default();
        for (done, method) in (1..).zip(&chosen) {
            // Same steps as in the original: remove the target, write back all data, drop the caches.
            let _ = fs::remove_file(&to);
            match self.forget {
                DropScope::All => drop_caches(trial),
                DropScope::Own => [&from, &warm].into_iter().for_each(|path| forget(path)),
            }
            let mut team = None;
            if self.victim.0 > 0 {
                let mut started = victim.start(trial)?;
                started.open()?;
                team = Some(started);
            }
            trial.phase(method.name);
            let mut job = Job {
                from: &from,
                to: &to,
                pages: self.size.pages(),
                buffer: &mut buffer,
            };
            let (time, copied) = trial.time(|| method.copy(&mut job));
            let copied = copied?;
            let suffered = match team {
                Some(team) => Some(victim::end(trial, team)?),
                None => None,
            };
            trial.phase("verify");
            self.judge(trial, method, &copied, time, suffered, &mut sums);
            if copied == CopyEnd::Whole && self.verify {
                let equal = compare(&to, self.size.pages().0, &filler, &mut read_back)?;
                trial.must_count(
                    &format!("equal bytes in the copy by {}", method.name),
                    self.size.0,
                    equal,
                );
                sums.compared += equal;
            }
            trial.done(done);
        }
        for path in [&from, &to, &warm] {
            let _ = fs::remove_file(path);
        }
        sums.report(trial);
        Ok(())
    }
}

/// Totals over all copies, and the rows of the result series.
#[derive(Default)]
struct Sums {
    time: u64,
    copied: u64,
    compared: u64,
    victim: VictimReport,
    rows: Vec<[u64; 5]>,
}

impl Filecopy {
    fn judge(
        &self,
        trial: &mut Trial<'_>,
        method: &Method,
        copied: &CopyEnd,
        time: Nanos,
        suffered: Option<VictimReport>,
        sums: &mut Sums,
    ) {
        let (time_name, refaults_name) = (
            format!("time-{}", method.name),
            format!("victim-refaults-{}", method.name),
        );
        if *copied == CopyEnd::NotHere {
            trial.not_on_this_kernel(method.feature);
            trial.absent(&time_name, "not on this kernel");
            trial.absent(&refaults_name, "not on this kernel");
            return;
        }
        trial.time_metric(&time_name, time);
        sums.time += time.0;
        sums.copied += self.size.pages().bytes().0;
        let number = every().position(|other| other == method).unwrap_or(0) as u64;
        let Some(suffered) = suffered else {
            trial.absent(&refaults_name, "no victim");
            sums.rows.push([number, time.0, 0, 0, 0]);
            return;
        };
        trial.metric(&refaults_name, suffered.refaults as f64);
        sums.rows.push([
            number,
            time.0,
            suffered.count,
            suffered.sum / suffered.count.max(1),
            suffered.p99,
        ]);
        sums.victim.count += suffered.count;
        sums.victim.sum += suffered.sum;
        sums.victim.refaults += suffered.refaults;
        sums.victim.max = sums.victim.max.max(suffered.max);
    }
}

impl Sums {
    fn report(&self, trial: &mut Trial<'_>) {
        if self.rows.is_empty() {
            trial.absent("copy-time", "not on this kernel");
        } else {
            trial.metric("copy-time", self.time as f64);
        }
        trial.metric("copied", self.copied as f64);
        trial.metric("compared", self.compared as f64);
        let victim = &self.victim;
        if victim.count == 0 {
            for name in [
                "victim-mean",
                "victim-max",
                "victim-refaults",
                "victim-accesses",
            ] {
                trial.absent(name, "no victim");
            }
        } else {
            trial.metric("victim-mean", victim.sum as f64 / victim.count as f64);
            trial.metric("victim-max", victim.max as f64);
            trial.metric("victim-refaults", victim.refaults as f64);
            trial.metric("victim-accesses", victim.count as f64);
        }
        let column = |index: usize| self.rows.iter().map(move |row| number::signed(row[index]));
        trial.series(
            &Series::new("copies")
                .int("method", Unit::Count, column(0))
                .int("time", Unit::Nanos, column(1))
                .int("victim-accesses", Unit::Count, column(2))
                .int("victim-mean", Unit::Nanos, column(3))
                .int("victim-p99", Unit::Nanos, column(4)),
        );
    }
}

/// Number of bytes of a copy that are read back at once.
const READ_BACK_BYTES: usize = 128 << 10;

/// Returns the size of all pages of the copy that equal the source, or the length of a copy of the wrong length. The
/// copy is read with O_DIRECT if the file system supports it, to check the data on the device, not in the page cache.
fn compare(path: &Path, pages: u64, filler: &Filler, buffer: &mut [u8]) -> Result<u64, Stop> {
    let cannot = || Stop::system(format!("cannot compare {}", path.display()));
    let past_the_cache = File::options()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path);
    let file = past_the_cache
        .or_else(|_| File::open(path))
        .map_err(cannot())?;
    // If its length differs, the file is not a copy.
    let length = file.metadata().map_err(cannot())?.len();
    if length != pages * PAGE as u64 {
        return Ok(length);
    }
    let mut wanted = [0; PAGE];
    let mut equal = 0;
    let mut page = 0;
    while page < pages {
        let count = (pages - page).min((buffer.len() / PAGE) as u64);
        let part = &mut buffer[..number::index(count) * PAGE];
        file.read_exact_at(part, page * PAGE as u64)
            .map_err(cannot())?;
        for (found, number) in part.chunks_exact(PAGE).zip(page..) {
            filler.write(&mut wanted, number);
            if *found == wanted {
                equal += PAGE as u64;
            }
        }
        page += count;
    }
    Ok(equal)
}

/// Definition of the scenario `filecopy`.
pub(crate) static FILECOPY: Definition = Definition::of::<Filecopy>(
    Texts {
        name: "filecopy",
        summary: "what a big copy does to the page cache and to a process that uses it",
        docs: "Writes a file of `size` bytes, then copies it by each of `methods`: before each the target is removed, \
               everything is written back and caches are dropped; each is timed until the copy is on the device. During \
               each copy a victim with a warm working set of `victim` bytes, cached file or anonymous memory, makes accesses at \
               random, paced, and times them; pages it must read again are its refaults. Methods: rw-cp reads and writes `chunk` bytes; rw-fadv-cp \
               advises SEQUENTIAL and NOREUSE; mm-sync-cp maps both files and copies; mm-sync-madv-cp advises \
               MADV_SEQUENTIAL on both; mw-cp maps the source and writes it at once; mw-madv-cp advises it; modern ones \
               use DONTNEED behind the copy, MADV_COLD, copy_file_range, sendfile, splice, O_DIRECT, RWF_DONTCACHE and \
               io_uring. A method that the kernel lacks is reported as not on this kernel.",
        origin: "mmap copy (2008): 1 GB on 512 MB; seconds before and after making used-once mapped pages reclaimable: \
                 59.32/58.60, 57.96/57.96, 69.97/61.68, 69.41/62.54, 61.69/63.11, 61.35/61.31.",
        repaired: "One run had no variance; NOREUSE did nothing between 2.6.18 and 6.2; only the copy's own time was \
                   measured. As written there is no victim.",
    },
    Bytes::from_mib(512),
    &[],
)
// With 10 MiB, six copies of twice the memory, each read back, take as long as other scenarios take with 64 MiB.
.with_memory(Bytes::from_mib(10));
