//! Campaign files.
//!
//! ```toml
//! name = "quick"
//! kernel = "debian:bookworm/6.12"      # for variants that name none; or source = "debian:6.12" for patches
//! memory = "64M"                       # free at the start; "total:160M" leaves the kernel's footprint in
//! swap = ["zram", "ssd:80us"]          # lists make a matrix
//!
//! [sampling]
//! seeds = 6                            # or until = "sure", with cap = 40 and looks = 4 or [10, 20, 40]
//!
//! [[variant]]                          # the first is the baseline
//! name = "mglru-off"
//! settings = { "lru_gen/enabled" = 0 }
//!
//! [[variant]]
//! name = "mglru-on"
//! settings = { "lru_gen/enabled" = 7 }
//!
//! [[scenario]]
//! name = "smooth-sin-random"
//! params = { pages = "2 * memory" }
//! ```
//!
//! Keys in a `[[scenario]]` override the same keys above all tables. Each mistake is reported with its line, its key
//! and the most likely intention.

pub(crate) mod defaults;
mod error;
mod kernel;
mod program;
pub mod reference;
mod scaled;
mod table;
mod vocabulary;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use pagetide_outside::FileOrigin;
use pagetide_record::{ArenaKind, MemorySpec, TraceRing};
use pagetide_store::{MAX_VARIANTS, is_campaign_name};
use toml::de::{DeTable, DeValue};

use crate::campaign::{Campaign, DEFAULT_CAP, Observe, Sampling, ScenarioSpec, Until, even_looks};
use crate::program::WORKLOAD;
use pagetide_arena::VariantSpec;
use pagetide_compare::notes::Kind;

pub use error::{FileError, Problem};
pub use table::MAX_BYTES;
pub(crate) use vocabulary::plain_name;
pub use vocabulary::{ScenarioWords, Vocabulary};
pub use workload::read_workload;

use pagetide_quantity::{choices, nearest};

use defaults::FileDefaults;
use kernel::{KernelKeys, kernel_of};
use reference::{PROGRAM_KEYS, SAMPLING, SCENARIO, TOP, VARIANT};
use scaled::Share;
use table::{Item, Source, Table};

/// Hint on how to list the metrics.
const METRICS: &str = "`pagetide list scenarios --long` shows all";

/// Maximum number of blocks of a campaign. The limit catches a mistyped number that would plan years of trials.
const MAX_BLOCKS: u32 = 100_000;

/// Returns the paths and campaigns of the campaign files in a folder and its subfolders, sorted by path in each folder.
/// Files that do not end in `.toml` or are not valid campaigns are skipped, and so is a folder that cannot be read.
pub fn find(folder: &Path, vocabulary: &Vocabulary) -> Vec<(PathBuf, Campaign)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() {
            all.extend(find(&path, vocabulary));
        } else if path.extension().is_some_and(|ending| ending == "toml")
            && let Ok(campaign) = read_from(&path, FileOrigin::Listed, None, vocabulary)
        {
            all.push((path, campaign));
        }
    }
    all
}

/// Reads a campaign file.
pub fn read(path: &Path, vocabulary: &Vocabulary) -> Result<Campaign, FileError> {
    read_at(path, None, vocabulary)
}

/// Reads a campaign file. `scale` replaces the scale given in the file; fails if `scale` is given but the file states
/// none.
pub fn read_at(
    path: &Path,
    scale: Option<f64>,
    vocabulary: &Vocabulary,
) -> Result<Campaign, FileError> {
    read_from(path, FileOrigin::Named, scale, vocabulary)
}

fn read_from(
    path: &Path,
    place: FileOrigin,
    scale: Option<f64>,
    vocabulary: &Vocabulary,
) -> Result<Campaign, FileError> {
    let unreadable = |source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    // Paths of patches and other files relative to this file are stored as text, so its own path must be UTF-8.
    let Some(file) = path.to_str() else {
        return Err(unreadable(io::Error::other("its name is no UTF-8")));
    };
    let file = file.to_owned();
    let bytes = pagetide_outside::read(path, place, MAX_BYTES).map_err(unreadable)?;
    match String::from_utf8(bytes) {
        Ok(text) => {
            let mut campaign = parse_at(&file, &text, scale, vocabulary)?;
            let own = campaign.scenarios.iter_mut();
            for program in own.filter_map(|scenario| scenario.program.as_mut()) {
                program.files.beside(path.parent().unwrap_or(Path::new("")));
            }
            Ok(campaign)
        }
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..valid];
            Err(FileError::Wrong {
                file,
                line: before.split(|byte| *byte == b'\n').count(),
                problem: Box::new(Problem::NotText),
            })
        }
    }
}

