//! The search for the smallest memory: its answer, curves over memory, and the slowdown by pressure, for each variant.

use pagetide_compare::pressure::Pressure;
use pagetide_compare::squeezed::SqueezeResult;
use pagetide_compare::squeezes::ComparedSqueezes;
use pagetide_compare::tried::TriedSize;
use pagetide_quantity::Unit;

use super::escape::{LONG, prose, text};
use crate::draw::quantity::{grouped, show};
use crate::terminal::list::Row;
use crate::terminal::squeeze::{cells, differences, sentence};

/// Width of a picture in pixels.
const WIDTH: f64 = 720.0;
/// Height of a picture in pixels.
const HEIGHT: f64 = 190.0;
/// Width of the margins on the left and on the right in pixels; the left one contains the labels of the y axis.
const LEFT: f64 = 64.0;
/// Height of the labels of the x axis in pixels.
const BELOW: f64 = 36.0;
/// Number of colours for variants in the stylesheet.
const COLOURS: usize = 4;

/// Writes the section; nothing if the page is not about a search.
pub(crate) fn section(found: Option<&ComparedSqueezes>, out: &mut String) {
    let Some(all) = found else { return };
    out.push_str(
        "<section id=\"squeeze\" aria-labelledby=\"squeeze-title\">\n<h2 id=\"squeeze-title\">How much memory is enough</h2>\n",
    );
    let is_one = all.searches.len() == 1;
    for (place, one) in all.searches.iter().enumerate() {
        let name = if is_one {
            String::new()
        } else {
            let colour = place % COLOURS;
            format!(
                "<strong class=\"s{colour}\">{}</strong>: ",
                text(&one.variant, 200)
            )
        };
        put!(
            out,
            "<p class=\"answer\">{name}{}</p>\n",
            text(&sentence(&one.squeeze, false), LONG)
        );
        for caution in &one.squeeze.cautions {
            put!(out, "<p>Caution: {}.</p>\n", prose(caution, LONG));
        }
    }
    for line in differences(all) {
        put!(out, "<p class=\"answer\">{}</p>\n", text(&line, LONG));
    }
    pictures(all, out);
    for one in &all.searches {
        table(&one.variant, &one.squeeze, out);
    }
    out.push_str("</section>\n");
}

/// Function that returns a number for a tested size; `None` if the size has no such number.
type Of<'a> = &'a dyn Fn(&TriedSize) -> Option<f64>;

/// A picture with a curve for each variant, over memory or over pressure.
struct Picture<'a> {
    title: String,
    x: Of<'a>,
    y: Of<'a>,
    show_x: fn(f64) -> String,
    show_y: fn(f64) -> String,
    /// True if the x axis is logarithmic.
    is_log: bool,
}

fn size(value: f64) -> String {
    show(Unit::Bytes, value, false)
}

fn share(value: f64) -> String {
    format!("{} %", grouped(value * 100.0, usize::from(value < 0.1)))
}

fn count(value: f64) -> String {
    grouped(value, 0)
}

