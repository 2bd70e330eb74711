//! The reference patterns and their parameters, in the form that users write, records store and help shows.

mod catalogue;
mod error;
mod parse;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use catalogue::{About, Parameter, ParameterKind, catalogue};
pub use error::{PatternError, StringError};

use crate::generate::cold_first::ColdFirst;
use crate::generate::hot_cold::HotCold;
use crate::generate::scan::ScanWithHotCore;
use crate::generate::smooth_sin::Curve;
use crate::generate::urn;
use crate::generate::zipf::Zipf;
use crate::limits::{MAX_PAGES, MAX_REFS};
use crate::number::whole_u64;

/// A reference pattern with its parameters, which determine the order in which pages are touched.
///
/// Written as a name with parameters in parentheses, by position or by name; omitted parameters have their defaults.
/// [`catalogue`] describes every name and parameter. `Display` writes a form that parses to an equal pattern and
/// contains every parameter, so that a record does not depend on later defaults.
///
/// ```
/// use pagetide_reference::Pattern;
///
/// let pattern: Pattern = "hot-cold(0.2, move=5000)".parse()?;
/// assert_eq!(pattern.to_string(), "hot-cold(hot=0.2,share=0.9,move=5000,by=0.1)");
/// # Ok::<(), pagetide_reference::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pattern {
    /// Pages 0, 1, … range−1 in order, again and again.
    Linear,
    /// One linear pass, then uniformly random pages.
    Random,
    /// Reference counts that follow a sine curve, in page order.
    SmoothSin {
        /// True to generate more references than requested, as the original may do; false for the exact number.
        as_written: bool,
    },
    /// Reference counts that follow a sine curve, like `SmoothSin`, but in random order.
    SmoothSinRandom {
        /// True to generate more references than requested, as the original may do; false for the exact number.
        as_written: bool,
    },
    /// VM Regress's approximation of a zipf distribution with exponent one half.
    Zipf05,
    /// Zipf's law with any exponent from 0 to 16.
    Zipf(Zipf),
    /// VM Regress's log-normal pattern.
    Lognormal,
    /// A moving hot set, with some references to the other pages.
    HotCold(HotCold),
    /// The first pages are never referenced, the others at random.
    ColdFirst(ColdFirst),
    /// A linear scan interleaved with a hot core.
    ScanWithHotCore(ScanWithHotCore),
    /// A cyclic scan that starts at a random page.
    Loop,
    /// References read from a file.
    File(PathBuf),
}

