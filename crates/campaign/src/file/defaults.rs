//! Keys of a campaign file that are allowed both above all tables and in a scenario.

use std::collections::BTreeMap;
use std::str::FromStr;

use pagetide_quantity::Bytes;
use pagetide_record::{CpusSpec, FileSystem, FilesOn, FilesSpec, MemorySpec, NodesSpec, SwapSpec};
use toml::de::DeValue;

use crate::campaign::ScenarioSpec;
use crate::plan::MAX_MACHINES;

use super::error::{FileError, Problem};
use super::scaled::Share;
use super::table::{Item, Table};

/// Values of the keys that are allowed both above all tables and in a scenario. Values above all tables are the
/// defaults for every scenario.
pub(super) struct FileDefaults {
    /// Factor by which the sizes of the original experiment are scaled; `None` if the file states no such sizes.
    pub(super) share: Option<Share>,
    pub(super) memory: Vec<MemorySpec>,
    pub(super) nodes: Option<NodesSpec>,
    /// Memory limits (`memory.max`) of the cgroup around the whole workload; empty until [`Self::with_limits`] reads
    /// them. In the table of a program, the key `limit` has another meaning.
    pub(super) limit: Vec<Bytes>,
    pub(super) swap: Vec<SwapSpec>,
    pub(super) swap_size: Option<Bytes>,
    pub(super) files_on: Option<FilesOn>,
    pub(super) fs: Option<FileSystem>,
    pub(super) cpus: Vec<CpusSpec>,
    pub(super) primary: Option<Vec<String>>,
    pub(super) margins: BTreeMap<String, f64>,
}

impl FileDefaults {
    /// Reads the keys that are allowed both above all tables and in a scenario.
    pub(super) fn read(table: &Table<'_>, share: Option<Share>) -> Result<Self, FileError> {
        let mut memory: Vec<MemorySpec> =
            parsed(table, "memory", "a size such as \"64M\" or \"total:160M\"")?;
        let mut swap_size: Option<Bytes> = table.parsed("swap-size", "a size such as \"256M\"")?;
        if let Some(share) = share {
            memory = memory
                .into_iter()
                .map(|size| share.of_memory(size))
                .collect();
            swap_size = swap_size.map(|size| share.of(size));
        }
        Ok(Self {
            share,
            memory,
            nodes: table.parsed("nodes", pagetide_record::nodes::NODE_FORMS)?,
            limit: Vec::new(),
            swap: parsed(table, "swap", pagetide_record::swap::FORMS)?,
            swap_size,
            files_on: table.parsed(
                "files-on",
                "\"ssd\", \"null\", \"disk\" or \"disk:SEEK,RATE\"",
            )?,
            fs: table.parsed("fs", "\"ext4\", \"xfs\", \"btrfs\" or \"tmpfs\"")?,
            cpus: {
                let wanted = pagetide_record::cpus::FORMS;
                let number = |item: &Item<'_>| item.text().ok_or_else(|| item.kind(wanted));
                parsed_by(table, "cpus", wanted, number)?
            },
            primary: match table.get("primary") {
                None => None,
                Some(item) => {
                    let names: Vec<String> = item
                        .list()
                        .iter()
                        .map(|name| name.string("the name of a metric, or a list of names"))
                        .collect::<Result<_, _>>()?;
                    if names.is_empty() {
                        return Err(item.value(&"give at least one metric, or leave it out"));
                    }
                    Some(names)
                }
            },
            margins: match table.get("margins") {
                None => BTreeMap::new(),
                Some(item) => item
                    .table(None)?
                    .items()
                    .map(|item| Ok((item.key.clone(), margin(&item)?)))
                    .collect::<Result<_, FileError>>()?,
            },
        })
    }

    /// Reads the memory limits of the cgroup around the whole workload. Not to be called for the table of a program, in
    /// which the key `limit` is an attribute of the program instead.
    pub(super) fn with_limits(self, table: &Table<'_>) -> Result<Self, FileError> {
        let limit: Vec<Bytes> = parsed(table, "limit", "a size such as \"32M\"")?;
        let scaled = |size| self.share.map_or(size, |share| share.of(size));
        Ok(Self {
            limit: limit.into_iter().map(scaled).collect(),
            ..self
        })
    }

    /// Returns the file system and disk for files.
    pub(super) fn files(&self) -> FilesSpec {
        FilesSpec::default().with(self.fs, self.files_on)
    }

