//! Checks the request for a matrix of settings, and chooses factors and kinds of swap.

use pagetide_compare::matrixed::Factor;
use pagetide_record::SwapSpec;
use pagetide_record::swap::SSD_LATENCY;
use pagetide_verdict::factorial::MAX_FACTORS;

use super::{Kind, Matrix};
use crate::campaign::{Campaign, Observe, ScenarioSpec, Until};
use crate::vary::{Vary, check_swap};

/// Default number of seeds.
const SEEDS: u32 = 5;
/// Minimum number of seeds with which a confidence interval is useful.
const MIN_SEEDS: u32 = 3;

/// Default factors: the name of a setting and its two levels. The first level is the default of most kernels, except
/// for swappiness (60).
const FACTORS: [(&str, [&str; 2]); 4] = [
    ("lru_gen/enabled", ["7", "0"]),
    ("vm.swappiness", ["10", "150"]),
    ("vm.page-cluster", ["3", "0"]),
    ("thp/enabled", ["always", "never"]),
];

/// Why a matrix is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// The campaign has several variants or cells.
    #[error(
        "matrix answers for one kernel and one workload at a time, and here are {variants} variants and {cells} cells: give one \
         kernel, no --vs, and one value of each parameter; --vary and --swap say what is tried"
    )]
    Several {
        /// Number of variants given.
        variants: usize,
        /// Number of cells given, not counting kinds of swap.
        cells: usize,
    },
    /// Options were given that plan the runs of a campaign (`--until-sure`, `--observe`). A matrix plans its own runs.
    #[error(
        "--until-sure and --observe cannot be used with matrix, which plans its own runs: leave them out"
    )]
    OwnPlan,
    /// Too few seeds were given.
    #[error("{seeds} seeds are too few to decide anything: give --seeds {MIN_SEEDS} or more")]
    Seeds {
        /// Number of seeds given.
        seeds: u32,
    },
    /// The number of levels given for a factor is not two.
    #[error(
        "matrix tries two values of a setting, and --vary {key} has {values}: give two that are far apart"
    )]
    Levels {
        /// Name of the setting with a wrong number of values.
        key: String,
        /// Number of values given for the setting.
        values: usize,
    },
    /// The key of `--vary` is `memory` or `limit`, which cannot be factors of a matrix.
    #[error("matrix varies settings, boot arguments and kernels, and {key} is none: {remedy}")]
    NoFactor {
        /// The key given with `--vary`.
        key: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The matrix has too many factors.
    #[error(
        "{factors} settings are too many for the design: give at most {MAX_FACTORS}, with --only those of --vary"
    )]
    TooMany {
        /// Number of factors in the matrix.
        factors: usize,
    },
    /// A value given for a varied key cannot be used.
    #[error("--vary {key} cannot have the value `{value}`: {why}")]
    Value {
        /// Name of the varied key.
        key: String,
        /// The value as given.
        value: String,
        /// Reason why the value cannot be used.
        why: String,
    },
    /// A setting is given both as fixed and as varied.
    #[error("{key} is both given for all and varied: leave out one of the two")]
    Fixed {
        /// Name of the setting.
        key: String,
    },
}

/// Options of a matrix, in addition to the campaign.
#[derive(Clone, Debug, Default)]
pub struct MatrixRequest {
    /// Settings to vary in addition to the default factors, or with other levels than the default ones.
    pub vary: Vec<Vary>,
    /// True if only the settings in `vary` are varied, without the default factors.
    pub only: bool,
    /// True if the user named no kernel. pagetide may then switch to a kernel that supports all requested kinds of
    /// swap.
    pub may_choose_kernel: bool,
}

