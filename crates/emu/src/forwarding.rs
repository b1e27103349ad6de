//! The forwarding loop between devices and paths, under the real clock.
//!
//! ```text
//! read the clock -> read packets -> paths -> write packets that have left -> sleep until the next
//! ```
//!
//! The loop sleeps until shortly before the next event and then polls the clock, because a timer
//! alone is late by tens of microseconds.

use crate::clock::LinkClock;
use crate::device::Device;
use crate::path::{EmulatedPaths, LinkReport, PacketInTransit, PacketObserver};
use crate::scheduling;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeSpec, TimeValLike};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tcpcast_link::time::{MICROSECOND, MILLISECOND, NEVER, Nanos};

/// Minimum and maximum time for which the loop polls before an event: 1.5 times the recent lateness
/// of sleeps.
const SPIN_LIMITS: (Nanos, Nanos) = (30 * MICROSECOND, 300 * MICROSECOND);
/// Maximum number of packets read per device, and written in total, between two readings of the
/// clock.
const MAX_BATCH: usize = 64;
/// Lateness from which a packet counts as late.
pub const LATE_THRESHOLD: Nanos = MILLISECOND;

/// Handle to stop the loop from another thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    requested: Arc<AtomicBool>,
    wake: Arc<EventFd>,
}

impl StopHandle {
    /// Creates a handle.
    ///
    /// # Errors
    /// Fails if no descriptors are left.
    pub fn new() -> io::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { requested: Arc::new(AtomicBool::new(false)), wake: Arc::new(wake) })
    }

    /// Requests the end of the loop.
    pub fn request_stop(&self) {
        self.requested.store(true, Ordering::Release);
        // Fails only after 2^64 requests.
        let _ = self.wake.write(1);
    }

    fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }
}

/// Result of the loop.
#[derive(Clone, Debug)]
pub struct ForwardingResult {
    /// Counters of the link.
    pub path: LinkReport,
    /// Duration by the host's clock, ns.
    pub elapsed: Nanos,
    /// Total pause of the link's clock, ns.
    pub paused: Nanos,
    /// Number of pauses.
    pub pause_count: u64,
    /// Longest pause, ns.
    pub longest_pause: Nanos,
    /// Packets that the kernel dropped before the link.
    pub missed: u64,
    /// Processor time of the loop's thread, ns.
    pub cpu: Nanos,
}

/// Paths that the loop shares with the thread that reports their counters.
#[derive(Clone, Debug)]
pub struct SharedPaths(Arc<Mutex<EmulatedPaths>>);

impl SharedPaths {
    /// Shares paths.
    #[must_use]
    pub fn new(paths: EmulatedPaths) -> Self {
        Self(Arc::new(Mutex::new(paths)))
    }

    /// Waits for the paths; the loop waits in the meantime.
    pub fn lock(&self) -> MutexGuard<'_, EmulatedPaths> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Devices attached to paths, in the order of their ports.
pub struct ForwardingLoop {
    paths: SharedPaths,
    devices: Vec<Box<dyn Device>>,
    /// Descriptors of the devices.
    poll_fds: Vec<OwnedFd>,
    clock: LinkClock,
    began: Instant,
    missed: u64,
    received: Vec<u32>,
    leaving: Vec<PacketInTransit>,
    cells: Vec<u32>,
    lost: Vec<usize>,
}

impl ForwardingLoop {
    /// Creates a loop, which starts with [`Self::forward_until_stopped`].
    ///
    /// # Errors
    /// Fails if no descriptors are left.
    pub fn new(paths: SharedPaths, mut devices: Vec<Box<dyn Device>>) -> io::Result<Self> {
        let waiting =
            devices.iter_mut().map(|device| device.packets().as_fd().try_clone_to_owned());
        Ok(Self {
            poll_fds: waiting.collect::<io::Result<_>>()?,
            paths,
            devices,
            clock: LinkClock::starting_at(0),
            began: Instant::now(),
            missed: 0,
            received: Vec::new(),
            leaving: Vec::new(),
            cells: Vec::new(),
            lost: Vec::new(),
        })
    }

    fn host_time(&self) -> Nanos {
        self.began.elapsed().as_nanos() as Nanos
    }

    /// Forwards packets until the loop is stopped.
    ///
    /// # Errors
    /// Returns errors of polling; failing devices are ignored.
    pub fn forward_until_stopped(
        &mut self,
        stop: &StopHandle,
        observer: &mut impl PacketObserver,
    ) -> io::Result<ForwardingResult> {
        scheduling::reduce_wakeup_latency();
        let _awake = scheduling::prevent_deep_idle();
        let mut spin = SPIN_LIMITS.0;
        let waiting = std::mem::take(&mut self.poll_fds);
        let ends = waiting.iter().map(AsFd::as_fd).chain([stop.wake.as_fd()]);
        let mut polled: Vec<PollFd> = ends.map(|end| PollFd::new(end, PollFlags::POLLIN)).collect();
        self.began = Instant::now();
        self.clock = LinkClock::starting_at(0);
        while !stop.is_requested() {
            let paused = self.clock.total_pause();
            let now = self.clock.begin_loop_pass(self.host_time());
            if self.clock.total_pause() > paused {
                observer.on_clock_pause(self.clock.total_pause());
            }
            let shared = self.paths.clone();
            let mut paths = shared.lock();
            self.read_devices(&mut paths, now, &polled, observer);
            self.deliver_departures(&mut paths, observer);
            let mut sleep = self.clock.plan_sleep_until(paths.next_departure_bound());
            drop(paths);
            if sleep < NEVER {
                // Reading and writing have used a part of the time.
                let busy = self.host_time().saturating_sub(self.clock.elapsed());
                sleep = sleep.saturating_sub(busy + spin);
            }
            // Avoids reading the clock on a busy link.
            let sleep_start = if sleep > 0 { self.host_time() } else { 0 };
            if poll_devices(&mut polled, sleep)? == 0 && sleep > 0 {
                let late = (self.host_time() - sleep_start).saturating_sub(sleep);
                spin = ((7 * spin + late * 3 / 2) / 8).clamp(SPIN_LIMITS.0, SPIN_LIMITS.1);
            }
        }
        self.clock.begin_loop_pass(self.host_time());
        Ok(self.forwarding_result())
    }

