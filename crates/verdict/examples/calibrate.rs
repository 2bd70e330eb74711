//! How often would verdicts be wrong? Thousands of simulated campaigns for five kinds of noise: false alarms per campaign
//! when nothing differs, coverage of 95 % intervals, and power against a 2 % shift.
//!
//! ```text
//! cargo run --release -p pagetide-verdict --example calibrate [CAMPAIGNS]
//! ```

use std::time::Instant;

#[path = "../tests/common/mod.rs"]
mod common;

use common::campaign::{PRIMARIES, Question};
use common::noise::{ALL, Noise};

/// Most pairs of a campaign that runs until sure.
const CAP: u64 = 60;

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
    println!(
        "\nsure: until sure, at most {CAP} pairs; sure, one: the same with one primary metric"
    );
    println!("nested: 8 boots of 4 repetitions; *: a tenth of the campaigns");
    println!("same, 3 % apart: judged equivalent, rightly and wrongly, when sampled until sure");
    println!("{:.1} s", start.elapsed().as_secs_f64());
}

/// Campaigns in which nothing differs, and any primary metric was claimed to.
fn false_alarms(campaigns: u32) {
    row(
        "false alarms",
        &[
            "n=3",
            "n=8",
            "n=30",
            "sure",
            "sure, one",
            "8 v 8",
            "nested",
            "p99*",
        ],
    );
    for noise in ALL {
        let ask = Question::nothing(noise, campaigns);
        let tallies = [
            ask.paired(3),
            ask.paired(8),
            ask.paired(30),
            ask.until_sure(CAP),
            ask.with_effect(1.0).until_sure(CAP),
            ask.unpaired(8),
            ask.nested(8, 4),
            fewer(ask).tails(8, 199),
        ];
        row(
            &name(noise),
            &tallies.map(|tally| percent(tally.alarm_rate())),
        );
    }
}

/// Intervals that contain the true ratio of 1.02.
fn coverage(campaigns: u32) {
    row(
        "\ncoverage",
        &["n=8", "n=12", "n=30", "n=80", "8 v 8", "nested", "p99*"],
    );
    for noise in ALL {
        let ask = Question::nothing(noise, campaigns).with_effect(1.02);
        let tallies = [
            ask.paired(8),
            ask.paired(12),
            ask.paired(30),
            ask.paired(80),
            ask.unpaired(8),
            ask.nested(8, 4),
            fewer(ask).tails(8, 1_999),
        ];
        row(
            &name(noise),
            &tallies.map(|tally| percent(tally.coverage())),
        );
    }
}

/// How often a true ratio of 1.02 is found, and with how many pairs.
fn power(campaigns: u32) {
    row(
        "\n2 % shift",
        &["n=8", "n=30", "sure", "mean n", "2 sd n=30", "wrong"],
    );
    for noise in ALL {
        let ask = Question::nothing(noise, campaigns).with_effect(1.02);
        let (short, long, sure) = (ask.paired(8), ask.paired(30), ask.until_sure(CAP));
        let wrong = [short, long, sure]
            .iter()
            .map(|tally| tally.wrong)
            .sum::<u32>();
        let large = ask.with_effect(1.0 + 2.0 * 0.03).paired(30);
        row(
            &name(noise),
            &[
                percent(short.power()),
                percent(long.power()),
                percent(sure.power()),
                format!("{:.1}", sure.mean_trials()),
                percent(large.power()),
                percent(f64::from(wrong) / f64::from(3 * campaigns)),
            ],
        );
    }
}

/// Sampling until sure with a margin of 3 %, when nothing differs and when the difference is the margin.
fn equivalence(campaigns: u32) {
    row("\nmargin 3 %", &["same", "mean n", "3 % apart"]);
    for noise in ALL {
        let ask = Question {
            margin: 0.03,
            primaries: 1,
            ..Question::nothing(noise, campaigns)
        };
        let same = ask.until_sure(CAP);
        let apart = ask.with_effect(1.03).until_sure(CAP);
        row(
            &name(noise),
            &[
                percent(same.equivalence_rate()),
                format!("{:.1}", same.mean_trials()),
                percent(apart.equivalence_rate()),
            ],
        );
    }
}

/// Tails cost a bootstrap each.
fn fewer(ask: Question) -> Question {
    Question {
        campaigns: (ask.campaigns / 10).max(1),
        ..ask
    }
}

fn name(noise: Noise) -> String {
    format!("{noise:?}")
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

fn row(head: &str, cells: &[impl AsRef<str>]) {
    // A leading line break belongs before the padding.
    let (space, head) = head
        .strip_prefix('\n')
        .map_or(("", head), |head| ("\n", head));
    print!("{space}{head:<15}");
    for cell in cells {
        print!("{:>11}", cell.as_ref());
    }
    println!();
}
