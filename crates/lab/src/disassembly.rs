//! Text of instructions, from the disassembler of binutils.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::time::Duration;

use pagetide_profile::{AnnotatedInstruction, Annotation};
use pagetide_system::child::{self, Failure, Limits};

/// Name of the disassembler.
const OBJDUMP: &str = "objdump";
/// Maximum size of the memory that is disassembled at once, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Limits for running the disassembler. A byte of code gives at most one line of 64 bytes.
const LIMITS: Limits<'_> = Limits {
    time: Duration::from_mins(1),
    output: 64 << 20,
    stop: &|| false,
};
/// Machine code of `nop`, which fills places whose code is not known. A `nop` is one byte long, so the instruction
/// after it is decoded from its start.
const NOP: u8 = 0x90;

/// Returns the text of each instruction of an annotation, in the order of its lines, in AT&T syntax, which kernel
/// developers are used to; or its bytes, if the disassembler shows no instruction there. If the disassembler cannot be
/// run or fails, the error is a message for the user.
pub fn disassembly(annotation: &Annotation) -> Result<Vec<String>, String> {
    let mut symbols: BTreeMap<(&str, Option<&str>), Vec<&AnnotatedInstruction>> = BTreeMap::new();
    for line in &annotation.lines {
        let key = (line.symbol.as_str(), line.module.as_deref());
        symbols.entry(key).or_default().push(line);
    }
    let mut known: HashMap<(&str, u64), String> = HashMap::new();
    for ((symbol, _), lines) in symbols {
        for (address, text) in of_symbol(&lines)? {
            known.insert((symbol, address), text);
        }
    }
    let text = |line: &AnnotatedInstruction| {
        let found = known.get(&(line.symbol.as_str(), line.address));
        found.cloned().unwrap_or_else(|| hex(&line.bytes))
    };
    Ok(annotation.lines.iter().map(text).collect())
}

/// Formats bytes as in listings: two hexadecimal digits each, separated by spaces.
pub fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

/// Returns addresses and texts of the instructions of one symbol. Instructions too far from the first one are left out.
/// The error is a message for the user, for example that objdump is not installed.
fn of_symbol(lines: &[&AnnotatedInstruction]) -> Result<Vec<(u64, String)>, String> {
    let Some(first) = lines.iter().map(|line| line.address).min() else {
        return Ok(Vec::new());
    };
    let mut code = Vec::new();
    for line in lines.iter().filter(|line| line.address - first < MAX_BYTES) {
        let start = usize::try_from(line.address - first).unwrap_or(0);
        let end = start + line.bytes.len();
        if code.len() < end {
            code.resize(end, NOP);
        }
        code[start..end].copy_from_slice(&line.bytes);
    }
    let failed =
        |why: io::Error| format!("disassembling needs a temporary file, which fails: {why}");
    let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
    file.write_all(&code).map_err(failed)?;
    let mut objdump = child::command(OBJDUMP);
    objdump.args([
        "-D",
        "-b",
        "binary",
        "-m",
        "i386:x86-64",
        "--no-show-raw-insn",
    ]);
    objdump
        .arg(format!("--adjust-vma={first:#x}"))
        .arg(file.path());
    objdump.env("LC_ALL", "C");
    let output = child::run(&mut objdump, &LIMITS).map_err(|why| match why {
        Failure::Start(why) if why.kind() == io::ErrorKind::NotFound => {
            "objdump is not installed, so instructions are shown as bytes: apt-get install binutils"
                .to_owned()
        }
        _ => format!("objdump {why}, so instructions are shown as bytes"),
    })?;
    if !output.status.success() {
        return Err("objdump failed, so instructions are shown as bytes".to_owned());
    }
    Ok(parsed(&String::from_utf8_lossy(&output.stdout)))
}

/// Parses addresses and texts from the output of objdump, in which a line has an address, a colon, a tab and a text.
fn parsed(output: &str) -> Vec<(u64, String)> {
    let line = |line: &str| {
        let (address, text) = line.trim_start().split_once(":\t")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Some((address, words.join(" ")))
    };
    output.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read_at_their_addresses_also_after_code_that_is_not_known() {
        let listing = "\n/tmp/x:     file format binary\n\n0000000000001000 <.data>:\n    1000:\tpush   %rbp\n    \
                       1001:\tnop\n    1002:\tmov    0x8(%rdi),%rax\n";
        assert_eq!(
            parsed(listing),
            [
                (0x1000, "push %rbp".to_owned()),
                (0x1001, "nop".to_owned()),
                (0x1002, "mov 0x8(%rdi),%rax".to_owned()),
            ]
        );
        let instruction = |address, bytes: &[u8]| AnnotatedInstruction {
            symbol: "f".to_owned(),
            module: None,
            address,
            offset: None,
            bytes: bytes.to_vec(),
            executed: 1,
            target: None,
            source: None,
        };
        let annotation = Annotation {
            lines: vec![
                instruction(0xffff_ffff_8100_0000, &[0x55]),
                instruction(0xffff_ffff_8100_0003, &[0x48, 0x8b, 0x47, 0x08]),
            ],
            ..Annotation::default()
        };
        match disassembly(&annotation) {
            Ok(texts) => assert_eq!(texts, ["push %rbp", "mov 0x8(%rdi),%rax"]),
            Err(why) => assert!(why.contains("objdump"), "{why}"),
        }
    }
}
