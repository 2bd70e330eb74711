//! How often would verdicts be wrong? Thousands of simulated campaigns, each of three primary metrics, for five kinds of
//! noise: false alarms per campaign when nothing differs, coverage of 95 % intervals, and power against a 2 % shift.
//!
//! ```text
//! cargo run --release -p pagetide-verdict --example calibrate [CAMPAIGNS]
//! ```

use std::time::Instant;

#[path = "../tests/common/mod.rs"]
mod common;

use common::campaign::{PRIMARIES, Question, Tally};
use common::noise::ALL;

fn main() {
    let campaigns: u32 = std::env::args()
        .nth(1)
        .and_then(|argument| argument.parse().ok())
        .unwrap_or(10_000);
    println!("{campaigns} campaigns of {PRIMARIES} primary metrics; all figures in percent");
    println!(
        "{:<15}{:>28}{:>22}{:>24}{:>22}",
        "", "fixed n = 8", "fixed n = 30", "until sure, cap 60", "no effect, margin 3 %"
    );
    println!(
        "{:<15}{:>9}{:>10}{:>9}{:>12}{:>10}{:>12}{:>6}{:>6}{:>12}{:>10}{:>8}",
        "noise",
        "alarms",
        "coverage",
        "2 %",
        "alarms",
        "2 %",
        "alarms",
        "2 %",
        "n",
        "equivalent",
        "n",
        "seconds"
    );
    for noise in ALL {
        let start = Instant::now();
        let none = Question {
            noise,
            campaigns,
            effect: 1.0,
            primaries: PRIMARIES,
            margin: 0.0,
            seed: 1,
        };
        let shifted = Question {
            effect: 1.02,
            primaries: 1,
            ..none
        };
        let (short, long, sure) = (none.paired(8), none.paired(30), none.until_sure(60));
        let (short_shift, long_shift, sure_shift) = (
            shifted.paired(8),
            shifted.paired(30),
            shifted.until_sure(60),
        );
        let same = Question {
            margin: 0.03,
            ..none
        }
        .until_sure(60);
        println!(
            "{:<15}{:>9.2}{:>10.2}{:>9.1}{:>12.2}{:>10.1}{:>12.2}{:>6.1}{:>6.1}{:>12.1}{:>10.1}{:>8.1}",
            format!("{noise:?}"),
            100.0 * short.alarm_rate(),
            100.0 * pooled_coverage(&[short, short_shift]),
            100.0 * short_shift.power(),
            100.0 * long.alarm_rate(),
            100.0 * long_shift.power(),
            100.0 * sure.alarm_rate(),
            100.0 * sure_shift.power(),
            sure_shift.mean_trials(),
            100.0 * same.equivalence_rate(),
            same.mean_trials(),
            start.elapsed().as_secs_f64(),
        );
        let wrong = short_shift.wrong + long_shift.wrong + sure_shift.wrong;
        println!(
            "{:<15}coverage n = 30: {:.2}; wrong sign in {wrong} of {}",
            "",
            100.0 * pooled_coverage(&[long, long_shift]),
            3 * campaigns
        );
    }
    println!("\nother designs (fixed n)");
    println!(
        "{:<15}{:>20}{:>26}{:>24}",
        "", "unpaired 8 and 8", "8 boots of 4, nested", "p99, 8 pairs (1/20)"
    );
    println!(
        "{:<15}{:>10}{:>10}{:>16}{:>10}{:>14}{:>10}{:>9}",
        "noise", "alarms", "coverage", "alarms", "coverage", "alarms", "coverage", "seconds"
    );
    for noise in ALL {
        let start = Instant::now();
        let none = Question {
            noise,
            campaigns,
            effect: 1.0,
            primaries: PRIMARIES,
            margin: 0.0,
            seed: 2,
        };
        let fewer = Question {
            campaigns: (campaigns / 20).max(1),
            ..none
        };
        let (unpaired, nested, tails) = (none.unpaired(8), none.nested(8, 4), fewer.tails(8));
        println!(
            "{:<15}{:>10.2}{:>10.2}{:>16.2}{:>10.2}{:>14.2}{:>10.2}{:>9.1}",
            format!("{noise:?}"),
            100.0 * unpaired.alarm_rate(),
            100.0 * unpaired.coverage(),
            100.0 * nested.alarm_rate(),
            100.0 * nested.coverage(),
            100.0 * tails.alarm_rate(),
            100.0 * tails.coverage(),
            start.elapsed().as_secs_f64(),
        );
    }
}

fn pooled_coverage(tallies: &[Tally]) -> f64 {
    let covering: u32 = tallies.iter().map(|tally| tally.covering).sum();
    let intervals: u32 = tallies.iter().map(|tally| tally.intervals).sum();
    f64::from(covering) / f64::from(intervals)
}
