//! The emulator's plugin interface, in an older and a newer form.
//!
//! In version 1 (QEMU 7.2), an inline addition changes a plain number at an address. Since version 2, it changes a
//! number on a *scoreboard*: memory of the emulator with one element for each CPU. Since version 3, the emulator copies
//! the bytes of an instruction to the caller instead of returning a pointer. Functions are looked up by name at run
//! time, so that one shared object works with all versions. Source: QEMU `include/qemu/qemu-plugin.h`.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute_copy;
use core::ptr::null_mut;

use crate::heap::calloc;

/// Identifier that the emulator gives to a loaded plugin.
pub type Id = u64;
/// Handle of a translated block or of an instruction, valid only during the translation callback.
pub type Handle = *mut c_void;
/// Callback before an instruction is executed. Arguments: CPU, data of the callback.
pub type OnExec = extern "C" fn(c_uint, *mut c_void);
/// Callback after an access to memory. Arguments: CPU, description of the access, virtual address, data of the
/// callback.
pub type OnAccess = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// Information about the emulator that a plugin gets when it is loaded. Only the first fields are declared.
#[repr(C)]
pub struct Info {
    _target: *const c_char,
    _oldest: c_int,
    /// Version of the emulator's plugin interface.
    pub version: c_int,
}

/// Selects callbacks for both reads and writes. If only one kind is selected, QEMU 7.2 confuses the two (`op_rw` in
/// `accel/tcg/plugin-gen.c`), so callbacks check the kind themselves.
const ANY_ACCESS: c_int = 3;
/// Number of the inline operation that adds. It is the only operation of version 1, and has the same number in later
/// versions.
const ADD: c_int = 0;
/// Flag of callbacks that neither read nor write registers.
const NO_REGISTERS: c_int = 0;
/// First version of the interface in which the emulator copies an instruction's bytes.
const COPIES: c_int = 3;

/// Place of a number on a scoreboard, as the emulator's functions expect it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    board: *mut c_void,
    offset: usize,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Address of the function with this name in this process; null if there is none.
fn exported(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string; the null handle stands for all objects of the process (`RTLD_DEFAULT`).
    unsafe { dlsym(null_mut(), name.as_ptr()) }
}

/// True if the emulator's interface has scoreboards, and therefore has version 2 or later.
pub fn has_boards() -> bool {
    !exported(c"qemu_plugin_scoreboard_new").is_null()
}

/// Location of the counted numbers, to which translated code adds inline.
enum Numbers {
    /// Version 1: plain memory of this plugin.
    Plain,
    /// Version 2 and later: the scoreboard that contains all numbers.
    Board(*mut c_void),
}

/// Number of the kinds of accesses that are kept; a power of two.
const KINDS: usize = 16;

/// Kind of an access to memory, by the description that the emulator gives of it.
#[derive(Clone, Copy)]
struct Access {
    description: u32,
    is_store: bool,
    size: u64,
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
    size_shift: unsafe extern "C" fn(u32) -> c_uint,
    place: unsafe extern "C" fn(u32, u64) -> *const c_void,
    is_io: unsafe extern "C" fn(*const c_void) -> bool,
    add: *mut c_void,
    find: unsafe extern "C" fn(*mut c_void, c_uint) -> *mut c_void,
    /// The latest accesses of some kinds, so that the emulator is rarely asked for them.
    kinds: [Access; KINDS],
}

/// Placeholder for `qemu_plugin_scoreboard_find` in version 1, which lacks this function. Never called.
unsafe extern "C" fn no_board(_: *mut c_void, _: c_uint) -> *mut c_void {
    null_mut()
}

/// Looks up a function of the emulator by name. `F` must be the type of a pointer to this function. `None` if there is
/// no function of this name.
pub fn function<F>(name: &CStr) -> Option<F> {
    let found = exported(name);
    // SAFETY: all types asked for are pointers to functions of the C ABI; the emulator's function of this name has the
    // type written in its header.
    (!found.is_null()).then(|| unsafe { transmute_copy(&found) })
}

impl Api {
    /// Looks up the emulator's functions and allocates `count` numbers, all zero. `None` if a function or memory is
    /// missing.
    pub fn new(version: c_int, count: usize) -> Option<Self> {
        let boards = has_boards();
        let (numbers, values) = if boards {
            let new: unsafe extern "C" fn(usize) -> *mut c_void =
                function(c"qemu_plugin_scoreboard_new")?;
            // SAFETY: the emulator allocates an element for each CPU, with room for all numbers.
            let board = unsafe { new(count * size_of::<u64>()) };
            // The address of the element is looked up later, when the only CPU exists.
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
                // Name of the function since QEMU 11.
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
            size_shift: function(c"qemu_plugin_mem_size_shift")?,
            place: function(c"qemu_plugin_get_hwaddr")?,
            is_io: function(c"qemu_plugin_hwaddr_is_io")?,
            add,
            find: function(c"qemu_plugin_scoreboard_find").unwrap_or(no_board),
            kinds: [Access {
                description: u32::MAX,
                is_store: false,
                size: 0,
            }; KINDS],
        })
    }

    /// The counted numbers. They change only between callbacks, when translated code runs.
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

    /// Handle of the instruction with index `at` in a block.
    pub fn insn(&self, block: Handle, at: usize) -> Handle {
        // SAFETY: as for `length`; the position is below the length.
        unsafe { (self.get_insn)(block, at) }
    }

    /// Virtual address of an instruction.
    pub fn address(&self, insn: Handle) -> u64 {
        // SAFETY: as for `length`.
        unsafe { (self.insn_vaddr)(insn) }
    }

    /// Bytes of an instruction and their number. The bytes after the end of the instruction are zero.
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

    /// True if an access to memory is a write, and its size in bytes. `access` is the description of the access that the
    /// callback received.
    #[inline]
    pub fn kind_of(&mut self, access: u32) -> (bool, u64) {
        // In QEMU 7.2, these bits are the size, and whether the access is a write.
        let known = &mut self.kinds[((access >> 4) ^ (access >> 14)) as usize % KINDS];
        if known.description != access {
            // SAFETY: the description is the one that the emulator passed to the callback in progress.
            let (is_store, shift) = unsafe { ((self.is_store)(access), (self.size_shift)(access)) };
            *known = Access {
                description: access,
                is_store,
                size: 1 << shift.min(6),
            };
        }
        (known.is_store, known.size)
    }

    /// True if an access to memory is a write, as [`Self::kind_of`].
    #[inline]
    pub fn is_store(&mut self, access: u32) -> bool {
        self.kind_of(access).0
    }

    /// True if the access in progress, to the virtual address `at`, is to a device. `access` is the description of the
    /// access that the callback received.
    pub fn is_device(&self, access: u32, at: u64) -> bool {
        // SAFETY: as for `kind_of`; the emulator's answer is valid during the callback, and may be null.
        unsafe {
            let place = (self.place)(access, at);
            !place.is_null() && (self.is_io)(place)
        }
    }
}
