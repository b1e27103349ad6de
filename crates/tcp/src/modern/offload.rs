//! Segmentation offload as in Linux. Packets are passed to an interface in chunks of about a
//! millisecond (`tcp_tso_autosize`). A partial chunk waits for the next acknowledgement if that is
//! due soon (`tcp_tso_should_defer`; how soon depends on the release). The last packet of a chunk is
//! pushed, so the receiver acknowledges it as soon as the application has read it.

use super::cc::path_model::{MAX_BURST_BYTES, burst_bytes};
use super::cc::window_bytes;
use super::recovery_phase::PhaseName;
use super::sender::Sender;
use super::stack::Stack;
use super::u128_division::divide_u128;
use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// Minimum chunk size if the congestion control does not set it: `tcp_min_tso_segs`.
const MIN_CHUNK_PACKETS: u32 = 2;
/// A chunk of at least 1/3 of the window does not wait: `tcp_tso_win_divisor`.
const WINDOW_DIVISOR: u32 = 3;
/// A chunk waits for at most this time after the last packet.
const MAX_DEFERRAL: Nanos = MILLISECOND;
/// Chunks are larger by 64 KiB, halved per 512 µs of the minimum round-trip time:
/// `tcp_tso_rtt_log`.
const MIN_RTT_SHIFT: u32 = 9;

/// Limit of a partial chunk that is deferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DeferralReason {
    /// No chunk is deferred.
    #[default]
    No,
    /// The congestion window.
    ByWindow,
    /// The receive window.
    ByReceiver,
    /// The amount of data written by the application.
    ByData,
}

/// Chunk being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OffloadChunk {
    /// Remaining packets.
    left: u32,
    /// Whether the chunk has more than one packet.
    has_several: bool,
    /// Why new data waits until a larger chunk can be sent.
    deferral: DeferralReason,
}

impl OffloadChunk {
    /// Ends the chunk; returns why data waits for a larger one.
    #[inline(always)]
    pub fn end_chunk_and_take_deferral(&mut self) -> DeferralReason {
        self.left = 0;
        std::mem::take(&mut self.deferral)
    }

    /// Records sent packets; returns true if the last of these packets is pushed.
    #[inline(always)]
    pub fn count_sent_and_check_push(&mut self, packets: u32) -> bool {
        self.left -= packets;
        self.left == 0 && self.has_several
    }
}

impl Sender {
    /// Number of packets left in the current chunk, or in a new chunk if the current chunk has
    /// ended; 0 if the chunk is deferred. The window must allow at least one packet.
    #[inline(always)]
    pub(super) fn packets_left_in_chunk(&mut self, now: Nanos, stack: &Stack) -> u32 {
        if self.chunk.left == 0 {
            let room = self.window.cwnd - self.flight.in_flight();
            let packets =
                if stack.offload { self.begin_next_chunk(now, room, stack) } else { room };
            let deferral =
                if packets == 0 { self.deferral_reason(room, stack) } else { DeferralReason::No };
            let has_several = stack.offload && packets > 1;
            self.chunk = OffloadChunk { left: packets, has_several, deferral };
        }
        self.chunk.left
    }

    #[inline(always)]
    fn begin_next_chunk(&mut self, now: Nanos, room: u32, stack: &Stack) -> u32 {
        let room = room.min(self.receiver_allowed_packets(room, stack));
        let half = (self.window.cwnd / 2).max(1);
        match self.full_chunk_size(room, stack) {
            Some(full) => full.min(half),
            None if self.should_defer_partial_chunk(now, room, stack) => 0,
            None => room.min(half),
        }
    }

    /// Linux's `tcp_tso_should_defer`: the congestion window is the limit only if it allows less
    /// data than the receive window and less than the application has written.
    fn deferral_reason(&self, room: u32, stack: &Stack) -> DeferralReason {
        let window = u64::from(room) * u64::from(stack.mss);
        let allowed = self.allowed - self.flight.end_byte();
        match self.unsent_bytes() {
            unsent if window < allowed && window <= unsent => DeferralReason::ByWindow,
            unsent if allowed <= window && allowed <= unsent => DeferralReason::ByReceiver,
            _ => DeferralReason::ByData,
        }
    }

