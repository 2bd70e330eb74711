//! A campaign of a variant against harmless ones.

use pagetide_arena::VariantSpec;

use crate::campaign::{Campaign, Until};
use crate::request::RequestError;

impl Campaign {
    /// Sets its only variant against harmless ones, in so many campaigns' seeds.
    pub fn calibrate(&mut self, campaigns: u32) -> Result<(), RequestError> {
        let [base] = &self.variants[..] else {
            return Err(RequestError::ManyVariants);
        };
        self.variants.extend(harmless(base));
        self.name = format!("calibrate-{}", self.name);
        let seeds = self.sampling.until.cap();
        self.sampling.until = Until::Blocks(seeds.saturating_mul(campaigns));
        Ok(())
    }
}

/// Variants that differ from a base in nothing that matters, and are not equal to it to the bit: a boot argument that
/// nobody reads, and another setting's own default.
fn harmless(base: &VariantSpec) -> [VariantSpec; 2] {
    let mut unread = base.clone();
    unread.name = "argument nobody reads".to_owned();
    unread.boot.push("pagetide.unread=1".to_owned());
    let mut default = base.clone();
    default.name = "vm.stat_interval as it is".to_owned();
    let settings = &mut default.settings;
    settings
        .entry("vm.stat_interval".to_owned())
        .or_insert_with(|| "1".to_owned());
    [unread, default]
}