    /// Sets keys that are missing in `self` to the values in `above`. `primary` is not set, because scenarios do not
    /// share a primary metric.
    pub(super) fn over(self, above: &Self) -> Self {
        let mut margins = above.margins.clone();
        margins.extend(self.margins);
        Self {
            share: self.share,
            memory: if self.memory.is_empty() {
                above.memory.clone()
            } else {
                self.memory
            },
            nodes: self.nodes.or_else(|| above.nodes.clone()),
            limit: if self.limit.is_empty() {
                above.limit.clone()
            } else {
                self.limit
            },
            swap: if self.swap.is_empty() {
                above.swap.clone()
            } else {
                self.swap
            },
            swap_size: self.swap_size.or(above.swap_size),
            files_on: self.files_on.or(above.files_on),
            fs: self.fs.or(above.fs),
            cpus: if self.cpus.is_empty() {
                above.cpus.clone()
            } else {
                self.cpus
            },
            primary: self.primary,
            margins,
        }
    }

    /// Returns the memory sizes. If none are given but NUMA nodes are, the sum of the nodes' memory.
    pub(super) fn memory(&self) -> Vec<MemorySpec> {
        match self.nodes.as_ref().and_then(NodesSpec::sum) {
            Some(sum) if self.memory.is_empty() => vec![MemorySpec::Free(sum)],
            _ => self.memory.clone(),
        }
    }

    /// Returns a scenario on the machine that these keys describe, with their margins. It has no name, no parameters
    /// and no primary metrics.
    pub(super) fn spec(&self) -> ScenarioSpec {
        ScenarioSpec {
            memory: self.memory(),
            nodes: self.nodes.clone().unwrap_or_default(),
            limit: self.limit.clone(),
            swap: self.swap.clone(),
            swap_size: self.swap_size,
            files_on: self.files(),
            cpus: self.cpus.clone(),
            margins: self.margins.clone(),
            ..ScenarioSpec::default()
        }
    }

    /// Returns the primary metrics of these keys for which `has` returns true; `None` if there are none.
    pub(super) fn primary_of(&self, has: impl Fn(&String) -> bool) -> Option<Vec<String>> {
        let names = self.primary.iter().flatten().filter(|name| has(name));
        let names: Vec<String> = names.cloned().collect();
        (!names.is_empty()).then_some(names)
    }
}

/// Reads a value, or a list of values, by parsing text in quotes. Empty if the key is missing; fails for an empty list,
/// a list of more than [`MAX_VALUES`] values, or a value given twice.
pub(super) fn parsed<T: FromStr + PartialEq>(
    table: &Table<'_>,
    key: &str,
    wanted: &'static str,
) -> Result<Vec<T>, FileError>
where
    T::Err: ToString,
{
    parsed_by(table, key, wanted, |item| item.string(wanted))
}

/// Reads a value, or a list of values, by parsing the text that `text` returns for each.
fn parsed_by<T: FromStr + PartialEq>(
    table: &Table<'_>,
    key: &str,
    wanted: &'static str,
    text: impl Fn(&Item<'_>) -> Result<String, FileError>,
) -> Result<Vec<T>, FileError>
where
    T::Err: ToString,
{
    let Some(item) = table.get(key) else {
        return Ok(Vec::new());
    };
    let mut values = Vec::new();
    for item in item.list() {
        let value = text(&item)?
            .parse()
            .map_err(|why: T::Err| item.value(&why.to_string()))?;
        if values.contains(&value) {
            return Err(item.value(&"it is given twice; remove one"));
        }
        values.push(value);
        within(&item, values.len())?;
    }
    if values.is_empty() {
        return Err(item.value(&format!("give {wanted}")));
    }
    Ok(values)
}

/// Reads an equivalence margin as a share of the baseline: `0.02` or `"2%"`. Fails unless it is above 0 and below 10.
pub(super) fn margin(item: &Item<'_>) -> Result<f64, FileError> {
    let wanted = "a share such as 0.02 or \"2%\"";
    let text = match item.value {
        DeValue::Float(_) | DeValue::Integer(_) | DeValue::String(_) => item.text(),
        _ => None,
    };
    let text = text.ok_or_else(|| item.kind(wanted))?;
    share(&text)
        .filter(|share| *share > 0.0 && *share < 10.0)
        .ok_or_else(|| item.value(&format!("give {wanted}, above 0 and below 10")))
}

/// Fails if a list has more than [`MAX_VALUES`] values.
pub(super) fn within(item: &Item<'_>, count: usize) -> Result<(), FileError> {
    if count <= MAX_VALUES {
        return Ok(());
    }
    Err(item.wrong(Problem::TooMany {
        what: format!("values of `{}`", item.key),
        most: MAX_VALUES,
    }))
}

/// Parses a share, `2%` or `0.02`; `None` if it is not a finite number.
pub(crate) fn share(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some(number / scale)
}

/// Maximum number of values in a list, such as memory sizes, limits, kinds of swap or numbers of CPUs.
pub(super) const MAX_VALUES: usize = MAX_MACHINES;
