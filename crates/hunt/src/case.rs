//! Writes the files of a finding: a campaign file, a C file, and a mail. The campaign file and the C file each
//! reproduce the finding alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use pagetide_arena::VariantSpec;
use pagetide_record::{MemorySpec, SwapSpec};
use pagetide_workload::{CaseMachine, Kind, Workload, c_file};
use serde::Serialize;

use crate::evidence::Evidence;
use crate::goal::Goal;
use crate::hunt::{Find, Share};
use crate::workloads::label;

/// Counters that a mail shows, in this order.
const COUNTERS: [&str; 30] = [
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_khugepaged",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_anon",
    "pgsteal_file",
    "pgrefill",
    "pgactivate",
    "pgdeactivate",
    "pglazyfree",
    "pglazyfreed",
    "allocstall_normal",
    "allocstall_movable",
    "allocstall_dma32",
    "pageoutrun",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "pswpin",
    "pswpout",
    "pgmajfault",
    "nr_dirtied",
    "nr_written",
    "pgpgin",
    "pgpgout",
    "oom_kill",
];

/// Results of the trials of a case under one variant.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// The variant of these trials.
    pub variant: VariantSpec,
    /// Evidence of each fresh seed, that is, of seeds that the search did not use.
    pub evidence: Vec<Evidence>,
    /// Number of the fresh seeds (not used by the search) with which the goal holds; `None` if the goal cannot be
    /// decided from one trial (`regressed`, `unstable`).
    pub share: Option<Share>,
}

/// Content of the files of one finding.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Name of the case; also the name of its campaign.
    pub name: &'a str,
    /// The goal of the hunt.
    pub goal: Goal,
    /// True if the hunt compared two variants.
    pub is_compared: bool,
    /// The finding that the case is made from.
    pub find: &'a Find<Workload>,
    /// Results by variant: the hunted variant first, then the variant that it is compared with, then the other kernels
    /// of the request.
    pub shown: &'a [Shown],
}

/// Content of the campaign file.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct CampaignFile<'a> {
    name: &'a str,
    primary: Vec<&'a str>,
    sampling: BTreeMap<&'a str, u32>,
    variant: Vec<VariantTable<'a>>,
    workload: &'a Workload,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct VariantTable<'a> {
    /// The variant's name with `-` for characters that a campaign file refuses in names.
    name: String,
    /// The kernel, or what it is built from, as [`VariantSpec::kernel`].
    kernel: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    boot: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    settings: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap: Option<SwapSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_size: Option<MemorySpec>,
}

impl<'a> From<&'a VariantSpec> for VariantTable<'a> {
    fn from(variant: &'a VariantSpec) -> Self {
        Self {
            name: variant.name.replace([':', ',', '\n'], "-"),
            kernel: &variant.kernel,
            boot: &variant.boot,
            settings: &variant.settings,
            swap: variant.swap,
            swap_size: variant.swap_size.map(MemorySpec::Free),
        }
    }
}

