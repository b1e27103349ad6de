//! The allocator of the module: the system allocator, except that the process exits if memory is
//! exhausted.
//!
//! By default, Rust aborts the process with a core dump. With this allocator, a run under `ulimit
//! -v` prints one line and exits with the exit code for an unsuitable environment.

use std::alloc::{GlobalAlloc, Layout, System};

/// Exit code for an unsuitable environment.
const EXIT_ENVIRONMENT: i32 = 3;

const OUT_OF_MEMORY_MESSAGE: &[u8] =
    b"tcpcast: out of memory: the memory limit is reached; use fewer flows, a smaller buffer or \
window, or raise the limit (ulimit -v)\n";

/// The system allocator, which exits the process on failure.
pub(crate) struct ExitOnFailureAllocator;

// SAFETY: each call is forwarded to the system allocator; a null pointer is never returned.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for ExitOnFailureAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        exit_if_null(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        exit_if_null(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        exit_if_null(unsafe { System.realloc(pointer, layout, size) })
    }
}

#[inline(always)]
fn exit_if_null(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        exit_without_memory();
    }
    pointer
}

/// Exits without running exit handlers, which might allocate.
#[cold]
fn exit_without_memory() -> ! {
    // SAFETY: both are system calls; the message is valid for its length.
    #[allow(unsafe_code)]
    unsafe {
        libc::write(2, OUT_OF_MEMORY_MESSAGE.as_ptr().cast(), OUT_OF_MEMORY_MESSAGE.len() as _);
        libc::_exit(EXIT_ENVIRONMENT)
    }
}
