//! Simulates thousands of campaigns and counts correct and false verdicts.

use pagetide_quantity::Direction;
use pagetide_verdict::judgement::Note;
use pagetide_verdict::rng::Xoshiro;
use pagetide_verdict::sample::{Bin, TailPair, UnitPair};
use pagetide_verdict::sequential::{Decision, Design, Plan};
use pagetide_verdict::{Data, Family, Judgement, Margin, MetricSample, Verdict, judge};

use super::noise::Noise;
use super::suites;

/// Number of primary metrics of a simulated campaign. They are independent, which is the worst case for false alarms.
pub const PRIMARIES: usize = 3;

/// Counts of verdicts over many simulated campaigns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Number of campaigns judged.
    pub campaigns: u32,
    /// Number of campaigns that claimed a difference of any primary metric.
    pub alarms: u32,
    /// Number of intervals of primary metrics, and of those that contained the true value.
    pub intervals: u32,
    pub covering: u32,
    /// Number of primary metrics claimed to differ in the right and in the wrong direction.
    pub right: u32,
    pub wrong: u32,
    /// Number of primary metrics claimed to be equivalent.
    pub equivalent: u32,
    /// Number of campaigns in which serial correlation was detected.
    pub dependent: u32,
    /// Number of pairs, or trials of each variant, that were run.
    pub trials: u64,
}

impl Tally {
    pub fn alarm_rate(&self) -> f64 {
        f64::from(self.alarms) / f64::from(self.campaigns)
    }

    pub fn coverage(&self) -> f64 {
        f64::from(self.covering) / f64::from(self.intervals)
    }

    pub fn power(&self) -> f64 {
        f64::from(self.right) / f64::from(self.intervals)
    }

    pub fn equivalence_rate(&self) -> f64 {
        f64::from(self.equivalent) / f64::from(self.intervals)
    }

    pub fn mean_trials(&self) -> f64 {
        self.trials as f64 / f64::from(self.campaigns)
    }

    fn add(&mut self, judgements: &[Judgement], effect: f64) {
        self.campaigns += 1;
        let mut alarm = false;
        for judgement in judgements.iter().filter(|judgement| judgement.primary) {
            self.intervals += 1;
            let found = judgement.effect.expect("simulated values are sound");
            let interval = found.interval.expect("more than one pair was simulated");
            // Rounding may put an interval end on the wrong side of a true value at the margin.
            self.covering += u32::from(
                interval.is_inside(0.0, f64::MAX) && {
                    interval.low <= effect * (1.0 + 1e-12)
                        && effect <= interval.high * (1.0 + 1e-12)
                },
            );
            self.equivalent += u32::from(judgement.verdict == Verdict::Equivalent);
            match judgement.verdict {
                Verdict::Regressed => self.right += 1,
                Verdict::Improved => self.wrong += 1,
                _ => {}
            }
            alarm |= judgement.shift.is_some();
        }
        self.alarms += u32::from(alarm);
        let note = |note: &Note| matches!(note, Note::Dependent { .. });
        let dependent = judgements.iter().flat_map(|found| &found.notes).any(note);
        self.dependent += u32::from(dependent);
        self.trials += judgements[0].n;
    }
}

/// Parameters of a simulation of campaigns.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub noise: Noise,
    pub campaigns: u32,
    /// True ratio of B to A.
    pub effect: f64,
    pub primaries: usize,
    pub margin: f64,
    pub seed: u64,
}

impl Question {
    /// Campaigns of [`PRIMARIES`] metrics without any difference.
    pub fn nothing(noise: Noise, campaigns: u32) -> Self {
        Self {
            noise,
            campaigns,
            effect: 1.0,
            primaries: PRIMARIES,
            margin: 0.0,
            seed: 1,
        }
    }

    /// Campaigns of one metric in which B is `effect` times A.
    pub fn with_effect(self, effect: f64) -> Self {
        Self {
            effect,
            primaries: 1,
            ..self
        }
    }

    fn family(&self, data: Vec<Data>) -> Family {
        let metrics = data
            .into_iter()
            .map(|data| MetricSample {
                name: "time".into(),
                unit: "nanos".into(),
                direction: Direction::Lower,
                primary: true,
                margin: Some(Margin::Relative(self.margin)),
                scale: pagetide_verdict::sample::Scale::Ratio,
                data,
            })
            .collect();
        Family {
            alpha: 0.05,
            seed: self.seed,
            // Secondary tests are omitted, because they do not decide.
            resamples: 0,
            metrics,
        }
    }

    fn fixed(&self, mut draw: impl FnMut(&mut Xoshiro) -> Data, resamples: u32) -> Tally {
        let mut random = Xoshiro::new(self.seed);
        let mut tally = Tally::default();
        for _ in 0..self.campaigns {
            let data = (0..self.primaries).map(|_| draw(&mut random)).collect();
            let mut family = self.family(data);
            family.resamples = resamples;
            family.seed = random.bits();
            let judgements = judge(&family).expect("5 % is an error rate");
            tally.add(&judgements, self.effect);
        }
        tally
    }

