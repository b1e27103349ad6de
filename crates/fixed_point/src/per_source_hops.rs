//! Per-source hops, with or without cross traffic, as routers of the recursion.
//!
//! The hops are implemented by the packet engine. Loss feedback is instantaneous, as for the shared
//! router.

use tcpcast_sim::clock::Nanos;
use tcpcast_sim::hops::{HopOutcome, PerSourceHop};
use tcpcast_sim::probe::{Probes, SourceRecord};
use tcpcast_sim::{HopConfig, Packet, RunConfig};

/// Per-source hops in series.
#[derive(Debug)]
pub(super) struct PerSourceHops {
    /// Index of the first hop among all hops of the path.
    first: usize,
    /// Hops with the propagation delay behind each hop.
    hops: Vec<(PerSourceHop, Nanos)>,
    packet_bytes: u32,
}

impl PerSourceHops {
    pub(super) fn new(
        hops: &[HopConfig],
        first: usize,
        config: &RunConfig,
        replication: u32,
    ) -> Self {
        let hop = |(index, hop): (usize, &HopConfig)| {
            (PerSourceHop::new(hop, config, replication, index), hop.delay)
        };
        let hops = (first..).zip(hops).map(hop).collect();
        Self { first, hops, packet_bytes: config.packet_bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    /// Passes a packet that arrives at `at`. Returns its time behind the last hop, or the time of
    /// its loss as the error. Packets of a flow must be passed in order.
    pub(super) fn pass_packet_through_hops(
        &mut self,
        mut at: Nanos,
        packet: &Packet,
        record: &SourceRecord,
        probes: &mut Probes,
    ) -> Result<Nanos, Nanos> {
        for (stage, (hop, delay)) in (self.first..).zip(&mut self.hops) {
            let counters = &mut probes.hops[stage];
            match hop.offer_packet(packet.source(), self.packet_bytes, at, counters) {
                HopOutcome::Leaves(leaves) => at = leaves + *delay,
                HopOutcome::Lost { at, random } => {
                    probes.count_hop_drop(stage, at, record, packet, random);
                    return Err(at);
                }
            }
        }
        Ok(at)
    }

    /// Updates the counters of cross traffic.
    pub(super) fn add_cross_counters_to_probes(&self, probes: &mut Probes) {
        for (counters, (hop, _)) in probes.hops.iter_mut().skip(self.first).zip(&self.hops) {
            hop.copy_cross_statistics(counters);
        }
    }
}

/// Future loss feedback: times and packet numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingLossFeedback(Vec<(Nanos, u32)>);

impl PendingLossFeedback {
    pub(super) fn add_feedback(&mut self, at: Nanos, number: u32) {
        self.0.push((at, number));
    }

    /// Removes the first entry that is due.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<u32> {
        let index = self.0.iter().position(|(due, _)| *due <= now)?;
        Some(self.0.remove(index).1)
    }
}
