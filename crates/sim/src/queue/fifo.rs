//! First-in first-out queues: the departure time of a packet is known on arrival.

use super::{EnqueueOutcome, QueueDiscipline, QueueProbe, disciplines};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::RandomStream;
use tcpcast_link::queue::{
    AdmissionRule, AdmitAll, BufferLimits, Departure, DepartureQueue, DepartureWithLength,
    DropReason, StoredDeparture,
};

/// The drop-tail queue.
pub type DropTail = Fifo<AdmitAll, Nanos>;

/// Random early detection that drops packets, with a limited buffer. RED with ECN marks is a
/// managed discipline.
pub type RedQueue = Fifo<disciplines::Red, DepartureWithLength>;

/// A first-in first-out queue with an admission rule that may drop packets early. The buffer limit
/// is in packets.
#[derive(Clone, Debug)]
pub struct Fifo<A, L>(DepartureQueue<A, L>);

impl DropTail {
    /// Creates an empty queue with a limit of `limit` packets, including the packet in
    /// transmission; `None` is unlimited.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        Self(DepartureQueue::with_packet_limit(limit, AdmitAll))
    }
}

impl RedQueue {
    /// Creates an empty queue with a limit of `limit` packets, including the packet in
    /// transmission; `early` decides early drops.
    #[must_use]
    pub fn new(config: disciplines::RedConfig, limit: Option<u64>, early: RandomStream) -> Self {
        let limits = BufferLimits { packets: limit, ..BufferLimits::default() };
        Self(DepartureQueue::new(limits, disciplines::Red::new(config, early)))
    }
}

/// Forwards the events of the queue of crate `link` to a probe.
struct LinkProbeAdapter<'a, P>(&'a mut P);

impl<P: QueueProbe> disciplines::QueueProbe<()> for LinkProbeAdapter<'_, P> {
    #[inline(always)]
    fn on_arrival_queue_length(&mut self, packets: u64) {
        self.0.on_arrival_queue_length(packets as usize);
    }

    #[inline(always)]
    fn on_queue_length_interval(&mut self, packets: u64, until: Nanos) {
        self.0.on_queue_length_interval(packets as usize, until);
    }

    fn on_average_updated(&mut self, average: f64) {
        self.0.on_average_updated(average);
    }

    #[inline(always)]
    fn on_drop(&mut self, _now: Nanos, _packet: &tcpcast_link::Packet<()>, reason: DropReason) {
        if reason == DropReason::Early {
            self.0.on_early_drop();
        }
    }
}

impl<A: AdmissionRule, L: StoredDeparture> QueueDiscipline for Fifo<A, L> {
    #[inline(always)]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> EnqueueOutcome {
        let arriving = tcpcast_link::Packet::new((), packet.source(), link.cached_length());
        match self.0.offer(now, arriving, link, &mut LinkProbeAdapter(probe)) {
            Ok(Departure { leaves, found, .. }) => {
                EnqueueOutcome::Departs { leaves, backlog: found as usize }
            }
            Err(_) => EnqueueOutcome::Dropped,
        }
    }

    #[inline(always)]
    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        self.0.advance_to(now, &mut LinkProbeAdapter(probe));
    }

    fn reset_for_next_transfer(&mut self) {
        self.0.reset_when_empty(0);
    }

    fn held_packets(&self) -> usize {
        self.0.held_backlog().packets as usize
    }

    fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        self.0.sum_of_remaining_times(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::create_fixed_rate_transmitter;
    use crate::random::{NamedStream, StreamPurpose};

    #[derive(Debug, Default, PartialEq)]
    struct RecordingProbe {
        seen: Vec<usize>,
        held: Vec<(usize, Nanos)>,
        averages: usize,
        early: usize,
    }

    impl QueueProbe for RecordingProbe {
        fn on_queue_length_interval(&mut self, packets: usize, until: Nanos) {
            self.held.push((packets, until));
        }
        fn on_arrival_queue_length(&mut self, packets: usize) {
            self.seen.push(packets);
        }
        fn on_average_updated(&mut self, _packets: f64) {
            self.averages += 1;
        }
        fn on_early_drop(&mut self) {
            assert!(self.seen.len() == self.averages, "reported before the early drop");
            self.early += 1;
        }
    }

    #[test]
    fn limit_includes_packet_in_transmission_and_departures_precede_arrivals() {
        let mut link = create_fixed_rate_transmitter(Some(12_000_000_000), 1500); // 1500 bytes take 1000 ns
        let mut queue = DropTail::new(Some(2));
        let mut recorded = RecordingProbe::default();
        let mut offer = |now| queue.enqueue(now, &Packet::default(), &mut link, &mut recorded);
        assert_eq!(offer(0), EnqueueOutcome::Departs { leaves: 1000, backlog: 0 });
        assert_eq!(offer(0), EnqueueOutcome::Departs { leaves: 2000, backlog: 1 });
        assert_eq!(offer(999), EnqueueOutcome::Dropped);
        assert_eq!(offer(1000), EnqueueOutcome::Departs { leaves: 3000, backlog: 1 });
        let (seen, held) = (vec![0, 1, 2, 1], vec![(0, 0), (1, 0), (2, 1000), (1, 1000)]);
        assert_eq!(recorded, RecordingProbe { seen, held, ..RecordingProbe::default() });
        assert_eq!((queue.held_packets(), queue.sum_of_remaining_times(1500)), (2, 2000));
    }

    #[test]
    fn early_drops_follow_the_arrival_if_buffer_has_room() {
        let config = disciplines::RedConfig {
            min_threshold: 1.0,
            max_threshold: 2.0,
            max_probability: 1.0,
            weight: 1.0,
            gentle: false,
            packets_per_second: 1e6,
            unit: disciplines::RedUnit::Packets,
            ecn: false,
        };
        for (room, early) in [(4, 0), (5, 2)] {
            let mut link = create_fixed_rate_transmitter(Some(12_000_000_000), 1500);
            let stream = RandomStream::for_entity(1, 0, 0, StreamPurpose::EarlyDrop);
            let mut red = RedQueue::new(config, Some(room), stream);
            let mut recorded = RecordingProbe::default();
            let accepted = (0..6).filter(|_| {
                red.enqueue(0, &Packet::default(), &mut link, &mut recorded)
                    != EnqueueOutcome::Dropped
            });
            assert_eq!(accepted.count(), 4);
            assert_eq!((recorded.seen, recorded.averages), (vec![0, 1, 2, 3, 4, 4], 6));
            assert_eq!(recorded.early, early);
        }
    }
}
