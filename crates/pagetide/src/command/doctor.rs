//! `pagetide doctor`: checks what this machine can do in each arena, and says how to fix what is missing.

use anyhow::Result;
use pagetide_arena::doctor::{Piece, State};
use pagetide_lab::arenas::examine;
use pagetide_quantity::command::in_backticks;
use pagetide_record::ArenaKind;
use pagetide_report::{draw::Align, terminal::Row};
use serde::Serialize;

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Say what this machine can do in each arena, and how to fix what is missing
///
/// Exits with 2 if the exact arena does not work.
#[derive(clap::Args, Debug)]
pub struct Args {}

#[derive(Serialize)]
struct PieceRow(Piece);

impl Row for PieceRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("arena", Align::Left),
        ("piece", Align::Left),
        ("state", Align::Left),
        ("found", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        let piece = &self.0;
        vec![
            piece.arena.to_string(),
            piece.name.to_owned(),
            piece.state.to_string(),
            piece.found.clone(),
        ]
    }
}

/// Runs the command and returns how it ended.
pub fn run(places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store_folder()?;
    let pieces: Vec<PieceRow> = examine(&places.cache_folder()?, &store)
        .into_iter()
        .map(PieceRow)
        .collect();
    out.list(&pieces, "")?;
    let has = |kind: ArenaKind| {
        let mut of_arena = pieces.iter().filter(|piece| piece.0.arena == kind);
        !of_arena.any(|piece| piece.0.state == State::Missing)
    };
    let (works, host) = (has(ArenaKind::Exact), has(ArenaKind::Host));
    if !out.json {
        let mut text = String::from("\n");
        for PieceRow(piece) in pieces.iter().filter(|piece| !piece.0.remedy.is_empty()) {
            put!(text, "to mend {}: {}\n", piece.name, piece.remedy);
        }
        if works {
            let first = in_backticks("run campaigns/quick.toml");
            put!(
                text,
                "The exact arena works: {first} is a first campaign.\n"
            );
        } else {
            text.push_str("The exact arena does not work until what is missing is mended.\n");
        }
        if host {
            let first = in_backticks("run swapbench --on host --memory 64M");
            put!(
                text,
                "Trials can run on this machine's kernel too: {first}.\n"
            );
        }
        out.text(&text)?;
    }
    // The exact arena is where trials run unless the user says otherwise.
    Ok(if works { End::Done } else { End::Unable })
}
