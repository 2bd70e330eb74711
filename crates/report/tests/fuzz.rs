//! Results of others, fuzzed: CSV tables.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

use pagetide_report::import::csv;
use pagetide_testing::fuzz::fuzz;

#[test]
fn csv_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let corpus = [
        b"scenario,variant,seed,metric,value\na,x,1,t,5\na,y,1,t,\"6\"\na,x,2,t,7e3\na,y,2,t,-0\n"
            .to_vec(),
        b"scenario,variant,metric,value\n\"q\"\"uo\nte\",x,t,nan\n".to_vec(),
    ];
    fuzz("csv", &corpus, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        csv::import(&path, None)
            .map(drop)
            .map_err(|why| why.to_string())
    });
}
