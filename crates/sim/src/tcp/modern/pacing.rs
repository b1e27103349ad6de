//! Pacing: bursts of packets, spread at a rate.
//!
//! As Linux does it, a burst is what the rate sends in about a millisecond, and the next one waits
//! until it would have been sent. A burst that comes late shortens the wait after it, by half at
//! the most.

use super::cc::path_model::chunk_packets;
use crate::clock::{NEVER, Nanos, SECOND};

/// The first packets of a connection are not paced, up to the chunk that has the last of them.
const UNPACED: u32 = 10;

/// When the next burst may be sent.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Pacer {
    /// At this rate, in bytes a second; [`None`] if nothing is paced.
    rate: Option<u64>,
    sent: u32,
    /// Something waits for `next_at`.
    waits: bool,
    next_at: Nanos,
    /// The current burst: when it began, and how many packets it may still have.
    burst: Option<(Nanos, u32)>,
    credit: Nanos,
    /// By so many bytes chunks are larger than what the rate sends in a millisecond.
    extra_bytes: u64,
    chunks: Option<Chunks>,
    last: PacketTime,
}

/// Chunks at a rate, kept as it is mostly the same for the next one: divisions take long.
#[derive(Clone, Copy, Debug)]
struct Chunks {
    rate: u64,
    /// Packets of one, and of those before any is paced.
    packets: u32,
    unpaced: u32,
}

/// What the rate says of a packet, likewise.
#[derive(Clone, Copy, Debug, Default)]
struct PacketTime {
    rate: u64,
    len: u32,
    /// How long such a packet takes.
    time: Nanos,
}

impl Pacer {
    /// Sets the rate.
    #[inline(always)]
    pub fn set_rate(&mut self, rate: Option<u64>) {
        self.rate = rate.filter(|&rate| rate > 0);
    }

    /// Sets by how many bytes chunks are larger than what the rate sends in a millisecond.
    #[inline(always)]
    pub fn set_extra_bytes(&mut self, bytes: u64) {
        if self.extra_bytes != bytes {
            self.extra_bytes = bytes;
            self.chunks = None;
        }
    }

    /// Packets of a chunk at a rate.
    #[inline(always)]
    pub fn chunk(&mut self, rate: u64, mss: u32) -> u32 {
        self.chunks(rate, mss).packets
    }

    #[inline(always)]
    fn chunks(&mut self, rate: u64, mss: u32) -> Chunks {
        match self.chunks {
            Some(chunks) if chunks.rate == rate => chunks,
            _ => {
                let packets = chunk_packets(rate, self.extra_bytes, mss);
                let chunks = Chunks { rate, packets, unpaced: (UNPACED - 1) / packets * packets };
                *self.chunks.insert(chunks)
            }
        }
    }

    /// Whether packets are paced.
    #[inline(always)]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.rate.is_some()
    }

    /// A word of what is needed where packets are paced.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> u64 {
        if self.is_on() { self.credit ^ self.extra_bytes } else { 0 }
    }

    /// When the next packet may be sent.
    #[inline(always)]
    #[must_use]
    pub fn next_at(&self) -> Nanos {
        self.next_at
    }

    /// When a packet that waits may be sent; [`NEVER`] if none waits.
    #[inline(always)]
    #[must_use]
    pub fn next_waiting_at(&self) -> Nanos {
        if self.waits { self.next_at } else { NEVER }
    }

    /// Whether a packet has to wait.
    #[inline(always)]
    #[must_use]
    pub fn blocks(&self, now: Nanos) -> bool {
        self.rate.is_some()
            && now < self.next_at
            && !self.burst.is_some_and(|(began, left)| began == now && left > 0)
    }

    /// Says whether something waits.
    #[inline(always)]
    pub fn set_waiting(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// How many packets may be sent before any is paced: Linux's `tcp_update_skb_after_send`, which
    /// counts a chunk before it asks how many were sent.
    #[inline(always)]
    pub fn unpaced(&mut self, mss: u32) -> u32 {
        match self.rate {
            None => u32::MAX,
            Some(_) if self.sent >= UNPACED => 0,
            Some(rate) => self.chunks(rate, mss).unpaced.saturating_sub(self.sent),
        }
    }

    /// What is sent next is a burst of its own.
    #[inline(always)]
    pub fn end_burst(&mut self) {
        self.burst = None;
    }

    /// So many packets are sent while none is paced.
    #[inline(always)]
    pub fn on_sent_unpaced(&mut self, packets: u32) {
        self.waits = false;
        self.sent = self.sent.saturating_add(packets);
    }

    /// A packet with `len` bytes of data is sent.
    #[inline(always)]
    pub fn on_sent(&mut self, now: Nanos, len: u32, mss: u32) {
        let unpaced = self.unpaced(mss) > 0;
        self.sent = self.sent.saturating_add(1);
        let Some(rate) = self.rate.filter(|_| !unpaced) else { return };
        if (self.last.rate, self.last.len) != (rate, len) {
            let time = Nanos::from(len) * SECOND / rate;
            self.last = PacketTime { rate, len, time };
        }
        let time = self.last.time;
        let left = match self.burst {
            Some((began, left)) if began == now && left > 0 => left,
            _ => {
                self.credit = now.saturating_sub(self.next_at);
                self.next_at = now.max(self.next_at);
                self.chunk(rate, mss)
            }
        };
        self.burst = Some((now, left - 1));
        let earlier = self.credit.min(time / 2);
        self.credit -= earlier;
        self.next_at += time - earlier;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_follow_each_other_at_the_rate() {
        let mut pacer = Pacer { sent: UNPACED, ..Pacer::default() };
        pacer.set_rate(Some(1_000_000));
        let mut sent = vec![];
        let mut now = 0;
        while now < 10 * SECOND / 1000 {
            while !pacer.blocks(now) {
                pacer.on_sent(now, 1000, 1000);
                sent.push(now);
            }
            now = pacer.next_at();
        }
        // Two packets of a millisecond each at a time.
        assert_eq!(sent.len(), 10);
        assert_eq!(sent[2], 2 * SECOND / 1000);
    }

    #[test]
    fn linux_s_tcp_update_skb_after_send_paces_from_the_chunk_that_has_the_tenth_packet() {
        let at_once = |rate| {
            let mut pacer = Pacer::default();
            pacer.set_rate(Some(rate));
            let mut packets = 0;
            while !pacer.blocks(0) {
                pacer.on_sent(0, 1000, 1000);
                packets += 1;
            }
            packets
        };
        assert_eq!(at_once(1_000_000), 10, "chunks of two");
        assert_eq!(at_once(3_100_000), 12, "of three");
        assert_eq!(at_once(10_300_000), 10, "of ten");
    }

    #[test]
    fn a_late_burst_shortens_the_wait_by_half_at_most() {
        let mut pacer = Pacer { sent: UNPACED, ..Pacer::default() };
        pacer.set_rate(Some(1_000_000));
        pacer.on_sent(5 * SECOND, 1000, 1000);
        pacer.on_sent(5 * SECOND, 1000, 1000);
        assert_eq!(pacer.next_at(), 5 * SECOND + SECOND / 1000);
    }
}
