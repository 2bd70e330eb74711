//! Fuzz tests of the importers: CSV tables, folders of mmtests, and files of other tools.

use pagetide_report::import::{csv, mmtests};
use pagetide_testing::fuzz::fuzz;

use crate::imports::{FILES, data, read};

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

/// Output of run-mmtests.sh for one test.
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
    // All other files are valid; the fuzzed file is tried in plain and in compressed form.
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

/// Gives randomly changed copies of the real files of a format to the reader of this format and to the detection of
/// formats.
fn real_files(format: &str) {
    let dir = tempfile::tempdir().unwrap();
    let name = if format == "lkp" {
        "matrix.json"
    } else {
        "file"
    };
    let path = dir.path().join(name);
    let mut corpus: Vec<Vec<u8>> = FILES
        .iter()
        .filter(|(of, _)| *of == format)
        .map(|(_, file)| std::fs::read(data(file)).unwrap())
        .collect();
    if format == "lkp" {
        corpus.push(std::fs::read(data("lkp/old/matrix.json")).unwrap());
    }
    fuzz(format, &corpus, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        // The detection of the format must end, whatever the content is.
        drop(pagetide_report::import::format::Format::of(&path));
        let batch = read(format, &[&path]).map_err(|why| why.to_string())?;
        let mut metrics = batch
            .records
            .iter()
            .flat_map(|record| &record.results.metrics);
        assert!(metrics.all(|metric| metric.value.number().is_none_or(f64::is_finite)));
        Ok(())
    });
}

#[test]
fn files_of_fio() {
    real_files("fio");
}

#[test]
fn files_of_hyperfine() {
    real_files("hyperfine");
}

#[test]
fn files_of_lkp() {
    real_files("lkp");
}

#[test]
fn files_of_perf() {
    real_files("perf");
}

#[test]
fn files_of_pgbench() {
    real_files("pgbench");
}

#[test]
fn files_of_phoronix() {
    real_files("phoronix");
}

#[test]
fn files_of_stress_ng() {
    real_files("stress-ng");
}

#[test]
fn files_of_ycsb() {
    real_files("ycsb");
}
