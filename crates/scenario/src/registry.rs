//! The list of all scenarios. To add one, add its file and a line here.

use pagetide_quantity::hint;
use std::collections::BTreeMap;

use pagetide_record::cpus::{WORKERS, Workers};
use pagetide_record::{CpusSpec, Subject};

use crate::definition::{self, Context, Definition, Needs, form};
use crate::error::ScenarioError;
use crate::groups::{GROUP_SETTING, Limit};
use crate::scenario::{
    alloc, contswap, fault, filecopy, highalloc, kv, launches, neighbours, patterns, proactive,
    program, swapbench, usemem, workload,
};

/// All scenarios in display order.
static SCENARIOS: &[&Definition] = &[
    &contswap::CONTSWAP,
    &patterns::PATTERNS,
    &patterns::LINEAR,
    &patterns::RANDOM,
    &patterns::SMOOTH_SIN,
    &patterns::SMOOTH_SIN_RANDOM,
    &patterns::ZIPF05,
    &patterns::ZIPF,
    &patterns::LOGNORMAL,
    &patterns::HOT_COLD,
    &patterns::SCAN_WITH_HOT_CORE,
    &patterns::LOOP,
    &patterns::FILE,
    &fault::FAULT,
    &alloc::ALLOC,
    &highalloc::HIGHALLOC,
    &swapbench::SWAPBENCH,
    &filecopy::FILECOPY,
    &usemem::USEMEM,
    &kv::KV,
    &workload::WORKLOAD,
    &neighbours::NEIGHBOURS,
    &launches::LAUNCHES,
    &proactive::PROACTIVE,
    &program::PROGRAM,
];

/// Returns the definitions of all scenarios in display order.
pub fn list() -> &'static [&'static Definition] {
    SCENARIOS
}

/// Finds a scenario by name. The name of a pattern may include its parameters: `zipf(1.1)`, `file:trace.txt`. Fails for
/// an unknown name, with an error that suggests a similar one.
pub fn find(name: &str) -> Result<&'static Definition, ScenarioError> {
    let plain = base(name);
    SCENARIOS
        .iter()
        .find(|definition| definition.name == plain)
        .copied()
        .ok_or_else(|| ScenarioError::Unknown {
            given: name.to_owned(),
            hint: hint(
                plain,
                SCENARIOS.iter().map(|definition| definition.name),
                "`pagetide list scenarios` shows all",
            ),
        })
}

/// Returns the part of a name before parameters in parentheses or before a path.
fn base(name: &str) -> &str {
    name.split(['(', ':']).next().unwrap_or(name).trim()
}

/// Resolves every parameter to canonical text. Fails for unknown names, invalid values, and parameters that do not fit
/// the machine.
///
/// `given` contains values and expressions over `memory`, `swap`, `cpus`, `scale` and earlier parameters. `scale` is
/// the size relative to the original. By default it follows from the memory.
pub fn resolve(
    name: &str,
    as_written: bool,
    scale: Option<f64>,
    given: &BTreeMap<String, String>,
    context: &Context,
) -> Result<BTreeMap<String, String>, ScenarioError> {
    let mut definition = find(name)?;
    let mut given = given.clone();
    if name.trim() != definition.name {
        patterns::take_pattern(definition, name, &mut given)?;
    }
    // For `patterns` with a named pattern, use the defaults of the scenario with that name.
    if definition.name == patterns::PATTERNS.name
        && let Some(own) = given.get("pattern").and_then(|pattern| find(pattern).ok())
    {
        definition = own;
    }
    patterns::take_file(definition, &mut given)?;
    definition::resolve(definition, as_written, scale, &given, context)
}

