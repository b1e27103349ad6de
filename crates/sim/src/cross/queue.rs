//! A queue with cross packets in it.
//!
//! It wraps any discipline. The packets of the streams are offered to it like those of sources, in
//! their order of time among all events; their outcome is counted and goes no further. For
//! the discipline each stream is a source, so for a fair queue it is a flow.

use super::{Arrivals, CrossConfig};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use crate::queue::{AnyQueue, Carried, CrossEvent, Passed, QueueDiscipline, QueueProbe, Verdict};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue with streams of cross traffic before it, or without any; the disciplines themselves know
/// nothing of them.
#[derive(Clone, Debug)]
pub struct CrossTrafficQueue {
    queue: AnyQueue,
    streams: Vec<Arrivals>,
    /// The place of each among all streams.
    places: Vec<usize>,
    /// The next packet of each stream; empty until the first is asked for.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// When the first of these comes.
    comes: Nanos,
    /// Packets of streams that are held and have not been served.
    waiting: u64,
    /// Times at which they left the queue less those at which they entered it, modulo 2^64; and the
    /// times at which they pushed a source's packet out.
    sojourns: u64,
}

/// What cross packets do to a queue shows in its length, but neither their finding it nor RED's
/// average of their arrivals is told: those are of the sources' packets.
struct LengthOnly<'a, P>(&'a mut P);

impl<P: QueueProbe> QueueProbe for LengthOnly<'_, P> {
    fn queue_held(&mut self, packets: usize, until: Nanos) {
        self.0.queue_held(packets, until);
    }
    fn queue_seen(&mut self, _packets: usize) {}
}

impl CrossTrafficQueue {
    /// A queue of a replication with these streams before it, each with its place among all.
    #[must_use]
    pub fn new(
        queue: AnyQueue,
        streams: &[(u32, &CrossConfig)],
        seed: u64,
        replication: u32,
    ) -> Self {
        let named = |(place, stream): &(u32, &CrossConfig)| {
            Arrivals::named(&stream.process, seed, replication, *place)
        };
        Self {
            queue,
            places: streams.iter().map(|(place, _)| *place as usize).collect(),
            streams: streams.iter().map(named).collect(),
            due: BinaryHeap::new(),
            comes: if streams.is_empty() { NEVER } else { 0 },
            waiting: 0,
            sojourns: 0,
        }
    }

    /// Each source is scaled to so many flows, a stream is one.
    #[must_use]
    pub fn among(mut self, scale: f64) -> Self {
        self.queue.charge_first(self.streams.len() as u32, scale);
        self
    }

    /// Whether packets wait until the link is free to take them.
    #[must_use]
    pub fn holds_packets(&self) -> bool {
        self.queue.holds_packets()
    }

    /// Whether there are streams.
    #[must_use]
    pub fn has_streams(&self) -> bool {
        !self.streams.is_empty()
    }

    /// The stream that sends as this source; `None` for a source of the scenario.
    fn stream_of(&self, source: u32) -> Option<usize> {
        let stream = source as usize;
        (stream < self.streams.len()).then_some(stream)
    }

    /// Streams come before sources.
    fn moved_up(&self, packet: &Packet) -> Packet {
        packet.of_source(packet.source() + self.streams.len() as u32)
    }

    fn moved_down(&self, packet: Packet) -> Packet {
        packet.of_source(packet.source() - self.streams.len() as u32)
    }

    /// A packet had to leave: it, if a source is to be told.
    fn count_eviction(
        &mut self,
        now: Nanos,
        packet: Packet,
        probe: &mut impl QueueProbe,
    ) -> Option<Packet> {
        let Some(stream) = self.stream_of(packet.source()) else {
            return Some(self.moved_down(packet));
        };
        self.waiting -= 1;
        self.sojourns = self.sojourns.wrapping_add(now);
        probe.cross(self.places[stream], CrossEvent::Dropped);
        None
    }

    /// The streams begin: the first of their series are drawn when the run does.
    fn begin(&mut self) {
        for (stream, arrivals) in (0..).zip(&mut self.streams) {
            self.due.push(Reverse((arrivals.next_time(), stream)));
        }
    }

