//! Draws the pages of each swap tier by age: a row of bars, young pages on the left, with one colour for each tier.
//!
//! If swap is in order, the colours change from left to right in the order of the tiers. A lower tier's colour to the
//! left of a higher tier's is an inversion.

use std::fmt::Write;

use super::escape::text;
use crate::draw::quantity::count;
use crate::tiers::TierTable;

/// Width of a bar in pixels.
const BAR: f64 = 22.0;
/// Distance between two bars in pixels.
const GAP: f64 = 4.0;
/// Height of the tallest bar in pixels.
const HIGH: f64 = 90.0;
/// Height of the line of numbers below the bars, in pixels.
const FOOT: f64 = 16.0;
/// Margin on the left and on the right in pixels, so that the numbers at both ends fit.
const SIDE: f64 = 24.0;
/// Every `EACH`th bar has a number on the axis.
const EACH: usize = 4;
/// Maximum length of a tier's name in characters.
const LONG: usize = 40;

/// Writes the picture of one table; nothing if no page has a known age.
pub(crate) fn picture(table: &TierTable, out: &mut String) {
    let bins = &table.ages;
    let most = bins.iter().map(|bin| bin.pages.values().sum::<u64>()).max();
    let Some(most) = most.filter(|most| *most > 0) else {
        return;
    };
    out.push_str("<p class=\"tier-key\">");
    for (row, tier) in table.rows.iter().zip(&table.tiers) {
        put!(
            out,
            "<span><i class=\"{}\"></i>{}</span> ",
            class(*tier),
            text(&row[0], LONG)
        );
    }
    out.push_str("</p>\n");
    let width = 2.0 * SIDE + bins.len() as f64 * (BAR + GAP) - GAP;
    put!(
        out,
        "<svg class=\"tier-ages\" viewBox=\"0 0 {width} {0}\" width=\"{width}\" height=\"{0}\" role=\"img\" \
         aria-label=\"Pages of each tier by the number of references since they were last used\">",
        HIGH + FOOT
    );
    for (place, bin) in bins.iter().enumerate() {
        let x = SIDE + place as f64 * (BAR + GAP);
        let mut y = HIGH;
        let mut said = format!(
            "used {} to {} references ago:",
            count(bin.most / 2 + 1),
            count(bin.most)
        );
        let mut bars = String::new();
        for (row, tier) in table.rows.iter().zip(&table.tiers) {
            let Some(pages) = bin.pages.get(tier) else {
                continue;
            };
            let high = HIGH * *pages as f64 / most as f64;
            y -= high;
            put!(
                bars,
                "<rect class=\"{}\" x=\"{x}\" y=\"{y:.2}\" width=\"{BAR}\" height=\"{high:.2}\"/>",
                class(*tier)
            );
            let _ = write!(said, " {} {}", row[0], count(*pages));
        }
        put!(out, "<g><title>{}</title>{bars}</g>", text(&said, 400));
        if place % EACH == 0 {
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + BAR / 2.0,
                HIGH + FOOT - 4.0,
                short(bin.most / 2 + 1)
            );
        }
    }
    put!(
        out,
        "<path class=\"base\" d=\"M{SIDE} {HIGH}H{:.1}\"/></svg>\n",
        width - SIDE
    );
}

/// Returns the CSS class that determines the colour of a tier: grey for memory, an outline for pages of unknown tier.
fn class(tier: i64) -> String {
    match tier {
        0 => "memory".to_owned(),
        1.. => format!("s{}", (tier - 1) % 4),
        _ => "unknown".to_owned(),
    }
}

/// Formats a number of references in at most five characters. The units k, M, … are powers of 1024, and the number is
/// rounded down.
fn short(number: u64) -> String {
    const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let unit = (number.checked_ilog2().unwrap_or(0) / 10) as usize;
    let rounded = number >> (10 * unit);
    format!("{rounded}{}", UNITS.get(unit).copied().unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pagetide_record::tier_pages::AgeBin;

    use super::*;

    fn table(ages: Vec<AgeBin>) -> TierTable {
        let row = |name: &str| [name, "", "", "", "", ""].map(str::to_owned);
        TierTable {
            moment: "pages-1".to_owned(),
            rows: vec![row("memory"), row("zram<1>"), row("ssd")],
            tiers: vec![0, 1, 2],
            ages,
        }
    }

    #[test]
    fn bars_of_a_bin_are_stacked_and_their_height_is_the_number_of_pages() {
        let bin = |most, pages: &[(i64, u64)]| AgeBin {
            most,
            pages: BTreeMap::from_iter(pages.iter().copied()),
        };
        let mut out = String::new();
        picture(
            &table(vec![bin(3, &[(0, 30), (2, 10)]), bin(7, &[(1, 20)])]),
            &mut out,
        );
        let bars: Vec<&str> = out
            .split("<rect ")
            .skip(1)
            .map(|bar| bar.split("/>").next().unwrap())
            .collect();
        assert_eq!(
            bars,
            [
                "class=\"memory\" x=\"24\" y=\"22.50\" width=\"22\" height=\"67.50\"",
                "class=\"s1\" x=\"24\" y=\"0.00\" width=\"22\" height=\"22.50\"",
                "class=\"s0\" x=\"50\" y=\"45.00\" width=\"22\" height=\"45.00\"",
            ]
        );
        assert!(
            out.contains("used 2 to 3 references ago: memory 30 ssd 10"),
            "{out}"
        );
        assert!(out.contains("zram&lt;1&gt;"), "{out}");
    }

    #[test]
    fn nothing_is_drawn_of_no_pages() {
        let mut out = String::new();
        picture(&table(Vec::new()), &mut out);
        assert_eq!(out, "");
    }

    #[test]
    fn numbers_are_short() {
        let all = [1, 512, 1024, 65_536, 1 << 20, 1 << 63].map(short);
        assert_eq!(all, ["1", "512", "1k", "64k", "1M", "8E"]);
    }
}
