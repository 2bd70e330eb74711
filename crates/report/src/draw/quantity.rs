//! Readable quantities: one scale for a whole row, so that its numbers can be compared easily.

use pagetide_quantity::Unit;

/// A readable unit with its conversion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Text after the number, empty for plain counts.
    pub unit: &'static str,
    /// Number by which a value is divided before it is printed.
    pub divisor: f64,
    /// Number of digits after the decimal point.
    pub digits: usize,
}

/// Units of time, largest first.
const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
/// Units of size, largest first.
const SIZES: [(f64, &str); 4] = [
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1_024.0, "KiB"),
    (1.0, "B"),
];
/// Units of byte rates, largest first.
const RATES: [(f64, &str); 4] = [
    (1_073_741_824.0, "GiB/s"),
    (1_048_576.0, "MiB/s"),
    (1_024.0, "KiB/s"),
    (1.0, "B/s"),
];

/// Converts a count, or a time in nanoseconds, to the floating-point number that [`Scale`] takes.
pub(crate) fn number(value: u64) -> f64 {
    value as f64
}

impl Scale {
    /// Creates the scale for values of this magnitude, which is in `unit`, with four significant digits from 1 on and
    /// three decimals below. A share has one decimal, or two below 1 %. A whole number of counts or pages has none.
    pub fn of(unit: Unit, magnitude: f64) -> Self {
        let magnitude = magnitude.abs();
        let pick = |table: &[(f64, &'static str)]| {
            table
                .iter()
                .find(|(divisor, _)| magnitude >= *divisor)
                .or(table.last())
                .copied()
                .unwrap_or((1.0, ""))
        };
        let (divisor, text) = match unit {
            Unit::Nanos => pick(&TIMES),
            Unit::Bytes => pick(&SIZES),
            Unit::BytesPerSecond => pick(&RATES),
            Unit::Share => (0.01, "%"),
            Unit::Pages => (1.0, "pages"),
            Unit::PerSecond => (1.0, "/s"),
            Unit::Count | Unit::Ratio => (1.0, ""),
        };
        let scaled = magnitude / divisor;
        let digits = match unit {
            Unit::Pages | Unit::Count if scaled.fract() == 0.0 => 0,
            // Zero has no decimals.
            _ if scaled == 0.0 => 0,
            Unit::Share => 1 + usize::from(scaled < 1.0),
            _ if scaled >= 1000.0 => 0,
            _ if scaled >= 100.0 => 1,
            _ if scaled >= 10.0 => 2,
            _ => 3,
        };
        Self {
            unit: text,
            divisor,
            digits,
        }
    }

    /// Creates the scale for several values, chosen by the largest absolute value.
    pub fn of_all(unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let (mut largest, mut whole) = (0.0_f64, true);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            largest = largest.max(value.abs());
            whole &= value.fract() == 0.0;
        }
        let mut scale = Self::of(unit, largest);
        if !whole && matches!(unit, Unit::Pages | Unit::Count) && largest < 1000.0 {
            scale.digits = scale.digits.max(1);
        }
        scale
    }

    /// Returns the value in this scale, without the unit.
    pub fn number(&self, value: f64) -> String {
        grouped(value / self.divisor, self.digits)
    }

    /// Returns the value in this scale, with the unit.
    pub fn show(&self, value: f64, ascii: bool) -> String {
        let number = self.number(value);
        match self.unit {
            "" => number,
            "/s" => format!("{number}/s"),
            "µs" if ascii => format!("{number} us"),
            unit => format!("{number} {unit}"),
        }
    }
}

/// Formats a value with its unit, in the scale that suits the value best.
pub fn show(unit: Unit, value: f64, ascii: bool) -> String {
    Scale::of_all(unit, [value]).show(value, ascii)
}

