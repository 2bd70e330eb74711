//! Addresses of functions, as ranges.

/// A named range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address of the range, which ends where the next one starts.
    pub start: u64,
    /// Name of the symbol.
    pub name: String,
    /// Name of the module that contains the symbol; `None` for the kernel itself.
    pub module: Option<String>,
}
