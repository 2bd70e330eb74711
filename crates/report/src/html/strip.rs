//! An interval drawn: a line from end to end, a dot at the estimate, a thin line at no effect, and the margin shaded.

use pagetide_verdict::Judgement;
use pagetide_verdict::judgement::EffectKind;

use super::escape::text;

/// Width of the picture.
const WIDTH: f64 = 220.0;
/// Height of the picture.
const HEIGHT: f64 = 22.0;

/// The picture; empty where there is no ratio. `reach` is the natural logarithm of the ratio at either edge.
pub(crate) fn svg(judgement: &Judgement, reach: f64, label: &str) -> String {
    let Some(effect) = judgement
        .effect
        .filter(|effect| effect.kind == EffectKind::Ratio && effect.estimate > 0.0)
    else {
        return String::new();
    };
    let place = |ratio: f64| {
        let at = if ratio > 0.0 { ratio.ln() } else { -10.0 };
        (WIDTH / 2.0 * (1.0 + at / reach)).clamp(-4.0, WIDTH + 4.0)
    };
    let (low, high) = effect
        .interval
        .map_or((effect.estimate, effect.estimate), |i| (i.low, i.high));
    let (low, high, dot) = (place(low), place(high), place(effect.estimate));
    let (dot, middle, half) = (dot.clamp(4.0, WIDTH - 4.0), WIDTH / 2.0, HEIGHT / 2.0);
    let mut out = format!(
        "<svg class=\"strip {}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
         aria-label=\"{}\">",
        judgement.verdict,
        text(label, 300),
    );
    if let Some(margin) = &judgement.margin {
        let (from, to) = (place(margin.low), place(margin.high));
        put!(
            out,
            "<rect class=\"margin\" x=\"{from:.1}\" y=\"1\" width=\"{:.1}\" height=\"20\"/>",
            (to - from).max(0.0)
        );
    }
    put!(
        out,
        "<path class=\"null\" d=\"M{middle} 0V{HEIGHT}\"/><path class=\"interval\" d=\"M{low:.1} {half}H{high:.1}\"/>"
    );
    for (at, end) in [(low, 0.0), (high, WIDTH)] {
        if (0.0..=WIDTH).contains(&at) {
            put!(out, "<path class=\"interval\" d=\"M{at:.1} 6V16\"/>");
        } else {
            // It goes on beyond the picture.
            let back = if end > 0.0 { -6.0 } else { 6.0 };
            put!(
                out,
                "<path class=\"arrow\" d=\"M{end} {half}l{back} -5v10z\"/>"
            );
        }
    }
    put!(
        out,
        "<circle class=\"dot\" cx=\"{dot:.1}\" cy=\"{half}\" r=\"4\"/></svg>"
    );
    out
}