impl Case<'_> {
    /// Writes the files into `folder`, which is created if needed. Returns their paths. `compressed` takes the name of
    /// a kind of page content, and returns the compressed size of such pages as a fraction of their size.
    pub fn write(
        &self,
        folder: &Path,
        compressed: &dyn Fn(&str) -> f64,
    ) -> io::Result<Vec<PathBuf>> {
        fs::create_dir_all(folder)?;
        let files = [
            ("case.toml", self.toml()),
            ("case.c", self.c(compressed)),
            ("mail.txt", self.mail()),
        ];
        let mut paths = Vec::new();
        for (name, text) in files {
            let path = folder.join(name);
            fs::write(&path, text)?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// Returns what the case shows and with how many seeds, as lines of plain text that are not wrapped.
    fn about(&self) -> String {
        let find = self.find;
        let Share { holds, tried, .. } = find.seeds;
        let mut text = format!(
            "{}: {}.\n{} It holds with {holds} of {tried} fresh seeds",
            self.title(),
            find.shown,
            self.goal_sentence(),
        );
        for (size, share) in &find.sizes {
            let _ = write!(
                text,
                ", with {} of {} on a machine of {size} % of the size",
                share.holds, share.tried
            );
        }
        text.push_str(".\n");
        text
    }

    /// Returns the definition of the goal's number and its limit, as a sentence.
    pub fn goal_sentence(&self) -> String {
        let definition = self.goal.definition();
        format!(
            "Goal `{}`: {}; at least {}.",
            self.goal, definition.number, definition.limit
        )
    }

    /// Returns how general the finding is: the seeds, sizes and variants with which the case was tried, each with its
    /// result.
    pub fn generality(&self) -> Vec<(String, String)> {
        let holds = |share: &Share| format!("holds with {} of {}", share.holds, share.tried);
        let find = self.find;
        let mut all = vec![("fresh seeds".to_owned(), holds(&find.seeds))];
        for (size, share) in &find.sizes {
            all.push((format!("{size} % of the memory"), holds(share)));
        }
        if find.sizes.is_empty() {
            let why = "not tried: the hunt ended before";
            all.push(("other sizes of the memory".to_owned(), why.to_owned()));
        }
        let variant = |one: &Shown| {
            let with = format!("{} with {} seeds", one.variant.name, one.evidence.len());
            (with, outcome(one))
        };
        all.extend(self.shown.iter().map(variant));
        all
    }

    /// Returns the failure in a few words, for the subject line and the first sentence of the mail.
    pub fn title(&self) -> String {
        let hunted = self.name_of(0);
        match self.goal {
            Goal::Killed => format!("{hunted} kills although memory could be reclaimed"),
            Goal::Stall => format!("reclaim makes no progress in {hunted}"),
            Goal::FarFromOpt => format!("{hunted} reads back far more pages than needed"),
            Goal::Unfair => format!("a protected group loses memory in {hunted}"),
            Goal::Regressed => format!("{hunted} is worse than {}", self.name_of(1)),
            Goal::Unstable => format!("the time of a workload depends on chance in {hunted}"),
        }
    }

    fn name_of(&self, index: usize) -> &str {
        let shown = self.shown.get(index);
        shown.map_or("the kernel", |shown| &shown.variant.name)
    }

    /// Returns the results by variant in the order of the campaign file. If the hunt compared two variants, the one that
    /// the hunted variant is compared with comes first, as the baseline; otherwise the hunted variant does.
    pub fn columns(&self) -> Vec<&Shown> {
        let mut all: Vec<&Shown> = self.shown.iter().collect();
        if all.len() > 1 && self.is_compared {
            all.swap(0, 1);
        }
        all
    }

    /// Returns the names of the metrics that a campaign judges first.
    pub fn primary(&self) -> Vec<&'static str> {
        match self.goal {
            Goal::Killed => vec!["killed", "time"],
            Goal::Stall => vec!["longest-stall", "time"],
            Goal::Regressed if self.find.shown.starts_with("major") => {
                vec!["major-faults", "time"]
            }
            Goal::Regressed if self.find.shown.starts_with("accesses") => {
                vec!["access-mean", "time"]
            }
            Goal::Regressed => vec!["time", "killed"],
            Goal::Unstable => vec!["time"],
            Goal::FarFromOpt | Goal::Unfair => vec!["major-faults", "time"],
        }
    }

    /// Returns the text of the campaign file.
    pub fn toml(&self) -> String {
        let variants = self.columns().into_iter().map(|one| &one.variant);
        let file = CampaignFile {
            name: self.name,
            primary: self.primary(),
            sampling: [("seeds", 8)].into(),
            variant: variants.map(VariantTable::from).collect(),
            workload: &self.find.case,
        };
        let mut text = String::new();
        for line in self.about().lines() {
            let _ = writeln!(text, "# {line}");
        }
        let body = toml::to_string(&file).unwrap_or_default();
        format!("{text}\n{body}")
    }

    /// Returns the text of the C file.
    fn c(&self, compressed: &dyn Fn(&str) -> f64) -> String {
        let workload = &self.find.case;
        let machine = workload.machine.clone().unwrap_or_default();
        let segments = workload.processes.iter().flat_map(|one| &one.segments);
        let has_files = segments.clone().any(|segment| segment.kind == Kind::File);
        let hunted = self.shown.first().map(|one| &one.variant);
        let mut settings: BTreeMap<String, String> = machine.settings.clone();
        settings.extend(hunted.map(|one| one.settings.clone()).unwrap_or_default());
        let files = if has_files {
            let device = machine.files_on.unwrap_or_default();
            let fs = machine.fs.unwrap_or_default();
            format!(", files in {fs} on {device}")
        } else {
            String::new()
        };
        // As in a trial, swap that the variant sets replaces that of the machine.
        let swap = hunted.and_then(|one| one.swap).or(machine.swap);
        let size = hunted.and_then(|one| one.swap_size).or(machine.swap_size);
        let machine = CaseMachine {
            name: self.name.to_owned(),
            about: self.about(),
            memory: machine.memory.unwrap_or_default().bytes(),
            swap: format!(
                "{} ({})",
                swap.unwrap_or_default(),
                size.unwrap_or_default()
            ),
            files,
            settings: settings.into_iter().collect(),
        };
        c_file(workload, &machine, compressed)
    }

    /// Returns the text of the mail. Paragraphs are wrapped at the width that mailing lists expect; tables are not.
    pub fn mail(&self) -> String {
        let find = self.find;
        let mut text = format!(
            "To: linux-mm@kvack.org\nSubject: [REPORT] mm: {}\n\n",
            self.title()
        );
        text.push_str(&wrapped(&self.about()));
        let _ = write!(
            text,
            "\nThe workload, as small as it could be made:\n\n{}\n",
            wrapped(&format!("  {}", label(&find.case)))
        );
        if !find.is_smallest {
            text.push_str("It may not be the smallest: the search ended before.\n\n");
        }
        let seeds: Vec<usize> = self.shown.iter().map(|one| one.evidence.len()).collect();
        let _ = writeln!(
            text,
            "Results of each variant with {} seeds:\n",
            seeds.first().unwrap_or(&0)
        );
        let names = self.shown.iter().map(|one| one.variant.name.len());
        let width = names.max().unwrap_or(0);
        for one in self.shown {
            let _ = writeln!(text, "  {:width$}  {}", one.variant.name, outcome(one));
        }
        if let Some(death) = self.deaths().next() {
            let _ = write!(
                text,
                "\nWhat the kernel reported when it killed:\n\n{}",
                wrapped(&format!("  {death}"))
            );
        }
        text.push_str(&self.counters_text(width));
        text.push_str(
            "\nTo reproduce: case.c, attached, is one file without dependencies; its first lines say\nhow to set up the machine. \
             Or run case.toml with pagetide.\n",
        );
        text
    }

    /// Returns a description of each kill in the trials of the hunted variant for which the kernel reported its memory.
    pub fn deaths(&self) -> impl Iterator<Item = String> {
        let hunted = self.shown.first().into_iter();
        let deaths = hunted.flat_map(|one| one.evidence.iter().filter_map(|e| e.death.as_ref()));
        deaths.filter_map(|death| {
            let memory = death.memory.as_ref()?;
            Some(format!("{} after {}: {memory}", death.process, death.after))
        })
    }

    /// Returns those counters of the mail that rose under any of these variants. Each has its increase in the first
    /// seed's trial of each variant; 0 if a variant has no trial.
    pub fn counters(shown: &[&Shown]) -> Vec<(&'static str, Vec<u64>)> {
        let none = Evidence::default();
        let firsts = || {
            shown
                .iter()
                .map(|one| one.evidence.first().unwrap_or(&none))
        };
        let of = |name| {
            (
                name,
                firsts().map(|evidence| evidence.counter(name)).collect(),
            )
        };
        let all = COUNTERS.into_iter().map(of);
        let rose = |(_, values): &(_, Vec<u64>)| values.iter().any(|value| *value > 0);
        all.filter(rose).collect()
    }

    /// Returns the counters as a table with a column for each variant.
    fn counters_text(&self, width: usize) -> String {
        let width = width.max(12);
        let mut text = "\nThe kernel's counters with the first of these seeds:\n\n".to_owned();
        let _ = write!(text, "  {:26}", "");
        for one in self.shown {
            let _ = write!(text, "  {:>width$}", one.variant.name);
        }
        text.push('\n');
        let shown: Vec<&Shown> = self.shown.iter().collect();
        for (name, values) in Self::counters(&shown) {
            let _ = write!(text, "  {name:26}");
            for value in values {
                let _ = write!(text, "  {value:>width$}");
            }
            text.push('\n');
        }
        text
    }
}

