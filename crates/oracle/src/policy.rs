//! The policies: one file each, and the list of them.
//!
//! A policy is told of each reference in turn and says whether the page was in memory. It holds flat tables made at its
//! start and allocates nothing afterwards. To add one: write a file with an [`About`] and a type with [`Policy`], and add
//! its name to the list below.

use pagetide_quantity::nearest;

use crate::error::ParameterError;
use crate::flat::AHEAD;
use crate::writes::Ledger;

/// Declares the files and the list of policies, in the order in which tables show them.
macro_rules! policies {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*

        /// Every policy.
        pub static POLICIES: &[&About] = &[$(&$file::ABOUT),*];
    };
}

policies! {
    opt,
    lru,
    fifo,
    random,
    clock,
    two_q,
    arc,
    car,
    lirs,
    clock_pro,
    s3_fifo,
    sieve,
    w_tinylfu,
    active_inactive,
    mglru,
}

/// What is known of a policy before it runs.
#[derive(Debug)]
pub struct About {
    /// Its name, as it is written on the command line.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it was published, and which variant is taken where public code disagrees.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Makes one.
    make: fn(Setup<'_>) -> Box<dyn Simulator>,
}

/// A parameter of a policy.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Its value unless another is given.
    pub default: f64,
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
}

/// What a policy is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// Pages are below this number.
    pub pages: u32,
    /// Pages that fit in memory, at least 1 and at most 2^28.
    pub size: u32,
    values: &'a [f64],
}

impl Setup<'_> {
    /// Value of the parameter with this place in [`About::parameters`].
    pub fn value(&self, place: usize) -> f64 {
        self.values[place]
    }
}

/// A replacement policy.
pub(crate) trait Policy: Send {
    /// Takes one reference; returns whether the page was in memory.
    fn touch(&mut self, page: u32) -> bool;

    /// Whether a page is in memory after the last reference of all; asked once for each page in question.
    fn held(&mut self, page: u32) -> bool;

    /// Hints that this page is referenced soon.
    fn soon(&self, page: u32);

    /// Hints that this page, for which [`soon`](Self::soon) was told before, is referenced very soon: what it says can be
    /// read now to know what else will be needed.
    #[inline]
    fn near(&self, _page: u32) {}
}

/// A policy with its memory, to which a string is fed piece by piece.
pub trait Simulator: Send {
    /// Takes the next references in order and returns how many of them were hits.
    fn feed(&mut self, references: &[u32]) -> u64;

    /// The same, and tells the ledger of write-backs of each reference.
    #[doc(hidden)]
    fn feed_counting(&mut self, references: &[u32], ledger: &mut Ledger<'_>) -> u64;

    /// Whether a page is in memory after the last reference of all; asked once for each page in question.
    #[doc(hidden)]
    fn held(&mut self, page: u32) -> bool;
}

impl<P: Policy> Simulator for P {
    fn feed(&mut self, references: &[u32]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("popcnt")
        {
            // SAFETY: the processor has these features.
            return unsafe { feed_with_bits(self, references) };
        }
        feed(self, references, |_, _| ())
    }

    fn feed_counting(&mut self, references: &[u32], ledger: &mut Ledger<'_>) -> u64 {
        feed(self, references, |page, hit| ledger.note(page, hit))
    }

    fn held(&mut self, page: u32) -> bool {
        Policy::held(self, page)
    }
}

/// [`feed`] with the processor's instructions for finding and counting bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
fn feed_with_bits<P: Policy>(policy: &mut P, references: &[u32]) -> u64 {
    feed(policy, references, |_, _| ())
}

/// Touches the references in order and notes of each whether it was a hit.
#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn feed<P: Policy>(policy: &mut P, references: &[u32], mut note: impl FnMut(u32, bool)) -> u64 {
    let mut hits = 0;
    let known = references.len().saturating_sub(AHEAD);
    for (place, &page) in references[..known].iter().enumerate() {
        policy.soon(references[place + AHEAD]);
        policy.near(references[place + AHEAD / 2]);
        let hit = policy.touch(page);
        note(page, hit);
        hits += u64::from(hit);
    }
    for &page in &references[known..] {
        let hit = policy.touch(page);
        note(page, hit);
        hits += u64::from(hit);
    }
    hits
}