/// Returns what a trial with resolved parameters needs from the arena. Fails if the scenario is unknown, a parameter is
/// not resolved, its memory groups contradict each other, or its workers cannot be placed as asked.
pub fn needs(subject: &Subject) -> Result<Needs, ScenarioError> {
    let definition = find(&subject.scenario)?;
    let mut needs = (definition.needs)(&subject.params, form(subject.as_written))?;
    let groups = (definition.groups)(subject)?;
    check_workers(definition.name, subject)?;
    let mut settings = subject.variant.settings.keys();
    needs.groups |= settings.any(|name| name.starts_with(GROUP_SETTING));
    if needs.groups {
        let why = "it makes memory groups, and counts what the kernel reclaims outside of them";
        needs.own_machine = needs.own_machine.or(Some(why));
    }
    needs.reclaim_requests |= groups.iter().any(|group| !group.requests.is_empty());
    needs.zswap_max |= groups
        .iter()
        .any(|group| group.limit(Limit::ZswapMax).is_some());
    Ok(needs)
}

/// Names of the scenarios whose workers can be spread over CPUs.
const WITH_WORKERS: [&str; 7] = [
    "contswap",
    "highalloc",
    "launches",
    "neighbours",
    "proactive",
    "swapbench",
    "usemem",
];

/// Fails if a variant's setting for the placement of workers cannot be parsed, or spreads workers although the scenario
/// has none or the machine has one CPU.
fn check_workers(scenario: &str, subject: &Subject) -> Result<(), ScenarioError> {
    let Some(text) = subject.variant.settings.get(WORKERS) else {
        return Ok(());
    };
    let refused = |why: String| {
        Err(ScenarioError::Contradiction {
            scenario: scenario.to_owned(),
            why,
        })
    };
    match text.parse::<Workers>() {
        Err(why) => refused(why.to_string()),
        Ok(Workers::Spread) if !subject.cpus.are_several() => refused(format!(
            "{WORKERS}={text} needs several CPUs: give --cpus 2 to {}",
            CpusSpec::MAX
        )),
        Ok(Workers::Spread) if !WITH_WORKERS.contains(&scenario) => refused(format!(
            "it has no workers for {WORKERS}={text}: leave the setting out, or choose one of {}",
            WITH_WORKERS.join(", ")
        )),
        Ok(Workers::Free | Workers::Spread) => Ok(()),
    }
}

#[cfg(test)]
mod tests {

    use pagetide_quantity::Bytes;
    use pagetide_record::MemorySpec;

    use super::*;

    const CONTEXT: Context = Context {
        memory: Bytes::from_mib(64),
        swap_size: Bytes::from_mib(512),
        cpus: 1,
    };

    #[test]
    fn every_scenario_resolves_with_its_defaults_in_both_forms() {
        for definition in list()
            .iter()
            .filter(|definition| !["file", "program"].contains(&definition.name))
        {
            for as_written in [false, true] {
                if as_written && !definition.has_as_written {
                    continue;
                }
                let name = definition.name;
                let params = resolve(name, as_written, None, &BTreeMap::new(), &CONTEXT)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                let again = resolve(name, as_written, None, &params, &CONTEXT).unwrap();
                assert_eq!(params, again, "{name}: canonical text resolves to itself");
                needs(&Subject {
                    scenario: name.to_owned(),
                    as_written,
                    params,
                    memory: MemorySpec::Free(CONTEXT.memory),
                    swap_size: CONTEXT.swap_size,
                    ..Subject::default()
                })
                .unwrap();
            }
        }
    }

