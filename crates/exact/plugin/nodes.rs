//! Counts the accesses of programs to slow memory nodes. Built as a shared object that the emulator loads as a
//! plugin.
//!
//! An access counts under three conditions: it is by code of a program (not of the kernel), it happens between the
//! two instructions that mark the start and the end of the scenario, and it misses a cache of 64 lines of 64 bytes.
//! For each of the 64 positions of a line within a page, the cache contains the line that was accessed last. So a
//! program that reads a line byte by byte, or that uses its stack between two accesses, is counted once. There is no
//! other model of a cache. The plugin only counts: it does not change the guest's time, which is its number of
//! instructions.
//!
//! Arguments: each `slow=START-END` is a range of physical addresses, in decimal, of a slow node; END is not part of
//! the range. `out=PATH` is the file to which the counts are written at the end mark: three little-endian numbers of
//! 64 bits, which are [`MAGIC`], the accesses to slow nodes, and the accesses to all nodes.

#![no_std]
#![allow(dead_code, reason = "the shared modules have more than this plugin needs")]

extern crate alloc;

mod api;
mod format;
mod heap;
mod insn;

use alloc::boxed::Box;
use alloc::ffi::CString;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use api::{Api, Handle, Id, Info};
use format::KERNEL;
use insn::Kind;

/// Version of the plugin interface that this plugin asks for; set when the object is loaded.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Sets [`qemu_plugin_version`] before the emulator reads it.
extern "C" fn choose() {
    if api::has_boards() {
        qemu_plugin_version.store(2, Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = choose;

/// First number of the file of counts: the bytes "pgnodes\0".
const MAGIC: u64 = 0x0073_6564_6f6e_6770;
/// Base-2 logarithm of the size of a cache line in bytes.
const LINE_SHIFT: u32 = 6;
/// Number of lines of the cache: one for each position of a line within a page.
const LINES: usize = 64;

/// The emulator's description of the memory that an access goes to.
type Physical = *mut c_void;

struct Counts {
    api: Api,
    /// Finds the memory of an access that has just been made.
    physical_of: unsafe extern "C" fn(u32, u64) -> Physical,
    /// Physical address of an access.
    address_of: unsafe extern "C" fn(Physical) -> u64,
    slow: Vec<[u64; 2]>,
    out: CString,
    is_counting: bool,
    /// For each position of a line within a page, the line that was accessed last: its virtual address without the bits
    /// within the line.
    lines: [u64; LINES],
    accesses: [u64; 2],
}

static COUNTS: AtomicPtr<Counts> = AtomicPtr::new(null_mut());

/// Returns the plugin's only set of counts. All callbacks come from the thread that runs all CPUs, one at a time.
fn counts() -> &'static mut Counts {
    // SAFETY: set once in `qemu_plugin_install` before any callback, and never freed. Callbacks do not nest.
    unsafe { &mut *COUNTS.load(Ordering::Relaxed) }
}

extern "C" fn translated(_: Id, block: Handle) {
    let api = &counts().api;
    for at in 0..api.length(block) {
        let handle = api.insn(block, at);
        let address = api.address(handle);
        if address & KERNEL != 0 {
            continue;
        }
        let (bytes, size) = api.bytes(handle);
        match insn::kind(&bytes, size, address, false) {
            Kind::Mark(which) => api.before(handle, marked, u64::from(which)),
            _ => api.after(handle, accessed, 0),
        }
    }
}

extern "C" fn accessed(_: c_uint, access: u32, at: u64, _: *mut c_void) {
    let counts = counts();
    let line = at >> LINE_SHIFT;
    // If an instruction faults, the CPU accesses the kernel's memory to deliver the fault, and the emulator may call
    // this callback for these accesses too.
    let position = line as usize % LINES;
    if !counts.is_counting || at & KERNEL != 0 || line == counts.lines[position] {
        return;
    }
    counts.lines[position] = line;
    // SAFETY: called within the callback of this access, with its own arguments.
    let physical = unsafe {
        let physical = (counts.physical_of)(access, at);
        if physical.is_null() {
            return;
        }
        (counts.address_of)(physical)
    };
    counts.accesses[1] += 1;
    let is_slow = |range: &[u64; 2]| (range[0]..range[1]).contains(&physical);
    if counts.slow.iter().any(is_slow) {
        counts.accesses[0] += 1;
    }
}

extern "C" fn marked(_: c_uint, which: *mut c_void) {
    let counts = counts();
    if which.is_null() {
        counts.is_counting = true;
        counts.accesses = [0; 2];
        counts.lines = [u64::MAX; LINES];
    } else if counts.is_counting {
        counts.is_counting = false;
        let [slow, all] = counts.accesses;
        let out: Vec<u8> = [MAGIC, slow, all].into_iter().flat_map(u64::to_le_bytes).collect();
        heap::store(&counts.out, &out);
    }
}

/// Parses a decimal number.
fn number(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses `START-END`.
fn range(text: &[u8]) -> Option<[u64; 2]> {
    let dash = text.iter().position(|byte| *byte == b'-')?;
    Some([number(text.get(..dash)?)?, number(text.get(dash + 1..)?)?])
}

/// Called by the emulator when it loads the plugin. Returns 0, or 1 if the plugin cannot work.
///
/// # Safety
/// `info` must be valid, and `values` must point to `count` C strings that live as long as the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    count: c_int,
    values: *const *const c_char,
) -> c_int {
    // SAFETY: the caller guarantees that `info` and `values` are valid.
    let (version, arguments) = unsafe {
        let arguments: Vec<&CStr> = (0..count as usize)
            .map(|at| CStr::from_ptr(*values.add(at)))
            .collect();
        ((*info).version, arguments)
    };
    let made = (|| {
        let (mut slow, mut out) = (Vec::new(), None);
        for argument in arguments {
            let bytes = argument.to_bytes();
            if let Some(value) = bytes.strip_prefix(b"slow=") {
                slow.push(range(value)?);
            } else if let Some(value) = bytes.strip_prefix(b"out=") {
                out = CString::new(value).ok();
            }
        }
        Some(Counts {
            api: Api::new(version, 1)?,
            physical_of: api::function(c"qemu_plugin_get_hwaddr")?,
            address_of: api::function(c"qemu_plugin_hwaddr_phys_addr")?,
            slow,
            out: out?,
            is_counting: false,
            lines: [u64::MAX; LINES],
            accesses: [0; 2],
        })
    })();
    let Some(made) = made else {
        return 1;
    };
    let made = Box::leak(Box::new(made));
    made.api.translations(id, translated);
    COUNTS.store(made, Ordering::Relaxed);
    0
}
