//! Parameters of a scenario. One documented struct defines their schema, help, defaults and parser.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos};
use serde::Serialize;

use crate::content::{self, Content};
use crate::error::ScenarioError;
use crate::expr::{self, Names, Quantity};
use crate::number;

/// Size of a page in bytes.
const PAGE_BYTES: f64 = 4096.0;

/// Type of a parameter, which determines how its value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A size, such as `64M` or `0.8 * memory`.
    Size,
    /// A number of pages, or a size that is converted to a number of pages.
    Pages,
    /// A time, such as `125ms`.
    Time,
    /// A whole number.
    Count,
    /// A number with a fraction.
    Real,
    /// One of the listed words.
    Choice(&'static [&'static str]),
    /// Text that the scenario parses.
    Text,
    /// A flag, written as `true` or `false`.
    Flag,
    /// Content of pages: a compression ratio as a number, or the name of a content.
    Content,
}

/// Definition of a parameter, for help, man page and campaign checks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Param {
    /// Name of the parameter in kebab case.
    pub name: &'static str,
    /// Meaning of the parameter, in a sentence or two.
    pub help: &'static str,
    /// Type of the parameter.
    pub kind: Kind,
    /// Default value: an expression over `memory`, `swap`, `cpus`, `scale` and earlier parameters.
    pub default: &'static str,
    /// Default value in the original's form; `None` if it is the same.
    pub as_written: Option<&'static str>,
    /// Minimum value, as an expression; empty if any value from zero on is valid.
    pub min: &'static str,
    /// Maximum value, as an expression; empty if there is no limit.
    pub max: &'static str,
    /// Default value, as canonical text, of a parameter that is left out of the resolved parameters if it has this
    /// value; `None` if the parameter is never left out. Used for parameters that were added to a scenario later, so
    /// that the IDs of records of earlier trials stay the same.
    #[serde(skip)]
    pub left_out_as: Option<&'static str>,
}

impl Param {
    /// Creates the definition of a parameter without bounds.
    pub(crate) const fn new(
        name: &'static str,
        help: &'static str,
        kind: Kind,
        default: &'static str,
    ) -> Self {
        Self {
            name,
            help: help.trim_ascii(),
            kind,
            default,
            as_written: None,
            min: "",
            max: "",
            left_out_as: None,
        }
    }

    /// Returns a definition whose parameter is left out of resolved parameters if it has this canonical text.
    pub(crate) const fn left_out_as(self, value: &'static str) -> Self {
        Self {
            left_out_as: Some(value),
            ..self
        }
    }

    /// Returns the definition with a different default in the original's form.
    pub(crate) const fn as_written(self, value: &'static str) -> Self {
        Self {
            as_written: Some(value),
            ..self
        }
    }

    /// Returns the definition with a minimum value.
    pub(crate) const fn min(self, value: &'static str) -> Self {
        Self { min: value, ..self }
    }

    /// Returns the definition with a maximum value.
    pub(crate) const fn max(self, value: &'static str) -> Self {
        Self { max: value, ..self }
    }

    /// Returns the allowed values in words.
    pub fn bounds(&self) -> String {
        let what = match self.kind {
            Kind::Size => "a size",
            Kind::Pages => "a number of pages or a size",
            Kind::Time => "a time",
            Kind::Count => "a whole number",
            Kind::Real | Kind::Content => "a number",
            Kind::Choice(words) => return format!("one of {}", words.join(", ")),
            Kind::Text => return "text".to_owned(),
            Kind::Flag => return "true or false".to_owned(),
        };
        let numbers = match (self.min, self.max) {
            ("", "") => what.to_owned(),
            (min, "") => format!("{what} of at least {min}"),
            ("", max) => format!("{what} of at most {max}"),
            (min, max) => format!("{what} from {min} to {max}"),
        };
        match self.kind {
            Kind::Content => format!("{numbers}, or one of {}", content::names()),
            _ => numbers,
        }
    }
}

