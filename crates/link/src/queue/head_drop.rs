//! FIFO with head drop: a packet that arrives at a full buffer evicts the oldest packet, so that
//! its sender detects the loss earlier.

use super::{
    BufferLimits, DropReason, EnqueueOutcome, QueueDiscipline, QueueProbe,
    buffer_occupancy::BufferOccupancy,
};
use crate::packet::Packet;
use crate::ring_buffer::RingBuffer;
use crate::time::Nanos;

/// The head-drop queue. The packet in transmission is never evicted.
#[derive(Clone, Debug)]
pub struct HeadDrop<T = u32> {
    packets: RingBuffer<Packet<T>>,
    occupancy: BufferOccupancy,
}

impl<T: Copy> HeadDrop<T> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(limits: BufferLimits) -> Self {
        Self { packets: RingBuffer::default(), occupancy: BufferOccupancy::new(limits) }
    }
}

impl<T: Copy> QueueDiscipline<T> for HeadDrop<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome {
        let packet = packet.with_arrival_time(now);
        let BufferOccupancy { max, in_service, .. } = self.occupancy;
        // Evicting packets cannot make room if the packet does not fit even into an empty queue.
        if !max.has_room(in_service, packet.bytes) {
            probe.on_drop(now, &packet, DropReason::Full);
            return EnqueueOutcome::Dropped(DropReason::Full);
        }
        while !self.occupancy.has_room(packet.bytes) {
            let Some(oldest) = self.packets.pop() else { break };
            self.occupancy.waiting.remove_packet(oldest.bytes);
            probe.on_drop(now, &oldest, DropReason::Full);
        }
        self.occupancy.waiting.add_packet(packet.bytes);
        self.packets.push(packet);
        EnqueueOutcome::Accepted
    }

    #[inline]
    fn dequeue(&mut self, _now: Nanos, _probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        let packet = self.packets.pop();
        match &packet {
            Some(packet) => self.occupancy.move_to_transmission(packet.bytes),
            None => self.occupancy.set_transmitter_idle(),
        }
        packet
    }

    fn occupancy(&self) -> &BufferOccupancy {
        &self.occupancy
    }

    fn reset_when_empty(&mut self, _now: Nanos) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_waiting_packet_is_evicted_but_not_the_one_in_transmission() {
        let mut queue = HeadDrop::new(BufferLimits::limit_packets(3));
        let mut dropped = Vec::new();
        queue.enqueue(0, Packet::new(0, 0, 1500), &mut dropped);
        queue.dequeue(0, &mut dropped);
        for token in 1..=4 {
            let verdict =
                queue.enqueue(u64::from(token), Packet::new(token, 0, 1500), &mut dropped);
            assert_eq!(verdict, EnqueueOutcome::Accepted);
        }
        let tokens: Vec<u32> = dropped.iter().map(|packet| packet.token).collect();
        assert_eq!(tokens, [1, 2]);
        assert_eq!(queue.dequeue(9, &mut dropped).map(|packet| packet.token), Some(3));
    }

    #[test]
    fn large_packet_evicts_several_small_packets() {
        let mut queue = HeadDrop::new(BufferLimits::limit_bytes(2000));
        let mut dropped = Vec::new();
        (0..5).for_each(|token| {
            queue.enqueue(0, Packet::new(token, 0, 400), &mut dropped);
        });
        queue.enqueue(0, Packet::new(5, 0, 1500), &mut dropped);
        assert_eq!((dropped.len(), queue.held_backlog().bytes), (4, 1900));
        assert_eq!(
            queue.enqueue(0, Packet::new(6, 0, 2001), &mut dropped),
            EnqueueOutcome::Dropped(DropReason::Full)
        );
    }

    #[test]
    fn arriving_packet_is_dropped_if_only_the_packet_in_transmission_fits() {
        let mut queue = HeadDrop::new(BufferLimits::limit_packets(1));
        let mut dropped = Vec::new();
        queue.enqueue(0, Packet::new(0, 0, 1500), &mut dropped);
        queue.dequeue(0, &mut dropped);
        let verdict = queue.enqueue(1, Packet::new(1, 0, 1500), &mut dropped);
        assert_eq!(verdict, EnqueueOutcome::Dropped(DropReason::Full));
        assert_eq!(dropped.len(), 1);
    }
}
