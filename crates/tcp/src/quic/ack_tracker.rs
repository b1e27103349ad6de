//! Received packet numbers of a space, and when to acknowledge them: RFC 9000, section 13.2.

use super::datagram::{QuicPacket, Space, ack_frame_bytes, older_ranges_bytes};
use super::ranges::RangeSet;
use super::rules::QuicRules;
use tcpcast_link::time::{NEVER, Nanos};

/// Ranges that are kept and reported: `MAX_ACK_BLOCKS` of quinn, `MAX_ACK_RANGES` of aioquic.
const MAX_RANGES: usize = 64;

/// Received packets of a space.
#[derive(Clone, Debug)]
pub(super) struct AckTracker {
    received: RangeSet,
    /// Number of ranges of the last ACK frame, and bytes of all ranges except the newest one.
    /// `None` once a packet has changed more than the newest range.
    older: Option<(usize, u32)>,
    largest_at: Nanos,
    largest_eliciting: Option<u64>,
    /// Ack-eliciting packets since the last acknowledgement.
    eliciting: u32,
    is_due: bool,
    deadline: Nanos,
    ce_count: u64,
}

impl AckTracker {
    pub fn new() -> Self {
        Self {
            received: RangeSet::default(),
            older: None,
            largest_at: 0,
            largest_eliciting: None,
            eliciting: 0,
            is_due: false,
            deadline: NEVER,
            ce_count: 0,
        }
    }

    /// Forgets all packets, and keeps the memory.
    pub fn restart(&mut self) {
        let mut received = std::mem::take(&mut self.received);
        received.clear();
        *self = Self { received, ..Self::new() };
    }

    /// A packet arrives; returns whether it is new.
    #[inline]
    pub fn on_packet(
        &mut self,
        now: Nanos,
        packet: &QuicPacket,
        is_marked: bool,
        rules: &QuicRules,
    ) -> bool {
        let number = packet.number;
        let before = self.received.ranges().last().map_or(0, |range| range.end);
        if !self.received.insert(number, number + 1) {
            return false;
        }
        if number != before {
            self.older = None;
            self.received.keep_highest(MAX_RANGES);
        }
        if number >= before {
            self.largest_at = now;
        }
        self.ce_count += u64::from(is_marked);
        if !packet.is_ack_eliciting() {
            return true;
        }
        self.eliciting += 1;
        let is_immediate = packet.space != Space::Application
            || self.eliciting >= rules.ack_packets
            || (rules.acks_reordering && self.is_out_of_order(number))
            || is_marked;
        self.largest_eliciting = self.largest_eliciting.max(Some(number));
        if is_immediate {
            self.is_due = true;
        } else if self.deadline == NEVER {
            self.deadline = now + rules.ack_delay;
        }
        true
    }

    /// RFC 9000, section 13.2.1: below the largest ack-eliciting packet, or above it with a packet
    /// missing between both.
    #[inline]
    fn is_out_of_order(&self, number: u64) -> bool {
        let Some(largest) = self.largest_eliciting else { return false };
        let newest = self.received.ranges().last();
        number < largest || newest.is_some_and(|range| range.start > largest)
    }