    #[test]
    fn a_pattern_with_its_words_resolves_again_from_what_it_was_resolved_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refs.txt");
        std::fs::write(&path, "0\n1\n2\n1\n").unwrap();
        let of_file = format!("file:{}", path.display());
        for name in [of_file.as_str(), "zipf(1.1)"] {
            let params = resolve(name, false, None, &BTreeMap::new(), &CONTEXT).unwrap();
            assert!(params.contains_key("pattern"), "{name}");
            let again = resolve(name, false, None, &params, &CONTEXT).unwrap();
            assert_eq!(again, params, "{name}");
            // A pattern that differs from the name is a contradiction.
            let mut other = params.clone();
            other.insert("pattern".to_owned(), "linear".to_owned());
            assert!(
                resolve(name, false, None, &other, &CONTEXT).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn every_scenario_documents_itself_and_has_few_primary_metrics() {
        for definition in list() {
            let name = definition.name;
            assert!(!definition.summary.is_empty(), "{name}");
            assert!(definition.docs.len() > definition.summary.len(), "{name}");
            for param in definition.params {
                assert!(param.help.len() > 5, "{name}: {} has no help", param.name);
            }
            let primary = definition.metrics.iter().filter(|def| def.primary).count();
            assert!(
                (1..=3).contains(&primary),
                "{name} has {primary} primary metrics"
            );
            let mut names: Vec<_> = definition.metrics.iter().map(|def| def.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(
                names.len(),
                definition.metrics.len(),
                "{name}: metrics have names of their own"
            );
        }
    }

    #[test]
    fn parameters_of_groups_are_left_out_of_programs_that_use_none() {
        let resolved = |more: &[(&str, &str)]| {
            let given = [("command", "/bin/a"), ("root", "ab")];
            let given = given.iter().chain(more);
            let given = given.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            resolve("program", false, None, &given.collect(), &CONTEXT)
        };
        let needs_of = |params: &BTreeMap<String, String>| {
            needs(&Subject {
                scenario: "program".to_owned(),
                params: params.clone(),
                memory: MemorySpec::Free(CONTEXT.memory),
                ..Subject::default()
            })
            .unwrap()
        };
        let plain = resolved(&[]).unwrap();
        for name in ["low", "min", "beside", "beside-limits"] {
            assert!(!plain.contains_key(name), "{name}");
        }
        assert!(!needs_of(&plain).groups);
        let protected = resolved(&[("low", "8M")]).unwrap();
        assert_eq!(protected["low"], "8M");
        assert!(needs_of(&protected).groups);
        for (more, words) in [
            (&[("beside-limits", "max=8M")][..], "--beside"),
            (&[("beside", "sort a")], "no path inside"),
            (
                &[
                    ("beside", "/bin/b"),
                    ("server", "/bin/c"),
                    ("ready", "port 1"),
                ],
                "leave out --server or --beside",
            ),
            (
                &[
                    ("beside", "/bin/b"),
                    ("beside-limits", "low=40M"),
                    ("low", "30M"),
                ],
                "protect 70 MiB",
            ),
            (
                &[("limit", "8M"), ("low", "9M")],
                "low of 9 MiB above its max",
            ),
        ] {
            let why = resolved(more).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn what_a_kernel_must_have_follows_from_the_limits_of_groups() {
        let of = |name: &str, limits: &str, setting: Option<(&str, &str)>| {
            let given = match name {
                "neighbours" => BTreeMap::from([("hungry-limits".to_owned(), limits.to_owned())]),
                _ => BTreeMap::new(),
            };
            let params = resolve(name, false, None, &given, &CONTEXT).unwrap();
            let mut subject = Subject {
                scenario: name.to_owned(),
                params,
                memory: MemorySpec::Free(CONTEXT.memory),
                swap_size: CONTEXT.swap_size,
                ..Subject::default()
            };
            let setting = setting.map(|(name, value)| (name.to_owned(), value.to_owned()));
            subject.variant.settings.extend(setting);
            let needs = needs(&subject).unwrap();
            [needs.groups, needs.reclaim_requests, needs.zswap_max]
        };
        assert_eq!(of("usemem", "", None), [false; 3]);
        assert_eq!(of("neighbours", "max=8M", None), [true, false, false]);
        assert_eq!(of("neighbours", "zswap.max=1M", None), [true, false, true]);
        assert_eq!(of("neighbours", "reclaim=1M@1s", None), [true, true, false]);
        let setting = Some(("group/sensitive/zswap.max", "1M"));
        assert_eq!(of("neighbours", "", setting), [true, false, true]);
        assert_eq!(of("proactive", "", None), [true, true, false]);
    }

    #[test]
    fn an_unknown_scenario_or_parameter_is_refused_with_a_near_name() {
        let error = find("smoth-sin-randm").unwrap_err().to_string();
        assert!(
            error.contains("did you mean \"smooth-sin-random\"?"),
            "{error}"
        );
        let given = BTreeMap::from([("page".to_owned(), "5".to_owned())]);
        let error = resolve("linear", false, None, &given, &CONTEXT)
            .unwrap_err()
            .to_string();
        assert!(error.contains("did you mean \"pages\"?"), "{error}");
    }
}
