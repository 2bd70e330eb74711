//! Numbers to extract from the output of a program: how to find them, and which direction is better.

use pagetide_quantity::Direction;

/// A number to extract from the output of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Name of the metric that the number becomes.
    pub name: String,
    /// Regular expression. Its first group matches the number.
    pub pattern: String,
    /// Whether a higher or a lower number is better.
    pub direction: Direction,
}

impl Measure {
    /// Parses `NAME=REGEX:higher` or `NAME=REGEX:lower`. The error says what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        let form = "write NAME=REGEX:higher or NAME=REGEX:lower, as in 'ops=([0-9.]+) requests per second:higher'";
        let (name, rest) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` names no metric: {form}"))?;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(format!(
                "`{name}` cannot name a metric: use small letters, digits and hyphens"
            ));
        }
        let (pattern, direction) = rest
            .rsplit_once(':')
            .ok_or_else(|| format!("`{text}` does not say which is better: {form}"))?;
        let direction = match direction {
            "higher" => Direction::Higher,
            "lower" => Direction::Lower,
            other => return Err(format!("`{other}` is no direction: {form}")),
        };
        if pattern.is_empty() {
            return Err(format!("`{text}` has no expression: {form}"));
        }
        Ok(Self {
            name: name.to_owned(),
            pattern: pattern.to_owned(),
            direction,
        })
    }

    /// Parses several measures, quoted as for a shell. The error says what is wrong.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let words = shlex::split(text).ok_or("the quotes of its metrics do not match")?;
        words.iter().map(|word| Self::read(word)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_has_a_name_an_expression_and_a_direction() {
        let measure = Measure::read("ops-a=rate: ([0-9.]+):higher").unwrap();
        assert_eq!(measure.name, "ops-a");
        assert_eq!(measure.pattern, "rate: ([0-9.]+)");
        assert_eq!(measure.direction, Direction::Higher);
        for bad in [
            "ops",
            "ops=x",
            "ops=x:more",
            "=x:lower",
            "Ops=x:lower",
            "o=:lower",
        ] {
            assert!(Measure::read(bad).is_err(), "{bad}");
        }
        assert_eq!(
            Measure::read_all("'a=b c:lower' d=e:higher").unwrap().len(),
            2
        );
    }
}
