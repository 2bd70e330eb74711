//! Reference values for a cell's faults, below its verdicts: faults of the best possible policy (OPT), of LRU and of a
//! model of the kernel's policy.

use pagetide_compare::{Cell as Group, Comparison};

use crate::about;
use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean, grouped};

/// Maximum length of a variant's name, in columns.
const NAME_CHARS: usize = 24;

/// Returns a table with a row for each variant with its faults and those of OPT, LRU and the model, as means; `None` if
/// the references are unknown.
pub fn scale(comparison: &Comparison, group: &Group, text_style: &TextStyle) -> Option<Grid> {
    let mut grid = Grid::new(Align::names_and_numbers(6));
    let faint = |text: String| Cell::new(Ink::Faint, text);
    let heads = [
        "for scale",
        "faults",
        "OPT",
        "LRU",
        "room",
        "OPT in it",
        "model in it",
    ];
    grid.row(heads.map(|head| faint(head.to_owned())));
    let mut any = false;
    for column in 0..comparison.columns.len() {
        let Some(scale) = group.scale(column) else {
            continue;
        };
        any = true;
        let number = |value: f64| faint(grouped(value, 0));
        let in_room = |value: fn(&pagetide_compare::Room) -> f64| {
            let room = scale.room.as_ref();
            room.map_or_else(Cell::empty, |room| number(value(room)))
        };
        grid.row([
            faint(clean(
                about::name(comparison, column),
                NAME_CHARS,
                text_style.ascii,
            )),
            number(scale.faults),
            number(scale.opt),
            number(scale.lru),
            in_room(|room| room.pages),
            in_room(|room| room.opt),
            in_room(|room| room.model),
        ]);
    }
    any.then_some(grid)
}
