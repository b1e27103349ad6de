//! What endless flows have delivered by given times after their start.

use super::{Probes, SourceRecord};
use crate::clock::Nanos;

/// Packets delivered in order by given times, of each flow.
///
/// A packet that arrives later than one of them says what had been delivered by then. The times
/// count from the first moment at which a flow could send data: after its handshake, if it has one.
#[derive(Clone, Debug, Default)]
pub struct DeliveredCounters {
    /// After a flow's start, rising.
    times: Vec<Nanos>,
    flows: Vec<Flow>,
}

/// One flow.
#[derive(Clone, Debug, Default)]
struct Flow {
    /// Packets delivered in order so far.
    so_far: u32,
    /// Those that were by each of the times that are over.
    by: Vec<u32>,
}

impl DeliveredCounters {
    /// Empty counters for these times, which rise.
    #[must_use]
    pub fn new(times: &[Nanos]) -> Self {
        Self { times: times.to_vec(), flows: Vec::new() }
    }

    /// Whether nobody asks.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.times.is_empty()
    }

    /// With the packet that arrives now flow `flow`, which started at `started`, has `packets` in
    /// order.
    pub fn arrived(&mut self, now: Nanos, flow: usize, started: Nanos, packets: u32) {
        // What arrives at a time is delivered by it.
        self.close(now.saturating_sub(1), flow, started);
        self.flows[flow].so_far = packets;
    }

    /// All that had arrived by `now` of flow `flow` has been told of.
    pub fn close(&mut self, now: Nanos, flow: usize, started: Nanos) {
        if self.flows.len() <= flow {
            self.flows.resize(flow + 1, Flow::default());
        }
        let Flow { so_far, by } = &mut self.flows[flow];
        let over = self.times[by.len()..].iter().take_while(|time| started + **time <= now);
        let over = by.len() + over.count();
        by.resize(over, *so_far);
    }

    /// Packets that flow `flow` had delivered in order by each of the times that are over.
    #[must_use]
    pub fn of(&self, flow: usize) -> &[u32] {
        self.flows.get(flow).map_or(&[], |flow| &flow.by)
    }
}

impl Probes {
    /// A data packet reached its receiver, which has so many in order now.
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

    /// All that source `source` had got by `now` has been told of.
    pub fn close_delivered(&mut self, now: Nanos, record: &SourceRecord, source: usize) {
        self.delivered.close(now, source, record.started);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_at_a_time_is_delivered_by_it() {
        let mut counters = DeliveredCounters::new(&[10, 20, 30, 40]);
        counters.arrived(105, 1, 100, 1);
        counters.arrived(110, 1, 100, 2);
        counters.arrived(111, 1, 100, 3);
        assert_eq!(counters.of(1), [2]);
        counters.arrived(135, 1, 100, 9);
        assert_eq!(counters.of(1), [2, 3, 3]);
        counters.close(139, 1, 100);
        assert_eq!(counters.of(1), [2, 3, 3]);
        counters.close(140, 1, 100);
        assert_eq!(counters.of(1), [2, 3, 3, 9]);
        assert!(counters.of(0).is_empty() && counters.of(7).is_empty());
    }

    #[test]
    fn a_flow_that_delivers_nothing_has_delivered_nothing() {
        let mut counters = DeliveredCounters::new(&[10, 20]);
        counters.close(115, 0, 100);
        assert_eq!(counters.of(0), [0]);
    }
}
