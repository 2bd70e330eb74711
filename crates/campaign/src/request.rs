//! Converts a command line to a campaign: scenarios, and variants defined by kernels, patches and settings.

mod adjustment;
mod error;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pagetide_arena::VariantSpec;
use pagetide_quantity::{Bytes, hint};
use pagetide_record::{ArenaKind, CpusSpec, FilesSpec, MemorySpec, NodesSpec, TraceRing};
use pagetide_store::is_campaign_name;

use crate::campaign::{Campaign, Observe, Sampling, ScenarioSpec};
use crate::file::{self, Vocabulary, plain_name, without_spaces};
use crate::host::{self};
use crate::program::{PROGRAM, ProgramPlace, ProgramSpec, WORKLOAD};
use crate::swaps::CellSwap;
use crate::variants::{DEFAULT_SOURCE, VariantChange, built_kernel, variants};
use crate::vary::{Vary, check_swap, crossed};

pub use adjustment::Adjustment;
pub use error::RequestError;

/// Name of the variant with the compared patches.
pub const PATCHED: &str = "patched";
/// Name of the variant that has a nop in place of the compared patches.
pub const CONTROL: &str = "control";

/// Word given in place of a campaign file for the zoo: all files of cases worth watching on every new kernel.
const ZOO: &str = "zoo";
/// Kernels on which the zoo runs if the command line defines no variants.
const ZOO_KERNELS: [&str; 3] = ["debian:bookworm", "debian:bookworm/6.12", "debian:sid"];

/// source without patches.
const SCREENING: &str = include_str!("../../../campaigns/screening.toml");

/// Options of a command line that define a campaign.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Names of kernels; a variant for each.
    pub kernels: Vec<String>,
    /// Settings of every variant, as name and value.
    pub settings: Vec<(String, String)>,
    /// Boot arguments of every variant.
    pub boot: Vec<String>,
    /// Variants in addition to the kernels, each defined by its changes to the first variant.
    pub changes: Vec<VariantChange>,
    /// Keys with several values. Every combination is a variant, or a cell if the key is not an attribute of variants.
    pub vary: Vec<Vary>,
    /// Paths of the patch files to compare, or of folders with patch files.
    pub patches: Vec<String>,
    /// Number of patches in the series, if every prefix of the series is compared; else `None`.
    pub each: Option<usize>,
    /// Source from which kernels are built; `None` for the default.
    pub source: Option<String>,
    /// Path of a file with kernel options for the build.
    pub config: Option<String>,
    /// True if the control variant of a patch is left out.
    pub no_control: bool,
    /// File with the workload of the scenario `workload`; `None` if it is not given.
    pub workload: Option<PathBuf>,
    /// Names and values of the scenarios' parameters. A name may occur several times, which makes a matrix.
    pub params: Vec<(String, String)>,
    /// True if scenarios run as the papers wrote them, including the originals' faults.
    pub as_written: bool,
    /// Scale of the memory, as a share of the memory of the original's machine; `None` for the default size.
    pub scale: Option<f64>,
    /// Name of the campaign; `None` to derive it from the content.
    pub name: Option<String>,
    /// Options that are also allowed together with a campaign file.
    pub adjustment: Adjustment,
}

impl Request {
    /// Creates the campaign for `what`: a campaign file, names of scenarios, the word `zoo`, or an empty list for the
    /// screening of a patch. If no number of seeds is given, the campaign has as many as its primary metrics need.
    pub fn campaign(
        &self,
        what: &[String],
        vocabulary: &Vocabulary,
    ) -> Result<Campaign, RequestError> {
        let me = self.with_cells(false)?;
        me.whole_campaign(what, vocabulary)
    }

