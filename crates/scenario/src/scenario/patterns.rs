//! What does reclaim do to a reference pattern?
//!
//! Pages are touched in the order of a reference string, and every single access is timed. Which pages are still in
//! memory afterwards, how old they are and how often they were used shows how reclaim chose its victims. Origin: VM
//! Regress (2002). As written, pages are not filled first, so the references touch them first and memory runs out on
//! the way; one reference copies its whole page; and the sine pattern can give more references than requested. As
//! written, references write, because a first read maps the shared zero page on kernels since 2.6.32 and nothing is
//! ever swapped. Here every page contains data of a given compressibility before the first reference, a reference
//! touches one word, and counts are exact.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pagetide_quantity::{Bytes, Direction, MetricDef, Unit};
use pagetide_record::Invalid;
use pagetide_reference::{MAX_PAGES, PackedFile, Pattern, References, Rng, check_file};

use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts, must_fit};
use crate::error::{ScenarioError, Stop};
use crate::files::{filesystem_for, make_file};
use crate::fill::{Filler, check_content};
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;
use crate::number;
use crate::page_size::PageSize;
use crate::pagemap::PageMap;
use crate::params::{Pages, Params, choice, params};
use crate::tiers::Tiers;
use crate::touch::{Amount, BATCH, Offset, Recorder, Touch, WRITE};
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::uses::Uses;
use crate::workers::Usage;

choice! {
    /// Kind of mapping.
    pub(crate) enum Backing {
        /// Anonymous memory, which is reclaimed to swap.
        Anon = "anon",
        /// A file, which is reclaimed to its file system.
        File = "file",
    }
}

choice! {
    /// Kind of access.
    pub(crate) enum Access {
        /// All references are reads.
        Read = "read",
        /// All references are writes.
        Write = "write",
        /// A reference is a read or a write, chosen at random.
        Mixed = "mixed",
    }
}

choice! {
    /// Amount of a page that a reference touches.
    pub(crate) enum TouchExtent {
        /// One word of the page.
        Word = "word",
        /// The whole page, which is copied.
        Page = "page",
    }
}

choice! {
    /// When pages of anonymous memory are first touched.
    pub(crate) enum Filling {
        /// Before the first reference, in ascending order.
        Before = "before",
        /// During the references: the first reference to a page touches it.
        None = "none",
    }
}

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Patterns {
        /// Reference pattern with its parameters, such as smooth-sin-random, zipf(1.1) or file:trace.txt.
        pattern: String = "smooth-sin-random";
        /// Range of the pattern: a number of pages, or a size.
        pages: Pages = "2 * memory", min = "1", max = "268435456";
        /// Number of references, each timed.
        refs: u64 = "3 * pages", min = "1", max = "4294967295";
        /// Kind of mapping: anonymous memory or a file. A fault on a file also reads the surrounding pages, so a trial
        /// takes two to four times as long.
        mapping: Backing = "anon";
        /// When pages of anonymous memory are first touched: before the first reference, in ascending order, or by the
        /// references themselves (none), so that memory runs out on the way. In the latter case only a reference that
        /// writes its whole page gives it content; one that reads maps the shared zero page.
        fill: Filling = "before", as_written = "none";
        /// Kind of access of a reference: read, write, or either at random (mixed).
        access: Access = "read", as_written = "write";
        /// Fraction of the references that write, if access is mixed.
        share: f64 = "0.5", max = "1";
        /// Amount that a reference touches: one word of its page, or the whole page by a copy.
        touch: TouchExtent = "word", as_written = "page";
        /// Offset of the touched word in its page: spread for a different cache line in every page, or a multiple of 8
        /// below 4096. The same offset in every page makes random access two to three times slower, because of
        /// cache-set conflicts.
        offset: String = "spread";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; as written also
        /// 0, zeros; or the kind of memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of anonymous memory: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if
        /// the kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no
        /// madvise).
        page_size: PageSize = "small", as_written = "default";
        /// How many times, evenly over the references, presence, age and reference count of every page are recorded;
        /// the last time is at the end.
        snapshots: u32 = "2", max = "16";
    }
}

