//! Classifies x86-64 instructions for counting: whether an instruction can fault in the middle of a block, and whether
//! it jumps, calls or returns. Source: Intel SDM, volume 2, appendix A (opcode maps).

/// Kind of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Always executed completely, so it can be counted before it is executed.
    Plain,
    /// May access memory, so it may fault or be executed again.
    Memory,
    /// Reads memory and then writes it, so it may fault after the first access.
    Update,
    /// String instruction with a repeat prefix: accesses memory, repeats itself, and ends its block.
    Repeat,
    /// Jumps to an address that it reads from memory.
    Jump,
    /// Calls a function. Contains the address of the function; `None` for an indirect call.
    Call(Option<u64>),
    /// Returns from a function.
    Return,
    /// Enters the kernel (`syscall`).
    Syscall,
    /// Returns from the kernel, an interrupt or a fault (`sysret`, `iret`).
    TrapReturn,
    /// Marks the start (0) or the end (1) of counting.
    Mark(u8),
}

/// Displacement in the instruction that marks the start, `nop dword ptr [rax + MARK]`. This number plus one marks the
/// end. Source: `scenario/src/clock.rs`.
const MARK: u32 = 0x5047_5450;

/// True if the operand that a ModRM byte describes is in memory.
const fn in_memory(modrm: u8) -> bool {
    modrm >> 6 != 3
}

/// True if an instruction with an operand in memory reads the operand and then writes it. `byte(n)` returns byte `n` of
/// the instruction after the prefixes.
fn updates(byte: &impl Fn(usize) -> u8) -> bool {
    let which = (byte(1) >> 3) & 7;
    match byte(0) {
        0x00..=0x3f if byte(0) & 6 == 0 => byte(0) < 0x38,
        0x80..=0x83 => which != 7,
        0x86 | 0x87 | 0x8f | 0xa4 | 0xa5 | 0xc0 | 0xc1 | 0xd0..=0xd3 => true,
        0xf6 | 0xf7 => which == 2 || which == 3,
        0xfe => true,
        0xff => which < 2 || which == 6,
        0x0f => match byte(1) {
            0xa4 | 0xa5 | 0xab | 0xac | 0xad | 0xb0 | 0xb1 | 0xb3 | 0xbb | 0xc0 | 0xc1 | 0xc7 => {
                true
            }
            0xba => (byte(2) >> 3) & 7 > 4,
            _ => false,
        },
        _ => false,
    }
}

/// True if the operand in memory that a ModRM byte of the kernel's code describes is always present: it is on the kernel's
/// stack, in a variable of its image or of a module (relative to the instruction), or in the variables of a CPU (segment
/// `gs`). Such an access cannot fault, and is not to a device. `sib` is the byte after the ModRM byte, and `rex` the REX
/// prefix, 0 if there is none.
const fn is_present(modrm: u8, sib: u8, rex: u8, is_gs: bool) -> bool {
    // REX bits: 1 selects other bases, 2 other indices. Base and index 4 are the stack pointer and no index.
    let is_stack = modrm & 7 == 4 && sib & 0x3f == 0x24 && rex & 3 == 0;
    let is_relative = modrm & 0xc7 == 5;
    is_gs || is_stack || is_relative
}

/// Kind of the instruction of `size` bytes at `address`. `is_kernel` is true if `address` belongs to the kernel. The
/// stack of the kernel is always present, so a push by the kernel cannot fault.
pub fn kind(bytes: &[u8; 16], size: usize, address: u64, is_kernel: bool) -> Kind {
    let mut at = 0;
    let mut repeats = false;
    let (mut rex, mut is_gs) = (0, false);
    while at < 14 {
        match bytes[at] {
            0xf2 | 0xf3 => repeats = true,
            0x65 => is_gs = true,
            0x40..=0x4f => rex = bytes[at],
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x66 | 0x67 | 0xf0 => {}
            _ => break,
        }
        at += 1;
    }
    let byte = |ahead: usize| bytes.get(at + ahead).copied().unwrap_or(0);
    // Prefixes VEX and EVEX contain the bits of a REX prefix.
    let may_be_present = is_kernel && !matches!(byte(0), 0xc4 | 0xc5 | 0x62);
    let modrm = |ahead: usize| {
        let is_present = || is_present(byte(ahead), byte(ahead + 1), rex, is_gs);
        if in_memory(byte(ahead)) && !(may_be_present && is_present()) {
            Kind::Memory
        } else {
            Kind::Plain
        }
    };
    let kind = match byte(0) {
        0x0f => two(byte(1), &byte, &modrm, is_kernel),
        // VEX and EVEX prefixes.
        0xc5 if byte(2) == 0x77 => Kind::Plain,
        0xc5 => modrm(3),
        0xc4 => modrm(4),
        0x62 => modrm(5),
        0x00..=0x3f if byte(0) & 7 < 4 => modrm(1),
        0x50..=0x5f | 0x68 | 0x6a | 0x9c | 0x9d | 0xc9 => stack(is_kernel),
        0x63 | 0x69 | 0x6b | 0x80..=0x8c | 0x8e | 0x8f => modrm(1),
        0xc0 | 0xc1 | 0xc6 | 0xc7 | 0xd0..=0xd3 | 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe => modrm(1),
        0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf if repeats => Kind::Repeat,
        0x6c..=0x6f | 0xa0..=0xa7 | 0xaa..=0xaf | 0xc8 | 0xca | 0xcb | 0xd7 => Kind::Memory,
        0xc2 | 0xc3 => Kind::Return,
        0xcf => Kind::TrapReturn,
        0xe8 => {
            let near = [byte(1), byte(2), byte(3), byte(4)];
            let near = i64::from(i32::from_le_bytes(near));
            Kind::Call(Some((address + size as u64).wrapping_add_signed(near)))
        }
        0xff => match (byte(1) >> 3) & 7 {
            2 => Kind::Call(None),
            4 if in_memory(byte(1)) => Kind::Jump,
            6 if !in_memory(byte(1)) => stack(is_kernel),
            _ => modrm(1),
        },
        _ => Kind::Plain,
    };
    if kind == Kind::Memory && updates(&byte) {
        Kind::Update
    } else {
        kind
    }
}

const fn stack(is_kernel: bool) -> Kind {
    if is_kernel { Kind::Plain } else { Kind::Memory }
}

/// Kind of an instruction whose opcode has two bytes; `code` is the second.
fn two(
    code: u8,
    byte: &impl Fn(usize) -> u8,
    modrm: &impl Fn(usize) -> Kind,
    is_kernel: bool,
) -> Kind {
    match code {
        0x05 => Kind::Syscall,
        0x07 => Kind::TrapReturn,
        0x1f if byte(2) == 0x80 => {
            let displacement = u32::from_le_bytes([byte(3), byte(4), byte(5), byte(6)]);
            match displacement.wrapping_sub(MARK) {
                0 => Kind::Mark(0),
                1 => Kind::Mark(1),
                _ => Kind::Plain,
            }
        }
        // Prefetch hints and long forms of `nop`.
        0x0d | 0x18..=0x1f => Kind::Plain,
        0x06 | 0x08 | 0x09 | 0x0b | 0x0e | 0x30..=0x37 | 0x77 | 0x80..=0x8f | 0xa2 | 0xaa => {
            Kind::Plain
        }
        0xc8..=0xcf => Kind::Plain,
        0xa0 | 0xa1 | 0xa8 | 0xa9 => stack(is_kernel),
        0x38 | 0x3a => modrm(3),
        _ => modrm(2),
    }
}
