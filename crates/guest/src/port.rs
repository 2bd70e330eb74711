//! Port input and output: devices of the emulator that complete each access at once.
//!
//! Each access completes within the instruction that makes it, so the timing of the host cannot affect the guest.
//! Sources: QEMU `docs/specs/fw_cfg.rst`, `docs/specs/pvpanic.rst`, `hw/misc/debugexit.c`.

use std::arch::asm;

/// Port of the debug console, for messages and for the kernel's last output before a panic. Not the usual port 0x402,
/// because the firmware uses that port.
pub const CONSOLE: u16 = 0x4e0;
/// Port of the panic device. Writing 1 pauses the emulator at exactly this instruction.
pub const READY: u16 = 0x505;
/// Port of the exit device. Writing `v` ends the emulator with exit status `2 v + 1`.
pub const EXIT: u16 = 0x501;
const EXIT_DONE: u8 = 0x20;
const EXIT_UNPREPARED: u8 = 0x21;
const FW_CFG_SELECT: u16 = 0x510;
const FW_CFG_DATA: u16 = 0x511;
const FW_CFG_DIRECTORY: u16 = 0x19;
/// Port of the configuration device that takes the upper half of the physical address of a request. The lower half goes
/// to this port plus four.
const FW_CFG_COPY: u16 = 0x514;

/// Gives this process the right to use ports (iopl(2)).
pub fn allow() -> std::io::Result<()> {
    // SAFETY: changes only this process' right to use ports.
    if unsafe { libc::iopl(3) } == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Writes a byte to a port; [`allow`] must have been called.
pub fn out(port: u16, value: u8) {
    // SAFETY: port output to the emulator's own devices touches no memory of this process.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags));
    }
}

fn out_word(port: u16, value: u16) {
    // SAFETY: as in `out`.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags));
    }
}

fn input(port: u16) -> u8 {
    let value: u8;
    // SAFETY: as in `out`.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags));
    }
    value
}

/// Makes the configuration device carry out the request at this physical address. The device does so within the
/// instruction. See [`crate::kernel_memory::Copier`], the only caller.
pub(crate) fn copy(request: u64) {
    let halves = [request >> 32, request & u64::from(u32::MAX)];
    for (port, half) in [FW_CFG_COPY, FW_CFG_COPY + 4].into_iter().zip(halves) {
        let half = u32::try_from(half).unwrap_or_default().to_be();
        // SAFETY: the device reads the request, and writes only the request and the memory that it names. The compiler must
        // assume that any memory may be read or changed, so `nomem` is left out.
        unsafe {
            asm!("out dx, eax", in("dx") port, in("eax") half, options(nostack, preserves_flags));
        }
    }
}

/// Writes text to the debug console.
pub fn say(text: &str) {
    for byte in text.bytes() {
        out(CONSOLE, byte);
    }
}

/// Pauses the emulator at the ready point. Returns when a snapshot taken there is restored.
pub fn ready() {
    out(READY, 1);
}

/// Ends the emulator. `prepared` is false if preparing the guest, a simulated disk, or the guest program failed.
pub fn exit(prepared: bool) -> ! {
    out(EXIT, if prepared { EXIT_DONE } else { EXIT_UNPREPARED });
    // Without the exit device, as in another emulator, power off normally.
    // SAFETY: plain system calls without memory arguments.
    unsafe {
        libc::reboot(libc::RB_POWER_OFF);
        loop {
            libc::pause();
        }
    }
}

/// Returns the selector of the emulator's configuration item called `name`; `None` if there is no such item.
pub fn find(name: &str) -> Option<u16> {
    let long = || u32::from_be_bytes(std::array::from_fn(|_| input(FW_CFG_DATA)));
    out_word(FW_CFG_SELECT, FW_CFG_DIRECTORY);
    // The bound prevents an endless loop if the device is missing. No emulator has nearly this many items.
    for _ in 0..long().min(4096) {
        let _size = long();
        let select = u16::from_be_bytes(std::array::from_fn(|_| input(FW_CFG_DATA)));
        let _reserved: [u8; 2] = std::array::from_fn(|_| input(FW_CFG_DATA));
        let label: [u8; 56] = std::array::from_fn(|_| input(FW_CFG_DATA));
        let end = label
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(label.len());
        if &label[..end] == name.as_bytes() {
            return Some(select);
        }
    }
    None
}

/// Reads the text of the configuration item with this selector, up to the first zero byte. The selector stays valid in
/// a restored snapshot, where the text may be longer or shorter.
pub fn text(select: u16) -> Vec<u8> {
    out_word(FW_CFG_SELECT, select);
    std::iter::repeat_with(|| input(FW_CFG_DATA))
        .take_while(|byte| *byte != 0)
        .collect()
}
