//! Growth of the receive buffer with the data that the application reads: Linux's
//! `tcp_rcv_space_adjust`, once per round-trip time.

use super::super::buffer_memory::BufferMemory;
use super::super::segment::{Timestamps, timestamp_at};
use super::super::stack::Stack;
use super::Receiver;
use tcpcast_link::time::{MILLISECOND, Nanos};

/// The buffer does not grow in a round-trip time in which at most this many packets are read
/// (`TCP_INIT_CWND`).
const FIRST_PACKETS: u64 = 10;
/// Packets by which the window exceeds twice the data read in a round-trip time.
const CUSHION_PACKETS: u64 = 16;

/// State of a receive buffer that grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowAutotuning {
    memory: BufferMemory,
    /// Largest window that the buffer allows now.
    pub clamp: u64,
    /// Largest number of bytes read in a round-trip time so far.
    copied: u64,
    /// Byte and time at which the current round-trip time began.
    began_at: (u64, Nanos),
    /// Smoothed round-trip time, measured by echoes of the receiver's timestamps.
    rtt: Option<Nanos>,
}

impl WindowAutotuning {
    pub fn new(memory: BufferMemory, start: u64, stack: &Stack) -> Self {
        Self {
            memory,
            clamp: memory.initial_window(),
            copied: FIRST_PACKETS * u64::from(stack.mss),
            began_at: (start, 0),
            rtt: None,
        }
    }

    fn add_rtt_sample(&mut self, sample: Nanos) {
        self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt - rtt / 8 + sample / 8));
    }

    /// The application has read all data below `read`. Returns by how much the window may grow.
    fn grow(&mut self, now: Nanos, read: u64, stack: &Stack) -> u64 {
        let (from, since) = self.began_at;
        if self.rtt.is_none_or(|rtt| now - since < rtt) {
            return 0;
        }
        self.began_at = (read, now);
        let copied = read - from;
        if copied <= self.copied {
            return 0;
        }
        // A rate that has doubled since the last round-trip time may double again twice.
        let window = 2 * copied + CUSHION_PACKETS * u64::from(stack.mss);
        let faster = u128::from(window) * u128::from(copied - self.copied);
        let window = window + 2 * (faster / u128::from(self.copied)) as u64;
        self.copied = copied;
        let before = self.clamp;
        self.clamp = self.clamp.max(window.min(self.memory.max_window()));
        self.clamp - before
    }
}

impl Receiver {
    /// Measures the round-trip time for the growth of the buffer.
    #[inline(never)]
    pub(super) fn measure_rtt(&mut self, now: Nanos, stamps: Option<Timestamps>) {
        let Some(tuning) = &mut self.tuning else { return };
        match stamps {
            Some(stamps) if stamps.echo != 0 => {
                let ticks = timestamp_at(now).wrapping_sub(stamps.echo);
                tuning.add_rtt_sample(u64::from(ticks).max(1) * MILLISECOND);
            }
            _ => tuning.rtt = self.srtt,
        }
    }

    /// Lets the buffer grow after data was read.
    #[inline(never)]
    pub(super) fn grow_buffer(&mut self, now: Nanos, stack: &Stack) {
        let Some(tuning) = &mut self.tuning else { return };
        let more = tuning.grow(now, self.read, stack);
        self.growth += more;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::presets::Preset;
    use super::super::super::receiver::ArrivingData;
    use super::*;
    use tcpcast_link::Ecn;

    const RTT: Nanos = 100 * MILLISECOND;

    /// Window after each round-trip time of a receiver that gets `packets(round)` packets.
    fn windows(memory: BufferMemory, packets: impl Fn(u32) -> u64) -> Vec<u64> {
        let mut stack = Preset::LinuxCubic.stack();
        stack.receiving.memory = Some(memory);
        let mut receiver = Receiver::new(1, &stack);
        let (mut next, mss) = (1, u64::from(stack.mss));
        (1..12)
            .map(|round| {
                let now = u64::from(round) * RTT;
                for _ in 0..packets(round) {
                    let echo = timestamp_at(now - RTT) + u32::from(round == 1);
                    let data = ArrivingData {
                        start: next,
                        len: stack.mss,
                        fin: false,
                        ecn: Ecn::NotEct,
                        cwr: false,
                        push: false,
                        timestamps: Some(Timestamps { value: timestamp_at(now), echo }),
                    };
                    next += mss;
                    receiver.on_data(now, &data, &stack);
                }
                while receiver.poll_ack(&stack).is_some() {}
                receiver.window_end() - next
            })
            .collect()
    }

    #[test]
    fn window_is_ahead_of_slow_start_up_to_its_maximum() {
        let packets = |round: u32| 10 << (round - 1).min(9);
        let sizes = windows(BufferMemory::LINUX_5_15, packets);
        assert_eq!(sizes[0], 65536);
        for (round, size) in sizes.iter().enumerate().take(8) {
            let next_window = 1448 * packets(round as u32 + 2);
            assert!(*size >= next_window.min(3 << 20), "round {round}: {size}");
        }
        assert_eq!(sizes[10], 3 << 20, "half of 6 MiB");
        let sizes = windows(BufferMemory::LINUX_6_18, |_| 16_000);
        assert!(sizes[10] > 19 << 20, "{}", sizes[10]);
    }

    #[test]
    fn slow_flow_keeps_the_initial_window() {
        assert!(windows(BufferMemory::LINUX_6_18, |_| 10).iter().all(|size| *size == 65536));
    }
}
