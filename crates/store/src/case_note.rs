//! What a search found, as text for the page about it.

/// A finding of a search for where a kernel fails, as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseNote {
    /// What fails, as a sentence without its full stop.
    pub title: String,
    /// The number of the search's goal and the values that it was computed from.
    pub shown: String,
    /// The definition of the goal's number and its limit, as a sentence.
    pub goal: String,
    /// The workload in one line.
    pub workload: String,
    /// True if nothing more can be left out of the workload.
    pub is_smallest: bool,
    /// The campaign file of the case.
    pub toml: String,
    /// What the case was tried with, such as other seeds, sizes and kernels, and the result of each.
    pub generality: Vec<(String, String)>,
    /// What the kernel reported about the first kill, without a full stop; `None` if it killed nothing.
    pub death: Option<String>,
    /// Names of the variants whose counters are shown.
    pub variants: Vec<String>,
    /// Counters of the kernel, each with its increase under each variant.
    pub counters: Vec<(String, Vec<u64>)>,
    /// Whether the observed trials show the same, as a sentence; `None` if they cannot tell.
    pub observed: Option<String>,
    /// Variants that could not be observed, each with the reason in one line.
    pub unobserved: Vec<String>,
}
