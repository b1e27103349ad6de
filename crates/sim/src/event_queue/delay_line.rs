//! Queue of packets whose events occur in the order of scheduling.

use crate::clock::Nanos;
use crate::packet::Packet;
use tcpcast_link::ring_buffer::RingBuffer;

/// Maximum number of packets that an inserted packet may precede; beyond that a heap is faster.
const MAX_OVERTAKEN: usize = 16;

/// A delay line: packets that are scheduled at "now plus a constant".
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayLine {
    pending: RingBuffer<TimedPacket>,
    /// Latest scheduled time. Remains valid when the line is empty, because nothing is scheduled in
    /// the past.
    last: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct TimedPacket {
    time: Nanos,
    packet: Packet,
}

impl DelayLine {
    /// Appends a packet if this keeps the line in order. Returns true if the packet was appended.
    #[inline(always)]
    pub(crate) fn push_in_order(&mut self, time: Nanos, packet: Packet) -> bool {
        if time < self.last {
            return false;
        }
        self.last = time;
        self.pending.push(TimedPacket { time, packet });
        true
    }

    /// Inserts a packet before all packets with a later time. Returns its position, or `None` if
    /// more than [`MAX_OVERTAKEN`] packets are later.
    pub(crate) fn insert_by_time(&mut self, time: Nanos, packet: Packet) -> Option<usize> {
        let position =
            self.pending.insert_in_order(TimedPacket { time, packet }, MAX_OVERTAKEN, |next| {
                next.time > time
            })?;
        self.last = self.last.max(time);
        Some(position)
    }

    /// Number of packets.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Time of the first packet.
    #[inline(always)]
    pub(crate) fn first_time(&self) -> Option<Nanos> {
        self.pending.first().map(|pending| pending.time)
    }

    /// Takes the first packet; the line must not be empty.
    #[inline(always)]
    pub(crate) fn take_first(&mut self) -> Packet {
        self.pending.pop_existing().packet
    }

    /// All packets in order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.pending.iter().map(|pending| &pending.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketLabel;
    use proptest::prelude::*;

    fn packet(number: u32) -> Packet {
        Packet::new(0, 1, number, PacketLabel::default())
    }

    proptest! {
        #[test]
        fn insert_orders_by_time_and_then_by_arrival(
            times in prop::collection::vec(0_u64..40, 1..80),
        ) {
            let mut line = DelayLine::default();
            let mut sorted: Vec<(Nanos, u32)> = Vec::new();
            for (number, time) in (0..).zip(times) {
                let position = sorted.partition_point(|(due, _)| *due <= time);
                let reached = sorted.len() - position <= MAX_OVERTAKEN;
                prop_assert_eq!(line.insert_by_time(time, packet(number)), reached.then_some(position));
                if reached {
                    sorted.insert(position, (time, number));
                }
                prop_assert_eq!(line.first_time(), sorted.first().map(|(due, _)| *due));
                prop_assert!(line.packets().map(Packet::number).eq(sorted.iter().map(|each| each.1)));
                prop_assert_eq!(line.last, sorted.last().map_or(0, |each| each.0));
            }
        }
    }

    #[test]
    fn push_after_insert_accepts_packets_later_than_all() {
        let mut line = DelayLine::default();
        assert!(line.push_in_order(10, packet(1)));
        assert_eq!(line.insert_by_time(5, packet(2)), Some(0));
        assert!(!line.push_in_order(9, packet(3)), "earlier than the last one");
        assert!(line.push_in_order(10, packet(4)));
        let numbers: Vec<_> = (0..3).map(|_| line.take_first().number()).collect();
        assert_eq!(numbers, [2, 1, 4]);
    }
}
