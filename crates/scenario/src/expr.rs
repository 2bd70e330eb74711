//! Arithmetic in parameter values: `0.8 * memory`, `memory / 400M`, `max(8, 128 * scale)`.
//!
//! Numbers may have a unit (`64M`, `125ms`, `95%`). Names stand for the memory and other properties of the trial, and
//! for earlier parameters. Units are tracked through the arithmetic, so that a time cannot be used as a size.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos};

/// A value with a unit: bytes to the power of `bytes` times nanoseconds to the power of `nanos`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantity {
    pub value: f64,
    pub bytes: i8,
    pub nanos: i8,
}

impl Quantity {
    pub(crate) const fn number(value: f64) -> Self {
        Self {
            value,
            bytes: 0,
            nanos: 0,
        }
    }

    pub(crate) const fn bytes(value: f64) -> Self {
        Self {
            value,
            bytes: 1,
            nanos: 0,
        }
    }

    pub(crate) const fn nanos(value: f64) -> Self {
        Self {
            value,
            bytes: 0,
            nanos: 1,
        }
    }

    fn same_units(self, other: Self) -> bool {
        self.bytes == other.bytes && self.nanos == other.nanos
    }
}

/// Values of the names that an expression may use.
pub(crate) type Names = BTreeMap<String, Quantity>;

/// Evaluates an expression. The error says what is wrong with it.
pub(crate) fn evaluate(text: &str, names: &Names) -> Result<Quantity, String> {
    let mut reader = Reader {
        rest: text.trim(),
        names,
        depth: 0,
    };
    if reader.rest.is_empty() {
        return Err("it is empty, give a value".to_owned());
    }
    let value = reader.sum()?;
    if !reader.rest.is_empty() {
        return Err(format!("`{}` is left over", reader.rest));
    }
    if !value.value.is_finite() {
        return Err("it divides by zero or is too large".to_owned());
    }
    Ok(value)
}

struct Reader<'a> {
    rest: &'a str,
    names: &'a Names,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn take(&mut self, sign: char) -> bool {
        let Some(rest) = self.rest.strip_prefix(sign) else {
            return false;
        };
        self.rest = rest.trim_start();
        true
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> Result<Quantity, String> {
        let mut left = self.product()?;
        loop {
            let sign = if self.take('+') {
                1.0
            } else if self.take('-') {
                -1.0
            } else {
                return Ok(left);
            };
            let right = self.product()?;
            if !left.same_units(right) {
                return Err("it adds quantities of different units".to_owned());
            }
            left.value += sign * right.value;
        }
    }

    fn product(&mut self) -> Result<Quantity, String> {
        let mut left = self.factor()?;
        loop {
            if self.take('*') {
                let right = self.factor()?;
                left = Quantity {
                    value: left.value * right.value,
                    bytes: left.bytes.saturating_add(right.bytes),
                    nanos: left.nanos.saturating_add(right.nanos),
                };
            } else if self.take('/') {
                let right = self.factor()?;
                left = Quantity {
                    value: left.value / right.value,
                    bytes: left.bytes.saturating_sub(right.bytes),
                    nanos: left.nanos.saturating_sub(right.nanos),
                };
            } else {
                return Ok(left);
            }
        }
    }

    fn factor(&mut self) -> Result<Quantity, String> {
        // Parentheses and signs are parsed recursively, so their depth is limited.
        self.depth += 1;
        if self.depth > 200 {
            return Err("it is too long".to_owned());
        }
        if self.take('-') {
            let mut value = self.factor()?;
            value.value = -value.value;
            return Ok(value);
        }
        if self.take('(') {
            let value = self.sum()?;
            return if self.take(')') {
                Ok(value)
            } else {
                Err("a parenthesis is not closed".to_owned())
            };
        }
        if self
            .rest
            .starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            return self.number();
        }
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        self.rest = self.rest.trim_start();
        if name.is_empty() {
            return Err(match self.rest.chars().next() {
                Some(c) => format!("`{c}` is not the start of a number or a name"),
                None => "it ends too early".to_owned(),
            });
        }
        if matches!(name, "min" | "max") && self.take('(') {
            return self.choice(name == "min");
        }
        self.names.get(name).copied().ok_or_else(|| {
            let known: Vec<_> = self.names.keys().map(String::as_str).collect();
            format!("`{name}` is no number and none of {}", known.join(", "))
        })
    }

    fn choice(&mut self, least: bool) -> Result<Quantity, String> {
        let mut best = self.sum()?;
        while self.take(',') {
            let next = self.sum()?;
            if !best.same_units(next) {
                return Err("it compares quantities of different units".to_owned());
            }
            if (next.value < best.value) == least {
                best = next;
            }
        }
        if self.take(')') {
            Ok(best)
        } else {
            Err("a parenthesis is not closed".to_owned())
        }
    }

    fn number(&mut self) -> Result<Quantity, String> {
        let start = self.rest;
        let digits = self.word(|c| c.is_ascii_digit() || c == '.' || c == '_');
        let unit = self.word(char::is_alphabetic);
        let percent = unit.is_empty() && self.take('%');
        let written = &start[..digits.len() + unit.len()];
        self.rest = self.rest.trim_start();
        let plain = || {
            digits
                .replace('_', "")
                .parse::<f64>()
                .map_err(|_| format!("`{digits}` is not a number"))
        };
        if percent {
            return Ok(Quantity::number(plain()? / 100.0));
        }
        if unit.is_empty() {
            return Ok(Quantity::number(plain()?));
        }
        if let Ok(time) = written.parse::<Nanos>() {
            return Ok(Quantity::nanos(time.0 as f64));
        }
        written
            .parse::<Bytes>()
            .map(|size| Quantity::bytes(size.0 as f64))
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Result<Quantity, String> {
        let names = Names::from([
            ("memory".to_owned(), Quantity::bytes(f64::from(64 << 20))),
            ("scale".to_owned(), Quantity::number(0.5)),
        ]);
        evaluate(text, &names)
    }

    #[test]
    fn units_follow_the_arithmetic() {
        assert_eq!(
            value("2 * memory"),
            Ok(Quantity::bytes(f64::from(128 << 20)))
        );
        assert_eq!(value("memory / 4K"), Ok(Quantity::number(16384.0)));
        assert_eq!(value("125ms * 8"), Ok(Quantity::nanos(1e9)));
        assert_eq!(value("95% * 100"), Ok(Quantity::number(95.0)));
        assert_eq!(value("max(8, 128 * scale)"), Ok(Quantity::number(64.0)));
        assert_eq!(value("min(memory, 1M)"), Ok(Quantity::bytes(1_048_576.0)));
        assert_eq!(value("(1 + 2) * -3"), Ok(Quantity::number(-9.0)));
        assert_eq!(value("50_000"), Ok(Quantity::number(50_000.0)));
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("memory + 3", "different units"),
            ("1 / 0", "divides by zero"),
            ("memroy", "none of memory"),
            ("5X", "unknown unit"),
            ("3 4", "left over"),
            ("(3", "not closed"),
            ("1..2", "not a number"),
            ("2 *", "ends too early"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_computed_or_refused(text in "[0-9a-zM%()*/+, .-]{0,40}") {
            if let Ok(quantity) = value(&text) {
                prop_assert!(quantity.value.is_finite());
            }
        }

        #[test]
        fn deep_nesting_is_refused(depth in 300_usize..5000) {
            prop_assert!(value(&"(".repeat(depth)).is_err());
            prop_assert!(value(&"-".repeat(depth)).is_err());
        }
    }
}