    /// Judges campaigns with a fixed number of pairs.
    pub fn paired(&self, pairs: usize) -> Tally {
        self.fixed(
            |random| Data::Paired {
                pairs: self.noise.pairs(pairs, self.effect, random),
            },
            0,
        )
    }

    /// Judges one unpaired session: a fixed number of trials for each variant, one after the other.
    pub fn unpaired(&self, trials: usize) -> Tally {
        self.fixed(
            |random| {
                let (a, b) = self.noise.sessions(trials, self.effect, random);
                Data::Unpaired { a, b }
            },
            0,
        )
    }

    /// Judges paired boots with repetitions in each boot. The variation between boots is as large as the variation
    /// within a boot.
    pub fn nested(&self, boots: usize, repetitions: usize) -> Tally {
        self.fixed(
            |random| {
                let levels = self.noise.pairs(boots, self.effect, random);
                let unit = |level: f64, random: &mut Xoshiro| {
                    let inside = self.noise.series(repetitions, random);
                    inside.iter().map(|value| level * value / 100.0).collect()
                };
                let units = levels
                    .iter()
                    .map(|pair| UnitPair {
                        a: unit(pair.a, random),
                        b: unit(pair.b, random),
                        identical: false,
                    })
                    .collect();
                Data::NestedPaired { units }
            },
            0,
        )
    }

    /// Judges the 99th percentile of 400 accesses per trial. The levels of the trials vary by the noise, in blocks of
    /// two.
    pub fn tails(&self, pairs: usize, resamples: u32) -> Tally {
        self.fixed(
            |random| {
                let levels = self.noise.pairs(pairs, self.effect, random);
                let pairs = levels
                    .iter()
                    .map(|pair| TailPair {
                        a: accesses(pair.a, random),
                        b: accesses(pair.b, random),
                        identical: false,
                    })
                    .collect();
                Data::PairedTails {
                    quantile: 0.99,
                    pairs,
                }
            },
            resamples,
        )
    }

    /// Judges the 99th percentile of 400 accesses per trial, for one unpaired session of trials of each variant.
    pub fn unpaired_tails(&self, trials: usize, resamples: u32) -> Tally {
        self.fixed(
            |random| {
                let (a, b) = self.noise.sessions(trials, self.effect, random);
                let mut side = |levels: Vec<f64>| -> Vec<Vec<Bin>> {
                    let levels = levels.into_iter();
                    levels.map(|level| accesses(level, random)).collect()
                };
                Data::UnpairedTails {
                    quantile: 0.99,
                    a: side(a),
                    b: side(b),
                }
            },
            resamples,
        )
    }

    /// Counts how often the rules of other suites, and how often our rule, claim that a metric differs. Each variant
    /// has `trials` trials in a separate session.
    pub fn others(&self, trials: usize, rules: &[suites::OtherRule]) -> (Vec<f64>, f64) {
        let mut random = Xoshiro::new(self.seed);
        let mut said = vec![0_u32; rules.len()];
        let mut ours = Tally::default();
        for _ in 0..self.campaigns {
            let (a, b) = self.noise.sessions(trials, self.effect, &mut random);
            for (said, rule) in said.iter_mut().zip(rules) {
                *said += u32::from(rule(&a, &b));
            }
            let family = self.family(vec![Data::Unpaired { a, b }]);
            let judgements = judge(&family).expect("5 % is an error rate");
            ours.add(&judgements, self.effect);
        }
        let share = |count: u32| f64::from(count) / f64::from(self.campaigns);
        (said.into_iter().map(share).collect(), ours.alarm_rate())
    }

    /// Samples until sure, with at most `cap` pairs.
    pub fn until_sure(&self, cap: u64) -> Tally {
        let plan = Plan::until_sure(0.05, cap, self.primaries, Design::Paired)
            .expect("the cap allows a look");
        let mut random = Xoshiro::new(self.seed);
        let mut tally = Tally::default();
        for _ in 0..self.campaigns {
            let all: Vec<_> = (0..self.primaries)
                .map(|_| {
                    let cap = usize::try_from(cap).expect("caps are small");
                    self.noise.pairs(cap, self.effect, &mut random)
                })
                .collect();
            for (look, &n) in plan.looks().iter().enumerate() {
                let n = usize::try_from(n).expect("looks are small");
                let data = all
                    .iter()
                    .map(|pairs| Data::Paired {
                        pairs: pairs[..n].to_vec(),
                    })
                    .collect();
                if let Decision::Stop { judgements, .. } = plan.decide(&self.family(data), look) {
                    tally.add(&judgements, self.effect);
                    break;
                }
            }
        }
        tally
    }
}

/// Latencies of the accesses in one trial, as a histogram.
fn accesses(level: f64, random: &mut Xoshiro) -> Vec<Bin> {
    (0..400)
        .map(|_| Bin {
            value: level * (0.5 * random.normal()).exp(),
            count: 1,
        })
        .collect()
}
