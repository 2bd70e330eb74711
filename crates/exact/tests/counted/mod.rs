//! A guest of a few hundred instructions, all counted by hand, and an emulator that runs it with the plugin.
//!
//! The guest is not a kernel: it sets up page tables and a handler of page faults, and then calls functions. Some
//! functions leave a block of code early: by a fault in the middle of the block, by a fault in a repeated instruction,
//! or by an access to a device.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]
#![allow(dead_code, reason = "each test uses a part")]

use std::arch::global_asm;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use pagetide_exact::emulator::Emulator;
use pagetide_exact::memory;
use pagetide_exact::profiler::{Counted, PassCounts, Profiler, Range};
use pagetide_profile::{Annotation, Profile};
use pagetide_quantity::Nanos;
use pagetide_testing::usage::processor_of_children;

/// Physical address at which the guest is loaded and runs.
pub const LOAD: u64 = 0x10_0000;

// Multiboot specification 0.6.96, section 3.1: a header with addresses, for a file that is not ELF.
global_asm!(
    r#"
    .pushsection .rodata.profiled_guest, "a"
    .set LOAD, 0x100000
    .globl guest_begin
guest_begin:
    .code32
    .long 0x1badb002, 0x00010000, -(0x1badb002 + 0x00010000)
    .long LOAD, LOAD, 0, 0, LOAD + guest_start - guest_begin

    .globl guest_start
guest_start:
    // Tables at 2 MiB: identity for the first 4 MiB, 4 to 6 MiB not present, and the interrupt controller.
    movl $0x201003, 0x200000
    movl $0x202003, 0x201000
    movl $0x204003, 0x201018
    movl $0x000083, 0x202000
    movl $0x200083, 0x202008
    movl $0x203003, 0x202010
    movl $0xfee00093, 0x204fb8
    // Vector 14, the page fault.
    movl $(0x80000 + guest_fault - guest_begin), 0x2050e0
    movl $0x108e00, 0x2050e4
    movl $0x200000, %eax
    movl %eax, %cr3
    movl $0x220, %eax
    movl %eax, %cr4
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80000001, %eax
    movl %eax, %cr0
    lgdt LOAD + guest_gdtr - guest_begin
    ljmp $8, $(LOAD + guest_long - guest_begin)
guest_gdt:
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff
guest_gdtr:
    .word 23
    .long LOAD + guest_gdt - guest_begin
guest_idtr:
    .word 0xfff
    .quad 0x205000

    .code64
guest_long:
    movl $16, %eax
    movl %eax, %ss
    movl %eax, %ds
    movl $0x1ff000, %esp
    lidt guest_idtr(%rip)
    jmp guest_main

    .globl guest_main
guest_main:
    lfence
    rdtsc
    .byte 0x0f, 0x1f, 0x80
    .long 0x50475450
    movl %eax, %r14d
    shlq $32, %rdx
    orq %rdx, %r14
    call guest_loop
    movl $77, %ebx
1:  call guest_leaf
    decl %ebx
    jnz 1b
    call guest_touches
    call guest_strings
    call guest_string_before_fault
    movl $10, %ebx
1:  call guest_device
    decl %ebx
    jnz 1b
    call guest_jumps
    call guest_crosses
    call guest_crosses
    call guest_crosses_first
    call guest_crosses_first
    call guest_matrix
    movl guest_work(%rip), %eax
    cmpl $1, %eax
    jne 1f
    call guest_sweep
1:  cmpl $2, guest_work(%rip)
    jne 1f
    call guest_random
1:
    movl $(LOAD + guest_leaf - guest_begin), 0x1fe000
    call *0x1fe000
    cmpxchg16b 0x1fd000
    lfence
    rdtsc
    .byte 0x0f, 0x1f, 0x80
    .long 0x50475451
    shlq $32, %rdx
    orq %rdx, %rax
    subq %r14, %rax
    movl $8, %ecx
    movl $0x402, %edx
1:  outb %al, %dx
    shrq $8, %rax
    decl %ecx
    jnz 1b
    movl $0x501, %edx
    movb $0x20, %al
    outb %al, %dx
1:  jmp 1b

    .globl guest_loop
guest_loop:
    movl $1000, %ecx
1:  decl %ecx
    jnz 1b
    ret

    .globl guest_leaf
guest_leaf:
    nop
    ret

    .globl guest_touches
guest_touches:
    movl $0x400000, %edi
    movl $64, %ecx
1:  addl $1, %eax
    movl %eax, (%rdi)
    addq $4096, %rdi
    decl %ecx
    jnz 1b
    ret

    .globl guest_strings
guest_strings:
    movl $0x440000, %edi
    movl $6144, %ecx
    rep stosb
    ret

    .globl guest_string_before_fault
guest_string_before_fault:
    movl $0x441000, %edi
    movl $16, %ecx
    rep stosb
    movl %eax, 0x442000
    ret

    .globl guest_device
guest_device:
    movl $0xfee00020, %eax
    movl (%rax), %edx
    nop
    nop
    movl (%rax), %edx
    nop
    ret

    .globl guest_jumps
guest_jumps:
    movl $(LOAD + guest_leaf - guest_begin), 0x1fe008
    jmp *0x1fe008

    // Multiplies two matrices of 64 by 64 numbers of 8 bytes. The rows of the first and the columns of the second are
    // read, and each number of the third is written once.
    .globl guest_matrix
guest_matrix:
    movl $0x300000, %esi
    movl $0x320000, %edi
    movl $64, %r8d
1:  movl $0x310000, %ebx
    movl $64, %r9d
2:  xorl %eax, %eax
    movq %rsi, %r10
    movq %rbx, %r11
    movl $64, %ecx
3:  movq (%r10), %rdx
    imulq (%r11), %rdx
    addq %rdx, %rax
    addq $8, %r10
    addq $512, %r11
    decl %ecx
    jnz 3b
    movq %rax, (%rdi)
    addq $8, %rdi
    addq $8, %rbx
    decl %r9d
    jnz 2b
    addq $512, %rsi
    decl %r8d
    jnz 1b
    ret

    // Reads a mebibyte in steps of 8 bytes, 800 times.
    .globl guest_sweep
guest_sweep:
    movl $800, %ebx
1:  movl $0x300000, %esi
    movl $131072, %ecx
2:  movq (%rsi), %rax
    addq $8, %rsi
    decl %ecx
    jnz 2b
    decl %ebx
    jnz 1b
    ret

    // Reads 20 million times at random places in a mebibyte.
    .globl guest_random
guest_random:
    movl $20000000, %ecx
    movl $1, %eax
1:  imull $1664525, %eax, %eax
    addl $1013904223, %eax
    movl %eax, %edx
    shrl $12, %edx
    andl $0xffff8, %edx
    movq 0x300000(%rdx), %rsi
    decl %ecx
    jnz 1b
    ret
    // The work that the guest does beside what is counted by hand: 0 for none.
    .globl guest_work
    .balign 4
guest_work:
    .long 0

    .globl guest_fault
guest_fault:
    pushq %rax
    pushq %rdx
    movq %cr2, %rax
    movq %rax, %rdx
    shrq $12, %rdx
    subl $0x400, %edx
    andq $-4096, %rax
    orq $3, %rax
    movq %rax, 0x203000(, %rdx, 8)
    popq %rdx
    popq %rax
    call guest_leaf
    addq $8, %rsp
    iretq
    // The second instruction crosses the end of a page, after a load.
    .org 0xff4
    .globl guest_crosses
guest_crosses:
    movl 0x1fd000, %eax
    addl $0x12345678, %ecx
    ret
    // A load that crosses the end of a page, alone in its block, and then an access by a helper function of the emulator.
    .org 0x1ffa
    .globl guest_crosses_first
guest_crosses_first:
    nop
    nop
    movl 0x1fd000, %eax
    testl %eax, %eax
    js 1f
    cmpxchg16b 0x1fd000
1:  ret
    .globl guest_end
guest_end:
    .popsection
"#,
    options(att_syntax)
);

