//! The emulator's interface for plugins, in both of its forms.
//!
//! Version 1 (QEMU 7.2) adds to a plain number at an address. Since version 2, inline additions go to a *scoreboard*,
//! memory of the emulator with one element for each CPU; and since version 3, an instruction's bytes are copied to the
//! caller. Functions are looked up by name, so that one object serves both forms. Source: QEMU
//! `include/qemu/qemu-plugin.h`.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute_copy;
use core::ptr::null_mut;

use crate::heap::calloc;

/// Identity of a loaded plugin.
pub type Id = u64;
/// Handle of a translated block or of an instruction, valid within the callback of a translation.
pub type Handle = *mut c_void;
/// Callback before an instruction is executed.
pub type OnExec = extern "C" fn(c_uint, *mut c_void);
/// Callback after an access to memory: CPU, description of the access, virtual address.
pub type OnAccess = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// What the emulator tells a plugin about itself. Only the first fields are used.
#[repr(C)]
pub struct Info {
    _target: *const c_char,
    _oldest: c_int,
    /// Version of the emulator's interface.
    pub version: c_int,
}

/// All accesses, reads and writes. QEMU 7.2 mistakes one for the other if only one kind is asked for (`op_rw` in
/// `accel/tcg/plugin-gen.c`), so callbacks ask for the kind themselves.
const ANY_ACCESS: c_int = 3;
/// An inline addition is the only operation of version 1, and has the same number in later versions.
const ADD: c_int = 0;
/// Callbacks that neither read nor write registers.
const NO_REGISTERS: c_int = 0;
/// First version of the interface that copies an instruction's bytes.
const COPIES: c_int = 3;

/// A number on a scoreboard.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    board: *mut c_void,
    offset: usize,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Address of a function that this process exports; null if there is none.
fn exported(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string; the null handle stands for all objects of the process (`RTLD_DEFAULT`).
    unsafe { dlsym(null_mut(), name.as_ptr()) }
}

/// True if the emulator's interface has scoreboards, so is of version 2 or later.
pub fn has_boards() -> bool {
    !exported(c"qemu_plugin_scoreboard_new").is_null()
}

/// Numbers to which translated code adds inline.
enum Numbers {
    /// Version 1: plain memory of this plugin.
    Plain,
    /// Version 2 and later: the scoreboard that contains all numbers.
    Board(*mut c_void),
}

/// The emulator's functions and the counted numbers.
pub struct Api {
    version: c_int,
    numbers: Numbers,
    values: *mut u64,
    count: usize,
    n_insns: unsafe extern "C" fn(Handle) -> usize,
    get_insn: unsafe extern "C" fn(Handle, usize) -> Handle,
    insn_vaddr: unsafe extern "C" fn(Handle) -> u64,
    insn_size: unsafe extern "C" fn(Handle) -> usize,
    insn_data: *mut c_void,
    on_exec: unsafe extern "C" fn(Handle, OnExec, c_int, *mut c_void),
    on_access: unsafe extern "C" fn(Handle, OnAccess, c_int, c_int, *mut c_void),
    on_translation: unsafe extern "C" fn(Id, extern "C" fn(Id, Handle)),
    is_store: unsafe extern "C" fn(u32) -> bool,
    add: *mut c_void,
    find: unsafe extern "C" fn(*mut c_void, c_uint) -> *mut c_void,
}

/// Stands for a function that version 1 does not have and never calls.
unsafe extern "C" fn no_board(_: *mut c_void, _: c_uint) -> *mut c_void {
    null_mut()
}

/// The function with this name, as a value of a function type.
fn function<F>(name: &CStr) -> Option<F> {
    let found = exported(name);
    // SAFETY: all types asked for are pointers to functions of the C ABI; the emulator's function of this name has the
    // type written in its header.
    (!found.is_null()).then(|| unsafe { transmute_copy(&found) })
}

impl Api {
    /// Finds the emulator's functions and makes `count` numbers of zero. `None` if a function is missing.
    pub fn new(version: c_int, count: usize) -> Option<Self> {
        let boards = has_boards();
        let (numbers, values) = if boards {
            let new: unsafe extern "C" fn(usize) -> *mut c_void =
                function(c"qemu_plugin_scoreboard_new")?;
            // SAFETY: an element of all numbers is made for each CPU.
            let board = unsafe { new(count * size_of::<u64>()) };
            // The element of the only CPU can be found when that CPU exists.
            (Numbers::Board(board), null_mut())
        } else {
            // SAFETY: a plain allocation, never freed.
            (Numbers::Plain, unsafe { calloc(count, size_of::<u64>()) }.cast::<u64>())
        };
        if !boards && values.is_null() {
            return None;
        }
        let names = if boards {
            [
                c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu",
                // Its name since QEMU 11.
                c"qemu_plugin_register_inline_per_vcpu",
            ]
        } else {
            [c"qemu_plugin_register_vcpu_insn_exec_inline"; 2]
        };
        let add = match exported(names[0]) {
            none if none.is_null() => exported(names[1]),
            found => found,
        };
        let insn_data = exported(c"qemu_plugin_insn_data");
        if add.is_null() || insn_data.is_null() {
            return None;
        }
        Some(Self {
            version,
            numbers,
            values,
            count,
            n_insns: function(c"qemu_plugin_tb_n_insns")?,
            get_insn: function(c"qemu_plugin_tb_get_insn")?,
            insn_vaddr: function(c"qemu_plugin_insn_vaddr")?,
            insn_size: function(c"qemu_plugin_insn_size")?,
            insn_data,
            on_exec: function(c"qemu_plugin_register_vcpu_insn_exec_cb")?,
            on_access: function(c"qemu_plugin_register_vcpu_mem_cb")?,
            on_translation: function(c"qemu_plugin_register_vcpu_tb_trans_cb")?,
            is_store: function(c"qemu_plugin_mem_is_store")?,
            add,
            find: function(c"qemu_plugin_scoreboard_find").unwrap_or(no_board),
        })
    }

