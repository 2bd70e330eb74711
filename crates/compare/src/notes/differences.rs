//! Differences between two sides other than the intended one, and the consequences of these differences for the
//! verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pagetide_quantity::Bytes;
use pagetide_record::{MemorySpec, Record};
use serde::Serialize;

use super::{Intent, inert, is_exact};
use crate::input::Input;

/// Two sizes of swap count as equal if they differ by at most this share of the larger one. Two such amounts of free
/// memory at the start do not put a verdict in doubt. Kernels round their reserves differently, and pagetide fills
/// memory only to within a few pages.
const ALIKE_SHARE: f64 = 0.01;

/// One difference between two sides that was not intended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherDifference {
    /// Name of what differs, such as `thp/enabled`.
    pub what: String,
    /// Kind of the difference. The user accepts all differences of a kind with one word, such as `huge-pages`. `None`
    /// if the difference needs no acceptance.
    pub kind: Option<Kind>,
    /// Value in the baseline.
    pub a: String,
    /// Value in the other column.
    pub b: String,
    /// Consequence of the difference for the verdict.
    pub standing: Comparability,
}

impl fmt::Display for OtherDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} against {}", self.what, self.a, self.b)
    }
}

/// Consequence of an unintended difference for the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparability {
    /// The difference may have changed the result. There is no verdict until the difference is removed, intended or
    /// accepted.
    Confounds,
    /// The user accepts the difference.
    Accepted,
    /// The difference is a consequence of the intended one.
    Follows,
    /// The difference cannot have an effect on this workload.
    Inert,
    /// The difference has no [`Kind`], because the kernel itself chose the value or the difference is small, or it is a
    /// difference in free memory between kernels on a machine of given total memory. It is only reported.
    Minor,
}

/// Kind of a difference that can change a result with any kernel. A user accepts all differences of a kind with one
/// word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Settings of transparent huge pages (`thp/*`), except those of khugepaged.
    HugePages,
    /// Device, size and compressor of swap, including zswap.
    Swap,
    /// Free memory at the start.
    Memory,
    /// Settings of dirty memory (`vm.dirty*`), such as the amount above which writers are throttled.
    DirtyLimits,
    /// Boot arguments, or a setting of no other kind, that differ between the variants although the user compares
    /// kernels only.
    Given,
}

impl Kind {
    /// Each kind with the word that the command line accepts for it.
    pub const WORDS: [(&str, Self); 5] = [
        ("huge-pages", Self::HugePages),
        ("swap", Self::Swap),
        ("memory", Self::Memory),
        ("dirty-limits", Self::DirtyLimits),
        ("given", Self::Given),
    ];

    /// True if a user can accept the word: it is a kind of difference or `compressor`, or has the form of a setting's
    /// name.
    pub fn is_acceptable(word: &str) -> bool {
        let is_kind = Self::WORDS.iter().any(|(known, _)| *known == word);
        is_kind || word == "compressor" || word.contains(['.', '/'])
    }

    /// Returns the list of words that can be accepted, as a part of messages.
    pub fn acceptable() -> String {
        let words = Self::WORDS.map(|(word, _)| word).join(", ");
        format!("one of {words}, or the name of a setting")
    }

    /// Returns the word if it can be accepted. Otherwise fails with a text that lists the acceptable words.
    pub fn accept(word: &str) -> Result<String, String> {
        if Self::is_acceptable(word) {
            return Ok(word.to_owned());
        }
        Err(format!("give {}", Self::acceptable()))
    }

    /// Returns the word for this kind, as on the command line.
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(word, _)| word)
    }

    fn of_setting(name: &str) -> Option<Self> {
        if name.starts_with("thp/") && !name.contains("khugepaged") {
            Some(Self::HugePages)
        } else if name.starts_with("zswap/") || name == "compressor" {
            Some(Self::Swap)
        } else if name.starts_with("vm.dirty") {
            Some(Self::DirtyLimits)
        } else {
            None
        }
    }
}

/// Unintended differences between two records, and names of values that the records do not contain.
pub(super) struct Contrast {
    pub also: Vec<OtherDifference>,
    pub unknown: Vec<&'static str>,
}

