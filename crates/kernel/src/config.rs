//! A kernel's build configuration.

use std::collections::BTreeMap;

/// Value of one option in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// `=y`: the option is built in.
    Yes,
    /// `=m`: the option is built as a module.
    Module,
    /// `is not set`, or not in the configuration.
    No,
    /// A number or a string, without quotes.
    Value(String),
}

impl Setting {
    /// Returns true if the option is built in, built as a module, or has a value.
    pub fn is_on(&self) -> bool {
        *self != Self::No
    }
}

/// Options that can change how reclaim works or what it costs: features that are built in, and debugging options.
const OF_MEMORY: [&str; 63] = [
    "LRU_GEN",
    "LRU_GEN_ENABLED",
    "LRU_GEN_STATS",
    "LRU_GEN_WALKS_MMU",
    "TRANSPARENT_HUGEPAGE",
    "TRANSPARENT_HUGEPAGE_ALWAYS",
    "TRANSPARENT_HUGEPAGE_MADVISE",
    "TRANSPARENT_HUGEPAGE_NEVER",
    "THP_SWAP",
    "READ_ONLY_THP_FOR_FS",
    "SWAP",
    "ZRAM",
    "ZRAM_DEF_COMP",
    "ZRAM_MULTI_COMP",
    "ZSWAP",
    "ZSWAP_DEFAULT_ON",
    "ZSWAP_SHRINKER_DEFAULT_ON",
    "ZSWAP_COMPRESSOR_DEFAULT",
    "ZSMALLOC",
    "ZSMALLOC_CHAIN_SIZE",
    "MEMCG",
    "MEMCG_V1",
    "HZ",
    "NO_HZ_FULL",
    "PREEMPT",
    "PREEMPT_DYNAMIC",
    "PREEMPT_LAZY",
    "PREEMPT_NONE",
    "PREEMPT_RT",
    "PREEMPT_VOLUNTARY",
    "SMP",
    "NUMA",
    "NUMA_BALANCING",
    "COMPACTION",
    "MIGRATION",
    "CMA",
    "KSM",
    "PAGE_REPORTING",
    "PER_VMA_LOCK",
    "DAMON",
    "DAMON_LRU_SORT",
    "DAMON_RECLAIM",
    "DAMON_STAT",
    "SLUB_CPU_PARTIAL",
    "SLUB_TINY",
    "SHUFFLE_PAGE_ALLOCATOR",
    "INIT_ON_ALLOC_DEFAULT_ON",
    "INIT_ON_FREE_DEFAULT_ON",
    "PAGE_POISONING",
    "PAGE_TABLE_CHECK",
    "PAGE_OWNER",
    "DEBUG_PAGEALLOC",
    "DEBUG_VM",
    "DEBUG_LIST",
    "DEBUG_LOCK_ALLOC",
    "LOCKDEP",
    "PROVE_LOCKING",
    "KASAN",
    "KCSAN",
    "KFENCE",
    "KMSAN",
    "UBSAN",
    "FUNCTION_TRACER",
];

/// A parsed `.config` file: the options that are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    options: BTreeMap<String, Setting>,
}

impl Config {
    /// Parses the text of a `.config` file. Lines that are not `CONFIG_X=…` are ignored.
    pub fn parse(text: &str) -> Self {
        let options = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("CONFIG_")?.split_once('='))
            .map(|(name, value)| (name.to_owned(), setting(value)))
            .collect();
        Self { options }
    }

    /// Returns the setting of an option; the prefix `CONFIG_` may be omitted.
    pub fn get(&self, option: &str) -> Setting {
        let name = option.strip_prefix("CONFIG_").unwrap_or(option);
        self.options.get(name).cloned().unwrap_or(Setting::No)
    }

    /// Returns the values of the memory-related options that are set, by name: `y`, `m`, a number or a string.
    pub fn of_memory(&self) -> BTreeMap<String, String> {
        let shown = |setting: &Setting| match setting {
            Setting::Yes => Some("y".to_owned()),
            Setting::Module => Some("m".to_owned()),
            Setting::No => None,
            Setting::Value(value) => Some(value.clone()),
        };
        OF_MEMORY
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), shown(self.options.get(*name)?)?)))
            .collect()
    }

    /// Returns true if no option is set, as in a file that is not a configuration.
    pub fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    /// Returns the options whose settings differ between two configurations. Each has the name without `CONFIG_`, the
    /// setting in `self` and the setting in `other`.
    pub fn differences<'a>(&'a self, other: &'a Self) -> Vec<(&'a str, Setting, Setting)> {
        let names: std::collections::BTreeSet<&str> = self
            .options
            .keys()
            .chain(other.options.keys())
            .map(String::as_str)
            .collect();
        names
            .into_iter()
            .map(|name| (name, self.get(name), other.get(name)))
            .filter(|(_, here, there)| here != there)
            .collect()
    }
}

fn setting(value: &str) -> Setting {
    match value {
        "y" => Setting::Yes,
        "m" => Setting::Module,
        "n" => Setting::No,
        other => {
            let inner = other
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            Setting::Value(inner.unwrap_or(other).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# CONFIG_ZSWAP is not set\nCONFIG_SWAP=y\nCONFIG_ZRAM=m\nCONFIG_HZ=250\n\
                          CONFIG_ZRAM_DEF_COMP=\"lzo-rle\"\nnonsense\n";

    #[test]
    fn each_kind_of_line_is_understood() {
        let config = Config::parse(SAMPLE);
        assert_eq!(config.get("CONFIG_SWAP"), Setting::Yes);
        assert_eq!(config.get("ZRAM"), Setting::Module);
        assert_eq!(config.get("CONFIG_ZSWAP"), Setting::No);
        assert_eq!(config.get("CONFIG_NEVER_HEARD_OF"), Setting::No);
        assert_eq!(config.get("CONFIG_HZ"), Setting::Value("250".into()));
        assert_eq!(
            config.get("CONFIG_ZRAM_DEF_COMP"),
            Setting::Value("lzo-rle".into())
        );
    }

    #[test]
    fn of_all_options_those_that_bear_on_memory_are_told_as_far_as_they_are_set() {
        let text = format!("{SAMPLE}CONFIG_E1000=m\nCONFIG_KSM=n\n");
        let told = Config::parse(&text).of_memory();
        let told: Vec<String> = told
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            told,
            ["HZ=250", "SWAP=y", "ZRAM=m", "ZRAM_DEF_COMP=lzo-rle"]
        );
    }

    #[test]
    fn two_configurations_differ_only_where_they_differ() {
        let (a, b) = (
            Config::parse(SAMPLE),
            Config::parse("CONFIG_SWAP=y\nCONFIG_ZRAM=m\nCONFIG_HZ=1000\n"),
        );
        let names: Vec<_> = a
            .differences(&b)
            .into_iter()
            .map(|(name, ..)| name)
            .collect();
        assert_eq!(names, ["HZ", "ZRAM_DEF_COMP"]);
    }
}
