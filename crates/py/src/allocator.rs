//! The allocator of the module: the system's, but it ends the process in an orderly way when there is
//! no memory left.
//!
//! Rust aborts a process whose allocation fails, with a core dump. A run under `ulimit -v` ends with
//! one line and the exit code of a lacking environment instead.

use std::alloc::{GlobalAlloc, Layout, System};

/// Exit code of a command whose environment lacks something.
const EXIT_ENVIRONMENT: i32 = 3;

const MESSAGE: &[u8] =
    b"tcpcast: out of memory: the process may take no more; write fewer flows, a smaller \
buffer or window, or raise the limit (ulimit -v)\n";

/// The system's allocator.
pub(crate) struct OrExit;

// SAFETY: each call is passed on to the system's allocator; a null pointer is never returned.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        or_exit(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        or_exit(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised by the caller.
        or_exit(unsafe { System.realloc(pointer, layout, size) })
    }
}

#[inline(always)]
fn or_exit(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        exit();
    }
    pointer
}

/// Ends the process without what was registered for its end, which might allocate.
#[cold]
fn exit() -> ! {
    // SAFETY: both are system calls; the message is valid for its length.
    #[allow(unsafe_code)]
    unsafe {
        libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len() as _);
        libc::_exit(EXIT_ENVIRONMENT)
    }
}
