//! Packets that endless flows have delivered by given times after their start.

use super::{Probes, SourceRecord};
use crate::clock::Nanos;

/// Packets delivered in order by given times, per flow.
///
/// The count at a time is stored when the first later packet arrives. Times count from the earliest
/// time at which the flow could send data: after its handshake, if there is one.
#[derive(Clone, Debug, Default)]
pub struct DeliveredCounters {
    /// Times after the start of a flow, ascending.
    times: Vec<Nanos>,
    flows: Vec<Flow>,
}

/// Counts of one flow.
#[derive(Clone, Debug, Default)]
struct Flow {
    /// Packets delivered in order so far.
    current: u32,
    /// Packets delivered in order by each past time.
    by_time: Vec<u32>,
}

impl DeliveredCounters {
    /// Creates empty counters for the given times, in ascending order.
    #[must_use]
    pub fn new(times: &[Nanos]) -> Self {
        Self { times: times.to_vec(), flows: Vec::new() }
    }

    /// Whether no times are configured.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.times.is_empty()
    }

    /// Records that flow `flow`, which started at `started`, has received `packets` in order,
    /// including the packet that arrives now.
    pub fn arrived(&mut self, now: Nanos, flow: usize, started: Nanos, packets: u32) {
        // A packet that arrives exactly at a configured time counts for it.
        self.close(now.saturating_sub(1), flow, started);
        self.flows[flow].current = packets;
    }

    /// Stores the counts for all times up to `now`; all arrivals up to `now` must have been
    /// recorded.
    pub fn close(&mut self, now: Nanos, flow: usize, started: Nanos) {
        if self.flows.len() <= flow {
            self.flows.resize(flow + 1, Flow::default());
        }
        let Flow { current, by_time } = &mut self.flows[flow];
        let past = self.times[by_time.len()..].iter().take_while(|time| started + **time <= now);
        let past = by_time.len() + past.count();
        by_time.resize(past, *current);
    }

    /// Packets that flow `flow` delivered in order by each past time.
    #[must_use]
    pub fn flow(&self, flow: usize) -> &[u32] {
        self.flows.get(flow).map_or(&[], |flow| &flow.by_time)
    }
}

impl Probes {
    /// Records a data packet after which the receiver has `packets` in order.
    #[inline(never)]
    pub fn delivered_in_order(
        &mut self,
        now: Nanos,
        record: &SourceRecord,
        source: u32,
        packets: u32,
    ) {
        self.delivered.arrived(now, source as usize, record.started, packets);
    }

    /// Stores the counts of source `source` for all times up to `now`.
    pub fn close_delivered(&mut self, now: Nanos, record: &SourceRecord, source: usize) {
        self.delivered.close(now, source, record.started);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arriving_exactly_at_a_time_count_for_it() {
        let mut counters = DeliveredCounters::new(&[10, 20, 30, 40]);
        counters.arrived(105, 1, 100, 1);
        counters.arrived(110, 1, 100, 2);
        counters.arrived(111, 1, 100, 3);
        assert_eq!(counters.flow(1), [2]);
        counters.arrived(135, 1, 100, 9);
        assert_eq!(counters.flow(1), [2, 3, 3]);
        counters.close(139, 1, 100);
        assert_eq!(counters.flow(1), [2, 3, 3]);
        counters.close(140, 1, 100);
        assert_eq!(counters.flow(1), [2, 3, 3, 9]);
        assert!(counters.flow(0).is_empty() && counters.flow(7).is_empty());
    }

    #[test]
    fn flow_without_deliveries_counts_zero() {
        let mut counters = DeliveredCounters::new(&[10, 20]);
        counters.close(115, 0, 100);
        assert_eq!(counters.flow(0), [0]);
    }
}
