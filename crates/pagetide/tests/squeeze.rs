//! Tests of `pagetide squeeze`: cases with a known answer, and cases without an answer.

use std::fmt::Write as _;
use std::fs;

use crate::common::{KERNEL, Lab, one_sentence};
use serde_json::Value;

const MIB: f64 = 1048576.0;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Arguments of `squeeze` with these options and this command.
fn squeeze<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["squeeze", "--kernel", KERNEL];
    all.extend(options);
    if !command.is_empty() {
        all.push("--");
        all.extend(command);
    }
    all
}

fn size(end: &Value) -> f64 {
    end["size"].as_f64().unwrap_or_else(|| panic!("{end}"))
}

const SMALL: [&str; 4] = ["--memory", "24M", "--swap", "none"];

#[test]
fn a_program_is_found_to_need_its_buffer_and_dies_below_and_the_answer_is_kept() {
    let Some(lab) = Lab::that_runs() else { return };
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=12M", "count=3"];
    let mut options = SMALL.to_vec();
    options.push("--json");
    let (out, _) = lab.ends(0, squeeze(&options, &dd));
    let found = json(&out);
    let answer = &found["answer"];
    assert_eq!(answer["kind"], "between", "{answer}");
    let (small, enough) = (&answer["too_small"], &answer["enough"]);
    assert!(size(small) < size(enough));
    // The size is the buffer, plus 2 MiB of the program and its libraries, most of which the program reads.
    assert!((12.5 * MIB..15.0 * MIB).contains(&size(enough)), "{answer}");
    assert!(size(enough) / size(small) < 1.1, "{answer}");
    assert_eq!(enough["is_sure"], true, "{answer}");
    assert!(found["runs"].as_u64().unwrap() <= 15, "{found}");
    // The first row is the smallest size. The last row is plenty of memory, with every seed and a slowdown of zero.
    let curve = found["curve"].as_array().unwrap();
    assert_eq!(curve[0]["died"], "was killed at its limit", "{curve:?}");
    let plenty = curve.last().unwrap();
    assert_eq!(
        (size(plenty), plenty["seeds"].as_u64()),
        (24.0 * MIB, Some(3))
    );
    assert_eq!(plenty["slowdown"], 0.0);
    let waited = plenty["psi_some"].as_f64().unwrap();
    assert!((0.0..0.001).contains(&waited), "{plenty}");
    // The reported pressure lies between those of two sizes.
    let meant = &found["pressure"]["some"];
    let most = |name: &str| {
        let of_size = curve.iter().filter_map(|size| size[name].as_f64());
        of_size.fold(0.0, f64::max)
    };
    let level = meant["pressure"].as_f64().unwrap();
    let slower = meant["slowdown"].as_f64().unwrap();
    assert!(waited < level && level < most("psi_some"), "{meant}");
    assert!(0.0 < slower && slower < most("slowdown"), "{meant}");
    // The answer to the same command comes from the records and has exactly the same output.
    let before = lab.ends(0, ["list", "records", "--json"]).0;
    assert_eq!(lab.ends(0, squeeze(&options, &dd)).0, out);
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, before);
    let (text, _) = lab.ends(0, squeeze(&SMALL, &dd));
    let sentence = text.lines().next().unwrap();
    for words in [
        "of limit is enough",
        "at most 5 % slower than with 24.00 MiB",
        "is too little",
    ] {
        assert!(sentence.contains(words), "{words}: {sentence}");
    }
}

#[test]
#[ignore = "test-all"]
fn the_answer_says_if_memory_never_matters_or_if_even_plenty_fails() {
    let Some(lab) = Lab::that_runs() else { return };
    let mut options = SMALL.to_vec();
    options.extend(["--least", "8M", "--seeds", "1"]);
    let (text, _) = lab.ends(0, squeeze(&options, &["sh", "-c", "echo small"]));
    assert!(text.contains("the smallest size that was tried"), "{text}");
    assert!(text.contains("--least"), "{text}");
    let (text, _) = lab.ends(3, squeeze(&options, &["sh", "-c", "exit 3"]));
    assert!(text.starts_with("Even with 24.00 MiB"), "{text}");
    assert!(text.contains("status 3"), "{text}");
}

/// Text with different lines of twelve digits, in the order of a multiplicative generator.
fn numbers() -> String {
    let prime = 150_001_u64;
    (1..prime).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{:012}", number * 7919 % prime);
        text
    })
}

