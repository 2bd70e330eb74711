//! Turns a campaign into a calibration: its variant is compared with variants whose difference cannot matter.

use pagetide_arena::VariantSpec;

use crate::campaign::{Campaign, Until};
use crate::request::RequestError;

impl Campaign {
    /// Compares the only variant with harmless ones, using the seeds of `campaigns` campaigns. Fails if there are
    /// several variants.
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

/// Two variants that differ from `base` without an effect on reclaim, although their results are not bit-identical: one
/// adds a boot argument that nothing reads, the other sets a setting to its default.
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
