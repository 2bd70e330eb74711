//! What pagetide's words mean, for `pagetide help words`.

/// A word, and what it means here.
pub const WORDS: &[(&str, &str)] = &[
    ("age", "how many references ago a page was referenced last"),
    (
        "arena",
        "a place where trials run; in the exact arena an emulator counts instructions, and time is that count",
    ),
    (
        "baseline",
        "the first variant of a campaign, or A of a comparison: what the others are set against",
    ),
    (
        "campaign",
        "variants, scenarios and seeds, and the rule for how many trials",
    ),
    (
        "cell",
        "one scenario with its parameters, memory and swap: what is the same for all variants",
    ),
    ("guest", "the system that an arena boots"),
    (
        "harness",
        "pagetide's own part of a running trial, beside the workload",
    ),
    (
        "headroom",
        "references that did not find their page, for each that the best possible policy (OPT) has with the same memory",
    ),
    (
        "identical",
        "every pair of trials gave the same record, bit for bit",
    ),
    (
        "equivalent",
        "the whole interval lies within the margin: whatever the difference is, it does not matter",
    ),
    ("inconclusive", "the trials allow no claim; more seeds may"),
    (
        "margin",
        "a difference that does not matter: 1 % unless a campaign says otherwise",
    ),
    (
        "observed pass",
        "a second run of a trial, with tracepoints and series; it explains and is never judged",
    ),
    (
        "paper",
        "one of the five historical systems whose workloads and tables pagetide repeats",
    ),
    (
        "primary metric",
        "a metric that decides; all of them share one error rate",
    ),
    ("record", "all that one trial produced, as one file"),
    ("refault", "a page that comes back after it was reclaimed"),
    ("scenario", "a workload with parameters and metrics"),
    (
        "seed",
        "a number from which everything random in a trial is drawn; trials with the same seed are paired",
    ),
    (
        "stall",
        "an access that took ten times as long as the median major fault",
    ),
    (
        "timed pass",
        "the run of a trial that is judged; nothing is traced",
    ),
    (
        "trial",
        "one run of one scenario under one variant with one seed",
    ),
    ("uses", "how often a page was referenced"),
    (
        "variant",
        "what is compared: a kernel with boot arguments and settings",
    ),
];

/// All of them as text, a line each or more, no wider than `width` columns.
pub fn text(width: usize) -> String {
    let longest = WORDS.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    let rows = WORDS
        .iter()
        .map(|(word, meaning)| columns(word, meaning, longest, width));
    rows.collect()
}

/// Names under headings, each with its meaning; `groups` are headings with the names under them, separated by spaces.
pub fn under_headings(
    groups: &[(&str, &str)],
    meaning: impl Fn(&str) -> String,
    width: usize,
) -> String {
    let names = groups.iter().flat_map(|(_, names)| names.split(' '));
    let first = names.map(str::len).max().unwrap_or(0) + 2;
    let mut out = String::new();
    for (heading, names) in groups {
        put!(out, "{heading}:\n");
        for name in names.split(' ') {
            out += &columns(&format!("  {name}"), &meaning(name), first, width);
        }
        out.push('\n');
    }
    out
}

/// A name and its meaning in two columns: the first is `first` wide, the second is wrapped so that lines are at most `width` wide.
fn columns(name: &str, meaning: &str, first: usize, width: usize) -> String {
    let room = width.saturating_sub(first + 2).max(20);
    let mut out = String::new();
    let lines = crate::draw::clean::wrap(meaning, room, false);
    for (nth, line) in lines.iter().enumerate() {
        let head = if nth == 0 { name } else { "" };
        put!(out, "{head:first$}  {line}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_stands_once_with_its_meaning_and_no_line_is_too_long() {
        let shown = text(80);
        for (word, meaning) in WORDS {
            assert_eq!(WORDS.iter().filter(|(other, _)| other == word).count(), 1);
            assert!(shown.contains(word) && meaning.len() > 15);
        }
        assert!(shown.lines().all(|line| line.chars().count() <= 80));
    }
}