    /// Returns a copy of the request in which each varied key that is not an attribute of variants is a list of values,
    /// which makes cells. `limit` is a parameter of the user's own program (`is_program`); for any other workload it
    /// belongs to a cgroup around the workload.
    fn with_cells(&self, is_program: bool) -> Result<Self, RequestError> {
        let mut me = self.clone();
        for vary in std::mem::take(&mut me.vary) {
            for value in &vary.values {
                let wrong = |why: String| RequestError::Vary {
                    key: vary.key.clone(),
                    value: value.clone(),
                    why,
                };
                match vary.key.as_str() {
                    "memory" => {
                        let memory: Result<MemorySpec, _> = value.parse();
                        let memory = memory.map_err(|e| wrong(e.to_string()))?;
                        me.adjustment.memory.push(memory);
                    }
                    "cpus" => {
                        let cpus: Result<CpusSpec, _> = value.parse();
                        let cpus = cpus.map_err(|e| wrong(e.to_string()))?;
                        me.adjustment.cpus.push(cpus);
                    }
                    "limit" => {
                        let limit: Result<Bytes, _> = value.parse();
                        let limit = limit.map_err(|e| wrong(e.to_string()))?;
                        if is_program {
                            me.params.push((vary.key.clone(), limit.0.to_string()));
                        } else {
                            me.adjustment.limit.push(limit);
                        }
                    }
                    key => check_swap(key, value).map_err(wrong)?,
                }
            }
            if !matches!(vary.key.as_str(), "memory" | "limit" | "cpus") {
                me.vary.push(vary);
            }
        }
        Ok(me)
    }

    fn whole_campaign(
        &self,
        what: &[String],
        vocabulary: &Vocabulary,
    ) -> Result<Campaign, RequestError> {
        no_loose_value(what)?;
        let is_file = |word: &&String| {
            let ending = Path::new(word.as_str()).extension();
            ending.is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
        };
        let mut campaign = match (what, what.iter().find(is_file).cloned()) {
            ([], _) => self.screening(vocabulary)?,
            ([word], None) if word == ZOO => self.zoo(vocabulary)?,
            (_, None) => self.of_scenarios(what, vocabulary)?,
            ([_], Some(path)) => {
                let mut campaign = file::read_at(Path::new(&path), self.scale, vocabulary)?;
                // A case (a described workload) cannot be combined with other scenarios, but may be run against any
                // kernel or patch.
                let is_case = campaign.scenarios.iter().any(|own| own.name == WORKLOAD);
                if let Some(option) = self.beyond_adjustment(is_case) {
                    return Err(RequestError::InTheFile { option, path });
                }
                self.adjustment.apply(&mut campaign, vocabulary);
                if self.has_variants() {
                    campaign.variants = self.variants(vocabulary)?;
                    campaign.observe = Observe::default_for(campaign.variants.len());
                    self.adjustment.apply(&mut campaign, vocabulary);
                    let content = campaign.name_by_content();
                    let digits = content.rsplit('-').next().unwrap_or_default();
                    campaign.name = self.named(format!("{}-{digits}", campaign.name))?;
                }
                campaign
            }
            (_, Some(path)) => return Err(RequestError::NotAlone { path }),
        };
        self.finish(&mut campaign, vocabulary)?;
        Ok(campaign)
    }

    /// Moves the campaign to the requested arena, sets the host arena's primary metrics there, checks the kinds of
    /// swap, and sets the number of seeds that the primary metrics need.
    fn finish(&self, campaign: &mut Campaign, vocabulary: &Vocabulary) -> Result<(), RequestError> {
        if self.adjustment.arena == Some(ArenaKind::Host)
            && let Some(option) = self.of_kernels()
        {
            return Err(RequestError::RunningKernel { option });
        }
        self.adjustment.move_to_arena(campaign)?;
        if campaign.arena == ArenaKind::Host {
            host::suit(campaign, vocabulary, self.adjustment.observe);
        }
        campaign.check_swap()?;
        campaign.enough(vocabulary);
        Ok(())
    }

