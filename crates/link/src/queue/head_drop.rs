//! First in, first out; a packet that finds the buffer full pushes out the one that has waited
//! longest, so that the sender hears of it sooner.

use super::{Backlog, Limits, QueueDiscipline, QueueProbe, Reason, Verdict, occupancy::Occupancy};
use crate::packet::Packet;
use crate::ring::Ring;
use crate::time::Nanos;

/// The head-drop queue. The packet in transmission is not pushed out.
#[derive(Clone, Debug)]
pub struct HeadDrop<T = u32> {
    packets: Ring<Packet<T>>,
    occupancy: Occupancy,
}

impl<T: Copy> HeadDrop<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { packets: Ring::default(), occupancy: Occupancy::new(limits) }
    }
}

impl<T: Copy> QueueDiscipline<T> for HeadDrop<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Verdict {
        let packet = packet.enter(now);
        let Occupancy { most, in_service, .. } = self.occupancy;
        let stays = if most.service_counts { in_service } else { Backlog::default() };
        // Where it does not fit beside the packet in transmission, nobody can make room for it.
        if !most.has_room(stays, packet.bytes) {
            probe.dropped(now, &packet, Reason::Full);
            return Verdict::Dropped(Reason::Full);
        }
        while !self.occupancy.has_room(packet.bytes) {
            let Some(oldest) = self.packets.pop() else { break };
            self.occupancy.waiting.remove(oldest.bytes);
            probe.dropped(now, &oldest, Reason::Full);
        }
        self.occupancy.waiting.add(packet.bytes);
        self.packets.push(packet);
        Verdict::Accepted
    }

    #[inline]
    fn dequeue(&mut self, _now: Nanos, _probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        let packet = self.packets.pop();
        match &packet {
            Some(packet) => self.occupancy.serve(packet.bytes),
            None => self.occupancy.idle(),
        }
        packet
    }

    fn waiting(&self) -> Backlog {
        self.occupancy.waiting
    }

    fn held(&self) -> Backlog {
        self.occupancy.held()
    }

    fn restart(&mut self, _now: Nanos) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_waits_makes_room_and_not_the_one_in_transmission() {
        let mut queue = HeadDrop::new(Limits::packets(3));
        let mut dropped = Vec::new();
        queue.enqueue(0, Packet::new(0, 0, 1500), &mut dropped);
        queue.dequeue(0, &mut dropped);
        for token in 1..=4 {
            let verdict =
                queue.enqueue(u64::from(token), Packet::new(token, 0, 1500), &mut dropped);
            assert_eq!(verdict, Verdict::Accepted);
        }
        let tokens: Vec<u32> = dropped.iter().map(|packet| packet.token).collect();
        assert_eq!(tokens, [1, 2]);
        assert_eq!(queue.dequeue(9, &mut dropped).map(|packet| packet.token), Some(3));
    }

    #[test]
    fn a_large_packet_pushes_out_several_small_ones() {
        let mut queue = HeadDrop::new(Limits::bytes(2000));
        let mut dropped = Vec::new();
        (0..5).for_each(|token| {
            queue.enqueue(0, Packet::new(token, 0, 400), &mut dropped);
        });
        queue.enqueue(0, Packet::new(5, 0, 1500), &mut dropped);
        assert_eq!((dropped.len(), queue.held().bytes), (4, 1900));
        assert_eq!(
            queue.enqueue(0, Packet::new(6, 0, 2001), &mut dropped),
            Verdict::Dropped(Reason::Full)
        );
    }

    #[test]
    fn where_only_the_one_in_transmission_fits_the_arriving_packet_is_dropped() {
        let mut queue = HeadDrop::new(Limits::packets(1));
        let mut dropped = Vec::new();
        queue.enqueue(0, Packet::new(0, 0, 1500), &mut dropped);
        queue.dequeue(0, &mut dropped);
        let verdict = queue.enqueue(1, Packet::new(1, 0, 1500), &mut dropped);
        assert_eq!(verdict, Verdict::Dropped(Reason::Full));
        assert_eq!(dropped.len(), 1);
    }
}