impl Patterns {
    fn pattern(&self, form: Form) -> Result<Pattern, ScenarioError> {
        let pattern: Pattern = self.pattern.parse()?;
        Ok(match form {
            Form::AsWritten => pattern.as_written(),
            Form::Repaired => pattern,
        })
    }

    fn offset(&self) -> Option<Offset> {
        if self.offset == "spread" {
            return Some(Offset::Spread);
        }
        self.offset
            .parse()
            .ok()
            .filter(|byte: &u32| *byte < 4096 && byte.is_multiple_of(8))
            .map(Offset::At)
    }

    fn range(&self) -> u32 {
        number::narrow(self.pages.0)
    }
}

impl Scenario for Patterns {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::time("access-time", "total time of all accesses").primary(),
        MetricDef::time("access-min", "shortest access"),
        MetricDef::time("access-mean", "mean access"),
        MetricDef::time("access-p50", "median access"),
        MetricDef::time("access-p90", "90th percentile of the accesses"),
        MetricDef::time("access-p99", "99th percentile of the accesses").primary(),
        MetricDef::time("access-p999", "99.9th percentile of the accesses"),
        MetricDef::time("access-max", "longest access"),
        MetricDef::count(
            "major-faults",
            Direction::Lower,
            "page faults during the references that waited for a device, as accounted to the process"
        )
        .primary(),
        MetricDef::count(
            "minor-faults",
            Direction::Neutral,
            "page faults during the references that found their page in memory"
        ),
        MetricDef::count("references", Direction::Neutral, "references made"),
        MetricDef::time("fill", "time to fill every page once, in ascending order, before the first reference"),
        MetricDef::count(
            "fill-faults",
            Direction::Neutral,
            "page faults of that filling: one per page, plus one for each page that was reclaimed while it was being filled"
        ),
        COMPRESSED,
        MetricDef::share(
            "present",
            Direction::Neutral,
            "fraction of the pages that are in memory after the last reference"
        ),
        MetricDef::count(
            "age-present",
            Direction::Neutral,
            "mean age of the pages in memory at the end: number of references since their last one"
        ),
        MetricDef::count(
            "age-absent",
            Direction::Neutral,
            "mean age of the pages not in memory at the end"
        ),
        MetricDef::of(
            "uses-present",
            Unit::Ratio,
            Direction::Neutral,
            "mean number of references to a page in memory at the end"
        ),
        MetricDef::of(
            "uses-absent",
            Unit::Ratio,
            Direction::Neutral,
            "mean number of references to a page not in memory at the end"
        ),
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        let pattern = self.pattern(form)?;
        pattern.check(self.range(), self.refs)?;
        if let Some(path) = pattern.path() {
            check_file(path, self.range()).map_err(|error| ScenarioError::Contradiction {
                scenario: name.to_owned(),
                why: error.to_string(),
            })?;
        }
        if self.offset().is_none() {
            return Err(ScenarioError::BadValue {
                scenario: name.to_owned(),
                parameter: "offset",
                given: self.offset.clone(),
                why: "give spread, or a multiple of 8 below 4096".to_owned(),
            });
        }
        check_content(name, &self.content, form)?;
        if self.mapping == Backing::Anon {
            must_fit(self.pages.bytes(), context)?;
        }
        Ok(())
    }

    fn needs(&self, form: Form) -> Needs {
        let file = self.mapping == Backing::File;
        Needs {
            swap: !file,
            // Reading pages that were never written maps the zero page, so nothing is reclaimed. As written the range
            // may fit into memory.
            pressure: form == Form::Repaired
                && (file || self.fill == Filling::Before || self.access != Access::Read),
            filesystem: file.then(|| filesystem_for(self.pages.bytes())),
            data: self
                .pattern(form)
                .ok()
                .and_then(|pattern| pattern.path().map(PathBuf::from)),
            ..if file {
                Needs::default()
            } else {
                self.page_size.needs()
            }
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let pattern = self.pattern(trial.form())?;
        let pages = self.pages.0;
        let mut references = self.references(&pattern, trial)?;
        let total = references.left();
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let mut recorder = Recorder::without_log()?;
        recorder.log_to(&trial.place.region, "access-log", total);
        let mut batch = LockedBuffer::<u32>::new(BATCH)?;
        let mut page_map = PageMap::open()?;
        let mut uses = Uses::new(trial, pages);
        recorder.write_content(&filler);
        let mut tiers = match self.mapping {
            Backing::Anon if self.snapshots > 0 => Tiers::new(trial, pages)?,
            _ => None,
        };
        trial.settle();

        let mapping = self.map(trial, &filler)?;
        if self.mapping == Backing::Anon && self.fill == Filling::Before {
            trial.phase("fill");
            let before = Usage::own();
            let (time, ()) = trial.time(|| mapping.fill(&filler, 0, pages));
            trial.time_metric("fill", time);
            let faults = Usage::own().since(before);
            let faults = faults.minor_faults + faults.major_faults;
            // A huge page counts as the first touch of many pages.
            if faults < pages && self.page_size == PageSize::Small {
                trial.must_count("first-touch faults", pages, faults);
            }
            trial.metric("fill-faults", faults as f64);
        } else {
            trial.absent("fill-faults", "nothing was filled page by page");
            if self.mapping == Backing::Anon {
                trial.absent("fill", "the references touch pages first");
            }
        }

        trial.phase("references");
        trial.steps(total);
        let offset = self.offset().unwrap_or(Offset::Spread);
        let touch = Touch::mapping(&mapping, self.amount(), offset);
        let mut kind = Writes::new(self, trial);
        let before = Usage::own();
        let mut faults = Usage::default();
        let mut done = 0;
        for moment in 1..=u64::from(self.snapshots.max(1)) {
            let until = total * moment / u64::from(self.snapshots.max(1));
            while done < until {
                let wanted = number::index(until - done).min(BATCH);
                let filled = references.fill(&mut batch[..wanted]);
                if filled == 0 {
                    break;
                }
                uses.add(&batch[..filled], done);
                kind.mark(&mut batch[..filled]);
                recorder.touch(trial.place.clock, &touch, &batch[..filled]);
                done += filled as u64;
                trial.done(done);
            }
            faults = Usage::own().since(before);
            if self.snapshots > 0 {
                trial.phase("snapshot");
                if let Some(tiers) = &mut tiers {
                    let known = Some(&filler).filter(|_| self.keeps_content());
                    tiers.look(&mapping, &mut page_map, known)?;
                }
                let found =
                    uses.snapshot(trial, &mapping, &mut page_map, tiers.as_mut(), moment, done)?;
                if moment == u64::from(self.snapshots) {
                    found.report(trial);
                } else {
                    trial.phase("references");
                }
            }
        }
        trial.compressed();
        trial.phase("report");
        let expected = match pattern.path() {
            Some(_) => self.refs,
            None => pattern
                .total(self.range(), self.refs)
                .map_err(ScenarioError::from)?,
        };
        trial.must_count("references", expected, recorder.count());
        trial.metric("references", recorder.count() as f64);
        trial.metric("major-faults", faults.major_faults as f64);
        trial.metric("minor-faults", faults.minor_faults as f64);
        trial.accesses("access", &mut recorder);
        trial.metric("access-time", recorder.sum() as f64);
        trial.finish_log(&mut recorder);
        Ok(())
    }
}

