//! Checks of a workload: refuses mistakes in the text, and workloads beyond the bounds of the language or the machine.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos, hint};
use pagetide_reference::Pattern;

use crate::bounds::{
    MAX_ACCESSES, MAX_DEPTH, MAX_FILES, MAX_GROUPS, MAX_NAMES, MAX_PHASES, MAX_PROCESSES,
    MAX_SEGMENTS, MAX_TIME,
};
use crate::error::WorkloadError;
use crate::instances::{group_names, started};
use crate::phase::{Access, Advice, By, Part, Phase};
use crate::process::Process;
use crate::segment::{Kind, PageSize, Segment};
use crate::size::Size;
use crate::standstill;
use crate::workload::Workload;

/// Amounts of memory, files and accesses that a workload needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Total size of anonymous and shared segments and of tmpfs files. Pages that forked children copy on write do not
    /// count.
    pub memory: Bytes,
    /// Total size of the locked segments, which is part of `memory`.
    pub locked: Bytes,
    /// Total size of the files on the disk.
    pub files: Bytes,
    /// Total size of the tmpfs files, which is part of `memory`.
    pub tmpfs: Bytes,
    /// Number of accesses of all processes, including those to the pages of `fill` and `copy`.
    pub accesses: u64,
}

/// Maximum number of characters of a name.
const MAX_LETTERS: usize = 24;
/// Maximum number of repetitions of a repeated phase list.
const MAX_TIMES: u32 = 10_000;
/// Maximum number of accesses between two pauses.
const MAX_EVERY: u32 = 1_000_000;
/// Maximum share of memory that can be locked, in percent. The kernel and the processes need the rest.
const MAX_LOCKED: u64 = 80;

