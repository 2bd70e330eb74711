//! Builds the kernels of several variants one after the other, and checks whether each differs from the kernel of the
//! baseline.

use std::collections::BTreeSet;

use pagetide_kernel::Digest;

use crate::build_forecast::{BuildForecast, BuildState};
use crate::error::SourceError;
use crate::recipe::Recipe;
use crate::step::{BuildStep, OnStep};
use crate::workshop::{BuiltKernel, Workshop};

/// A variant whose kernel may have to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Name of the variant.
    pub name: String,
    /// Kernel of the variant: the text form of a recipe, or the name of another kernel, which is returned unchanged.
    pub kernel: String,
    /// True if the variant differs from the first one only in its kernel.
    pub is_kernel_alone: bool,
}

/// Result of building the kernel of a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The variant runs on the kernel with this name.
    Kernel(String),
    /// The kernel is byte-identical to the first variant's, so there is nothing to run. The text is a sentence that
    /// tells the user so.
    Same(String),
    /// The kernel cannot be built. A message has stated the reason.
    Failed {
        /// True if the variant is a control, which the user did not name.
        is_control: bool,
    },
}

/// The kernel of a variant that the comparison needs cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("variant {name} cannot be built")]
pub struct OrderError {
    /// Name of the variant.
    pub name: String,
    /// Reason why its kernel cannot be built.
    pub source: SourceError,
}

impl Workshop {
    /// Builds the kernels of variants, the first of which is the baseline. Fails if the baseline's kernel cannot be
    /// built, if the user stops a build, or if the only variant compared with the baseline has patches that do not fit.
    /// Any other variant whose kernel cannot be built is left out; `say` receives each step, and a message about each
    /// variant that is left out.
    #[allow(
        clippy::result_large_err,
        reason = "it is made once, and ends the command"
    )]
    pub fn deliver(
        &mut self,
        orders: &[Order],
        is_stopped: &dyn Fn() -> bool,
        say: &dyn Fn(&str),
    ) -> Result<Vec<Delivery>, OrderError> {
        let mut watch = |step: &BuildStep| say(&step.to_string());
        // Errors that can be detected without a source are reported before anything is fetched.
        let forecasts = self.forecast(orders, &mut watch)?;
        let to_build = forecasts.iter().position(VariantForecast::is_to_build);
        if let Some(order) = to_build.and_then(|place| orders.get(place)) {
            self.needs().map_err(|source| OrderError {
                name: order.name.clone(),
                source,
            })?;
        }
        self.check_all(orders, &mut watch)?;
        let mut baseline: Option<Digest> = None;
        let mut all = Vec::new();
        for (place, order) in orders.iter().enumerate() {
            let name = &order.name;
            if !Recipe::is_recipe(&order.kernel) {
                all.push(Delivery::Kernel(order.kernel.clone()));
                continue;
            }
            let recipe: Result<Recipe, _> = order.kernel.parse();
            let is_control = recipe.as_ref().is_ok_and(|recipe| recipe.control);
            match recipe.and_then(|recipe| self.build(&recipe, &mut watch)) {
                Ok(made)
                    if order.is_kernel_alone && baseline.as_ref() == Some(&made.kernel.digest) =>
                {
                    all.push(Delivery::Same(no_change(name, &made)));
                }
                Ok(made) => {
                    for missing in &made.not_built {
                        say(&format!("{name}: {missing}"));
                    }
                    if place == 0 {
                        baseline = Some(made.kernel.digest);
                    }
                    all.push(Delivery::Kernel(made.name));
                }
                // Without a baseline there is nothing to compare with, and after a stop no further kernel is built.
                Err(source) if place == 0 || is_stopped() => {
                    let name = name.clone();
                    return Err(OrderError { name, source });
                }
                Err(why) => {
                    say(&format!("variant {name} is left out: {why}"));
                    all.push(Delivery::Failed { is_control });
                }
            }
        }
        Ok(all)
    }

    /// Checks the patches of those variants that are needed before minutes are spent on builds: the baseline and, if
    /// only one variant is compared with it, that variant. Among several variants, one whose patches do not fit is left
    /// out later, and the others are built.
    #[allow(
        clippy::result_large_err,
        reason = "it is made once, and ends the command"
    )]
    fn check_all(&self, orders: &[Order], watch: &mut OnStep) -> Result<(), OrderError> {
        let must = if is_judged_alone(orders) {
            orders.len()
        } else {
            1
        };
        for order in orders.iter().take(must) {
            if Recipe::is_recipe(&order.kernel) {
                let recipe = order.kernel.parse::<Recipe>();
                recipe
                    .and_then(|recipe| self.check(&recipe, watch))
                    .map_err(|source| OrderError {
                        name: order.name.clone(),
                        source,
                    })?;
            }
        }
        Ok(())
    }
}

