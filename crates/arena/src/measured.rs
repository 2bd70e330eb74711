//! Metrics of a user's own program that its process cannot measure: numbers counted by the kernel, and numbers in the
//! program's output.

use pagetide_quantity::{Direction, Metric, MetricDef, Unit, Value};
use pagetide_record::outcome::Invalid;
use pagetide_record::record::Results;
use pagetide_record::{ArenaKind, Subject};
use pagetide_scenario::{Measure, ScenarioError};
use regex::{Regex, RegexBuilder};

/// Name of a metric of a program in the host arena: its elapsed time without waits for CPUs, divided by the same time
/// without waits for memory and devices too. Waits for CPUs, and the speed of CPUs, do not affect it.
pub const WAITING: &str = "waiting-factor";

/// Maximum value of [`WAITING`].
const MAX_FACTOR: f64 = 1e4;
/// Maximum size in bytes of a compiled regular expression.
const MAX_BYTES: usize = 1 << 20;

/// Returns the numbers to read from the program's output, each with its regular expression; empty if none are
/// requested. Fails if the request or an expression cannot be parsed, or an expression has no group in parentheses.
fn measures(subject: &Subject) -> Result<Vec<(Measure, Regex)>, String> {
    let Some(text) = subject.params.get("metrics") else {
        return Ok(Vec::new());
    };
    let compiled = |measure: Measure| {
        let regex = RegexBuilder::new(&measure.pattern)
            .multi_line(true)
            .size_limit(MAX_BYTES)
            .build();
        match regex {
            Ok(regex) if regex.captures_len() > 1 => Ok((measure, regex)),
            Ok(_) => Err(format!(
                "the expression of {} marks no number: put it in parentheses, as in `rate ([0-9.]+)`",
                measure.name
            )),
            Err(why) => {
                let why = why.to_string();
                let last = why.lines().last().unwrap_or_default();
                Err(format!(
                    "the expression of {} cannot be read: {last}",
                    measure.name
                ))
            }
        }
    };
    Measure::read_all(text)?.into_iter().map(compiled).collect()
}

/// Fails if a requested number of the program's output has no name, direction or valid expression with a group.
pub fn check(subject: &Subject) -> Result<(), ScenarioError> {
    match measures(subject) {
        Ok(_) => Ok(()),
        Err(why) => Err(ScenarioError::Contradiction {
            scenario: subject.scenario.clone(),
            why,
        }),
    }
}

/// Adds metrics to the results of a user's own program: numbers counted by the kernel, and numbers in the program's
/// output. Does nothing if the results have no metrics. A trial whose output lacks a number becomes invalid.
pub fn add(results: &mut Results, subject: &Subject) {
    // Numbers of a program that did not end properly would mislead.
    if results.metrics.is_empty() {
        return;
    }
    counted(results, subject);
    let is_beside = |metric: &&mut Metric| metric.name == "beside-elapsed";
    if let Some(metric) = results.metrics.iter_mut().find(is_beside) {
        metric.primary = subject.params.get("metrics").is_none_or(String::is_empty);
    }
    for (measure, regex) in measures(subject).unwrap_or_default() {
        // If the user asks for a number from the program's output, that number becomes the primary metric.
        for metric in &mut results.metrics {
            metric.primary &= metric.name != "elapsed";
        }
        let names = [
            "stdout",
            "stderr",
            "server-stdout",
            "server-stderr",
            "beside-stdout",
            "beside-stderr",
        ];
        let output = names.map(|name| results.texts.get(name));
        let value = output.into_iter().flatten().find_map(|text| {
            // The last match counts, because programs repeat their reports.
            let last = regex.captures_iter(text).last()?;
            number(last.get(1)?.as_str())
        });
        let value = if let Some(value) = value {
            Value::Number(value)
        } else {
            let why = format!("wrote no number that `{}` finds", measure.pattern);
            if results.invalid.is_empty() {
                results.invalid.push(Invalid::Program { why: why.clone() });
            }
            Value::Absent(why)
        };
        results.metrics.push(Metric {
            name: measure.name,
            unit: Unit::Count,
            direction: measure.direction,
            primary: true,
            value,
        });
    }
}

