//! Descriptions of the tools whose results can be imported.

/// Description of a tool and of the format of its results.
#[derive(Debug)]
pub struct Tool {
    /// Name of the format on the command line, which is the name of the tool.
    pub name: &'static str,
    /// Description of the format in a few words.
    pub help: &'static str,
    /// Command that makes a file of this format, or a description of such files.
    pub made_by: &'static str,
    /// True if the tool runs all repetitions of a variant before the next variant. Such variants are measured at
    /// different times, so drift can look like a difference.
    pub in_a_row: bool,
}