/// A policy and values for its parameters: `s3-fifo(small=0.05)`.
#[derive(Debug, Clone)]
pub struct Choice {
    about: &'static About,
    values: Vec<f64>,
}

impl Choice {
    /// Reads `name` or `name(parameter=value,…)`.
    pub fn parse(text: &str) -> Result<Self, ParameterError> {
        let text = text.trim();
        let (name, inside) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), rest.strip_suffix(')')),
            None => (text, Some("")),
        };
        let about = find(name)?;
        let mut choice = Self::default_of(about);
        let inside = inside.ok_or_else(|| ParameterError::Unclosed {
            text: text.to_owned(),
        })?;
        for part in inside.split(',').filter(|part| !part.trim().is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let number = value
                .trim()
                .parse()
                .map_err(|_| ParameterError::NotANumber {
                    parameter: key.trim().to_owned(),
                    text: value.trim().to_owned(),
                })?;
            choice.set(key.trim(), number)?;
        }
        Ok(choice)
    }

    /// The best possible.
    pub fn opt() -> Self {
        Self::default_of(&opt::ABOUT)
    }

    /// Least recently used.
    pub fn lru() -> Self {
        Self::default_of(&lru::ABOUT)
    }

    /// A policy with its defaults.
    pub fn default_of(about: &'static About) -> Self {
        Self {
            about,
            values: about.parameters.iter().map(|p| p.default).collect(),
        }
    }

    /// The policy.
    pub fn about(&self) -> &'static About {
        self.about
    }

    /// Sets a parameter.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), ParameterError> {
        let place = self.about.parameters.iter().position(|p| p.name == name);
        let Some(place) = place else {
            return Err(ParameterError::Unknown {
                policy: self.about.name,
                parameter: name.to_owned(),
                known: self.about.parameters.iter().map(|p| p.name).collect(),
            });
        };
        let parameter = &self.about.parameters[place];
        if !(parameter.least..=parameter.most).contains(&value) {
            return Err(ParameterError::Bounds {
                parameter: parameter.name,
                value,
                least: parameter.least,
                most: parameter.most,
            });
        }
        self.values[place] = value;
        Ok(())
    }

    /// Starts the policy with empty memory of `size` pages (from 1) for pages below `pages`.
    ///
    /// More memory than pages is the same as just enough: nothing is ever evicted.
    pub fn start(&self, pages: u32, size: u32) -> Box<dyn Simulator> {
        (self.about.make)(Setup {
            pages,
            size: size.clamp(1, crate::MOST_PAGES),
            values: &self.values,
        })
    }
}

impl std::fmt::Display for Choice {
    /// The name, and what differs from the defaults.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.about.name)?;
        let mut before = "(";
        for (parameter, value) in self.about.parameters.iter().zip(&self.values) {
            #[expect(
                clippy::float_cmp,
                reason = "an untouched default is bit for bit itself"
            )]
            if *value != parameter.default {
                write!(f, "{before}{}={value}", parameter.name)?;
                before = ",";
            }
        }
        f.write_str(if before == "," { ")" } else { "" })
    }
}

/// The policy of this name.
pub fn find(name: &str) -> Result<&'static About, ParameterError> {
    POLICIES
        .iter()
        .find(|about| about.name == name)
        .copied()
        .ok_or_else(|| {
            let names = POLICIES.iter().map(|about| about.name);
            let near = nearest(name, names.clone());
            ParameterError::NoPolicy {
                name: name.to_owned(),
                near: near.and_then(|near| names.clone().find(|known| *known == near)),
            }
        })
}
