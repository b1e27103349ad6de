//! Pacing by a token bucket: RFC 9002, section 7.7.

use super::rules::{PacingBurst, PacingWait};
use crate::modern::divide_u128;
use tcpcast_link::time::{NEVER, Nanos, SECOND};

/// What determines the size of bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacedWindow {
    /// Window in bytes, and the round-trip time.
    pub bytes: u64,
    pub rtt: Nanos,
    /// Bytes of a full datagram.
    pub datagram: u32,
}

/// A token bucket whose size depends on the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuicPacer {
    /// Bytes that may be sent, in units of 1/1024 byte, and their maximum at this window.
    tokens: u64,
    capacity: u64,
    window: u64,
    updated_at: Nanos,
    next_at: Nanos,
}

const TOKEN_UNIT: u64 = 1024;

impl QuicPacer {
    /// A full bucket.
    pub fn new(now: Nanos) -> Self {
        Self { tokens: u64::MAX, capacity: 0, window: 0, updated_at: now, next_at: NEVER }
    }

    /// Time at which a waiting packet may be sent, [`NEVER`] if none waits.
    #[inline(always)]
    pub fn next_send_time(&self) -> Nanos {
        self.next_at
    }

    /// No packet waits any more.
    #[inline(always)]
    pub fn stop_waiting(&mut self) {
        self.next_at = NEVER;
    }

    /// Whether a packet must wait; if so, sets the time of the next attempt. `rate` returns the rate
    /// in bytes per second.
    #[inline]
    pub fn must_wait(
        &mut self,
        now: Nanos,
        window: &PacedWindow,
        rules: &PacingBurst,
        rate: impl FnOnce() -> u64,
    ) -> bool {
        if window.bytes != self.window {
            self.window = window.bytes;
            self.capacity = burst_bytes(window, rules) * TOKEN_UNIT;
            self.tokens = self.tokens.min(self.capacity);
        }
        let packet = u64::from(window.datagram) * TOKEN_UNIT;
        self.tokens < packet && !self.refill(now, packet, rules, rate().max(1))
    }

    /// Adds the tokens of the time since the last call; returns whether a packet may be sent.
    #[inline(never)]
    fn refill(&mut self, now: Nanos, packet: u64, rules: &PacingBurst, rate: u64) -> bool {
        let elapsed = u128::from(now - self.updated_at) * u128::from(rate * TOKEN_UNIT);
        let added = divide_u128(elapsed, SECOND);
        let added = u64::try_from(added).unwrap_or(u64::MAX);
        self.tokens = self.tokens.saturating_add(added).min(self.capacity);
        self.updated_at = now;
        let (enough, wanted) = match rules.wait {
            PacingWait::Packet => (packet, packet),
            PacingWait::Burst => (packet, self.capacity.max(packet)),
            PacingWait::PacketOfAnyTokens => (1, packet + 1),
        };
        if self.tokens >= enough {
            return true;
        }
        let missing = u128::from(wanted - self.tokens) * u128::from(SECOND);
        let wait = divide_u128(missing, rate * TOKEN_UNIT) as u64 + 1;
        self.next_at = now.saturating_add(wait).min(NEVER);
        false
    }

    /// A datagram of `bytes` is sent.
    #[inline]
    pub fn on_sent(&mut self, bytes: u32) {
        self.tokens = self.tokens.saturating_sub(u64::from(bytes) * TOKEN_UNIT);
    }
}

/// Size of the bucket in bytes.
#[inline]
fn burst_bytes(window: &PacedWindow, rules: &PacingBurst) -> u64 {
    let of_window = window.bytes * u64::from(rules.window_percent) / 100;
    let of_time = u128::from(window.bytes) * u128::from(rules.time) / u128::from(window.rtt.max(1));
    let burst = of_window.max(u64::try_from(of_time).unwrap_or(u64::MAX));
    let packets = |count: u32| u64::from(count) * u64::from(window.datagram);
    burst.clamp(packets(rules.min_packets), packets(rules.max_packets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpcast_link::time::MILLISECOND;

    const WINDOW: PacedWindow =
        PacedWindow { bytes: 100_000, rtt: 100 * MILLISECOND, datagram: 1000 };

    fn times_of_packets(rules: PacingBurst, count: usize) -> Vec<Nanos> {
        let (mut pacer, mut now, mut times) = (QuicPacer::new(0), 0, Vec::new());
        while times.len() < count {
            if pacer.must_wait(now, &WINDOW, &rules, || 1_250_000) {
                now = pacer.next_send_time();
            } else {
                pacer.on_sent(1000);
                times.push(now / 1000);
            }
        }
        times
    }

    #[test]
    fn bucket_sends_a_burst_and_then_the_rate() {
        let rules = PacingBurst {
            min_packets: 3,
            max_packets: 10,
            window_percent: 0,
            time: 0,
            wait: PacingWait::Packet,
        };
        assert_eq!(times_of_packets(rules, 6), [0, 0, 0, 800, 1600, 2400]);
        // A quarter of the window exceeds the largest burst.
        let larger = PacingBurst { window_percent: 25, ..rules };
        assert_eq!(times_of_packets(larger, 11)[9..], [0, 800]);
        // 4 ms of a window per 100 ms are 4 packets, which are sent together.
        let bursts = PacingBurst { time: 4 * MILLISECOND, wait: PacingWait::Burst, ..rules };
        assert_eq!(times_of_packets(bursts, 9), [0, 0, 0, 0, 3200, 3200, 3200, 3200, 6400]);
        // Each wait lasts a little longer than the time of a packet; the rest allows another one.
        let pairs = PacingBurst { wait: PacingWait::PacketOfAnyTokens, ..rules };
        assert_eq!(times_of_packets(pairs, 8), [0, 0, 0, 800, 800, 1600, 1600, 2400]);
    }
}
