//! Effects of one campaign in several arenas, one row for each metric.

use pagetide_compare::agreement::{Agreement, AgreementRow, Agrees, ArenaEffect, Sign};
use pagetide_quantity::Unit;
use pagetide_verdict::judgement::EffectKind;

use crate::draw::{Align, TextStyle, quantity};
use crate::terminal::list::table;

/// Renders the effects of all arenas side by side, and below them how many signs agree, and possible causes of
/// disagreements.
pub fn agreement(agreement: &Agreement, text_style: &TextStyle) -> String {
    let names: Vec<String> = agreement
        .arenas
        .iter()
        .map(|side| format!("{} ({})", side.arena, side.kernel))
        .collect();
    let mut heads: Vec<(&str, Align)> = vec![
        ("cell", Align::Left),
        ("variant", Align::Left),
        ("metric", Align::Left),
    ];
    heads.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    heads.extend([("sign", Align::Left), ("size", Align::Left)]);
    let rows = agreement
        .rows
        .iter()
        .map(|row| cells(row, text_style))
        .collect();
    let mut text = table(&heads, &[], rows, text_style);
    let agreed = |wanted: Agrees| {
        let mut rows = agreement.rows.iter();
        rows.by_ref().filter(|row| row.sign == wanted).count()
    };
    put!(
        text,
        "\nThe signs agree in {} of {} rows, differ in {}, and are open in {}.\n",
        agreed(Agrees::Yes),
        agreement.rows.len(),
        agreed(Agrees::No),
        agreed(Agrees::Open)
    );
    for row in agreement.rows.iter().filter(|row| !row.reasons.is_empty()) {
        put!(
            text,
            "{} of {}, {}: {}.\n",
            row.metric,
            row.cell,
            row.variant,
            row.reasons.join("; ")
        );
    }
    for label in &agreement.alone {
        put!(text, "Only one arena has {label}.\n");
    }
    text
}

fn cells(row: &AgreementRow, text_style: &TextStyle) -> Vec<String> {
    let mut cells = vec![row.cell.clone(), row.variant.clone(), row.metric.clone()];
    let effects = row.effects.iter().map(|effect| {
        effect.as_ref().map_or_else(
            || "not judged".to_owned(),
            |effect| text(effect, row.unit, text_style),
        )
    });
    cells.extend(effects);
    let size = match row.same_size {
        Some(true) => "may be equal",
        Some(false) => "differs",
        None => "",
    };
    cells.extend([row.sign.to_string(), size.to_owned()]);
    cells
}

/// Formats an effect with its interval, such as `+7.5 % [+6.9, +8.1]`. The word `none` or `open` precedes an effect
/// without a sign.
fn text(effect: &ArenaEffect, unit: Unit, text_style: &TextStyle) -> String {
    let show = |value: f64| match effect.kind {
        EffectKind::Ratio => percent((value - 1.0) * 100.0),
        EffectKind::Difference => quantity::show(unit, value, text_style.ascii),
    };
    let sign = match effect.sign {
        Sign::None => "none ",
        Sign::Open => "open ",
        Sign::More | Sign::Less => "",
    };
    let unit = match effect.kind {
        EffectKind::Ratio => " %",
        EffectKind::Difference => "",
    };
    let estimate = show(effect.estimate);
    match (effect.low, effect.high) {
        (Some(low), Some(high)) => {
            format!("{sign}{estimate}{unit} [{}, {}]", show(low), show(high))
        }
        _ => format!("{sign}{estimate}{unit}"),
    }
}

/// Formats a percentage with its sign: one decimal, none from 100 % on; `0` below 0.05 %.
fn percent(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:+.0}"),
        size if size >= 0.05 => format!("{value:+.1}"),
        _ => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_as_many_digits_as_they_need() {
        let texts = [700.4, -12.34, 0.01].map(percent);
        assert_eq!(texts, ["+700", "-12.3", "0"]);
    }
}
