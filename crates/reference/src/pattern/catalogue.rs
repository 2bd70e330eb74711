//! The one definition of every pattern's name, meaning, origin, formula and parameters.
//!
//! Parsing, bounds, help, the man page and GUIDE's table all read it.

use std::fmt::{self, Display};

use super::parse::PatternError;

/// What a pattern is, for help and documentation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct About {
    /// Name, as written before the parentheses.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub origin: &'static str,
    /// How pages are chosen; `range` is the number of pages.
    pub formula: &'static str,
    /// Parameters, in the order in which they can be given without their names.
    pub parameters: &'static [Parameter],
}

/// One parameter of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Name, as written before the equals sign.
    pub name: &'static str,
    /// What it means, with its unit.
    pub help: &'static str,
    /// What values it takes.
    pub kind: ParameterKind,
    /// Value if it is not given; flags are 0 or 1.
    pub default: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A decimal number.
    Real,
    /// A whole number.
    Whole,
    /// On if named, off if not; also `name=true` and `name=false`.
    Flag,
}

impl Parameter {
    /// Refuses NaN, a fraction where a whole number is needed, and a value out of bounds.
    pub(super) fn check(&self, pattern: &'static str, value: f64) -> Result<(), PatternError> {
        // NaN is within no range, so the test asks for being within.
        let inside = (self.min..=self.max).contains(&value);
        let whole = libm::trunc(value).to_bits() == value.to_bits();
        if inside && (whole || self.kind == ParameterKind::Real) {
            return Ok(());
        }
        Err(PatternError::OutOfBounds {
            pattern,
            parameter: self.name,
            value,
            bounds: self.bounds(),
        })
    }

    /// The values allowed, in words.
    pub fn bounds(&self) -> String {
        match self.kind {
            ParameterKind::Flag => "true or false".to_owned(),
            ParameterKind::Whole => format!("a whole number from {} to {}", self.min, self.max),
            ParameterKind::Real => format!("a number from {} to {}", self.min, self.max),
        }
    }
}

impl Display for About {
    /// Name, summary and parameters, a line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}\n      {}", self.name, self.summary)?;
        for parameter in self.parameters {
            writeln!(
                f,
                "      {}: {} ({}, default {})",
                parameter.name,
                parameter.help,
                parameter.bounds(),
                parameter.default
            )?;
        }
        Ok(())
    }
}

/// Every pattern, in the order in which they are listed.
pub fn catalogue() -> &'static [About] {
    &CATALOGUE
}

static CATALOGUE: [About; 11] = [
    LINEAR,
    RANDOM,
    SMOOTH_SIN,
    SMOOTH_SIN_RANDOM,
    ZIPF05,
    ZIPF,
    LOGNORMAL,
    HOT_COLD,
    SCAN_WITH_HOT_CORE,
    LOOP,
    FILE,
];

const VM_REGRESS: &str = "VM Regress (2002)";

const AS_WRITTEN: Parameter = Parameter {
    name: "as-written",
    help: "keep the original's overshoot: doubling the step may already give more references than asked for",
    kind: ParameterKind::Flag,
    default: 0.0,
    min: 0.0,
    max: 1.0,
};

const fn share(name: &'static str, help: &'static str, default: f64) -> Parameter {
    Parameter {
        name,
        help,
        kind: ParameterKind::Real,
        default,
        min: 0.0,
        max: 1.0,
    }
}

pub(super) const LINEAR: About = About {
    name: "linear",
    summary: "every page in turn, from the first to the last, again and again",
    origin: VM_REGRESS,
    formula: "0, 1, … range−1, 0, …",
    parameters: &[],
};

pub(super) const RANDOM: About = About {
    name: "random",
    summary: "every page once in order, then pages at random, all equally likely",
    origin: VM_REGRESS,
    formula: "0, 1, … range−1, then uniform over 0 … range−1",
    parameters: &[],
};

pub(super) const SMOOTH_SIN: About = About {
    name: "smooth-sin",
    summary: "in page order, each page as often as a sine curve of one and a half periods is high there",
    origin: VM_REGRESS,
    formula: "s[i] = step + step·sin(3πi/range) with step = 1, 2, 4, … until Σ⌊s[i]⌋ > refs/2; then 1 more for page \
              0, 1, … in turn until the sum is refs; if the sum is already above, 1 less for page 0, 1, … in turn (as \
              written: left above); page i is referenced ⌊s[i]⌋ times",
    parameters: &[AS_WRITTEN],
};

