//! Checks measured figures of `make bench` against upper bounds. They are judged only in the optimised build, and are
//! listed in the last lines of the output.

use std::fs::File;
use std::io::Write;

/// Environment variable with the path of a file to which all benchmark programs append their lines.
const LINES: &str = "PAGETIDE_BOUNDS";
/// Environment variable that is `yes` if bounds are judged, as in the optimised build.
const JUDGED: &str = "PAGETIDE_BOUNDS_JUDGED";

/// Compares a figure with its upper bound `most`. Prints one line with the result, and appends it to the file named by
/// `PAGETIDE_BOUNDS`. Returns false if bounds are judged and the figure is above the bound. Bounds are judged only if
/// `PAGETIDE_BOUNDS_JUDGED` is `yes`, because builds without optimisation, or few repetitions, say nothing about speed.
#[must_use]
pub fn bound(what: &str, figure: f64, most: f64, unit: &str) -> bool {
    let is_judged = std::env::var_os(JUDGED).is_some_and(|word| word == "yes");
    let (line, is_kept) = line(what, figure, most, unit, is_judged);
    println!("{line}");
    let lines =
        std::env::var_os(LINES).map(|path| File::options().append(true).create(true).open(path));
    if let Some(Ok(mut lines)) = lines {
        // The line is printed as well, so an error in writing the file is ignored.
        let _ = writeln!(lines, "{line}");
    }
    is_kept
}

/// Returns the line for a figure, and false if bounds are judged and the figure is above the bound.
fn line(what: &str, figure: f64, most: f64, unit: &str, is_judged: bool) -> (String, bool) {
    let is_kept = figure <= most;
    let word = match (is_judged, is_kept) {
        (false, _) => "not judged",
        (true, true) => "held",
        (true, false) => "NOT HELD",
    };
    let unit = if unit.is_empty() {
        String::new()
    } else {
        format!(" {unit}")
    };
    let text = format!("bound {word}: {what}: {figure:.3}{unit}, at most {most}{unit}");
    (text, is_kept || !is_judged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_judged_in_the_optimised_build_only() {
        let said = |figure, is_judged| line("a start", figure, 200.0, "ms", is_judged);
        assert_eq!(
            said(325.0, false),
            (
                "bound not judged: a start: 325.000 ms, at most 200 ms".to_owned(),
                true
            )
        );
        assert_eq!(
            said(325.0, true),
            (
                "bound NOT HELD: a start: 325.000 ms, at most 200 ms".to_owned(),
                false
            )
        );
        assert!(said(200.0, true).0.starts_with("bound held: ") && said(200.0, true).1);
        assert_eq!(
            line("ratio", 1.25, 1.3, "", true).0,
            "bound held: ratio: 1.250, at most 1.3"
        );
    }
}
