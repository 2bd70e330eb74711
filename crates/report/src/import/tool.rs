//! A tool whose results can be imported.

/// A tool, as its format is named and described.
#[derive(Debug)]
pub struct Tool {
    /// Name of the format on the command line, which is the name of the tool.
    pub name: &'static str,
    /// Description of the format in a few words.
    pub help: &'static str,
    /// The command that makes a file of this format, or a description of such files.
    pub made_by: &'static str,
    /// True if the tool repeats one variant before it runs the next. Then the variants in a file did not take turns.
    pub in_a_row: bool,
}
