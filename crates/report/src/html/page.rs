//! The page around its data: head, verdicts, cells with places for their figures, notes and provenance.

use pagetide_compare::{Caution, Room};

use super::axis::Scales;
use super::escape::{LONG, prose, text};
use super::{
    Assets, Input, SCRIPT, STYLE, case, hash_source, provenance, reclaim, squeeze, tiers, verdicts,
    waterfall,
};
use crate::about;
use crate::about::EXACT_CAVEAT;
use crate::draw::quantity;
use crate::why;

/// Returns the HTML of everything before the data of the figures.
pub(crate) fn before(input: &Input<'_>) -> String {
    let title = match text(&input.about.title, 200) {
        title if title.is_empty() => "pagetide report".to_owned(),
        title => title,
    };
    let mut out =
        String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // Without an icon, a browser would request one from the server.
    out.push_str("<link rel=\"icon\" href=\"data:,\">\n");
    match input.assets {
        Assets::Inside => {
            // A mailed page too may run only its own script and must not use the network.
            put!(
                out,
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src {}; \
                 img-src data: blob:; base-uri 'none'; form-action 'none'\">\n<title>{title}</title>\n<style>{STYLE}</style>\n",
                hash_source(SCRIPT),
                hash_source(STYLE)
            );
        }
        Assets::Served { style, .. } => {
            put!(
                out,
                "<title>{title}</title>\n<link rel=\"stylesheet\" href=\"{}\">\n",
                text(style, LONG)
            );
        }
    }
    out.push_str(
        "</head>\n<body>\n<a class=\"skip\" href=\"#verdict\">To the verdict</a>\n<header>\n",
    );
    if let Assets::Served { links, .. } = input.assets {
        out.push_str("<nav aria-label=\"Pages\">");
        for (address, name) in links {
            put!(
                out,
                "<a href=\"{}\">{}</a> ",
                text(address, LONG),
                text(name, LONG)
            );
        }
        out.push_str("</nav>\n");
    }
    let case = match input.about.case {
        Some(_) => "<a href=\"#makeup\">Memory over time</a> <a href=\"#counters\">Counters</a> ",
        None => "",
    };
    put!(
        out,
        "<h1>{title}</h1>\n<nav class=\"contents\" aria-label=\"Contents\">{case}<a href=\"#cells\">Cells</a> <a href=\"#provenance\">Where this comes from</a></nav>\n<button id=\"theme\" type=\"button\" hidden>Dark</button>\n</header>\n<main>\n"
    );
    let scales = Scales::of(input.comparison);
    case::section(input, &mut out);
    squeeze::section(input.sources.squeezes.as_ref(), &mut out);
    verdicts::section(input, &scales, &mut out);
    cells(input, &scales, &mut out);
    cautions(input, &mut out);
    verdicts::invalid(input, &mut out);
    headroom(input, &mut out);
    verdicts::methods(input, &mut out);
    reclaim::glossary(input, &mut out);
    provenance::section(input, &mut out);
    out.push_str("</main>\n");
    out
}