/// Returns the unintended differences between two records in settings, boot arguments, clock source, memory, swap,
/// zones and build options.
pub(super) fn contrast(pair: &[Record; 2], input: &Input) -> Contrast {
    let mut look = SideReader::new(pair, input);
    look.variants();
    look.settings();
    look.facts();
    look.swaps();
    look.zones();
    look.built();
    Contrast {
        also: look.also,
        unknown: unknown(pair),
    }
}

struct SideReader<'a> {
    pair: &'a [Record; 2],
    input: &'a Input,
    /// Names of settings and boot arguments that are intended to differ.
    asked: BTreeSet<String>,
    same_kernel: bool,
    /// True if the user intended the sides to differ in swap. Variants of one cell have different swap only in this
    /// case.
    is_swap_asked: bool,
    also: Vec<OtherDifference>,
}

impl<'a> SideReader<'a> {
    fn new(pair: &'a [Record; 2], input: &'a Input) -> Self {
        let variants = [&pair[0].subject.variant, &pair[1].subject.variant];
        let mut asked = BTreeSet::new();
        if input.asked == Intent::Variant {
            let names = variants.iter().flat_map(|v| v.settings.keys());
            asked.extend(
                names
                    .filter(|name| {
                        variants[0].settings.get(*name) != variants[1].settings.get(*name)
                    })
                    .cloned(),
            );
            let boot: [BTreeSet<&String>; 2] = variants.map(|v| v.boot.iter().collect());
            asked.extend(
                boot[0]
                    .symmetric_difference(&boot[1])
                    .map(|one| (*one).clone()),
            );
        }
        let swap = |record: &Record| (record.subject.swap, record.subject.swap_size);
        let is_one_cell = input.asked == Intent::Variant && !input.anyway;
        Self {
            is_swap_asked: is_one_cell && swap(&pair[0]) != swap(&pair[1]),
            pair,
            input,
            asked,
            same_kernel: variants[0].kernel.digest == variants[1].kernel.digest,
            also: Vec::new(),
        }
    }

    fn add(&mut self, what: &str, kind: Option<Kind>, [a, b]: [String; 2]) {
        let standing = self.standing(what, kind);
        self.also.push(OtherDifference {
            what: what.to_owned(),
            kind,
            a,
            b,
            standing,
        });
    }

    fn standing(&self, what: &str, kind: Option<Kind>) -> Comparability {
        let Some(kind) = kind else {
            return Comparability::Minor;
        };
        let accepts = |word: &String| word == what || word == kind.word();
        if self.input.accepted.iter().any(accepts) {
            return Comparability::Accepted;
        }
        let asked = |parts: &[&str]| {
            let mut names = self.asked.iter();
            names.any(|name| parts.iter().any(|part| name.contains(part)))
        };
        let follows = match kind {
            Kind::HugePages => asked(&["thp/", "hugepage"]),
            // `--anyway` permits differences in the parameters that define a cell, such as swap.
            Kind::Swap => self.input.anyway || asked(&["zswap", "swap/"]),
            Kind::DirtyLimits => asked(&["vm.dirty"]),
            // If the kernels are the same, less free memory can only be a consequence of the intended difference.
            Kind::Memory => self.input.anyway || (self.same_kernel && !self.asked.is_empty()),
            Kind::Given => false,
        };
        let whole_machine = matches!(self.pair[0].subject.memory, MemorySpec::Total(_));
        if follows {
            Comparability::Follows
        } else if kind == Kind::Memory && whole_machine {
            // All kernels run on the same machine, and the memory that each kernel needs for itself is a part of the
            // comparison.
            Comparability::Minor
        } else if inert::kind_cannot_act(kind, self.pair) {
            Comparability::Inert
        } else {
            Comparability::Confounds
        }
    }

