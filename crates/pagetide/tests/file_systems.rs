//! Tests of programs and scenarios on file systems other than ext4.

use std::fs;

use crate::common::{KERNEL, Lab, metric, one_sentence};

/// A shell script: prints the file system mounted at `/`, the owners of files, and the checksum of the file. Then it
/// writes four times the file's size and reads the result.
const SCRIPT: &str = "while read -r from at kind rest; do test $at = / && echo \"root is $kind\"; done </proc/mounts; \
     ls -lnL /work /bin/sh; ls -dln /work /tmp /etc/passwd; cksum numbers; \
     cat numbers numbers numbers numbers >copy && cksum copy";

#[test]
#[ignore = "test-all"]
fn a_program_finds_its_files_on_each_file_system_and_repeats_to_the_bit() {
    let Some(lab) = Lab::that_runs() else { return };
    let text: Vec<String> = (0..250_000_u32).map(|number| number.to_string()).collect();
    fs::write(lab.folder().join("numbers"), text.join("\n")).unwrap();
    let mut sums = Vec::new();
    for system in ["ext4", "xfs", "btrfs", "tmpfs"] {
        let run = |more: &[&'static str]| {
            let mut all = vec!["run", "--kernel", KERNEL, "--seeds", "1", "--memory", "24M"];
            all.extend(["--fs", system, "--file", "numbers"]);
            for program in ["/usr/bin/ls", "/usr/bin/cksum", "/usr/bin/cat"] {
                all.extend(["--file", program]);
            }
            all.extend(more);
            all.extend(["--", "sh", "-c", SCRIPT]);
            lab.ends(0, all);
            lab.newest(1).remove(0)
        };
        let first = run(&[]);
        let output = first["results"]["texts"]["stdout"].as_str().unwrap();
        assert!(output.contains(&format!("root is {system}")), "{output}");
        assert!(output.contains("drwxrwxrwt"), "/tmp is shared: {output}");
        assert!(
            output.contains("1000     1000") || output.contains("1000 1000"),
            "{output}"
        );
        let lines: Vec<&str> = output.lines().collect();
        let sum = lines
            .iter()
            .filter(|line| line.ends_with("numbers") || line.ends_with("copy"));
        let sum: Vec<String> = sum
            .filter(|line| !line.starts_with('-'))
            .map(|line| (*line).to_owned())
            .collect();
        assert_eq!(sum.len(), 2, "{output}");
        sums.push(sum);
        assert_eq!(first["digest"], run(&["--fresh"])["digest"], "{system}");
    }
    assert!(sums.windows(2).all(|two| two[0] == two[1]), "{sums:?}");
}

#[test]
#[ignore = "test-all"]
fn files_on_a_disk_that_takes_no_time_are_read_soonest_also_beside_a_swap_that_does() {
    let Some(lab) = Lab::that_runs() else { return };
    fs::write(lab.folder().join("data"), vec![7_u8; 6 << 20]).unwrap();
    let elapsed = |options: &[&'static str]| {
        // Other tasks have the CPU for up to 3 ms in some seeds, so the fastest of three is compared.
        let mut all = vec!["run", "--kernel", KERNEL, "--seeds", "3", "--memory", "16M"];
        all.extend(options);
        all.extend(["--file", "data", "--", "cksum", "data"]);
        lab.ends(0, all);
        let times = lab.newest(3);
        let times = times.iter().map(|record| metric(record, "elapsed"));
        times.fold(f64::INFINITY, f64::min)
    };
    for swap in ["zram", "ssd:5ms"] {
        let null = elapsed(&["--swap", swap, "--disk", "null"]);
        let ssd = elapsed(&["--swap", swap]);
        // With swap on an SSD, the device of the files has the same latency: 6 MiB are about 50 requests of 128 KiB,
        // two of them in flight at once.
        let least = if swap == "zram" { 1e6 } else { 50e6 };
        assert!(ssd - null > least, "{swap}: {null} and {ssd} ns");
    }
    let (_, err) = lab.ends(4, ["run", "filecopy", "--disk", "nul"]);
    assert!(err.contains("files lie on ssd, null or a disk"), "{err}");
}

#[test]
#[ignore = "test-all"]
fn a_scenario_with_files_runs_on_xfs_and_says_what_made_it() {
    let Some(lab) = Lab::that_runs() else { return };
    lab.ends(
        0,
        [
            "run",
            "filecopy",
            "--kernel",
            KERNEL,
            "--seeds",
            "1",
            "--memory",
            "24M",
            "--fs",
            "xfs",
            "-p",
            "methods=classic",
            "-p",
            "size=32M",
        ],
    );
    let record = lab.newest(1).remove(0);
    assert_eq!(record["subject"]["files_on"], "xfs");
    let made = record["results"]["facts"]["made-by"].as_str().unwrap();
    assert!(made.starts_with("xfsprogs "), "{made}");
    let id = record["digest"].as_str().unwrap();
    assert_eq!(id.len(), 64, "{id}");
}

#[test]
fn a_file_system_that_there_is_not_is_refused_in_one_sentence() {
    let lab = Lab::new();
    let (_, err) = lab.ends(4, ["run", "filecopy", "--fs", "zfs"]);
    assert!(err.contains("xfs, btrfs or tmpfs"), "{err}");
    let text = "name = \"x\"\n[[variant]]\nname = \"base\"\n[[scenario]]\nname = \"filecopy\"\nfs = \"zfs\"\n";
    fs::write(lab.folder().join("x.toml"), text).unwrap();
    let (_, err) = lab.ends(4, ["run", "x.toml"]);
    one_sentence(&err, &["fs", "btrfs"]);
}
