//! What passes a hop that is not the measured one.

use super::{CrossCounters, CrossEvent, LinkCell, LoadCounters, Occupancy, Probes, SourceRecord};
use crate::clock::Nanos;
use crate::packet::Packet;
use crate::queue::{QueueProbe, RateCounters};

/// The counters of one hop: counts, and how full it was.
///
/// That of a shared hop hears of its queue; that of hops of the sources' own, all taken as one, of
/// each packet that they carry, as of the moment at which it comes.
#[derive(Clone, Debug, Default)]
pub struct HopCounters {
    /// Data packets that came.
    pub arrived: u64,
    /// Dropped by the queue.
    pub queue_drops: u64,
    /// Lost at random.
    pub random_drops: u64,
    /// How full the queue of a shared hop is.
    pub occupancy: Occupancy,
    /// What its link carried, where its rate is not constant.
    pub load: LoadCounters,
    /// The outcome of cross traffic there.
    pub cross: CrossCounters,
    busy: Nanos,
    held: Nanos,
    longest: u64,
    /// Of the return link, which acknowledgements take: how much later than it happens it is told
    /// of; those of them that got through, and how long they waited for their transmission.
    return_delay: Option<Nanos>,
    passed: u64,
    waited: Nanos,
}

impl HopCounters {
    /// They are those of the return link, and told `late` after it happens.
    pub fn set_return_delay(&mut self, late: Nanos) {
        self.return_delay = Some(late);
    }

    /// An acknowledgement got through that had waited so long.
    pub fn passed(&mut self, waited: Nanos) {
        self.passed += 1;
        self.waited = self.waited.wrapping_add(waited);
    }

    /// A link of a source's own takes a packet: `service` on the link, `stay` from its arrival on.
    pub fn carried(&mut self, service: Nanos, stay: Nanos) {
        self.busy += service;
        self.held = self.held.wrapping_add(stay);
        self.longest = self.longest.max(stay.div_ceil(service.max(1)));
    }

    /// The warm-up is over.
    pub fn begin(&mut self, now: Nanos) {
        let mut occupancy = std::mem::take(&mut self.occupancy);
        occupancy.begin(now);
        self.load.begin();
        let return_delay = self.return_delay;
        *self = Self { occupancy, load: self.load, return_delay, ..Self::default() };
    }

    /// Time in which the link was busy, of all its links together.
    #[must_use]
    pub fn busy(&self) -> Nanos {
        self.busy + self.occupancy.busy()
    }

    /// Queue length times time, in packet nanoseconds.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held.wrapping_add(self.occupancy.integral())
    }

    /// The most packets that one queue held.
    #[must_use]
    pub fn longest(&self) -> u64 {
        let levels = self.occupancy.time_at().len().max(self.occupancy.seen_at().len());
        self.longest.max(levels.saturating_sub(1) as u64)
    }
}

impl Probes {
    /// A data packet was dropped at a hop that is not the bottleneck, by the queue or at random.
    pub fn dropped_at_hop(
        &mut self,
        stage: usize,
        now: Nanos,
        record: &SourceRecord,
        packet: &Packet,
        random: bool,
    ) {
        let counters = &mut self.hops[stage];
        let drops = if random { &mut counters.random_drops } else { &mut counters.queue_drops };
        *drops += 1;
        self.counters.add_hop_drop();
        self.lost(now, record, packet);
    }

    /// Brings the sums of the return link, if there is one, into the counters.
    pub(super) fn copy_return_sums(&mut self) {
        let Some(counters) = self.hops.last().filter(|counters| counters.return_delay.is_some())
        else {
            return;
        };
        let cells = [
            (LinkCell::ReturnArrived, counters.arrived),
            (LinkCell::ReturnDrops, counters.queue_drops + counters.random_drops),
            (LinkCell::ReturnBusy, counters.busy()),
            (LinkCell::ReturnPassed, counters.passed),
            (LinkCell::ReturnWaited, counters.waited),
        ];
        cells.into_iter().for_each(|(cell, value)| self.counters.set_link(cell, value));
    }
}

impl QueueProbe for HopCounters {
    fn queue_held(&mut self, packets: usize, until: Nanos) {
        self.occupancy.held(packets, until + self.return_delay.unwrap_or(0));
    }

    fn queue_seen(&mut self, packets: usize) {
        self.occupancy.seen(packets);
    }

    fn cross(&mut self, stream: usize, event: CrossEvent) {
        self.cross.count(stream, event);
    }

    fn cross_rates(&mut self, stream: usize, rates: &RateCounters) {
        self.cross.of(stream).rates.merge(rates);
    }
}

/// The sums of one hop over replications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopSums {
    /// Data packets that came.
    pub arrived: u64,
    /// Dropped by the queue.
    pub queue_drops: u64,
    /// Lost at random.
    pub random_drops: u64,
    /// See [`HopCounters::busy`].
    pub busy: Nanos,
    /// See [`HopCounters::held`].
    pub held: u64,
    /// See [`HopCounters::longest`].
    pub longest: u64,
    /// Bytes carried, where the rate is not constant.
    pub carried: u64,
    /// Bytes that could have been.
    pub capacity: u64,
}

impl HopSums {
    /// Adds another replication's counters.
    pub fn add(&mut self, counters: &HopCounters) {
        self.arrived += counters.arrived;
        self.queue_drops += counters.queue_drops;
        self.random_drops += counters.random_drops;
        self.busy += counters.busy();
        self.held = self.held.wrapping_add(counters.held());
        self.longest = self.longest.max(counters.longest());
        self.carried += counters.load.carried().bytes;
        self.capacity += counters.load.carried().capacity;
    }
}