/// Returns the result of the trials of a variant in one line: the first reason why a trial is unusable, otherwise kills
/// and the ranges of time and major faults.
fn outcome(shown: &Shown) -> String {
    let all = &shown.evidence;
    let mut parts = Vec::new();
    if let Some(why) = all.iter().find_map(|one| one.unusable.as_ref()) {
        return format!("cannot be measured: {why}");
    }
    if let Some(share) = shown.share {
        parts.push(format!("holds with {} of {}", share.holds, share.tried));
    }
    let spare = |one: &&Evidence| {
        one.death
            .as_ref()
            .is_some_and(crate::death::Death::is_to_spare)
    };
    let (killed, spared) = (
        all.iter().filter(|one| one.death.is_some()).count(),
        all.iter().filter(spare).count(),
    );
    if killed > 0 {
        parts.push(format!(
            "killed in {killed} of {}, with memory to spare in {spared}",
            all.len()
        ));
    }
    let times = all.iter().map(|one| one.time);
    if let (Some(least), Some(most)) = (times.clone().min(), times.max()) {
        parts.push(format!("time {least} to {most}"));
    }
    let faults = all.iter().map(|one| one.counter("pgmajfault"));
    if let (Some(least), Some(most)) = (faults.clone().min(), faults.max()) {
        parts.push(format!("major faults {least} to {most}"));
    }
    parts.join("; ")
}

/// Breaks text into lines of at most 76 characters, or of one word if that is longer. The indent of a line is kept.
fn wrapped(text: &str) -> String {
    const WIDEST: usize = 76;
    let mut out = String::new();
    for line in text.lines() {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        let mut current = indent.clone();
        for word in line.split_whitespace() {
            let room = current.chars().count() + 1 + word.chars().count();
            if room > WIDEST && current.len() > indent.len() {
                out.push_str(current.trim_end());
                out.push('\n');
                current.clone_from(&indent);
            }
            if current.len() > indent.len() {
                current.push(' ');
            }
            current.push_str(word);
        }
        out.push_str(current.trim_end());
        out.push('\n');
    }
    out
}
