//! Variants whose kernels are built from source. All kernels are built before any trial runs.

use std::sync::atomic::Ordering;

use pagetide_arena::{Options, VariantSpec};
use pagetide_campaign::{CONTROL, Campaign, KernelForecast, ScenarioSpec};
use pagetide_kernel::{Cache, Freshness};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_source::{BuildState, Delivery, Order, Recipe, VariantForecast, Workshop};

use crate::error::LabError;
use crate::needs;

/// Part of the cache's size limit that is reserved for snapshots, even if builds need more. Without snapshots, every
/// trial would boot.
const MIN_FOR_SNAPSHOTS: Bytes = Bytes::from_mib(1024);

/// Result of building the kernels of a campaign.
#[derive(Debug, Default)]
pub struct Builds {
    /// Number of variants whose kernels could not be built, not counting controls. These variants are left out, and a
    /// message has stated why.
    pub failed: usize,
    /// A sentence for each variant that is left out because its kernel is byte-identical to the baseline's.
    pub same: Vec<String>,
}

impl Builds {
    /// True if no trials are needed after building: other variants were left out, and only the baseline remains,
    /// possibly with a control.
    pub fn settles(&self, campaign: &Campaign) -> bool {
        let mut others = campaign.variants.iter().skip(1);
        (!self.same.is_empty() || self.failed > 0) && others.all(|variant| variant.name == CONTROL)
    }
}

/// True if any kernel of a campaign is built from source.
fn is_built(campaign: &Campaign) -> bool {
    let mut kernels = campaign.variants.iter().map(|v| &v.kernel);
    kernels.any(|kernel| Recipe::is_recipe(kernel))
}

/// Opens the workshop that builds kernels in this cache.
pub(crate) fn workshop(cache: Cache, options: &Options) -> Workshop {
    let freshness = Freshness::new(options.refresh);
    Workshop::open(cache, freshness, options.cache_limit.0)
}

/// Returns the kernels of a campaign as orders for the [`Workshop`], the baseline's first.
fn orders(campaign: &Campaign) -> Vec<Order> {
    let first = &campaign.variants[0];
    let order = |variant: &VariantSpec| Order {
        name: variant.name.clone(),
        kernel: variant.kernel.clone(),
        is_kernel_alone: variant.settings == first.settings && variant.boot == first.boot,
    };
    campaign.variants.iter().map(order).collect()
}

/// Fails if the configuration of a kernel that is built leaves out options that the machine of a scenario needs.
fn check_machines(campaign: &Campaign, workshop: &Workshop) -> Result<(), LabError> {
    let any = |has: fn(&ScenarioSpec) -> bool| campaign.scenarios.iter().any(has);
    // Memory nodes are described by tables of ACPI, and the kernel selects CONFIG_ACPI_NUMA where it has these options.
    let machines: [(&str, bool, &[&str]); 3] = [
        (
            "--cpus",
            any(|plan| plan.cpus.iter().any(|cpus| cpus.are_several())),
            &["SMP"],
        ),
        (
            "--nodes",
            any(|plan| !plan.nodes.is_default()),
            &["NUMA", "ACPI", "PCI"],
        ),
        (
            "--nodes with a slow node",
            any(|plan| plan.nodes.has_slow()),
            &["ACPI_HMAT"],
        ),
    ];
    for variant in &campaign.variants {
        if !Recipe::is_recipe(&variant.kernel) {
            continue;
        }
        // Recipes that cannot be read, and their files, are reported by the build.
        let Ok(recipe) = variant.kernel.parse::<Recipe>() else {
            continue;
        };
        for (machine, is_asked, needed) in machines {
            let Ok(missing) = workshop.leaves_out(&recipe, needed) else {
                continue;
            };
            if is_asked && !missing.is_empty() {
                let names: Vec<String> = missing
                    .iter()
                    .map(|name| format!("CONFIG_{name}"))
                    .collect();
                return Err(LabError::BuiltWithout {
                    machine,
                    options: names.join(" and "),
                });
            }
        }
    }
    Ok(())
}

