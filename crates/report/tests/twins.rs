//! Tests that variants with identical trials get one sentence and one table.

use pagetide_compare::Comparison;
use pagetide_report::terminal::{Options, verdicts};
use pagetide_report::{TextStyle, mail, markdown};

use crate::data;

/// A comparison with a third variant whose trials are identical to the trials of the second variant.
fn with_twin() -> Comparison {
    let mut comparison = data::mglru();
    let mut twin = comparison.columns[1].clone();
    twin.name = "twin-of-it".to_owned();
    comparison.columns.push(twin);
    for cell in &mut comparison.cells {
        cell.sides.push(cell.sides[1].clone());
        for row in &mut cell.metrics {
            row.values.push(row.values[1].clone());
            row.judgements.push(row.judgements[0].clone());
        }
    }
    comparison
}

#[test]
fn variants_that_did_the_same_have_one_sentence_and_one_table_in_every_format() {
    let (two, three) = (data::mglru(), with_twin());
    let about = data::about();
    let forms: [fn(&Comparison, &pagetide_report::About) -> String; 4] = [
        |comparison, about| {
            let options = Options {
                all: true,
                pictures: false,
            };
            verdicts(comparison, about, options, &TextStyle::plain(200))
        },
        |comparison, about| mail::mail(comparison, about, true),
        |comparison, about| markdown::markdown(comparison, about),
        |comparison, _| data::page(comparison),
    ];
    let sentence = "twin-of-it did the same as mglru-on, every metric alike, with each of";
    for form in forms {
        let [text, before] = [&three, &two].map(|comparison| form(comparison, &about));
        let unbroken = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentences = unbroken.matches(sentence).count();
        assert!(sentences >= three.cells.len(), "{text}");
        assert!(
            unbroken.contains("its table is that of mglru-on."),
            "{text}"
        );
        // Each metric has as many lines as without the third variant, which is not a heading of any table.
        for name in ["access-p50", "refaults"] {
            let rows = |text: &str| {
                let is_row = |line: &&str| {
                    let head = line.trim_start_matches([' ', '|', '`']);
                    head.starts_with(name) || line.contains(&format!("<th scope=\"row\">{name}<"))
                };
                text.lines().filter(is_row).count()
            };
            assert!(rows(&before) > 0, "{name}: {before}");
            assert_eq!(rows(&text), rows(&before), "{name}: {text}");
        }
        assert!(!text.contains("\"twin-of-it against"), "{text}");
    }
}