impl MatrixRequest {
    /// Creates the matrix of a campaign, whose only variant has everything common to all runs.
    ///
    /// # Errors
    ///
    /// If the campaign has several variants, several cells besides kinds of swap, a sequential plan, an observed pass
    /// or too few seeds, or if no design exists for the factors.
    pub fn matrix(
        &self,
        mut campaign: Campaign,
        metric: Option<&str>,
    ) -> Result<Matrix, MatrixError> {
        let cells = campaign.scenarios.iter().map(|scenario| {
            let swaps = scenario.swap.len().max(1);
            scenario.cell_count() / swaps
        });
        let (variants, cells) = (campaign.variants.len(), cells.sum());
        if (variants, cells) != (1, 1) {
            return Err(MatrixError::Several { variants, cells });
        }
        let seeds = match campaign.sampling.until {
            Until::Sure { .. } => return Err(MatrixError::OwnPlan),
            Until::Enough(_) => SEEDS,
            Until::Blocks(seeds) if seeds < MIN_SEEDS => {
                return Err(MatrixError::Seeds { seeds });
            }
            Until::Blocks(seeds) => seeds,
        };
        if campaign.observe != Observe::None {
            return Err(MatrixError::OwnPlan);
        }
        let factors = self.factors(&campaign)?;
        let spec = &mut campaign.scenarios[0];
        let swap = factors.iter().find(|factor| factor.key == "swap");
        let is_asked = swap.is_some() || !spec.swap.is_empty();
        let kinds = match swap {
            Some(factor) => vec![kind_of_factor(factor)],
            None => kinds(spec),
        };
        spec.swap = Vec::new();
        for kind in &kinds {
            if !spec.swap.contains(&kind.swap) {
                spec.swap.push(kind.swap);
            }
        }
        Ok(Matrix {
            metric: spec.deciding_metric(metric.unwrap_or_default()).to_owned(),
            kinds,
            factors,
            seeds,
            campaign,
            may_choose_kernel: self.may_choose_kernel && is_asked,
        })
    }

    fn factors(&self, campaign: &Campaign) -> Result<Vec<Factor>, MatrixError> {
        let fixed = &campaign.variants[0].settings;
        let mut factors = Vec::new();
        for (key, levels) in FACTORS {
            let is_varied = self.vary.iter().any(|vary| vary.key == key);
            // A setting with a fixed value in all runs is not varied.
            if !self.only && !is_varied && !fixed.contains_key(key) {
                factors.push(Factor {
                    key: key.to_owned(),
                    levels: levels.map(str::to_owned),
                });
            }
        }
        for vary in &self.vary {
            let key = vary.key.clone();
            if let Some(remedy) = remedy(&key) {
                return Err(MatrixError::NoFactor { key, remedy });
            }
            let spec = &campaign.scenarios[0];
            let is_fixed = match key.as_str() {
                "swap" => !spec.swap.is_empty(),
                "swap-size" => spec.swap_size.is_some(),
                _ => fixed.contains_key(&key),
            };
            if is_fixed {
                return Err(MatrixError::Fixed { key });
            }
            for value in &vary.values {
                check_swap(&key, value).map_err(|why| MatrixError::Value {
                    key: key.clone(),
                    value: value.clone(),
                    why,
                })?;
            }
            match &vary.values[..] {
                [first, second] => factors.push(Factor {
                    key,
                    levels: [first.clone(), second.clone()],
                }),
                values => {
                    let values = values.len();
                    return Err(MatrixError::Levels { key, values });
                }
            }
        }
        if factors.len() > MAX_FACTORS {
            let factors = factors.len();
            return Err(MatrixError::TooMany { factors });
        }
        Ok(factors)
    }
}

/// Returns advice for a key that cannot be a factor; `None` if there is none.
fn remedy(key: &str) -> Option<&'static str> {
    match key {
        "memory" => Some("run a matrix for each --memory"),
        "limit" => Some("run a matrix for each --limit"),
        _ => None,
    }
}

/// Returns the only kind of swap of a design in which swap itself is a factor. Its swap is the factor's first level;
/// its name contains both levels.
fn kind_of_factor(factor: &Factor) -> Kind {
    Kind {
        name: factor.levels.join(" or "),
        swap: factor.levels[0].parse().unwrap_or_default(),
    }
}

