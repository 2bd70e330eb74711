//! Options to accept unintended differences.

use pagetide_compare::beside::Kind;
use pagetide_compare::{Allowance, Names};

/// Options to accept unintended differences between the sides.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct AcceptArgs {
    /// Accept an unintended difference: huge-pages, swap, memory, dirty-limits, given, or a setting
    #[arg(long, value_name = "WHAT", value_parser = Kind::accept, help_heading = "What is compared")]
    pub accept: Vec<String>,
}

impl AcceptArgs {
    /// The sides to compare; `anyway` permits differences in more than the variant.
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