    /// Adds differences of settings and boot arguments between the variants, if only kernels are compared.
    fn variants(&mut self) {
        if self.input.asked != Intent::Kernel {
            return;
        }
        let variants = self.pair.each_ref().map(|record| &record.subject.variant);
        let boot = variants.map(|variant| variant.boot.join(" "));
        if boot[0] != boot[1] {
            let shown = boot.map(|boot| shown(Some(&boot)));
            self.add("boot arguments", Some(Kind::Given), shown);
        }
        for name in names(variants.map(|variant| &variant.settings)) {
            let values = variants.map(|variant| variant.settings.get(&name));
            if values[0] != values[1] {
                let kind = Kind::of_setting(&name).unwrap_or(Kind::Given);
                self.add(&name, Some(kind), values.map(shown));
            }
        }
    }

    /// Adds differences between settings, as read back from the kernel.
    fn settings(&mut self) {
        let settings = self.pair.each_ref().map(|record| &record.results.settings);
        let off = |settings: &BTreeMap<String, String>| {
            let zswap = settings.get("zswap/enabled");
            zswap.is_none_or(|state| state.trim() == "N")
        };
        let zswap_is_off = settings.iter().all(|settings| off(settings));
        for name in names(settings) {
            let known = self.also.iter().any(|also| also.what == name);
            let is_zswap = name.starts_with("zswap/");
            if self.asked.contains(&name) || known || (is_zswap && zswap_is_off) {
                continue;
            }
            // The kind of swap decides whether zswap is enabled, so the difference is intended.
            if self.is_swap_asked && is_zswap {
                continue;
            }
            let values = settings.map(|settings| settings.get(&name).map(|text| chosen(text)));
            if values[0] != values[1] {
                let kind = Kind::of_setting(&name);
                self.add(&name, kind, values.map(|value| shown(value.as_ref())));
            }
        }
    }

    /// Adds differences of clock source, compressor, free and managed memory, and the arena's own boot arguments.
    fn facts(&mut self) {
        let facts = self.pair.each_ref().map(|record| &record.results.facts);
        let value = |name: &str| facts.map(|facts| facts.get(name).cloned());
        for name in ["clocksource", "compressor"] {
            let values = value(name);
            let is_asked = self.is_swap_asked && name == "compressor";
            if values[0] != values[1] && !is_asked {
                let kind = Kind::of_setting(name);
                self.add(name, kind, values.map(|value| shown(value.as_ref())));
            }
        }
        for (name, what, kind) in [
            (
                "free-at-start",
                "memory free at the start",
                Some(Kind::Memory),
            ),
            ("managed", "memory that the kernel manages", None),
        ] {
            if let [Some(a), Some(b)] = value(name)
                && a != b
                && let (Ok(x), Ok(y)) = (a.parse::<u64>(), b.parse::<u64>())
            {
                let kind = kind.filter(|_| !alike(x, y));
                let sizes = [x, y].map(|size| Bytes(size).to_string());
                // Sizes are compared as printed: if they differ only beyond the printed digits, the message would be
                // useless.
                if sizes[0] != sizes[1] {
                    self.add(what, kind, sizes);
                }
            }
        }
        let own = self.pair.each_ref().map(|record| {
            let mut words: Vec<&str> = record.subject.arena.cmdline.split_whitespace().collect();
            words.retain(|word| !record.subject.variant.boot.iter().any(|own| own == word));
            words.join(" ")
        });
        if own[0] != own[1] {
            self.add("boot arguments of the arena", None, own);
        }
    }

    /// Adds differences in kind and size of swap, from `/proc/swaps`.
    fn swaps(&mut self) {
        let texts = self
            .pair
            .each_ref()
            .map(|record| record.results.texts.get("swaps-before"));
        let [Some(a), Some(b)] = texts.map(|text| text.map(|text| swap(text))) else {
            return;
        };
        let same = a.0 == b.0 && (alike(a.1, b.1) || a.1 == b.1);
        if !same && !self.is_swap_asked {
            let show = |(device, size): (String, u64)| match size {
                0 => "none".to_owned(),
                _ => format!("{device} of {}", Bytes::from_kib(size)),
            };
            self.add("swap", Some(Kind::Swap), [show(a), show(b)]);
        }
    }