unsafe extern "C" {
    static guest_begin: u8;
    static guest_main: u8;
    static guest_loop: u8;
    static guest_leaf: u8;
    static guest_touches: u8;
    static guest_strings: u8;
    static guest_string_before_fault: u8;
    static guest_device: u8;
    static guest_jumps: u8;
    static guest_matrix: u8;
    static guest_sweep: u8;
    static guest_work: u8;
    static guest_fault: u8;
    static guest_crosses: u8;
    static guest_crosses_first: u8;
    static guest_end: u8;
}

/// Offset of a label from the guest's first byte.
fn offset(label: *const u8) -> usize {
    label.addr() - (&raw const guest_begin).addr()
}

/// Address ranges of the functions of the guest, with their names.
pub fn ranges() -> Vec<Range> {
    [
        ("main", &raw const guest_main),
        ("loop", &raw const guest_loop),
        ("leaf", &raw const guest_leaf),
        ("touches", &raw const guest_touches),
        ("strings", &raw const guest_strings),
        ("string before fault", &raw const guest_string_before_fault),
        ("device", &raw const guest_device),
        ("jumps", &raw const guest_jumps),
        ("matrix", &raw const guest_matrix),
        ("work", &raw const guest_sweep),
        ("asm_exc_page_fault", &raw const guest_fault),
        ("crosses", &raw const guest_crosses),
        ("crosses first", &raw const guest_crosses_first),
        ("end", &raw const guest_end),
    ]
    .map(|(name, label)| Range {
        start: LOAD + offset(label) as u64,
        name: name.to_owned(),
        module: None,
    })
    .into()
}