/// Parses the text of a campaign file. `file` is the file's name for messages.
pub fn parse(file: &str, text: &str, vocabulary: &Vocabulary) -> Result<Campaign, FileError> {
    parse_at(file, text, None, vocabulary)
}

fn parse_at(
    file: &str,
    text: &str,
    scale: Option<f64>,
    vocabulary: &Vocabulary,
) -> Result<Campaign, FileError> {
    let source = Source { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        let message = error.message().replace('\n', ", ");
        source.wrong(&error.span().unwrap_or(0..0), Problem::Syntax { message })
    })?;
    let top = Table::new(source, 0..0, root.get_ref(), &TOP)?;
    let name = top.need("name", "name = \"…\"")?;
    let mut campaign_name = name.string("a short name in quotes")?;
    if !is_campaign_name(&campaign_name) {
        return Err(name.value(
            &"use letters, digits, hyphens and underscores, beginning with a letter or digit",
        ));
    }
    let share = Share::read(&top, scale)?;
    if let Some(share) = share.filter(|share| share.is_other_than(&top)) {
        campaign_name = format!("{campaign_name}-scale-{}", share.in_name());
    }
    let described = workload::of_file(source, &top)?;
    let machine = described.as_ref().and_then(|own| own.machine.as_ref());
    let shared = FileDefaults::read(&top, share)?
        .with_limits(&top)?
        .or_machine(machine);
    let variants = variants(&top, described.is_some(), vocabulary)?;
    let programs = match top.get("program") {
        Some(item) => item.tables(&PROGRAM_KEYS)?,
        None => Vec::new(),
    };
    let named = match top.get("scenario") {
        None if !programs.is_empty() || described.is_some() => Vec::new(),
        _ => top
            .need(
                "scenario",
                "a [[scenario]] table with a name, or a [[program]] table with a command",
            )?
            .tables(&SCENARIO)?,
    };
    let named = named
        .iter()
        .map(|table| scenario(table, &shared, vocabulary));
    let programs = programs
        .iter()
        .map(|table| program::program(table, &shared, vocabulary));
    let mut scenarios = named.chain(programs).collect::<Result<Vec<_>, _>>()?;
    if let Some(own) = &described {
        if !scenarios.iter().any(|scenario| scenario.name == WORKLOAD) {
            scenarios.push(shared.of_workload(vocabulary));
        }
        let of_workload = |scenario: &&mut ScenarioSpec| scenario.name == WORKLOAD;
        for scenario in scenarios.iter_mut().filter(of_workload) {
            scenario.describe(&campaign_name, own);
        }
    }
    metrics_above(&top, &scenarios, vocabulary)?;
    let arena = arena(&top, vocabulary)?;
    let passes = [
        seeds_of(
            &top,
            "observe",
            Observe::default_for(variants.len()),
            Observe::FEW,
        )?,
        seeds_of(&top, "profile", Observe::None, Observe::Seeds(1))?,
    ];
    let [observe, profile] = passes;
    let references = match top.get("references") {
        Some(item) => item.truth()?,
        None => false,
    };
    let mut campaign = Campaign {
        name: campaign_name,
        arena,
        seed: match top.get("seed") {
            Some(item) => item.whole(0..=u64::MAX)?,
            None => 1,
        },
        variants,
        scenarios,
        sampling: sampling(&top)?,
        observe,
        profile,
        references: false,
        trace_ring: match top.get("trace-ring") {
            Some(item) => item
                .string("a size in quotes, as \"64K\"")?
                .parse()
                .map_err(|why| item.value(&why))?,
            None => TraceRing::default(),
        },
        accept: accept(&top, vocabulary)?,
    };
    if references {
        campaign.record_references();
    }
    Ok(campaign)
}

/// Reads `accept`: the unrequested differences between variants that the user accepts.
fn accept(top: &Table<'_>, vocabulary: &Vocabulary) -> Result<Vec<String>, FileError> {
    let Some(item) = top.get("accept") else {
        return Ok(Vec::new());
    };
    let word = |item: &Item<'_>| {
        let word = item.string("a kind of difference or the name of a setting")?;
        let is_slip = word.contains(['.', '/']) && vocabulary.setting_meant(&word).is_some();
        if Kind::is_acceptable(&word) && !is_slip {
            return Ok(word);
        }
        Err(item.value(&format!("use {}", Kind::acceptable())))
    };
    item.list().iter().map(word).collect()
}

