//! Regenerates the outputs in README.md and below `docs`. Without an argument: outputs that are stale or were changed
//! by hand, except those that take long. With `all`: every output. With any other word: also outputs whose command
//! contains the word.
//!
//! Outputs that take long use the records of earlier runs in the store named by `PAGETIDE_DOCS_STORE`, so an
//! interrupted run can continue.
//!
//! `make docs` runs this example. The comments that precede the blocks are explained in `pagetide_testing::output`.

use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use pagetide_testing::documents;
use pagetide_testing::output::{self, Block};

/// Width of the tables in the documents.
const COLUMNS: &str = "100";

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().nth(1).filter(|word| !word.is_empty());
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    let sources = output::sources(&repository)?;
    for document in documents::all(&repository)? {
        let path = repository.join(&document);
        let count = read(&path)?.1.len();
        for place in 0..count {
            // The file is read again each time, because an output may take minutes, and the file may have been edited
            // in between.
            let (text, blocks) = read(&path)?;
            let block = blocks
                .get(place)
                .ok_or("the document changed meanwhile: once more")?;
            let is_wanted = wanted
                .as_deref()
                .is_some_and(|word| word == "all" || block.commands.join("\n").contains(word));
            let is_right = block.seal == block.right_seal() && !block.is_stale(&sources);
            let name = format!("{document}:{}: {}", block.line, block.commands.join(" && "));
            if is_right && !is_wanted {
                continue;
            }
            if block.is_long() && !is_wanted {
                println!("{name}\n  left: {} minutes, with DOCS=all", block.minutes);
                continue;
            }
            println!("{name}");
            let shown = block.shown(&made(&repository, block)?)?;
            if shown == block.text {
                println!("  is what it was");
            }
            let (now, _) = read(&path)?;
            if now != text {
                return Err(format!("{document} changed meanwhile: run this once more").into());
            }
            fs::write(&path, block.replaced(&text, shown, &sources))?;
        }
    }
    Ok(())
}

/// Reads a document; returns its text and its blocks of output.
fn read(path: &Path) -> Result<(String, Vec<Block>), Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let blocks = output::blocks(&text)
        .map_err(|faults| format!("{}: {}", path.display(), faults.join("; ")))?;
    Ok((text, blocks))
}

/// Runs the commands of a block in a separate folder and store; returns the output of the last one.
fn made(repository: &Path, block: &Block) -> Result<String, Box<dyn Error>> {
    let tool = std::env::current_exe()?
        .with_file_name("../pagetide")
        .canonicalize()?;
    let folder = tempfile::tempdir()?;
    for name in ["campaigns", "patches"] {
        symlink(repository.join(name), folder.path().join(name))?;
    }
    if let Some(count) = block.numbers {
        fs::write(folder.path().join("numbers"), output::numbers(count))?;
    }
    let kept = std::env::var_os("PAGETIDE_DOCS_STORE").filter(|_| block.is_long());
    let store = kept.map_or_else(|| folder.path().join("store"), PathBuf::from);
    let run = |words: &str| -> Result<String, Box<dyn Error>> {
        let words = words.replacen("pagetide", &tool.display().to_string(), 1);
        let output = Command::new("sh")
            .args(["-c", &words])
            .current_dir(folder.path())
            .env("PAGETIDE_STORE", &store)
            .env("COLUMNS", COLUMNS)
            .env("LC_ALL", "C.UTF-8")
            .output()?;
        // Status 1: a difference was found. Status 3: the result is inconclusive.
        if !matches!(output.status.code(), Some(0 | 1 | 3)) {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{words}` ended with {}: {said}", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    };
    let mut last = String::new();
    for command in &block.commands {
        let mut command = command.clone();
        if command.contains(" RECORD") {
            let list = run("pagetide list records --json --limit 1")?;
            let records: serde_json::Value = serde_json::from_str(&list)?;
            let id = records[0]["id"].as_str().ok_or("no record was made")?;
            command = command.replace(" RECORD", &format!(" {id}"));
        }
        last = run(&command)?;
    }
    Ok(last)
}
