//! Turns a campaign into a calibration: compares its variant with variants that cannot differ from it in performance.

use pagetide_arena::VariantSpec;
use pagetide_record::ArenaKind;

use crate::campaign::{Campaign, Until};
use crate::request::RequestError;

impl Campaign {
    /// Adds variants that cannot differ in performance from the campaign's only variant, renames the campaign, and
    /// gives it as many seeds as `campaigns` such campaigns have together. Fails if the campaign has several variants.
    pub fn calibrate(&mut self, campaigns: u32) -> Result<(), RequestError> {
        let [base] = &self.variants[..] else {
            return Err(RequestError::ManyVariants);
        };
        let others = match self.arena {
            ArenaKind::Exact => harmless(base),
            ArenaKind::Host | ArenaKind::Vm => same(base),
        };
        self.variants.extend(others);
        self.name = format!("calibrate-{}", self.name);
        let seeds = self.sampling.until.cap();
        self.sampling.until = Until::Blocks(seeds.saturating_mul(campaigns));
        Ok(())
    }
}

/// Creates two variants equal to `base`, for an arena with noise.
fn same(base: &VariantSpec) -> [VariantSpec; 2] {
    ["the same again", "the same once more"].map(|name| VariantSpec {
        name: name.to_owned(),
        ..base.clone()
    })
}

/// Creates two variants that reclaim memory like `base`, although their results are not bit-identical. The first adds a
/// boot argument that nothing reads; the second sets `vm.stat_interval` to its default or, if `base` sets it already, adds
/// another argument that nothing reads.
fn harmless(base: &VariantSpec) -> [VariantSpec; 2] {
    let mut unread = base.clone();
    unread.name = "argument nobody reads".to_owned();
    unread.boot.push("pagetide.unread=1".to_owned());
    let mut default = base.clone();
    if default.settings.contains_key("vm.stat_interval") {
        default.name = "another argument nobody reads".to_owned();
        default.boot.push("pagetide.unread=2".to_owned());
    } else {
        default.name = "vm.stat_interval as it is".to_owned();
        default
            .settings
            .insert("vm.stat_interval".to_owned(), "1".to_owned());
    }
    [unread, default]
}
