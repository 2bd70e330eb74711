//! Checks, before anything is fetched or built, that the programs which a campaign in the exact arena needs are on this
//! machine.

use pagetide_arena::doctor::{Piece, State};
use pagetide_campaign::{Campaign, Cell};
use pagetide_record::{ArenaKind, Subject};
use pagetide_scenario::Context;
use pagetide_source::tools;

use crate::error::LabError;

/// Fails if the campaign runs in the exact arena and the emulator is missing, or if a scenario needs a file system and
/// mke2fs is missing. The error also names missing tools of kernel builds, so that the user can install everything with
/// one command. Missing tools of kernel builds alone are no error here. The build checks for them, because only the
/// build knows whether it must compile.
pub(crate) fn check(campaign: &Campaign) -> Result<(), LabError> {
    if campaign.arena != ArenaKind::Exact {
        return Ok(());
    }
    let [emulator, mke2fs] = pagetide_exact::doctor::programs();
    let lacks = |piece: &Piece| {
        let is_there = piece.state == State::Works;
        // A remedy that installs no package, such as naming another emulator, is in the arena's own error.
        let package = piece.remedy.strip_prefix("apt-get install ")?;
        (!is_there).then(|| package.to_owned())
    };
    let mut missing = Vec::new();
    if let Some(package) = lacks(&emulator) {
        missing.push(("qemu-system-x86_64".to_owned(), package));
    }
    if campaign.cells().any(|cell| has_files(&cell))
        && let Some(package) = lacks(&mke2fs)
    {
        missing.push(("mke2fs".to_owned(), package));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let tools = tools::missing().into_iter();
    missing.extend(tools.map(|tool| (tool.name.to_owned(), tool.package.to_owned())));
    let (names, packages): (Vec<String>, Vec<String>) = missing.into_iter().unzip();
    Err(LabError::Lacks {
        missing: names.join(", "),
        packages: packages.join(" "),
    })
}

/// True if the scenario of a cell needs a file system. False for a cell that cannot run; the arena refuses it later.
fn has_files(cell: &Cell) -> bool {
    let context = Context {
        memory: cell.limit.unwrap_or(cell.memory.bytes()),
        swap_size: cell.swap_size.unwrap_or(cell.memory.bytes()),
        cpus: cell.cpus.count,
    };
    let params = pagetide_scenario::resolve(
        &cell.scenario,
        cell.as_written,
        None,
        &cell.params,
        &context,
    );
    let needs = params.and_then(|params| {
        pagetide_scenario::needs(&Subject {
            scenario: cell.scenario.clone(),
            as_written: cell.as_written,
            params,
            memory: cell.memory,
            swap_size: context.swap_size,
            ..Subject::default()
        })
    });
    needs.is_ok_and(|needs| needs.filesystem.is_some() || needs.root.is_some())
}
