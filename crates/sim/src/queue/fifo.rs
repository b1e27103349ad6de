//! First-in first-out queues: the departure time of a packet is known on arrival.

use super::{QueueDiscipline, QueueProbe, Verdict, disciplines};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::Stream;
use tcpcast_link::queue::{
    Admission, AdmitAll, Departure, Departures, Leaving, LeavingBytes, Limits, Reason,
};

/// The drop-tail queue.
pub type DropTail = Fifo<AdmitAll, Nanos>;

/// Random early detection that drops packets, with a limited buffer. RED with ECN marks is a
/// managed discipline.
pub type Red = Fifo<disciplines::Red, LeavingBytes>;

/// A first-in first-out queue with an admission rule that may drop packets early. The buffer limit
/// is in packets.
#[derive(Clone, Debug)]
pub struct Fifo<A, L>(Departures<A, L>);

impl DropTail {
    /// Creates an empty queue with a limit of `limit` packets, including the packet in
    /// transmission; `None` is unlimited.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        Self(Departures::of_packets(limit, AdmitAll))
    }
}

impl Red {
    /// Creates an empty queue with a limit of `limit` packets, including the packet in
    /// transmission; `early` decides early drops.
    #[must_use]
    pub fn new(config: disciplines::RedConfig, limit: Option<u64>, early: Stream) -> Self {
        let limits = Limits { packets: limit, ..Limits::default() };
        Self(Departures::new(limits, disciplines::Red::new(config, early)))
    }
}

/// Forwards the events of the queue of crate `link` to a probe.
struct ProbeAdapter<'a, P>(&'a mut P);

impl<P: QueueProbe> disciplines::QueueProbe<()> for ProbeAdapter<'_, P> {
    #[inline(always)]
    fn found(&mut self, packets: u64) {
        self.0.queue_seen(packets as usize);
    }

    #[inline(always)]
    fn held(&mut self, packets: u64, until: Nanos) {
        self.0.queue_held(packets as usize, until);
    }

    fn averaged(&mut self, average: f64) {
        self.0.queue_averaged(average);
    }

    #[inline(always)]
    fn dropped(&mut self, _now: Nanos, _packet: &tcpcast_link::Packet<()>, reason: Reason) {
        if reason == Reason::Early {
            self.0.dropped_early();
        }
    }
}

impl<A: Admission, L: Leaving> QueueDiscipline for Fifo<A, L> {
    #[inline(always)]
    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        let arriving = tcpcast_link::Packet::new((), packet.source(), link.length());
        match self.0.offer(now, arriving, link, &mut ProbeAdapter(probe)) {
            Ok(Departure { leaves, found, .. }) => {
                Verdict::Departs { leaves, backlog: found as usize }
            }
            Err(_) => Verdict::Dropped,
        }
    }

    #[inline(always)]
    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        self.0.advance_to(now, &mut ProbeAdapter(probe));
    }

    fn restart(&mut self) {
        self.0.restart(0);
    }

    fn held(&self) -> usize {
        self.0.held().packets as usize
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        self.0.ahead(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::transmitter;
    use crate::random::{Named, Purpose};

    #[derive(Debug, Default, PartialEq)]
    struct RecordingProbe {
        seen: Vec<usize>,
        held: Vec<(usize, Nanos)>,
        averages: usize,
        early: usize,
    }

    impl QueueProbe for RecordingProbe {
        fn queue_held(&mut self, packets: usize, until: Nanos) {
            self.held.push((packets, until));
        }
        fn queue_seen(&mut self, packets: usize) {
            self.seen.push(packets);
        }
        fn queue_averaged(&mut self, _packets: f64) {
            self.averages += 1;
        }
        fn dropped_early(&mut self) {
            assert!(self.seen.len() == self.averages, "reported before the early drop");
            self.early += 1;
        }
    }

    #[test]
    fn limit_includes_packet_in_transmission_until_it_departs() {
        let mut link = transmitter(Some(12_000_000_000), 1500); // 1500 bytes take 1000 ns
        let mut queue = DropTail::new(Some(2));
        let mut recorded = RecordingProbe::default();
        let mut offer = |now| queue.offer(now, &Packet::default(), &mut link, &mut recorded);
        assert_eq!(offer(0), Verdict::Departs { leaves: 1000, backlog: 0 });
        assert_eq!(offer(0), Verdict::Departs { leaves: 2000, backlog: 1 });
        assert_eq!(offer(999), Verdict::Dropped);
        assert_eq!(offer(1000), Verdict::Departs { leaves: 3000, backlog: 1 });
        let (seen, held) = (vec![0, 1, 2, 1], vec![(0, 0), (1, 0), (2, 1000), (1, 1000)]);
        assert_eq!(recorded, RecordingProbe { seen, held, ..RecordingProbe::default() });
        assert_eq!((queue.held(), queue.ahead(1500)), (2, 2000));
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
            let mut link = transmitter(Some(12_000_000_000), 1500);
            let stream = Stream::named(1, 0, 0, Purpose::EarlyDrop);
            let mut red = Red::new(config, Some(room), stream);
            let mut recorded = RecordingProbe::default();
            let accepted = (0..6).filter(|_| {
                red.offer(0, &Packet::default(), &mut link, &mut recorded) != Verdict::Dropped
            });
            assert_eq!(accepted.count(), 4);
            assert_eq!((recorded.seen, recorded.averages), (vec![0, 1, 2, 3, 4, 4], 6));
            assert_eq!(recorded.early, early);
        }
    }
}
