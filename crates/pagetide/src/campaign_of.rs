//! A campaign made of a command line: scenarios, and the variants that kernels and settings amount to.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use pagetide_arena::VariantSpec;
use pagetide_campaign::{
    Campaign, DEFAULT_CAP, Observe, Sampling, ScenarioSpec, Until, Vocabulary, without_spaces,
};
use pagetide_quantity::Bytes;
use pagetide_record::subject::hex;
use pagetide_record::{ArenaKind, MemorySpec, SwapSpec};
use pagetide_store::is_campaign_name;
use sha2::{Digest, Sha256};

use crate::exit::Usage;

/// What a command line may say of a campaign.
#[derive(Args, Clone, Debug, Default)]
pub struct CampaignArgs {
    /// Kernel to run on; several make a variant each [default: debian:bookworm/6.12]
    #[arg(long, value_name = "K", help_heading = "What is compared")]
    pub kernel: Vec<String>,
    /// Setting of every variant, such as vm.swappiness=10 or lru_gen/enabled=0
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = "What is compared")]
    pub set: Vec<(String, String)>,
    /// Boot argument of every variant
    #[arg(
        long,
        value_name = "ARG",
        allow_hyphen_values = true,
        help_heading = "What is compared"
    )]
    pub boot: Vec<String>,
    /// One more variant: the first one with these settings changed; also kernel=K, boot=ARG and name=NAME
    #[arg(
        long,
        value_name = "KEY=VALUE[,…]",
        value_parser = Change::read,
        help_heading = "What is compared"
    )]
    pub vs: Vec<Change>,
    /// Parameter of the scenario, such as pages=2*memory; several values of one make a matrix
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = pair, help_heading = "Workload")]
    pub param: Vec<(String, String)>,
    /// Memory free to the workload, or total:SIZE for the whole machine [default: the scenario's, 64M
    /// for most]
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub memory: Vec<MemorySpec>,
    /// Where to swap to: zram, ssd, ssd:LATENCY or none [default: zram]
    #[arg(long, value_name = "KIND", help_heading = "Workload")]
    pub swap: Vec<SwapSpec>,
    /// Size of the swap device [default: three times the memory]
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub swap_size: Option<Bytes>,
    /// Run the scenario as its original did, faults included
    #[arg(long, help_heading = "Workload")]
    pub as_written: bool,
    /// Size relative to the original's machine; chooses the memory, and all else follows
    #[arg(
        long,
        value_name = "SHARE",
        conflicts_with = "memory",
        help_heading = "Workload"
    )]
    pub scale: Option<f64>,
    /// Seeds for each variant [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Sampling")]
    pub seeds: Option<u32>,
    /// First seed; the others follow it
    #[arg(long, value_name = "SEED", help_heading = "Sampling")]
    pub first_seed: Option<u64>,
    /// Go on until every primary metric is decided, at most to --seeds [default then: 40]
    #[arg(long, help_heading = "Sampling")]
    pub until_sure: bool,
    /// Of how many seeds trials also run with all probes, to tell why: a number, none, first or all
    /// [default: 3 where variants are compared, else none]
    #[arg(
        long,
        value_name = "SEEDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "3",
        value_parser = which,
        help_heading = "Sampling"
    )]
    pub observe: Option<Observe>,
    /// Name of the campaign in the store [default: made of what is run]
    #[arg(long, value_name = "NAME", help_heading = "Sampling")]
    pub name: Option<String>,
}

/// What makes one more variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    name: Option<String>,
    kernel: Option<String>,
    boot: Vec<String>,
    settings: Vec<(String, String)>,
}

impl Change {
    /// Reads `KEY=VALUE,…`. A part without `=` belongs to the value before it, as in `kernel=image:K,modules:M`.
    fn read(text: &str) -> Result<Self, String> {
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
                "boot" => change.boot.push(value),
                _ => change.settings.push((key, value)),
            }
        }
        Ok(change)
    }
}

