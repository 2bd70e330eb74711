//! Variants whose kernels are built from source: built before anything runs, and told apart.

use anyhow::{Context, Result};
use pagetide_campaign::Campaign;
use pagetide_kernel::{Cache, Freshness, Stop};
use pagetide_source::{BuildStep, Built, Recipe, Workshop};

use crate::interrupt::Interrupt;
use crate::lab::{ArenaArgs, StoreArgs};

/// What came of building.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Variants that could not be built, apart from controls. They are said already, and left out.
    pub failed: usize,
    /// Variants that are left out because their kernels are the baseline's to the last byte, in sentences.
    pub same: Vec<String>,
}

/// Builds the kernels of a campaign that are built from source, and puts their names in their variants' places. Variants that
/// cannot be built or have nothing to show are left out; the baseline cannot be.
pub fn build(
    campaign: &mut Campaign,
    places: &StoreArgs,
    args: &mut ArenaArgs,
    interrupt: &Interrupt,
    say: &dyn Fn(&str),
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if !campaign
        .variants
        .iter()
        .any(|v| Recipe::is_recipe(&v.kernel))
    {
        return Ok(outcome);
    }
    let cache = Cache::open(places.cache_folder()?)?.stopping_by(Stop::by(interrupt.flag()));
    let freshness = if args.refresh {
        Freshness::Refresh
    } else {
        Freshness::Pinned
    };
    let mut workshop = Workshop::open(cache, freshness, args.cache_limit.0);
    let mut watch = |step: &BuildStep| say(&step.to_string());
    let mut built: Vec<Option<Built>> = Vec::new();
    let mut kept = Vec::new();
    let variants = std::mem::take(&mut campaign.variants);
    // Before minutes are spent on the baseline, it must be there, and so must a patch to compare with it. Of several patches
    // one that does not fit is left out below, and the others go on.
    let is_control = |name: &str| name.ends_with(",control");
    let judged = variants.iter().skip(1).filter(|v| !is_control(&v.kernel));
    let must = if judged.count() > 1 {
        1
    } else {
        variants.len()
    };
    for variant in variants.iter().take(must) {
        if Recipe::is_recipe(&variant.kernel) {
            let recipe = variant.kernel.parse::<Recipe>();
            recipe
                .and_then(|recipe| workshop.check(&recipe, &mut watch))
                .with_context(|| format!("variant {} cannot be built", variant.name))?;
        }
    }
    for mut variant in variants {
        if !Recipe::is_recipe(&variant.kernel) {
            built.push(None);
            kept.push(variant);
            continue;
        }
        let recipe: Result<Recipe, _> = variant.kernel.parse();
        let is_control = recipe.as_ref().is_ok_and(|recipe| recipe.control);
        let made = recipe.and_then(|recipe| workshop.build(&recipe, &mut watch));
        let name = variant.name.clone();
        match made {
            Ok(made) => {
                let same = built.first().and_then(Option::as_ref).is_some_and(|base| {
                    base.kernel.digest == made.kernel.digest
                        && kept
                            .first()
                            .is_some_and(|base: &pagetide_arena::VariantSpec| {
                                base.settings == variant.settings && base.boot == variant.boot
                            })
                });
                if same {
                    outcome.same.push(no_change(&name, &made));
                } else {
                    for missing in &made.not_built {
                        say(&format!("{name}: {missing}"));
                    }
                    variant.kernel.clone_from(&made.name);
                    built.push(Some(made));
                    kept.push(variant);
                }
            }
            // Without a baseline there is nothing to compare with, and who stopped wants nothing more.
            Err(why) if built.is_empty() || interrupt.is_set() => {
                return Err(why).with_context(|| format!("variant {name} cannot be built"));
            }
            Err(why) => {
                say(&format!("variant {name} is left out: {why}"));
                outcome.failed += usize::from(!is_control);
            }
        }
    }
    // Kernels and snapshots share one limit.
    let taken = workshop.taken();
    args.cache_limit.0 = args.cache_limit.0.saturating_sub(taken).max(LEAST);
    campaign.variants = kept;
    Ok(outcome)
}

/// What snapshots may take of the cache however much builds take: without any, every trial would boot.
const LEAST: u64 = 1 << 30;

/// Says that a patch changes no code, and why where that is known.
fn no_change(name: &str, made: &Built) -> String {
    let mut text = format!(
        "{name}: no change in code: its kernel is the baseline's to the last byte ({}), so there is nothing to run",
        made.kernel.digest.short()
    );
    for missing in &made.not_built {
        text.push_str("; ");
        text.push_str(missing);
    }
    text
}