/// Bytes of the code that the guest runs.
pub fn image() -> &'static [u8] {
    let length = offset(&raw const guest_end);
    // SAFETY: the bytes between both labels are assembled as one piece.
    unsafe { std::slice::from_raw_parts(&raw const guest_begin, length) }
}

/// Work that the guest does beside what is counted by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// None.
    None = 0,
    /// Reads in ascending order, 104,857,600 times.
    Sweep = 1,
    /// Reads at random places, 20 million times.
    Random = 2,
}

/// What the plugin found in a guest.
pub struct Found {
    /// Profile of the guest.
    pub profile: Profile,
    /// Executions of the watched instructions.
    pub executed: BTreeMap<u64, u64>,
    /// Instructions of the annotated function; `None` if none is annotated.
    pub annotation: Option<Annotation>,
    /// Recorded references in their stored form; empty if none were asked for.
    pub references: Vec<u8>,
    /// Processor time of the emulator. Wrong if the process had other children in this time.
    pub processor: Duration,
}

/// Runs the guest under an emulator with the plugin.
pub fn run(emulator: &Emulator, counted: Counted<'_>, work: Work) -> Found {
    let mut image = image().to_vec();
    image[offset(&raw const guest_work)] = work as u8;
    let image = memory::holding("guest", &image).unwrap();
    let (console, errors) = (
        memory::anonymous("console").unwrap(),
        memory::anonymous("errors").unwrap(),
    );
    let profiler = Profiler::new(counted).unwrap();
    let console_path = memory::path(console.as_raw_fd());
    let mut arguments: Vec<String> = [
        "-accel",
        "tcg",
        "-icount",
        "shift=0,sleep=off",
        "-m",
        "32",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-serial",
        "none",
        "-no-reboot",
        "-device",
        "isa-debug-exit,iobase=0x501,iosize=1",
        "-device",
        "isa-debugcon,iobase=0x402,chardev=console",
        "-kernel",
    ]
    .map(str::to_owned)
    .into();
    arguments.push(memory::path(image.as_raw_fd()));
    arguments.extend([
        "-chardev".to_owned(),
        format!("file,id=console,path={console_path}"),
    ]);
    arguments.extend(profiler.arguments());
    let mut inherited = vec![image.as_raw_fd(), console.as_raw_fd()];
    inherited.extend(profiler.fds());
    let before = processor_of_children();
    let mut running = emulator.start(&arguments, &inherited, &errors).unwrap();
    let status = running.wait().unwrap();
    let processor = processor_of_children().saturating_sub(before);
    assert_eq!(status.code(), Some(0x41), "{}", memory::text(&errors));
    // The firmware writes to the console too.
    let mut time = [0; 8];
    let size = console.metadata().unwrap().len();
    console.read_exact_at(&mut time, size - 8).unwrap();
    let elapsed = Nanos(u64::from_le_bytes(time));
    let mut references = Vec::new();
    if let Some((mut file, _)) = profiler.references().unwrap() {
        file.read_to_end(&mut references).unwrap();
    }
    let PassCounts {
        profile,
        executed,
        annotation,
    } = profiler.profile(elapsed).unwrap().unwrap();
    Found {
        profile,
        executed,
        annotation,
        references,
        processor,
    }
}