pub(super) const SMOOTH_SIN_RANDOM: About = About {
    name: "smooth-sin-random",
    summary: "the references of smooth-sin in random order",
    origin: VM_REGRESS,
    formula: "the counts of smooth-sin, drawn without replacement: every order of the multiset is equally likely",
    parameters: &[AS_WRITTEN],
};

pub(super) const ZIPF05: About = About {
    name: "zipf05",
    summary: "lower pages more often: VM Regress's zipf with exponent one half",
    origin: VM_REGRESS,
    formula: "k = ⌊range·r²+0.5⌋ with r uniform in [0, 1), drawn again when 0 or above range; page k−1",
    parameters: &[],
};

pub(super) const ZIPF: About = About {
    name: "zipf",
    summary: "Zipf's law with a free exponent over all pages: a few pages get most references",
    origin: "Zipf (1949); drawn by rejection-inversion, Hörmann and Derflinger (1996)",
    formula: "rank k of 1 … range with probability k^−exponent / Σ j^−exponent; page k−1, or scattered",
    parameters: &[
        Parameter {
            name: "exponent",
            help: "how steep: 0 is uniform, 1 is Zipf's own law",
            kind: ParameterKind::Real,
            default: 1.0,
            min: 0.0,
            max: 16.0,
        },
        Parameter {
            name: "scatter",
            help: "spread the ranks over the pages, the same way for the same seed, so that hot pages are no neighbours",
            kind: ParameterKind::Flag,
            default: 0.0,
            min: 0.0,
            max: 1.0,
        },
    ],
};

pub(super) const LOGNORMAL: About = About {
    name: "lognormal",
    summary: "lower pages more often, with a log-normal tail; page 0 is never referenced",
    origin: VM_REGRESS,
    formula: "μ = 8, σ = ln(range + e^μ) − μ + 1, z = the sum of 12 uniforms − 6; page ⌊e^(μ+σ·|z|) − e^μ + 0.5⌋, drawn \
              again when outside 1 … range−1",
    parameters: &[],
};

pub(super) const HOT_COLD: About = About {
    name: "hot-cold",
    summary: "a hot set of neighbouring pages that moves through the range, and a cold rest",
    origin: "the moving working set (Denning, 1968), as one hot window",
    formula: "with probability share uniform over the hot window, else uniform over the other pages; the window of \
              hot·range pages starts at a page of the seed and moves up, wrapping, after every `move` references",
    parameters: &[
        share("hot", "size of the hot set as a share of all pages", 0.1),
        share(
            "share",
            "share of the references that go to the hot set",
            0.9,
        ),
        Parameter {
            name: "move",
            help: "references between two moves of the hot set; 0 keeps it where it is",
            kind: ParameterKind::Whole,
            default: 10_000.0,
            min: 0.0,
            max: 4_294_967_295.0,
        },
        share(
            "by",
            "how far it moves as a share of its own size: 1 replaces it at once, 0.1 lets it drift",
            0.1,
        ),
    ],
};

pub(super) const SCAN_WITH_HOT_CORE: About = About {
    name: "scan-with-hot-core",
    summary: "a linear scan over most pages, interleaved with random references to a small hot core",
    origin: "the scan-resistance test of replacement policies (LRU-K, 2Q, ARC)",
    formula: "with probability share uniform over the first core·range pages, else the next page of a cyclic scan over \
              the others, which starts at a page of the seed",
    parameters: &[
        share("core", "size of the hot core as a share of all pages", 0.1),
        share("share", "share of the references that go to the core", 0.5),
    ],
};

pub(super) const LOOP: About = About {
    name: "loop",
    summary: "a cyclic scan from a page chosen by the seed; over a range just larger than memory it defeats LRU",
    origin: "the looping pattern of replacement studies (LIRS, CLOCK-Pro)",
    formula: "(start + n) mod range with start uniform over 0 … range−1",
    parameters: &[],
};

pub(super) const FILE: About = About {
    name: "file:PATH",
    summary: "the references in a file: one page index a line, `page count` a line, or the compact binary form",
    origin: "`pagetide references`, or any trace of your own",
    formula: "as the file says; repeated from its start if more references are asked for than it holds",
    parameters: &[],
};
