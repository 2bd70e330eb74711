//! Description of a memory cgroup: limits, protections, and requests to reclaim, as values and as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pagetide_quantity::{Bytes, Nanos, hint};

use crate::expr::{self, Names};
use crate::number;

/// Maximum number of characters in the name of a group.
const NAME_CHARS: usize = 32;

/// A limit or a protection of a memory cgroup. Each is one file of the cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    /// Maximum memory usage (`memory.max`). At this usage the group's own tasks reclaim, or one of them is killed.
    Max,
    /// Memory usage above which the group is throttled and reclaimed (`memory.high`).
    High,
    /// Amount of memory that is reclaimed only if no group has unprotected memory left (`memory.low`).
    Low,
    /// Amount of memory that is never reclaimed (`memory.min`).
    Min,
    /// Maximum swap usage (`memory.swap.max`).
    SwapMax,
    /// Maximum size of compressed memory in zswap (`memory.zswap.max`).
    ZswapMax,
}

impl Limit {
    /// All limits, in the order in which they are written.
    pub(crate) const ALL: [Self; 6] = [
        Self::Max,
        Self::High,
        Self::Low,
        Self::Min,
        Self::SwapMax,
        Self::ZswapMax,
    ];

    /// Returns the name of the limit in descriptions: the name of its file without `memory.`.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::High => "high",
            Self::Low => "low",
            Self::Min => "min",
            Self::SwapMax => "swap.max",
            Self::ZswapMax => "zswap.max",
        }
    }

    /// Returns the name of the group's file.
    pub(crate) fn file(self) -> String {
        format!("memory.{}", self.key())
    }
}

/// A request to reclaim memory from a group at a stated time, made by writing to its `memory.reclaim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReclaimRequest {
    /// Time from the start of the workload.
    pub at: Nanos,
    /// Amount of memory to request.
    pub size: Bytes,
}

/// Description of one memory group.
///
/// As text it is a name, followed by `KEY=VALUE` words: `apps max=24M low=8M swap.max=4M reclaim=2M@1s,2M@1500ms`. A
/// key may also be written as the kernel names the file (`memory.max=24M`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupSpec {
    /// Name of the group: small letters, digits and hyphens.
    pub name: String,
    /// Limits and protections that are set. Those that are not set keep the kernel's default: no limit and no
    /// protection.
    pub limits: BTreeMap<Limit, Bytes>,
    /// Requests to reclaim, in the order of the text.
    pub requests: Vec<ReclaimRequest>,
    /// True if other groups are inside this one. The memory of this group then includes theirs.
    pub is_around: bool,
}

