//! FIFO queue that drops arriving packets when full.

use super::{
    Admission, Admit, AdmitAll, ArrivalContext, Backlog, Limits, QueueDiscipline, QueueProbe,
    Reason, Verdict, occupancy::Occupancy,
};
use crate::packet::Packet;
use crate::ring::Ring;
use crate::time::Nanos;

/// The drop-tail queue.
pub type DropTail<T = u32> = Fifo<T, AdmitAll>;

/// A FIFO queue behind an admission rule, which may drop or mark packets early.
#[derive(Clone, Debug)]
pub struct Fifo<T, A = AdmitAll> {
    admission: A,
    packets: Ring<Packet<T>>,
    occupancy: Occupancy,
    /// Start of the current idle period of the transmitter.
    idle_since: Nanos,
}

impl<T: Copy, A: Admission> Fifo<T, A> {
    /// Creates an empty queue with an idle transmitter.
    #[must_use]
    pub fn new(limits: Limits, admission: A) -> Self {
        Self {
            admission,
            packets: Ring::default(),
            occupancy: Occupancy::new(limits),
            idle_since: 0,
        }
    }

    /// The admission rule.
    #[must_use]
    pub fn admission(&self) -> &A {
        &self.admission
    }
}

impl<T: Copy, A: Admission> QueueDiscipline<T> for Fifo<T, A> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Verdict {
        let mut packet = packet.enter(now);
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
                Verdict::Dropped(Reason::Full)
            }
            Admit::Drop => Verdict::Dropped(Reason::Early),
            Admit::Mark if packet.mark() => Verdict::Marked,
            Admit::Mark | Admit::Accept => Verdict::Accepted,
        };
        if let Verdict::Dropped(reason) = verdict {
            probe.dropped(now, &packet, reason);
        } else {
            self.occupancy.waiting.add(packet.bytes);
            self.packets.push(packet);
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        let Some(packet) = self.packets.pop() else {
            if self.occupancy.in_service.packets > 0 {
                self.idle_since = now;
                self.occupancy.idle();
            }
            return None;
        };
        self.occupancy.serve(packet.bytes);
        self.admission.on_dequeue(now, &packet, self.occupancy.waiting);
        Some(packet)
    }

    fn waiting(&self) -> Backlog {
        self.occupancy.waiting
    }

    fn held(&self) -> Backlog {
        self.occupancy.held()
    }

    fn deadline(&self) -> Nanos {
        self.admission.deadline()
    }

    fn on_deadline(&mut self, now: Nanos) {
        self.admission.on_deadline(now, self.occupancy.waiting);
    }

    fn restart(&mut self, now: Nanos) {
        self.admission.restart(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::InService;

    fn packet(token: u32, bytes: u32) -> Packet {
        Packet::new(token, 0, bytes)
    }

    #[test]
    fn packet_in_transmission_counts_unless_configured_as_extra() {
        for (in_service, fit) in [(InService::Counts, 2), (InService::IsExtra, 3)] {
            let limits = Limits { in_service, ..Limits::packets(2) };
            let mut queue = DropTail::new(limits, AdmitAll);
            let mut dropped = Vec::new();
            queue.enqueue(0, packet(0, 1500), &mut dropped);
            assert_eq!(queue.dequeue(0, &mut dropped).map(|p| p.token), Some(0));
            (1..5).for_each(|token| {
                queue.enqueue(1, packet(token, 1500), &mut dropped);
            });
            assert_eq!(queue.held().packets, fit);
            assert_eq!(dropped.len() as u64, 5 - fit);
            // A departure makes room for one packet.
            queue.dequeue(2, &mut dropped);
            assert_eq!(queue.enqueue(2, packet(5, 1500), &mut dropped), Verdict::Accepted);
        }
    }

    #[test]
    fn byte_limit_admits_small_packet_if_large_one_does_not_fit() {
        let mut queue = DropTail::new(Limits::bytes(3000), AdmitAll);
        let mut dropped = Vec::new();
        let mut offer = |bytes| queue.enqueue(0, packet(0, bytes), &mut dropped);
        assert_eq!(offer(1500), Verdict::Accepted);
        assert_eq!(offer(1460), Verdict::Accepted);
        assert_eq!(offer(41), Verdict::Dropped(Reason::Full));
        assert_eq!(offer(40), Verdict::Accepted);
        assert_eq!(queue.held(), Backlog { packets: 3, bytes: 3000 });
    }
}
