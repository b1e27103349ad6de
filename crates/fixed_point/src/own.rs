//! Hops that each flow has to itself, with cross traffic or without: routers of the recursion
//! whose service times are their own.
//!
//! They are the packet engine's. Feedback on a loss there is instantaneous, as in the shared
//! router.

use tcpcast_sim::clock::Nanos;
use tcpcast_sim::hops::{HopOutcome, PerSourceHop};
use tcpcast_sim::probe::{Probes, SourceRecord};
use tcpcast_sim::{HopConfig, Packet, RunConfig};

/// Such hops one after the other.
#[derive(Debug)]
pub(super) struct OwnHops {
    /// The place of the first among all hops of the path.
    first: usize,
    /// Each with the propagation behind it.
    hops: Vec<(PerSourceHop, Nanos)>,
    packet_bytes: u32,
}

impl OwnHops {
    pub(super) fn new(
        hops: &[HopConfig],
        first: usize,
        config: &RunConfig,
        replication: u32,
    ) -> Self {
        let hop = |(at, hop): (usize, &HopConfig)| {
            (PerSourceHop::new(hop, config, replication, at), hop.delay)
        };
        let hops = (first..).zip(hops).map(hop).collect();
        Self { first, hops, packet_bytes: config.packet_bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    /// A packet comes at `at`: when it will be behind them, or when it is lost. Packets of a flow
    /// are to be offered in order.
    pub(super) fn pass(
        &mut self,
        mut at: Nanos,
        packet: &Packet,
        record: &SourceRecord,
        probes: &mut Probes,
    ) -> Result<Nanos, Nanos> {
        for (stage, (hop, delay)) in (self.first..).zip(&mut self.hops) {
            let counters = &mut probes.hops[stage];
            match hop.offer(packet.source(), self.packet_bytes, at, counters) {
                HopOutcome::Leaves(leaves) => at = leaves + *delay,
                HopOutcome::Lost { at, random } => {
                    probes.dropped_at_hop(stage, at, record, packet, random);
                    return Err(at);
                }
            }
        }
        Ok(at)
    }

    /// Tells the counters of the cross traffic.
    pub(super) fn settle(&self, probes: &mut Probes) {
        for (counters, (hop, _)) in probes.hops.iter_mut().skip(self.first).zip(&self.hops) {
            hop.report_cross_traffic(counters);
        }
    }
}

/// Loss feedback to come: when, and of which packet.
#[derive(Clone, Debug, Default)]
pub(super) struct LossFeedback(Vec<(Nanos, u32)>);

impl LossFeedback {
    pub(super) fn add(&mut self, at: Nanos, number: u32) {
        self.0.push((at, number));
    }

    /// Takes the first that has come.
    pub(super) fn take(&mut self, now: Nanos) -> Option<u32> {
        let at = self.0.iter().position(|(due, _)| *due <= now)?;
        Some(self.0.remove(at).1)
    }
}
