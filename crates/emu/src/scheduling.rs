//! Kernel settings that reduce the wake-up latency of a thread.

use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::Write;
use tcpcast_link::time::{MICROSECOND, Nanos};

/// Requested time slice. A thread with a short slice gets the processor sooner, with an unchanged
/// share.
const TIME_SLICE: Nanos = 100 * MICROSECOND;
/// Highest priority below real-time threads; used only if permitted. A real-time priority would be
/// worse, because the kernel stops a real-time thread for 50 ms if the thread uses a processor
/// completely.
const NICE_LEVEL: i32 = -20;

/// First version of the kernel's `struct sched_attr`.
#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Reduces the wake-up latency of the calling thread. Settings that the kernel rejects are ignored;
/// the lateness of packets shows the effect.
pub(crate) fn reduce_wakeup_latency() {
    // By default, the timers of a thread may be late by 50 µs.
    let _ = nix::sys::prctl::set_timerslack(1);
    if !set_scheduling_attributes(NICE_LEVEL) {
        set_scheduling_attributes(0);
    }
}

/// Makes this process a session of its own, with the highest priority if permitted. Linux shares the
/// processors among sessions first (autogroups, sched(7)), so the priority of a thread has no effect
/// on processes of other sessions.
pub(crate) fn prioritise_session() {
    // Fails for the leader of a process group, whose session may have a terminal.
    if nix::unistd::setsid().is_ok() {
        let _ = std::fs::write("/proc/self/autogroup", NICE_LEVEL.to_string());
    }
}

/// Prevents deep idle states, which take 0.1 ms to leave, until the file is dropped. Requires root
/// (the kernel's PM QoS); otherwise nothing changes.
pub(crate) fn prevent_deep_idle() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    // Maximum wake-up latency, µs.
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

fn set_scheduling_attributes(nice: i32) -> bool {
    let size = size_of::<SchedulingAttributes>() as u32;
    let attributes =
        SchedulingAttributes { size, nice, runtime: TIME_SLICE, ..SchedulingAttributes::default() };
    // SAFETY: the kernel reads the `size` bytes of `attributes`. No library provides this system
    // call.
    #[allow(unsafe_code)]
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    result == 0
}
