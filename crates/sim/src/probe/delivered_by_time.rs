//! Packets that endless flows have delivered by given times after their start.

use super::{Probes, SourceRecord};
use crate::clock::Nanos;

/// Packets delivered in order by given times, per flow.
///
/// The count at a time is stored when the first later packet arrives. Times count from the earliest
/// time at which the flow could send data: after its handshake, if there is one.
#[derive(Clone, Debug, Default)]
pub struct DeliveredByTime {
    /// Times after the start of a flow, ascending.
    times: Vec<Nanos>,
    flows: Vec<FlowDeliveries>,
}

/// Counts of one flow.
#[derive(Clone, Debug, Default)]
struct FlowDeliveries {
    /// Packets delivered in order so far.
    current: u32,
    /// Packets delivered in order by each past time.
    by_time: Vec<u32>,
}

impl DeliveredByTime {
    /// Creates empty counters for the given times, in ascending order.
    #[must_use]
    pub fn new(times: &[Nanos]) -> Self {
        Self { times: times.to_vec(), flows: Vec::new() }
    }

    /// Whether no times are configured.
    #[must_use]
    pub fn has_no_times(&self) -> bool {
        self.times.is_empty()
    }

    /// Records that flow `flow`, which started at `started`, has received `packets` in order,
    /// including the packet that arrives now.
    pub fn record_arrival(&mut self, now: Nanos, flow: usize, started: Nanos, packets: u32) {
        // A packet that arrives exactly at a configured time is included in the count of this time.
        self.store_counts_until(now.saturating_sub(1), flow, started);
        self.flows[flow].current = packets;
    }

    /// Stores the counts for all times up to `now`; all arrivals up to `now` must have been
    /// recorded.
    pub fn store_counts_until(&mut self, now: Nanos, flow: usize, started: Nanos) {
        if self.flows.len() <= flow {
            self.flows.resize(flow + 1, FlowDeliveries::default());
        }
        let FlowDeliveries { current, by_time } = &mut self.flows[flow];
        let past = self.times[by_time.len()..].iter().take_while(|time| started + **time <= now);
        let past = by_time.len() + past.count();
        by_time.resize(past, *current);
    }

    /// Packets that flow `flow` delivered in order by each past time.
    #[must_use]
    pub fn deliveries_of_flow(&self, flow: usize) -> &[u32] {
        self.flows.get(flow).map_or(&[], |flow| &flow.by_time)
    }
}

impl Probes {
    /// Records a data packet after which the receiver has `packets` in order.
    #[inline(never)]
    pub fn record_in_order_delivery(
        &mut self,
        now: Nanos,
        record: &SourceRecord,
        source: u32,
        packets: u32,
    ) {
        self.delivered.record_arrival(now, source as usize, record.started, packets);
    }

    /// Stores the counts of source `source` for all times up to `now`.
    pub fn store_delivered_counts(&mut self, now: Nanos, record: &SourceRecord, source: usize) {
        self.delivered.store_counts_until(now, source, record.started);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arriving_exactly_at_a_time_count_for_it() {
        let mut counters = DeliveredByTime::new(&[10, 20, 30, 40]);
        counters.record_arrival(105, 1, 100, 1);
        counters.record_arrival(110, 1, 100, 2);
        counters.record_arrival(111, 1, 100, 3);
        assert_eq!(counters.deliveries_of_flow(1), [2]);
        counters.record_arrival(135, 1, 100, 9);
        assert_eq!(counters.deliveries_of_flow(1), [2, 3, 3]);
        counters.store_counts_until(139, 1, 100);
        assert_eq!(counters.deliveries_of_flow(1), [2, 3, 3]);
        counters.store_counts_until(140, 1, 100);
        assert_eq!(counters.deliveries_of_flow(1), [2, 3, 3, 9]);
        assert!(
            counters.deliveries_of_flow(0).is_empty() && counters.deliveries_of_flow(7).is_empty()
        );
    }

    #[test]
    fn flow_without_deliveries_counts_zero() {
        let mut counters = DeliveredByTime::new(&[10, 20]);
        counters.store_counts_until(115, 0, 100);
        assert_eq!(counters.deliveries_of_flow(0), [0]);
    }
}