#[test]
#[ignore = "test-all"]
fn the_same_variant_twice_means_the_same_by_pressure_and_the_page_shows_both_curves() {
    let Some(lab) = Lab::that_runs() else { return };
    fs::write(lab.folder().join("numbers"), numbers()).unwrap();
    let mut options = vec!["--memory", "32M", "--least", "6M", "--within", "10%"];
    options.extend(["--seeds", "2", "--name", "twice", "--vs", "name=again"]);
    options.extend(["--file", "numbers"]);
    // By default, sort uses a buffer that fits into the memory that it sees.
    let sort = ["sort", "-S", "40M", "numbers"];
    let (text, _) = lab.ends(0, squeeze(&options, &sort));
    options.push("--json");
    let found = json(&lab.ends(0, squeeze(&options, &sort)).0);
    let searches = found["searches"].as_array().unwrap();
    assert_eq!(searches.len(), 2);
    assert_eq!(searches[0]["variant"], "base");
    assert_eq!(searches[1]["variant"], "again");
    let curve = |place: usize| &searches[place]["squeeze"]["curve"];
    assert_eq!(curve(0), curve(1), "the same runs");
    for one in searches {
        assert!(one["squeeze"]["runs"].as_u64().unwrap() <= 15, "{one}");
    }
    // There are two kinds of pressure. Both are compared, and neither differs.
    let differences = found["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 2, "{differences:?}");
    for difference in differences {
        let found = &difference["found"];
        assert_ne!(found["finding"], "differ", "{difference}");
        let ratio = found["ratio"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 1e-9, "{difference}");
        let end = |place: usize| found["interval"][place].as_f64().unwrap();
        assert!(end(0) <= 1.0 && 1.0 <= end(1), "{difference}");
    }
    assert!(!found["meanings"].as_array().unwrap().is_empty(), "{found}");
    let first = text.lines().next().unwrap();
    assert!(first.contains("PSI memory some"), "{first}");
    assert!(!first.contains("does not mean the same"), "{first}");
    for words in ["slower at PSI memory some of", "\nbase ", "\nagain "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The pages of both campaigns show both searches.
    for name in ["twice", "twice-2-again"] {
        let page = lab.ends(0, ["report", name, "-o", "-"]).0;
        assert!(page.contains(first.trim()), "{name}");
        for words in ["id=\"squeeze\"", "by PSI memory some", "by memory", "again"] {
            assert!(page.contains(words), "{name}: {words}");
        }
        assert!(page.matches("<polyline").count() >= 6, "{name}");
    }
}

/// A Perl program that reads random blocks of the file `data`, blocks at its beginning more often. Pages are read again
/// without being mapped.
const READS: &str = "srand($ARGV[0]); open(F, '<', 'data') or die; for (1..3000) { sysseek(F, 4096 * int(2048 * rand()**3), 0); \
                     sysread(F, $b, 4096) == 4096 or die; for $i (1..60) { $s += $i } }";

#[test]
#[ignore = "test-all"]
fn pressure_means_something_else_on_a_kernel_that_counts_less_of_the_waiting() {
    let Some(lab) = Lab::that_runs() else { return };
    let data: Vec<u8> = (0..8 << 20)
        .map(|place: u32| place.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    fs::write(lab.folder().join("data"), data).unwrap();
    // For pages that are read but not mapped, the multi-generational LRU counts a refault as a stall only if the page
    // was read often. The older lists count it whenever the page was active before.
    let options = |first: &'static str, second: &'static str| {
        let mut all = vec!["--memory", "32M", "--least", "8M", "--within", "25%"];
        all.extend(["--seeds", "4", "--swap", "none", "--name", "psi"]);
        all.extend(["--file", "data", "--set", first, "--vs", second]);
        all
    };
    let reads = ["perl", "-e", READS, "{seed}"];
    let (new, old) = ("lru_gen/enabled=7", "lru_gen/enabled=0");
    let (text, _) = lab.ends(0, squeeze(&options(new, old), &reads));
    let mut lines = text.lines();
    for kind in ["some", "full"] {
        let line = lines.next().unwrap();
        let words = format!("PSI memory {kind} does not mean the same");
        assert!(line.starts_with(&words), "{words}: {line}");
    }
    let ratios = |first, second| -> Vec<f64> {
        let mut all = options(first, second);
        all.push("--json");
        let found = json(&lab.ends(0, squeeze(&all, &reads)).0);
        let ratio = |difference: &Value| {
            let found = &difference["found"];
            assert_eq!(found["finding"], "differ", "{difference}");
            found["ratio"].as_f64().unwrap()
        };
        let all = found["differences"].as_array().unwrap();
        all.iter().map(ratio).collect()
    };
    let there = ratios(new, old);
    assert!(there.iter().all(|ratio| *ratio < 0.6), "{there:?}");
    // With the sides swapped, the finding is the same, from the same records.
    let back = ratios(old, new);
    for (there, back) in there.iter().zip(&back) {
        assert!((there * back - 1.0).abs() < 1e-9, "{there} {back}");
    }
    let page = lab.ends(0, ["report", "psi", "-o", "-"]).0;
    assert!(page.contains("does not mean the same"));
}

/// The number that follows a word in one zone's part of `/proc/zoneinfo`.
fn of_zone(text: &str, zone: &str, word: &str) -> f64 {
    let (_, part) = text.split_once(&format!("zone {zone:>8}\n")).unwrap();
    let mut words = part.split_whitespace();
    assert!(words.any(|found| found == word), "no {word} in {part}");
    words.next().unwrap().parse().unwrap()
}

/// The number at the beginning of a text.
fn first_number(text: &str) -> f64 {
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "test-all"]
fn the_store_of_kv_is_found_to_need_its_size_and_what_the_kernel_keeps_free() {
    let Some(lab) = Lab::that_runs() else { return };
    // All pages are equally likely, so the working set is the whole store.
    let mut options = vec![
        "kv",
        "-p",
        "size=16M",
        "-p",
        "exponent=0",
        "-p",
        "snapshot=false",
    ];
    options.extend([
        "--memory", "22M", "--least", "18M", "--swap", "ssd", "--seeds", "1",
    ]);
    options.push("--json");
    let found = json(&lab.ends(0, squeeze(&options, &[])).0);
    let answer = &found["answer"];
    assert_eq!(answer["kind"], "between", "{answer}");
    let (small, enough) = (size(&answer["too_small"]), size(&answer["enough"]));

    // The need according to the kernel's figures is the sum of these parts: the store and its page tables, the harness,
    // the free memory at which background reclaim begins, and the part of the first zone that is reserved.
    let list = json(&lab.ends(0, ["list", "records", "--json"]).0);
    let ids: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["id"].as_str())
        .collect();
    let records: Vec<Value> = ids
        .iter()
        .map(|id| json(&lab.ends(0, ["show", id, "--json"]).0))
        .collect();
    let is_it = |record: &&Value| {
        let memory = record["subject"]["memory"].as_str().unwrap();
        let bytes = match memory.split_at(memory.len() - 1) {
            (digits, "K") => digits.parse::<f64>().unwrap() * 1024.0,
            (digits, _) => digits.parse::<f64>().unwrap() * MIB,
        };
        (bytes - enough).abs() < 1.0 && record["subject"]["pass"] == "timed"
    };
    let record = records.iter().find(is_it).unwrap();
    let zones = record["results"]["texts"]["zoneinfo-before"]
        .as_str()
        .unwrap();
    let free = of_zone(zones, "DMA", "free") + of_zone(zones, "DMA32", "free");
    let protected = zones.split_once("protection: (0, ").unwrap().1;
    let protected: f64 = protected.split(',').next().unwrap().parse().unwrap();
    let kept = of_zone(zones, "DMA", "low") + of_zone(zones, "DMA32", "low") + protected;
    let metrics = record["results"]["metrics"].as_array().unwrap();
    let harness = metrics.iter().find(|m| m["name"] == "harness").unwrap();
    let harness = harness["value"]["number"].as_f64().unwrap();
    let store = 16.0 * MIB * (1.0 + 1.0 / 512.0);
    let spare = |free: f64| (free - kept) * 4096.0 - store - harness;
    // Pages on the lists of a CPU may become free or stay on the lists. Their number differs between guests and sizes.
    let on_lists: f64 = zones.split("count:").skip(1).map(first_number).sum();
    let (least, most) = (spare(free), spare(free + on_lists));
    assert!(
        least < 0.02 * enough && most > -0.02 * enough,
        "{small} {enough} {least} {most}"
    );
    assert!(enough / small < 1.03, "{small} {enough}");
}

#[test]
fn what_is_no_single_question_is_refused_before_anything_runs() {
    let lab = Lab::new();
    let refused = |options: &[&str], command: &[&str], words: &[&str]| {
        let (_, err) = lab.ends(4, squeeze(options, command));
        one_sentence(&err, words);
    };
    refused(
        &["--vary", "n=1,2", "--vs", "vm.swappiness=1"],
        &["echo", "{n}"],
        &["{n}", "2 variants", "--vs"],
    );
    refused(
        &["kv", "-p", "size=8M", "-p", "size=9M"],
        &[],
        &["one workload", "here are 2"],
    );
    refused(&["kv", "--by", "limit"], &[], &["kv", "--by memory"]);
    refused(&["--limit", "8M"], &["true"], &["--limit", "--memory"]);
    refused(
        &["--vary", "heap=1M,2M"],
        &["true"],
        &["{heap}", "--vary", "--set"],
    );
    refused(&["--seeds", "9"], &["true"], &["--seeds 1 to 4"]);
    refused(&["kv", "--least", "64M"], &[], &["--least", "--memory"]);
    refused(&["kv", "--until-sure"], &[], &["--until-sure"]);
    let (_, err) = lab.ends(4, squeeze(&["--within", "lots", "kv"], &[]));
    assert!(err.contains("5%"), "{err}");
}
