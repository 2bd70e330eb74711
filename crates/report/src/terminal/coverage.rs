//! Renders which of the lines that a patch changes were executed.

use pagetide_compare::covered::VariantCoverage;

use crate::draw::clean::clean;
use crate::draw::quantity::count;
use crate::draw::{Align, Cell, Grid, Ink, TextStyle};

/// Maximum number of lines that are listed below a verdict.
const MAX_LISTED: usize = 8;
/// Maximum length of a line of code, in terminal columns.
const TEXT_CHARS: usize = 72;

/// Returns text below a verdict: for each variant, how many lines of its patch were executed, and the first
/// [`MAX_LISTED`] lines that were not. Empty if there are no variants.
pub fn below_verdict(all: &[VariantCoverage], text_style: &TextStyle) -> String {
    let mut out = String::new();
    for one in all {
        let VariantCoverage {
            variant,
            trials,
            coverage,
        } = one;
        let end = if coverage.missed().next().is_some() {
            ":"
        } else {
            "."
        };
        put!(
            out,
            "\nCoverage of {variant}: {}{end}\n",
            coverage.sentence(*trials)
        );
        let missed = coverage.missed().count();
        let shown = coverage.missed().take(MAX_LISTED);
        for line in shown {
            let text = clean(&line.text, TEXT_CHARS, text_style.ascii);
            put!(out, "  {}:{}  {text}\n", line.file, line.line);
        }
        if missed > MAX_LISTED {
            let command = pagetide_quantity::command::in_backticks("profile --coverage");
            put!(out, "  and {} more: {command}\n", missed - MAX_LISTED);
        }
    }
    out
}

/// Renders tables of all changed lines and functions with their counts, for each variant.
pub fn tables(all: &[VariantCoverage], text_style: &TextStyle) -> String {
    let mut out = String::new();
    for one in all {
        let coverage = &one.coverage;
        put!(out, "{}: {}\n", one.variant, coverage.sentence(one.trials));
        if coverage.without_code > 0 {
            put!(
                out,
                "{} more changed lines have no code of their own: comments, declarations, braces, parts of statements\n",
                coverage.without_code
            );
        }
        put!(out, "\n");
        let mut grid = Grid::new([Align::Right, Align::Left, Align::Left]);
        grid.row([
            Cell::new(Ink::Faint, "executed"),
            Cell::new(Ink::Strong, "line"),
            Cell::new(Ink::Faint, "code"),
        ]);
        for line in &coverage.lines {
            let ink = if line.executed == 0 {
                Ink::Strong
            } else {
                Ink::Plain
            };
            let executed = match line.executed {
                0 => "never".to_owned(),
                number => count(number),
            };
            grid.row([
                Cell::new(ink, executed),
                Cell::new(ink, format!("{}:{}", line.file, line.line)),
                Cell::new(ink, clean(&line.text, TEXT_CHARS, text_style.ascii)),
            ]);
        }
        out.push_str(&grid.draw(text_style, 0));
        put!(out, "\n");
        let mut grid = Grid::new(Align::names_and_numbers(1));
        grid.row([
            Cell::new(Ink::Strong, "changed function"),
            Cell::new(Ink::Faint, "calls"),
        ]);
        for function in &coverage.functions {
            grid.row([
                Cell::plain(clean(&function.name, TEXT_CHARS, text_style.ascii)),
                Cell::plain(count(function.calls)),
            ]);
        }
        out.push_str(&grid.draw(text_style, 0));
    }
    out
}
