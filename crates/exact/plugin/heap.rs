//! Memory and files, through functions of the C library that the emulator has loaded.

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{CStr, c_char, c_int, c_void};

unsafe extern "C" {
    /// Allocates memory for `count` elements of `size` bytes, filled with zeros: calloc(3).
    pub fn calloc(count: usize, size: usize) -> *mut c_void;
    fn malloc(size: usize) -> *mut c_void;
    fn realloc(memory: *mut c_void, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn abort() -> !;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn read(file: c_int, buffer: *mut c_void, size: usize) -> isize;
    fn write(file: c_int, buffer: *const c_void, size: usize) -> isize;
    fn close(file: c_int) -> c_int;
}

/// Flag of open(2) for reading. Source: Linux `include/uapi/asm-generic/fcntl.h`.
const O_RDONLY: c_int = 0;
/// Flag of open(2) for writing.
const O_WRONLY: c_int = 1;

struct Libc;

// SAFETY: the C library's functions meet the requirements for layouts aligned to 16 bytes, and no type here needs more.
unsafe impl GlobalAlloc for Libc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size may be asked for.
        unsafe { malloc(layout.size()).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: the caller guarantees that this allocator allocated the memory.
        unsafe { free(memory.cast()) }
    }

    unsafe fn realloc(&self, memory: *mut u8, _: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that this allocator allocated the memory.
        unsafe { realloc(memory.cast(), size).cast() }
    }
}

#[global_allocator]
static LIBC: Libc = Libc;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process, which the controller reports.
    unsafe { abort() }
}

/// The library `alloc` refers to this symbol. It is never called, because panics abort.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// The library `alloc` refers to this symbol. It is never called, because panics abort.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() {}

/// Content of the file at a path; `None` if it cannot be opened. If a read fails, the content ends there.
pub fn content(path: &CStr) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = [0_u8; 1 << 14];
    // SAFETY: the path is a C string, and the buffer has the stated size.
    unsafe {
        let file = open(path.as_ptr(), O_RDONLY);
        if file < 0 {
            return None;
        }
        while let Ok(size @ 1..) =
            usize::try_from(read(file, buffer.as_mut_ptr().cast(), buffer.len()))
        {
            all.extend_from_slice(buffer.get(..size)?);
        }
        close(file);
    }
    Some(all)
}

/// A file that is written from its start.
pub struct Writer(c_int);

impl Writer {
    /// Opens the file at a path; `None` if it cannot be opened.
    pub fn open(path: &CStr) -> Option<Self> {
        // SAFETY: the path is a C string.
        let file = unsafe { open(path.as_ptr(), O_WRONLY) };
        (file >= 0).then_some(Self(file))
    }

    /// Writes bytes after those written before. Ignores errors.
    pub fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // SAFETY: the file is open, and the buffer has the stated size.
            let written = unsafe { write(self.0, bytes.as_ptr().cast(), bytes.len()) };
            let Ok(size @ 1..) = usize::try_from(written) else {
                return;
            };
            bytes = bytes.get(size..).unwrap_or_default();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: the file is open, and not used any more.
        unsafe { close(self.0) };
    }
}

/// Writes bytes to the file at a path, from its start. Ignores errors.
pub fn store(path: &CStr, bytes: &[u8]) {
    if let Some(mut file) = Writer::open(path) {
        file.write(bytes);
    }
}
