//! Several values of one key, which become variants or cells: `--vary KEY=V1,V2,…`.

use std::str::FromStr;

use pagetide_arena::VariantSpec;
use pagetide_quantity::Bytes;
use pagetide_record::SwapSpec;

use crate::swaps::CellSwap;
use crate::variants::{NameTaken, NotAPair, name_all, pair};

/// A key with several values, given as `KEY=V1,V2,…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Name of a setting, or of a word in a program's command line, or one of `kernel`, `boot`, `swap`, `swap-size`,
    /// `memory`, `limit` and `cpus`.
    pub key: String,
    /// Values of the key, at least two.
    pub values: Vec<String>,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form =
            "write KEY=V1,V2 with at least two values, each once, such as vm.swappiness=10,60,150";
        let (key, values) = pair(text).map_err(|_: NotAPair| form)?;
        let values: Vec<String> = match key.as_str() {
            "swap" => swaps(&values),
            _ => values.split(',').map(|v| v.trim().to_owned()).collect(),
        };
        let is_again = |(place, value): (usize, &String)| values[..place].contains(value);
        if values.len() < 2
            || values.iter().any(String::is_empty)
            || values.iter().enumerate().any(is_again)
        {
            return Err(form.to_owned());
        }
        Ok(Self { key, values })
    }
}

/// Splits a list of kinds of swap at commas. Not every comma separates two kinds: in `disk:8ms,40MB/s` a rate follows,
/// and in `zram:8M@100,ssd@10` the parts on both sides state a priority with `@`.
fn swaps(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let is_kind = part.is_empty() || part.parse::<SwapSpec>().is_ok();
        match all.last_mut() {
            Some(before)
                if !is_kind && part.ends_with("/s")
                    || before.contains('@') && part.contains('@') =>
            {
                before.push(',');
                before.push_str(part);
            }
            _ => all.push(part.to_owned()),
        }
    }
    all
}

impl Vary {
    /// True if one of these texts contains the key as `{KEY}`.
    pub fn is_word_of<'a>(&self, mut texts: impl Iterator<Item = &'a mut String>) -> bool {
        let place = self.place();
        texts.any(|text| text.contains(&place))
    }

    /// Replaces `{KEY}` by `value` in all texts.
    pub fn put<'a>(&self, value: &str, texts: impl Iterator<Item = &'a mut String>) {
        let place = self.place();
        for text in texts {
            *text = text.replace(&place, value);
        }
    }

    fn place(&self) -> String {
        format!("{{{}}}", self.key)
    }
}

/// Sets the kernel, the swap, a boot argument or a setting of a variant, depending on `key`. Values of `swap` and
/// `swap-size` must have been checked with [`check_swap`].
pub(crate) fn give(variant: &mut VariantSpec, key: &str, value: &str) {
    match key {
        "swap" => variant.swap = value.parse().ok(),
        "swap-size" => variant.swap_size = value.parse().ok(),
        "kernel" => value.clone_into(&mut variant.kernel),
        "boot" => variant.boot.push(value.to_owned()),
        _ => {
            variant.settings.insert(key.to_owned(), value.to_owned());
        }
    }
}

/// Checks a value for a varied key. For `swap` it must be a kind of swap, and for `swap-size` a size. Fails with the
/// reason.
pub(crate) fn check_swap(key: &str, value: &str) -> Result<(), String> {
    match key {
        "swap" => value
            .parse::<SwapSpec>()
            .map(drop)
            .map_err(|why| why.to_string()),
        "swap-size" => value
            .parse::<Bytes>()
            .map(drop)
            .map_err(|why| why.to_string()),
        _ => Ok(()),
    }
}

/// Combines each variant with every combination of the varied values. The values of the last key change fastest.
/// Variants are named after their differences. `swap` is the swap of variants that do not have their own.
pub(crate) fn crossed(
    variants: Vec<VariantSpec>,
    all: &[&Vary],
    swap: &CellSwap,
) -> Result<Vec<VariantSpec>, NameTaken> {
    let mut made = variants;
    for vary in all {
        let with = |variant: &VariantSpec| {
            let values = vary.values.iter();
            let variants = values.map(|value| {
                let mut variant = variant.clone();
                variant.name.clear();
                give(&mut variant, &vary.key, value);
                variant
            });
            variants.collect::<Vec<_>>()
        };
        made = made.iter().flat_map(with).collect();
    }
    if !all.is_empty() {
        name_all(&mut made, swap)?;
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_at_least_two_and_each_stands_once() {
        let vary: Vary = "vm.swappiness = 10, 60".parse().unwrap();
        assert_eq!((vary.key.as_str(), vary.values.len()), ("vm.swappiness", 2));
        assert_eq!(vary.values[1], "60");
        for text in ["a", "a=", "a=1", "a=1,", "a=1,1", "=1,2"] {
            let said = text.parse::<Vary>().unwrap_err();
            assert!(said.contains("KEY=V1,V2"), "{text}");
        }
    }

    #[test]
    fn kinds_of_swap_with_commas_in_them_are_values_taken_whole() {
        let values = |text: &str| text.parse::<Vary>().unwrap().values;
        assert_eq!(
            values("swap=disk:8ms,20MB/s,zram, disk,40MB/s"),
            ["disk:8ms,20MB/s", "zram", "disk,40MB/s"]
        );
        assert_eq!(values("swap=zram:8M@100,ssd@10,zram").len(), 2);
        assert_eq!(
            values("swap=zram,tape"),
            ["zram", "tape"],
            "it is refused later"
        );
        assert!("swap=disk:8ms,20MB/s".parse::<Vary>().is_err());
    }

    #[test]
    fn every_combination_is_a_variant_named_by_what_sets_it_apart() {
        let swappiness: Vary = "vm.swappiness=10,60,150".parse().unwrap();
        let boot: Vary = "boot=a=1,a=2".parse().unwrap();
        let base = VariantSpec {
            kernel: "debian:sid".to_owned(),
            name: "base".to_owned(),
            ..VariantSpec::default()
        };
        let own = CellSwap::default();
        let made = crossed(vec![base.clone()], &[&swappiness, &boot], &own).unwrap();
        let names: Vec<&str> = made.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names.len(), 6);
        assert_eq!(names[..2], ["swappiness=10 a=1", "swappiness=10 a=2"]);
        assert_eq!(
            made[5].boot,
            ["a=2"],
            "another value takes the place of the first"
        );
        assert_eq!(
            crossed(vec![base.clone()], &[], &own).unwrap(),
            std::slice::from_ref(&base)
        );
        let kinds: Vary = "swap=ssd,zram,zswap+ssd".parse().unwrap();
        let made = crossed(vec![base], &[&kinds], &own).unwrap();
        let names: Vec<&str> = made.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["ssd", "zram", "zswap+ssd"]);
    }
}