/// Parses a number whose digits may be grouped by commas; `None` if the text is not a number.
fn number(text: &str) -> Option<f64> {
    let plain: String = text.trim().chars().filter(|c| *c != ',').collect();
    plain.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Adds metrics computed from the kernel's counters. In the host arena, where other programs use the same kernel, these
/// are the counters of the program's cgroup. Bytes read and written have no value there, because the kernel counts them
/// only for the whole machine, and [`WAITING`] is added.
fn counted(results: &mut Results, subject: &Subject) {
    let is_shared = subject.arena.kind == ArenaKind::Host;
    let [vmstat, pressure] = if is_shared {
        ["memory.stat", "pressure-group"]
    } else {
        ["vmstat", "pressure"]
    };
    let vmstat = results.counters.get(vmstat);
    let count = |names: &[&str]| vmstat.and_then(|vmstat| vmstat.sum(names));
    // The kernel counts both directions in KiB. Version 1 of cgroups has counters of other things with these names.
    let moved = |name: &str| count(&[name]).filter(|_| !is_shared).map(|kib| kib << 10);
    let pressure = results.counters.get(pressure);
    let stalled = |name: &str| pressure.and_then(|pressure| pressure.delta(name));
    let of = |name, unit, value| (MetricDef::of(name, unit, Direction::Lower, ""), value);
    let refaults = [
        "workingset_refault_anon",
        "workingset_refault_file",
        "workingset_refault",
    ];
    let add = [
        of("refaults", Unit::Pages, count(&refaults)),
        of("read", Unit::Bytes, moved("pgpgin")),
        of("written", Unit::Bytes, moved("pgpgout")),
        of("psi-memory-some", Unit::Nanos, stalled("memory-some")),
        of("psi-memory-full", Unit::Nanos, stalled("memory-full")),
        of("psi-io-some", Unit::Nanos, stalled("io-some")),
        of("psi-io-full", Unit::Nanos, stalled("io-full")),
    ];
    if is_shared {
        let def = MetricDef::of(WAITING, Unit::Ratio, Direction::Lower, "");
        let of_name = |metric: &&Metric| metric.name == "elapsed";
        let elapsed = results.metrics.iter().find(of_name);
        let elapsed = elapsed.and_then(|metric| metric.value.number());
        let factor = elapsed.and_then(|elapsed| waiting_factor(elapsed, stalled));
        results.metrics.push(match factor {
            Some(factor) => Metric::new(&def, factor),
            None => Metric::absent(&def, "the kernel does not measure pressure"),
        });
    }
    for (def, value) in add {
        results.metrics.push(match value {
            Some(value) => Metric::new(&def, value as f64),
            None if is_shared => Metric::absent(&def, "not counted for a group of this kernel"),
            None => Metric::absent(&def, "not on this kernel"),
        });
    }
}

/// Returns a program's time without waits for CPUs (`ran`), divided by `ran` without waits for memory and devices; at
/// most [`MAX_FACTOR`]. `None` if `stalled` gives no time for one of these kinds of pressure, or `ran` is not positive.
///
/// `some` counts the time in which at least one process waited, `full` that in which all did (kernel
/// `Documentation/accounting/psi.rst`). Their mean is the time for which a process waited: exactly for one process, and
/// for two that wait independently of each other. A read from swap may count as waiting for memory, for a device, or
/// for both, so the larger one is taken.
fn waiting_factor(elapsed: f64, stalled: impl Fn(&str) -> Option<u64>) -> Option<f64> {
    let of = |some, full| Some(f64::midpoint(stalled(some)? as f64, stalled(full)? as f64));
    let waited = of("memory-some", "memory-full")?.max(of("io-some", "io-full")?);
    // Time in which at least one of its processes could run, but none ran.
    let queued = stalled("cpu-full").unwrap_or(0) as f64;
    let ran = elapsed - queued;
    // Pressure is read a moment before the program begins and after it ends, so the waits may exceed its time.
    (ran > 0.0).then(|| ran / (ran - waited).max(ran / MAX_FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(metrics: &str) -> Subject {
        Subject {
            scenario: "program".to_owned(),
            params: [("metrics".to_owned(), metrics.to_owned())].into(),
            ..Subject::default()
        }
    }

    fn results(stdout: &str) -> Results {
        let elapsed = MetricDef::time("elapsed", "").primary();
        let mut results = Results {
            metrics: vec![Metric::new(&elapsed, 5.0)],
            ..Results::default()
        };
        results.texts.insert("stdout".to_owned(), stdout.to_owned());
        results
    }

    fn metric<'a>(results: &'a Results, name: &str) -> &'a Metric {
        let mut all = results.metrics.iter();
        all.find(|metric| metric.name == name).unwrap()
    }

    #[test]
    fn a_number_of_the_programs_own_decides_and_the_last_one_counts() {
        let subject = subject("'ops=^rate ([0-9.,]+)$:higher'");
        let mut results = results("rate 10\nrate 1,234.5\n");
        add(&mut results, &subject);
        let ops = metric(&results, "ops");
        assert_eq!(ops.value.number(), Some(1234.5));
        assert!(ops.primary && ops.direction == Direction::Higher);
        assert!(!metric(&results, "elapsed").primary);
        assert!(results.invalid.is_empty());
        assert_eq!(metric(&results, "refaults").value.number(), None);
    }

    #[test]
    fn a_program_that_waited_half_of_the_time_it_had_a_processor_took_twice_as_long() {
        let time = |name: &str| match name {
            "memory-some" | "memory-full" => Some(30),
            "io-some" => Some(50),
            "io-full" => Some(30),
            "cpu-full" => Some(20),
            _ => None,
        };
        assert_eq!(waiting_factor(100.0, time), Some(2.0));
        assert_eq!(waiting_factor(100.0, |_| Some(0)), Some(1.0));
        assert_eq!(waiting_factor(100.0, |_| None), None);
    }

    #[test]
    fn beside_other_programs_the_counters_of_the_group_are_taken() {
        let mut subject = subject("");
        let mut results = results("");
        let counters = [
            ("vmstat", "pgpgin", [0, 7]),
            ("memory.stat", "workingset_refault_anon", [1, 4]),
            ("pressure", "memory-some", [0, 900]),
            ("pressure-group", "memory-some", [100, 300]),
            ("pressure-group", "cpu-full", [10, 12]),
        ];
        for (source, name, values) in counters {
            let counters = results.counters.entry(source.to_owned()).or_default();
            counters.values.insert(name.to_owned(), values);
        }
        let mut of_machine = results.clone();
        add(&mut of_machine, &subject);
        subject.arena.kind = ArenaKind::Host;
        add(&mut results, &subject);
        let number = |results: &Results, name: &str| metric(results, name).value.number();
        assert_eq!(number(&results, "refaults"), Some(3.0));
        assert_eq!(number(&results, "psi-memory-some"), Some(200.0));
        assert_eq!(number(&results, "read"), None);
        assert_eq!(number(&results, WAITING), None, "io was not measured");
        assert!(
            of_machine
                .metrics
                .iter()
                .all(|metric| metric.name != WAITING)
        );
        assert_eq!(number(&of_machine, "psi-memory-some"), Some(900.0));
        assert_eq!(number(&of_machine, "read"), Some(7168.0));
    }

    #[test]
    fn a_number_that_is_not_there_makes_the_trial_invalid() {
        let mut results = results("nothing\n");
        add(&mut results, &subject("'ops=rate ([0-9]+):higher'"));
        let why = results.invalid[0].to_string();
        assert!(why.contains("rate ([0-9]+)"), "{why}");
    }

    #[test]
    fn an_expression_without_a_group_or_with_a_slip_is_refused_before_anything_runs() {
        for bad in [
            "'a=x:higher'",
            "'a=(x:higher'",
            "a",
            "'a=(x){9999999}:lower'",
        ] {
            assert!(check(&subject(bad)).is_err(), "{bad}");
        }
        assert!(check(&subject("")).is_ok());
    }
}
