//! A kernel's build configuration.

use std::collections::BTreeMap;

/// What a configuration says of one option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// `=y`: built in.
    Yes,
    /// `=m`: built as a module.
    Module,
    /// `is not set`, or not mentioned at all.
    No,
    /// A number or a text; texts without their quotes.
    Value(String),
}

impl Setting {
    /// Whether the option is there, built in or as a module (or has a value).
    pub fn is_on(&self) -> bool {
        *self != Self::No
    }
}

/// A `.config`: the options that are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    options: BTreeMap<String, Setting>,
}

impl Config {
    /// Reads the lines of a `.config`; anything that is no `CONFIG_X=…` line is passed over.
    pub fn parse(text: &str) -> Self {
        let options = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("CONFIG_")?.split_once('='))
            .map(|(name, value)| (name.to_owned(), setting(value)))
            .collect();
        Self { options }
    }

    /// The setting of an option, named with or without `CONFIG_`.
    pub fn get(&self, option: &str) -> Setting {
        let name = option.strip_prefix("CONFIG_").unwrap_or(option);
        self.options.get(name).cloned().unwrap_or(Setting::No)
    }

    /// Whether no option at all is set, as in a file that is no configuration.
    pub fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    /// Options set differently here and there: name without `CONFIG_`, here, there.
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