/// Reads the kind of arena; fails if this version does not have it.
fn arena(top: &Table<'_>, vocabulary: &Vocabulary) -> Result<ArenaKind, FileError> {
    let Some(item) = top.get("arena") else {
        return Ok(ArenaKind::Exact);
    };
    let words =
        [ArenaKind::Exact, ArenaKind::Vm, ArenaKind::Host].map(|kind| (kind.to_string(), kind));
    let words = words.each_ref().map(|(word, kind)| (word.as_str(), *kind));
    let kind = choice(&item, &words)?;
    if vocabulary.arenas.contains(&kind) {
        return Ok(kind);
    }
    let known: Vec<String> = vocabulary.arenas.iter().map(ToString::to_string).collect();
    let known = known.join(", ");
    Err(item.value(&format!(
        "this arena is not in this version yet; use {known}"
    )))
}

/// Fails if `primary` or a margin above all tables names a metric that no scenario of the file has. Checks nothing if
/// the metrics of a scenario are not known.
fn metrics_above(
    top: &Table<'_>,
    scenarios: &[ScenarioSpec],
    vocabulary: &Vocabulary,
) -> Result<(), FileError> {
    let words = || {
        scenarios
            .iter()
            .filter_map(|s| vocabulary.scenario(&s.name))
    };
    if words().any(|words| words.metrics.is_empty()) {
        return Ok(());
    }
    let mut known: Vec<&str> = words()
        .flat_map(|words| words.metrics.iter().map(String::as_str))
        .collect();
    known.sort_unstable();
    known.dedup();
    let check = |item: &Item<'_>, metric: &str| {
        if known.contains(&metric) {
            return Ok(());
        }
        Err(item.wrong(Problem::UnknownMetric {
            name: metric.to_owned(),
            nearest: nearest(metric, known.iter().copied()),
            known: choices(metric, known.iter().copied(), METRICS),
        }))
    };
    if let Some(item) = top.get("primary") {
        for item in item.list() {
            check(&item, &item.text().unwrap_or_default())?;
        }
    }
    if let Some(item) = top.get("margins") {
        for item in item.table(None)?.items() {
            check(&item, &item.key)?;
        }
    }
    Ok(())
}

/// Reads a word and returns the value that belongs to it in `words`.
fn choice<T: Copy>(item: &Item<'_>, words: &[(&str, T)]) -> Result<T, FileError> {
    let text = item.string("a word in quotes")?;
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(item.value(&match nearest(&text, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.join(", ")),
    }))
}

/// Reads the variants. A file that describes its own workload may leave them out; it then has one variant, with the
/// file's kernel or else the default one.
fn variants(
    top: &Table<'_>,
    is_case: bool,
    vocabulary: &Vocabulary,
) -> Result<Vec<VariantSpec>, FileError> {
    let mut variants: Vec<VariantSpec> = Vec::new();
    if is_case && top.get("variant").is_none() {
        let kernel = match top.get("kernel") {
            Some(item) => KernelKeys::kernel(&item)?,
            None => vocabulary.kernel.clone(),
        };
        return Ok(vec![VariantSpec {
            name: kernel
                .rsplit([':', '/'])
                .next()
                .unwrap_or("kernel")
                .to_owned(),
            kernel,
            ..VariantSpec::default()
        }]);
    }
    let tables = top
        .need("variant", "a [[variant]] table with a name")?
        .tables(&VARIANT)?;
    let is_built = ["source", "config"]
        .iter()
        .any(|key| top.get(key).is_some())
        || tables.iter().any(|table| table.get("patch").is_some());
    let above = KernelKeys::read(top)?;
    let kernel = match top.get("kernel") {
        Some(item) => KernelKeys::kernel(&item)?,
        None if is_built => above.built(None),
        None => String::new(),
    };
    for table in tables {
        let item = table.need("name", "name = \"…\"")?;
        let name = item.string("a short name in quotes")?;
        if name.is_empty() || name.contains([':', ',', '\n']) || name.trim() != name {
            return Err(
                item.value(&"a variant's name has no colon, no comma and no space around it")
            );
        }
        if variants.iter().any(|variant| variant.name == name) {
            return Err(item.wrong(Problem::Twice {
                what: "variant",
                name,
            }));
        }
        if variants.len() == MAX_VARIANTS {
            return Err(item.wrong(Problem::TooMany {
                what: "variants".to_owned(),
                most: MAX_VARIANTS,
            }));
        }
        variants.push(VariantSpec {
            name,
            kernel: kernel_of(&table, &above, &kernel)?,
            boot: table.texts("boot", "a boot argument in quotes, or a list of them")?,
            settings: settings(&table, vocabulary)?,
            swap: table.parsed("swap", pagetide_record::swap::FORMS)?,
            swap_size: table.parsed("swap-size", "a size such as \"256M\"")?,
        });
    }
    Ok(variants)
}