    /// The counted numbers. Translated code changes them between callbacks only.
    pub fn values(&mut self) -> &mut [u64] {
        if let Numbers::Board(board) = self.numbers
            && self.values.is_null()
        {
            // SAFETY: this is called by the only CPU, number 0, so that the emulator never moves its element.
            self.values = unsafe { (self.find)(board, 0).cast() };
        }
        // SAFETY: `values` points to `count` numbers that live as long as the process. The only CPU's thread is in a
        // callback of this plugin, so no translated code runs.
        unsafe { core::slice::from_raw_parts_mut(self.values, self.count) }
    }

    /// Calls `translated` for each block that the emulator translates.
    pub fn translations(&self, id: Id, translated: extern "C" fn(Id, Handle)) {
        // SAFETY: the callback lives as long as the process.
        unsafe { (self.on_translation)(id, translated) }
    }

    /// Number of instructions of a block.
    pub fn length(&self, block: Handle) -> usize {
        // SAFETY: the handle is the one that the emulator passed to the callback in progress.
        unsafe { (self.n_insns)(block) }
    }

    /// An instruction of a block, by its position.
    pub fn insn(&self, block: Handle, at: usize) -> Handle {
        // SAFETY: as for `length`; the position is below the length.
        unsafe { (self.get_insn)(block, at) }
    }

    /// Virtual address of an instruction.
    pub fn address(&self, insn: Handle) -> u64 {
        // SAFETY: as for `length`.
        unsafe { (self.insn_vaddr)(insn) }
    }

    /// Bytes of an instruction; those after its end are zero.
    pub fn bytes(&self, insn: Handle) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        // SAFETY: as for `length`. The form of the function follows from the version; the plain form returns a pointer
        // to `size` bytes that live as long as the callback.
        let size = unsafe {
            let size = (self.insn_size)(insn).min(bytes.len());
            if self.version >= COPIES {
                let copy: unsafe extern "C" fn(Handle, *mut c_void, usize) -> usize =
                    transmute_copy(&self.insn_data);
                copy(insn, bytes.as_mut_ptr().cast(), size);
            } else {
                let data: unsafe extern "C" fn(Handle) -> *const u8 =
                    transmute_copy(&self.insn_data);
                core::ptr::copy_nonoverlapping(data(insn), bytes.as_mut_ptr(), size);
            }
            size
        };
        (bytes, size)
    }

    /// Adds `amount` to the number at `index` before each execution of an instruction.
    pub fn add(&self, insn: Handle, index: usize, amount: u64) {
        // SAFETY: as for `length`; the number lives as long as the process.
        unsafe {
            match self.numbers {
                Numbers::Plain => {
                    let add: unsafe extern "C" fn(Handle, c_int, *mut u64, u64) =
                        transmute_copy(&self.add);
                    add(insn, ADD, self.values.add(index), amount);
                }
                Numbers::Board(board) => {
                    let add: unsafe extern "C" fn(Handle, c_int, Entry, u64) =
                        transmute_copy(&self.add);
                    let offset = index * size_of::<u64>();
                    add(insn, ADD, Entry { board, offset }, amount);
                }
            }
        }
    }

    /// Calls `before` with `data` before each execution of an instruction.
    pub fn before(&self, insn: Handle, before: OnExec, data: u64) {
        // SAFETY: as for `length`; the data is a number, never followed as a pointer.
        unsafe { (self.on_exec)(insn, before, NO_REGISTERS, data as *mut c_void) }
    }

    /// Calls `after` with `data` after each access of an instruction to memory.
    pub fn after(&self, insn: Handle, after: OnAccess, data: u64) {
        // SAFETY: as for `before`.
        unsafe { (self.on_access)(insn, after, NO_REGISTERS, ANY_ACCESS, data as *mut c_void) }
    }

    /// True if an access writes, by its description.
    pub fn is_store(&self, access: u32) -> bool {
        // SAFETY: the description is the one that the emulator passed to the callback in progress.
        unsafe { (self.is_store)(access) }
    }
}
