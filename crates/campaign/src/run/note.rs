//! The campaign's note: its description in the store, with its variants, cells and trials.

use pagetide_quantity::Nanos;
use pagetide_store::{CampaignNote, CellNote};

use crate::campaign::{Campaign, Until};
use crate::plan::Cell;

/// Returns the campaign's note, the description that is stored with its records. Continues the previous note `before`,
/// or begins a new one if there is none or if `fresh`. The note has no entries yet.
pub(crate) fn note_for(
    campaign: &Campaign,
    cells: &[Cell],
    before: Option<&CampaignNote>,
    fresh: bool,
) -> CampaignNote {
    let generation = before.map_or(1, |note| note.generation.max(1));
    let again = fresh && before.is_some();
    CampaignNote {
        name: campaign.name.clone(),
        generation: if again { generation + 1 } else { generation },
        fresh: fresh || before.is_some_and(|note| note.fresh),
        command: String::new(),
        started: match before {
            Some(note) if !again => note.started,
            _ => Nanos::wall_clock(),
        },
        arena: campaign.arena,
        variants: campaign.variants.iter().map(|v| v.name.clone()).collect(),
        cells: cells
            .iter()
            .map(|cell| CellNote {
                label: cell.label(),
                primary: cell.primary.clone(),
                margins: cell.margins.clone(),
            })
            .collect(),
        entries: Vec::new(),
        accept: campaign.accept.clone(),
        imported: None,
        looks: match (&campaign.sampling.until, before) {
            // With the same cap, the interim analyses that were planned first remain, unless the user states others.
            (Until::Sure { cap, looks }, Some(note))
                if looks.is_empty() && !again && note.looks.last() == Some(&u64::from(*cap)) =>
            {
                note.looks.clone()
            }
            _ => Vec::new(),
        },
    }
}

/// Returns the number of blocks in the campaign's previous note `before`. Zero if there is none, if variants or cells
/// differ, or if a fresh run has begun since.
pub(crate) fn blocks_of(before: Option<&CampaignNote>, note: &CampaignNote) -> u32 {
    let before = before.filter(|before| {
        before.generation == note.generation
            && before.variants == note.variants
            && before.cells == note.cells
    });
    let units = before.iter().flat_map(|before| &before.entries);
    units.map(|entry| entry.unit + 1).max().unwrap_or(0)
}
