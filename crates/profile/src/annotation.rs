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
    /// Address of the instruction; for an instruction of a program, as written in the program's file.
    pub address: u64,
    /// Distance of the instruction from the start of the symbol, in bytes; `None` for an instruction of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Machine code of the instruction, as the guest executed it.
    pub bytes: Vec<u8>,
    /// Number of times that the instruction was executed.
    pub executed: u64,
    /// Target of a call or jump: the name of another function, or the offset in the same symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Line of source code that the instruction belongs to, if the kernel was built with line information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
}

/// Executed instructions of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// Name of the function as the user gave it.
    pub function: String,
    /// Number of instructions that the function executed.
    pub instructions: u64,
    /// Number of calls of the function.
    pub calls: u64,
    /// Executed instructions of the function, by symbol and address.
    pub lines: Vec<AnnotatedInstruction>,
}

impl Annotation {
    /// Returns the number of executions of all lines minus the number of instructions of the function. It is 0, unless
    /// an instruction at the end of a translation block faulted: it counts twice.
    pub fn surplus(&self) -> i64 {
        let sum: u64 = self.lines.iter().map(|line| line.executed).sum();
        sum.wrapping_sub(self.instructions).cast_signed()
    }
}
