//! Several values of one key, which become variants or cells: `--vary KEY=V1,V2,…`.

use std::str::FromStr;

use pagetide_arena::VariantSpec;

use crate::variants::{NameTaken, NotAPair, name_all, pair};

/// A key with several values, given as `KEY=V1,V2,…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Name of a setting or of a word in a program, or one of `kernel`, `boot`, `swap`, `memory` and `limit`.
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
        let values: Vec<String> = values.split(',').map(|v| v.trim().to_owned()).collect();
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

/// Sets the kernel, a boot argument or a setting of a variant, depending on the key.
pub(crate) fn give(variant: &mut VariantSpec, key: &str, value: &str) {
    match key {
        "kernel" => value.clone_into(&mut variant.kernel),
        "boot" => variant.boot.push(value.to_owned()),
        _ => {
            variant.settings.insert(key.to_owned(), value.to_owned());
        }
    }
}

/// Combines each of these variants with every combination of the varied values. The values of the last key change
/// fastest. Variants are named after their differences.
pub(crate) fn crossed(
    variants: Vec<VariantSpec>,
    all: &[&Vary],
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
        name_all(&mut made)?;
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
    fn every_combination_is_a_variant_named_by_what_sets_it_apart() {
        let swappiness: Vary = "vm.swappiness=10,60,150".parse().unwrap();
        let boot: Vary = "boot=a=1,a=2".parse().unwrap();
        let base = VariantSpec {
            kernel: "debian:sid".to_owned(),
            name: "base".to_owned(),
            ..VariantSpec::default()
        };
        let made = crossed(vec![base.clone()], &[&swappiness, &boot]).unwrap();
        let names: Vec<&str> = made.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names.len(), 6);
        assert_eq!(names[..2], ["swappiness=10 a=1", "swappiness=10 a=2"]);
        assert_eq!(
            made[5].boot,
            ["a=2"],
            "another value takes the place of the first"
        );
        assert_eq!(crossed(vec![base.clone()], &[]).unwrap(), [base]);
    }
}