/// Reads which trials are observed.
fn which(text: &str) -> Result<Observe, String> {
    if let Some((_, observe)) = Observe::WORDS.iter().find(|(word, _)| *word == text) {
        return Ok(*observe);
    }
    match text.parse() {
        Ok(seeds) if seeds > 0 => Ok(Observe::Seeds(seeds)),
        _ => Err("give a number of seeds, none, first or all".to_owned()),
    }
}

/// Reads `KEY=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

impl CampaignArgs {
    /// Names of options that a campaign file decides itself.
    pub fn of_the_file(&self) -> Option<&'static str> {
        [
            (!self.kernel.is_empty(), "--kernel"),
            (!self.set.is_empty(), "--set"),
            (!self.boot.is_empty(), "--boot"),
            (!self.vs.is_empty(), "--vs"),
            (!self.param.is_empty(), "--param"),
            (self.as_written, "--as-written"),
            (self.scale.is_some(), "--scale"),
            (self.name.is_some(), "--name"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    /// Takes what may be said beside a campaign file.
    pub fn adjust(&self, campaign: &mut Campaign) {
        if let Some(first) = self.first_seed {
            campaign.sampling.first_seed = first;
        }
        if self.until_sure || self.seeds.is_some() {
            campaign.sampling.until = self.until();
        }
        if let Some(observe) = self.observe {
            campaign.observe = observe;
        }
        for scenario in &mut campaign.scenarios {
            if !self.memory.is_empty() {
                scenario.memory.clone_from(&self.memory);
            }
            if !self.swap.is_empty() {
                scenario.swap.clone_from(&self.swap);
            }
            scenario.swap_size = self.swap_size.or(scenario.swap_size);
            if scenario.memory.is_empty()
                && let Ok(definition) = pagetide_scenario::find(&scenario.name)
            {
                scenario.memory = vec![MemorySpec::Free(definition.default_memory)];
            }
        }
    }

    /// The campaign of these scenarios.
    pub fn campaign(&self, scenarios: &[String], vocabulary: &Vocabulary) -> Result<Campaign> {
        let mut campaign = Campaign {
            name: String::new(),
            arena: ArenaKind::Exact,
            seed: 1,
            variants: self.variants()?,
            scenarios: scenarios
                .iter()
                .map(|name| self.scenario(name))
                .collect::<Result<_>>()?,
            sampling: Sampling::default(),
            observe: Observe::None,
        };
        campaign.observe = Observe::unless_told(campaign.variants.len());
        check_settings(&campaign, vocabulary)?;
        campaign.name = match &self.name {
            Some(name) if is_campaign_name(name) => name.clone(),
            Some(name) => {
                return Err(Usage::error(format!(
                    "`{name}` cannot name a campaign: use letters, digits, hyphens and underscores, beginning with a \
                     letter or digit"
                )));
            }
            None => name_of(&campaign),
        };
        self.adjust(&mut campaign);
        Ok(campaign)
    }

    fn until(&self) -> Until {
        if self.until_sure {
            Until::Sure {
                cap: self.seeds.unwrap_or(DEFAULT_CAP),
                looks: Vec::new(),
            }
        } else {
            Until::Blocks(
                self.seeds
                    .unwrap_or(pagetide_campaign::campaign::DEFAULT_SEEDS),
            )
        }
    }

    fn scenario(&self, name: &str) -> Result<ScenarioSpec> {
        let definition = pagetide_scenario::find(name)?;
        let memory = match self.scale {
            None => self.memory.clone(),
            Some(scale) if scale.is_finite() && scale > 0.0 => {
                // Whole megabytes, so that the machine is one that can be named.
                let memory = definition.memory_at(scale).0.next_multiple_of(1 << 20);
                vec![MemorySpec::Free(Bytes(memory))]
            }
            Some(scale) => {
                return Err(Usage::error(format!(
                    "--scale {scale} is no size: give a number above 0"
                )));
            }
        };
        let mut params: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in &self.param {
            let values = params.entry(key.clone()).or_default();
            let same = |other: &String| without_spaces(other) == without_spaces(value);
            if values.iter().any(same) {
                return Err(Usage::error(format!(
                    "-p {key}={value} is given twice: give each value once"
                )));
            }
            values.push(value.clone());
        }
        Ok(ScenarioSpec {
            name: name.to_owned(),
            as_written: self.as_written,
            params,
            memory,
            swap: self.swap.clone(),
            swap_size: self.swap_size,
            primary: None,
            margins: BTreeMap::new(),
        })
    }

    /// One variant for each kernel, and one more of the first for each `--vs`.
    fn variants(&self) -> Result<Vec<VariantSpec>> {
        let default = [pagetide_kernel::defaults()[1].to_string()];
        let kernels: &[String] = if self.kernel.is_empty() {
            &default
        } else {
            &self.kernel
        };
        let of = |kernel: &String| VariantSpec {
            name: String::new(),
            kernel: kernel.clone(),
            boot: self.boot.clone(),
            settings: self.set.iter().cloned().collect(),
        };
        let mut variants: Vec<VariantSpec> = kernels.iter().map(of).collect();
        for change in &self.vs {
            let mut variant = of(change.kernel.as_ref().unwrap_or(&kernels[0]));
            variant.name = change.name.clone().unwrap_or_default();
            variant.boot.extend(change.boot.iter().cloned());
            variant.settings.extend(change.settings.iter().cloned());
            variants.push(variant);
        }
        name_variants(&mut variants)?;
        Ok(variants)
    }
}

/// Gives each variant without a name one that says what sets it apart from the others.
fn name_variants(variants: &mut [VariantSpec]) -> Result<()> {
    let all = variants.to_vec();
    let kernels_differ = all.iter().any(|v| v.kernel != all[0].kernel);
    for (place, variant) in variants.iter_mut().enumerate() {
        if variant.name.is_empty() {
            let mut parts = Vec::new();
            if kernels_differ {
                parts.push(short(&variant.kernel));
            }
            // What all variants have tells none apart.
            let is_shared = |name: &String, value: &String| {
                all.iter()
                    .all(|other| other.settings.get(name) == Some(value))
            };
            for (name, value) in &variant.settings {
                if !is_shared(name, value) {
                    let name = name.rsplit('.').next().unwrap_or(name);
                    parts.push(format!("{name}={value}"));
                }
            }
            for argument in &variant.boot {
                if !all.iter().all(|other| other.boot.contains(argument)) {
                    parts.push(argument.clone());
                }
            }
            if parts.is_empty() {
                parts.push(if place == 0 { "base" } else { "again" }.to_owned());
            }
            variant.name = parts.join(" ").replace([':', ',', '\n'], "-");
        }
        let twice = all[..place].iter().any(|other| other.name == variant.name);
        if !all[place].name.is_empty() && twice {
            return Err(Usage::error(format!(
                "two variants are called `{}`: give each a name of its own with name=",
                variant.name
            )));
        }
    }
    // Names made here may coincide, as of the same kernel given twice: numbers tell them apart.
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

/// A kernel's name without what all of its kind begin with.
fn short(kernel: &str) -> String {
    for prefix in ["debian:", "deb:"] {
        if let Some(rest) = kernel.strip_prefix(prefix) {
            return rest.to_owned();
        }
    }
    let path = kernel.strip_prefix("image:").unwrap_or(kernel);
    let path = path.split(',').next().unwrap_or(path);
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
        .to_owned()
}

/// A campaign's name: its scenarios, and a few digits that stand for all else but the number of seeds.
fn name_of(campaign: &Campaign) -> String {
    let text = serde_json::to_vec(campaign).unwrap_or_default();
    let digits = hex(&Sha256::digest(text)[..3]);
    let names: Vec<String> = campaign
        .scenarios
        .iter()
        .map(|scenario| {
            let plain = scenario.name.split(['(', ':']).next().unwrap_or_default();
            plain.trim().to_owned()
        })
        .collect();
    let mut name = names.join("-");
    name.truncate(80);
    format!("{name}-{digits}")
}

/// Refuses a setting that is a slip of a known one.
fn check_settings(campaign: &Campaign, vocabulary: &Vocabulary) -> Result<()> {
    for name in campaign.variants.iter().flat_map(|v| v.settings.keys()) {
        if vocabulary.settings.contains(name) {
            continue;
        }
        let near = vocabulary
            .settings
            .iter()
            .find(|known| strsim::damerau_levenshtein(name, known) <= 2);
        if let Some(near) = near {
            return Err(Usage::error(format!(
                "there is no setting `{name}`: did you mean `{near}`?"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &CampaignArgs) -> Vec<String> {
        let variants = args.variants().unwrap();
        variants.into_iter().map(|variant| variant.name).collect()
    }

    fn pairs(text: &str) -> Vec<(String, String)> {
        vec![pair(text).unwrap()]
    }

    #[test]
    fn kernels_become_variants_named_after_them() {
        let args = CampaignArgs {
            kernel: ["debian:bookworm", "/b/linux-6.9/", "image:/x/bz,modules:/m"]
                .map(str::to_owned)
                .to_vec(),
            set: pairs("vm.swappiness=1"),
            ..CampaignArgs::default()
        };
        assert_eq!(names(&args), ["bookworm", "linux-6.9", "bz"]);
    }

    #[test]
    fn a_setting_against_another_names_both_by_it() {
        let args = CampaignArgs {
            set: pairs("lru_gen/enabled=0"),
            vs: vec![
                Change::read("lru_gen/enabled=7").unwrap(),
                Change::read("name=swappy,vm.swappiness=200").unwrap(),
            ],
            ..CampaignArgs::default()
        };
        assert_eq!(
            names(&args),
            ["lru_gen/enabled=0", "lru_gen/enabled=7", "swappy"]
        );
        let variants = args.variants().unwrap();
        assert_eq!(variants[2].settings["lru_gen/enabled"], "0");
        assert_eq!(variants[2].settings["vm.swappiness"], "200");
    }

    #[test]
    fn commas_within_a_kernels_name_stay_there() {
        let change = Change::read("kernel=image:/x,modules:/m,vm.swappiness=1").unwrap();
        assert_eq!(change.kernel.as_deref(), Some("image:/x,modules:/m"));
        assert_eq!(change.settings, pairs("vm.swappiness=1"));
        assert!(Change::read("zram").is_err());
    }

    #[test]
    fn the_same_kernel_twice_makes_two_variants() {
        let args = CampaignArgs {
            kernel: vec!["debian:sid".into(); 2],
            ..CampaignArgs::default()
        };
        assert_eq!(names(&args), ["base", "again"]);
        let args = CampaignArgs {
            kernel: vec!["debian:sid".into(); 3],
            ..CampaignArgs::default()
        };
        assert_eq!(names(&args), ["base", "again", "again (2)"]);
    }

    #[test]
    fn more_seeds_are_the_same_campaign_and_another_setting_is_not() {
        let vocabulary = crate::vocabulary::vocabulary();
        let name = |args: &CampaignArgs| {
            let scenarios = ["linear".to_owned()];
            args.campaign(&scenarios, &vocabulary).unwrap().name
        };
        let some = CampaignArgs::default();
        let more = CampaignArgs {
            seeds: Some(40),
            ..CampaignArgs::default()
        };
        let other = CampaignArgs {
            set: pairs("vm.swappiness=1"),
            ..CampaignArgs::default()
        };
        assert_eq!(name(&some), name(&more));
        assert_ne!(name(&some), name(&other));
        assert!(is_campaign_name(&name(&some)));
    }
}