impl Patterns {
    /// Returns true if references leave a page as it was filled, except for single words that they write.
    fn keeps_content(&self) -> bool {
        let overwritten = self.touch == TouchExtent::Page && self.access != Access::Read;
        self.fill == Filling::Before && !overwritten
    }

    fn amount(&self) -> Amount {
        match self.touch {
            TouchExtent::Word => Amount::Word,
            TouchExtent::Page => Amount::Page,
        }
    }

    fn references<'a>(&self, pattern: &Pattern, trial: &Trial<'a>) -> Result<References<'a>, Stop> {
        if pattern.path().is_none() {
            return Ok(pattern
                .references(self.range(), self.refs, trial.subject.seed)
                .map_err(ScenarioError::from)?);
        }
        let packed = PackedFile::new(trial.place.data, self.range()).map_err(|error| {
            Stop::Invalid(Invalid::Scenario {
                why: format!("cannot use the references that were carried in: {error}"),
            })
        })?;
        Ok(packed.references(self.refs))
    }

    fn map(&self, trial: &mut Trial<'_>, filler: &Filler) -> Result<Mapping, Stop> {
        match self.mapping {
            Backing::Anon => self.page_size.map(self.pages),
            Backing::File => {
                trial.phase("fill");
                let path = trial.place.work_dir.join("pagetide-pages");
                let (time, file) = trial.time(|| make_file(&path, self.pages.0, filler));
                let file = file?;
                trial.time_metric("fill", time);
                Mapping::file(&file, self.pages)
            }
        }
    }
}