    /// Number of packets that the receiver accepts, at most `room`.
    #[inline(always)]
    fn receiver_allowed_packets(&self, room: u32, stack: &Stack) -> u32 {
        let allowed = self.allowed - self.flight.end_byte();
        if allowed >= u64::from(room) * u64::from(stack.mss) {
            return room;
        }
        (allowed / u64::from(stack.mss)).max(1) as u32
    }

    /// Size of a full chunk if the window allows it: data for about a millisecond at the current
    /// rate, and more for short round-trip times.
    #[inline(always)]
    fn full_chunk_size(&mut self, room: u32, stack: &Stack) -> Option<u32> {
        if let Some(rate) = self.control.pacing_rate() {
            let full = self.pacer.packets_per_chunk(rate, stack.mss);
            return (full <= room).then_some(full);
        }
        let srtt = self.rtt.srtt().filter(|&srtt| srtt > 0)?;
        let bytes = window_bytes(&self.window, self.flight.packets_out(), stack.mss);
        let extra = self.extra_bytes_for_short_rtt();
        // Most chunks have the minimum size or are not full, which is found without a division.
        let reaches = |packets: u32| {
            let beyond = (u64::from(packets) * u64::from(stack.mss)).saturating_sub(extra);
            beyond <= MAX_BURST_BYTES && bytes >= u128::from(beyond << 10) * u128::from(srtt)
        };
        if !reaches(MIN_CHUNK_PACKETS + 1) {
            return (MIN_CHUNK_PACKETS <= room).then_some(MIN_CHUNK_PACKETS);
        }
        if reaches(room + 1) {
            return None;
        }
        let bytes = burst_bytes(divide_u128(bytes, srtt) as u64) + extra;
        let full = (bytes.min(MAX_BURST_BYTES) / u64::from(stack.mss)) as u32;
        Some(full.max(MIN_CHUNK_PACKETS)).filter(|&full| full <= room)
    }

    /// Sets the chunk size of pacing to the chunk size of segmentation offload.
    #[inline(always)]
    pub(super) fn set_pacing_chunk_size(&mut self, stack: &Stack) {
        if stack.offload {
            self.pacer.set_extra_bytes(self.extra_bytes_for_short_rtt());
        }
    }

    /// Bytes added to chunks for short round-trip times.
    #[inline(always)]
    fn extra_bytes_for_short_rtt(&self) -> u64 {
        let span = self.rtt.min_rtt().map_or(NEVER, |min| (min / 1000) >> MIN_RTT_SHIFT);
        if span < u64::from(u32::BITS) { MAX_BURST_BYTES >> span } else { 0 }
    }

    /// Whether a partial chunk of `room` packets waits for the next acknowledgement.
    #[inline(always)]
    fn should_defer_partial_chunk(&self, now: Nanos, room: u32, stack: &Stack) -> bool {
        if self.phase.name() >= PhaseName::Recovery || self.flight.packets_out() == 0 {
            return false;
        }
        let last =
            if self.pacer.is_pacing() { self.pacer.next_send_time() } else { self.last_sent };
        let allowed = (self.allowed - self.una) / u64::from(stack.mss);
        if now > last + MAX_DEFERRAL
            || u64::from(room * WINDOW_DIVISOR) >= allowed.min(u64::from(self.window.cwnd))
        {
            return false;
        }
        let srtt = self.rtt.srtt().unwrap_or(0);
        let due = self.flight.packet(self.flight.first_number()).sent_at + srtt;
        let wait = stack.kernel.max_deferral_for_ack.min(srtt / 2);
        due <= now + wait && !self.is_chunk_complete(room, stack)
    }

