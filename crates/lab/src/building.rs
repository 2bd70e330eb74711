//! Variants whose kernels are built from source: built before anything runs, and told apart.

use std::sync::atomic::Ordering;

use pagetide_arena::Options;
use pagetide_campaign::{CONTROL, Campaign};
use pagetide_kernel::{Cache, Freshness};
use pagetide_quantity::Bytes;
use pagetide_source::{Delivery, Order, Recipe, Workshop};

use crate::error::LabError;

/// What snapshots may take of the cache however much builds take: without any, every trial would boot.
const LEAST_FOR_SNAPSHOTS: Bytes = Bytes::from_mib(1024);

/// What came of building.
#[derive(Debug, Default)]
pub struct Builds {
    /// Variants that could not be built, apart from controls. They are left out, as was said.
    pub failed: usize,
    /// Variants that are left out because their kernels are the baseline's to the last byte, in sentences.
    pub same: Vec<String>,
}

impl Builds {
    /// Whether building has answered all there was to ask: only the baseline is left, or a control beside it.
    pub fn settles(&self, campaign: &Campaign) -> bool {
        let mut others = campaign.variants.iter().skip(1);
        (!self.same.is_empty() || self.failed > 0) && others.all(|variant| variant.name == CONTROL)
    }
}

/// Builds the kernels of a campaign that are built from source, and puts their names in their variants' places. Variants that
/// cannot be built or have nothing to show are left out; the baseline cannot be.
pub(crate) fn build(
    campaign: &mut Campaign,
    cache: Cache,
    options: &mut Options,
    say: &dyn Fn(&str),
) -> Result<Builds, LabError> {
    let mut outcome = Builds::default();
    let mut kernels = campaign.variants.iter().map(|v| &v.kernel);
    if !kernels.any(|kernel| Recipe::is_recipe(kernel)) {
        return Ok(outcome);
    }
    let orders: Vec<Order> = campaign
        .variants
        .iter()
        .map(|variant| Order {
            name: variant.name.clone(),
            kernel: variant.kernel.clone(),
            is_kernel_alone: variant.settings == campaign.variants[0].settings
                && variant.boot == campaign.variants[0].boot,
        })
        .collect();
    let freshness = Freshness::new(options.refresh);
    let mut workshop = Workshop::open(cache, freshness, options.cache_limit.0);
    let is_stopped = || options.stop.load(Ordering::Relaxed);
    let deliveries = workshop.deliver(&orders, &is_stopped, say)?;
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
    // Kernels and snapshots share one limit.
    let taken = Bytes(workshop.taken());
    options.cache_limit = options
        .cache_limit
        .saturating_sub(taken)
        .max(LEAST_FOR_SNAPSHOTS);
    Ok(outcome)
}