/// A struct whose fields are the parameters of a scenario; defined with [`params!`](crate::params::params).
pub(crate) trait Params: Sized {
    /// Definitions of all parameters in display order.
    const SCHEMA: &'static [Param];

    /// Parses resolved parameters. Fails if one is missing or not in canonical form.
    fn read(resolved: &BTreeMap<String, String>) -> Result<Self, ScenarioError>;
}

/// A Rust type that the field of a parameter can have.
pub(crate) trait Value: Sized {
    /// Type of the parameter, for its definition.
    const KIND: Kind;

    /// Parses the canonical text of a value; `None` if the text is not canonical.
    fn read(text: &str) -> Option<Self>;
}

pub(crate) use pagetide_quantity::Pages;

impl Value for Bytes {
    const KIND: Kind = Kind::Size;
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Pages {
    const KIND: Kind = Kind::Pages;
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(pagetide_quantity::Pages)
    }
}

impl Value for Nanos {
    const KIND: Kind = Kind::Time;
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for u64 {
    const KIND: Kind = Kind::Count;
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for u32 {
    const KIND: Kind = Kind::Count;
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for f64 {
    const KIND: Kind = Kind::Real;
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Content {
    const KIND: Kind = Kind::Content;
    fn read(text: &str) -> Option<Self> {
        Self::read(text)
    }
}

impl Value for String {
    const KIND: Kind = Kind::Text;
    fn read(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

/// Replaces `_` by `-` in a name, at compile time.
pub(crate) const fn kebab<const N: usize>(raw: &str) -> [u8; N] {
    let raw = raw.as_bytes();
    let mut name = [0; N];
    let mut i = 0;
    while i < N {
        name[i] = if raw[i] == b'_' { b'-' } else { raw[i] };
        i += 1;
    }
    name
}

/// Returns the name of a field in kebab case.
macro_rules! kebab_name {
    ($name:ident) => {{
        const RAW: &str = stringify!($name);
        const NAME: [u8; RAW.len()] = $crate::params::kebab::<{ RAW.len() }>(RAW);
        match std::str::from_utf8(&NAME) {
            Ok(name) => name,
            Err(_) => RAW,
        }
    }};
}
pub(crate) use kebab_name;

/// Defines a documented struct of parameters. The doc comment of a field is its help and the text after `=` its
/// default; `min`, `max`, `as_written` and `left_out_as` may follow.
macro_rules! params {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $help:literal])*
                $field:ident: $type:ty = $default:literal $(, $key:ident = $value:literal)*;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        #[allow(clippy::struct_field_names, reason = "a parameter may be called like its scenario")]
        $vis struct $name {
            $($(#[doc = $help])* pub(crate) $field: $type,)*
        }

        impl $crate::params::Params for $name {
            const SCHEMA: &'static [$crate::params::Param] = &[$(
                $crate::params::Param::new(
                    $crate::params::kebab_name!($field),
                    concat!($($help),*),
                    <$type as $crate::params::Value>::KIND,
                    $default,
                )$(.$key($value))*,
            )*];

            fn read(
                resolved: &std::collections::BTreeMap<String, String>,
            ) -> Result<Self, $crate::error::ScenarioError> {
                Ok(Self {
                    $($field: $crate::params::field(
                        resolved,
                        <Self as $crate::params::Params>::SCHEMA,
                        $crate::params::kebab_name!($field),
                    )?,)*
                })
            }
        }
    };
}
pub(crate) use params;

/// Defines an enum whose variants are the allowed words of a parameter.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[doc = $help:literal])* $variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($(#[doc = $help])* $variant,)*
        }

        impl $crate::params::Value for $name {
            const KIND: $crate::params::Kind = $crate::params::Kind::Choice(&[$($word),*]);
            fn read(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use choice;

/// Parses the value of one resolved parameter of a scenario with these parameters. Fails if the parameter is missing
/// and may not be left out, or if its text is not canonical.
pub(crate) fn field<T: Value>(
    resolved: &BTreeMap<String, String>,
    schema: &'static [Param],
    parameter: &'static str,
) -> Result<T, ScenarioError> {
    let left_out = || {
        let param = schema.iter().find(|param| param.name == parameter);
        param.and_then(|param| param.left_out_as)
    };
    let text = resolved.get(parameter).map(String::as_str);
    text.or_else(left_out)
        .and_then(T::read)
        .ok_or(ScenarioError::Unresolved { parameter })
}

/// Converts the value `text` of `param` to canonical text. Also returns the value itself if later expressions can use
/// it. Fails if `text` cannot be parsed or the value is out of bounds.
pub(crate) fn canonical(
    scenario: &str,
    param: &Param,
    text: &str,
    names: &Names,
) -> Result<(String, Option<Quantity>), ScenarioError> {
    let bad = |why: String| ScenarioError::BadValue {
        scenario: scenario.to_owned(),
        parameter: param.name,
        given: text.to_owned(),
        why,
    };
    let wanted = match param.kind {
        Kind::Text => return Ok((text.trim().to_owned(), None)),
        Kind::Flag | Kind::Choice(_) => {
            let words = match param.kind {
                Kind::Choice(words) => words,
                _ => &["false", "true"],
            };
            return match words.iter().find(|word| **word == text.trim()) {
                Some(word) => Ok(((*word).to_owned(), None)),
                None => Err(bad(format!("give {}", param.bounds()))),
            };
        }
        Kind::Size => Quantity::bytes(0.0),
        Kind::Time => Quantity::nanos(0.0),
        Kind::Content => {
            let name = content::named(text, names)
                .map_err(|why| bad(format!("{why}; give {}", param.bounds())))?;
            if let Some(name) = name {
                return Ok((name, None));
            }
            Quantity::number(0.0)
        }
        Kind::Pages | Kind::Count | Kind::Real => Quantity::number(0.0),
    };
    let mut quantity = evaluate(param.kind, text, names)
        .map_err(|why| bad(format!("{why}; give {}", param.bounds())))?;
    if param.kind == Kind::Size && (quantity.bytes, quantity.nanos) == (0, 0) {
        // A size may be given as a plain number of bytes.
        quantity.bytes = 1;
    }
    quantity.value = match param.kind {
        // Adding zero turns negative zero into zero, so that the text is canonical.
        Kind::Real | Kind::Content => quantity.value + 0.0,
        // Sizes are those of mappings and files, so they are whole pages.
        Kind::Size if quantity.value >= PAGE_BYTES => {
            (quantity.value / PAGE_BYTES).floor() * PAGE_BYTES
        }
        // The fractional part is dropped. Negative values stay negative and are refused below.
        _ => quantity.value.floor(),
    };
    if (quantity.bytes, quantity.nanos) != (wanted.bytes, wanted.nanos) {
        return Err(bad(format!(
            "it has the wrong unit, give {}",
            param.bounds()
        )));
    }
    let inside = |bound: &str, ok: fn(f64, f64) -> bool| {
        bound.is_empty()
            || evaluate(param.kind, bound, names).is_ok_and(|bound| ok(quantity.value, bound.value))
    };
    if quantity.value < 0.0
        || !inside(param.min, |value, bound| value >= bound)
        || !inside(param.max, |value, bound| value <= bound)
        || quantity.value > 9_007_199_254_740_992.0
    {
        return Err(ScenarioError::OutOfBounds {
            scenario: scenario.to_owned(),
            parameter: param.name,
            value: if quantity.value < 0.0 {
                format!("a negative value ({text})")
            } else {
                show(param.kind, quantity.value)
            },
            bounds: param.bounds(),
        });
    }
    Ok((show(param.kind, quantity.value), Some(quantity)))
}

/// Evaluates an expression. If the parameter is a number of pages, a size is converted to pages.
fn evaluate(kind: Kind, text: &str, names: &Names) -> Result<Quantity, String> {
    let quantity = expr::evaluate(text, names)?;
    if kind == Kind::Pages && quantity.bytes == 1 && quantity.nanos == 0 {
        return Ok(Quantity::number(quantity.value / PAGE_BYTES));
    }
    Ok(quantity)
}

/// Formats a value as canonical text: exact, in the largest unit that divides it.
fn show(kind: Kind, value: f64) -> String {
    let whole = number::floor(value);
    let exact = |units: &[(u64, &str)], plain: &str| {
        units
            .iter()
            .find(|(scale, _)| whole != 0 && whole.is_multiple_of(*scale))
            .map_or_else(
                || format!("{whole}{plain}"),
                |(scale, unit)| format!("{}{unit}", whole / scale),
            )
    };
    match kind {
        Kind::Size => exact(&[(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")], ""),
        Kind::Time => exact(
            &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")],
            "ns",
        ),
        Kind::Real | Kind::Content => value.to_string(),
        _ => whole.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    params! {
        /// Parameters for the tests.
        pub(crate) struct Example {
            /// How much,
            /// over two lines.
            how_much: Bytes = "0.8 * memory", min = "1M", max = "memory";
            /// How many.
            many: u32 = "128", min = "1", as_written = "7";
            /// How long.
            long: Nanos = "125ms";
            /// Pages.
            pages: Pages = "2 * how-much";
        }
    }

    fn text(name: &str, given: &str) -> Result<String, String> {
        let names = Names::from([
            ("memory".to_owned(), Quantity::bytes(f64::from(64 << 20))),
            ("how-much".to_owned(), Quantity::bytes(f64::from(8 << 20))),
        ]);
        let param = Example::SCHEMA.iter().find(|p| p.name == name).unwrap();
        canonical("example", param, given, &names)
            .map(|(text, _)| text)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_documented_struct_is_its_own_schema() {
        let names: Vec<_> = Example::SCHEMA.iter().map(|p| p.name).collect();
        assert_eq!(names, ["how-much", "many", "long", "pages"]);
        assert_eq!(Example::SCHEMA[0].help, "How much, over two lines.");
        assert_eq!(Example::SCHEMA[0].bounds(), "a size from 1M to memory");
        assert_eq!(Example::SCHEMA[1].as_written, Some("7"));
    }

    #[test]
    fn resolved_texts_are_read_into_the_struct() {
        let resolved = [
            ("how-much", "2M"),
            ("many", "3"),
            ("long", "5ms"),
            ("pages", "7"),
        ];
        let mut resolved: BTreeMap<String, String> = resolved
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
        let example = Example::read(&resolved).unwrap();
        assert_eq!((example.how_much, example.many), (Bytes::from_mib(2), 3));
        assert_eq!(
            (example.long, example.pages),
            (Nanos::from_millis(5), Pages(7))
        );
        resolved.remove("many");
        assert!(matches!(
            Example::read(&resolved),
            Err(ScenarioError::Unresolved { parameter: "many" })
        ));
    }

    #[test]
    fn canonical_text_is_exact() {
        assert_eq!(text("how-much", "0.5 * memory").unwrap(), "32M");
        assert_eq!(text("how-much", "0.3 * memory").unwrap(), "19660K");
        assert_eq!(text("how-much", "2097152").unwrap(), "2M");
        assert_eq!(text("long", "0.25s").unwrap(), "250ms");
        assert_eq!(text("pages", "2 * how-much").unwrap(), "4096");
        assert_eq!(text("pages", "50_000").unwrap(), "50000");
        assert_eq!(text("many", "memory / 5M").unwrap(), "12");
    }

    #[test]
    fn values_out_of_bounds_or_of_the_wrong_unit_are_refused() {
        assert!(text("how-much", "-5M").unwrap_err().contains("negative"));
        assert!(
            text("how-much", "65M")
                .unwrap_err()
                .contains("from 1M to memory")
        );
        assert!(text("how-much", "3s").unwrap_err().contains("wrong unit"));
        assert!(text("many", "0").unwrap_err().contains("at least 1"));
        assert!(text("many", "3M").unwrap_err().contains("wrong unit"));
    }
}
