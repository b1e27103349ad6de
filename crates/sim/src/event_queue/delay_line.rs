//! Packets that come due in the order in which they are scheduled.

use crate::clock::Nanos;
use crate::packet::Packet;
use tcpcast_link::ring::Ring;

/// Most packets that one is put in front of; a heap is faster beyond.
const REACH: usize = 16;

/// A delay line: what is scheduled at "now plus a constant".
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayLine {
    pending: Ring<Pending>,
    /// When the one scheduled last is due. It is not in the past while it is pending, and
    /// nothing is scheduled in the past, so it need not be forgotten when the line is empty.
    last: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    time: Nanos,
    packet: Packet,
}

impl DelayLine {
    /// Appends a packet if that keeps the line in order; says whether it did.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Nanos, packet: Packet) -> bool {
        if time < self.last {
            return false;
        }
        self.last = time;
        self.pending.push(Pending { time, packet });
        true
    }

    /// Inserts a packet in front of those that come due later; returns how many come due no later, or `None` if
    /// more than [`REACH`] come due later.
    pub(crate) fn insert(&mut self, time: Nanos, packet: Packet) -> Option<usize> {
        let place =
            self.pending.insert(Pending { time, packet }, REACH, |next| next.time > time)?;
        self.last = self.last.max(time);
        Some(place)
    }

    /// How many packets are on it.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// When the first comes due.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.pending.first().map(|pending| pending.time)
    }

    /// Takes the first; there must be one.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Packet {
        self.pending.take().packet
    }

    /// All of them in their order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.pending.iter().map(|pending| &pending.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Label;
    use proptest::prelude::*;

    fn packet(number: u32) -> Packet {
        Packet::new(0, 1, number, Label::default())
    }

    proptest! {
        #[test]
        fn insertion_keeps_the_order_of_time_and_then_of_arrival(
            times in prop::collection::vec(0_u64..40, 1..80),
        ) {
            let mut line = DelayLine::default();
            let mut sorted: Vec<(Nanos, u32)> = Vec::new();
            for (number, time) in (0..).zip(times) {
                let place = sorted.partition_point(|(due, _)| *due <= time);
                let reached = sorted.len() - place <= REACH;
                prop_assert_eq!(line.insert(time, packet(number)), reached.then_some(place));
                if reached {
                    sorted.insert(place, (time, number));
                }
                prop_assert_eq!(line.first(), sorted.first().map(|(due, _)| *due));
                prop_assert!(line.packets().map(Packet::number).eq(sorted.iter().map(|each| each.1)));
                prop_assert_eq!(line.last, sorted.last().map_or(0, |each| each.0));
            }
        }
    }

    #[test]
    fn a_packet_later_than_all_is_in_order_after_an_insertion() {
        let mut line = DelayLine::default();
        assert!(line.push(10, packet(1)));
        assert_eq!(line.insert(5, packet(2)), Some(0));
        assert!(!line.push(9, packet(3)), "earlier than the last one");
        assert!(line.push(10, packet(4)));
        let numbers: Vec<_> = (0..3).map(|_| line.take().number()).collect();
        assert_eq!(numbers, [2, 1, 4]);
    }
}
