//! Flame graphs: pictures of call stacks, with widths in nanoseconds, that can be searched and zoomed in a browser.

use inferno::flamegraph::{Options, from_lines};

use crate::export::{folded, folded_difference};
use crate::profile::Profile;

/// Why a flame graph could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("drawing a flame graph stopped: {0}")]
pub struct FlameError(String);

fn draw(stacks: &str, title: String, subtitle: &str) -> Result<Vec<u8>, FlameError> {
    let mut options = Options::default();
    options.title = title;
    options.subtitle = Some(subtitle.to_owned());
    "ns".clone_into(&mut options.count_name);
    // The same profile gives the same bytes.
    options.deterministic = true;
    let mut picture = Vec::new();
    from_lines(&mut options, stacks.lines(), &mut picture)
        .map_err(|why| FlameError(why.to_string()))?;
    Ok(picture)
}

/// Draws the flame graph of a profile as SVG.
pub fn flame_graph(profile: &Profile, title: String) -> Result<Vec<u8>, FlameError> {
    let subtitle = "exact: one instruction is one nanosecond; time of waiting is left out";
    draw(&folded(profile), title, subtitle)
}

/// Draws the flame graph of `b` as SVG, coloured by the difference from `a`: red stacks grew, blue ones shrank.
pub fn flame_difference(a: &Profile, b: &Profile, title: String) -> Result<Vec<u8>, FlameError> {
    let subtitle = "widths are those of B; red grew, blue shrank";
    draw(&folded_difference(a, b), title, subtitle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::sample;

    #[test]
    fn flame_graphs_name_functions_with_their_nanoseconds() {
        let a = sample();
        let mut b = sample();
        b.nodes[2].own = 9;
        let text = String::from_utf8(flame_graph(&a, "one".to_owned()).unwrap()).unwrap();
        assert!(
            text.starts_with("<?xml") && text.contains("zram_write (7 ns"),
            "{text}"
        );
        let text = String::from_utf8(flame_difference(&a, &b, "two".to_owned()).unwrap()).unwrap();
        assert!(text.contains("zram_write (9 ns, 64.29%; +"), "{text}");
    }
}
