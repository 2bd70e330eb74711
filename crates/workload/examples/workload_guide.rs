//! Writes `docs/workload.md`, the reference of described workloads.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    std::fs::write(
        docs.join("workload.md"),
        pagetide_workload::guide::markdown(),
    )
}