/// Formats a number with commas as thousands separators.
pub fn grouped(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let text = format!("{value:.digits$}");
    let (sign, rest) = match text.strip_prefix('-') {
        // A value rounded to zero has no sign.
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => ("", rest),
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Formats an integer with commas as thousands separators.
pub fn count(value: u64) -> String {
    grouped(value as f64, 0)
}

/// Formats a number with its sign, plus or minus; zero has none. With Unicode, the minus sign is U+2212.
pub fn signed(value: f64, digits: usize, ascii: bool) -> String {
    let text = grouped(value, digits);
    match text.strip_prefix('-') {
        Some(rest) if !ascii => format!("\u{2212}{rest}"),
        Some(_) => text,
        None if text.bytes().all(|b| matches!(b, b'0' | b'.')) => text,
        None => format!("+{text}"),
    }
}

/// Maximum number of additional decimals for an estimate or an end of its interval.
const MORE_DIGITS: usize = 12;

/// Formats an estimate and both ends of its interval with signs; 0 means no effect. Each number has `digits` decimals,
/// or up to 12 more if needed: the printed estimate lies within the printed interval, and if the interval does not
/// contain 0, none of the three numbers is printed as 0.
pub fn estimate_within(estimate: f64, ends: [f64; 2], digits: usize, ascii: bool) -> [String; 3] {
    let [low, high] = ends;
    let printed = |value: f64, digits: usize| -> f64 {
        let text = format!("{value:.digits$}");
        text.parse().unwrap_or(value)
    };
    let is_one_sided = low > 0.0 || high < 0.0;
    // A value that is zero even with the maximum number of decimals is printed with `digits` decimals.
    let is_visible = |value: f64, digits: usize| {
        !is_one_sided || value == 0.0 || !value.is_finite() || printed(value, digits) != 0.0
    };
    let most = digits + MORE_DIGITS;
    let least = |value: f64| {
        (digits..=most)
            .find(|&digits| is_visible(value, digits))
            .unwrap_or(digits)
    };
    let [low_digits, high_digits] = ends.map(least);
    // An end near zero may have more decimals than the other end; the estimate has as many as the end with more.
    let mut shown = [
        digits.max(low_digits).max(high_digits),
        low_digits,
        high_digits,
    ];
    for middle in shown[0]..=most {
        let at = printed(estimate, middle);
        // Rounding to the same number of decimals keeps the order of numbers.
        let low_digits = if printed(low, low_digits) > at {
            low_digits.max(middle)
        } else {
            low_digits
        };
        let high_digits = if printed(high, high_digits) < at {
            high_digits.max(middle)
        } else {
            high_digits
        };
        if is_visible(estimate, middle)
            && printed(low, low_digits) <= at
            && at <= printed(high, high_digits)
        {
            shown = [middle, low_digits, high_digits];
            break;
        }
    }
    let values = [estimate, low, high];
    [0, 1, 2].map(|place| {
        let value = values[place];
        if value.is_finite() {
            return signed(value, shown[place], ascii);
        }
        match (value > 0.0, ascii) {
            (true, true) => "+inf",
            (true, false) => "+∞",
            (false, true) => "-inf",
            (false, false) => "−∞",
        }
        .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_the_unit_a_reader_would_choose() {
        assert_eq!(show(Unit::Nanos, 812.4, false), "812.4 ns");
        assert_eq!(show(Unit::Nanos, 80_000.0, false), "80.00 µs");
        assert_eq!(show(Unit::Nanos, 80_000.0, true), "80.00 us");
        assert_eq!(show(Unit::Nanos, 12_345_678_901.0, false), "12.35 s");
        assert_eq!(show(Unit::Bytes, 3.0 * 1_048_576.0, false), "3.000 MiB");
        assert_eq!(show(Unit::Pages, 63_604.0, false), "63,604 pages");
        assert_eq!(show(Unit::Share, 0.9312, false), "93.1 %");
        assert_eq!(show(Unit::Count, 0.0, false), "0");
        assert_eq!(show(Unit::PerSecond, 1234.5, false), "1,234/s");
    }

    #[test]
    fn a_row_shares_one_scale() {
        let scale = Scale::of_all(Unit::Nanos, [980.0, 1_020.0]);
        assert_eq!(scale.show(980.0, false), "0.980 µs");
        assert_eq!(scale.show(1_020.0, false), "1.020 µs");
        let counts = Scale::of_all(Unit::Count, [3.5, 12.0]);
        assert_eq!(counts.show(12.0, false), "12.0");
    }

    #[test]
    fn thousands_are_grouped_and_a_rounded_zero_has_no_sign() {
        assert_eq!(count(4_569_928), "4,569,928");
        assert_eq!(grouped(-1234.5, 1), "-1,234.5");
        assert_eq!(grouped(-0.001, 1), "0.0");
        assert_eq!(signed(-10.3, 1, false), "\u{2212}10.3");
        assert_eq!(signed(0.04, 1, false), "0.0");
        assert_eq!(signed(2.0, 1, true), "+2.0");
    }
}
