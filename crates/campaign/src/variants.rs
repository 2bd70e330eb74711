//! Variants given on a command line: kernels, common settings, and changes to the first variant.

use std::str::FromStr;

use pagetide_arena::VariantSpec;
use pagetide_quantity::{Bytes, UnitError};
use pagetide_record::{SwapError, SwapSpec};

use crate::swaps::{CellSwap, short as short_swap, size_text};

/// Changes to the first variant that define another variant. The text form is `KEY=VALUE,…`; all keys except `name`,
/// `kernel`, `patch`, `boot`, `swap` and `swap-size` are settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariantChange {
    name: Option<String>,
    kernel: Option<String>,
    patches: Vec<String>,
    boot: Vec<String>,
    settings: Vec<(String, String)>,
    swap: Option<SwapSpec>,
    swap_size: Option<Bytes>,
}

impl VariantChange {
    /// Returns the changes that define a variant called `name`, with these patches on the first variant's source.
    pub fn patched(name: &str, patches: &[String]) -> Self {
        Self {
            name: Some(name.to_owned()),
            patches: patches.to_vec(),
            ..Self::default()
        }
    }

    /// Returns the changes that define a variant called `name`, with another kernel.
    pub fn on(name: &str, kernel: String) -> Self {
        Self {
            name: Some(name.to_owned()),
            kernel: Some(kernel),
            ..Self::default()
        }
    }

    /// True if the variant's kernel is built from source with patches.
    pub fn has_patches(&self) -> bool {
        !self.patches.is_empty()
    }
}

/// Returns the name of a kernel that is built from source, formed from its source, configuration and patches.
pub fn built_kernel(source: &str, config: Option<&str>, patches: &[String]) -> String {
    let mut name = format!("{BUILT}{source}");
    if let Some(config) = config {
        name = format!("{name},config:{config}");
    }
    patched(name, patches)
}

fn patched(kernel: String, patches: &[String]) -> String {
    patches
        .iter()
        .fold(kernel, |name, patch| format!("{name},patch:{patch}"))
}

/// Default source from which kernels are built.
pub const DEFAULT_SOURCE: &str = "debian:6.12";
/// Prefix of the name of a kernel that is built from source.
const BUILT: &str = "source:";

impl FromStr for VariantChange {
    type Err = ChangeError;

    /// Parses `KEY=VALUE,…`. A part without `=` belongs to the value before it, as in `kernel=image:K,modules:M` and
    /// `swap=disk:8ms,40MB/s`.
    fn from_str(text: &str) -> Result<Self, ChangeError> {
        let mut parts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match parts.last_mut() {
                Some(before) if !part.contains('=') => {
                    before.push(',');
                    before.push_str(part);
                }
                _ => parts.push(part.to_owned()),
            }
        }
        let mut change = Self::default();
        for part in parts {
            let (key, value) = pair(&part)?;
            match key.as_str() {
                "name" => change.name = Some(value),
                "kernel" => change.kernel = Some(value),
                "patch" => change.patches.push(value),
                "boot" => change.boot.push(value),
                "swap" if change.swap.is_none() => change.swap = Some(value.parse()?),
                "swap-size" if change.swap_size.is_none() => {
                    change.swap_size = Some(value.parse().map_err(ChangeError::Size)?);
                }
                "swap" | "swap-size" => return Err(ChangeError::Again { key }),
                "memory" | "limit" | "cpus" => return Err(ChangeError::OfCell { key }),
                _ => change.settings.push((key, value)),
            }
        }
        Ok(change)
    }
}

/// Reason why a text with changes does not define a variant. The user sees this message unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A part is not of the form `KEY=VALUE`.
    #[error(transparent)]
    NotAPair(#[from] NotAPair),
    /// The value of `swap` is not a kind of swap.
    #[error(transparent)]
    Swap(#[from] SwapError),
    /// The value of `swap-size` is not a size.
    #[error("swap-size= takes a size such as 256M: {0}")]
    Size(UnitError),
    /// The key describes the machine, which all variants share.
    #[error("variants share {key}: give --vary {key}=V1,V2 for a cell with each value")]
    OfCell {
        /// Name of the key.
        key: String,
    },
    /// A key that may occur only once is given twice.
    #[error("one variant cannot have two values of {key}=: write a --vs for each")]
    Again {
        /// Name of the key that is given twice.
        key: String,
    },
}

/// A text is not of the form `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPair {
    /// The key or the value is missing.
    #[error("write it as KEY=VALUE")]
    Form,
    /// The text is the name of a cgroup file such as `memory.max`, without a value.
    #[error(
        "`{0}` belongs to a control group and is not a setting of the machine: give the limits of a program's memory with \
         --limit (memory.max), --high (memory.high) and --swap-max (memory.swap.max)"
    )]
    OfGroup(String),
}

