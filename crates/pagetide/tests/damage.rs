//! Tests with bit rot in the cache: damage is detected before use, the damaged files are deleted and made again, and no
//! record is affected.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::rot::{Random, files_of, flip, kernel_files};
use crate::common::{Lab, TINY, one_sentence, text};
use pagetide_testing::{Need, skip};
use serde_json::Value;

/// Runs one tiny trial in a separate store; returns the digest of its record and the messages.
fn digest(lab: &Lab, kernel: &str) -> (String, String) {
    let store = tempfile::tempdir().unwrap();
    let store = store.path().to_str().unwrap();
    let places = ["--store", store];
    let run = [
        &["run", "random", "--kernel", kernel, "--seeds", "1"],
        &TINY[..],
        &places,
    ]
    .concat();
    let (_, said) = lab.ends(0, run);
    let list = [&["list", "records", "--json"], &places[..]].concat();
    let records: Value = serde_json::from_str(&lab.ends(0, list).0).unwrap();
    assert!(records[0]["invalid"].is_null(), "{records}");
    (records[0]["digest"].as_str().unwrap().to_owned(), said)
}

/// Path of the folder of the only snapshot.
fn snapshot(lab: &Lab) -> PathBuf {
    let mut folders = fs::read_dir(lab.cache().join("snapshots"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("whole").exists());
    let only = folders.next().unwrap();
    assert_eq!(folders.next(), None);
    only
}

/// Asserts that the guest's time continues without a gap. An instruction takes 8 ns while the guest boots, and 1 ns in
/// a trial. So the saved clock must be ahead by the difference. Otherwise, time would stand still in the guest until
/// the trial has caught up.
fn goes_on_at_the_moment_it_stopped(state: &Path) {
    let state = fs::read(state).unwrap();
    let name = b"timer/icount\0\0\0\x01";
    let at = state.windows(name.len()).position(|part| part == name);
    let numbers = &state[at.unwrap() + name.len()..];
    let number = |at: usize| i64::from_be_bytes(numbers[at..at + 8].try_into().unwrap());
    let (bias, instructions) = (number(0), number(8));
    assert!(instructions > 100_000_000, "{instructions}");
    assert_eq!(bias, 7 * instructions);
}

/// The lines of the program's messages that mention damage.
fn damage(said: &str) -> Vec<&str> {
    said.lines()
        .filter(|line| line.contains("damaged"))
        .collect()
}

/// The first module below a folder whose name has this prefix.
fn module(folder: &Path, start: &str) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name().to_string_lossy().starts_with(start) {
                return path;
            }
        }
    }
    panic!("there is no module {start}");
}

#[test]
#[ignore = "test-all"]
fn damage_to_any_file_of_the_cache_is_found_said_and_mended_and_results_stay_the_same() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    let lab = Lab::with_own_cache();
    // Added from files, so that the kernel can be added again without a network.
    let kernel = kernel_files(&shared);
    let (good, said) = digest(&lab, &kernel);
    assert_eq!(damage(&said), Vec::<&str>::new());
    goes_on_at_the_moment_it_stopped(&snapshot(&lab).join("state"));
    let mut random = Random::new(13);

    // Memory is most of a snapshot, and a flipped bit in it would change results without an error.
    flip(&snapshot(&lab).join("ram"), 200, &mut random);
    let (found, said) = digest(&lab, &kernel);
    assert_eq!(found, good, "{said}");
    let lines = damage(&said);
    assert!(
        lines.len() == 1 && lines[0].contains("snapshot") && lines[0].contains("ram"),
        "{said}"
    );

    // The copy is truncated, as if the disk had become full.
    let state = snapshot(&lab).join("state");
    let half = fs::metadata(&state).unwrap().len() / 2;
    File::options()
        .write(true)
        .open(&state)
        .unwrap()
        .set_len(half)
        .unwrap();
    let (found, said) = digest(&lab, &kernel);
    assert_eq!(found, good, "{said}");
    let lines = damage(&said);
    assert!(lines.len() == 1 && lines[0].contains("state has"), "{said}");

    // These files are used to boot a guest. The snapshot is intact, so no guest boots now, but the next boot would use
    // the damaged files.
    let folders: Vec<_> = fs::read_dir(lab.cache().join("kernels"))
        .unwrap()
        .flatten()
        .collect();
    let folder = folders[0].path();
    for path in [
        folder.join("image"),
        module(&folder.join("modules"), "zram.ko"),
    ] {
        let before = fs::read(&path).unwrap();
        flip(&path, 1, &mut random);
        let (found, said) = digest(&lab, &kernel);
        assert_eq!(found, good, "{said}");
        let lines = damage(&said);
        assert!(lines.len() == 1 && lines[0].contains("kernel 6."), "{said}");
        assert_eq!(fs::read(&path).unwrap(), before, "{}", path.display());
    }

    // All files are intact again.
    let (found, said) = digest(&lab, &kernel);
    assert_eq!((found, damage(&said)), (good, Vec::new()));
}

