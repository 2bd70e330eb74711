//! The single definition of every pattern's name, description, origin, formula and parameters.
//!
//! Used by the parser, bounds, help, the man page and the table in `docs/scenarios.md`.

use std::fmt::{self, Display};

use super::error::PatternError;

/// Description of a pattern, for help and documentation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct About {
    /// Name of the pattern, as written before the parentheses.
    pub name: &'static str,
    /// What the pattern does, in one sentence.
    pub summary: &'static str,
    /// Origin of the pattern: program or paper, with year.
    pub origin: &'static str,
    /// Formula by which pages are selected; `range` is the number of pages.
    pub formula: &'static str,
    /// Parameters of the pattern, in the order in which they can be given without names.
    pub parameters: &'static [Parameter],
}

/// One parameter of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Name of the parameter, as written before the equals sign.
    pub name: &'static str,
    /// Meaning of the parameter, with its unit.
    pub help: &'static str,
    /// Type of the parameter's values.
    pub kind: ParameterKind,
    /// Default value; 0 or 1 for a flag.
    pub default: f64,
    /// Minimum value.
    pub min: f64,
    /// Maximum value.
    pub max: f64,
}

/// Type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A decimal number, possibly with a fraction.
    Real,
    /// A whole number.
    Whole,
    /// A flag: true if only the name is given, false if the name is omitted; also `name=true` and `name=false`.
    Flag,
}

