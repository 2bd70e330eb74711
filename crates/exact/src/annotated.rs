//! Creates the annotation of a function from its counted instructions: adds to each instruction the function that
//! contains it, its offset there, and the function that it calls or jumps to.

use pagetide_profile::{AnnotatedInstruction, Annotation, Symbol, function_name};

use crate::ranges::Range;

/// An instruction of an annotated function, as counted by the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedInstruction {
    /// Index of its symbol.
    pub symbol: usize,
    /// Its address; for an instruction of a program, as written in the program's file.
    pub address: u64,
    /// Number of its executions.
    pub executed: u64,
    /// Its bytes, little-endian. The last of the 16 bytes is the instruction's length.
    pub code: [u64; 2],
}

impl CountedInstruction {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self
            .code
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let size = usize::from(bytes.pop().unwrap_or(0));
        bytes.truncate(size);
        bytes
    }
}

/// Creates the annotation of the function `name`. `symbols` contains all symbols, `ranges` the functions of the kernel
/// in order of address. Instructions that were not executed are left out.
pub fn annotation(
    name: &str,
    symbols: &[Symbol],
    ranges: &[Range],
    mut instructions: Vec<CountedInstruction>,
) -> Annotation {
    instructions.retain(|one| one.executed > 0);
    instructions.sort_by_key(|one| (one.symbol, one.address));
    let at = |address: u64| {
        let place = ranges.partition_point(|range| range.start <= address);
        ranges.get(place.checked_sub(1)?)
    };
    let mut used: Vec<usize> = instructions.iter().map(|one| one.symbol).collect();
    used.dedup();
    let lines = instructions.iter().map(|one| {
        let symbol = &symbols[one.symbol];
        let range = at(one.address).filter(|_| !symbol.is_program);
        let bytes = one.bytes();
        let target = target(&bytes, one.address).filter(|_| !symbol.is_program);
        let goal = target.and_then(at).zip(target);
        AnnotatedInstruction {
            symbol: symbol.name.clone(),
            module: symbol.module.clone(),
            address: one.address,
            offset: range.map(|range| one.address - range.start),
            executed: one.executed,
            target: goal.map(|(other, target)| match target - other.start {
                offset if range == Some(other) => format!("+{offset:#x}"),
                0 => function_name(&other.name).to_owned(),
                offset => format!("{}+{offset:#x}", other.name),
            }),
            source: None,
            bytes,
        }
    });
    Annotation {
        function: name.to_owned(),
        instructions: used
            .iter()
            .map(|symbol| symbols[*symbol].instructions)
            .sum(),
        calls: used.iter().map(|symbol| symbols[*symbol].calls).sum(),
        lines: lines.collect(),
    }
}

/// Returns the address that an instruction calls or jumps to; `None` if it does neither, or if the instruction does not
/// contain the address. Source: Intel SDM, volume 2, CALL, JMP and Jcc.
fn target(code: &[u8], address: u64) -> Option<u64> {
    let is_prefix = |byte: &&u8| matches!(**byte, 0x2e | 0x3e | 0x66 | 0xf2 | 0xf3);
    let prefixes = code.iter().take_while(is_prefix).count();
    let distance = match code.get(prefixes..)? {
        [0xe8 | 0xe9, rest @ ..] | [0x0f, 0x80..=0x8f, rest @ ..] => {
            i64::from(i32::from_le_bytes(*rest.first_chunk()?))
        }
        [0xeb | 0x70..=0x7f | 0xe0..=0xe3, distance, ..] => i64::from(distance.cast_signed()),
        _ => return None,
    };
    Some((address + code.len() as u64).wrapping_add_signed(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_named_by_their_function_and_what_they_call() {
        let range = |start, name: &str| Range {
            start,
            name: name.to_owned(),
            module: None,
        };
        let ranges = [range(0x1000, "reclaim"), range(0x1100, "free.isra.0")];
        let symbol = |name: &str, instructions| Symbol {
            name: name.to_owned(),
            instructions,
            calls: 3,
            ..Symbol::default()
        };
        let symbols = [symbol("reclaim", 12), symbol("free.isra.0", 1)];
        let counted = |address, executed, bytes: &[u8]| {
            let mut code = [0; 16];
            code[..bytes.len()].copy_from_slice(bytes);
            code[15] = u8::try_from(bytes.len()).unwrap();
            let (words, _) = code.as_chunks::<8>();
            CountedInstruction {
                symbol: 0,
                address,
                executed,
                code: [0, 1].map(|at| u64::from_le_bytes(words[at])),
            }
        };
        let found = annotation(
            "reclaim",
            &symbols,
            &ranges,
            vec![
                counted(0x1005, 4, &[0xe8, 0xf6, 0, 0, 0]),
                counted(0x1000, 5, &[0x0f, 0x1f, 0x44, 0, 0]),
                counted(0x100a, 3, &[0x75, 0xf4]),
                counted(0x1010, 0, &[0x90]),
            ],
        );
        assert_eq!(
            (found.instructions, found.calls, found.lines.len()),
            (12, 3, 3)
        );
        let targets: Vec<Option<&str>> = found
            .lines
            .iter()
            .map(|line| line.target.as_deref())
            .collect();
        assert_eq!(targets, [None, Some("free"), Some("+0x0")]);
        assert_eq!(found.lines[1].offset, Some(5));
        assert_eq!(found.lines[1].bytes, [0xe8, 0xf6, 0, 0, 0]);
    }
}