/// Returns the kinds of swap: those given in the scenario. By default zram, zswap in front of a solid-state disk, and
/// the solid-state disk alone.
fn kinds(spec: &ScenarioSpec) -> Vec<Kind> {
    let kind = |swap: SwapSpec| Kind {
        name: match swap {
            SwapSpec::Ssd(SSD_LATENCY) => "ssd".to_owned(),
            SwapSpec::ZSWAP => "zswap".to_owned(),
            swap => swap.to_string(),
        },
        swap,
    };
    let usual = [SwapSpec::ZRAM, SwapSpec::ZSWAP, SwapSpec::Ssd(SSD_LATENCY)];
    let named = &spec.swap;
    let all: &[SwapSpec] = if named.is_empty() { &usual } else { named };
    all.iter().map(|swap| kind(*swap)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_arena::VariantSpec;

    fn campaign() -> Campaign {
        Campaign {
            name: "m".to_owned(),
            arena: pagetide_record::ArenaKind::Exact,
            seed: 1,
            variants: vec![VariantSpec::default()],
            scenarios: vec![ScenarioSpec::default()],
            sampling: crate::Sampling::default(),
            observe: Observe::None,
            profile: Observe::None,
            references: false,
            trace_ring: pagetide_record::TraceRing::default(),
            accept: Vec::new(),
        }
    }

    fn request(vary: &[&str], only: bool) -> MatrixRequest {
        MatrixRequest {
            vary: vary.iter().map(|text| text.parse().unwrap()).collect(),
            only,
            may_choose_kernel: true,
        }
    }

    #[test]
    fn the_usual_settings_are_tried_on_three_kinds_of_swap_with_five_seeds() {
        let matrix = request(&[], false)
            .matrix(campaign(), Some("elapsed"))
            .unwrap();
        assert_eq!(
            (matrix.factors.len(), matrix.kinds.len(), matrix.seeds),
            (4, 3, 5)
        );
        let swaps = &matrix.campaign.scenarios[0].swap;
        assert_eq!(swaps[..2], [SwapSpec::ZRAM, SwapSpec::ZSWAP]);
        assert_eq!(swaps.len(), 3);
        let names: Vec<&str> = matrix.kinds.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!(names, ["zram", "zswap", "ssd"]);
        assert_eq!(matrix.metric, "elapsed");
        let mut fixed = campaign();
        fixed.variants[0]
            .settings
            .insert("vm.swappiness".into(), "60".into());
        fixed.scenarios[0].swap = vec![SwapSpec::None];
        fixed.scenarios[0].primary = Some(vec!["ops".to_owned()]);
        let matrix = request(&[], false).matrix(fixed, Some("elapsed")).unwrap();
        assert_eq!((matrix.factors.len(), matrix.kinds.len()), (3, 1));
        assert_eq!(matrix.metric, "ops");
    }

    #[test]
    fn what_is_varied_takes_the_place_of_the_usual_and_may_stand_alone() {
        let keys = |vary: &[&str], only| -> Vec<String> {
            let matrix = request(vary, only).matrix(campaign(), None).unwrap();
            matrix
                .factors
                .into_iter()
                .map(|factor| factor.key)
                .collect()
        };
        assert_eq!(
            keys(&["vm.swappiness=1,60", "boot=a=1,b=2"], true),
            ["vm.swappiness", "boot"]
        );
        assert_eq!(keys(&["vm.swappiness=1,60"], false).len(), 4);
        assert_eq!(keys(&["vm.vfs_cache_pressure=50,200"], false).len(), 5);
    }

    #[test]
    fn swap_is_a_factor_of_one_design_or_a_kind_with_a_design_of_its_own() {
        let vary = ["swap=zram:zstd,zswap+ssd", "swap-size=32M,64M"];
        let matrix = request(&vary, true).matrix(campaign(), None).unwrap();
        assert_eq!(matrix.factors[0].levels, ["zram:zstd", "zswap+ssd"]);
        assert_eq!(matrix.kinds.len(), 1);
        assert_eq!(matrix.kinds[0].name, "zram:zstd or zswap+ssd");
        assert_eq!(
            matrix.campaign.scenarios[0].swap,
            ["zram:zstd".parse().unwrap()]
        );
        assert!(matrix.may_choose_kernel);
        let usual = request(&[], false).matrix(campaign(), None).unwrap();
        assert!(!usual.may_choose_kernel, "nobody asked for zswap");
    }

    #[test]
    fn what_no_design_answers_is_refused() {
        let said = |vary: &[&str], campaign| {
            let refused = request(vary, false).matrix(campaign, None);
            refused.unwrap_err().to_string()
        };
        assert!(said(&["vm.swappiness=1,2,3"], campaign()).contains("two that are far apart"));
        assert!(said(&["swap=zram,tape"], campaign()).contains("`tape` is no kind of swap"));
        assert!(said(&["swap-size=8M,big"], campaign()).contains("--vary swap-size"));
        let mut wrong = campaign();
        wrong.scenarios[0].swap = vec![SwapSpec::ZRAM];
        assert!(said(&["swap=zram,ssd"], wrong).contains("leave out one of the two"));
        assert!(said(&["limit=8M,9M"], campaign()).contains("--limit"));
        let many = ["a=1,2", "b=1,2", "c=1,2", "d=1,2", "e=1,2"];
        assert!(said(&many, campaign()).contains("at most 8"));
        let mut wrong = campaign();
        wrong.sampling.until = Until::Blocks(2);
        assert!(said(&[], wrong).contains("--seeds 3"));
        let mut wrong = campaign();
        wrong.variants.push(VariantSpec::default());
        assert!(said(&[], wrong).contains("no --vs"));
        let mut wrong = campaign();
        wrong.variants[0].settings.insert("a".into(), "1".into());
        assert!(said(&["a=1,2"], wrong).contains("leave out one"));
    }
}
