//! Parses patterns; the error for an unknown name suggests a similar one.

use pagetide_quantity::hint;
use std::path::PathBuf;
use std::str::FromStr;

use super::Pattern;
use super::catalogue::{About, Parameter, ParameterKind, catalogue};
use super::error::PatternError;

/// End of a hint, with the command that lists all patterns and their parameters.
const ALL: &str = "`pagetide list scenarios --long` shows all";

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        // A path is taken literally: trailing spaces may be part of it.
        if let Some(path) = text.strip_prefix("file:") {
            return if path.is_empty() {
                Err(PatternError::NoPath)
            } else {
                Ok(Self::File(PathBuf::from(path)))
            };
        }
        let (name, arguments) = split(text.trim())?;
        let about = catalogue()
            .iter()
            .find(|about| about.name == name)
            .ok_or_else(|| unknown(name))?;
        let values = values(about, arguments)?;
        Self::from_values(about.name, &values).ok_or_else(|| unknown(name))
    }
}

/// Splits `name(arguments)` into name and arguments. Without parentheses the arguments are empty.
fn split(text: &str) -> Result<(&str, &str), PatternError> {
    let broken = || PatternError::Parentheses {
        given: text.to_owned(),
    };
    let Some((name, rest)) = text.split_once('(') else {
        return if text.contains(')') {
            Err(broken())
        } else {
            Ok((text, ""))
        };
    };
    let arguments = rest.strip_suffix(')').ok_or_else(broken)?;
    if arguments.contains(['(', ')']) {
        return Err(broken());
    }
    Ok((name.trim(), arguments.trim()))
}

/// Returns one value for each parameter of `about`: given by position, given by name, or the default.
fn values(about: &'static About, arguments: &str) -> Result<Vec<f64>, PatternError> {
    let mut given: Vec<Option<f64>> = vec![None; about.parameters.len()];
    // `linear()` is the same as `linear`. An empty part in any other place is an error.
    let parts = Some(arguments)
        .filter(|arguments| !arguments.is_empty())
        .into_iter()
        .flat_map(|arguments| arguments.split(','))
        .map(str::trim);
    for (position, part) in parts.enumerate() {
        let (index, text) = place(about, position, part)?;
        let parameter = &about.parameters[index];
        let value = read(about.name, parameter, text)?;
        if given[index].replace(value).is_some() {
            return Err(PatternError::Twice {
                pattern: about.name,
                parameter: parameter.name,
            });
        }
    }
    Ok(given
        .into_iter()
        .zip(about.parameters)
        .map(|(value, parameter)| value.unwrap_or(parameter.default))
        .collect())
}

/// Returns the index of the parameter that the argument at `position` sets, and the text of the value.
fn place<'a>(
    about: &'static About,
    position: usize,
    part: &'a str,
) -> Result<(usize, &'a str), PatternError> {
    let find = |name: &str| about.parameters.iter().position(|p| p.name == name);
    if let Some((name, value)) = part.split_once('=') {
        let name = name.trim();
        let index = find(name).ok_or_else(|| unknown_parameter(about, name))?;
        return Ok((index, value.trim()));
    }
    match find(part) {
        Some(index) if about.parameters[index].kind == ParameterKind::Flag => Ok((index, "true")),
        _ if position < about.parameters.len() => Ok((position, part)),
        _ => Err(PatternError::TooManyValues {
            pattern: about.name,
            given: part.to_owned(),
            hint: takes(about),
        }),
    }
}

fn read(pattern: &'static str, parameter: &Parameter, text: &str) -> Result<f64, PatternError> {
    let value = match parameter.kind {
        ParameterKind::Flag => text.parse().ok().map(|on: bool| f64::from(u8::from(on))),
        // Underscores group digits, as in 10_000.
        _ => text.replace('_', "").parse().ok(),
    };
    let value = value
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(|| PatternError::NotAValue {
            pattern,
            parameter: parameter.name,
            given: text.to_owned(),
            bounds: parameter.bounds(),
        })?;
    parameter.check(pattern, value)?;
    // Adding zero turns negative zero into zero, so that `Display` and parsing agree.
    Ok(value + 0.0)
}

fn unknown(name: &str) -> PatternError {
    let names: Vec<_> = catalogue().iter().map(|about| about.name).collect();
    PatternError::Unknown {
        given: name.to_owned(),
        hint: hint(name, names.iter().copied(), ALL),
    }
}

fn unknown_parameter(about: &'static About, name: &str) -> PatternError {
    let names: Vec<_> = about.parameters.iter().map(|p| p.name).collect();
    PatternError::UnknownParameter {
        pattern: about.name,
        given: name.to_owned(),
        hint: if names.is_empty() {
            takes(about)
        } else {
            hint(name, names.iter().copied(), ALL)
        },
    }
}

fn takes(about: &About) -> String {
    let names: Vec<_> = about.parameters.iter().map(|p| p.name).collect();
    if names.is_empty() {
        "it takes no parameters".to_owned()
    } else {
        format!("it takes {}", names.join(", "))
    }
}
