//! Writes `docs/scenarios.md` from the definitions of the scenarios.

use std::fs;
use std::path::Path;

use pagetide_scenario::guide;

fn main() -> std::io::Result<()> {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    fs::create_dir_all(docs)?;
    fs::write(docs.join("scenarios.md"), guide::markdown())
}
