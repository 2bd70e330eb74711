//! Stacks of sleeping tasks as recorded by kernels, and malformed stacks.

use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};

use pagetide_probe::meaning::{Decoder, Event, TaskAccounting, attribute};
use pagetide_probe::trace::{CpuBuffer, CpuReader, Stride, TraceFile};

/// The kernels whose recorded data is stored: one kernel of each generation.
const KERNELS: [&str; 3] = ["6.1", "6.12", "7.2"];

fn golden(kernel: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/stacks-{kernel}.trace"))
}

fn trace(kernel: &str) -> TraceFile {
    TraceFile::read(File::open(golden(kernel)).unwrap()).unwrap()
}

/// Number of switches into an uninterruptible sleep, and the place of each sleep from its stack, in order.
fn told(trace: &TraceFile) -> (usize, Vec<Option<String>>) {
    let mut decoder = Decoder::for_trace(trace).unwrap();
    let (mut sleeps, mut told) = (0, Vec::new());
    for raw in trace.events() {
        let Some(event) = decoder.decode(&raw) else {
            continue;
        };
        match event.event {
            Event::Switch { state, .. } if state & 2 != 0 => sleeps += 1,
            // The first stack may belong to a switch before the stored part.
            Event::SleepsIn { site } if sleeps > 0 => {
                told.push(site.map(|site| decoder.sites().get(site).unwrap().to_string()));
            }
            _ => {}
        }
    }
    (sleeps, told)
}

#[test]
fn every_uninterruptible_sleep_has_a_stack_that_names_a_wait_for_a_page() {
    for kernel in KERNELS {
        let trace = trace(kernel);
        assert!(trace.meta.kernel_release.starts_with(kernel));
        let (sleeps, told) = told(&trace);
        assert!(
            sleeps > 0 && told.len() == sleeps,
            "{kernel}: {sleeps} {told:?}"
        );
        assert!(told.iter().all(Option::is_some), "{kernel}: {told:?}");
        // Swap-in from a device: the task waits for the request, or until the page is unlocked.
        let page = |site: &&Option<String>| {
            let site = site.as_deref().unwrap_or_default();
            site.starts_with("folio_wait_bit_common") || site.starts_with("swap_readpage")
        };
        assert!(told.iter().any(|site| page(&site)), "{kernel}: {told:?}");
        // Functions of the scheduler and the tracer must not be reported.
        for site in told.iter().flatten() {
            let machinery = [
                "schedule",
                "io_schedule",
                "__schedule",
                "trace_",
                "__traceiter",
            ];
            assert!(
                !machinery.iter().any(|name| site.starts_with(name)),
                "{kernel}: {site}"
            );
        }
    }
}

#[test]
fn a_tasks_sleeps_are_those_of_its_stacks_together() {
    for kernel in KERNELS {
        let trace = trace(kernel);
        let mut decoder = Decoder::for_trace(&trace).unwrap();
        let sleeper = trace.events().find_map(|raw| {
            let event = decoder.decode(&raw)?;
            matches!(event.event, Event::SleepsIn { .. }).then_some(event.pid)
        });
        let begin = trace.events().next().unwrap().time;
        let tasks = [TaskAccounting {
            pid: sleeper.unwrap(),
            begin: Some(pagetide_quantity::Nanos(begin)),
            ..TaskAccounting::default()
        }];
        let times = attribute(&trace, &tasks).unwrap();
        for (part, waits) in &times[0].waits {
            let of_part = times[0].slept.iter().filter(|slept| slept.part == *part);
            let (count, longest) = of_part.fold((0, 0), |(count, longest), slept| {
                (count + slept.count, longest.max(slept.longest.0))
            });
            assert_eq!((count, longest), (waits.count, waits.longest.0), "{kernel}");
        }
        assert!(
            times[0].slept.iter().any(|slept| slept.site.is_some()),
            "{kernel}"
        );
    }
}

