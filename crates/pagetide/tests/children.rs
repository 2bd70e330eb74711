//! Child processes: programs that are too old, print too much or hang are named in errors, and children end with the
//! tool.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Lab, one_sentence, program, text, told, wait_until};
use pagetide_testing::program::write_program;
use pagetide_testing::{Need, skip};
use rustix::process::{Pid, Signal, kill_process};

/// Time limit only for tests that would never end; it is not a measurement, because the machine may be busy.
const SOON: Duration = Duration::from_mins(10);

/// Writes a script that replaces a program.
fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    write_program(&path, &format!("#!/bin/sh\n{text}\n"));
    path
}

#[test]
fn an_emulator_that_is_too_old_or_cannot_run_is_refused_by_a_run_as_by_doctor() {
    refuses_emulators(&[
        ("echo 'QEMU emulator version 2.0.0 (Debian)'", "QEMU 2.0.0"),
        ("exec cat /dev/zero", "printed more than 64 KiB"),
        ("exec cat /dev/zero >&2", "printed more than 64 KiB"),
        ("echo cannot map >&2; exit 127", "`cannot map`"),
    ]);
}

#[test]
#[ignore = "test-all: waits half a minute for an answer"]
fn an_emulator_that_does_not_answer_is_refused_by_a_run_as_by_doctor() {
    refuses_emulators(&[("exec sleep 1000", "had not ended after 10 s")]);
}

/// Runs with emulators that are shell scripts. Each must be refused with its word.
fn refuses_emulators(scripts: &[(&str, &str)]) {
    let lab = Lab::with_own_cache();
    for (text_of, word) in scripts {
        let fake = script(lab.folder(), "qemu", text_of);
        let with_fake = |words: &[&str]| {
            let output = lab.pagetide(words).env("PAGETIDE_QEMU", &fake).output();
            told(&output.unwrap(), 2)
        };
        let (_, err) = with_fake(&["run", "linear"]);
        one_sentence(&err, &[word, "/qemu"]);
        let (out, _) = with_fake(&["doctor", "--json"]);
        let pieces: Vec<serde_json::Value> = serde_json::from_str(&out).unwrap();
        let emulator = pieces.iter().find(|piece| piece["name"] == "emulator");
        let emulator = emulator.unwrap();
        assert_eq!(emulator["state"], "missing", "{text_of}");
        assert!(
            emulator["found"].as_str().unwrap().contains(word),
            "{emulator}"
        );
    }
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, "[]\n");
}

/// Path `/proc/PID/cwd` of each process whose working folder is this folder or below it.
fn at_work_in(folder: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let links = processes.map(|entry| entry.path().join("cwd"));
    links
        .filter(|link| fs::read_link(link).is_ok_and(|cwd| cwd.starts_with(folder)))
        .collect()
}

#[test]
fn adding_a_kernel_ends_apt_with_it_and_leaves_nothing_half_fetched() {
    if !Path::new("/usr/share/keyrings/debian-archive-keyring.gpg").exists() {
        return skip(Need::Kernels, "Debian's archive keys are not installed");
    }
    for (signal, fetch) in [
        // A separate download process, as apt has.
        (Signal::TERM, "sleep 1000 & wait"),
        (Signal::INT, "sleep 1000 & wait"),
        (Signal::KILL, "exec sleep 1000"),
    ] {
        let lab = Lab::with_own_cache();
        let bin = lab.folder().join("bin");
        let half = format!(
            "case \"$*\" in *download*) head -c 1000000 /dev/zero > half.deb; touch {}/fetches; {fetch};; esac",
            bin.display()
        );
        script(&bin, "apt-get", &half);
        script(&bin, "apt-config", "");
        let package = "printf 'Package: linux-image-x\\nVersion: 1\\nArchitecture: amd64\\n'";
        script(&bin, "apt-cache", package);
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(program());
        command
            .args(["kernel", "add", "deb:linux-image-x/sid", "--cache"])
            .arg(lab.cache())
            .env("PATH", path)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // In a separate process group, as started by a shell.
        let mut child = command.process_group(0).spawn().unwrap();
        wait_until("a fetch", SOON, || bin.join("fetches").exists());
        let tmp = lab.cache().join("tmp");
        assert!(!at_work_in(&tmp).is_empty());
        let is_ignored = signal == Signal::INT && is_ignored(Signal::INT);
        let signal = if is_ignored { Signal::TERM } else { signal };
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        let code = 128 + signal.as_raw();
        assert!(
            status.code() == Some(code) || status.signal() == Some(signal.as_raw()),
            "{status}"
        );
        wait_until("the end of apt", SOON, || at_work_in(&tmp).is_empty());
        if signal == Signal::KILL {
            lab.ends(0, ["kernel", "list"]);
        }
        let left: Vec<_> = fs::read_dir(&tmp).unwrap().flatten().collect();
        assert!(left.is_empty(), "{signal:?}: {left:?}");
    }
}

