//! Per-source hops, with or without cross traffic, as routers of the recursion.
//!
//! Loss feedback is instantaneous, as for the shared router.

use crate::config::{CrossConfig, HopConfig, RoadConfig};
use tcpcast_sim::Packet;
use tcpcast_sim::clock::{Nanos, transmission_time};
use tcpcast_sim::cross::{ArrivalProcess, FluidBins, FluidHop, FluidHopSourceState};
use tcpcast_sim::probe::{Probes, SourceRecord};

/// The first-in first-out links of all sources at one stage.
///
/// The departure time of a packet is known on arrival. Packets may be enqueued ahead of time, as
/// long as the packets of each source are enqueued in order.
#[derive(Debug)]
struct PerSourceHop {
    /// Transmission time of a packet.
    service: Nanos,
    /// Propagation delay behind the hop.
    delay: Nanos,
    limit: Option<u64>,
    /// Time at which the link of each source becomes free; sources that have not sent may be
    /// missing.
    free: Vec<Nanos>,
    cross: Option<PerSourceCrossTraffic>,
}

/// Cross traffic at the hop of each source.
#[derive(Debug)]
struct PerSourceCrossTraffic {
    streams: Vec<(u32, ArrivalProcess)>,
    bins: FluidBins,
    packet_ns: f64,
    limit: Option<u64>,
    /// Seed, replication and stage of the random streams.
    name: (u64, u32, u32),
    /// Created at the first packet, on the thread of the replication.
    hop: Option<FluidHop>,
    sources: Vec<FluidHopSourceState>,
}

impl PerSourceCrossTraffic {
    fn new(hop: &HopConfig, run: &RoadConfig, replication: u32, stage: usize) -> Option<Self> {
        let (_, CrossConfig { fluid, .. }) = run.streams_at(stage).next()?;
        let streams = run.streams_at(stage);
        Some(Self {
            streams: streams.map(|(index, stream)| (index, stream.process.clone())).collect(),
            bins: *fluid,
            packet_ns: f64::from(run.packet_bytes) * 8e9 / hop.link.rate_bps? as f64,
            limit: hop.limit,
            name: (run.seed, replication, stage as u32),
            hop: None,
            sources: Vec::new(),
        })
    }

    /// Departure time of a packet of `source` that arrives at `at`; `None` if it is lost.
    fn offer_packet(&mut self, source: u32, at: Nanos) -> Option<Nanos> {
        let (seed, replication, stage) = self.name;
        let hop = self.hop.get_or_insert_with(|| {
            let Self { streams, bins, packet_ns, limit, .. } = self;
            FluidHop::for_replication(streams, *bins, *packet_ns, *limit, seed, replication)
        });
        while self.sources.len() <= source as usize {
            let next = self.sources.len() as u32;
            self.sources.push(hop.create_source_state(seed, replication, next, stage));
        }
        hop.offer_packet(&mut self.sources[source as usize], at)
    }
}

impl PerSourceHop {
    fn new(hop: &HopConfig, run: &RoadConfig, replication: u32, stage: usize) -> Self {
        Self {
            service: transmission_time(run.packet_bytes, hop.link.rate_bps),
            delay: hop.link.delay,
            limit: hop.limit,
            free: Vec::new(),
            cross: PerSourceCrossTraffic::new(hop, run, replication, stage),
        }
    }

    /// Departure time of a packet of `source` that arrives at `at`; `None` if it is lost.
    fn offer_packet(&mut self, source: u32, at: Nanos) -> Option<Nanos> {
        if let Some(cross) = &mut self.cross {
            return cross.offer_packet(source, at);
        }
        let index = source as usize;
        if index >= self.free.len() {
            self.free.resize(index + 1, 0);
        }
        let free = &mut self.free[index];
        // All packets take the same time, so the remaining busy time determines their number.
        let held = free.saturating_sub(at).div_ceil(self.service.max(1));
        if self.limit.is_some_and(|limit| held >= limit) {
            return None;
        }
        *free = at.max(*free) + self.service;
        Some(*free)
    }
}

/// Per-source hops in series.
#[derive(Debug)]
pub(super) struct PerSourceHops(Vec<PerSourceHop>);

impl PerSourceHops {
    /// Creates the hops; `first` is the index of the first one among all hops of the path.
    pub(super) fn new(
        hops: &[HopConfig],
        first: usize,
        config: &RoadConfig,
        replication: u32,
    ) -> Self {
        let hop = |(stage, hop)| PerSourceHop::new(hop, config, replication, stage);
        Self((first..).zip(hops).map(hop).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
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
        for hop in &mut self.0 {
            match hop.offer_packet(packet.source, at) {
                Some(leaves) => at = leaves + hop.delay,
                None => {
                    probes.count_drop_elsewhere(at, record, packet, false);
                    return Err(at);
                }
            }
        }
        Ok(at)
    }

    /// Updates the counters of cross traffic.
    pub(super) fn add_cross_counters_to_probes(&self, probes: &mut Probes) {
        for cross in self.0.iter().filter_map(|hop| hop.cross.as_ref()) {
            if let Some(hop) = &cross.hop {
                probes.cross.set_fluid(hop);
            }
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