    /// Adds differences in the zones' watermarks and sizes, in pages.
    fn zones(&mut self) {
        let texts = self
            .pair
            .each_ref()
            .map(|record| record.results.texts.get("zoneinfo-before"));
        let [Some(a), Some(b)] = texts else { return };
        for (what, names) in [
            (
                "watermarks (min, low, high, in pages)",
                &["min", "low", "high"][..],
            ),
            ("pages in zones", &["managed"][..]),
        ] {
            let values = [a, b].map(|text| zones(text, names));
            if values[0] != values[1] {
                self.add(what, None, values);
            }
        }
    }

    /// Adds differences between the kernels' build options for memory management. They follow from the choice of
    /// kernels, so they never put the result in doubt.
    fn built(&mut self) {
        let configs = self.pair.each_ref().map(|record| &record.kernel_config);
        if configs.iter().any(|config| config.is_empty()) {
            return;
        }
        for name in names(configs) {
            let values = configs.map(|config| config.get(&name));
            if values[0] != values[1] {
                let shown = values.map(|value| value.map_or("n", String::as_str).to_owned());
                self.add(&format!("{OPTION}{name}"), None, shown);
            }
        }
    }
}

/// Prefix of the names of kernel build options.
pub const OPTION: &str = "CONFIG_";

/// Returns the names of values that at least one of the records does not contain, so that a difference in them would
/// not be detected.
fn unknown(pair: &[Record; 2]) -> Vec<&'static str> {
    let lacks = |has: &dyn Fn(&Record) -> bool| pair.iter().any(|record| !has(record));
    let setting =
        |name: &'static str| move |record: &Record| record.results.settings.contains_key(name);
    let mut unknown = Vec::new();
    if lacks(&setting("thp/enabled")) {
        unknown.push("huge pages");
    }
    if lacks(&|record| record.results.texts.contains_key("swaps-before")) {
        unknown.push("swap");
    }
    if lacks(&|record| record.results.facts.contains_key("free-at-start")) {
        unknown.push("memory free at the start");
    }
    if lacks(&setting("vm.dirty_ratio")) {
        unknown.push("dirty limits");
    }
    let kernels = pair.each_ref().map(|record| &record.subject.variant.kernel);
    let other = kernels[0].digest != kernels[1].digest || kernels[0].digest.is_empty();
    if other && lacks(&|record| !record.kernel_config.is_empty()) {
        unknown.push("the kernels' configurations");
    }
    // The exact arena always creates file systems in the same way.
    if !pair.iter().all(is_exact) {
        unknown.push("the file system");
    }
    unknown
}

/// Returns the names of all devices in `/proc/swaps` without their numbers, and their total size in KiB.
fn swap(text: &str) -> (String, u64) {
    let mut devices = BTreeSet::new();
    let mut size = 0;
    for line in text.lines().skip(1) {
        let mut words = line.split_whitespace();
        let (Some(device), Some(of_device)) = (words.next(), words.nth(1)) else {
            continue;
        };
        let name = device.rsplit('/').next().unwrap_or(device);
        devices.insert(
            name.trim_end_matches(|c: char| c.is_ascii_digit())
                .to_owned(),
        );
        size += of_device.parse::<u64>().unwrap_or(0);
    }
    (devices.into_iter().collect::<Vec<_>>().join(" and "), size)
}