/// Parses `KEY=VALUE` to key and value, without spaces around them.
pub fn pair(text: &str) -> Result<(String, String), NotAPair> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ if text.starts_with("memory.") => Err(NotAPair::OfGroup(text.trim().to_owned())),
        _ => Err(NotAPair::Form),
    }
}

/// Error: two variants have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two variants are called `{name}`: give each a name of its own with name=")]
pub struct NameTaken {
    /// The name given twice.
    pub name: String,
}

/// Creates a variant for each kernel, and a variant of the first kernel for each change, all with these boot arguments
/// and settings. Unnamed variants are named after their differences to the other variants.
///
/// `kernels` must have at least one name. `swap` is the swap of variants that do not have their own.
pub fn variants(
    kernels: &[String],
    boot: &[String],
    settings: &[(String, String)],
    changes: &[VariantChange],
    swap: &CellSwap,
) -> Result<Vec<VariantSpec>, NameTaken> {
    let on = |kernel: &str| VariantSpec {
        name: String::new(),
        kernel: kernel.to_owned(),
        boot: boot.to_vec(),
        settings: settings.iter().cloned().collect(),
        ..VariantSpec::default()
    };
    let first = kernels.first().map_or("", String::as_str);
    let mut variants: Vec<VariantSpec> = kernels.iter().map(|kernel| on(kernel)).collect();
    for change in changes {
        let kernel = change.kernel.clone().unwrap_or_else(|| first.to_owned());
        let mut variant = on(&patched(kernel, &change.patches));
        variant.name = change.name.clone().unwrap_or_default();
        variant.boot.extend(change.boot.iter().cloned());
        variant.settings.extend(change.settings.iter().cloned());
        (variant.swap, variant.swap_size) = (change.swap, change.swap_size);
        variants.push(variant);
    }
    name_all(&mut variants, swap)?;
    Ok(variants)
}

/// Names the unnamed variants after their differences. `swap` is the swap of variants that do not have their own.
pub(crate) fn name_all(variants: &mut [VariantSpec], swap: &CellSwap) -> Result<(), NameTaken> {
    let all = variants.to_vec();
    for (place, variant) in variants.iter_mut().enumerate() {
        if variant.name.is_empty() {
            let mut parts = distinction(variant, &all, swap);
            if parts.is_empty() {
                parts.push(if place == 0 { "base" } else { "again" }.to_owned());
            }
            variant.name = parts.join(" ").replace([':', ',', '\n'], "-");
        } else if all[..place].iter().any(|other| other.name == variant.name) {
            return Err(NameTaken {
                name: variant.name.clone(),
            });
        }
    }
    // Generated names may be equal, for example if the same kernel is given twice. Numbers make them distinct.
    for place in 1..variants.len() {
        let (before, rest) = variants.split_at_mut(place);
        let name = rest[0].name.clone();
        let mut number = 1;
        while before.iter().any(|other| other.name == rest[0].name) {
            number += 1;
            rest[0].name = format!("{name} ({number})");
        }
    }
    Ok(())
}

/// Returns the texts for the kernel, settings, boot arguments and swap of a variant. Values that all variants have are
/// left out.
fn distinction(variant: &VariantSpec, all: &[VariantSpec], swap: &CellSwap) -> Vec<String> {
    let mut parts = Vec::new();
    if all.iter().any(|other| other.kernel != variant.kernel) {
        parts.push(short(&variant.kernel).to_owned());
    }
    for (name, value) in &variant.settings {
        if all
            .iter()
            .any(|other| other.settings.get(name) != Some(value))
        {
            let name = name.rsplit('.').next().unwrap_or(name);
            parts.push(format!("{name}={value}"));
        }
    }
    for argument in &variant.boot {
        if all.iter().any(|other| !other.boot.contains(argument)) {
            parts.push(argument.clone());
        }
    }
    let (kind, size) = swap.of(variant);
    if all.iter().any(|other| swap.of(other).0 != kind) {
        parts.push(short_swap(&kind));
    }
    if let Some(own) = size
        && all.iter().any(|other| swap.of(other).1 != size)
    {
        parts.push(format!("swap-size={}", size_text(own)));
    }
    parts
}

