//! Runs described workloads as real processes, without memory pressure.

#![allow(clippy::unwrap_used, reason = "tests may")]

#[allow(dead_code, reason = "other tests use the rest")]
mod arena;

use arena::{Run, run};

fn of(text: &str) -> Run {
    let workload = pagetide_workload::Workload::from_canonical(text).unwrap();
    let run = run(
        None,
        &["workload", &format!("workload={}", workload.canonical())],
    )
    .unwrap();
    assert_eq!(run.outcome.invalid, []);
    run
}

fn count(run: &Run, name: &str) -> u64 {
    pagetide_quantity::floor(run.metric(name))
}

#[test]
fn every_kind_of_phase_runs_and_every_access_is_counted() {
    let run = of(r#"{"process":[
        {"name":"server","segment":[{"name":"heap","size":"1M"},{"name":"log","kind":"file","size":"1M","empty":true},
           {"name":"note","kind":"tmpfs","size":"64K"},{"name":"board","kind":"shared","size":"64K"}],
         "phase":[{"do":"fill","segment":"heap"},{"do":"fill","segment":"log","by":"call"},{"do":"mark","name":"ready"},
           {"do":"fork","count":2,"phases":[{"do":"copy","from":"heap","to":"log"},
              {"do":"access","segment":"board","writes":1.0,"count":10}]},
           {"do":"repeat","times":3,"phases":[{"do":"access","segment":"heap","pattern":"random","writes":0.5,"count":"0.5x"}]},
           {"do":"join"},{"do":"sync","segment":"log"},
           {"do":"advise","segment":"heap","advice":"cold","part":[0.5,1.0]},
           {"do":"advise","segment":"log","advice":"drop-cache"},
           {"do":"access","segment":"note","by":"call","amount":"page","writes":1.0}]},
        {"name":"reader","count":2,"stagger":"1ms","turn":"seen","segment":[{"name":"data","kind":"file","size":"128K","file":"data"}],
         "phase":[{"do":"wait","for":"ready"},{"do":"mark","name":"seen"},
           {"do":"access","segment":"data","by":"call","count":40,"pause":"1ms","every":20},{"do":"wait","for":"server"}]}]}"#);
    assert_eq!(count(&run, "accesses"), 2 * 10 + 3 * 128 + 16 + 2 * 40);
    assert_eq!(
        run.outcome.histograms["access"].count,
        count(&run, "accesses")
    );
    assert_eq!((count(&run, "killed"), count(&run, "unfinished")), (0, 0));
    let processes = run.series("processes");
    assert_eq!(processes.rows(), 3 + 2);
    let steps: f64 = (0..5)
        .filter_map(|row| processes.column("steps").unwrap().get(row))
        .sum();
    // The sum of the accesses, of 256 pages filled twice and copied twice, and of two forks.
    assert_eq!(
        pagetide_quantity::floor(steps),
        count(&run, "accesses") + 4 * 256 + 2
    );
}

#[test]
fn a_workload_without_end_is_ended_at_its_time_limit() {
    let run = of(
        r#"{"time-limit":"300ms","process":[{"name":"endless","count":3,"segment":[{"name":"heap","size":"64K"}],
        "phase":[{"do":"fork","phases":[{"do":"pause","time":"500s"}]},
          {"do":"repeat","times":10000,"phases":[{"do":"access","segment":"heap","count":1000,"pause":"1ms","every":1000}]},
          {"do":"join"}]}]}"#,
    );
    assert_eq!(count(&run, "unfinished"), 6);
    let warnings = &run.outcome.warnings;
    assert!(
        warnings
            .iter()
            .any(|warning| warning.to_string().contains("time limit"))
    );
}

#[test]
fn accesses_stop_early_when_the_process_that_they_accompany_has_ended() {
    let run = of(
        r#"{"process":[{"name":"main","phase":[{"do":"pause","time":"50ms"}]},
        {"name":"beside","segment":[{"name":"heap","size":"64K"}],
         "phase":[{"do":"access","segment":"heap","count":50000000,"until":"main"}]}]}"#,
    );
    assert!(count(&run, "accesses") < 50_000_000);
    assert_eq!(count(&run, "unfinished"), 0);
}
