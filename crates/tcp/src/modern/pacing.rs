//! Pacing: bursts of packets at a given rate.
//!
//! As in Linux, a burst is the amount of data sent in about a millisecond at this rate, and the
//! next burst waits until that time has passed. A late burst shortens the following wait, by at
//! most half.

use super::cc::path_model::{BurstRules, chunk_packets};
use super::stack::{PacingCondition, PacingRules};
use tcpcast_link::time::{NEVER, Nanos, SECOND};

/// The first packets of a connection are not paced, up to the chunk that contains the last of them.
const UNPACED_PACKETS: u32 = 10;

/// Pacer of a sender.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pacer {
    /// Rate in bytes per second; [`None`] if packets are not paced.
    rate: Option<u64>,
    sent: u32,
    /// Bytes of headers that count per packet.
    header_bytes: u32,
    /// See [`PacingRules::queued_packets`].
    queued_packets: u32,
    max_rate: u64,
    /// Whether a packet waits for `next_at`.
    waits: bool,
    next_at: Nanos,
    /// Start of the current burst, and the number of packets it may still contain.
    burst: Option<(Nanos, u32)>,
    credit: Nanos,
    /// Bytes added to chunks for short round-trip times: see `offload.rs`.
    extra_bytes: u64,
    chunks: Option<CachedChunkSize>,
    bursts: Option<BurstRules>,
    last: CachedPacketTime,
}

/// Chunk size at a rate, cached because it rarely changes and divisions are slow.
#[derive(Clone, Copy, Debug)]
struct CachedChunkSize {
    rate: u64,
    /// Packets per chunk. `unpaced`: number of packets at the start that are not paced.
    packets: u32,
    unpaced: u32,
}

/// Transmission time of a packet at a rate, also cached.
#[derive(Clone, Copy, Debug, Default)]
struct CachedPacketTime {
    rate: u64,
    len: u32,
    /// Transmission time.
    time: Nanos,
}

impl Pacer {
    /// Creates the pacer of a connection; `bursts` are those of the congestion control, if it has
    /// any.
    #[must_use]
    pub fn new(rules: &PacingRules, bursts: Option<BurstRules>) -> Self {
        let is_paced = rules.condition != PacingCondition::Never;
        Self {
            rate: None,
            sent: 0,
            header_bytes: rules.header_bytes,
            queued_packets: rules.queued_packets,
            max_rate: if is_paced { rules.max_rate } else { 0 },
            waits: false,
            next_at: 0,
            burst: None,
            credit: 0,
            extra_bytes: 0,
            chunks: None,
            bursts,
            last: CachedPacketTime::default(),
        }
    }

    /// Sets the rate of the data in bytes per second, or its largest value if that is lower. No
    /// packet is paced if either is 0.
    #[inline(always)]
    pub fn set_rate(&mut self, rate: Option<u64>) {
        self.rate = rate.map(|rate| rate.min(self.max_rate)).filter(|&rate| rate > 0);
    }

    /// Sets the number of bytes by which a chunk exceeds the data sent in a millisecond.
    #[inline(always)]
    pub fn set_extra_bytes(&mut self, bytes: u64) {
        if self.extra_bytes != bytes {
            self.extra_bytes = bytes;
            self.chunks = None;
        }
    }

    /// Packets per chunk at a rate.
    #[inline(always)]
    pub fn packets_per_chunk(&mut self, rate: u64, mss: u32) -> u32 {
        self.chunk_size_at(rate, mss).packets
    }

    #[inline(always)]
    fn chunk_size_at(&mut self, rate: u64, mss: u32) -> CachedChunkSize {
        match self.chunks {
            Some(chunks) if chunks.rate == rate => chunks,
            _ => {
                let packets = match self.bursts {
                    Some(bursts) => bursts.packets_per_burst(rate, mss),
                    None => chunk_packets(rate, self.extra_bytes, mss),
                };
                let chunks = CachedChunkSize {
                    rate,
                    packets,
                    unpaced: (UNPACED_PACKETS - 1) / packets * packets,
                };
                *self.chunks.insert(chunks)
            }
        }
    }

    /// Whether packets are paced.
    #[inline(always)]
    #[must_use]
    pub fn is_pacing(&self) -> bool {
        self.rate.is_some()
    }

    /// Time at which the next packet may be sent.
    #[inline(always)]
    #[must_use]
    pub fn next_send_time(&self) -> Nanos {
        self.next_at
    }

    /// Time at which a waiting packet may be sent; [`NEVER`] if none waits.
    #[inline(always)]
    #[must_use]
    pub fn send_time_if_waiting(&self) -> Nanos {
        if self.waits { self.next_at } else { NEVER }
    }

    /// Whether a packet must wait.
    #[inline(always)]
    #[must_use]
    pub fn must_packet_wait(&self, now: Nanos) -> bool {
        self.rate.is_some()
            && now < self.next_at
            && !self.burst.is_some_and(|(began, left)| began == now && left > 0)
    }

    /// Number of packets that wait in `fq` while a packet waits.
    #[inline(always)]
    #[must_use]
    pub fn packets_in_fq(&self) -> u32 {
        if self.waits { self.queued_packets } else { 0 }
    }