/// Returns a short name: for a kernel built from source, the file name of its last patch without the extension, or
/// `base` without patches; for a Debian kernel, its name without the prefix; otherwise the last component of its path.
fn short(kernel: &str) -> &str {
    if let Some(source) = kernel.strip_prefix(BUILT) {
        let Some((_, patch)) = source.rsplit_once(",patch:") else {
            return "base";
        };
        let file = patch
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(patch);
        return file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    }
    for prefix in ["debian:", "deb:"] {
        if let Some(rest) = kernel.strip_prefix(prefix) {
            return rest;
        }
    }
    let path = kernel.strip_prefix("image:").unwrap_or(kernel);
    let path = path.split(',').next().unwrap_or(path);
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kernels: &[&str], settings: &[&str], changes: &[&str]) -> Vec<VariantSpec> {
        let kernels: Vec<String> = kernels.iter().map(ToString::to_string).collect();
        let settings: Vec<_> = settings.iter().map(|text| pair(text).unwrap()).collect();
        let changes: Vec<VariantChange> = changes.iter().map(|c| c.parse().unwrap()).collect();
        variants(&kernels, &[], &settings, &changes, &CellSwap::default()).unwrap()
    }

    fn names(variants: &[VariantSpec]) -> Vec<&str> {
        variants.iter().map(|v| v.name.as_str()).collect()
    }

    #[test]
    fn kernels_become_variants_named_after_them() {
        let kernels = ["debian:bookworm", "/b/linux-6.9/", "image:/x/bz,modules:/m"];
        let made = made(&kernels, &["vm.swappiness=1"], &[]);
        assert_eq!(names(&made), ["bookworm", "linux-6.9", "bz"]);
    }

    #[test]
    fn a_setting_against_another_names_both_by_it() {
        let changes = ["lru_gen/enabled=7", "name=swappy,vm.swappiness=200"];
        let made = made(&["debian:sid"], &["lru_gen/enabled=0"], &changes);
        assert_eq!(
            names(&made),
            ["lru_gen/enabled=0", "lru_gen/enabled=7", "swappy"]
        );
        assert_eq!(made[2].settings["lru_gen/enabled"], "0");
        assert_eq!(made[2].settings["vm.swappiness"], "200");
    }

    #[test]
    fn patches_stand_on_the_first_variants_source_and_name_theirs() {
        let base = built_kernel("debian:6.12", Some("my.config"), &[]);
        let changes = [
            "patch=fix.patch",
            "name=both,patch=/p/a.patch,patch=/p/b.mbox",
        ];
        let made = made(&[&base], &[], &changes);
        assert_eq!(names(&made), ["base", "fix", "both"]);
        assert_eq!(
            made[2].kernel,
            "source:debian:6.12,config:my.config,patch:/p/a.patch,patch:/p/b.mbox"
        );
    }

    #[test]
    fn commas_within_a_kernels_name_stay_there() {
        let text = "kernel=image:/x,modules:/m,vm.swappiness=1";
        let change: VariantChange = text.parse().unwrap();
        assert_eq!(change.kernel.as_deref(), Some("image:/x,modules:/m"));
        assert_eq!(change.settings, [pair("vm.swappiness=1").unwrap()]);
        assert_eq!("zram".parse::<VariantChange>(), Err(NotAPair::Form.into()));
        let said = pair("memory.high").unwrap_err().to_string();
        assert!(said.contains("--high (memory.high)"), "{said}");
    }

    #[test]
    fn kinds_of_swap_are_variants_named_after_them_and_a_value_is_taken_whole() {
        let changes = [
            "swap=zswap:zstd+ssd",
            "swap=disk:8ms,20MB/s,vm.swappiness=1",
            "swap=ssd,swap-size=64M",
        ];
        let made = made(&["debian:sid"], &[], &changes);
        assert_eq!(
            names(&made),
            [
                "zram",
                "zswap-zstd+ssd",
                "swappiness=1 disk-8ms-20MB/s",
                "ssd swap-size=64M",
            ]
        );
        assert_eq!(made[0].swap, None, "the baseline has the swap of its cell");
        assert_eq!(made[2].swap, Some("disk:8ms,20MB/s".parse().unwrap()));
        assert_eq!(made[2].settings.len(), 1);
        assert_eq!(made[3].swap_size, Some(Bytes::from_mib(64)));
        let why = |text: &str| text.parse::<VariantChange>().unwrap_err().to_string();
        assert!(why("swap=tape").starts_with("`tape` is no kind of swap: use zram"));
        assert!(why("swap-size=big").starts_with("swap-size= takes a size such as 256M: "));
        assert!(why("swap=ssd,swap=zram").contains("a --vs for each"));
        assert!(why("cpus=4").contains("--vary cpus="));
    }

    #[test]
    fn the_same_kernel_twice_makes_two_variants() {
        assert_eq!(
            names(&made(&["debian:sid"; 2], &[], &[])),
            ["base", "again"]
        );
        assert_eq!(
            names(&made(&["debian:sid"; 3], &[], &[])),
            ["base", "again", "again (2)"]
        );
    }

    #[test]
    fn a_name_given_twice_is_refused() {
        let twice: VariantChange = "name=x,vm.swappiness=1".parse().unwrap();
        let changes = [twice.clone(), twice];
        let taken = variants(
            &["debian:sid".into()],
            &[],
            &[],
            &changes,
            &CellSwap::default(),
        );
        assert_eq!(taken, Err(NameTaken { name: "x".into() }));
    }
}
