//! Counters of hops other than the bottleneck.

use super::{
    CrossCounters, CrossPacketEvent, LinkCell, LinkLoadCounters, Probes, QueueOccupancy,
    SourceRecord,
};
use crate::clock::Nanos;
use crate::packet::Packet;
use crate::queue::{CrossRateCounters, QueueProbe};

/// Counters of one hop: packets and queue length.
///
/// The queue of a shared hop reports its events. Per-source hops at one stage share one set of
/// counters and report each packet that they transmit, at its arrival.
#[derive(Clone, Debug, Default)]
pub struct HopCounters {
    /// Data packets that arrived.
    pub arrived: u64,
    /// Drops of the queue.
    pub queue_drops: u64,
    /// Random losses.
    pub random_drops: u64,
    /// Queue length of a shared hop.
    pub occupancy: QueueOccupancy,
    /// Load of the link, if its rate varies.
    pub load: LinkLoadCounters,
    /// Cross traffic at the hop.
    pub cross: CrossCounters,
    busy: Nanos,
    held: Nanos,
    longest: u64,
    /// Per-source hops: busy time and times of packets after now, which are counted at the arrival
    /// of a packet, and their values at the end of the warm-up.
    ahead: (Nanos, Nanos),
    ahead_at_start: (Nanos, Nanos),
    /// Return link only: delay between an event and its report; number of transmitted
    /// acknowledgements and their total waiting time.
    return_delay: Option<Nanos>,
    passed: u64,
    waited: Nanos,
}

impl HopCounters {
    /// Assigns the counters to the return link; its events are reported with a delay of
    /// `report_delay`.
    pub fn assign_to_return_link(&mut self, report_delay: Nanos) {
        self.return_delay = Some(report_delay);
    }

    /// Counts a transmitted acknowledgement and its waiting time.
    pub fn count_transmitted_ack(&mut self, waited: Nanos) {
        self.passed += 1;
        self.waited = self.waited.wrapping_add(waited);
    }

    /// Counts a packet of a per-source hop with its transmission time `service` and its total time
    /// at the hop `stay`.
    pub fn count_per_source_packet(&mut self, service: Nanos, stay: Nanos) {
        self.busy += service;
        self.held = self.held.wrapping_add(stay);
        self.longest = self.longest.max(stay.div_ceil(service.max(1)));
    }

    /// Sets the busy time and the times of packets that per-source hops have counted, but that are
    /// after now.
    pub fn set_time_ahead(&mut self, busy: Nanos, held: Nanos) {
        self.ahead = (busy, held);
    }

    /// Resets the sums at the end of the warm-up.
    pub fn begin_measurement(&mut self, now: Nanos) {
        let mut occupancy = std::mem::take(&mut self.occupancy);
        occupancy.reset_sums(now);
        self.load.begin_measurement();
        let (return_delay, ahead) = (self.return_delay, self.ahead);
        let load = self.load;
        *self =
            Self { occupancy, load, return_delay, ahead, ahead_at_start: ahead, ..Self::default() };
    }

    /// Total busy time of all links of the hop.
    #[must_use]
    pub fn busy_time(&self) -> Nanos {
        let own = (self.busy + self.ahead_at_start.0).saturating_sub(self.ahead.0);
        own + self.occupancy.busy_time()
    }

    /// Queue length integrated over time, in packet nanoseconds.
    #[must_use]
    pub fn queue_length_integral(&self) -> u64 {
        // A packet that has not arrived yet may be counted as a queue ahead.
        let own = self.held.wrapping_add(self.ahead_at_start.1).saturating_sub(self.ahead.1);
        own.wrapping_add(self.occupancy.queue_length_integral())
    }

    /// Maximum length of one queue.
    #[must_use]
    pub fn max_queue_length(&self) -> u64 {
        let levels =
            self.occupancy.time_by_length().len().max(self.occupancy.arrivals_by_length().len());
        self.longest.max(levels.saturating_sub(1) as u64)
    }
}

impl Probes {
    /// Counts a data packet that was dropped at a hop other than the bottleneck, by the queue or at
    /// random.
    pub fn count_hop_drop(
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
        self.count_loss(now, record, packet);
    }

    /// Copies the sums of the return link, if there is one, to the counters.
    pub(super) fn copy_return_link_sums(&mut self) {
        let Some(counters) = self.hops.last().filter(|counters| counters.return_delay.is_some())
        else {
            return;
        };
        let cells = [
            (LinkCell::ReturnArrived, counters.arrived),
            (LinkCell::ReturnDrops, counters.queue_drops + counters.random_drops),
            (LinkCell::ReturnBusy, counters.busy_time()),
            (LinkCell::ReturnPassed, counters.passed),
            (LinkCell::ReturnWaited, counters.waited),
        ];
        cells.into_iter().for_each(|(cell, value)| self.counters.set_link_cell(cell, value));
    }
}

impl QueueProbe for HopCounters {
    fn on_queue_length_interval(&mut self, packets: usize, until: Nanos) {
        self.occupancy.record_length_until(packets, until + self.return_delay.unwrap_or(0));
    }

    fn on_arrival_queue_length(&mut self, packets: usize) {
        self.occupancy.record_arrival(packets);
    }

    fn on_cross_packet(&mut self, stream: usize, event: CrossPacketEvent) {
        self.cross.count_event(stream, event);
    }

    fn on_cross_rates(&mut self, stream: usize, rates: &CrossRateCounters) {
        self.cross.stream_mut(stream).rates.merge(rates);
    }
}

/// Sums of one hop over replications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopTotals {
    /// Data packets that arrived.
    pub arrived: u64,
    /// Drops of the queue.
    pub queue_drops: u64,
    /// Random losses.
    pub random_drops: u64,
    /// See [`HopCounters::busy_time`].
    pub busy: Nanos,
    /// See [`HopCounters::queue_length_integral`].
    pub held: u64,
    /// See [`HopCounters::max_queue_length`].
    pub longest: u64,
    /// Bytes transmitted, if the rate varies.
    pub carried: u64,
    /// Bytes that could have been transmitted, if the rate varies.
    pub capacity: u64,
}

impl HopTotals {
    /// Adds the counters of another replication.
    pub fn add_counters(&mut self, counters: &HopCounters) {
        self.arrived += counters.arrived;
        self.queue_drops += counters.queue_drops;
        self.random_drops += counters.random_drops;
        self.busy += counters.busy_time();
        self.held = self.held.wrapping_add(counters.queue_length_integral());
        self.longest = self.longest.max(counters.max_queue_length());
        self.carried += counters.load.load_since_warm_up().bytes;
        self.capacity += counters.load.load_since_warm_up().capacity;
    }
}
