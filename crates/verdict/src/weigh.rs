//! Analyses the data of one metric: values or tails, paired or unpaired, with or without repetitions inside a unit.

use crate::error::{Result, StatError};
use crate::evidence::{AnalysisOptions, Evidence, paired, tails, unpaired};
use crate::sample::{Data, MetricSample};

/// Analyses the data of one metric, by the method for its kind of data. Fails if the data cannot be analysed.
pub(crate) fn weigh(sample: &MetricSample, look: AnalysisOptions) -> Result<Evidence> {
    match &sample.data {
        Data::Paired { pairs } => paired::weigh(sample, pairs, look),
        Data::NestedPaired { units } => paired::weigh_nested(sample, units, look),
        Data::Unpaired { a, b } => unpaired::weigh(sample, a, b, look),
        Data::NestedUnpaired { a, b } => unpaired::weigh_nested(sample, a, b, look),
        Data::PairedTails { quantile, pairs } => {
            tails::weigh_paired(sample, *quantile, pairs, look)
        }
        Data::UnpairedTails { quantile, a, b } => {
            tails::weigh_unpaired(sample, *quantile, a, b, look)
        }
        Data::Invalid { reason } => Err(StatError::Refused {
            reason: reason.clone(),
        }),
    }
}