    fn read_devices(
        &mut self,
        paths: &mut EmulatedPaths,
        now: Nanos,
        polled: &[PollFd],
        observer: &mut impl PacketObserver,
    ) {
        for (port, end) in polled.iter().enumerate().take(self.devices.len()) {
            if end.any() != Some(true) {
                continue;
            }
            self.received.clear();
            let device = &mut self.devices[port];
            let read = device.packets().receive(&mut paths.slab, MAX_BATCH, &mut self.received);
            for cell in &self.received {
                paths.enter_packet(now, port as u16, *cell, observer);
            }
            for _ in 0..read.overruns {
                paths.count_packet_without_cell(port as u16);
            }
        }
    }

    fn deliver_departures(
        &mut self,
        paths: &mut EmulatedPaths,
        observer: &mut impl PacketObserver,
    ) {
        let now = self.clock.now(self.host_time());
        paths.advance_to(now, observer);
        self.leaving.clear();
        while self.leaving.len() < MAX_BATCH {
            let Some(packet) = paths.take_departed_packet(now, observer) else { break };
            self.leaving.push(packet);
        }
        // A device accepts many packets by one system call.
        self.leaving.sort_by_key(|packet| packet.to);
        let mut begin = 0;
        while let Some(first) = self.leaving.get(begin).copied() {
            let same = self.leaving[begin..].iter().take_while(|packet| packet.to == first.to);
            self.cells.clear();
            self.cells.extend(same.map(|packet| packet.cell));
            let end = begin + self.cells.len();
            let device = &mut self.devices[usize::from(first.to)];
            self.lost.clear();
            device.send(&mut paths.slab, &self.cells, &mut self.lost);
            for (index, packet) in self.leaving[begin..end].iter().enumerate() {
                paths.count_and_release_packet(*packet, !self.lost.contains(&index));
            }
            begin = end;
        }
    }

    fn forwarding_result(&mut self) -> ForwardingResult {
        self.missed += self
            .devices
            .iter_mut()
            .map(|device| device.packets().take_kernel_drop_count())
            .sum::<u64>();
        let (pause_count, longest_pause) = self.clock.pause_count_and_max();
        let cpu = getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| {
            (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) * 1000
        });
        ForwardingResult {
            path: self.paths.lock().current_report(),
            elapsed: self.clock.elapsed(),
            paused: self.clock.total_pause(),
            pause_count,
            longest_pause,
            missed: self.missed,
            cpu: cpu as Nanos,
        }
    }
}

/// Polls the descriptors. Returns the number of readable ones; 0 after the time limit.
fn poll_devices(polled: &mut [PollFd], sleep: Nanos) -> io::Result<i32> {
    let limit = (sleep < NEVER / 2).then(|| TimeSpec::nanoseconds(sleep as i64));
    match ppoll(polled, limit, None) {
        Ok(ready) => Ok(ready),
        Err(nix::errno::Errno::EINTR) => Ok(1),
        Err(error) => Err(error.into()),
    }
}

impl ForwardingResult {
    /// Returns the reason why the results are not trustworthy; `None` if the results are
    /// trustworthy.
    ///
    /// A packet is late if it is delivered more than a millisecond after its due time.
    #[must_use]
    pub fn unreliable_result_reason(&self) -> Option<String> {
        let (forward, back) = (&self.path.forward, &self.path.back);
        let lost = self.missed + forward.host_drops + back.host_drops;
        if lost > 0 {
            return Some(format!("{lost} packets were lost by this machine, not by the link"));
        }
        let delivered = forward.lateness.count() + back.lateness.count();
        let late = forward.lateness.count_above(LATE_THRESHOLD)
            + back.lateness.count_above(LATE_THRESHOLD);
        lateness_reason(late, delivered, self.paused, self.elapsed)
    }
}

/// Returns the reason why the link was too late: more than 1 % of its packets were delivered more
/// than [`LATE_THRESHOLD`] after their due time, or its clock was paused for more than 5 % of the
/// time.
pub(crate) fn lateness_reason(
    late: u64,
    delivered: u64,
    paused: Nanos,
    elapsed: Nanos,
) -> Option<String> {
    if late * 100 > delivered {
        let share = late as f64 * 100.0 / delivered as f64;
        return Some(format!("{share:.1} % of the packets were more than 1 ms late"));
    }
    if paused * 20 > elapsed {
        let share = paused as f64 * 100.0 / elapsed as f64;
        return Some(format!("this machine stalled for {share:.1} % of the time"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_limited_to_one_percent_of_packets_and_five_percent_of_pauses() {
        assert_eq!(lateness_reason(10, 1000, 50, 1000), None);
        assert_eq!(lateness_reason(0, 0, 0, 0), None);
        let packets = "1.1 % of the packets were more than 1 ms late";
        assert_eq!(lateness_reason(11, 1000, 0, 1000).as_deref(), Some(packets));
        let pauses = "this machine stalled for 5.1 % of the time";
        assert_eq!(lateness_reason(0, 1000, 51, 1000).as_deref(), Some(pauses));
    }
}
