//! A campaign made of a command line: scenarios, and the variants that kernels and settings amount to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use pagetide_arena::VariantSpec;
use pagetide_campaign::{
    Campaign, DEFAULT_CAP, DEFAULT_SEEDS, DEFAULT_SOURCE, Observe, Sampling, ScenarioSpec, Until,
    VariantChange, Vocabulary, built_kernel, pair, screening, variants, without_spaces,
};
use pagetide_quantity::Bytes;
use pagetide_record::{ArenaKind, FilesSpec, MemorySpec, SwapSpec};
use pagetide_source::Series;
use pagetide_store::is_campaign_name;

use crate::command::compare::AcceptArgs;
use crate::exit::Usage;

/// Name of the variant with the patches of `--patch`.
pub const PATCHED: &str = "patched";
/// Name of the variant that has a nop in their place.
pub const CONTROL: &str = "control";

/// What a command line may say of a campaign.
#[derive(Args, Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
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
    /// One more variant: the first one with these settings changed; also kernel=K, patch=FILE, boot=ARG
    /// and name=NAME
    #[arg(long, value_name = "KEY=VALUE[,…]", help_heading = "What is compared")]
    pub vs: Vec<VariantChange>,
    /// Patch to be judged: a file, a mailbox or a folder; several make one series. Builds the source
    /// with and without it
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "kernel",
        help_heading = "What is compared"
    )]
    pub patch: Vec<String>,
    /// Judge every beginning of the series: the first patch, the first two, and so on
    #[arg(long, requires = "patch", help_heading = "What is compared")]
    pub each: bool,
    /// Source that is built: debian:6.12, debian:SUITE/SERIES, or a git tree as DIR or DIR@REVISION
    /// [default with patches: debian:6.12]
    #[arg(
        long,
        value_name = "SOURCE",
        conflicts_with = "kernel",
        help_heading = "What is compared"
    )]
    pub source: Option<String>,
    /// Options of the built kernels' configuration, set beside our own
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "kernel",
        help_heading = "What is compared"
    )]
    pub config: Option<String>,
    /// Leave out the control: the source with a nop in the patch's place, which shows what moving code alone does
    #[arg(long, requires = "patch", help_heading = "What is compared")]
    pub no_control: bool,
    /// Parameter of the scenario, such as pages=2*memory; several values of one make a matrix
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = pair, help_heading = "Workload")]
    pub param: Vec<(String, String)>,
    /// Memory free to the workload, or total:SIZE for the whole machine [default: the scenario's, 64M
    /// for most]
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub memory: Vec<MemorySpec>,
    /// Where to swap to: zram, ssd, ssd:LATENCY, disk[:SEEK][,RATE] (such as disk:8ms,40MB/s) or none [default: zram]
    #[arg(long, value_name = "KIND", help_heading = "Workload")]
    pub swap: Vec<SwapSpec>,
    /// Size of the swap device [default: three times the memory]
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub swap_size: Option<Bytes>,
    /// What files lie on, where the scenario has some: ssd, or disk[:SEEK][,RATE] such as disk:8ms,20MB/s [default: ssd]
    #[arg(long, value_name = "KIND", help_heading = "Workload")]
    pub files_on: Option<FilesSpec>,
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
    /// Seeds for each variant [default: 8, or as many as the primary metrics need]
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
    /// Sizes of memory, with commas between: the same question at each, and whether the effect holds
    #[arg(
        long,
        value_name = "SIZE,SIZE[,…]",
        value_delimiter = ',',
        conflicts_with_all = ["memory", "scale"],
        help_heading = "Workload"
    )]
    pub sizes: Vec<MemorySpec>,
    #[command(flatten)]
    pub accept: AcceptArgs,
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

impl CampaignArgs {
    /// Names of options that a campaign file decides itself.
    pub fn of_the_file(&self) -> Option<&'static str> {
        [
            (!self.kernel.is_empty(), "--kernel"),
            (!self.set.is_empty(), "--set"),
            (!self.boot.is_empty(), "--boot"),
            (!self.vs.is_empty(), "--vs"),
            (!self.patch.is_empty(), "--patch"),
            (self.source.is_some(), "--source"),
            (self.config.is_some(), "--config"),
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
        campaign.accept.extend(self.accept.accept.iter().cloned());
        for scenario in &mut campaign.scenarios {
            if !self.memory.is_empty() {
                scenario.memory.clone_from(&self.memory);
            }
            if !self.sizes.is_empty() {
                scenario.memory.clone_from(&self.sizes);
            }
            if !self.swap.is_empty() {
                scenario.swap.clone_from(&self.swap);
            }
            scenario.swap_size = self.swap_size.or(scenario.swap_size);
            scenario.files_on = self.files_on.unwrap_or(scenario.files_on);
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
            accept: Vec::new(),
        };
        campaign.observe = Observe::unless_told(campaign.variants.len());
        check_settings(&campaign, vocabulary)?;
        campaign.name = self.named(campaign.name_by_content())?;
        self.adjust(&mut campaign);
        Ok(campaign)
    }