/// Returns the numbers named `names` for each zone that has memory, in the order of `/proc/zoneinfo`.
fn zones(text: &str, names: &[&str]) -> String {
    let mut zones: Vec<(String, Vec<String>, bool)> = Vec::new();
    for line in text.lines() {
        if let Some((_, zone)) = line.split_once(", zone") {
            zones.push((zone.trim().to_owned(), Vec::new(), false));
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(name), Some(value), None) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Some(zone) = zones.last_mut() else {
            continue;
        };
        if name == "managed" {
            zone.2 = value != "0";
        }
        // Counters of CPUs follow. They include a `high:`, which does not match because of its colon.
        if names.contains(&name) {
            zone.1.push(value.to_owned());
        }
    }
    zones
        .into_iter()
        .filter(|(_, _, has_memory)| *has_memory)
        .map(|(zone, values, _)| format!("{zone} {}", values.join("/")))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the word in brackets if a setting's text lists all possible words with the active one in brackets. Any other
/// text is returned with single spaces between its words.
fn chosen(text: &str) -> String {
    let mut words = text.split_whitespace();
    let chosen = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match chosen {
        Some(word) => word.to_owned(),
        None => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn shown(value: Option<&String>) -> String {
    match value.map(String::as_str) {
        None => "not there".to_owned(),
        Some("") => "none".to_owned(),
        Some(text) => text.to_owned(),
    }
}

fn alike(a: u64, b: u64) -> bool {
    (a.abs_diff(b) as f64) <= ALIKE_SHARE * a.max(b) as f64
}

fn names<V>(maps: [&BTreeMap<String, V>; 2]) -> BTreeSet<String> {
    maps.into_iter().flat_map(BTreeMap::keys).cloned().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn record(kernel: &str, settings: &[(&str, &str)], facts: &[(&str, &str)]) -> Record {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        let mut record = Record::default();
        record.subject.variant.kernel.digest = kernel.to_owned();
        record.results.settings = map(settings);
        record.results.facts = map(facts);
        record
    }

    fn standing(a: Record, b: Record, input: &Input, what: &str) -> Option<Comparability> {
        let found = contrast(&[a, b], input).also;
        found
            .iter()
            .find(|also| also.what == what)
            .map(|also| also.standing)
    }

    const NEVER: (&str, &str) = ("thp/enabled", "always madvise [never]");
    const ALWAYS: (&str, &str) = ("thp/enabled", "[always] madvise never");

    #[test]
    fn another_state_of_huge_pages_confounds_two_kernels_until_it_is_accepted() {
        let sides = || (record("x", &[NEVER], &[]), record("y", &[ALWAYS], &[]));
        let mut input = Input::default();
        let (a, b) = sides();
        assert_eq!(
            standing(a, b, &input, "thp/enabled"),
            Some(Comparability::Confounds)
        );
        for word in ["huge-pages", "thp/enabled"] {
            input.accepted = vec![word.to_owned()];
            let (a, b) = sides();
            assert_eq!(
                standing(a, b, &input, "thp/enabled"),
                Some(Comparability::Accepted)
            );
        }
        input.accepted = vec!["swap".to_owned()];
        let (a, b) = sides();
        assert_eq!(
            standing(a, b, &input, "thp/enabled"),
            Some(Comparability::Confounds)
        );
    }

    #[test]
    fn an_intended_difference_is_not_reported_as_unintended() {
        let mut b = record("x", &[ALWAYS], &[]);
        b.subject
            .variant
            .settings
            .insert("thp/enabled".into(), "always".into());
        let a = record("x", &[NEVER], &[]);
        let found = |input: &Input| standing(a.clone(), b.clone(), input, "thp/enabled");
        assert_eq!(found(&Input::default()), None);
        // Two releases were named, so a setting of only one side was not intended.
        let releases = Input {
            asked: Intent::Kernel,
            ..Input::default()
        };
        assert_eq!(found(&releases), Some(Comparability::Confounds));
    }

    #[test]
    fn two_kernels_with_defaults_of_their_own_on_equal_memory_are_not_confounded() {
        let own = |kernel, lru, managed, free| {
            let settings = [
                NEVER,
                ("lru_gen/enabled", lru),
                ("vm.watermark_boost_factor", kernel),
            ];
            record(
                kernel,
                &settings,
                &[("managed", managed), ("free-at-start", free)],
            )
        };
        let old = own("x", "0x0000", "122052608", "17133568");
        let mut new = own("y", "0x0007", "116862976", "17182720");
        new.results
            .settings
            .insert("zswap/enabled".into(), "N".into());
        let found = contrast(&[old, new], &Input::default());
        assert!(
            found
                .also
                .iter()
                .all(|also| also.standing == Comparability::Minor),
            "{:?}",
            found.also
        );
        let names: Vec<&str> = found.also.iter().map(|also| also.what.as_str()).collect();
        assert!(names.contains(&"lru_gen/enabled") && names.contains(&"memory free at the start"));
        assert!(
            !names.contains(&"zswap/enabled"),
            "off and not there are the same"
        );
        assert!(found.unknown.contains(&"the kernels' configurations"));
    }

    #[test]
    fn what_kernels_were_built_with_is_listed_and_confounds_nothing() {
        let built = |digest: &str, options: &[(&str, &str)]| {
            let mut record = record(digest, &[], &[]);
            record.kernel_config = options
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            record
        };
        let old = built("x", &[("HZ", "250"), ("SWAP", "y")]);
        let new = built("y", &[("HZ", "1000"), ("SWAP", "y"), ("KASAN", "y")]);
        let unknown = "the kernels' configurations";
        let found = contrast(&[old.clone(), new], &Input::default());
        let listed: Vec<(String, Comparability)> = found
            .also
            .iter()
            .map(|also| (also.to_string(), also.standing))
            .collect();
        assert_eq!(
            listed,
            [
                (
                    "CONFIG_HZ 250 against 1000".to_owned(),
                    Comparability::Minor
                ),
                ("CONFIG_KASAN n against y".to_owned(), Comparability::Minor),
            ]
        );
        assert!(!found.unknown.contains(&unknown));
        // Records of an earlier build lack this value. This is not a difference, but the value is reported as unknown.
        let found = contrast(&[old, built("y", &[])], &Input::default());
        assert!(
            found.also.is_empty() && found.unknown.contains(&unknown),
            "{:?}",
            found.also
        );
    }

    #[test]
    fn more_memory_confounds_two_kernels_but_not_the_question_of_the_whole_machine() {
        let of = |kernel, free| record(kernel, &[], &[("free-at-start", free)]);
        let what = "memory free at the start";
        let input = Input::default();
        let found = standing(of("x", "17133568"), of("y", "17633568"), &input, what);
        assert_eq!(found, Some(Comparability::Confounds));
        // The sizes differ by one page. The message would show the same value twice: "16.3 MiB against 16.3 MiB".
        let found = standing(of("x", "17133568"), of("y", "17137664"), &input, what);
        assert_eq!(found, None);
        let total = |kernel, free| {
            let mut record = of(kernel, free);
            record.subject.memory = "total:64M".parse().unwrap();
            record
        };
        let found = standing(total("x", "17133568"), total("y", "17633568"), &input, what);
        assert_eq!(found, Some(Comparability::Minor));
        // The size of the pool of huge pages was intended to differ, so the memory used by the pool is a consequence.
        let mut b = of("x", "12633568");
        b.subject
            .variant
            .settings
            .insert("vm.nr_hugepages".into(), "2".into());
        assert_eq!(
            standing(of("x", "17133568"), b, &input, what),
            Some(Comparability::Follows)
        );
    }

    #[test]
    fn another_swap_confounds_and_another_priority_does_not() {
        let of = |swaps: &str| {
            let mut record = record("x", &[], &[]);
            let text = format!("Filename Type Size Used Priority\n{swaps}\n");
            record.results.texts.insert("swaps-before".into(), text);
            record
        };
        let input = Input::default();
        let zram = "/dev/zram0 partition 65532 0 -2";
        let found = |other| standing(of(zram), of(other), &input, "swap");
        assert_eq!(found("/dev/zram0 partition 65532 0 -1"), None);
        assert_eq!(
            found("/dev/vda partition 65532 0 -1"),
            Some(Comparability::Confounds)
        );
        assert_eq!(
            found("/dev/zram0 partition 49148 0 -2"),
            Some(Comparability::Confounds)
        );
        assert_eq!(found(""), Some(Comparability::Confounds));
    }

    #[test]
    fn what_imports_do_not_tell_is_named_and_confounds_nothing() {
        let found = contrast(&[Record::default(), Record::default()], &Input::default());
        assert_eq!(found.also, []);
        assert!(found.unknown.contains(&"huge pages") && found.unknown.contains(&"swap"));
    }

    #[test]
    fn watermarks_are_read_without_the_lists_of_cpus() {
        let text = "Node 0, zone      DMA\n  pages free     3795\n        min      16\n        low      20\n        \
                    high     24\n        managed  3840\n  pagesets\n    cpu: 0\n              high:  20\nNode 0, zone   Normal\n        min      0\n        managed  0\n";
        assert_eq!(zones(text, &["min", "low", "high"]), "DMA 16/20/24");
    }
}