/// Selects the references that write.
struct Writes {
    access: Access,
    /// A reference writes if a random number of 53 bits is below this.
    threshold: u64,
    rng: Rng,
}

impl Writes {
    fn new(params: &Patterns, trial: &Trial<'_>) -> Self {
        Self {
            access: params.access,
            threshold: number::floor(params.share * 9_007_199_254_740_992.0),
            rng: trial.rng("writes"),
        }
    }

    fn mark(&mut self, batch: &mut [u32]) {
        match self.access {
            Access::Read => {}
            Access::Write => batch.iter_mut().for_each(|item| *item |= WRITE),
            Access::Mixed => {
                for item in batch {
                    if self.rng.next_u64() >> 11 < self.threshold {
                        *item |= WRITE;
                    }
                }
            }
        }
    }
}

/// Sets the pattern to the scenario's name, such as `zipf(1.1)`. Fails if that is no pattern, or if another is given.
pub(crate) fn take_pattern(
    definition: &Definition,
    name: &str,
    given: &mut BTreeMap<String, String>,
) -> Result<(), ScenarioError> {
    let is_pattern = definition.params == Patterns::SCHEMA;
    // In a repeated trial, the parameters already contain the pattern that the name states.
    let said: Option<Pattern> = given.get("pattern").and_then(|text| text.parse().ok());
    if is_pattern && said.is_some() && said == name.trim().parse().ok() {
        return Ok(());
    }
    if !is_pattern || definition.name == PATTERNS.name || given.contains_key("pattern") {
        return Err(ScenarioError::Unknown {
            given: name.to_owned(),
            hint: format!(
                "write {} and give its parameters one by one",
                definition.name
            ),
        });
    }
    given.insert("pattern".to_owned(), name.trim().to_owned());
    Ok(())
}

/// For the scenario `file`, sets the number of pages and of references as in the reference file, unless they are given.
pub(crate) fn take_file(
    definition: &Definition,
    given: &mut BTreeMap<String, String>,
) -> Result<(), ScenarioError> {
    if definition.name != FILE.name {
        return Ok(());
    }
    let pattern: Pattern = given
        .get("pattern")
        .map_or("file:", String::as_str)
        .parse()?;
    let Some(path) = pattern.path() else {
        return Err(ScenarioError::Contradiction {
            scenario: FILE.name.to_owned(),
            why: format!("its pattern is {pattern}, name a file as in file:trace.txt"),
        });
    };
    if given.contains_key("pages") && given.contains_key("refs") {
        return Ok(());
    }
    let summary = check_file(path, MAX_PAGES).map_err(|error| ScenarioError::Contradiction {
        scenario: FILE.name.to_owned(),
        why: error.to_string(),
    })?;
    given
        .entry("pages".to_owned())
        .or_insert_with(|| summary.pages.to_string());
    given
        .entry("refs".to_owned())
        .or_insert_with(|| summary.refs.to_string());
    Ok(())
}

