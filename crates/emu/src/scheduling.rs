//! What the kernel is asked for so that a thread wakes when something is due.

use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::Write;
use tcpcast_link::time::{MICROSECOND, Nanos};

/// How long the thread wants to run at once. One that asks for little is given the processor sooner,
/// and its share of it is the same.
const SLICE: Nanos = 100 * MICROSECOND;
/// Before others that are not real-time threads, where it is allowed. A real-time thread would be
/// stopped for 50 ms where it takes all of a processor.
const NICE: i32 = -20;

/// `struct sched_attr` of the kernel in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Has the calling thread wake as soon as it can. What the kernel refuses or does not know is left as
/// it is: the lateness of packets tells.
pub(crate) fn reduce_wakeup_latency() {
    // Timers of a thread may be late by 50 us unless it says otherwise.
    let _ = nix::sys::prctl::set_timerslack(1);
    if !set_attributes(NICE) {
        set_attributes(0);
    }
}

/// Keeps processors from idling so deeply that waking takes them a tenth of a millisecond, until it is
/// dropped. Nobody but root may ask for that (the kernel's PM QoS); for others nothing changes.
pub(crate) fn prevent_deep_idle() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    // The most microseconds that waking may take.
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

fn set_attributes(nice: i32) -> bool {
    let size = size_of::<Attributes>() as u32;
    let attributes = Attributes { size, nice, runtime: SLICE, ..Attributes::default() };
    // SAFETY: the kernel reads `size` bytes of `attributes`, which are all of it. No library has
    // this system call.
    #[allow(unsafe_code)]
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    done == 0
}
