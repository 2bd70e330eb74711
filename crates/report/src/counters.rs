//! The changes of a source's counters during a trial, as readable text.

use pagetide_probe::text::{Kind, Source};
use pagetide_quantity::Unit;
use pagetide_record::record::Counters;

use crate::draw::quantity;

/// A counter that changed during a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change<'a> {
    /// Name of the counter in the kernel.
    pub name: &'a str,
    unit: Unit,
    kind: Kind,
    before: u64,
    after: u64,
}

impl Change<'_> {
    /// Formats the change: the growth of a counter, such as `+12`; for a gauge, the values after and before the trial.
    pub fn text(&self, ascii: bool) -> String {
        let show = |value: f64| quantity::show(self.unit, value, ascii);
        match self.kind {
            Kind::Counter => format!("+{}", show(self.after.wrapping_sub(self.before) as f64)),
            Kind::Gauge => format!(
                "{}, before {}",
                show(self.after as f64),
                show(self.before as f64)
            ),
        }
    }
}

/// Returns the counters of a source that changed, the numerically largest change first. A counter with an unknown name
/// counts as cumulative unless it fell.
pub(crate) fn changed<'a>(source: &str, counters: &'a Counters) -> Vec<Change<'a>> {
    let source = Source::named(source);
    let mut changes: Vec<Change<'_>> = counters
        .values
        .iter()
        .filter(|(_, [before, after])| before != after)
        .map(|(name, &[before, after])| {
            let key = source.and_then(|source| source.key(name));
            let scale = source.map_or(1, |source| source.scale(name));
            let [before, after] = [before, after].map(|value: u64| value.saturating_mul(scale));
            let falls = after < before;
            let kind = if falls { Kind::Gauge } else { Kind::Counter };
            Change {
                name,
                unit: key.map_or(Unit::Count, |key| key.unit),
                kind: key.map_or(kind, |key| key.kind),
                before,
                after,
            }
        })
        .collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.after.abs_diff(change.before)));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_unknown_probe_are_shown_like_those_of_a_known_one() {
        let values = [("a", [5, 5]), ("b", [1, 4]), ("c", [9, 2])];
        let values = values.map(|(name, pair)| (name.to_owned(), pair)).into();
        let counters = Counters { values };
        let changes = changed("a probe of tomorrow", &counters);
        let texts: Vec<_> = changes
            .iter()
            .map(|change| (change.name, change.text(true)))
            .collect();
        assert_eq!(
            texts,
            [("c", "2, before 9".to_owned()), ("b", "+3".to_owned())]
        );
    }

    #[test]
    fn known_counters_have_their_units() {
        let values = [("MemFree".to_owned(), [4096, 8192])].into();
        let counters = Counters { values };
        let text = changed("meminfo", &counters)[0].text(true);
        assert!(text.starts_with("8.000 KiB, before 4.000 KiB"), "{text}");
    }

    #[test]
    fn what_the_kernel_counts_in_kib_is_shown_so() {
        let values = [
            ("pgpgin".to_owned(), [1024, 3072]),
            ("pswpin".to_owned(), [0, 512]),
        ];
        let counters = Counters {
            values: values.into(),
        };
        let texts: Vec<_> = changed("vmstat", &counters)
            .iter()
            .map(|change| change.text(true))
            .collect();
        assert_eq!(texts, ["+2.000 MiB", "+512 pages"]);
    }
}
