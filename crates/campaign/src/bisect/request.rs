//! Checks the request for a bisection and predicts its cost.

use pagetide_arena::{Arena, VariantSpec};
use pagetide_quantity::Nanos;
use pagetide_store::Store;
use pagetide_verdict::bisect::Unfit;

use super::{Bisect, MAX_SEEDS, SupplyError};
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
        /// Number of cells in the campaign.
        cells: usize,
    },
    /// The scenario has no metric of this name.
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
        /// The source as given with `--source`.
        source_name: String,
    },
    /// Good and bad name the same kernel.
    #[error("--good and --bad are the same kernel ({what}): name two that differ")]
    Same {
        /// Name of that kernel.
        what: String,
    },
    /// The good or the bad version cannot be run.
    #[error(
        "the {which} version {name} cannot be tried, so there is nothing to compare with: {why}"
    )]
    End {
        /// "good" or "bad".
        which: &'static str,
        /// Name of the version that cannot be run.
        name: String,
        /// Reason why the version cannot be run.
        why: String,
    },
    /// No bisection is possible on the history of versions.
    #[error("{0}")]
    Unfit(#[from] Unfit),
    /// A trial cannot run.
    #[error("{0}")]
    Run(#[from] RunError),
    /// Reading or writing the store failed.
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
        /// Path of the log.
        path: std::path::PathBuf,
        /// The operating system's error.
        cause: std::io::Error,
    },
}

impl BisectError {
    /// True if the user's input was wrong. False for every error of another part, such as [`RunError`], which has this
    /// method itself.
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

/// Options of a bisection, in addition to the campaign.
#[derive(Clone, Debug, Default)]
pub struct BisectRequest {
    /// Name of the good kernel or git revision.
    pub good: String,
    /// Name of the bad kernel or git revision.
    pub bad: String,
    /// Names of the kernels to search. If empty, searches the kernels in the cache from `good` to `bad` in order of
    /// release, or the commits between them if these are git revisions.
    pub among: Vec<String>,
    /// Name of the deciding metric; `None` for the scenario's first primary metric.
    pub metric: Option<String>,
    /// Name of the campaign; `None` to derive it from the content.
    pub name: Option<String>,
}

/// Reduces a campaign to one variant and one metric, and limits its seeds. Fails if it has several cells, or variants
/// other than the kernels to search, or if the metric is unknown. Returns the metric: that of the request, else the
/// campaign's first own primary metric, else `primary`.
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
        Until::Enough(_) => Until::Blocks(MAX_SEEDS),
        Until::Blocks(seeds) | Until::Sure { cap: seeds, .. } => Until::Blocks(seeds),
    };
    campaign.observe = Observe::None;
    // The kernels and the metric are part of the name, so the same command finds its records again and a different
    // command does not.
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

/// Returns a sentence that predicts the cost of a search. `ends` are the variants with the good and the bad version;
/// `kernels` has the cost of building their kernels.
pub fn predict(
    asked: &Bisect,
    ends: Vec<VariantSpec>,
    kernels: &[KernelForecast],
    arena: &dyn Arena,
    store: &Store,
    jobs: Option<usize>,
) -> Result<String, BisectError> {
    /// Assumed wall-clock time to boot the kernel of a step.
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
    // A step compiles the files that differ from the previous step. These are at most the files in which bad differs
    // from good, so its build is assumed to take as long as that of the last kernel.
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