impl GroupSpec {
    /// Creates the description of a group without limits.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            limits: BTreeMap::new(),
            requests: Vec::new(),
            is_around: false,
        }
    }

    /// Returns the description with this limit; unchanged if `size` is `None`.
    #[must_use]
    pub(crate) fn with(mut self, limit: Limit, size: impl Into<Option<Bytes>>) -> Self {
        if let Some(size) = size.into() {
            self.limits.insert(limit, size);
        }
        self
    }

    /// Parses a description. Sizes and times are expressions without spaces, over `names`: `low=0.5*memory`. The error
    /// says what is wrong with the text, as the rest of a sentence.
    pub(crate) fn read(text: &str, names: &Names) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words
            .next()
            .ok_or("a group has no description: give at least a name, as in `apps max=24M`")?;
        let mut group = Self::new(name);
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| {
                format!("`{word}` of group {name} is not of the form KEY=VALUE, as in `max=24M`")
            })?;
            group.set(key, value, names)?;
        }
        Ok(group)
    }

    /// Parses several descriptions, separated by semicolons. The error says what is wrong with the text.
    #[cfg_attr(not(test), allow(dead_code, reason = "for texts with several groups"))]
    pub(crate) fn read_all(text: &str, names: &Names) -> Result<Vec<Self>, String> {
        let parts = text.split(';').filter(|part| !part.trim().is_empty());
        parts.map(|part| Self::read(part, names)).collect()
    }

    /// Sets one key of a description to a value, both as text. The error says what is wrong, as the end of a sentence.
    pub(crate) fn set(&mut self, key: &str, value: &str, names: &Names) -> Result<(), String> {
        let plain = key.strip_prefix("memory.").unwrap_or(key);
        let wrong = |why: String| format!("{key} of group {} is `{value}`: {why}", self.name);
        if plain == "reclaim" {
            for request in value.split(',') {
                let (size, at) = request.split_once('@').ok_or_else(|| {
                    wrong("give an amount and a moment, as in `reclaim=4M@2s`".to_owned())
                })?;
                let (size, at) = (size_of(size, names), time_of(at, names));
                let (size, at) = (size.map_err(wrong)?, at.map_err(wrong)?);
                self.requests.push(ReclaimRequest { at, size });
            }
            return Ok(());
        }
        let limit = Limit::ALL.into_iter().find(|limit| limit.key() == plain);
        let limit = limit.ok_or_else(|| {
            let known = Limit::ALL.map(Limit::key).into_iter().chain(["reclaim"]);
            let all = "a group has max, high, low, min, swap.max, zswap.max and reclaim";
            format!(
                "a group has no `{key}` (group {}): {}",
                self.name,
                hint(plain, known, all)
            )
        })?;
        if value == "max" {
            self.limits.remove(&limit);
            return Ok(());
        }
        let size = size_of(value, names).map_err(wrong)?;
        self.limits.insert(limit, size);
        Ok(())
    }

    /// Returns the amount of a limit; `None` if the limit is not set.
    pub(crate) fn limit(&self, limit: Limit) -> Option<Bytes> {
        self.limits.get(&limit).copied()
    }

    /// Returns the amount of memory that is protected from reclaim: the larger of `low` and `min`.
    pub(crate) fn protected(&self) -> Bytes {
        let size = |limit| self.limit(limit).unwrap_or(Bytes(0));
        size(Limit::Low).max(size(Limit::Min))
    }

    /// Returns what is wrong with this group on its own; `None` if nothing is wrong.
    fn fault(&self, memory: Bytes) -> Option<String> {
        let name = &self.name;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > NAME_CHARS || !name.chars().all(is_plain) {
            return Some(format!(
                "`{name}` cannot name a group: use at most {NAME_CHARS} small letters, digits and hyphens"
            ));
        }
        for limit in [Limit::Max, Limit::High] {
            if let Some(size) = self.limit(limit)
                && size > memory
            {
                let key = limit.key();
                return Some(format!(
                    "a {key} of {size} for group {name} never acts in {memory} of memory: lower it, or raise --memory"
                ));
            }
        }
        if let Some(max) = self.limit(Limit::Max) {
            for limit in [Limit::High, Limit::Low, Limit::Min] {
                if let Some(size) = self.limit(limit)
                    && size > max
                {
                    let key = limit.key();
                    return Some(format!(
                        "group {name} has a {key} of {size} above its max of {max}: lower {key}, or raise max"
                    ));
                }
            }
            if max.0 == 0 {
                return Some(format!(
                    "group {name} has a max of 0, in which nothing runs: raise it"
                ));
            }
        }
        let mut sizes = self.requests.iter().map(|request| request.size);
        sizes
            .find(|size| size.0 == 0 || *size > memory)
            .map(|size| {
                format!(
                    "group {name} is to give back {size} of {memory} of memory at once: ask for more than 0 and at most the memory"
                )
            })
    }
}

/// Formats the description as text that [`GroupSpec::read`] can parse.
impl fmt::Display for GroupSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (limit, size) in &self.limits {
            write!(f, " {}={}", limit.key(), size.0)?;
        }
        for (index, request) in self.requests.iter().enumerate() {
            let before = if index == 0 { " reclaim=" } else { "," };
            write!(f, "{before}{}@{}ns", request.size.0, request.at.0)?;
        }
        Ok(())
    }
}

fn size_of(text: &str, names: &Names) -> Result<Bytes, String> {
    let quantity = expr::evaluate(text, names)?;
    // A size may be given as a plain number of bytes.
    match (quantity.bytes, quantity.nanos) {
        (0 | 1, 0) if quantity.value >= 0.0 => Ok(Bytes(number::floor(quantity.value))),
        _ => Err("give a size, such as 24M".to_owned()),
    }
}

fn time_of(text: &str, names: &Names) -> Result<Nanos, String> {
    let quantity = expr::evaluate(text, names)?;
    match (quantity.bytes, quantity.nanos) {
        (0, 1) if quantity.value >= 0.0 => Ok(Nanos(number::floor(quantity.value))),
        _ => Err("give a time, such as 2s".to_owned()),
    }
}

/// Returns a parameter as an optional limit: `None` if it is 0.
pub(crate) fn optional(size: Bytes) -> Option<Bytes> {
    Some(size).filter(|size| size.0 > 0)
}