fn settings(
    variant: &Table<'_>,
    vocabulary: &Vocabulary,
) -> Result<BTreeMap<String, String>, FileError> {
    let Some(item) = variant.get("settings") else {
        return Ok(BTreeMap::new());
    };
    let mut settings = BTreeMap::new();
    for item in item.table(None)?.items() {
        if let DeValue::Table(_) = item.value {
            // TOML reads `vm.swappiness = 10` as a table `vm` with a key `swappiness`.
            let key = &item.key;
            return Err(item.wrong(Problem::Kind {
                key: key.clone(),
                found: "a table",
                wanted: "names with a dot in quotes, such as \"vm.swappiness\" = 10",
            }));
        }
        let text = item.text().ok_or_else(|| item.kind("text or a number"))?;
        if let Some(near) = vocabulary.setting_meant(&item.key) {
            return Err(item.wrong(Problem::UnknownName {
                what: "setting".to_owned(),
                name: item.key.clone(),
                nearest: Some(near),
                known: String::new(),
            }));
        }
        settings.insert(item.key.clone(), text);
    }
    Ok(settings)
}

fn scenario(
    table: &Table<'_>,
    shared: &FileDefaults,
    vocabulary: &Vocabulary,
) -> Result<ScenarioSpec, FileError> {
    let item = table.need("name", "name = \"…\"")?;
    let name = item.string("the name of a scenario in quotes")?;
    let words = vocabulary.scenario(&name).ok_or_else(|| {
        let known: Vec<&str> = vocabulary.scenarios.keys().map(String::as_str).collect();
        item.wrong(Problem::UnknownName {
            what: "scenario".to_owned(),
            name: name.clone(),
            nearest: nearest(&name, known.iter().copied()),
            known: choices(
                &name,
                known.iter().copied(),
                "`pagetide list scenarios` shows all",
            ),
        })
    })?;
    let own = FileDefaults::read(table, shared.share)?.with_limits(table)?;
    let known_metric = |item: &Item<'_>, metric: &str| {
        if words.metrics.is_empty() || words.metrics.iter().any(|known| known == metric) {
            return Ok(());
        }
        Err(item.wrong(Problem::UnknownMetric {
            name: metric.to_owned(),
            nearest: nearest(metric, words.metrics.iter().map(String::as_str)),
            known: choices(metric, words.metrics.iter().map(String::as_str), METRICS),
        }))
    };
    if let Some(item) = table.get("primary") {
        for item in item.list() {
            known_metric(&item, &item.text().unwrap_or_default())?;
        }
    }
    if let Some(item) = table.get("margins") {
        for item in item.table(None)?.items() {
            known_metric(&item, &item.key)?;
        }
    }
    // A metric given above all scenarios may exist in only some of them. The others keep their own metrics.
    let has = |metric: &String| words.metrics.is_empty() || words.metrics.contains(metric);
    let mut own = own.over(shared);
    if let (true, Some(share)) = (own.memory().is_empty(), own.share) {
        own.memory = vec![MemorySpec::Free(share.of(words.original_memory))];
    }
    Ok(ScenarioSpec {
        as_written: match table.get("as-written") {
            Some(item) => item.truth()?,
            None => false,
        },
        params: params(table, &name, words)?,
        primary: own.primary.clone().or_else(|| shared.primary_of(has)),
        name,
        ..own.spec()
    })
}