/// Writes the cells. Each cell can be opened to show its tables, explanation, figures and reclaim statistics.
fn cells(input: &Input<'_>, scales: &Scales, out: &mut String) {
    out.push_str(
        "<section id=\"cells\" aria-labelledby=\"cells-title\">\n<h2 id=\"cells-title\">Cells</h2>\n\
         <p id=\"figures-state\">The figures are drawn by the script of this page. Verdicts, tables and provenance need none.</p>\n",
    );
    let open = if input.comparison.cells.len() == 1 {
        " open"
    } else {
        ""
    };
    for (place, cell) in input.comparison.cells.iter().enumerate() {
        put!(
            out,
            "<details class=\"cell\" id=\"cell-{place}\"{open}><summary><h3>{}</h3>{}</summary>\n",
            text(&cell.label, LONG),
            verdicts::words(input, cell)
        );
        verdicts::tables(input, scales, place, cell, out);
        why(input, place, out);
        put!(
            out,
            "<div class=\"figures\" id=\"figures-{place}\"></div>\n"
        );
        tiers::section(input, place, out);
        reclaim::section(input, place, out);
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n");
}

/// Returns the HTML of everything after the data of the figures.
pub(crate) fn after(input: &Input<'_>, omitted: &[String]) -> String {
    let mut out = String::new();
    if !omitted.is_empty() {
        out.push_str("<aside id=\"omitted\" aria-label=\"Not shown\"><h2>Not shown</h2>\n<ul>\n");
        for line in omitted {
            put!(out, "<li>{}</li>\n", text(line, 500));
        }
        out.push_str("</ul></aside>\n");
    }
    match input.assets {
        Assets::Inside => put!(out, "<script>{SCRIPT}</script>\n"),
        Assets::Served { script, .. } => {
            put!(out, "<script src=\"{}\"></script>\n", text(script, LONG));
        }
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Writes the reasons why the variants of a cell differ: a picture, then statements with their evidence.
fn why(input: &Input<'_>, place: usize, out: &mut String) {
    let explanations: Vec<_> = why::of_cell(input.comparison, place).collect();
    if explanations.is_empty() {
        return;
    }
    out.push_str("<section class=\"why\">\n<h4>Why</h4>\n");
    for explained in &explanations {
        waterfall::plot(input, explained, out);
    }
    let statements = explanations.iter().flat_map(|explained| {
        let found = explained.account.as_ref();
        let locks = found.and_then(|found| why::account::locks(&found.account, false));
        why::statements(input.comparison, explained, true, false)
            .into_iter()
            .chain(locks)
    });
    for why in statements {
        put!(out, "<p>{}</p>\n", prose(&why.claim, LONG));
        if !why.evidence.is_empty() {
            out.push_str("<ul class=\"evidence\">\n");
            for line in &why.evidence {
                put!(out, "<li>{}</li>\n", text(line, LONG));
            }
            out.push_str("</ul>\n");
        }
    }
    out.push_str("</section>\n");
}

/// Writes the faults of each variant beside those of the best possible policy (OPT), LRU and a model of the kernel's
/// policy, by cell, as means over seeds. Writes nothing if the references of all cells are unknown.
fn headroom(input: &Input<'_>, out: &mut String) {
    let mut rows = String::new();
    for cell in &input.comparison.cells {
        for (side, column) in input.comparison.columns.iter().enumerate() {
            let Some(scale) = cell.scale(side) else {
                continue;
            };
            let count = |faults: f64| quantity::grouped(faults, 0);
            let in_room = |value: fn(&Room) -> f64| {
                let room = scale.room.as_ref();
                room.map_or_else(String::new, |room| count(value(room)))
            };
            put!(
                rows,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                text(&cell.label, LONG),
                text(&column.name, LONG),
                count(scale.faults),
                count(scale.opt),
                count(scale.lru),
                in_room(|room| room.pages),
                in_room(|room| room.opt),
                in_room(|room| room.model),
                scale
                    .headroom()
                    .map_or_else(String::new, |times| quantity::grouped(times, 2))
            );
        }
    }
    if rows.is_empty() {
        return;
    }
    put!(
        out,
        "<section id=\"headroom\" aria-labelledby=\"headroom-title\">\n<h2 id=\"headroom-title\">Headroom</h2>\n\
         <p>References that did not find their page, for each that an ideal page replacement (Belady's OPT) has with the same \
         references and memory. Room is the memory less watermarks and compressed swap: what lies between OPT and OPT in it is the \
         price of that, what lies beyond is the policy's; the model is one of the kernel's own. Means over seeds.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Headroom\">\n<table>\n<thead><tr><th>scenario</th><th>variant</th>\
         <th>faults</th><th>OPT</th><th>LRU</th>\
         <th>room</th><th>OPT in it</th><th>model in it</th><th>headroom</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    );
    out.push_str("</section>\n");
}

fn cautions(input: &Input<'_>, out: &mut String) {
    let mut lines: Vec<String> = input
        .comparison
        .cautions
        .iter()
        .filter(|caution| **caution != Caution::VirtualTime)
        .map(|caution| format!("{caution}."))
        .collect();
    if about::is_exact(input.comparison)
        || input.comparison.cautions.contains(&Caution::VirtualTime)
    {
        lines.push(EXACT_CAVEAT.to_owned());
    }
    if lines.is_empty() {
        return;
    }
    out.push_str("<section id=\"cautions\" aria-labelledby=\"cautions-title\">\n<h2 id=\"cautions-title\">What to keep in mind</h2>\n<ul>\n");
    for line in lines {
        put!(out, "<li>{}</li>\n", prose(&line, LONG));
    }
    out.push_str("</ul>\n</section>\n");
}
