//! The zoo: campaign files of cases worth watching on every new kernel, as one campaign.

use crate::campaign::ScenarioSpec;
use crate::file::{self, FileError, Vocabulary};

/// Names and texts of the files in `campaigns/zoo/`.
macro_rules! files {
    ($($name:literal)*) => {
        &[$((
            concat!("campaigns/zoo/", $name, ".toml"),
            include_str!(concat!("../../../campaigns/zoo/", $name, ".toml")),
        )),*]
    };
}

/// Path and text of each campaign file of the zoo.
pub const FILES: &[(&str, &str)] = files![
    "cache-burst"
    "dirty-tail"
    "fork-storm"
    "free-pages"
    "killed-while-writing"
    "launches"
    "limited-writer"
    "mapped-writes"
    "populate-beside-writer"
    "populate-shared"
    "reclaim-beside-low"
    "reclaim-request"
    "shared-from-zram"
    "unshortened-list"
];

/// Returns the scenarios of all files of the zoo, without duplicates. Fails if a file is refused.
pub(crate) fn scenarios(vocabulary: &Vocabulary) -> Result<Vec<ScenarioSpec>, FileError> {
    let mut scenarios: Vec<ScenarioSpec> = Vec::new();
    for (path, text) in FILES {
        let campaign = file::parse(path, text, vocabulary)?;
        for scenario in campaign.scenarios {
            if !scenarios.contains(&scenario) {
                scenarios.push(scenario);
            }
        }
    }
    Ok(scenarios)
}
