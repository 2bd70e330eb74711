//! Expands ranges of values for a policy's parameters to all combinations (a sweep).

use crate::error::ParameterError;
use crate::policy::{Choice, POLICIES};

/// Maximum number of combinations in one sweep.
const MAX_CHOICES: usize = 1_000_000;

/// Parses a list of policies such as `lru,s3-fifo(small=0.05)`, or `all`. With `ranges`, the list must contain a single
/// policy, which is returned with every combination of the values. See [`sweep`].
pub fn choices(policies: &str, ranges: Option<&str>) -> Result<Vec<Choice>, ParameterError> {
    let choices: Vec<Choice> = if policies == "all" {
        POLICIES
            .iter()
            .map(|about| Choice::default_of(about))
            .collect()
    } else {
        // Commas within parentheses separate parameters, not policies.
        let mut depth = 0;
        let names = policies.split(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        });
        names.map(Choice::parse).collect::<Result<_, _>>()?
    };
    match (ranges, choices.as_slice()) {
        (None, _) => Ok(choices),
        (Some(ranges), [one]) => sweep(one, ranges),
        _ => Err(ParameterError::SweepOfMany),
    }
}

/// Parses ranges such as `small=0.01:0.5:50,ghost=0.5:2:4` and returns the policy with every combination of their
/// values.
///
/// A range is FIRST:LAST:STEPS: evenly spaced values, including both ends. A single value is also allowed.
pub fn sweep(base: &Choice, text: &str) -> Result<Vec<Choice>, ParameterError> {
    let mut all = vec![base.clone()];
    for part in text.split(',') {
        let wrong = || ParameterError::Range {
            text: part.trim().to_owned(),
        };
        let (name, range) = part.split_once('=').ok_or_else(wrong)?;
        let fields: Vec<f64> = range
            .split(':')
            .map(|field| field.trim().parse().map_err(|_| wrong()))
            .collect::<Result<_, _>>()?;
        let values: Vec<f64> = match fields[..] {
            [value] => vec![value],
            [first, last, steps] if steps >= 1.0 && steps <= MAX_CHOICES as f64 => {
                let steps = crate::number::whole(steps);
                (0..steps)
                    .map(|step| {
                        let share = f64::from(step) / f64::from(steps.max(2) - 1);
                        first + (last - first) * share
                    })
                    .collect()
            }
            _ => return Err(wrong()),
        };
        if all.len().saturating_mul(values.len()) > MAX_CHOICES {
            return Err(wrong());
        }
        let mut more = Vec::with_capacity(all.len() * values.len());
        for choice in &all {
            for value in &values {
                let mut choice = choice.clone();
                choice.set(name.trim(), *value)?;
                more.push(choice);
            }
        }
        all = more;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_every_combination_of_its_ranges_ends_included() {
        let base = Choice::parse("s3-fifo").unwrap();
        let all = sweep(&base, "small=0.1:0.3:3, ghost=1").unwrap();
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), 3);
        assert_eq!(names[0], "s3-fifo(ghost=1)");
        assert_eq!(names[2], "s3-fifo(small=0.3,ghost=1)");
    }

    #[test]
    fn a_list_of_policies_is_split_at_commas_outside_brackets_and_a_sweep_needs_one_policy() {
        let all = choices("lru,s3-fifo(small=0.2,ghost=1),opt", None).unwrap();
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["lru", "s3-fifo(small=0.2,ghost=1)", "opt"]);
        assert_eq!(choices("all", None).unwrap().len(), POLICIES.len());
        assert_eq!(
            choices("s3-fifo", Some("small=0.1:0.3:3")).unwrap().len(),
            3
        );
        assert_eq!(
            choices("lru,fifo", Some("small=0.1")).unwrap_err(),
            ParameterError::SweepOfMany
        );
    }

    #[test]
    fn a_range_that_makes_no_sense_is_refused() {
        let base = Choice::parse("s3-fifo").unwrap();
        for text in [
            "small",
            "small=a",
            "small=0.1:0.3",
            "small=0.1:0.3:0",
            "tiny=1",
            "small=2",
        ] {
            assert!(sweep(&base, text).is_err(), "{text}");
        }
    }
}