    /// Returns the name of the first given option that chooses or changes a kernel; `None` if no such option is given.
    fn of_kernels(&self) -> Option<&'static str> {
        let given = [
            (!self.kernels.is_empty(), "--kernel"),
            (!self.boot.is_empty(), "--boot"),
            (!self.patches.is_empty(), "--patch"),
            (self.source.is_some(), "--source"),
            (self.config.is_some(), "--config"),
        ];
        given
            .into_iter()
            .find_map(|(given, name)| given.then_some(name))
    }

    /// Creates the campaign for a user's own program; fails if `what` names a scenario.
    pub fn of_program(
        mut self,
        what: &[String],
        spec: &ProgramSpec,
        place: &ProgramPlace,
        vocabulary: &Vocabulary,
    ) -> Result<Campaign, RequestError> {
        no_loose_value(what)?;
        if let Some(word) = what.first().cloned() {
            return Err(RequestError::BesideProgram { word });
        }
        self = self.with_cells(true)?;
        self.params.extend(spec.params(place)?);
        let mut campaign = self.of_scenarios(&[PROGRAM.to_owned()], vocabulary)?;
        for scenario in &mut campaign.scenarios {
            scenario.primary = spec.primary(!place.beside.is_empty());
        }
        self.finish(&mut campaign, vocabulary)?;
        Ok(campaign)
    }

    /// Returns the name of the first option given that cannot be combined with a campaign file; `None` if there is
    /// none. `is_case` is true for a file that describes its own workload, with which options for variants are allowed.
    fn beyond_adjustment(&self, is_case: bool) -> Option<&'static str> {
        let of_variants = self.of_variants().into_iter().filter(|_| !is_case);
        of_variants
            .chain([
                (!self.params.is_empty(), "--param"),
                (self.workload.is_some(), "--workload"),
                (self.as_written, "--as-written"),
                (
                    self.name.is_some() && !(is_case && self.has_variants()),
                    "--name",
                ),
            ])
            .find_map(|(given, name)| given.then_some(name))
    }

    /// Returns the options that define variants: for each, true if it is given, and its name.
    fn of_variants(&self) -> [(bool, &'static str); 8] {
        [
            (!self.kernels.is_empty(), "--kernel"),
            (!self.settings.is_empty(), "--set"),
            (!self.boot.is_empty(), "--boot"),
            (!self.changes.is_empty(), "--vs"),
            (!self.vary.is_empty(), "--vary"),
            (!self.patches.is_empty(), "--patch"),
            (self.source.is_some(), "--source"),
            (self.config.is_some(), "--config"),
        ]
    }

    /// True if an option defines variants.
    fn has_variants(&self) -> bool {
        self.of_variants().iter().any(|(given, _)| *given)
    }

    /// Creates the campaign of all files of the zoo on the given variants, or on three Debian kernels if no variants
    /// are given.
    fn zoo(&self, vocabulary: &Vocabulary) -> Result<Campaign, RequestError> {
        let scenarios = crate::zoo::scenarios(vocabulary)?;
        let request = if self.has_variants() {
            self.clone()
        } else {
            Self {
                kernels: ZOO_KERNELS.map(str::to_owned).to_vec(),
                ..self.clone()
            }
        };
        let mut campaign = request.of_scenarios(&[], vocabulary)?;
        campaign.scenarios = scenarios;
        let content = campaign.name_by_content();
        let digits = content.rsplit('-').next().unwrap_or_default();
        campaign.name = self.named(format!("{ZOO}-{digits}"))?;
        self.adjustment.apply(&mut campaign, vocabulary);
        Ok(campaign)
    }

    /// Creates the campaign for the scenarios with these names.
    pub fn of_scenarios(
        &self,
        scenarios: &[String],
        vocabulary: &Vocabulary,
    ) -> Result<Campaign, RequestError> {
        let mut campaign = Campaign {
            name: String::new(),
            arena: ArenaKind::Exact,
            seed: 1,
            variants: self.variants(vocabulary)?,
            scenarios: scenarios
                .iter()
                .map(|name| self.scenario(name, vocabulary))
                .collect::<Result<_, _>>()?,
            sampling: Sampling::default(),
            observe: Observe::None,
            profile: Observe::None,
            references: false,
            trace_ring: TraceRing::default(),
            accept: Vec::new(),
        };
        campaign.observe = Observe::default_for(campaign.variants.len());
        campaign.profile = self.default_profile();
        campaign.name = self.named(campaign.name_by_content())?;
        self.adjustment.apply(&mut campaign, vocabulary);
        Ok(campaign)
    }

    /// Creates the campaign for comparing a patch when no scenario is named.
    fn screening(&self, vocabulary: &Vocabulary) -> Result<Campaign, RequestError> {
        if !self.params.is_empty() || self.as_written || self.scale.is_some() {
            return Err(RequestError::NoScenario);
        }
        let mut campaign = file::parse("campaigns/screening.toml", SCREENING, vocabulary)?;
        campaign.variants = self.variants(vocabulary)?;
        campaign.observe = Observe::default_for(campaign.variants.len());
        campaign.profile = self.default_profile();
        // The name does not list the five scenarios, because it would be too long to be useful.
        let content = campaign.name_by_content();
        let digits = content.rsplit('-').next().unwrap_or_default();
        campaign.name = self.named(format!("screening-{digits}"))?;
        self.adjustment.apply(&mut campaign, vocabulary);
        Ok(campaign)
    }

    /// Trials that run a profiled pass if the user does not state any: those of the first seed if patches are
    /// compared, because only a profiled pass shows which of the changed lines were executed. None with several CPUs,
    /// whose instructions are not counted.
    fn default_profile(&self) -> Observe {
        let has_several = self.adjustment.cpus.iter().any(|cpus| cpus.are_several());
        if self.patches.is_empty() || has_several {
            Observe::None
        } else {
            Observe::Seeds(1)
        }
    }

    /// Returns the campaign name given in the request, or `otherwise` if there is none. Fails if the name is not
    /// allowed.
    fn named(&self, otherwise: String) -> Result<String, RequestError> {
        match self.name.clone() {
            None => Ok(otherwise),
            Some(name) if is_campaign_name(&name) => Ok(name),
            Some(name) => Err(RequestError::BadName { name }),
        }
    }

    fn scenario(&self, name: &str, vocabulary: &Vocabulary) -> Result<ScenarioSpec, RequestError> {
        let Some(words) = vocabulary.scenario(name) else {
            let known = vocabulary.scenarios.keys().map(String::as_str);
            return Err(RequestError::UnknownScenario {
                name: name.to_owned(),
                hint: hint(
                    plain_name(name),
                    known,
                    "`pagetide list scenarios` shows all",
                ),
            });
        };
        let memory = match self.scale {
            None => self.adjustment.memory.clone(),
            Some(scale) if scale.is_finite() && scale > 0.0 => {
                // Rounded up to whole mebibytes, so that the size can be given on a command line.
                let memory = words.original_memory.times(scale).0;
                vec![MemorySpec::Free(Bytes(memory.next_multiple_of(1 << 20)))]
            }
            Some(scale) => return Err(RequestError::BadScale { scale }),
        };
        let mut params: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in &self.params {
            let values = params.entry(key.clone()).or_default();
            let same = |other: &String| without_spaces(other) == without_spaces(value);
            if values.iter().any(same) {
                return Err(RequestError::SameValue {
                    key: key.clone(),
                    value: value.clone(),
                });
            }
            values.push(value.clone());
        }
        let mut spec = ScenarioSpec {
            name: name.to_owned(),
            as_written: self.as_written,
            params,
            memory,
            nodes: NodesSpec::default(),
            limit: self.adjustment.limit.clone(),
            swap: self.adjustment.swap.clone(),
            swap_size: self.adjustment.swap_size,
            files_on: self.adjustment.files(FilesSpec::default()),
            cpus: self.adjustment.cpus.clone(),
            primary: None,
            margins: BTreeMap::new(),
            program: None,
            takes: None,
        };
        if let (WORKLOAD, Some(path)) = (name, &self.workload) {
            let (case, workload) = file::read_workload(path)?;
            spec.describe(&case, &workload);
            if let Some(machine) = &workload.machine {
                spec.on_machine(machine);
            }
        }
        Ok(spec)
    }

    /// True if the first variant's kernel is built from source.
    fn is_built(&self) -> bool {
        !self.patches.is_empty()
            || self.source.is_some()
            || self.config.is_some()
            || self.changes.iter().any(VariantChange::has_patches)
    }

    /// Creates the variants. Fails if a setting's name is probably misspelt.
    fn variants(&self, vocabulary: &Vocabulary) -> Result<Vec<VariantSpec>, RequestError> {
        let swap = self.cell_swap();
        let all = if self.is_built() {
            self.built_variants()?
        } else if self.kernels.is_empty() {
            let kernels = [vocabulary.kernel.clone()];
            variants(&kernels, &self.boot, &self.settings, &self.changes, &swap)?
        } else {
            let kernels = &self.kernels;
            variants(kernels, &self.boot, &self.settings, &self.changes, &swap)?
        };
        let all = crossed(all, &self.vary.iter().collect::<Vec<_>>(), &swap)?;
        for name in all.iter().flat_map(|variant| variant.settings.keys()) {
            if let Some(near) = vocabulary.setting_meant(name) {
                let name = name.clone();
                return Err(RequestError::UnknownSetting { name, near });
            }
        }
        Ok(all)
    }

    /// Creates the variants for a source: without patches, with every shorter prefix of the series if requested, with
    /// all patches, those of `changes`, and the control.
    fn built_variants(&self) -> Result<Vec<VariantSpec>, RequestError> {
        if let Some(kernel) = self.kernels.first().cloned() {
            return Err(RequestError::NoSource { kernel });
        }
        let source = self.source.as_deref().unwrap_or(DEFAULT_SOURCE);
        let built = |patches: &[String]| built_kernel(source, self.config.as_deref(), patches);
        let mut changes: Vec<VariantChange> = (1..self.each.unwrap_or(1))
            .map(|count| {
                let kernel = format!("{},first:{count}", built(&self.patches));
                VariantChange::on(&format!("first-{count}"), kernel)
            })
            .collect();
        if !self.patches.is_empty() {
            changes.push(VariantChange::patched(PATCHED, &self.patches));
        }
        changes.extend(self.changes.iter().cloned());
        if !self.patches.is_empty() && !self.no_control {
            let control = format!("{},control", built(&self.patches));
            changes.push(VariantChange::on(CONTROL, control));
        }
        Ok(variants(
            &[built(&[])],
            &self.boot,
            &self.settings,
            &changes,
            &self.cell_swap(),
        )?)
    }

    /// Returns the kind and size of swap for variants that do not have their own: the first kind given.
    fn cell_swap(&self) -> CellSwap {
        CellSwap {
            kind: self.adjustment.swap.first().copied().unwrap_or_default(),
            size: self.adjustment.swap_size,
        }
    }
}

