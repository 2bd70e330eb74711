//! Error rates of verdicts in thousands of simulated campaigns with five kinds of noise. Prints false alarms per
//! campaign without a difference, coverage of 95 % intervals, power for a 2 % shift, and the results of the rules of
//! two other suites for the same values.
//!
//! ```text
//! cargo run --release -p pagetide-verdict --example false_alarms [CAMPAIGNS]
//! ```

use std::thread;
use std::time::Instant;

#[path = "../tests/common/mod.rs"]
mod common;

use common::campaign::{PRIMARIES, Question};
use common::noise::{ALL, Noise};
use common::suites;

/// Largest number of pairs in a campaign that samples until the result is sure.
const CAP: u64 = 60;
/// Number of random resamples for a tail with too many resamples to enumerate.
const RESAMPLES: u32 = 1_999;

fn main() {
    let campaigns: u32 = std::env::args()
        .nth(1)
        .and_then(|argument| argument.parse().ok())
        .unwrap_or(10_000);
    let start = Instant::now();
    println!("{campaigns} campaigns a cell; all figures in percent, n in pairs");
    println!(
        "false alarms: campaigns of {PRIMARIES} primary metrics in which any was claimed to differ"
    );
    println!(
        "standard error of 5 %: {:.2}\n",
        100.0 * (0.0475 / f64::from(campaigns)).sqrt()
    );
    false_alarms(campaigns);
    coverage(campaigns);
    power(campaigns);
    equivalence(campaigns);
    others(campaigns);
    println!();
    for line in [
        "n: blocks of one trial of each variant, in random order, one block after the other; analysed by pairs".into(),
        format!("sure: until sure, at most {CAP} pairs; sure, one: the same with one primary metric"),
        "nested: 8 blocks of 2 boots, 4 repetitions in each".into(),
        "8 v 8: a session of 8 trials of A, then another of B; analysed as unpaired groups".into(),
        "p99: the 99th percentile of 400 accesses a trial, n=8 or 8 v 8; *: a tenth of the campaigns".into(),
        "same, 3 % apart: judged equivalent, rightly and wrongly, when sampled until sure".into(),
        "2 sd: a shift of two standard deviations (of twice the scale where tails are heavy)".into(),
        "mmtests: means further apart than 1.96 standard deviations of each side together (Compare.pm, Stat.pm)".into(),
        "lkp: each side's median beyond the other's extreme (changed_stat.rb); 1 %: and medians 1 % apart (stats.rb)".into(),
        "ours: this crate's rule for the same unpaired values; one metric in all columns of that table".into(),
    ] {
        println!("{line}");
    }
    println!("{:.1} s", start.elapsed().as_secs_f64());
}

/// Prints the false alarm rate: the fraction of campaigns without a difference that claim a difference of a primary
/// metric.
fn false_alarms(campaigns: u32) {
    let head = [
        "n=3",
        "n=8",
        "n=30",
        "sure",
        "sure, one",
        "nested",
        "p99",
        "8 v 8",
    ];
    table("false alarms", &head, |noise| {
        let ask = Question::nothing(noise, campaigns);
        [
            ask.paired(3),
            ask.paired(8),
            ask.paired(30),
            ask.until_sure(CAP),
            ask.with_effect(1.0).until_sure(CAP),
            ask.nested(8, 4),
            ask.tails(8, RESAMPLES),
            ask.unpaired(8),
        ]
        .map(|tally| percent(tally.alarm_rate()))
        .to_vec()
    });
}

/// Prints the coverage: the fraction of intervals that contain the true ratio of 1.02.
fn coverage(campaigns: u32) {
    let head = [
        "n=8",
        "n=12",
        "n=30",
        "n=80",
        "nested",
        "p99",
        "8 v 8",
        "30 v 30",
        "p99, 8 v 8*",
    ];
    table("\ncoverage", &head, |noise| {
        let ask = Question::nothing(noise, campaigns).with_effect(1.02);
        [
            ask.paired(8),
            ask.paired(12),
            ask.paired(30),
            ask.paired(80),
            ask.nested(8, 4),
            ask.tails(8, RESAMPLES),
            ask.unpaired(8),
            ask.unpaired(30),
            fewer(ask).unpaired_tails(8, RESAMPLES),
        ]
        .map(|tally| percent(tally.coverage()))
        .to_vec()
    });
}