#[test]
fn without_names_nothing_is_named() {
    for kernel in KERNELS {
        let mut trace = trace(kernel);
        trace.meta.functions.clear();
        let (sleeps, told) = told(&trace);
        assert_eq!(told, vec![None; sleeps], "{kernel}");
    }
}

#[test]
fn a_stack_that_lies_about_its_length_names_no_more_than_is_there() {
    for kernel in KERNELS {
        let honest = trace(kernel);
        let formats = honest.formats().unwrap();
        let stack = formats
            .iter()
            .find(|format| format.name == "kernel_stack")
            .unwrap();
        let size = stack.field("size").unwrap().offset;
        let bytes = &honest.cpus[0].bytes;
        let reader = CpuReader::new(0, bytes, honest.meta.layout, Stride::Packed);
        let stacks: Vec<usize> = reader
            .filter(|event| event.id == stack.id)
            .map(|event| event.data.as_ptr() as usize - bytes.as_ptr() as usize)
            .collect();
        assert!(!stacks.is_empty());
        let (_, true_sites) = told(&honest);
        for (length, names_any) in [(0_i32, false), (-1, false), (3, false), (i32::MAX, true)] {
            let mut altered = honest.clone();
            for at in &stacks {
                let at = at + size;
                altered.cpus[0].bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            }
            let (_, told) = told(&altered);
            // All three stated entries are skipped functions. With a larger count, the entries that exist are used.
            let expected = if names_any {
                true_sites.clone()
            } else {
                vec![None; true_sites.len()]
            };
            assert_eq!(told, expected, "{kernel}: {length}");
        }
        // Wherever the data is truncated, nothing panics and no other site appears.
        for cut in (0..bytes.len()).step_by(97) {
            let mut short = honest.clone();
            short.cpus[0].bytes.truncate(cut);
            let (_, told) = told(&short);
            assert!(told.len() <= true_sites.len());
            assert!(
                told.iter()
                    .flatten()
                    .all(|site| true_sites.contains(&Some(site.clone())))
            );
        }
    }
}

/// Creates a golden file: `FROM` is the blob `trace` of an observed record that swapped to an SSD, `KERNEL` one of
/// [`KERNELS`].
#[test]
#[ignore = "makes the golden data anew"]
fn make_the_golden_stacks() {
    const PAGES: usize = 3;
    let from = std::env::var("FROM").unwrap();
    let kernel = std::env::var("KERNEL").unwrap();
    let mut trace = TraceFile::read(File::open(from).unwrap()).unwrap();
    let stack = trace.formats().unwrap();
    let stack = stack
        .iter()
        .find(|format| format.name == "kernel_stack")
        .unwrap()
        .id;
    let layout = trace.meta.layout;
    let whole = std::mem::take(&mut trace.cpus[0].bytes);
    // Layout of a sub-buffer: time, commit word with the length, data.
    let mut pages = Vec::new();
    let mut rest = whole.as_slice();
    while let Some(commit) = rest.get(8..16) {
        let commit = u64::from_le_bytes(commit.try_into().unwrap()) & ((1 << 27) - 1);
        let length = layout.data + usize::try_from(commit).unwrap();
        pages.push(&rest[..length]);
        rest = &rest[length..];
    }
    let stacks = |page: &[u8]| {
        let reader = CpuReader::new(0, page, layout, Stride::Packed);
        reader.filter(|event| event.id == stack).count()
    };
    let first = (0..pages.len() - PAGES)
        .max_by_key(|first| {
            pages[*first..first + PAGES]
                .iter()
                .map(|page| stacks(page))
                .sum::<usize>()
        })
        .unwrap();
    trace.cpus = vec![CpuBuffer {
        cpu: 0,
        bytes: pages[first..first + PAGES].concat(),
    }];
    let met = {
        let mut met = trace.clone();
        let mut list = String::new();
        for function in &trace.meta.functions {
            writeln!(list, "{:x} t {}", function.address - 1, function.name).unwrap();
        }
        met.name_functions(list.as_bytes()).unwrap();
        met.meta.functions
    };
    trace.meta.functions = met;
    trace.write(File::create(golden(&kernel)).unwrap()).unwrap();
}