/// Returns true if at most one variant is compared with the baseline, not counting controls.
pub(crate) fn is_judged_alone(orders: &[Order]) -> bool {
    let is_judged = |order: &&Order| !order.kernel.ends_with(",control");
    orders.iter().skip(1).filter(is_judged).count() <= 1
}

/// Returns a sentence stating that a patch does not change the built kernel, with the reason if known.
fn no_change(name: &str, made: &BuiltKernel) -> String {
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

/// Forecast for the kernel of one variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariantForecast {
    /// The kernel of the variant is not built from a recipe, so there is no forecast.
    Other,
    /// The kernel of the variant is in the cache or would be built.
    Kernel(BuildForecast),
    /// The variant would be left out. The text states why: its kernel cannot be built, or is the same as the baseline's
    /// kernel.
    LeftOut(String),
}

impl VariantForecast {
    /// Returns true if the variant's kernel is not in the cache and must be built.
    pub fn is_to_build(&self) -> bool {
        matches!(self, Self::Kernel(forecast) if !matches!(forecast.state, BuildState::Built(_)))
    }
}

impl Workshop {
    /// Returns a forecast of the build of each variant's kernel. Builds and fetches nothing. Fails if
    /// [`Workshop::deliver`] would fail before its first build or fetch. Exception: does not check for missing
    /// programs. `watch` receives a step when another process must be waited for.
    #[allow(
        clippy::result_large_err,
        reason = "it is made once, and ends the command"
    )]
    pub fn forecast(
        &self,
        orders: &[Order],
        watch: &mut OnStep,
    ) -> Result<Vec<VariantForecast>, OrderError> {
        let mut there = BTreeSet::new();
        let mut baseline: Option<String> = None;
        let must = is_judged_alone(orders);
        let mut all = Vec::new();
        for (place, order) in orders.iter().enumerate() {
            if !Recipe::is_recipe(&order.kernel) {
                all.push(VariantForecast::Other);
                continue;
            }
            let foreseen = order
                .kernel
                .parse()
                .and_then(|recipe| self.forecast_recipe(&recipe, &mut there, watch));
            all.push(match foreseen {
                Ok(forecast) => {
                    let name = match &forecast.state {
                        BuildState::Built(name) => name.split(' ').next().map(str::to_owned),
                        _ => None,
                    };
                    if place == 0 {
                        baseline.clone_from(&name);
                    }
                    let is_same = place > 0 && name.is_some() && name == baseline;
                    if is_same && order.is_kernel_alone {
                        VariantForecast::LeftOut(format!(
                            "variant {} is left out: no change in code: its kernel is the baseline's to the last byte",
                            order.name
                        ))
                    } else {
                        VariantForecast::Kernel(forecast)
                    }
                }
                Err(source) if place == 0 || must => {
                    let name = order.name.clone();
                    return Err(OrderError { name, source });
                }
                Err(why) => {
                    VariantForecast::LeftOut(format!("variant {} is left out: {why}", order.name))
                }
            });
        }
        Ok(all)
    }
}
