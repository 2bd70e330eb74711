//! Opens arenas, and checks this machine for each of them. The rest of this crate runs trials through the trait `Arena`
//! only.

use std::path::Path;

use pagetide_arena::doctor::{Diagnosis, Piece, State};
use pagetide_arena::{Arena, Options};
use pagetide_exact::Exact;
use pagetide_host::Host;
use pagetide_record::ArenaKind;
use pagetide_source::tools;

use crate::error::LabError;

/// Kinds of arena that this version can open.
pub const KINDS: [ArenaKind; 3] = [ArenaKind::Exact, ArenaKind::Vm, ArenaKind::Host];

/// Opens the arena of this kind. Fails if this machine lacks something that the arena needs.
pub(crate) fn open(
    kind: ArenaKind,
    options: Options,
    say: Box<dyn Fn(&str) + Send + Sync>,
) -> Result<Box<dyn Arena>, LabError> {
    match kind {
        ArenaKind::Exact => Ok(Box::new(Exact::open(options, say)?)),
        ArenaKind::Host => {
            let program = pagetide_exact::program::digest();
            Ok(Box::new(Host::open(options, program, say)?))
        }
        ArenaKind::Vm => Ok(Box::new(Exact::open_vm(options, say)?)),
    }
}

/// Checks this machine for each arena and returns the results. `cache` and `store` are the paths of the folders that
/// commands would use.
pub fn examine(cache: &Path, store: &Path) -> Vec<Piece> {
    let mut pieces = pagetide_exact::doctor::examine(cache, store);
    pieces.push(kernel_builds().of(ArenaKind::Exact));
    let vm = match pagetide_exact::doctor::kvm(cache) {
        Ok(found) => Diagnosis::works("arena", found),
        Err(why) => Diagnosis::new(
            "arena",
            State::Limits,
            format!("{why}; trials run with --emulated only, and their times mean nothing"),
            "use a machine with /dev/kvm that starts guests",
        ),
    };
    pieces.push(vm.of(ArenaKind::Vm));
    let host = pagetide_host::doctor::examine(cache);
    pieces.extend(host.into_iter().map(|found| found.of(ArenaKind::Host)));
    pieces
}

/// Returns whether kernels can be built from source on this machine, and what is missing.
fn kernel_builds() -> Diagnosis {
    let missing = tools::missing();
    if missing.is_empty() {
        return Diagnosis::works(
            "kernel builds",
            "compiler and tools are there, for --patch and --source",
        );
    }
    let names: Vec<&str> = missing.iter().map(|missing| missing.name).collect();
    let found = format!(
        "{} missing: --patch and --source cannot build",
        names.join(", ")
    );
    Diagnosis::new(
        "kernel builds",
        State::Limits,
        found,
        tools::remedy(&missing),
    )
}
