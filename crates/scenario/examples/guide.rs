//! Makes the scenarios' chapter of `GUIDE.md` anew from their definitions.

use std::error::Error;
use std::fs;

use pagetide_scenario::guide;

fn main() -> Result<(), Box<dyn Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../GUIDE.md");
    let guide = guide::renew(&fs::read_to_string(path)?).ok_or_else(|| {
        format!(
            "{path} has no lines `{}` and `{}`",
            guide::BEGIN,
            guide::END
        )
    })?;
    fs::write(path, guide)?;
    Ok(())
}
