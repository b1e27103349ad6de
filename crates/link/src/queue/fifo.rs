//! FIFO queue that drops arriving packets when full, or the oldest packets (head drop).

use super::{
    AdmissionRule, AdmitAll, AdmitDecision, ArrivalContext, BufferLimits, DropReason,
    EnqueueOutcome, EvictOldest, QueueDiscipline, QueueProbe, buffer_occupancy::BufferOccupancy,
};
use crate::packet::Packet;
use crate::ring_buffer::RingBuffer;
use crate::time::Nanos;

/// The drop-tail queue.
pub type DropTail<T = u32> = Fifo<T, AdmitAll>;
/// The head-drop queue.
pub type HeadDrop<T = u32> = Fifo<T, EvictOldest>;

/// A FIFO queue behind an admission rule, which may drop or mark packets early.
#[derive(Clone, Debug)]
pub struct Fifo<T, A = AdmitAll> {
    admission: A,
    packets: RingBuffer<Packet<T>>,
    occupancy: BufferOccupancy,
    /// Start of the current idle period of the transmitter.
    idle_since: Nanos,
}

impl<T: Copy, A: AdmissionRule> Fifo<T, A> {
    /// Creates an empty queue with an idle transmitter.
    #[must_use]
    pub fn new(limits: BufferLimits, admission: A) -> Self {
        Self {
            admission,
            packets: RingBuffer::default(),
            occupancy: BufferOccupancy::new(limits),
            idle_since: 0,
        }
    }

    /// The admission rule.
    #[must_use]
    pub fn admission(&self) -> &A {
        &self.admission
    }

    /// Evicts the oldest packets for a packet of `bytes`, unless it does not fit even into an empty
    /// queue.
    fn evict_oldest_for(&mut self, now: Nanos, bytes: u32, probe: &mut impl QueueProbe<T>) {
        let BufferOccupancy { max, in_service, .. } = self.occupancy;
        while max.has_room(in_service, bytes) && !self.occupancy.has_room(bytes) {
            let Some(oldest) = self.packets.pop() else { break };
            self.occupancy.waiting.remove_packet(oldest.bytes);
            probe.on_drop(now, &oldest, DropReason::Full);
        }
    }
}

impl<T: Copy, A: AdmissionRule> QueueDiscipline<T> for Fifo<T, A> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome {
        let mut packet = packet.with_arrival_time(now);
        if A::EVICTS_OLDEST {
            self.evict_oldest_for(now, packet.bytes, probe);
        }
        let has_room = self.occupancy.has_room(packet.bytes);
        let idle = self.occupancy.in_service.packets == 0;
        let context = ArrivalContext {
            bytes: packet.bytes,
            ecn: packet.ecn,
            waiting: self.occupancy.waiting,
            idle_since: idle.then_some(self.idle_since),
            has_room,
        };
        let admit = self.admission.admit(now, &context, probe);
        let verdict = match admit {
            _ if !has_room => {
                self.admission.on_overflow();
                EnqueueOutcome::Dropped(DropReason::Full)
            }
            AdmitDecision::Drop => EnqueueOutcome::Dropped(DropReason::Early),
            AdmitDecision::Mark if packet.mark_if_ecn_capable() => EnqueueOutcome::Marked,
            AdmitDecision::Mark | AdmitDecision::Accept => EnqueueOutcome::Accepted,
        };
        if let EnqueueOutcome::Dropped(reason) = verdict {
            probe.on_drop(now, &packet, reason);
        } else {
            self.occupancy.waiting.add_packet(packet.bytes);
            self.packets.push(packet);
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        let Some(packet) = self.packets.pop() else {
            if self.occupancy.in_service.packets > 0 {
                self.idle_since = now;
                self.occupancy.set_transmitter_idle();
            }
            return None;
        };
        self.occupancy.move_to_transmission(packet.bytes);
        self.admission.on_dequeue(now, &packet, self.occupancy.waiting);
        Some(packet)
    }

    fn occupancy(&self) -> &BufferOccupancy {
        &self.occupancy
    }