impl Workload {
    /// Fails if the workload contradicts itself or exceeds a bound that does not depend on the machine.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        if self.processes.is_empty() {
            return Err(WorkloadError::Empty);
        }
        if !(Nanos::from_millis(1)..=MAX_TIME).contains(&self.time_limit) {
            return Err(WorkloadError::Time {
                given: self.time_limit,
            });
        }
        distinct(
            "process",
            self.processes.iter().map(|process| process.name.as_str()),
        )?;
        distinct("group", self.groups.iter().map(|group| group.name.as_str()))?;
        let of_groups = group_names(self);
        distinct_names("group", of_groups.iter().map(|(_, name)| name.as_str()))?;
        at_most("groups", of_groups.len() as u64, MAX_GROUPS)?;
        for group in &self.groups {
            for (_, size) in group.sizes() {
                check_size(size, &format!("group {}", group.name))?;
            }
        }
        for process in &self.processes {
            if process.count == 0 {
                return Err(out_of("count", &process.name, "0", "1 or more processes"));
            }
        }
        at_most("processes", started(self), MAX_PROCESSES)?;
        let phases: usize = self
            .processes
            .iter()
            .map(|process| written(&process.phases))
            .sum();
        at_most("phases", phases as u64, MAX_PHASES as u64)?;
        let names = self.names();
        at_most(
            "names of processes and marks",
            names.len() as u64,
            MAX_NAMES as u64,
        )?;
        distinct("mark or process", names.into_iter())?;
        for process in &self.processes {
            self.check_process(process)?;
        }
        self.check_files()?;
        standstill::check(self)
    }

    fn check_process(&self, process: &Process) -> Result<(), WorkloadError> {
        let place = format!("process {}", process.name);
        at_most(
            "segments in a process",
            process.segments.len() as u64,
            MAX_SEGMENTS as u64,
        )?;
        distinct(
            "segment",
            process.segments.iter().map(|segment| segment.name.as_str()),
        )?;
        if let Some(name) = &process.group
            && !self.groups.iter().any(|group| group.name == *name)
        {
            let groups = self.groups.iter().map(|group| group.name.as_str());
            return Err(unknown(
                "group",
                name,
                &place,
                groups,
                "add a [[group]] with this name",
            ));
        }
        if let Some(turn) = &process.turn
            && !process.marks().contains(&turn.as_str())
        {
            return Err(unknown(
                "mark",
                turn,
                &place,
                process.marks(),
                "`turn` is a mark that these processes pass",
            ));
        }
        for time in [process.start, process.stagger] {
            short(&place, "start or stagger", time)?;
        }
        for segment in &process.segments {
            check_segment(segment, &format!("segment {} of {place}", segment.name))?;
        }
        self.check_phases(process, &process.phases, 1, false)
    }

    fn check_phases(
        &self,
        process: &Process,
        phases: &[Phase],
        depth: usize,
        forked: bool,
    ) -> Result<(), WorkloadError> {
        at_most("phases within phases", depth as u64, MAX_DEPTH as u64)?;
        for phase in phases {
            let place = format!("phase {} of process {}", phase.word(), process.name);
            match phase {
                Phase::Fill { segment, by, part } => {
                    let segment = of_process(process, segment, &place)?;
                    check_part(*part, &place)?;
                    check_by(*by, segment, &place)?;
                }
                Phase::Access(access) => self.check_access(process, access, &place)?,
                Phase::Copy { from, to } => {
                    of_process(process, from, &place)?;
                    let to = of_process(process, to, &place)?;
                    if !to.kind.is_file() {
                        return Err(contradiction(
                            &place,
                            format!(
                                "{} is no file: give a segment of kind file or tmpfs in `to`",
                                to.name
                            ),
                        ));
                    }
                }
                Phase::Sync { segment } => {
                    let segment = of_process(process, segment, &place)?;
                    if segment.kind != Kind::File {
                        return Err(contradiction(
                            &place,
                            format!(
                                "{} is not on a disk: give a segment of kind file",
                                segment.name
                            ),
                        ));
                    }
                }
                Phase::Advise {
                    segment,
                    advice,
                    part,
                } => {
                    let segment = of_process(process, segment, &place)?;
                    check_part(*part, &place)?;
                    check_advice(*advice, segment, &place)?;
                }
                Phase::Fork { count, phases } => {
                    if *count == 0 || phases.is_empty() {
                        return Err(out_of(
                            "count or phases",
                            &place,
                            "0",
                            "at least one child with at least one phase",
                        ));
                    }
                    self.check_phases(process, phases, depth + 1, true)?;
                }
                Phase::Repeat { times, phases } => {
                    if !(1..=MAX_TIMES).contains(times) || phases.is_empty() {
                        return Err(out_of(
                            "times",
                            &place,
                            &times.to_string(),
                            "1 to 10000 times, with at least one phase",
                        ));
                    }
                    self.check_phases(process, phases, depth + 1, forked)?;
                }
                Phase::Mark { .. } if forked => {
                    return Err(contradiction(
                        &place,
                        "a forked child passes no marks: move the mark out of the fork",
                    ));
                }
                Phase::Wait { r#for } => self.check_name(r#for, &place)?,
                Phase::Pause { time } => short(&place, "time", *time)?,
                Phase::Reclaim { group, amount } => {
                    check_size(*amount, &place)?;
                    self.check_reclaim(process, group, &place)?;
                }
                Phase::Mark { .. } | Phase::Join {} => {}
            }
        }
        Ok(())
    }

    fn check_access(
        &self,
        process: &Process,
        access: &Access,
        place: &str,
    ) -> Result<(), WorkloadError> {
        let segment = of_process(process, &access.segment, place)?;
        check_part(access.part, place)?;
        check_by(access.by, segment, place)?;
        if matches!(access.pattern, Pattern::File(_)) {
            return Err(contradiction(
                place,
                "a workload has no file of references: name another pattern",
            ));
        }
        if !(0.0..=1.0).contains(&access.writes) {
            return Err(out_of(
                "writes",
                place,
                &access.writes.to_string(),
                "a share from 0 to 1",
            ));
        }
        if !(1..=MAX_EVERY).contains(&access.every) {
            return Err(out_of(
                "every",
                place,
                &access.every.to_string(),
                "1 to 1000000 accesses",
            ));
        }
        short(place, "pause", access.pause)?;
        if !access.count.is_writable() {
            return Err(out_of(
                "count",
                place,
                &access.count.to_string(),
                "a number of accesses, or passes from 0.01x to 1000x",
            ));
        }
        match &access.until {
            Some(name) => self.check_name(name, place),
            None => Ok(()),
        }
    }

    fn check_reclaim(
        &self,
        process: &Process,
        name: &str,
        place: &str,
    ) -> Result<(), WorkloadError> {
        let Some(group) = self.groups.iter().find(|group| group.name == name) else {
            let groups = self.groups.iter().map(|group| group.name.as_str());
            return Err(unknown(
                "group",
                name,
                place,
                groups,
                "add a [[group]] with this name",
            ));
        };
        if group.each && process.group.as_deref() != Some(name) {
            return Err(contradiction(
                place,
                format!(
                    "each process of {name} has a group of its own: reclaim from within it, or remove `each`"
                ),
            ));
        }
        Ok(())
    }

    /// Fails if no process or mark that can be waited for has this name.
    fn check_name(&self, name: &str, place: &str) -> Result<(), WorkloadError> {
        let names = self.names();
        if names.contains(&name) {
            return Ok(());
        }
        Err(unknown(
            "mark or process",
            name,
            place,
            names,
            "add a phase mark with this name, or name a process",
        ))
    }

    /// Fails if segments that share a file differ in kind, size, content or `empty`.
    fn check_files(&self) -> Result<(), WorkloadError> {
        let mut files: BTreeMap<&str, &Segment> = BTreeMap::new();
        for process in &self.processes {
            for segment in &process.segments {
                let Some(file) = segment.file.as_deref() else {
                    continue;
                };
                let first = *files.entry(file).or_insert(segment);
                let same = |a: &Segment, b: &Segment| {
                    (a.kind, a.size, &a.content, a.empty) == (b.kind, b.size, &b.content, b.empty)
                };
                if !same(first, segment) {
                    return Err(contradiction(
                        &format!("process {}", process.name),
                        format!(
                            "its segment {} shares the file {file} but differs in kind, size, content or `empty`: make them equal",
                            segment.name
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the amounts that the workload needs with this memory and swap. Fails if the machine does not have them,
    /// or if a bound of the language is exceeded at this size.
    pub fn needed(&self, memory: Bytes, swap: Bytes) -> Result<Needed, WorkloadError> {
        let mut needed = Needed::default();
        let mut seen: Vec<&str> = Vec::new();
        for process in &self.processes {
            let count = u64::from(process.count);
            for segment in &process.segments {
                let times = match segment.file.as_deref() {
                    Some(file) if seen.contains(&file) => 0,
                    Some(file) => {
                        seen.push(file);
                        1
                    }
                    None => count,
                };
                let size = Bytes(segment.size.of(memory).0.saturating_mul(times));
                if segment.kind == Kind::File {
                    needed.files = needed.files.saturating_add(size);
                    continue;
                }
                needed.memory = needed.memory.saturating_add(size);
                if segment.locked {
                    needed.locked = needed.locked.saturating_add(size);
                }
                if segment.kind == Kind::Tmpfs {
                    needed.tmpfs = needed.tmpfs.saturating_add(size);
                }
            }
            let accesses = accesses(process, &process.phases, memory)?.saturating_mul(count);
            needed.accesses = needed.accesses.saturating_add(accesses);
        }
        at_most("accesses", needed.accesses, MAX_ACCESSES)?;
        if needed.files > MAX_FILES {
            return Err(WorkloadError::Files {
                wanted: needed.files,
                most: MAX_FILES,
            });
        }
        let most = Bytes(memory.0 / 100 * MAX_LOCKED);
        if needed.locked > most {
            return Err(WorkloadError::Locked {
                locked: needed.locked,
                memory,
                most,
            });
        }
        if needed.memory > memory.saturating_add(swap) {
            return Err(WorkloadError::Memory {
                wanted: needed.memory,
                memory,
                swap,
            });
        }
        Ok(needed)
    }
}

/// Number of accesses that a process and the children it forks make in these phases. Fails if a phase cannot be run.
fn accesses(process: &Process, phases: &[Phase], memory: Bytes) -> Result<u64, WorkloadError> {
    let pages = |name: &str, part: Option<Part>| {
        let pages = process
            .segment(name)
            .map_or(1, |segment| segment.size.pages(memory).0);
        let [begin, end] = Segment::part_of(pages, part);
        end - begin
    };
    let mut total = 0_u64;
    for phase in phases {
        let place = || format!("phase {} of process {}", phase.word(), process.name);
        let own = match phase {
            Phase::Fill { segment, part, .. } => pages(segment, *part),
            Phase::Access(access) => {
                let pages = pages(&access.segment, access.part);
                let wanted = access.count.over(pages);
                at_most("accesses", wanted, MAX_ACCESSES)?;
                let range = u32::try_from(pages).unwrap_or(u32::MAX);
                access
                    .pattern
                    .total(range, wanted)
                    .map_err(|why| contradiction(&place(), why.to_string()))?
            }
            Phase::Copy { from, to } => {
                let (from, to) = (pages(from, None), pages(to, None));
                if from > to {
                    return Err(contradiction(
                        &place(),
                        "`from` is larger than `to`: enlarge the file",
                    ));
                }
                from
            }
            Phase::Fork { count, phases } => {
                accesses(process, phases, memory)?.saturating_mul(u64::from(*count))
            }
            Phase::Repeat { times, phases } => {
                accesses(process, phases, memory)?.saturating_mul(u64::from(*times))
            }
            _ => 0,
        };
        total = total.saturating_add(own);
    }
    Ok(total)
}

/// Returns the number of phases in the text, including those inside other phases.
fn written(phases: &[Phase]) -> usize {
    phases.iter().map(|phase| 1 + written(phase.inner())).sum()
}

fn of_process<'a>(
    process: &'a Process,
    name: &str,
    place: &str,
) -> Result<&'a Segment, WorkloadError> {
    process.segment(name).ok_or_else(|| {
        let segments = process.segments.iter().map(|segment| segment.name.as_str());
        unknown(
            "segment",
            name,
            place,
            segments,
            "add a segment with this name to the process",
        )
    })
}

fn check_size(size: Size, place: &str) -> Result<(), WorkloadError> {
    if size.is_writable() {
        return Ok(());
    }
    Err(out_of(
        "a size of",
        place,
        &size.to_string(),
        "a share from 0.01% to 1000%, or bytes",
    ))
}

fn check_segment(segment: &Segment, place: &str) -> Result<(), WorkloadError> {
    check_size(segment.size, place)?;
    let is_file = segment.kind.is_file();
    let why = if segment.pages != PageSize::Small && segment.kind != Kind::Anonymous {
        "only anonymous memory has another page size: remove `pages`"
    } else if segment.locked && is_file {
        "a file is not locked: remove `locked`"
    } else if (segment.file.is_some() || segment.empty) && !is_file {
        "it is no file: remove `file` and `empty`, or give its kind as file or tmpfs"
    } else if segment.kind == Kind::Tmpfs && segment.empty {
        "a file in tmpfs always begins empty: remove `empty`"
    } else {
        if let Some(file) = &segment.file {
            check_name("file", file)?;
        }
        return Ok(());
    };
    Err(contradiction(place, why))
}

fn check_by(by: By, segment: &Segment, place: &str) -> Result<(), WorkloadError> {
    if by == By::Call && !segment.kind.is_file() {
        let why = format!(
            "{} is no file: remove `by`, or give a segment of kind file or tmpfs",
            segment.name
        );
        return Err(contradiction(place, why));
    }
    Ok(())
}

fn check_advice(advice: Advice, segment: &Segment, place: &str) -> Result<(), WorkloadError> {
    let is_wrong = match advice {
        Advice::Free => segment.kind != Kind::Anonymous || segment.locked,
        Advice::DropCache => segment.kind != Kind::File,
        Advice::Cold | Advice::Pageout | Advice::Dontneed => segment.locked,
        _ => false,
    };
    if is_wrong {
        let why = format!(
            "{} is locked, or of another kind than this advice is for: change the kind, `locked` or the advice",
            segment.name
        );
        return Err(contradiction(place, why));
    }
    Ok(())
}

fn check_part(part: Option<Part>, place: &str) -> Result<(), WorkloadError> {
    match part {
        Some([begin, end]) if !(begin >= 0.0 && begin < end && end <= 1.0) => Err(out_of(
            "part",
            place,
            &format!("[{begin}, {end}]"),
            "two shares from 0 to 1, the smaller one first",
        )),
        _ => Ok(()),
    }
}

fn short(place: &str, what: &'static str, time: Nanos) -> Result<(), WorkloadError> {
    if time > MAX_TIME {
        return Err(out_of(
            what,
            place,
            &time.to_string(),
            "a time of at most 600s",
        ));
    }
    Ok(())
}

fn at_most(what: &'static str, found: u64, most: u64) -> Result<(), WorkloadError> {
    if found > most {
        return Err(WorkloadError::TooMany { what, found, most });
    }
    Ok(())
}

fn check_name(what: &'static str, name: &str) -> Result<(), WorkloadError> {
    let is_good = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= MAX_LETTERS
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if is_good {
        return Ok(());
    }
    Err(WorkloadError::Name {
        what,
        name: name.to_owned(),
    })
}

/// Fails if a name is not well-formed, or occurs twice.
fn distinct<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), WorkloadError> {
    for name in names.clone() {
        check_name(what, name)?;
    }
    distinct_names(what, names)
}

fn distinct_names<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), WorkloadError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(WorkloadError::Twice {
                what,
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

fn unknown<'a>(
    what: &'static str,
    name: &str,
    place: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> WorkloadError {
    WorkloadError::Unknown {
        what,
        name: name.to_owned(),
        place: place.to_owned(),
        hint: hint(
            name,
            known.into_iter().collect::<Vec<_>>().into_iter(),
            otherwise,
        ),
    }
}

fn out_of(what: &'static str, place: &str, value: &str, bounds: &str) -> WorkloadError {
    WorkloadError::Bounds {
        place: place.to_owned(),
        what,
        value: value.to_owned(),
        bounds: bounds.to_owned(),
    }
}

fn contradiction(place: &str, why: impl Into<String>) -> WorkloadError {
    WorkloadError::Contradiction {
        place: place.to_owned(),
        why: why.into(),
    }
}
