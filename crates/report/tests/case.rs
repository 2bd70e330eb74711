//! Tests of the first section of the page about a finding.

use pagetide_report::About;
use pagetide_store::CaseNote;

use crate::data;

fn page(case: CaseNote) -> String {
    let about = About {
        case: Some(case),
        ..data::about()
    };
    data::page_about(&data::mglru(), &about)
}

fn case() -> CaseNote {
    CaseNote {
        title: "6.12 kills although memory could be reclaimed".to_owned(),
        shown: "killed after 316 ms with 3.84 MiB of file pages reclaimable".to_owned(),
        goal: "Goal `killed`: memory to spare; at least 1.".to_owned(),
        workload: "2 × (10M file: fill)".to_owned(),
        is_smallest: true,
        toml: "name = \"killed-1\"\n".to_owned(),
        generality: vec![(
            "80 % of the memory".to_owned(),
            "holds with 3 of 4".to_owned(),
        )],
        death: Some("writer after 316 ms: 3.84 MiB of file pages".to_owned()),
        variants: vec!["6.1".to_owned(), "6.12".to_owned()],
        counters: vec![
            ("pgactivate".to_owned(), vec![1000, 1001]),
            ("pgscan_file".to_owned(), vec![20, 231_546]),
        ],
        observed: Some("In the observed trials the goal holds too: as before.".to_owned()),
        unobserved: Vec::new(),
    }
}

#[test]
fn the_page_of_a_finding_begins_with_what_happened_how_general_it_is_and_the_counters() {
    let page = page(case());
    for said in [
        "<p class=\"sentence\">6.12 kills although memory could be reclaimed: killed after 316 ms",
        "<p>Goal <code>killed</code>: memory to spare; at least 1.</p>",
        "Nothing can be left out of the workload: 2 × (10M file: fill).",
        "<pre>name = &quot;killed-1&quot;",
        "<th scope=\"row\">80 % of the memory</th><td>holds with 3 of 4</td>",
        "when it killed: writer after 316 ms: 3.84 MiB of file pages.</p>",
        "id=\"makeup\"",
        "<p>In the observed trials the goal holds too: as before.</p>",
        "<p>No trial was observed.</p>",
        "<td class=\"number\">20</td><td class=\"number\">231,546</td>",
    ] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    let place = |text: &str| page.find(text).unwrap();
    assert!(place("What happened") < place("id=\"verdict-title\""));
    assert!(
        place(">pgscan_file<") < place(">pgactivate<"),
        "the larger difference first"
    );
    assert!(!page.contains("Reclaim looked at no page"));
    // Another page has neither the section nor a link to it.
    let other = data::page(&data::mglru());
    assert!(!other.contains("id=\"case\"") && !other.contains("#makeup"));
}

#[test]
fn a_finding_without_reclaim_counters_or_observed_trials_says_so() {
    let bare = CaseNote {
        is_smallest: false,
        counters: Vec::new(),
        unobserved: vec!["6.12: this kernel cannot trace".to_owned()],
        ..case()
    };
    let page = page(bare);
    assert!(page.contains("first fresh seed. Reclaim looked at no page."));
    assert!(page.contains("The workload, which may not be the smallest"));
    assert!(page.contains("<p>Not observed: 6.12: this kernel cannot trace</p>"));
    assert!(!page.contains("No trial was observed"));
    assert!(
        !page.contains("aria-label=\"Counters\""),
        "no table without rows"
    );
}

#[test]
fn hostile_names_in_a_finding_stay_text() {
    let text = data::hostile();
    let poisoned = CaseNote {
        title: text.clone(),
        shown: text.clone(),
        goal: text.clone(),
        workload: text.clone(),
        is_smallest: true,
        toml: text.clone(),
        generality: vec![(text.clone(), text.clone())],
        death: Some(text.clone()),
        variants: vec![text.clone()],
        counters: vec![(text.clone(), vec![1])],
        observed: Some(text.clone()),
        unobserved: vec![text],
    };
    let page = page(poisoned);
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains('\u{202e}') && !page.contains('\x1b'));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}
