//! The atlas as a picture. Each variant has a bar for each workload, divided into unavoidable and avoidable faults.

use super::escape::text;
use crate::draw::quantity::grouped;
use crate::terminal::atlas::WorkloadResult;

/// Width of the picture in pixels.
const WIDTH: f64 = 860.0;
/// Width of the names at the left of the picture in pixels.
const NAMES: f64 = 220.0;
/// Maximum length of a bar in pixels.
const BARS: f64 = 500.0;
/// Height of a line in pixels.
const LINE: f64 = 22.0;
/// Height of a bar in pixels.
const BAR: f64 = 12.0;
/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 34;

/// Draws all results as a standalone SVG that follows the reader's choice of light or dark mode. `None` if there are no
/// results, because an empty picture would not explain itself.
pub fn atlas(places: &[WorkloadResult]) -> Option<String> {
    if places.is_empty() {
        return None;
    }
    let mut body = String::new();
    let mut y = 48.0;
    let mut before = "";
    for place in places {
        if place.workload != before {
            before = &place.workload;
            y += LINE;
            put!(
                body,
                "<text class=\"workload\" x=\"0\" y=\"{y:.0}\">{}</text>\n",
                text(before, 100)
            );
            y += LINE;
        }
        bar(&mut body, place, most(places, place), y);
        y += LINE;
    }
    let height = y + 4.0;
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" \
         role=\"img\" aria-label=\"Faults of each kernel on each workload, and how many of them were unavoidable\">\n\
         <style>text{{font:13px system-ui,sans-serif;fill:#1b1f24}}.workload,.title{{font-weight:600}}\
         .best{{fill:#0f62a8}}.lost{{fill:#d98a4e}}.lru{{stroke:#1b1f24;stroke-width:2}}\
         @media(prefers-color-scheme:dark){{text{{fill:#e8ebee}}.best{{fill:#6cb0f5}}.lru{{stroke:#e8ebee}}}}</style>\n\
         <text class=\"title\" x=\"0\" y=\"16\">How far from the best possible</text>\n\
         <rect class=\"best\" x=\"0\" y=\"28\" width=\"12\" height=\"12\"/><text x=\"18\" y=\"39\">unavoidable (OPT)</text>\
         <rect class=\"lost\" x=\"150\" y=\"28\" width=\"12\" height=\"12\"/><text x=\"168\" y=\"39\">lost</text>\
         <path class=\"lru\" d=\"M212 27V41\"/><text x=\"220\" y=\"39\">LRU; at the right: headroom, faults for each of OPT's</text>\n\
         {body}</svg>\n"
    ))
}

/// Returns the largest number of faults per trial on the workload of `place`, over all variants and LRU; at least 1.
fn most(places: &[WorkloadResult], place: &WorkloadResult) -> f64 {
    places
        .iter()
        .filter(|other| other.workload == place.workload)
        .map(|other| other.faults.max(other.lru) / other.trials.max(1) as f64)
        .fold(1.0, f64::max)
}

/// Draws the line of one variant. `most` is the number of faults per trial that takes the full width; `y` is the
/// baseline of the text.
fn bar(body: &mut String, place: &WorkloadResult, most: f64, y: f64) {
    let trials = place.trials.max(1) as f64;
    let length = |faults: f64| faults / trials / most * BARS;
    let top = y - BAR + 1.0;
    let (best, faults) = (length(place.opt), length(place.faults));
    let mean = |faults: f64| grouped(faults / trials, 0);
    let headroom = place
        .headroom()
        .map_or_else(|| "–".to_owned(), |times| grouped(times, 2));
    put!(
        body,
        "<g><title>{}: {} faults, OPT {}, LRU {}, mean of {} trials on {}</title><text x=\"12\" y=\"{y:.0}\">{}</text>",
        text(&place.variant, 100),
        mean(place.faults),
        mean(place.opt),
        mean(place.lru),
        place.trials,
        text(&place.kernel, 60),
        text(&place.variant, NAME_CHARS)
    );
    put!(
        body,
        "<rect class=\"best\" x=\"{NAMES}\" y=\"{top:.0}\" width=\"{:.1}\" height=\"{BAR}\"/>",
        best.min(faults)
    );
    put!(
        body,
        "<rect class=\"lost\" x=\"{:.1}\" y=\"{top:.0}\" width=\"{:.1}\" height=\"{BAR}\"/>",
        NAMES + best.min(faults),
        (faults - best).max(0.0)
    );
    let lru = NAMES + length(place.lru);
    put!(
        body,
        "<path class=\"lru\" d=\"M{lru:.1} {:.0}v{:.0}\"/><text x=\"{:.0}\" y=\"{y:.0}\">{headroom}</text></g>\n",
        top - 2.0,
        BAR + 4.0,
        NAMES + BARS + 16.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_faults_and_names_cannot_break_the_picture() {
        let mut far = WorkloadResult::new("loop · 16M".into(), "a<b>&\"".into(), "6.12".into());
        far.add(2000.0, 500.0, 1000.0, None);
        let mut near = WorkloadResult::new("loop · 16M".into(), "near".into(), "6.12".into());
        near.add(1000.0, 500.0, 1000.0, None);
        let picture = atlas(&[far, near]).unwrap();
        // The full width is 2,000 faults: 500 unavoidable ones take a quarter, and 1,500 are avoidable.
        assert!(picture.contains("width=\"125.0\""), "{picture}");
        assert!(picture.contains("width=\"375.0\""), "{picture}");
        assert!(picture.contains(">4.00<") && picture.contains(">2.00<"));
        assert!(picture.contains("a&lt;b&gt;&amp;") && !picture.contains("a<b>"));
        assert_eq!(picture.matches("class=\"workload\"").count(), 1);
        assert_eq!(
            picture.matches("<g>").count(),
            picture.matches("</g>").count()
        );
    }
}