const DOCS: &str = "Maps `pages` pages, fills them in ascending order with data of a given compressibility, then makes \
    `refs` references in the order of the pattern and times every single one (one clock read per access; the \
    full log is recorded). With fill=none the references touch pages first, and memory runs out on the way. At `snapshots` points in time it records for every page whether it is in memory, how many references ago it \
    was last used, and how often it was used. With a pattern over twice the memory this shows how reclaim chose \
    its victims. The defaults give about 50,000 major faults in 64 MiB.";
const ORIGIN: &str = "VM Regress 0.7 by Mel Gorman (2002): 2,000,000 references over 25,000 pages (about physical \
    memory) and over 50,000 pages, anonymous or file mapping, read or write.";
const REPAIRED: &str = "Pages were not filled, so the accesses include first touches. One reference copied its whole \
    page, so the copy was measured. smooth-sin could give more references than requested (range 1000, 77000 references: \
    77062), and does so as written. The original read, but since 2.6.32 a first read \
    maps the shared zero page and nothing is swapped, so as written the references write.";

/// Memory of the machine on which the original ran: 25,000 pages.
const MEMORY: Bytes = Bytes(25_000 * 4096);

macro_rules! pattern_scenario {
    ($constant:ident, $name:literal, $summary:literal, $presets:expr) => {
        #[doc = concat!("The scenario `", $name, "`.")]
        pub(crate) static $constant: Definition = Definition::of::<Patterns>(
            Texts {
                name: $name,
                summary: $summary,
                docs: DOCS,
                origin: ORIGIN,
                repaired: REPAIRED,
            },
            MEMORY,
            $presets,
        );
    };
}

pattern_scenario!(
    PATTERNS,
    "patterns",
    "what reclaim does to any reference pattern (set pattern=…)",
    &[]
);
pattern_scenario!(
    LINEAR,
    "linear",
    "every page in ascending order, repeatedly",
    &[("pattern", "linear"), ("refs", "2 * pages")]
);
pattern_scenario!(
    RANDOM,
    "random",
    "every page once in ascending order, then uniformly at random",
    &[("pattern", "random")]
);
pattern_scenario!(
    SMOOTH_SIN,
    "smooth-sin",
    "number of references per page follows a sine curve, in page order",
    &[("pattern", "smooth-sin")]
);
pattern_scenario!(
    SMOOTH_SIN_RANDOM,
    "smooth-sin-random",
    "the references of smooth-sin in random order",
    &[("pattern", "smooth-sin-random")]
);
pattern_scenario!(
    ZIPF05,
    "zipf05",
    "lower pages are referenced more often, VM Regress's zipf",
    &[("pattern", "zipf05")]
);
pattern_scenario!(
    ZIPF,
    "zipf",
    "Zipf's law with a chosen exponent",
    &[("pattern", "zipf(0.9,scatter)"), ("refs", "6 * pages")]
);
pattern_scenario!(
    LOGNORMAL,
    "lognormal",
    "lower pages are referenced more often, with a log-normal tail",
    &[("pattern", "lognormal")]
);
pattern_scenario!(
    HOT_COLD,
    "hot-cold",
    "a moving hot set, and cold pages",
    &[
        ("pattern", "hot-cold(hot=0.2,share=0.9,move=10000,by=0.1)"),
        ("refs", "8 * pages")
    ]
);
pattern_scenario!(
    SCAN_WITH_HOT_CORE,
    "scan-with-hot-core",
    "a linear scan interleaved with a hot core",
    &[("pattern", "scan-with-hot-core")]
);
pattern_scenario!(
    LOOP,
    "loop",
    "a repeated scan over a range slightly larger than memory",
    &[
        ("pattern", "loop"),
        ("pages", "1.1 * memory"),
        ("refs", "4 * pages")
    ]
);
pattern_scenario!(
    FILE,
    "file",
    "references from a file (file:PATH)",
    &[("pattern", "file:")]
);