    fn next_due(&self) -> Nanos {
        self.due.peek().map_or(NEVER, |due| due.0.0)
    }
}

impl QueueDiscipline for CrossTrafficQueue {
    const HOLDS_PACKETS: bool = true;
    const HAS_CROSS_TRAFFIC: bool = true;
    const ANY_LENGTH: bool = true;
    const DROPS_HELD_PACKETS: bool = true;

    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        let packet = self.moved_up(packet);
        match self.queue.offer(now, &packet, link, probe) {
            Verdict::Held { found, evicted: Some(packet) } => {
                Verdict::Held { found, evicted: self.count_eviction(now, packet, probe) }
            }
            verdict => verdict,
        }
    }

    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        self.queue.advance_to(now, probe);
    }

    fn restart(&mut self) {
        self.queue.restart();
    }

    fn held(&self) -> usize {
        self.queue.held()
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        self.queue.ahead(now)
    }

    fn cross_waited(&self, now: Nanos) -> u64 {
        self.sojourns.wrapping_add(self.waiting.wrapping_mul(now))
    }

    fn next_departure(&self) -> Nanos {
        self.queue.next_departure()
    }

    fn serve(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        let (leaves, packet) = self.queue.serve(link, probe)?;
        let Some(stream) = self.stream_of(packet.source()) else {
            return Some((leaves, self.moved_down(packet)));
        };
        self.waiting -= 1;
        self.sojourns = self.sojourns.wrapping_add(leaves);
        probe.cross(self.places[stream], CrossEvent::Carried);
        None
    }

    fn waiting(&self) -> u64 {
        self.queue.waiting() - self.waiting
    }

    fn passed(&self) -> Option<Passed> {
        self.queue.passed()
    }

    fn carried(&self, now: Nanos) -> Option<Carried> {
        self.queue.carried(now)
    }

    fn take_dropped(&mut self, into: &mut Vec<(Nanos, Packet)>, probe: &mut impl QueueProbe) {
        let known = into.len();
        self.queue.take_dropped(into, probe);
        if self.streams.is_empty() || into.len() == known {
            return;
        }
        for (at, packet) in into.split_off(known) {
            into.extend(self.count_eviction(at, packet, probe).map(|packet| (at, packet)));
        }
    }

    fn prefetch_ahead(&self, turns: usize, mut tell: impl FnMut(u32)) {
        let streams = self.streams.len() as u32;
        self.queue.prefetch_ahead(turns, |source| {
            if let Some(source) = source.checked_sub(streams) {
                tell(source);
            }
        });
    }

    fn next_cross_arrival(&self) -> Nanos {
        self.comes
    }

    fn on_cross_arrival(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<Packet> {
        let Some(Reverse((now, source))) = self.due.pop() else {
            self.begin();
            self.comes = self.next_due();
            return None;
        };
        let stream = source as usize;
        let arrivals = &mut self.streams[stream];
        self.due.push(Reverse((arrivals.next_time(), source)));
        probe.cross_rates(self.places[stream], &arrivals.take_rates());
        self.comes = self.next_due();
        probe.cross(self.places[stream], CrossEvent::Offered);
        let packet = Packet::new(source, 0, 0, crate::packet::Label::default());
        match self.queue.offer(now, &packet, link, &mut LengthOnly(probe)) {
            Verdict::Departs { leaves, .. } => {
                self.sojourns = self.sojourns.wrapping_add(leaves - now);
                probe.cross(self.places[stream], CrossEvent::Carried);
            }
            Verdict::Dropped => probe.cross(self.places[stream], CrossEvent::Dropped),
            Verdict::Held { evicted, .. } => {
                self.waiting += 1;
                self.sojourns = self.sojourns.wrapping_sub(now);
                let of_source = self.count_eviction(now, evicted?, probe);
                if of_source.is_some() {
                    self.sojourns = self.sojourns.wrapping_add(now);
                }
                return of_source;
            }
        }
        None
    }
}
