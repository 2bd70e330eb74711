//! Maps scenarios to the papers they come from.

/// One of the five papers, that is, historical systems whose workloads pagetide repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// The benchmark contswap of 2009: swap-in after concurrent reclaim.
    Contswap,
    /// The benchmark VM Regress of 2002: access times of reference patterns.
    VmRegress,
    /// The stress test of high-order allocation of 2010.
    Highalloc,
    /// The benchmark swapbench of 2009: read and write times of processes.
    Swapbench,
    /// The benchmark mmap copy of 2008: ways to copy a file.
    Filecopy,
}

/// Names of scenarios, each with the paper that it comes from.
const SCENARIOS: [(&str, Paper); 11] = [
    ("contswap", Paper::Contswap),
    ("linear", Paper::VmRegress),
    ("smooth-sin", Paper::VmRegress),
    ("smooth-sin-random", Paper::VmRegress),
    ("random", Paper::VmRegress),
    ("zipf05", Paper::VmRegress),
    ("lognormal", Paper::VmRegress),
    ("patterns", Paper::VmRegress),
    ("highalloc", Paper::Highalloc),
    ("swapbench", Paper::Swapbench),
    ("filecopy", Paper::Filecopy),
];

impl Paper {
    /// Returns the paper that a scenario comes from; `None` if it comes from none.
    pub fn of(scenario: &str) -> Option<Self> {
        let found = SCENARIOS.iter().find(|(name, _)| *name == scenario);
        found.map(|(_, paper)| *paper)
    }
}

/// A scenario comes from none of the papers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--as paper has no table for {scenario}, which comes from none of the five papers: leave --as out, or run contswap, \
     smooth-sin, smooth-sin-random, highalloc, swapbench or filecopy"
)]
pub struct NoPaper {
    /// Name of the first scenario that comes from no paper.
    pub scenario: String,
}

/// Returns an error if a scenario comes from none of the papers.
pub fn check(scenarios: impl IntoIterator<Item = impl AsRef<str>>) -> Result<(), NoPaper> {
    for scenario in scenarios {
        let scenario = scenario.as_ref();
        if Paper::of(scenario).is_none() {
            let scenario = crate::draw::clean(scenario, 60, true);
            return Err(NoPaper { scenario });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_of_no_paper_is_refused_by_name() {
        let why = check(["contswap", "usemem", "kv"]).unwrap_err();
        assert_eq!(why.scenario, "usemem");
        let why = why.to_string();
        assert!(why.contains("usemem") && why.contains("--as"), "{why}");
        assert_eq!(check(["contswap", "zipf05"]), Ok(()));
        assert_eq!(Paper::of("zipf"), None);
    }
}