fn params(
    scenario: &Table<'_>,
    name: &str,
    words: &ScenarioWords,
) -> Result<BTreeMap<String, Vec<String>>, FileError> {
    let Some(item) = scenario.get("params") else {
        return Ok(BTreeMap::new());
    };
    let mut params = BTreeMap::new();
    for item in item.table(None)?.items() {
        let known = || words.params.iter().map(String::as_str);
        let key = known().find(|known| *known == item.key || *known == item.key.replace('_', "-"));
        let Some(key) = key else {
            return Err(item.wrong(Problem::UnknownName {
                what: format!("parameter of {name}"),
                name: item.key.clone(),
                nearest: nearest(&item.key, known()),
                known: choices(
                    &item.key,
                    known(),
                    &format!(
                        "`pagetide list scenarios {} --long` shows all",
                        plain_name(name)
                    ),
                ),
            }));
        };
        let (mut values, mut seen) = (Vec::new(), BTreeSet::new());
        for item in item.list() {
            let value = item
                .text()
                .ok_or_else(|| item.kind("a value, or a list of values"))?;
            if !seen.insert(without_spaces(&value)) {
                return Err(item.value(&"it is given twice; remove one"));
            }
            values.push(value);
        }
        if values.is_empty() {
            return Err(item.value(&"give at least one value"));
        }
        params.insert(key.to_owned(), values);
    }
    Ok(params)
}

/// Returns a parameter's value without spaces, for comparison: `2 * memory` becomes `2*memory`.
pub fn without_spaces(value: &str) -> String {
    value.chars().filter(|c| !c.is_whitespace()).collect()
}

fn sampling(top: &Table<'_>) -> Result<Sampling, FileError> {
    let mut sampling = Sampling::default();
    let Some(item) = top.get("sampling") else {
        return Ok(sampling);
    };
    let table = item.table(Some(&SAMPLING))?;
    if let Some(item) = table.get("first-seed") {
        sampling.first_seed = item.whole(0..=u64::MAX)?;
    }
    if let Some(item) = table.get("repetitions") {
        sampling.repetitions = item.count(1..=1000)?;
    }
    let seeds = table.get("seeds");
    let Some(item) = table.get("until") else {
        for key in ["cap", "looks"] {
            if let Some(item) = table.get(key) {
                return Err(item.value(&"it belongs to until = \"sure\"; add that, or remove this"));
            }
        }
        if let Some(item) = seeds {
            sampling.until = Until::Blocks(item.count(1..=MAX_BLOCKS)?);
        }
        return Ok(sampling);
    };
    choice(&item, &[("sure", ())])?;
    if let Some(item) = seeds {
        return Err(item.wrong(Problem::Conflict {
            key: "seeds",
            other: "until",
        }));
    }
    let cap = match table.get("cap") {
        Some(item) => item.count(2..=MAX_BLOCKS)?,
        None => DEFAULT_CAP,
    };
    let looks = match table.get("looks") {
        None => Vec::new(),
        Some(item) => match item.value {
            DeValue::Array(_) => looks(&item, cap)?,
            _ => even_looks(cap, item.count(1..=100)?),
        },
    };
    sampling.until = Until::Sure { cap, looks };
    Ok(sampling)
}

/// Reads a list of numbers of blocks, which must be ascending and at most `cap`. Adds `cap` at the end if it is
/// missing.
fn looks(item: &Item<'_>, cap: u32) -> Result<Vec<u32>, FileError> {
    let mut looks: Vec<u32> = Vec::new();
    for item in item.list() {
        let look = item.count(1..=MAX_BLOCKS)?;
        if looks.last().is_some_and(|last| *last >= look) {
            return Err(item.value(&"looks ascend; write them in order"));
        }
        if look > cap {
            return Err(item.value(&format!("it lies beyond cap = {cap}; raise the cap")));
        }
        looks.push(look);
    }
    if looks.last() != Some(&cap) {
        looks.push(cap);
    }
    Ok(looks)
}

/// Reads a key that selects trials by their seeds. Returns `without` if the key is missing, and `few` if its value is
/// `true`.
fn seeds_of(
    top: &Table<'_>,
    key: &str,
    without: Observe,
    few: Observe,
) -> Result<Observe, FileError> {
    let Some(item) = top.get(key) else {
        return Ok(without);
    };
    match item.value {
        DeValue::Boolean(true) => Ok(few),
        DeValue::Boolean(false) => Ok(Observe::None),
        DeValue::Integer(_) => Ok(Observe::Seeds(item.count(1..=u32::MAX)?)),
        _ => choice(&item, &Observe::WORDS),
    }
}