/// Predicts the cost of building the kernels of a campaign. Builds nothing. A variant whose kernel is not built yet
/// is planned with the kernel `otherwise`. A variant that the build would leave out is removed from the campaign, and
/// `say` receives the reason. If a kernel must be built and a program is missing that a build or a trial needs,
/// `on_missing` receives an error that names all missing programs, and decides whether the forecast fails.
pub(crate) fn forecast(
    campaign: &mut Campaign,
    cache: Cache,
    options: &Options,
    otherwise: &str,
    say: &dyn Fn(&str),
    on_missing: impl FnOnce(LabError) -> Result<(), LabError>,
) -> Result<Vec<KernelForecast>, LabError> {
    let mut kernels = Vec::new();
    if !is_built(campaign) {
        return Ok(kernels);
    }
    let workshop = workshop(cache, options);
    check_machines(campaign, &workshop)?;
    let forecasts = workshop.forecast(&orders(campaign), &mut |step| say(&step.to_string()))?;
    if forecasts.iter().any(VariantForecast::is_to_build)
        && let Err(why) = programs(campaign, &workshop)
    {
        on_missing(why)?;
    }
    for (mut variant, forecast) in std::mem::take(&mut campaign.variants)
        .into_iter()
        .zip(forecasts)
    {
        match forecast {
            VariantForecast::LeftOut(why) => {
                say(&why);
                continue;
            }
            VariantForecast::Other => {}
            VariantForecast::Kernel(forecast) => {
                let (what, about) = (forecast.to_string(), forecast.state.about());
                let built = match forecast.state {
                    BuildState::Built(name) => Some(name),
                    _ => None,
                };
                kernels.push(KernelForecast {
                    place: campaign.variants.len(),
                    variant: variant.name.clone(),
                    what,
                    is_built: built.is_some(),
                    build: Nanos(u64::try_from(about.as_nanos()).unwrap_or(u64::MAX)),
                });
                variant.kernel = built.unwrap_or_else(|| otherwise.to_owned());
            }
        }
        campaign.variants.push(variant);
    }
    Ok(kernels)
}

/// Fails if a program is missing that a build or a trial of the campaign needs. The error names all missing programs.
fn programs(campaign: &Campaign, workshop: &Workshop) -> Result<(), LabError> {
    needs::check(campaign)?;
    Ok(workshop.needs()?)
}

/// Builds the kernels of a campaign that are built from source, and writes their names into the variants. Variants
/// whose kernels cannot be built or do not differ from the baseline's are left out. Fails if the baseline's kernel
/// cannot be built.
pub(crate) fn build(
    campaign: &mut Campaign,
    cache: Cache,
    options: &mut Options,
    say: &dyn Fn(&str),
) -> Result<Builds, LabError> {
    let mut outcome = Builds::default();
    if !is_built(campaign) {
        return Ok(outcome);
    }
    let mut workshop = workshop(cache, options);
    check_machines(campaign, &workshop)?;
    needs::check(campaign)?;
    let is_stopped = || options.stop.load(Ordering::Relaxed);
    let deliveries = workshop.deliver(&orders(campaign), &is_stopped, say)?;
    for (mut variant, delivery) in std::mem::take(&mut campaign.variants)
        .into_iter()
        .zip(deliveries)
    {
        match delivery {
            Delivery::Kernel(name) => {
                variant.kernel = name;
                campaign.variants.push(variant);
            }
            Delivery::Same(text) => outcome.same.push(text),
            Delivery::Failed { is_control } => outcome.failed += usize::from(!is_control),
        }
    }
    share_limit(options, &workshop);
    Ok(outcome)
}

/// Makes builds and snapshots share one size limit: the size of the builds is subtracted from the limit for snapshots.
pub(crate) fn share_limit(options: &mut Options, workshop: &Workshop) {
    take(options, Bytes(workshop.taken()));
}

/// Subtracts `taken` from the size limit for snapshots, but leaves at least [`MIN_FOR_SNAPSHOTS`].
pub(crate) fn take(options: &mut Options, taken: Bytes) {
    options.cache_limit = options
        .cache_limit
        .saturating_sub(taken)
        .max(MIN_FOR_SNAPSHOTS);
}