    fn deadline(&self) -> Nanos {
        self.admission.deadline()
    }

    fn on_deadline(&mut self, now: Nanos) {
        self.admission.on_deadline(now, self.occupancy.waiting);
    }

    fn reset_when_empty(&mut self, now: Nanos) {
        self.admission.reset(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Backlog;

    fn packet(token: u32, bytes: u32) -> Packet {
        Packet::new(token, 0, bytes)
    }

    #[test]
    fn packet_in_transmission_counts() {
        let mut queue = DropTail::new(BufferLimits::limit_packets(2), AdmitAll);
        let mut dropped = Vec::new();
        queue.enqueue(0, packet(0, 1500), &mut dropped);
        assert_eq!(queue.dequeue(0, &mut dropped).map(|p| p.token), Some(0));
        (1..5).for_each(|token| {
            queue.enqueue(1, packet(token, 1500), &mut dropped);
        });
        assert_eq!((queue.held_backlog().packets, dropped.len()), (2, 3));
        // A departure makes room for one packet.
        queue.dequeue(2, &mut dropped);
        assert_eq!(queue.enqueue(2, packet(5, 1500), &mut dropped), EnqueueOutcome::Accepted);
    }

    #[test]
    fn byte_limit_admits_small_packet_if_large_one_does_not_fit() {
        let mut queue = DropTail::new(BufferLimits::limit_bytes(3000), AdmitAll);
        let mut dropped = Vec::new();
        let mut offer = |bytes| queue.enqueue(0, packet(0, bytes), &mut dropped);
        assert_eq!(offer(1500), EnqueueOutcome::Accepted);
        assert_eq!(offer(1460), EnqueueOutcome::Accepted);
        assert_eq!(offer(41), EnqueueOutcome::Dropped(DropReason::Full));
        assert_eq!(offer(40), EnqueueOutcome::Accepted);
        assert_eq!(queue.held_backlog(), Backlog { packets: 3, bytes: 3000 });
    }

    #[test]
    fn oldest_waiting_packet_is_evicted_but_not_the_one_in_transmission() {
        let mut queue = HeadDrop::new(BufferLimits::limit_packets(3), EvictOldest);
        let mut dropped = Vec::new();
        queue.enqueue(0, packet(0, 1500), &mut dropped);
        queue.dequeue(0, &mut dropped);
        for token in 1..=4 {
            let verdict = queue.enqueue(u64::from(token), packet(token, 1500), &mut dropped);
            assert_eq!(verdict, EnqueueOutcome::Accepted);
        }
        let tokens: Vec<u32> = dropped.iter().map(|packet| packet.token).collect();
        assert_eq!(tokens, [1, 2]);
        assert_eq!(queue.dequeue(9, &mut dropped).map(|packet| packet.token), Some(3));
    }

    #[test]
    fn large_packet_evicts_several_small_packets() {
        let mut queue = HeadDrop::new(BufferLimits::limit_bytes(2000), EvictOldest);
        let mut dropped = Vec::new();
        (0..5).for_each(|token| {
            queue.enqueue(0, packet(token, 400), &mut dropped);
        });
        queue.enqueue(0, packet(5, 1500), &mut dropped);
        assert_eq!((dropped.len(), queue.held_backlog().bytes), (4, 1900));
        assert_eq!(
            queue.enqueue(0, packet(6, 2001), &mut dropped),
            EnqueueOutcome::Dropped(DropReason::Full)
        );
    }

    #[test]
    fn arriving_packet_is_dropped_if_only_the_packet_in_transmission_fits() {
        let mut queue = HeadDrop::new(BufferLimits::limit_packets(1), EvictOldest);
        let mut dropped = Vec::new();
        queue.enqueue(0, packet(0, 1500), &mut dropped);
        queue.dequeue(0, &mut dropped);
        let verdict = queue.enqueue(1, packet(1, 1500), &mut dropped);
        assert_eq!(verdict, EnqueueOutcome::Dropped(DropReason::Full));
        assert_eq!(dropped.len(), 1);
    }
}
