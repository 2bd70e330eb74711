//! Options with which the user accepts unintended differences between the compared sides.

use pagetide_compare::notes::Kind;
use pagetide_compare::{Allowance, Names};

/// Options with which the user accepts unintended differences between the compared sides.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct AcceptArgs {
    /// Accept an unintended difference: huge-pages, swap, memory, dirty-limits, given, or a setting
    #[arg(long, value_name = "WHAT", value_parser = Kind::accept, help_heading = "What is compared")]
    pub accept: Vec<String>,
}

impl AcceptArgs {
    /// Returns the names of the sides to compare, and the differences that are permitted. `anyway` permits differences
    /// in more than the variant.
    pub fn names(&self, a: Option<&str>, b: Option<&str>, anyway: bool) -> Names {
        Names {
            a: a.map(str::to_owned),
            b: b.map(str::to_owned),
            allowed: Allowance {
                anyway,
                accepted: self.accept.clone(),
            },
        }
    }
}
