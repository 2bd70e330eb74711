//! Renders a function with the number of executions of each of its instructions.

use pagetide_profile::Annotation;

use crate::draw::clean::clean;
use crate::draw::quantity::{count, number};
use crate::draw::{Align, Cell, Grid, Ink, TextStyle};

/// Maximum length of an instruction's text, of a line of source code and of a function's name, in terminal columns.
const TEXT_CHARS: usize = 60;

/// Renders the instructions. `texts` are their texts, in the order of the annotation's lines.
pub fn annotation(annotation: &Annotation, texts: &[String], text_style: &TextStyle) -> String {
    let mut out = format!(
        "{}: {} instructions in {} calls\n",
        clean(&annotation.function, TEXT_CHARS, text_style.ascii),
        count(annotation.instructions),
        count(annotation.calls)
    );
    if annotation.lines.is_empty() {
        out.push_str("It was never executed in this trial.\n");
        return out;
    }
    let sum = match annotation.surplus() {
        0 => "The executions of its instructions add up to this number.\n".to_owned(),
        more => format!(
            "The executions of its instructions add up to {more} more: instructions at the end of a block that faulted count twice.\n"
        ),
    };
    out.push_str(&sum);
    let mut symbol = None;
    let mut end = None;
    let mut source = None;
    let columns = || {
        [
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Left,
            Align::Left,
        ]
    };
    let mut grid = Grid::new(columns());
    for (line, text) in annotation.lines.iter().zip(texts) {
        let name = (line.symbol.as_str(), line.module.as_deref());
        if symbol != Some(name) {
            out.push_str(&grid.draw(text_style, 0));
            grid = Grid::new(columns());
            let module = name
                .1
                .map(|module| format!(" [{module}]"))
                .unwrap_or_default();
            let title = format!("{}{module}", name.0);
            put!(out, "\n{}:\n", clean(&title, TEXT_CHARS, text_style.ascii));
            grid.row(
                ["executed", "share", "at", "instruction", ""]
                    .map(|head| Cell::new(Ink::Faint, head)),
            );
            symbol = Some(name);
            end = None;
        }
        if let Some(end) = end.filter(|end| *end < line.address) {
            let gap = format!("{} bytes not executed", count(line.address - end));
            let cells = ["", "", "", gap.as_str(), ""];
            grid.row(cells.map(|text| Cell::new(Ink::Faint, text)));
        }
        end = Some(line.address + line.bytes.len() as u64);
        let new = line
            .source
            .as_ref()
            .filter(|found| source != Some((&found.file, found.line)));
        if let Some(found) = new {
            source = Some((&found.file, found.line));
            let text = format!("{}:{} {}", found.file, found.line, found.text.trim());
            let text = clean(&text, TEXT_CHARS, text_style.ascii);
            let cells = ["", "", "", text.as_str(), ""];
            grid.row(cells.map(|text| Cell::new(Ink::Strong, text)));
        }
        let place = match line.offset {
            Some(offset) => format!("+{offset:#x}"),
            None => format!("{:#x}", line.address),
        };
        let share = 100.0 * number(line.executed) / number(annotation.instructions.max(1));
        let target = line.target.as_deref().unwrap_or_default();
        grid.row(
            [
                count(line.executed),
                format!("{share:.1} %"),
                place,
                clean(text, TEXT_CHARS, text_style.ascii),
                clean(target, TEXT_CHARS, text_style.ascii),
            ]
            .map(Cell::plain),
        );
    }
    out.push_str(&grid.draw(text_style, 0));
    out
}

#[cfg(test)]
mod tests {
    use pagetide_profile::{AnnotatedInstruction, SourceLine};

    use super::*;

    #[test]
    fn gaps_sources_and_called_functions_stand_with_the_instructions() {
        let line =
            |address, executed, target: Option<&str>, source: Option<u32>| AnnotatedInstruction {
                symbol: "free".to_owned(),
                module: None,
                address,
                offset: Some(address - 0x1000),
                bytes: vec![0; 4],
                executed,
                target: target.map(str::to_owned),
                source: source.map(|line| SourceLine {
                    file: "mm/vmscan.c".to_owned(),
                    line,
                    text: "\tput(page);".to_owned(),
                }),
            };
        let found = Annotation {
            function: "free".to_owned(),
            instructions: 30,
            calls: 10,
            lines: vec![
                line(0x1000, 10, None, None),
                line(0x1004, 10, Some("put"), Some(7)),
                line(0x1010, 12, None, None),
            ],
        };
        let texts = ["push %rbp", "call 0x2000", "ret"].map(str::to_owned);
        let text = annotation(&found, &texts, &TextStyle::plain(100));
        for part in [
            "free: 30 instructions in 10 calls",
            "add up to 2 more",
            "mm/vmscan.c:7 put(page);",
            "8 bytes not executed",
            "33.3 %",
            "call 0x2000",
            "put",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