impl Parameter {
    /// Checks a value for this parameter. Fails for NaN, for a fraction if an integer is needed, and for a value out of
    /// bounds.
    pub(super) fn check(&self, pattern: &'static str, value: f64) -> Result<(), PatternError> {
        // NaN is in no range, so the test is for being inside.
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

    /// Returns the allowed values of the parameter, in words.
    pub fn bounds(&self) -> String {
        match self.kind {
            ParameterKind::Flag => "true or false".to_owned(),
            ParameterKind::Whole => format!("a whole number from {} to {}", self.min, self.max),
            ParameterKind::Real => format!("a number from {} to {}", self.min, self.max),
        }
    }
}

impl Display for About {
    /// Formats name, summary and parameters of the pattern, one per line.
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

/// Returns the descriptions of all patterns, in display order.
pub fn catalogue() -> &'static [About] {
    &CATALOGUE
}

static CATALOGUE: [About; 12] = [
    LINEAR,
    RANDOM,
    SMOOTH_SIN,
    SMOOTH_SIN_RANDOM,
    ZIPF05,
    ZIPF,
    LOGNORMAL,
    HOT_COLD,
    COLD_FIRST,
    SCAN_WITH_HOT_CORE,
    LOOP,
    FILE,
];

const VM_REGRESS: &str = "VM Regress (2002)";

const AS_WRITTEN: Parameter = Parameter {
    name: "as-written",
    help: "keep the original's overshoot: doubling the step may already give more references than requested",
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
    summary: "every page from the first to the last, repeatedly",
    origin: VM_REGRESS,
    formula: "0, 1, … range−1, 0, …",
    parameters: &[],
};

pub(super) const RANDOM: About = About {
    name: "random",
    summary: "every page once in ascending order, then uniformly random pages",
    origin: VM_REGRESS,
    formula: "0, 1, … range−1, then uniform over 0 … range−1",
    parameters: &[],
};

pub(super) const SMOOTH_SIN: About = About {
    name: "smooth-sin",
    summary: "in page order; the number of references of each page follows a sine curve of one and a half periods",
    origin: VM_REGRESS,
    formula: "s[i] = step + step·sin(3πi/range) with step = 1, 2, 4, … until Σ⌊s[i]⌋ > refs/2; then 1 more for page \
              0, 1, … in turn until the sum is refs; if the sum is already larger, 1 less for page 0, 1, … in turn (as \
              written: not reduced); page i is referenced ⌊s[i]⌋ times",
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
    summary: "lower pages are referenced more often: VM Regress's zipf with exponent one half",
    origin: VM_REGRESS,
    formula: "k = ⌊range·r²+0.5⌋ with r uniform in [0, 1), drawn again if 0 or above range; page k−1",
    parameters: &[],
};

pub(super) const ZIPF: About = About {
    name: "zipf",
    summary: "Zipf's law with a chosen exponent over all pages: a few pages get most references",
    origin: "Zipf (1949); drawn by rejection-inversion, Hörmann and Derflinger (1996)",
    formula: "rank k of 1 … range with probability k^−exponent / Σ j^−exponent; page k−1, or scattered",
    parameters: &[
        Parameter {
            name: "exponent",
            help: "steepness: 0 is uniform, 1 is Zipf's law",
            kind: ParameterKind::Real,
            default: 1.0,
            min: 0.0,
            max: 16.0,
        },
        Parameter {
            name: "scatter",
            help: "spread the ranks over the pages, in the same way for the same seed, so that hot pages are not neighbours",
            kind: ParameterKind::Flag,
            default: 0.0,
            min: 0.0,
            max: 1.0,
        },
    ],
};

pub(super) const LOGNORMAL: About = About {
    name: "lognormal",
    summary: "lower pages are referenced more often, with a log-normal tail; page 0 is never referenced",
    origin: VM_REGRESS,
    formula: "μ = 8, σ = ln(range + e^μ) − μ + 1, z = the sum of 12 uniforms − 6; page ⌊e^(μ+σ·|z|) − e^μ + 0.5⌋, drawn \
              again if outside of 1 … range−1",
    parameters: &[],
};

pub(super) const HOT_COLD: About = About {
    name: "hot-cold",
    summary: "a hot set of neighbouring pages that moves through the range; the other pages are cold",
    origin: "the moving working set (Denning, 1968), as one hot window",
    formula: "with probability share uniform over the hot window, otherwise uniform over the other pages; the window of \
              hot·range pages starts at a random page and moves up, with wraparound, after every `move` references",
    parameters: &[
        share("hot", "size of the hot set as a fraction of all pages", 0.1),
        share(
            "share",
            "fraction of the references that go to the hot set",
            0.9,
        ),
        Parameter {
            name: "move",
            help: "number of references between two moves of the hot set; 0 for no moves",
            kind: ParameterKind::Whole,
            default: 10_000.0,
            min: 0.0,
            max: 4_294_967_295.0,
        },
        share(
            "by",
            "distance of a move as a fraction of the size of the hot set: 1 replaces the whole set, 0.1 a tenth",
            0.1,
        ),
    ],
};

pub(super) const COLD_FIRST: About = About {
    name: "cold-first",
    summary: "the first pages are never referenced, the others uniformly at random",
    origin: "made for tiers of swap: what is cold is swapped out first, and fills the fastest device",
    formula: "uniform over cold·range … range−1",
    parameters: &[share(
        "cold",
        "size of the cold part as a fraction of all pages",
        0.5,
    )],
};

pub(super) const SCAN_WITH_HOT_CORE: About = About {
    name: "scan-with-hot-core",
    summary: "a linear scan over most pages, interleaved with random references to a small hot core",
    origin: "the scan-resistance test of replacement policies (LRU-K, 2Q, ARC)",
    formula: "with probability share uniform over the first core·range pages, otherwise the next page of a cyclic scan over \
              the others, which starts at a random page",
    parameters: &[
        share(
            "core",
            "size of the hot core as a fraction of all pages",
            0.1,
        ),
        share(
            "share",
            "fraction of the references that go to the core",
            0.5,
        ),
    ],
};

pub(super) const LOOP: About = About {
    name: "loop",
    summary: "a cyclic scan from a random page; over a range slightly larger than memory it is the worst case of LRU",
    origin: "the looping pattern of replacement studies (LIRS, CLOCK-Pro)",
    formula: "(start + n) mod range with start uniform over 0 … range−1",
    parameters: &[],
};

pub(super) const FILE: About = About {
    name: "file:PATH",
    summary: "the references in a file: one page index per line, `page count` per line, or the compact binary form",
    origin: "`pagetide ideal references`, or your own trace",
    formula: "as in the file; repeated from its start if it contains fewer references than requested",
    parameters: &[],
};
