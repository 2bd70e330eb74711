//! Checks the request for a bisection, and predicts its cost.

use pagetide_arena::{Arena, VariantSpec};
use pagetide_quantity::Nanos;
use pagetide_store::Store;
use pagetide_verdict::bisect::Unfit;

use super::{Bisect, MOST_SEEDS, SupplyError};
use crate::campaign::{Campaign, Observe, Until};
use crate::file::Vocabulary;
use crate::forecast::{KernelForecast, forecast};
use crate::run::RunError;
use pagetide_compare::CompareError;
use pagetide_store::StoreError;

/// Why a bisection is refused or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    /// The campaign has several variants or cells.
    #[error(
        "bisect answers for one workload at a time on kernels that --good and --bad bound, and here are {cells} cells and other \
         variants: give one value of each parameter, no --vs and no --patch"
    )]
    Several {
        /// Number of cells.
        cells: usize,
    },
    /// The metric is not one of the scenario's.
    #[error("{0}")]
    Metric(String),
    /// Both `--kernel` and `--source` are given; with a git source, the kernels are its commits.
    #[error("--kernel names kernels to search among, and --source commits: give one of the two")]
    Both,
    /// The source has no history.
    #[error(
        "--source {source_name} has no history to search: give the folder of a git tree, or leave --source out and name kernels"
    )]
    NoHistory {
        /// The source as given.
        source_name: String,
    },
    /// Good and bad are the same.
    #[error("--good and --bad are the same kernel ({what}): name two that differ")]
    Same {
        /// The kernel's name.
        what: String,
    },
    /// The good or the bad version cannot be run.
    #[error(
        "the {which} version {name} cannot be tried, so there is nothing to compare with: {why}"
    )]
    End {
        /// "good" or "bad".
        which: &'static str,
        /// Its name.
        name: String,
        /// Why it cannot be run.
        why: String,
    },
    /// The history does not fit a bisection.
    #[error("{0}")]
    Unfit(#[from] Unfit),
    /// A trial cannot run.
    #[error("{0}")]
    Run(#[from] RunError),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The stored records cannot be compared.
    #[error("{0}")]
    Compare(#[from] CompareError),
    /// No more kernels can be supplied.
    #[error("{0}")]
    Supply(#[source] SupplyError),
    /// The log cannot be written.
    #[error("writing the log {} stopped ({cause}): give --log a file in a folder that is there", path.display())]
    Log {
        /// The log's path.
        path: std::path::PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
}

impl BisectError {
    /// True if the user's input was wrong; an error of another part is asked itself.
    pub fn is_user_error(&self) -> bool {
        matches!(
            self,
            Self::Several { .. }
                | Self::Metric(_)
                | Self::Both
                | Self::NoHistory { .. }
                | Self::Same { .. }
        )
    }
}

/// Request for a bisection, in addition to the campaign.
#[derive(Clone, Debug, Default)]
pub struct BisectRequest {
    /// The good kernel or revision.
    pub good: String,
    /// The bad one.
    pub bad: String,
    /// Names of the kernels to search; empty for those in the cache.
    pub among: Vec<String>,
    /// The metric that decides, if given.
    pub metric: Option<String>,
    /// Name of the campaign, if given.
    pub name: Option<String>,
}

/// Reduces a campaign to one variant, one cell and one metric, and limits its seeds. Returns the metric, which is
/// `primary` if none was given.
pub fn question(
    campaign: &mut Campaign,
    request: &BisectRequest,
    primary: &str,
    vocabulary: &Vocabulary,
) -> Result<String, BisectError> {
    let cells = campaign.cell_count();
    if cells != 1 || campaign.variants.len() > request.among.len().max(1) {
        return Err(BisectError::Several { cells });
    }
    let spec = &mut campaign.scenarios[0];
    if let Some(name) = &request.metric {
        let words = vocabulary.scenario(&spec.name);
        let is_known = words.is_some_and(|words| words.metrics.contains(name));
        let own = spec.primary.iter().flatten();
        if !is_known && !own.clone().any(|own| own == name) {
            let text = vocabulary.metric_meant(name, Some(&spec.name));
            return Err(BisectError::Metric(text));
        }
    }
    let metric = match &request.metric {
        Some(name) => name.clone(),
        None => spec.deciding_metric(primary).to_owned(),
    };
    spec.primary = Some(vec![metric.clone()]);
    campaign.sampling.until = match campaign.sampling.until {
        Until::Enough(_) => Until::Blocks(MOST_SEEDS),
        Until::Blocks(seeds) | Until::Sure { cap: seeds, .. } => Until::Blocks(seeds),
    };
    campaign.observe = Observe::None;
    // The kernels and the metric are part of the name, so that the same command finds its records and another one does
    // not.
    campaign.variants.truncate(1);
    let template = campaign.variants[0].clone();
    let ends = [&request.good, &request.bad];
    campaign.variants = ends.map(|kernel| named(&template, kernel)).to_vec();
    campaign.name = match &request.name {
        Some(name) => name.clone(),
        None => format!("bisect-{}", campaign.name_by_content()),
    };
    campaign.variants = vec![template];
    Ok(metric)
}

fn named(template: &VariantSpec, kernel: &str) -> VariantSpec {
    VariantSpec {
        kernel: format!("{} {kernel}", template.kernel),
        ..template.clone()
    }
}

/// Predicted cost of a search, in a sentence. `ends` are the plans of the good and the bad version; `kernels` has the
/// cost of building them.
pub fn predict(
    asked: &Bisect,
    ends: Vec<VariantSpec>,
    kernels: &[KernelForecast],
    arena: &dyn Arena,
    store: &Store,
    jobs: Option<usize>,
) -> Result<String, BisectError> {
    /// Wall-clock time to boot a step's kernel.
    const BOOT: Nanos = Nanos::from_secs(15);
    let most = u64::from(asked.campaign.sampling.until.cap());
    let seeds = pagetide_verdict::bisect::looks(most)[0];
    let mut campaign = asked.campaign.clone();
    campaign.variants = ends;
    campaign.sampling.until = Until::Blocks(u32::try_from(seeds).unwrap_or(u32::MAX));
    let mut each = Nanos(0);
    let whole = forecast(&campaign, arena, store, jobs, false, kernels, &mut |cell| {
        each = cell.each;
    })?;
    let between = asked.history.versions.len().saturating_sub(2);
    let steps = u64::from((between as u64 + 1).next_power_of_two().ilog2());
    // A step compiles the files that differ from the step before, at most those in which bad differs from good.
    let build = kernels.last().map_or(0, |kernel| {
        let typical = Nanos::from_secs(30);
        kernel.build.0.max(typical.0)
    });
    let jobs = u64::try_from(whole.side_by_side.max(1)).unwrap_or(1);
    let step = build + BOOT.0 + each.0.saturating_mul(seeds) / jobs;
    let left = Nanos(whole.left.0.saturating_add(step.saturating_mul(steps)));
    let builds = if kernels.is_empty() {
        ""
    } else {
        ", builds with it"
    };
    let many = |count: u64, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let (between, steps) = (many(between as u64, "version"), many(steps, "step"));
    Ok(format!(
        "{between} between good and bad: about {steps} of {seeds} seeds (up to {most} where one is open), {} in all{builds}",
        left.about()
    ))
}