/// Fails if sibling groups contradict each other or do not fit into this memory. The error is a sentence.
pub(crate) fn check(groups: &[GroupSpec], memory: Bytes) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for group in groups {
        if let Some(fault) = group.fault(memory) {
            return Err(fault);
        }
        if !names.insert(group.name.as_str()) {
            return Err(format!(
                "two groups are named {}: give each a name of its own",
                group.name
            ));
        }
    }
    let alone = groups.iter().filter(|group| !group.is_around);
    let protected = Bytes(alone.map(|group| group.protected().0).sum());
    if protected > memory {
        return Err(format!(
            "the groups protect {protected} by low and min, which is more than the {memory} of memory: lower them, or raise \
             --memory"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::expr::Quantity;

    use super::*;

    const MEMORY: Bytes = Bytes::from_mib(64);

    fn names() -> Names {
        [("memory".to_owned(), Quantity::bytes(MEMORY.0 as f64))].into()
    }

    #[test]
    fn a_group_is_read_with_its_limits_and_requests_and_written_so_that_it_reads_the_same() {
        let text =
            "apps max=24M memory.low=0.25*memory swap.max=4M zswap.max=max reclaim=2M@1s,1M@1500ms";
        let group = GroupSpec::read(text, &names()).unwrap();
        assert_eq!(group.name, "apps");
        assert_eq!(group.limit(Limit::Max), Some(Bytes::from_mib(24)));
        assert_eq!(group.limit(Limit::Low), Some(Bytes::from_mib(16)));
        assert_eq!(group.limit(Limit::SwapMax), Some(Bytes::from_mib(4)));
        assert_eq!(group.limit(Limit::ZswapMax), None, "max means no limit");
        assert_eq!(group.protected(), Bytes::from_mib(16));
        let at: Vec<_> = group
            .requests
            .iter()
            .map(|one| (one.at, one.size))
            .collect();
        assert_eq!(
            at,
            [
                (Nanos::from_secs(1), Bytes::from_mib(2)),
                (Nanos::from_millis(1500), Bytes::from_mib(1))
            ]
        );
        let again = GroupSpec::read(&group.to_string(), &Names::new()).unwrap();
        assert_eq!(again, group);
        let two = GroupSpec::read_all("a max=8M; b;", &names()).unwrap();
        assert_eq!(two.len(), 2);
        assert_eq!(two[1], GroupSpec::new("b"));
    }

    #[test]
    fn text_that_is_no_group_is_refused_with_what_to_give_instead() {
        for (text, words) in [
            ("", &["give at least a name", "apps max=24M"][..]),
            ("apps 24M", &["`24M` of group apps", "max=24M"]),
            (
                "apps hihg=3M",
                &["no `hihg`", "group apps", "did you mean \"high\"?"],
            ),
            (
                "apps max=3s",
                &["max of group apps is `3s`", "size, such as"],
            ),
            ("apps reclaim=4M", &["amount and a moment", "reclaim=4M@2s"]),
            ("apps reclaim=4M@2", &["time, such as 2s"]),
        ] {
            let why = GroupSpec::read(text, &names()).unwrap_err();
            assert!(words.iter().all(|word| why.contains(word)), "{text}: {why}");
        }
    }

    #[test]
    fn groups_that_contradict_themselves_or_exceed_the_memory_are_refused_in_one_sentence() {
        for (text, words) in [
            (
                "a max=8M low=9M",
                &["low of 9 MiB above its max of 8 MiB"][..],
            ),
            ("a max=8M min=9M", &["min of 9 MiB above its max of 8 MiB"]),
            ("a max=8M high=9M", &["high of 9 MiB above its max"]),
            ("a max=65M", &["never acts in 64 MiB of memory", "--memory"]),
            ("a high=65M", &["a high of 65 MiB", "never acts"]),
            ("a max=0", &["nothing runs"]),
            ("a low=40M; b min=30M", &["protect 70 MiB", "64 MiB"]),
            ("a; a", &["two groups are named a"]),
            ("A", &["`A` cannot name a group"]),
            ("a reclaim=65M@1s", &["give back 65 MiB of 64 MiB"]),
        ] {
            let groups = GroupSpec::read_all(text, &names()).unwrap();
            let why = check(&groups, MEMORY).unwrap_err();
            assert!(words.iter().all(|word| why.contains(word)), "{text}: {why}");
            assert_eq!(why.lines().count(), 1, "{why}");
        }
        let whole = GroupSpec::read_all("a max=64M low=30M high=60M; b min=34M", &names());
        assert_eq!(check(&whole.unwrap(), MEMORY), Ok(()));
    }
}