fn pictures(all: &ComparedSqueezes, out: &mut String) {
    let memory = |tried: &TriedSize| Some(tried.point.size as f64);
    let slower = |tried: &TriedSize| tried.point.slowdown;
    let against_memory = |title: &str, y, show_y| Picture {
        title: title.to_owned(),
        x: &memory,
        y,
        show_x: size,
        show_y,
        is_log: true,
    };
    let mut pictures = vec![
        against_memory("slower than with plenty, by memory", &slower, share),
        against_memory("refaults, by memory", &|t| t.means.refaults, count),
        against_memory(
            "PSI memory some, by memory",
            &|t| Pressure::Some.of(&t.means),
            share,
        ),
        against_memory(
            "PSI memory full, by memory",
            &|t| Pressure::Full.of(&t.means),
            share,
        ),
    ];
    let some = |tried: &TriedSize| Pressure::Some.of(&tried.means);
    let full = |tried: &TriedSize| Pressure::Full.of(&tried.means);
    let kinds: [(&str, Of<'_>); 2] = [("some", &some), ("full", &full)];
    for (name, x) in kinds {
        pictures.push(Picture {
            title: format!("slower than with plenty, by PSI memory {name}"),
            x,
            y: &slower,
            show_x: share,
            show_y: share,
            is_log: false,
        });
    }
    for picture in &pictures {
        picture.draw(all, out);
    }
}

impl Picture<'_> {
    /// Returns the points of a search in the order of x. Sizes at which the program died are left out.
    fn points(&self, squeeze: &SqueezeResult) -> Vec<(f64, f64)> {
        let alive = squeeze.curve.iter().filter(|t| t.point.died.is_none());
        let mut points: Vec<(f64, f64)> = alive
            .filter_map(|tried| Some(((self.x)(tried)?, (self.y)(tried)?)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    }

    fn draw(&self, all: &ComparedSqueezes, out: &mut String) {
        let curves: Vec<Vec<(f64, f64)>> = all
            .searches
            .iter()
            .map(|one| self.points(&one.squeeze))
            .collect();
        let points = || curves.iter().flatten();
        if points().count() < 2 {
            return;
        }
        let range = |of: fn(&(f64, f64)) -> f64| {
            let values = || points().map(of);
            let least = values().fold(f64::INFINITY, f64::min);
            (least, values().fold(least, f64::max))
        };
        let ((least, most), (low, high)) = (range(|p| p.0), range(|p| p.1));
        let low = low.min(0.0);
        let scaled = |at: f64| if self.is_log { at.ln() } else { at };
        let part = |at: f64, from: f64, to: f64| (at - from) / (to - from).max(f64::MIN_POSITIVE);
        let x =
            |at: f64| LEFT + part(scaled(at), scaled(least), scaled(most)) * (WIDTH - 2.0 * LEFT);
        let y = |at: f64| HEIGHT - BELOW - part(at, low, high) * (HEIGHT - BELOW - 24.0);
        let title = text(&self.title, 200);
        put!(
            out,
            "<figure><svg class=\"history\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
             <text x=\"0\" y=\"12\">{title}</text>\n<path class=\"grid\" d=\"M{LEFT} {0:.1}H{1:.1}M{LEFT} {2:.1}H{1:.1}\"/>\n",
            y(low),
            WIDTH - LEFT,
            y(high)
        );
        for at in [low, high] {
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                LEFT - 8.0,
                y(at) + 4.0,
                text(&(self.show_y)(at), 40)
            );
        }
        for at in [least, most] {
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
                x(at),
                HEIGHT - BELOW + 18.0,
                text(&(self.show_x)(at), 40)
            );
        }
        for (place, curve) in curves.iter().enumerate() {
            let line: Vec<String> = curve
                .iter()
                .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)))
                .collect();
            put!(
                out,
                "<g class=\"s{}\"><polyline fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\" points=\"{}\"/>",
                place % COLOURS,
                line.join(" ")
            );
            for (at, value) in curve {
                put!(
                    out,
                    "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}: {} at {}</title></circle>",
                    x(*at),
                    y(*value),
                    text(&all.searches[place].variant, 200),
                    text(&(self.show_y)(*value), 40),
                    text(&(self.show_x)(*at), 40)
                );
            }
            out.push_str("</g>\n");
        }
        out.push_str("</svg></figure>\n");
    }
}

/// Writes the sizes of a search as a table with the same columns as in the terminal.
fn table(variant: &str, squeeze: &SqueezeResult, out: &mut String) {
    put!(
        out,
        "<table><caption>{}: {} of {}</caption>\n<thead><tr>",
        text(variant, 200),
        text(&squeeze.metric, 200),
        text(&squeeze.cell, LONG)
    );
    for (head, _) in TriedSize::HEADS {
        put!(out, "<th>{head}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for tried in &squeeze.curve {
        out.push_str("<tr>");
        for cell in cells(tried, false) {
            put!(out, "<td>{}</td>", text(&cell, 200));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
}