/// Prints the power: the fraction of campaigns that find a true ratio of 1.02, and the number of pairs they need.
fn power(campaigns: u32) {
    let head = ["n=8", "n=30", "sure", "mean n", "2 sd n=30", "wrong"];
    table("\n2 % shift", &head, |noise| {
        let ask = Question::nothing(noise, campaigns).with_effect(1.02);
        let (short, long, sure) = (ask.paired(8), ask.paired(30), ask.until_sure(CAP));
        let wrong = [short, long, sure]
            .iter()
            .map(|tally| tally.wrong)
            .sum::<u32>();
        let large = ask.with_effect(two_deviations(noise)).paired(30);
        vec![
            percent(short.power()),
            percent(long.power()),
            percent(sure.power()),
            format!("{:.1}", sure.mean_trials()),
            percent(large.power()),
            percent(f64::from(wrong) / f64::from(3 * campaigns)),
        ]
    });
}

/// Prints the results of sampling until sure with a margin of 3 %: without a difference, and with a difference equal to
/// the margin.
fn equivalence(campaigns: u32) {
    table("\nmargin 3 %", &["same", "mean n", "3 % apart"], |noise| {
        let ask = Question {
            margin: 0.03,
            primaries: 1,
            ..Question::nothing(noise, campaigns)
        };
        let same = ask.until_sure(CAP);
        let apart = ask.with_effect(1.03).until_sure(CAP);
        vec![
            percent(same.equivalence_rate()),
            format!("{:.1}", same.mean_trials()),
            percent(apart.equivalence_rate()),
        ]
    });
}

/// Prints how often the rules of other suites claim that a metric differs, without and with a true difference.
fn others(campaigns: u32) {
    println!(
        "\nclaims of a difference for one metric, 3 trials against 3 and nothing differs (A/A), or 30 against 30"
    );
    let head = [
        "mmtests A/A",
        "lkp A/A",
        "lkp 1 % A/A",
        "ours A/A",
        "mmtests 2 sd",
        "lkp 2 sd",
        "ours 2 sd",
    ];
    table("other suites", &head, |noise| {
        let ask = Question::nothing(noise, campaigns);
        let (few, ours_few) = ask
            .with_effect(1.0)
            .others(3, &[suites::mmtests, suites::lkp, suites::lkp_reported]);
        let (many, ours_many) = ask
            .with_effect(two_deviations(noise))
            .others(30, &[suites::mmtests, suites::lkp]);
        few.into_iter()
            .chain([ours_few])
            .chain(many)
            .chain([ours_many])
            .map(percent)
            .collect()
    });
}

fn two_deviations(noise: Noise) -> f64 {
    1.0 + 2.0 * noise.deviation()
}

/// Reduces the number of simulated campaigns for unpaired tails, because each of these needs thousands of resamples.
fn fewer(ask: Question) -> Question {
    Question {
        campaigns: (ask.campaigns / 10).max(1),
        ..ask
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

/// Prints a table with one row for each kind of noise; rows are computed in parallel.
fn table(name: &str, head: &[&str], cells: impl Fn(Noise) -> Vec<String> + Sync) {
    row(name, head);
    let rows = thread::scope(|scope| {
        let running = ALL.map(|noise| {
            scope.spawn({
                let cells = &cells;
                move || cells(noise)
            })
        });
        running.map(|row| row.join().expect("a simulation runs to its end"))
    });
    for (noise, cells) in ALL.iter().zip(rows) {
        row(&format!("{noise:?}"), &cells);
    }
}

fn row(head: &str, cells: &[impl AsRef<str>]) {
    // A leading line break must come before the padding.
    let (space, head) = head
        .strip_prefix('\n')
        .map_or(("", head), |head| ("\n", head));
    print!("{space}{head:<15}");
    for cell in cells {
        print!("{:>13}", cell.as_ref());
    }
    println!();
}
