//! The replacement policies, one file each, and the list of all policies.
//!
//! A policy receives each reference in order and returns true if the page was in memory. Its tables are allocated when
//! it is created; no reference allocates memory, except when a bitmap of OPT grows or when times are renumbered. To add
//! one: write a file with an [`About`] and a type with [`Policy`], and add its name to the list below.

use pagetide_quantity::nearest;

use crate::error::ParameterError;
use crate::flat::AHEAD;
use crate::number::at;
use crate::writes::Writes;

/// Declares the modules of the policies and the list of all policies, in display order.
macro_rules! policies {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*

        /// All policies in display order.
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

/// Description of a replacement policy: names, parameters, and how to create it.
#[derive(Debug)]
pub struct About {
    /// Name of the policy on the command line.
    pub name: &'static str,
    /// What the policy does, in one sentence.
    pub summary: &'static str,
    /// Publication, and which variant is used if public implementations differ.
    pub source: &'static str,
    /// Parameters of the policy.
    pub parameters: &'static [Parameter],
    /// Creates the policy. Its memory is empty.
    make: fn(Setup<'_>) -> Box<dyn Simulator>,
}

/// Description of a parameter of a policy.
#[derive(Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Meaning of the parameter, with its unit.
    pub help: &'static str,
    /// Default value.
    pub default: f64,
    /// Minimum allowed value.
    pub least: f64,
    /// Maximum allowed value.
    pub most: f64,
}

/// Arguments for creating a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// Number that all page numbers are below.
    pub pages: u32,
    /// Size of memory in pages, at least 1 and at most 2^28.
    pub size: u32,
    values: &'a [f64],
}

impl Setup<'_> {
    /// Returns the value of the parameter at this index of [`About::parameters`].
    pub fn value(&self, place: usize) -> f64 {
        self.values[place]
    }
}

/// A replacement policy with its tables; implemented in each policy's file.
pub(crate) trait Policy: Send {
    /// Processes one reference and returns true if the page was in memory.
    fn touch(&mut self, page: u32) -> bool;

    /// Returns true if the page is in memory after the last reference; called at most once for each page.
    fn held(&mut self, page: u32) -> bool;

    /// Prefetches the table entries of a page that will be referenced a few references later.
    fn prefetch(&self, page: u32);

    /// Prefetches memory to which the table entries of a page point. [`prefetch`](Self::prefetch) was called for the
    /// page before.
    #[inline]
    fn prefetch_next(&self, _page: u32) {}
}

/// A running policy: processes a string piece by piece, and keeps which pages are in memory.
pub trait Simulator: Send {
    /// Processes the next references in order and returns how many of them were hits.
    fn feed(&mut self, references: &[u32]) -> u64;

    /// Does the same as [`feed`](Self::feed), and also counts write-backs in `ledger`.
    #[doc(hidden)]
    fn feed_counting(&mut self, references: &[u32], ledger: &mut Ledger<'_>) -> u64;

    /// Returns true if the page is in memory after the last reference. Must be called at most once for each page.
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

/// Does the same as [`feed`], compiled for processors with instructions that find and count bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
fn feed_with_bits<P: Policy>(policy: &mut P, references: &[u32]) -> u64 {
    feed(policy, references, |_, _| ())
}

/// Processes references in order and returns the number of hits. Calls `note` with each page, and with true if it was a
/// hit.
#[expect(
    clippy::inline_always,
    reason = "it has to be compiled with the caller's processor features"
)]
#[inline(always)]
fn feed<P: Policy>(policy: &mut P, references: &[u32], mut note: impl FnMut(u32, bool)) -> u64 {
    let mut hits = 0;
    let known = references.len().saturating_sub(AHEAD);
    for (place, &page) in references[..known].iter().enumerate() {
        policy.prefetch(references[place + AHEAD]);
        policy.prefetch_next(references[place + AHEAD / 2]);
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

/// A policy with values for its parameters, such as `s3-fifo(small=0.05)`.
#[derive(Debug, Clone)]
pub struct Choice {
    about: &'static About,
    values: Vec<f64>,
}

impl Choice {
    /// Parses `name` or `name(parameter=value,…)`. Fails if the name or a parameter is unknown, or if a value is
    /// invalid.
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

    /// Returns the optimal policy, OPT.
    pub fn opt() -> Self {
        Self::default_of(&opt::ABOUT)
    }

    /// Returns the policy LRU.
    pub fn lru() -> Self {
        Self::default_of(&lru::ABOUT)
    }

    /// Returns a policy with its default parameters.
    pub fn default_of(about: &'static About) -> Self {
        Self {
            about,
            values: about.parameters.iter().map(|p| p.default).collect(),
        }
    }

    /// Returns the description of the policy.
    pub fn about(&self) -> &'static About {
        self.about
    }

    /// Sets the value of a parameter. Fails if the policy does not have the parameter or the value is out of bounds.
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

    /// Creates the policy with empty memory of `size` pages, at least 1. All page numbers must be below `pages`.
    ///
    /// If `size` exceeds `pages`, nothing is ever evicted.
    pub fn start(&self, pages: u32, size: u32) -> Box<dyn Simulator> {
        (self.about.make)(Setup {
            pages,
            size: size.clamp(1, crate::MAX_PAGES),
            values: &self.values,
        })
    }
}

impl std::fmt::Display for Choice {
    /// Formats the name of the policy, followed by the parameters that differ from their defaults.
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

/// Returns the description of the policy with this name. If there is none, fails with an error that suggests a similar
/// name.
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

/// Counts the write-backs of a policy while it processes references.
pub struct Ledger<'a> {
    writes: &'a Writes,
    time: u64,
    dirty: Vec<bool>,
    write_backs: u64,
}

impl<'a> Ledger<'a> {
    /// Creates a ledger in which all pages are clean. Page numbers must be below `pages`.
    pub fn new(writes: &'a Writes, pages: u32) -> Self {
        Self {
            writes,
            time: 0,
            dirty: vec![false; at(pages)],
            write_backs: 0,
        }
    }

    /// Records the next reference, to `page`. `hit` is true if the page was in memory.
    #[inline]
    pub fn note(&mut self, page: u32, hit: bool) {
        let dirty = &mut self.dirty[at(page)];
        self.write_backs += u64::from(!hit && *dirty);
        *dirty = (hit && *dirty) || self.writes.is(self.time);
        self.time += 1;
    }

    /// Returns the number of write-backs: dirty pages that were evicted. Must be called once, after the last reference.
    pub fn finish(self, policy: &mut dyn Simulator) -> u64 {
        let dirty = (0..).zip(&self.dirty).filter(|(_, dirty)| **dirty);
        let gone = dirty.filter(|(page, _)| !policy.held(*page)).count();
        self.write_backs + gone as u64
    }
}