    /// Whether the chunk cannot grow beyond `room` packets, because the buffer with the
    /// application's data or the closed stream ends.
    #[inline(always)]
    fn is_chunk_complete(&self, room: u32, stack: &Stack) -> bool {
        let (unsent, mss) = (self.unsent_bytes(), u64::from(stack.mss));
        let buffered = self.packets_to_buffer_end(stack);
        if unsent > u64::from(buffered) * mss {
            return room >= buffered;
        }
        // A single packet is not a chunk.
        unsent <= mss || (self.closed && unsent < u64::from(room) * mss)
    }
}

/// Number of packets in a full buffer with the application's data.
#[inline(always)]
pub(super) fn max_packets_per_buffer(stack: &Stack) -> u32 {
    ((MAX_BURST_BYTES / u64::from(stack.mss)) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::kernel_version::KernelVersion;
    use super::super::presets::Preset;
    use super::super::segment::{ArrivingAck, PacketToSend, Timestamps, timestamp_at};
    use super::*;

    const RTT: Nanos = 20 * MILLISECOND;

    /// A sender in congestion avoidance, with a window of 200 packets.
    fn sender(packets: u64, stack: &Stack) -> Sender {
        let mut sender = Sender::new(0, 1, 7, stack);
        sender.on_established(0, Some(RTT), 1 << 40, stack);
        (sender.window.cwnd, sender.window.ssthresh) = (200, 100);
        sender.write_bytes(0, packets * u64::from(stack.mss), stack, &mut ());
        sender
    }

    fn send(sender: &mut Sender, now: Nanos, stack: &Stack) -> Vec<PacketToSend> {
        std::iter::from_fn(|| sender.poll_transmit(now, stack)).collect()
    }

    /// Acknowledges two packets every `interval` while packets are outstanding; returns the times
    /// and numbers of packets sent.
    fn acknowledge(sender: &mut Sender, interval: Nanos, stack: &Stack) -> Vec<(Nanos, usize)> {
        let mut sent = vec![];
        let (mut now, end) = (RTT, RTT + 10 * MILLISECOND);
        while sender.flight.packets_out() > 0 && now < end {
            let ack = (sender.una + 2 * u64::from(stack.mss)).min(sender.flight.end_byte());
            let stamps = Timestamps { value: 1, echo: timestamp_at(now - RTT) };
            let (window, timestamps) = (1 << 40, Some(stamps));
            let ack = ArrivingAck { ack, window, seq: 1, timestamps, ..ArrivingAck::default() };
            sender.on_ack(now, &ack, stack, &mut ());
            let packets = send(sender, now, stack).len();
            sent.extend((packets > 0).then_some((now - RTT, packets)));
            now += interval;
        }
        sent
    }

    #[test]
    fn linux_tcp_tso_autosize_sends_pushed_chunks_of_1_ms() {
        let stack = Preset::LinuxReno.stack();
        let sent = send(&mut sender(1000, &stack), 0, &stack);
        assert_eq!(sent.len(), 200);
        // 1.2 times 200 packets per 20 ms are 11.7 packets per 1/1024 s.
        for (index, packet) in sent.iter().enumerate() {
            assert_eq!(packet.push, index % 11 == 10 || index == 199, "{index}");
        }
        let rfc = Preset::RfcSack.stack();
        assert!(send(&mut sender(1000, &rfc), 0, &rfc).iter().all(|packet| !packet.push));
    }

    #[test]
    fn linux_tcp_tso_should_defer_collects_acks_of_a_millisecond() {
        let stack = Preset::LinuxReno.stack();
        let mut fast = sender(1000, &stack);
        send(&mut fast, 0, &stack);
        let sent = acknowledge(&mut fast, 240_000, &stack);
        // The fifth buffer of 45 packets ends with the 225th.
        assert_eq!(sent[..4], [(0, 2), (1_200_000, 10), (2_400_000, 10), (2_880_000, 4)]);
        let mut slow = sender(1000, &stack);
        send(&mut slow, 0, &stack);
        let sent = acknowledge(&mut slow, 1_200_000, &stack);
        assert!(sent.len() > 7 && sent.iter().all(|&(_, packets)| packets == 2), "{sent:?}");
        let rfc = Preset::RfcSack.stack();
        let mut never = sender(1000, &rfc);
        send(&mut never, 0, &rfc);
        assert_eq!(acknowledge(&mut never, 240_000, &rfc)[..2], [(0, 2), (240_000, 2)]);
    }

    #[test]
    fn linux_tcp_tso_should_defer_does_not_defer_in_recovery_or_at_end() {
        let stack = Preset::LinuxReno.stack();
        let mut recovers = sender(1000, &stack);
        send(&mut recovers, 0, &stack);
        recovers.enter_recovery(1, false, &stack, &mut ());
        recovers.last_sent = RTT;
        assert!(!recovers.should_defer_partial_chunk(RTT, 2, &stack));
        let mut ends = sender(205, &stack);
        send(&mut ends, 0, &stack);
        ends.last_sent = RTT;
        assert!(ends.should_defer_partial_chunk(RTT, 6, &stack), "the application may write more");
        ends.close_stream();
        assert!(
            !ends.should_defer_partial_chunk(RTT, 6, &stack),
            "the window allows all remaining data"
        );
        assert!(ends.should_defer_partial_chunk(RTT, 4, &stack));
    }

    #[test]
    fn linux_tcp_tso_should_defer_waits_for_half_an_rtt_until_6_17() {
        let versions =
            [KernelVersion::V5_4, KernelVersion::V5_15, KernelVersion::V6_12, KernelVersion::V6_18];
        // The first acknowledgement is due after 20 ms.
        let defers = [9, 11, 18, 19].map(|ms| {
            versions.map(|version| {
                let stack = Stack { kernel: version.rules(), ..Preset::LinuxReno.stack() };
                let mut sender = sender(1000, &stack);
                send(&mut sender, 0, &stack);
                sender.last_sent = ms * MILLISECOND;
                sender.should_defer_partial_chunk(ms * MILLISECOND, 6, &stack)
            })
        });
        let (none, until_6_17, all) = ([false; 4], [true, true, true, false], [true; 4]);
        assert_eq!(defers, [none, until_6_17, until_6_17, all]);
    }

    #[test]
    fn linux_tcp_tso_should_defer_reports_smallest_limit() {
        let stack = Preset::LinuxReno.stack();
        let mss = u64::from(stack.mss);
        let mut sender = sender(1000, &stack);
        let mut deferral = |room, allowed| {
            sender.allowed = sender.flight.end_byte() + allowed;
            sender.deferral_reason(room, &stack)
        };
        assert_eq!(deferral(5, 6 * mss), DeferralReason::ByWindow);
        assert_eq!(deferral(5, 5 * mss), DeferralReason::ByReceiver);
        assert_eq!(deferral(5, 2 * mss + 1), DeferralReason::ByReceiver);
        assert_eq!(deferral(1001, 1002 * mss), DeferralReason::ByData);
        assert_eq!(deferral(1002, 1001 * mss), DeferralReason::ByData);
    }

    #[test]
    fn receiver_limited_window_grows_to_twice_its_used_part() {
        const ALLOWED: u64 = 363;
        let stack = Preset::LinuxReno.stack();
        let mss = u64::from(stack.mss);
        let mut sender = Sender::new(0, 1, 7, &stack);
        sender.on_established(0, Some(RTT), ALLOWED * mss, &stack);
        sender.write_bytes(0, 1 << 40, &stack, &mut ());
        send(&mut sender, 0, &stack);
        // Many round trips, with an acknowledgement of two packets every 0.1 ms.
        for round in 1..=60 {
            let (mut now, end) = (round * RTT, sender.flight.end_byte());
            while sender.una < end {
                let ack = (sender.una + 2 * mss).min(end);
                let timestamps = Some(Timestamps { value: 1, echo: timestamp_at(now - RTT) });
                let ack = ArrivingAck {
                    ack,
                    window: ALLOWED * mss,
                    seq: 1,
                    timestamps,
                    ..ArrivingAck::default()
                };
                sender.on_ack(now, &ack, &stack, &mut ());
                send(&mut sender, now, &stack);
                now += MILLISECOND / 10;
            }
        }
        assert_eq!(sender.window.cwnd, 2 * ALLOWED as u32);
    }
}
