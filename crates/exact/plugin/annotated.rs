//! Counts the executions of each instruction of some functions.

use alloc::vec::Vec;

/// Maximum number of instructions that are counted one by one.
pub const MAX: usize = 1 << 14;

/// An instruction that is counted.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Number of its function.
    pub function: u32,
    /// Its address; for an instruction of a program, as written in the program's file.
    pub address: u64,
    /// Its bytes; the last element is their number.
    pub bytes: [u8; 16],
}

/// The functions, and the instructions of them that were translated so far.
#[derive(Default)]
pub struct Annotated {
    functions: Vec<u32>,
    pub entries: Vec<Entry>,
}

impl Annotated {
    /// Parses numbers of functions with a plus sign between them. `None` if the text has another form.
    pub fn read(text: &str) -> Option<Self> {
        let functions = text.split('+').map(|number| number.parse().ok());
        Some(Self {
            functions: functions.collect::<Option<_>>()?,
            entries: Vec::new(),
        })
    }

    /// True if the instructions of this function are counted.
    pub fn has(&self, function: u32) -> bool {
        self.functions.contains(&function)
    }

    /// Index of an instruction, which is added if needed; `None` if there are too many.
    pub fn index(&mut self, function: u32, address: u64, code: &[u8]) -> Option<usize> {
        let mut bytes = [0; 16];
        let size = code.len().min(15);
        bytes[..size].copy_from_slice(&code[..size]);
        bytes[15] = size as u8;
        let is_same = |entry: &Entry| {
            (entry.function, entry.address, entry.bytes) == (function, address, bytes)
        };
        let found = self.entries.iter().position(is_same);
        if found.is_none() && self.entries.len() < MAX {
            self.entries.push(Entry {
                function,
                address,
                bytes,
            });
            return Some(self.entries.len() - 1);
        }
        found
    }
}