/// Refuses a value of `--observe` or `--profile` among the names of scenarios, which no scenario has.
fn no_loose_value(what: &[String]) -> Result<(), RequestError> {
    match what.iter().find(|word| word.parse::<Observe>().is_ok()) {
        Some(word) => Err(RequestError::LooseValue { word: word.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::ScenarioWords;
    use crate::variants::pair;

    fn vocabulary() -> Vocabulary {
        let words = ScenarioWords {
            original_memory: Bytes::from_mib(1000),
            default_memory: Bytes::from_mib(64),
            ..ScenarioWords::default()
        };
        Vocabulary {
            kernel: "debian:sid".to_owned(),
            scenarios: [("linear".to_owned(), words)].into(),
            settings: vec!["vm.swappiness".to_owned()],
            ..Vocabulary::default()
        }
    }

    fn campaign(request: &Request) -> Result<Campaign, RequestError> {
        request.campaign(&["linear".to_owned()], &vocabulary())
    }

    #[test]
    fn more_seeds_are_the_same_campaign_and_another_setting_is_not() {
        let name = |request: &Request| campaign(request).unwrap().name;
        let some = Request::default();
        let mut more = Request::default();
        more.adjustment.seeds = Some(40);
        let other = Request {
            settings: vec![pair("vm.swappiness=1").unwrap()],
            ..Request::default()
        };
        assert_eq!(name(&some), name(&more));
        assert_ne!(name(&some), name(&other));
        assert!(is_campaign_name(&name(&some)));
    }

    #[test]
    fn a_scale_chooses_whole_mebibytes_of_memory() {
        let request = Request {
            scale: Some(0.0705),
            ..Request::default()
        };
        let memory = &campaign(&request).unwrap().scenarios[0].memory;
        assert_eq!(memory[..], [MemorySpec::Free(Bytes::from_mib(71))]);
        let request = Request {
            scale: Some(-1.0),
            ..Request::default()
        };
        let why = campaign(&request).unwrap_err().to_string();
        assert_eq!(why, "--scale -1 is no size: give a number above 0");
    }

    #[test]
    fn a_series_is_judged_by_its_beginnings_as_a_whole_and_beside_a_control() {
        let request = Request {
            patches: vec!["s.mbox".to_owned()],
            each: Some(3),
            ..Request::default()
        };
        let variants = campaign(&request).unwrap().variants;
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["base", "first-1", "first-2", PATCHED, CONTROL]);
        assert_eq!(
            variants[2].kernel,
            "source:debian:6.12,patch:s.mbox,first:2"
        );
    }

    #[test]
    fn what_is_varied_makes_variants_and_what_is_of_no_variant_makes_cells() {
        let request = Request {
            vary: [
                "vm.swappiness=10,60,150",
                "swap=zram,ssd",
                "memory=16M,24M",
                "limit=8M,9M",
            ]
            .map(|text| text.parse().unwrap())
            .into(),
            ..Request::default()
        };
        let made = campaign(&request).unwrap();
        let names: Vec<&str> = made.variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names.len(), 6);
        assert_eq!(names[..2], ["swappiness=10 zram", "swappiness=10 ssd"]);
        let labels: Vec<String> = made.cells().map(|cell| cell.label()).collect();
        assert_eq!(labels[0], "linear · 8M of 16M", "the kind is compared");
        assert_eq!(labels.len(), 4);
        let wrong = Request {
            vary: vec!["swap=zram,tape".parse().unwrap()],
            ..Request::default()
        };
        let why = campaign(&wrong).unwrap_err().to_string();
        assert!(why.contains("--vary swap") && why.contains("tape"), "{why}");
        let wrong = Request {
            vary: vec!["vm.swapiness=1,2".parse().unwrap()],
            ..Request::default()
        };
        let why = campaign(&wrong).unwrap_err().to_string();
        assert!(why.contains("vm.swappiness"), "{why}");
    }

    #[test]
    fn slips_are_refused_with_what_was_meant() {
        let why = |request: &Request| campaign(request).unwrap_err().to_string();
        let setting = Request {
            settings: vec![pair("vm.swapiness=1").unwrap()],
            ..Request::default()
        };
        assert_eq!(
            why(&setting),
            "there is no setting `vm.swapiness`: did you mean `vm.swappiness`?"
        );
        let twice = Request {
            params: vec![
                pair("pages=2*memory").unwrap(),
                pair("pages=2 * memory").unwrap(),
            ],
            ..Request::default()
        };
        assert!(why(&twice).contains("given twice"), "{}", why(&twice));
        let unknown = Request::default().campaign(&["lineer".to_owned()], &vocabulary());
        let unknown = unknown.unwrap_err().to_string();
        assert!(unknown.contains("linear"), "{unknown}");
        for what in [&["linear", "none"][..], &["quick.toml", "3"]] {
            let what: Vec<String> = what.iter().map(|&word| word.to_owned()).collect();
            let loose = Request::default().campaign(&what, &vocabulary());
            let loose = loose.unwrap_err().to_string();
            assert!(loose.contains(&format!("--observe={}", what[1])), "{loose}");
        }
    }
}