/// True if a signal is ignored by this process, and therefore by its children. Source: proc_pid_status(5), `SigIgn`.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn what_a_build_needs_is_named_all_at_once_before_anything_is_fetched() {
    let lab = Lab::with_own_cache();
    let bin = lab.folder().join("bin");
    fs::create_dir(&bin).unwrap();
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("qemu-system-x86_64"))
        .find(|path| path.is_file());
    let Some(emulator) = found else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    symlink(&emulator, bin.join("qemu-system-x86_64")).unwrap();
    fs::write(
        lab.folder().join("my.patch"),
        "--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -1 +1 @@\n-x\n+y\n",
    )
    .unwrap();
    let words = ["hot-cold", "--patch", "my.patch"];
    let without_tools = |command: &str| {
        let words = [command].into_iter().chain(words);
        lab.pagetide(words).env("PATH", &bin).output().unwrap()
    };
    let all = [
        "gcc, ld, make, flex, bison, bc, gzip, libelf.h",
        "apt-get install gcc binutils make flex bison bc gzip libelf-dev",
    ];
    // A fetch would fail with an error about apt, which is missing here.
    let (_, err) = told(&without_tools("run"), 2);
    one_sentence(&err, &all);
    assert!(!lab.cache().join("sources").exists());
    // Without the emulator and mke2fs, the error names these and the tools of a kernel build together.
    fs::remove_file(bin.join("qemu-system-x86_64")).unwrap();
    let output = lab
        .pagetide(["run", "filecopy", "--patch", "my.patch"])
        .env("PATH", &bin)
        .env_remove("PAGETIDE_QEMU")
        .output()
        .unwrap();
    let (_, err) = told(&output, 2);
    let both = [
        "qemu-system-x86_64, mke2fs, gcc, ld, make, flex, bison, bc, gzip, libelf.h",
        "apt-get install qemu-system-x86 e2fsprogs gcc binutils make flex bison bc gzip libelf-dev",
    ];
    one_sentence(&err, &both);
    assert!(!lab.cache().join("sources").exists());
    symlink(&emulator, bin.join("qemu-system-x86_64")).unwrap();
    // The plan may succeed or fail, depending on the kernels in the cache. The message must name the tools in both
    // cases.
    let err = text(&without_tools("plan").stderr);
    assert!(all.iter().all(|words| err.contains(words)), "{err}");
}

#[test]
fn a_limit_on_the_size_of_files_is_told_in_a_sentence() {
    let lab = Lab::with_own_cache();
    lab.import_of_two_variants();
    let limited = "ulimit -f 0; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", limited, "sh"])
        .arg(program())
        .args(["report", "--output", "page.html"])
        .env("PAGETIDE_STORE", lab.store())
        .env("PAGETIDE_CACHE", lab.cache())
        .current_dir(lab.folder())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", output.status);
    one_sentence(&text(&output.stderr), &["File too large"]);
}
