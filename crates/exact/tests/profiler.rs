//! Tests the emulator's plugin on a guest of a few hundred instructions, all counted by hand.
//!
//! The guest is not a kernel: it sets up page tables and a handler of page faults, and then calls functions. Some
//! functions leave a block of code early: by a fault in the middle of the block, by a fault in a repeated instruction,
//! or by an access to a device.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

use std::arch::global_asm;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use pagetide_exact::emulator::Emulator;
use pagetide_exact::memory;
use pagetide_exact::profiler::{Counted, Profiler, Range};
use pagetide_profile::Profile;
use pagetide_quantity::Nanos;
use pagetide_root::{CodeFile, CodeSegment, CodeSymbol};
use pagetide_testing::{Need, skip};

/// First address of the code in its file, for tests in which the code stands for a program.
const START: u64 = 0x7000;
/// Physical address at which the guest is loaded and runs.
const LOAD: u64 = 0x10_0000;

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
    static guest_fault: u8;
    static guest_crosses: u8;
    static guest_end: u8;
}

/// Offset of a label from the guest's first byte.
fn offset(label: *const u8) -> usize {
    label.addr() - (&raw const guest_begin).addr()
}

/// Address ranges of the functions of the guest, with their names.
fn ranges() -> Vec<Range> {
    [
        ("main", &raw const guest_main),
        ("loop", &raw const guest_loop),
        ("leaf", &raw const guest_leaf),
        ("touches", &raw const guest_touches),
        ("strings", &raw const guest_strings),
        ("string before fault", &raw const guest_string_before_fault),
        ("device", &raw const guest_device),
        ("jumps", &raw const guest_jumps),
        ("asm_exc_page_fault", &raw const guest_fault),
        ("crosses", &raw const guest_crosses),
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
fn image() -> &'static [u8] {
    let length = offset(&raw const guest_end);
    // SAFETY: the bytes between both labels are assembled as one piece.
    unsafe { std::slice::from_raw_parts(&raw const guest_begin, length) }
}

/// Runs the guest under an emulator with the plugin. Returns its profile and the executions of the watched
/// instructions.
fn profile(emulator: &Emulator, counted: Counted<'_>) -> (Profile, BTreeMap<u64, u64>) {
    let image = image();
    let image = memory::holding("guest", image).unwrap();
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
    let mut running = emulator.start(&arguments, &inherited, &errors).unwrap();
    let status = running.wait().unwrap();
    assert_eq!(status.code(), Some(0x41), "{}", memory::text(&errors));
    // The firmware writes to the console too.
    let mut time = [0; 8];
    let size = console.metadata().unwrap().len();
    console.read_exact_at(&mut time, size - 8).unwrap();
    let elapsed = Nanos(u64::from_le_bytes(time));
    profiler.profile(elapsed).unwrap().unwrap()
}

/// Instructions and calls of a function; `None` if it was not executed.
fn of(profile: &Profile, name: &str) -> Option<(u64, u64)> {
    let function = profile.functions.iter().find(|one| one.name == name);
    function.map(|one| (one.instructions, one.calls))
}

#[test]
fn every_instruction_is_counted_once_also_where_blocks_are_left_early() {
    let Ok(emulator) = Emulator::find() else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    let ranges = ranges();
    let inside = |name: &str, place: u64| {
        let range = ranges.iter().find(|range| range.name == name).unwrap();
        range.start + place
    };
    // The loop's `decl` and a store that faults are watched, and an address at which no instruction begins.
    let mut watched = [inside("loop", 5), inside("touches", 13), inside("loop", 1)];
    watched.sort_unstable();
    let counted = Counted {
        ranges: &ranges,
        watched: &watched,
        ..Counted::default()
    };
    let (profile, executed) = profile(&emulator, counted);
    assert_eq!(executed[&inside("loop", 5)], 1000);
    assert_eq!(executed[&inside("touches", 13)], 2 * 64);
    assert_eq!(executed[&inside("loop", 1)], 0);
    let found = |name: &str| of(&profile, name);
    assert_eq!(found("loop"), Some((1 + 2 * 1000 + 1, 1)));
    assert_eq!(found("leaf"), Some((2 * (79 + 67), 79 + 67)));
    // Each of 64 stores faults once, in the middle of its block.
    assert_eq!(found("touches"), Some((2 + 5 * 64 + 1, 1)));
    // The repeated instruction is executed once for each byte and once more; it faults in two pages.
    assert_eq!(found("strings"), Some((2 + 6145 + 1, 1)));
    // The repeated instruction is complete, so the fault of the next instruction must not take its count back.
    assert_eq!(found("string before fault"), Some((2 + 17 + 2, 1)));
    // Each access to the device is executed again, alone.
    assert_eq!(found("device"), Some((7 * 10, 10)));
    assert_eq!(found("crosses"), Some((3 * 2, 2)));
    assert_eq!(found("jumps"), Some((2, 1)));
    assert_eq!(found("asm_exc_page_fault"), Some((14 * 67, 67)));
    // The mark and three instructions after it, then those between the calls; the last are a fence and the clock's.
    let main = 4 + 1 + 1 + 3 * 77 + 1 + 1 + 1 + 1 + 3 * 10 + 1 + 2 + 2 + 1 + 2;
    assert_eq!(
        found("main").map(|(instructions, _)| instructions),
        Some(main)
    );
    assert_eq!(profile.gap(), 0, "{} ns", profile.elapsed);
    let paths: Vec<String> = (0..profile.nodes.len())
        .map(|node| profile.path(node)[1..].join(";"))
        .collect();
    let fault = "main;touches;asm_exc_page_fault".to_owned();
    let at = paths.iter().position(|path| *path == fault).unwrap();
    assert_eq!(
        (profile.nodes[at].own, profile.nodes[at].calls),
        (14 * 64, 64)
    );
    assert!(paths.contains(&"main;leaf".to_owned()), "{paths:?}");
}

#[test]
fn code_of_programs_is_found_by_its_bytes_wherever_it_is_mapped_and_the_rest_has_no_name() {
    let Ok(emulator) = Emulator::find() else {
        return skip(Need::Emulator, "QEMU is not installed");
    };
    // The file of the guest has other addresses than the guest runs at. `jumps` and what follows have no symbols.
    let ranges = ranges();
    let named = ranges.iter().zip(ranges.iter().skip(1));
    let symbols = named.take_while(|(range, _)| range.name != "jumps");
    let symbols = symbols.map(|(range, next)| CodeSymbol {
        start: range.start - LOAD + START,
        size: next.start - range.start,
        name: range.name.clone(),
    });
    let segment = |bytes: &[u8], symbols| CodeSegment {
        start: START,
        bytes: bytes.to_vec(),
        symbols,
    };
    let file = |path: &str, segment| CodeFile {
        path: path.to_owned(),
        segments: vec![segment],
    };
    // Another file has the same size, but other bytes.
    let other: Vec<u8> = image().iter().map(|byte| !byte).collect();
    let programs = [
        file("/lib/other.so", segment(&other, Vec::new())),
        file("/usr/bin/guest", segment(image(), symbols.collect())),
    ];
    let counted = Counted {
        programs: &programs,
        ..Counted::default()
    };
    let (profile, _) = profile(&emulator, counted);
    let found = |name: &str| of(&profile, name);
    assert_eq!(found("loop"), Some((1 + 2 * 1000 + 1, 1)));
    assert_eq!(found("leaf"), Some((2 * (79 + 67), 79 + 67)));
    assert_eq!(found("device"), Some((7 * 10, 10)));
    assert!(found("jumps").is_none());
    let none = profile
        .functions
        .iter()
        .find(|one| one.name == "(no symbol)");
    let none = none.unwrap();
    assert_eq!(
        (none.module.as_deref(), none.is_program),
        (Some("guest"), true)
    );
    assert!(none.instructions >= 14 * 67, "{none:?}");
    let paths: Vec<String> = (0..profile.nodes.len())
        .map(|node| profile.path(node).join(";"))
        .collect();
    assert!(
        paths.iter().any(|path| path.ends_with("main;leaf")),
        "{paths:?}"
    );
}