    /// Whether an acknowledgement must be sent now.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether any acknowledgement is waiting for its time or for other frames.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.eliciting > 0
    }

    /// Time at which an acknowledgement becomes due, [`NEVER`] if it is due or none waits.
    #[inline]
    pub fn deadline(&self) -> Nanos {
        if self.is_due { NEVER } else { self.deadline }
    }

    /// The deadline is reached.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.deadline <= now {
            self.is_due = true;
        }
    }

    /// Stops acknowledging, because the keys of the space are discarded.
    pub fn discard(&mut self) {
        (self.is_due, self.eliciting, self.deadline) = (false, 0, NEVER);
    }

    /// Writes an ACK frame of the highest ranges, in at most `max` bytes.
    #[inline]
    pub fn write_ack(&mut self, now: Nanos, max: u32, packet: &mut QuicPacket) {
        // A range takes at most 12 bytes with its gap; most take 2.
        let ranges = self.received.ranges();
        let ranges = &ranges[ranges.len().saturating_sub((max as usize / 4).max(1))..];
        if let Some(newest) = ranges.last() {
            let older = match self.older {
                Some((count, bytes)) if count == ranges.len() => bytes,
                _ => older_ranges_bytes(ranges),
            };
            self.older = Some((ranges.len(), older));
            packet.ack_bytes = ack_frame_bytes(ranges.len(), *newest, older);
        }
        packet.acked.extend_from_slice(ranges);
        packet.ack_delay = now - self.largest_at;
        packet.ce_count = self.ce_count;
        (self.is_due, self.eliciting, self.deadline) = (false, 0, NEVER);
    }

    /// The other end has received an acknowledgement of packets up to `largest`: RFC 9000, section
    /// 13.2.4.
    pub fn on_ack_acknowledged(&mut self, largest: u64) {
        self.older = None;
        self.received.remove_below(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpcast_link::time::MILLISECOND;

    fn data(number: u64) -> QuicPacket {
        QuicPacket { number, ping: true, ..QuicPacket::default() }
    }

    #[test]
    fn second_packet_or_gap_is_acknowledged_at_once() {
        let mut tracker = AckTracker::new();
        let mut receive = |number| {
            assert!(tracker.on_packet(7, &data(number), false, &QuicRules::RFC));
            let (due, at) = (tracker.is_due(), tracker.deadline());
            if due {
                tracker.write_ack(7, 100, &mut QuicPacket::default());
            }
            (due, at)
        };
        assert_eq!(receive(0), (false, 7 + 25 * MILLISECOND));
        assert_eq!(receive(1), (true, NEVER));
        assert_eq!(receive(3), (true, NEVER), "a gap");
        assert_eq!(receive(4), (false, 7 + 25 * MILLISECOND), "the gap was reported");
        assert_eq!(receive(2), (true, NEVER), "fills the gap");
    }

    #[test]
    fn frames_report_ranges_and_forget_acknowledged_ones() {
        let mut tracker = AckTracker::new();
        for number in [0, 1, 4, 6] {
            tracker.on_packet(1000 + number, &data(number), number == 4, &QuicRules::RFC);
        }
        assert!(!tracker.on_packet(2000, &data(4), false, &QuicRules::RFC), "a duplicate");
        let mut packet = QuicPacket::default();
        tracker.write_ack(1500, 100, &mut packet);
        let ranges: Vec<_> = packet.acked.iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(ranges, [(0, 2), (4, 5), (6, 7)]);
        assert_eq!((packet.ack_delay, packet.ce_count), (494, 1));
        tracker.on_ack_acknowledged(4);
        assert_eq!(tracker.received.ranges().len(), 2);
    }

    #[test]
    fn length_of_frames_follows_every_change_of_ranges() {
        let mut tracker = AckTracker::new();
        for step in 0..400 {
            // Every seventh packet is lost, and every 21st arrives late.
            let number = if step % 21 == 20 { step - 6 } else { step };
            if step % 7 != 0 || step % 21 == 20 {
                tracker.on_packet(step, &data(number), false, &QuicRules::RFC);
            }
            if step % 100 == 99 {
                tracker.on_ack_acknowledged(step / 2);
            }
            for max in [40, 1200] {
                let mut packet = QuicPacket::default();
                tracker.write_ack(step, max, &mut packet);
                let Some(newest) = packet.acked.last() else { continue };
                let older = older_ranges_bytes(&packet.acked);
                assert_eq!(packet.ack_bytes, ack_frame_bytes(packet.acked.len(), *newest, older));
            }
        }
    }

    #[test]
    fn number_of_ranges_is_bounded() {
        let mut tracker = AckTracker::new();
        for number in 0..1000 {
            tracker.on_packet(0, &data(2 * number), false, &QuicRules::RFC);
        }
        assert_eq!(tracker.received.ranges().len(), MAX_RANGES);
    }
}
