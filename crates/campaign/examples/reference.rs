//! Writes `docs/campaigns.md`, the reference of the keys in campaign files.

use std::fs;
use std::path::Path;

use pagetide_campaign::reference;

fn main() -> std::io::Result<()> {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    fs::create_dir_all(docs)?;
    fs::write(docs.join("campaigns.md"), reference::markdown())
}
