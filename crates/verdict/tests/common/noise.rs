//! Kinds of noise found in benchmarks. Each generates the values of consecutive trials of one kernel.

use pagetide_verdict::Pair;
use pagetide_verdict::rng::Xoshiro;

/// Kind of noise around a value of 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Normal, with a standard deviation of 3 %.
    Normal,
    /// Log-normal, skewed: standard deviation of the logarithm 0.3.
    LogNormal,
    /// Student with two degrees of freedom, scale 2 %: infinite variance.
    HeavyTailed,
    /// Two modes: a trial is 8 % higher with a probability of one third, as if a huge page was not available.
    Bimodal,
    /// Autoregressive: each trial retains 80 % of the deviation of the one before, as on a machine that warms up.
    Autocorrelated,
}

/// All kinds, in the order of tables.
pub const ALL: [Noise; 5] = [
    Noise::Normal,
    Noise::LogNormal,
    Noise::HeavyTailed,
    Noise::Bimodal,
    Noise::Autocorrelated,
];

impl Noise {
    /// Standard deviation as a fraction of the value. For the Student kind, whose deviation is infinite, the scale.
    pub fn deviation(self) -> f64 {
        match self {
            Self::Normal | Self::Autocorrelated => 0.03,
            // exp(s²/2) √(exp(s²) − 1) for s = 0.3.
            Self::LogNormal => 0.3210,
            Self::HeavyTailed => 0.02,
            // Two modes 8 % apart, with a third of the values in one: √(2/9) of 8 %, plus a little noise around each.
            Self::Bimodal => 0.0380,
        }
    }

    /// `count` consecutive values.
    pub fn series(self, count: usize, random: &mut Xoshiro) -> Vec<f64> {
        let mut memory = random.normal();
        (0..count)
            .map(|_| match self {
                Self::Normal => 100.0 * (1.0 + 0.03 * random.normal()),
                Self::LogNormal => 100.0 * (0.3 * random.normal()).exp(),
                Self::HeavyTailed => 100.0 * (0.02 * student_two(random)).exp(),
                Self::Bimodal => {
                    let mode = if random.unit() < 1.0 / 3.0 { 1.08 } else { 1.0 };
                    100.0 * mode * (1.0 + 0.005 * random.normal())
                }
                Self::Autocorrelated => {
                    memory = 0.8 * memory + 0.6 * random.normal();
                    100.0 * (1.0 + 0.03 * memory)
                }
            })
            .collect()
    }

    /// Pairs of consecutive trials in which A or B runs first with equal probability, as in a real campaign. B takes
    /// `effect` times as long.
    pub fn pairs(self, count: usize, effect: f64, random: &mut Xoshiro) -> Vec<Pair> {
        let series = self.series(2 * count, random);
        series
            .chunks(2)
            .map(|block| {
                let (a, b) = if random.bits() >> 63 == 1 {
                    (block[0], block[1])
                } else {
                    (block[1], block[0])
                };
                Pair::new(a, b * effect)
            })
            .collect()
    }

    /// Values of two sessions, A's and B's, with `count` consecutive trials each. The sessions share no conditions, as
    /// if trials were not run in blocks. (In blocks whose pairing is ignored, both groups share their drift, and
    /// intervals would be far too wide.)
    pub fn sessions(self, count: usize, effect: f64, random: &mut Xoshiro) -> (Vec<f64>, Vec<f64>) {
        let a = self.series(count, random);
        let b = self.series(count, random);
        (a, b.into_iter().map(|value| value * effect).collect())
    }
}

/// Student's t with two degrees of freedom by inversion, which has a closed form.
fn student_two(random: &mut Xoshiro) -> f64 {
    let u = loop {
        let u = random.unit();
        if u > 0.0 {
            break u;
        }
    };
    let alpha = 4.0 * u * (1.0 - u);
    2.0 * (u - 0.5) * (2.0 / alpha).sqrt()
}
