//! Results of others, fuzzed: CSV tables and trees of mmtests.

use pagetide_report::import::{csv, mmtests};
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

/// What run-mmtests.sh writes of one test.
const TEST: &str = "test begin :: stream 1700000000
file start :: /proc/vmstat
pgfault 100
pgmajfault 3
file end :: /proc/vmstat
pgfault 900
pgmajfault 7
time :: stream 12.50 user 1.50 system 10.25 elapsed
test exit :: stream 0
";

#[test]
fn mmtests_trees() {
    let dir = tempfile::tempdir().unwrap();
    let iteration = |run: &str, number: u32| {
        let path = dir.path().join(format!("work/log/{run}/iter-{number}"));
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    // The files around it are as they should be; one in each of their forms changes.
    let (plain, packed) = (iteration("6.1", 0), iteration("6.12", 0));
    std::fs::write(iteration("6.1", 1).join("tests-timestamp"), TEST).unwrap();
    std::fs::write(plain.join("tests-sysstate"), TEST).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, TEST.as_bytes()).unwrap();
    let corpus = [
        TEST.as_bytes().to_vec(),
        TEST.replace("stream", "a/../b").into_bytes(),
        gz.finish().unwrap(),
    ];
    fuzz("mmtests", &corpus, |bytes| {
        let place = if bytes.starts_with(&[0x1f, 0x8b]) {
            packed.join("timestamp.gz")
        } else {
            plain.join("tests-timestamp")
        };
        std::fs::write(&place, bytes).unwrap();
        let imported = mmtests::import(dir.path());
        std::fs::remove_file(&place).unwrap();
        imported.map(drop).map_err(|why| why.to_string())
    });
}