    /// Records whether a packet waits.
    #[inline(always)]
    pub fn set_packet_waiting(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// Number of packets that may still be sent without pacing: Linux's
    /// `tcp_update_skb_after_send`, which counts a chunk before it compares the number of packets
    /// sent.
    #[inline(always)]
    pub fn unpaced_packets_left(&mut self, mss: u32) -> u32 {
        match self.rate {
            None => u32::MAX,
            Some(_) if self.sent >= UNPACED_PACKETS => 0,
            Some(rate) => self.chunk_size_at(rate, mss).unpaced.saturating_sub(self.sent),
        }
    }

    /// Ends the burst: the next packet starts a new one.
    #[inline(always)]
    pub fn end_burst(&mut self) {
        self.burst = None;
    }

    /// Records packets sent without pacing.
    #[inline(always)]
    pub fn on_sent_unpaced(&mut self, packets: u32) {
        self.waits = false;
        self.sent = self.sent.saturating_add(packets);
    }

    /// Records a sent packet with `len` bytes of data.
    #[inline(always)]
    pub fn on_sent(&mut self, now: Nanos, len: u32, mss: u32) {
        let unpaced = self.unpaced_packets_left(mss) > 0;
        self.sent = self.sent.saturating_add(1);
        let Some(rate) = self.rate.filter(|_| !unpaced) else { return };
        if (self.last.rate, self.last.len) != (rate, len) {
            let time = Nanos::from(len + self.header_bytes) * SECOND / rate;
            self.last = CachedPacketTime { rate, len, time };
        }
        let time = self.last.time;
        let left = match self.burst {
            Some((began, left)) if began == now && left > 0 => left,
            _ => {
                self.credit = now.saturating_sub(self.next_at);
                self.next_at = now.max(self.next_at);
                self.packets_per_chunk(rate, mss)
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

    fn pacer(rules: PacingRules) -> Pacer {
        Pacer { sent: UNPACED_PACKETS, ..Pacer::new(&rules, None) }
    }

    /// Packets of 1448 bytes that a pacer sends in a second at 1.448 MB/s.
    fn packets_in_a_second(rules: PacingRules) -> u64 {
        let mut pacer = pacer(rules);
        pacer.set_rate(Some(1_448_000));
        let (mut now, mut packets) = (0, 0);
        while now < SECOND {
            while !pacer.must_packet_wait(now) {
                pacer.on_sent(now, 1448, 1448);
                packets += 1;
            }
            now = pacer.next_send_time();
        }
        packets
    }

    #[test]
    fn fq_counts_the_frame_and_a_largest_rate_limits() {
        let internal = PacingRules::INTERNAL;
        assert_eq!(packets_in_a_second(internal), 1000);
        // 1448 of 1514 bytes, in bursts of two packets.
        assert_eq!(packets_in_a_second(PacingRules { header_bytes: 66, ..internal }), 958);
        assert_eq!(packets_in_a_second(PacingRules { max_rate: 724_000, ..internal }), 500);
        let mut unpaced = pacer(PacingRules { condition: PacingCondition::Never, ..internal });
        unpaced.set_rate(Some(1000));
        assert!(!unpaced.is_pacing());
    }

    #[test]
    fn bursts_of_prague_take_a_quarter_of_a_millisecond() {
        let bursts = |min_packets, rate: u64| {
            let rules = BurstRules { shift: 12, min_packets };
            let mut pacer = Pacer::new(&PacingRules::INTERNAL, Some(rules));
            pacer.packets_per_chunk(rate / 8, 1448)
        };
        assert_eq!((bursts(2, 20_000_000), bursts(1, 20_000_000)), (2, 1));
        assert_eq!(bursts(1, 1_000_000_000), 21);
        assert_eq!(bursts(1, 100_000_000_000), 45);
    }

    #[test]
    fn bursts_are_sent_at_the_rate() {
        let mut pacer = pacer(PacingRules::INTERNAL);
        pacer.set_rate(Some(1_000_000));
        let mut sent = vec![];
        let mut now = 0;
        while now < 10 * SECOND / 1000 {
            while !pacer.must_packet_wait(now) {
                pacer.on_sent(now, 1000, 1000);
                sent.push(now);
            }
            now = pacer.next_send_time();
        }
        // Bursts of two packets of one millisecond each.
        assert_eq!(sent.len(), 10);
        assert_eq!(sent[2], 2 * SECOND / 1000);
    }

    #[test]
    fn linux_tcp_update_skb_after_send_paces_from_tenth_packet() {
        let unpaced_packets = |rate| {
            let mut pacer = Pacer::new(&PacingRules::INTERNAL, None);
            pacer.set_rate(Some(rate));
            let mut packets = 0;
            while !pacer.must_packet_wait(0) {
                pacer.on_sent(0, 1000, 1000);
                packets += 1;
            }
            packets
        };
        assert_eq!(unpaced_packets(1_000_000), 10, "chunks of two");
        assert_eq!(unpaced_packets(3_100_000), 12, "of three");
        assert_eq!(unpaced_packets(10_300_000), 10, "of ten");
    }

    #[test]
    fn late_burst_shortens_next_wait_by_at_most_half() {
        let mut pacer = pacer(PacingRules::INTERNAL);
        pacer.set_rate(Some(1_000_000));
        pacer.on_sent(5 * SECOND, 1000, 1000);
        pacer.on_sent(5 * SECOND, 1000, 1000);
        assert_eq!(pacer.next_send_time(), 5 * SECOND + SECOND / 1000);
    }
}
