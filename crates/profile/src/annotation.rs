//! A function with the number of executions of each of its instructions.

use serde::{Deserialize, Serialize};

/// Name of the blob with an annotation in the record of a profiled pass.
pub const ANNOTATION: &str = "annotation";

/// A line of source code that an instruction belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Path of the file in its source tree.
    pub file: String,
    /// Number of the line, counted from 1.
    pub line: u32,
    /// Text of the line.
    pub text: String,
}

/// An executed instruction of an annotated function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnotatedInstruction {
    /// Name of the symbol that contains the instruction, with the suffixes that compilers add.
    pub symbol: String,
    /// Name of the module or of the program's file that contains the symbol; `None` for the kernel's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Its address; for an instruction of a program, as written in the program's file.
    pub address: u64,
    /// Its distance from the start of the symbol; `None` for an instruction of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Its bytes, as the guest executed them.
    pub bytes: Vec<u8>,
    /// Number of its executions.
    pub executed: u64,
    /// Where it calls or jumps to: the name of another function, or the offset in its own symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Line of source code, if the build of the kernel tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
}

/// Executed instructions of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// Name of the function as it was asked for.
    pub function: String,
    /// Number of instructions that the function executed.
    pub instructions: u64,
    /// Number of its calls.
    pub calls: u64,
    /// Its executed instructions, by symbol and address.
    pub lines: Vec<AnnotatedInstruction>,
}

impl Annotation {
    /// Number of executions of all lines minus the number of instructions of the function. It is 0, unless instructions
    /// at the end of a block faulted, which count twice.
    pub fn surplus(&self) -> i64 {
        let sum: u64 = self.lines.iter().map(|line| line.executed).sum();
        sum.wrapping_sub(self.instructions).cast_signed()
    }
}
