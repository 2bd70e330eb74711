//! Tests of `pagetide hunt` with real kernels.

use std::fs;

use crate::common::{KERNEL, Lab, SCAN};
use serde_json::Value;

fn hunt<'a>(space: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["hunt", "--kernel", KERNEL, "--vs", "vm.page-cluster=0"];
    all.extend(["--space", space, "--output", "cases", "--budget", "2"]);
    all.extend(["--cases", "1", "--json"]);
    all.extend(more);
    all
}

#[test]
fn a_short_hunt_ends_with_files_that_stand_alone_and_the_same_again_from_the_records() {
    let Some(lab) = Lab::that_runs() else { return };
    let space = lab.folder().join("space.toml");
    fs::write(&space, SCAN).unwrap();
    let space = space.to_str().unwrap();
    let (out, _) = lab.ends(1, hunt(space, &[]));
    let hunted: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(hunted["goal"], "regressed");
    let find = &hunted["account"]["found"][0];
    assert!(find["value"].as_f64().unwrap() >= 1.3, "{find}");
    assert!(find["seeds"]["holds"].as_u64().unwrap() >= 6, "{find}");
    assert_eq!(find["seeds"]["tried"], 8, "{find}");
    assert_eq!(find["is_smallest"], false, "the budget ends before");
    let folder = lab.folder().join("cases/regressed-1");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let mail = read("mail.txt");
    assert!(mail.contains("is worse than"), "{mail}");
    assert!(mail.contains("pswpin"), "{mail}");
    assert!(read("case.c").contains("int main("));
    let page = read("page.html");
    for said in [
        "page-cluster=0 is worse than",
        "holds with 8 of 8",
        "name = &quot;regressed-1&quot;",
        "anonymous, active",
        "swap used",
        ">pswpin<",
        "id=\"makeup\"",
        "In the observed trials the goal holds too: ",
    ] {
        assert!(page.contains(said), "{said} is not on the page");
    }
    assert!(!page.contains("Not observed:") && !page.contains("Reclaim looked at no page"));
    // The same command runs no trial and gives the same result, whatever load the machine has.
    let before = lab.ends(0, ["list", "records", "--json"]).0;
    assert_eq!(lab.ends(1, hunt(space, &["--jobs", "1"])).0, out);
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, before);
    // The case runs as a campaign of its own. Its name differs from the hunt's, so its trials have to be run.
    let case = folder.join("case.toml");
    let plan = lab.ends(0, ["plan", case.to_str().unwrap()]).0;
    assert!(plan.contains("regressed-1"), "{plan}");
}

#[test]
#[ignore = "test-all"]
fn a_profiled_hunt_tries_the_same_first_candidates_and_says_which_functions_ran() {
    let Some(lab) = Lab::that_runs() else { return };
    let space = lab.folder().join("space.toml");
    fs::write(&space, SCAN).unwrap();
    let space = space.to_str().unwrap();
    let value = |more: &[&str]| -> Value {
        let (out, _) = lab.ends(1, hunt(space, more));
        serde_json::from_str(&out).unwrap()
    };
    let [timed, profiled] = [&[][..], &["--profile"]].map(value);
    // What a goal is computed from does not depend on the pass.
    assert_eq!(timed["account"]["found"], profiled["account"]["found"]);
    assert!(timed["reached"].is_null());
    let reached = &profiled["reached"];
    assert!(
        reached["functions"]["shrink_folio_list"].as_u64() > Some(0),
        "{reached}"
    );
    assert_eq!(reached["unknown"], Value::Null);
}
