//! KTAP version 1 (Documentation/dev-tools/ktap.rst): one suite for each cell and variant, with one test for each
//! metric, and one for deaths if trials died.
//!
//! Improved, equivalent, identical and changed pass; regressed fails; confounded, inconclusive and invalid are skipped
//! with the reason. Only primary metrics decide (all metrics if none is primary): other differences are skipped with a
//! description. Names contain only letters, digits, `.`, `_` and `-`, so that no part of them is parsed as KTAP.

use pagetide_compare::{Cell as Group, Comparison, MetricRow};
use pagetide_verdict::{Judgement, Verdict};

use crate::about::{self, About};
use crate::draw::clean;
use crate::terminal::effect;

/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 80;

/// Formats a comparison as KTAP text.
pub fn ktap(comparison: &Comparison, about: &About) -> String {
    let suites: Vec<((usize, &Group), usize)> = comparison
        .cells
        .iter()
        .enumerate()
        .flat_map(|cell| about::others(comparison).map(move |index| (cell, index)))
        .collect();
    let mut out = format!("KTAP version 1\n1..{}\n", suites.len());
    put!(out, "# {}\n", free(&about.title));
    let died = about::died(comparison).into_iter().map(|one| ("died", one));
    let invalid = about::invalid(comparison)
        .into_iter()
        .map(|one| ("invalid", one));
    for (word, invalid) in died.chain(invalid) {
        put!(
            out,
            "# {word} {} {} seed {}; {}\n",
            token(invalid.column, NAME_CHARS),
            token(invalid.label, NAME_CHARS),
            invalid.trial.seed,
            free(&invalid.trial.why)
        );
    }
    for (number, (cell, variant)) in suites.into_iter().enumerate() {
        suite(&mut out, comparison, cell, variant, number + 1);
    }
    out
}

fn suite(
    out: &mut String,
    comparison: &Comparison,
    (cell, group): (usize, &Group),
    variant: usize,
    number: usize,
) {
    let column = about::name(comparison, variant);
    let name = format!(
        "{}.{}",
        token(&group.label, NAME_CHARS),
        token(column, NAME_CHARS)
    );
    let rows: Vec<(&MetricRow, &Judgement)> = group
        .metrics
        .iter()
        .filter_map(|row| Some((row, about::judgement(row, variant)?)))
        .collect();
    let deaths = comparison.deaths(cell, variant);
    if rows.is_empty() && deaths.is_none() {
        put!(out, "ok {number} {name} # SKIP nothing to judge\n");
        return;
    }
    let any = rows.iter().any(|(row, _)| row.primary);
    put!(
        out,
        "  KTAP version 1\n  # Subtest: {name}\n  1..{}\n",
        rows.len() + usize::from(deaths.is_some())
    );
    let (mut failed, mut passed) = (false, false);
    let first = 1 + usize::from(deaths.is_some());
    if let Some(deaths) = deaths {
        let [a, b] = [0, 1].map(|side| deaths.share(side));
        let what = format!("{} {b} against {a}", deaths.verdict);
        failed = deaths.verdict == Verdict::Regressed;
        passed = deaths.verdict == Verdict::Improved;
        let verb = if failed { "not ok" } else { "ok" };
        put!(out, "  # deaths {what}\n  {verb} 1 deaths");
        if !failed && !passed {
            put!(out, " # SKIP {what}");
        }
        out.push('\n');
    }
    for (index, (row, judgement)) in rows.iter().enumerate() {
        let what = format!(
            "{} {} {}",
            judgement.verdict,
            effect::change(judgement, row.unit, true),
            effect::interval(judgement, row.unit, true)
        );
        let what = what.trim_end();
        let decides = row.primary || !any;
        let (ok, skip) = match &judgement.verdict {
            Verdict::Regressed if decides => (false, None),
            Verdict::Improved | Verdict::Changed if decides => (true, None),
            Verdict::Equivalent | Verdict::Identical => (true, None),
            Verdict::Inconclusive { n_needed: Some(n) } => {
                (true, Some(format!("{what}, about {n} seeds would decide")))
            }
            Verdict::Confounded { by } => {
                (true, Some(format!("{what}, confounded by {}", free(by))))
            }
            Verdict::Invalid { reason } => (true, Some(format!("invalid, {}", free(reason)))),
            Verdict::Inconclusive { n_needed: None } => (true, Some(what.to_owned())),
            _ => (true, Some(format!("not primary, {what}"))),
        };
        failed |= !ok;
        passed |= ok && skip.is_none();
        let name = token(&row.name, NAME_CHARS);
        put!(out, "  # {name} {what}\n");
        let verb = if ok { "ok" } else { "not ok" };
        put!(out, "  {verb} {} {name}", index + first);
        if let Some(why) = skip {
            put!(out, " # SKIP {why}");
        }
        out.push('\n');
    }
    let verb = if failed { "not ok" } else { "ok" };
    let skip = if failed || passed {
        ""
    } else {
        " # SKIP nothing was decided"
    };
    put!(out, "{verb} {number} {name}{skip}\n");
}

/// Converts the text to a name of at most `limit` letters, digits, `.`, `_` and `-`. Each sequence of other characters
/// becomes one `_`, or nothing at both ends. `unnamed` if nothing remains.
pub(crate) fn token(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.len() >= limit {
            break;
        }
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
    }
    let out = out.trim_end_matches('_');
    if out.is_empty() {
        "unnamed".to_owned()
    } else {
        out.to_owned()
    }
}

/// Converts free text for use after a `#`: one line of ASCII, without colons and `#`. Parsers end a run at a line that
/// looks like one of the kernel's last messages, and all of these messages contain a colon.
fn free(text: &str) -> String {
    clean(text, 300, true).replace(':', ";").replace('#', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words() {
        assert_eq!(
            token("smooth-sin-random · 64M · zram", 80),
            "smooth-sin-random_64M_zram"
        );
        assert_eq!(token("\nok 1 # SKIP", 80), "ok_1_SKIP");
        assert_eq!(token("···", 80), "unnamed");
        assert_eq!(token(&"x".repeat(1000), 10), "xxxxxxxxxx");
    }

    #[test]
    fn the_kernels_last_words_do_not_end_a_run() {
        let text = free("reboot: System halted # SKIP\nnot ok 1");
        assert_eq!(text, "reboot; System halted _ SKIP\\nnot ok 1");
    }
}
