//! First in, first out: the departure is known on arrival.

use super::{QueueDiscipline, QueueProbe, Verdict, disciplines};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::Stream;
use tcpcast_link::queue::{
    Admission, AdmitAll, Departure, Departures, Leaving, LeavingBytes, Limits, Reason,
};

/// The drop-tail queue.
pub type DropTail = Fifo<AdmitAll, Nanos>;

/// Random early detection over a buffer that may also be full. It drops; where it is to mark, it is
/// among the managed disciplines.
pub type Red = Fifo<disciplines::Red, LeavingBytes>;

/// A first-in first-out queue behind a rule that may drop early. Its buffer counts packets.
#[derive(Clone, Debug)]
pub struct Fifo<A, L>(Departures<A, L>);

impl DropTail {
    /// An empty queue that holds `most` packets, the one in transmission included; `None` is
    /// unlimited.
    #[must_use]
    pub fn new(most: Option<u64>) -> Self {
        Self(Departures::of_packets(most, AdmitAll))
    }
}

impl Red {
    /// An empty queue that holds `most` packets, the one in transmission included; `early` is for
    /// early drops.
    #[must_use]
    pub fn new(config: disciplines::RedConfig, most: Option<u64>, early: Stream) -> Self {
        let limits = Limits { packets: most, ..Limits::default() };
        Self(Departures::new(limits, disciplines::Red::new(config, early)))
    }
}

/// Passes on what the queue publishes.
struct Told<'a, P>(&'a mut P);

impl<P: QueueProbe> disciplines::QueueProbe<()> for Told<'_, P> {
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
        match self.0.offer(now, arriving, link, &mut Told(probe)) {
            Ok(Departure { leaves, found, .. }) => {
                Verdict::Departs { leaves, found: found as usize }
            }
            Err(_) => Verdict::Dropped,
        }
    }

    #[inline(always)]
    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        self.0.advance_to(now, &mut Told(probe));
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
    struct Heard {
        seen: Vec<usize>,
        held: Vec<(usize, Nanos)>,
        averages: usize,
        early: usize,
    }

    impl QueueProbe for Heard {
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
            assert!(self.seen.len() == self.averages, "it is told of first");
            self.early += 1;
        }
    }

    #[test]
    fn the_one_in_transmission_counts_and_departures_come_first() {
        let mut link = transmitter(Some(12_000_000_000), 1500); // 1500 bytes take 1000 ns
        let mut queue = DropTail::new(Some(2));
        let mut heard = Heard::default();
        let mut offer = |now| queue.offer(now, &Packet::default(), &mut link, &mut heard);
        assert_eq!(offer(0), Verdict::Departs { leaves: 1000, found: 0 });
        assert_eq!(offer(0), Verdict::Departs { leaves: 2000, found: 1 });
        assert_eq!(offer(999), Verdict::Dropped);
        assert_eq!(offer(1000), Verdict::Departs { leaves: 3000, found: 1 });
        let (seen, held) = (vec![0, 1, 2, 1], vec![(0, 0), (1, 0), (2, 1000), (1, 1000)]);
        assert_eq!(heard, Heard { seen, held, ..Heard::default() });
        assert_eq!((queue.held(), queue.ahead(1500)), (2, 2000));
    }

    #[test]
    fn early_drops_are_told_of_after_their_arrival_and_none_where_there_is_no_room() {
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
            let mut heard = Heard::default();
            let accepted = (0..6).filter(|_| {
                red.offer(0, &Packet::default(), &mut link, &mut heard) != Verdict::Dropped
            });
            assert_eq!(accepted.count(), 4);
            assert_eq!((heard.seen, heard.averages), (vec![0, 1, 2, 3, 4, 4], 6));
            assert_eq!(heard.early, early);
        }
    }
}