    /// The campaign for a patch whose author names no scenario.
    pub fn screening(&self, vocabulary: &Vocabulary) -> Result<Campaign> {
        if !self.param.is_empty() || self.as_written || self.scale.is_some() {
            return Err(Usage::error(
                "--param, --as-written and --scale are of one scenario: name it",
            ));
        }
        let mut campaign = screening(vocabulary)?;
        campaign.variants = self.variants()?;
        campaign.observe = Observe::unless_told(campaign.variants.len());
        check_settings(&campaign, vocabulary)?;
        // A name made of five scenarios' names tells nobody anything.
        let content = campaign.name_by_content();
        let digits = content.rsplit('-').next().unwrap_or_default();
        campaign.name = self.named(format!("screening-{digits}"))?;
        self.adjust(&mut campaign);
        Ok(campaign)
    }

    /// The name that was given, or this one.
    fn named(&self, otherwise: String) -> Result<String> {
        match &self.name {
            None => Ok(otherwise),
            Some(name) if is_campaign_name(name) => Ok(name.clone()),
            Some(name) => Err(Usage::error(format!(
                "`{name}` cannot name a campaign: use letters, digits, hyphens and underscores, beginning with a letter \
                 or digit"
            ))),
        }
    }

    fn until(&self) -> Until {
        if self.until_sure {
            Until::Sure {
                cap: self.seeds.unwrap_or(DEFAULT_CAP),
                looks: Vec::new(),
            }
        } else {
            self.seeds
                .map_or(Until::Enough(DEFAULT_SEEDS), Until::Blocks)
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
            files_on: self.files_on.unwrap_or_default(),
            primary: None,
            margins: BTreeMap::new(),
        })
    }

    /// Whether the first variant is built from source.
    fn is_built(&self) -> bool {
        let patched = |change: &VariantChange| change.has_patches();
        !self.patch.is_empty()
            || self.source.is_some()
            || self.config.is_some()
            || self.vs.iter().any(patched)
    }

    fn variants(&self) -> Result<Vec<VariantSpec>> {
        let wrong = |taken: pagetide_campaign::NameTaken| Usage::error(taken.to_string());
        if !self.is_built() {
            let default = [pagetide_kernel::defaults()[1].to_string()];
            let kernels = if self.kernel.is_empty() {
                &default[..]
            } else {
                &self.kernel
            };
            return variants(kernels, &self.boot, &self.set, &self.vs).map_err(wrong);
        }
        if let Some(kernel) = self.kernel.first() {
            return Err(Usage::error(format!(
                "--vs patch= puts a patch on a source, and {kernel} is a kernel: name a source with --source instead"
            )));
        }
        let source = self.source.as_deref().unwrap_or(DEFAULT_SOURCE);
        let built = |patches: &[String]| built_kernel(source, self.config.as_deref(), patches);
        let mut changes = Vec::new();
        if self.each {
            let paths: Vec<PathBuf> = self.patch.iter().map(PathBuf::from).collect();
            let all = Series::read(&paths)?.patches.len();
            changes.extend((1..all).map(|count| {
                let kernel = format!("{},first:{count}", built(&self.patch));
                VariantChange::on(&format!("first-{count}"), kernel)
            }));
        }
        if !self.patch.is_empty() {
            changes.push(VariantChange::patched(PATCHED, &self.patch));
        }
        changes.extend(self.vs.iter().cloned());
        if !self.patch.is_empty() && !self.no_control {
            let control = format!("{},control", built(&self.patch));
            changes.push(VariantChange::on(CONTROL, control));
        }
        variants(&[built(&[])], &self.boot, &self.set, &changes).map_err(wrong)
    }
}

/// Refuses a setting that is a slip of a known one.
fn check_settings(campaign: &Campaign, vocabulary: &Vocabulary) -> Result<()> {
    for name in campaign.variants.iter().flat_map(|v| v.settings.keys()) {
        if let Some(near) = vocabulary.setting_meant(name) {
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
            set: vec![pair("vm.swappiness=1").unwrap()],
            ..CampaignArgs::default()
        };
        assert_eq!(name(&some), name(&more));
        assert_ne!(name(&some), name(&other));
        assert!(is_campaign_name(&name(&some)));
    }
}