impl Pattern {
    /// Returns the name of the pattern before the parentheses, as listed in [`catalogue`].
    pub fn name(&self) -> &'static str {
        self.about().name
    }

    /// Returns description, origin and parameters of the pattern.
    pub fn about(&self) -> &'static About {
        use catalogue as c;
        match self {
            Self::Linear => &c::LINEAR,
            Self::Random => &c::RANDOM,
            Self::SmoothSin { .. } => &c::SMOOTH_SIN,
            Self::SmoothSinRandom { .. } => &c::SMOOTH_SIN_RANDOM,
            Self::Zipf05 => &c::ZIPF05,
            Self::Zipf(_) => &c::ZIPF,
            Self::Lognormal => &c::LOGNORMAL,
            Self::HotCold(_) => &c::HOT_COLD,
            Self::ColdFirst(_) => &c::COLD_FIRST,
            Self::ScanWithHotCore(_) => &c::SCAN_WITH_HOT_CORE,
            Self::Loop => &c::LOOP,
            Self::File(_) => &c::FILE,
        }
    }

    /// Returns this pattern in its original form, including the original's mistakes. Returns it unchanged if it has no
    /// different original form.
    #[must_use]
    pub fn as_written(self) -> Self {
        match self {
            Self::SmoothSin { .. } => Self::SmoothSin { as_written: true },
            Self::SmoothSinRandom { .. } => Self::SmoothSinRandom { as_written: true },
            other => other,
        }
    }

    /// Checks that a string can be generated. Fails if the range, the number of references or a parameter is out of
    /// bounds.
    ///
    /// A pattern that names a file passes if the numbers are valid; use [`check_file`](crate::check_file) to check the
    /// file.
    pub fn check(&self, pages: u32, refs: u64) -> Result<(), StringError> {
        let least = match self {
            Self::Lognormal | Self::HotCold(_) | Self::ColdFirst(_) | Self::ScanWithHotCore(_) => 2,
            _ => 1,
        };
        if pages == 0 {
            return Err(StringError::NoPages { least });
        }
        if pages < least {
            let pattern = self.name();
            return Err(StringError::TooFewPages {
                pattern,
                pages,
                least,
            });
        }
        if pages > MAX_PAGES {
            return Err(StringError::TooManyPages { pages });
        }
        if refs == 0 {
            return Err(StringError::NoRefs);
        }
        // The original's form may give more references than requested, at most two more per page.
        let most = if self.is_as_written() {
            refs.saturating_add(2 * u64::from(pages))
        } else {
            refs
        };
        if most > MAX_REFS {
            return Err(StringError::TooManyRefs { refs });
        }
        self.check_values()?;
        Ok(())
    }

    /// Returns the number of references in the string: `refs`, or more for an original form that generates more than
    /// requested. Fails like [`Pattern::check`].
    pub fn total(&self, pages: u32, refs: u64) -> Result<u64, StringError> {
        self.check(pages, refs)?;
        Ok(if self.is_as_written() {
            Curve::new(pages, refs, true).total()
        } else {
            refs
        })
    }

    /// Returns the size of the heap memory that the generator of this pattern needs for `pages` pages, in bytes.
    ///
    /// It counts towards the memory limit of the harness. Only `smooth-sin-random` uses heap memory.
    pub fn held_bytes(&self, pages: u32) -> u64 {
        match self {
            Self::SmoothSinRandom { .. } => urn::held_bytes(pages),
            _ => 0,
        }
    }

    /// Returns the path of the file of references; `None` if the pattern names no file.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            _ => None,
        }
    }

    fn is_as_written(&self) -> bool {
        matches!(
            self,
            Self::SmoothSin { as_written: true } | Self::SmoothSinRandom { as_written: true }
        )
    }

    /// Returns the parameter values in the order of the catalogue; flags are 0 or 1.
    fn values(&self) -> Vec<f64> {
        match self {
            Self::SmoothSin { as_written } | Self::SmoothSinRandom { as_written } => {
                vec![f64::from(u8::from(*as_written))]
            }
            Self::Zipf(zipf) => vec![zipf.exponent, f64::from(u8::from(zipf.scatter))],
            Self::HotCold(p) => vec![p.hot, p.share, p.move_every as f64, p.by],
            Self::ColdFirst(p) => vec![p.cold],
            Self::ScanWithHotCore(p) => vec![p.core, p.share],
            Self::Linear
            | Self::Random
            | Self::Zipf05
            | Self::Lognormal
            | Self::Loop
            | Self::File(_) => Vec::new(),
        }
    }

    /// Returns the pattern called `name` with parameter values in the order of the catalogue; `None` if there is no
    /// such pattern.
    fn from_values(name: &str, values: &[f64]) -> Option<Self> {
        let flag = |value: f64| value > 0.0;
        Some(match (name, values) {
            ("linear", []) => Self::Linear,
            ("random", []) => Self::Random,
            ("smooth-sin", &[as_written]) => Self::SmoothSin {
                as_written: flag(as_written),
            },
            ("smooth-sin-random", &[as_written]) => Self::SmoothSinRandom {
                as_written: flag(as_written),
            },
            ("zipf05", []) => Self::Zipf05,
            ("zipf", &[exponent, scatter]) => Self::Zipf(Zipf {
                exponent,
                scatter: flag(scatter),
            }),
            ("lognormal", []) => Self::Lognormal,
            ("hot-cold", &[hot, share, move_every, by]) => Self::HotCold(HotCold {
                hot,
                share,
                move_every: whole_u64(move_every),
                by,
            }),
            ("cold-first", &[cold]) => Self::ColdFirst(ColdFirst { cold }),
            ("scan-with-hot-core", &[core, share]) => {
                Self::ScanWithHotCore(ScanWithHotCore { core, share })
            }
            ("loop", []) => Self::Loop,
            _ => return None,
        })
    }

    fn check_values(&self) -> Result<(), PatternError> {
        for (parameter, value) in self.about().parameters.iter().zip(self.values()) {
            parameter.check(self.name(), value)?;
        }
        Ok(())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::File(path) = self {
            return write!(f, "file:{}", path.display());
        }
        let about = self.about();
        f.write_str(about.name)?;
        let numbers = about
            .parameters
            .iter()
            .filter(|parameter| parameter.kind != ParameterKind::Flag)
            .count();
        let mut before = "(";
        for (parameter, value) in about.parameters.iter().zip(self.values()) {
            match parameter.kind {
                ParameterKind::Flag if value > 0.0 => write!(f, "{before}{}", parameter.name)?,
                ParameterKind::Flag => continue,
                // A single number is written without its name: zipf(1.1).
                _ if numbers == 1 => write!(f, "{before}{value}")?,
                _ => write!(f, "{before}{}={value}", parameter.name)?,
            }
            before = ",";
        }
        if before == "," {
            f.write_str(")")
        } else {
            Ok(())
        }
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}