/// Occupies processors for random times until it is dropped, so that the emulator's threads run in different orders.
struct Load(Arc<AtomicBool>);

impl Load {
    fn of(threads: u64) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        for thread in 0..threads {
            let ends = ends.clone();
            std::thread::spawn(move || {
                let mut random = Random::new(thread);
                while !ends.load(Ordering::Relaxed) {
                    let busy = Duration::from_micros(random.below(4_000));
                    let began = Instant::now();
                    while began.elapsed() < busy {
                        std::hint::spin_loop();
                    }
                    std::thread::sleep(Duration::from_micros(random.below(8_000)));
                }
            });
        }
        Self(ends)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "test-all"]
fn a_guest_booted_anew_gives_the_same_trials_on_each_kernel_whatever_the_load() {
    for name in ["debian:bookworm", "debian:sid"] {
        let Some(shared) = Lab::that_runs_on(name) else {
            return;
        };
        let kernel = files_of(&shared, name);
        let found: Vec<_> = [0, 3]
            .into_iter()
            .map(|threads| {
                let _load = Load::of(threads);
                let (found, said) = digest(&Lab::with_own_cache(), &kernel);
                // Each guest is correct at its first boot. If the order of the emulator's threads were not fixed, most
                // guests would not be.
                assert!(!said.contains("was moved"), "{name}: {said}");
                found
            })
            .collect();
        assert!(
            found.iter().all(|digest| *digest == found[0]),
            "{name}: {found:?}"
        );
    }
}

#[test]
#[ignore = "test-all"]
fn a_disk_that_is_full_while_a_snapshot_is_made_is_named_and_nothing_half_made_stays() {
    let Some(shared) = Lab::that_runs() else {
        return;
    };
    let kernel = kernel_files(&shared);
    let lab = Lab::with_own_cache();
    lab.ends(0, ["kernel", "add", &kernel]);
    // The disk becomes full at different times: while the initial file system is written, while the guest boots, while
    // its memory is written, later, or not at all.
    for (size, must) in [("1m", true), ("20m", true), ("50m", true), ("72m", false)] {
        let script = format!(
            "mkdir -p cache/snapshots && mount -t tmpfs -o size={size} none cache/snapshots && \"$@\"; code=$?; ls -A cache/snapshots; exit $code"
        );
        let run = ["run", "random", "--kernel", &kernel, "--seeds", "1"];
        let output = std::process::Command::new("unshare")
            .args(["-rm", "sh", "-c", &script, "sh"])
            .arg(crate::common::program())
            .args([&run, &TINY[..]].concat())
            .env("PAGETIDE_STORE", lab.store())
            .env("PAGETIDE_CACHE", lab.cache())
            .current_dir(lab.folder())
            .output()
            .unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        if !err.contains("booting") {
            skip(
                Need::Root,
                format!("a mount of one's own is not possible here: {err}"),
            );
            return;
        }
        if !must && output.status.success() {
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{size}: {err}");
        one_sentence(&err, &[]);
        let named = [
            "No space left",
            "no room for a guest's memory",
            "is the disk full",
        ];
        assert!(
            named.iter().any(|words| err.contains(words)),
            "{size}: {err}"
        );
        if !must {
            // A snapshot that is complete is kept.
            continue;
        }
        let left: Vec<&str> = out
            .lines()
            .filter(|name| Path::new(name).extension().is_none_or(|end| end != "lock"))
            .collect();
        assert_eq!(left, Vec::<&str>::new(), "{size}");
    }
}

#[test]
fn flips_only_change_data_of_a_sparse_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse");
    let file = File::create(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    file.write_all_at(&[7; 8192], 32 << 20).unwrap();
    flip(&path, 20, &mut Random::new(1));
    let mut data = vec![0; 8192];
    File::open(&path)
        .unwrap()
        .read_exact_at(&mut data, 32 << 20)
        .unwrap();
    let flipped: u32 = data.iter().map(|byte| (byte ^ 7).count_ones()).sum();
    assert!((10..=20).contains(&flipped), "{flipped}");
}
