//! Per-source hops, such as access routers with one user.

use crate::clock::{Nanos, transmission_time};
use crate::config::{HopConfig, RunConfig};
use crate::cross::{ArrivalProcess, FluidBins, FluidHop, FluidHopSourceState};
use crate::loss::{LinkLossConfig, LinkLossState, LossPlace};
use crate::network::access_links::AccessLink;
use crate::probe::{FluidSums, HopCounters};
use crate::random::{NamedStream, RandomStream, StreamPurpose};

/// Outcome of a packet at a per-source hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopOutcome {
    /// The packet is transmitted; its last bit leaves at this time.
    Leaves(Nanos),
    /// The packet is lost, at random or because the buffer is full.
    Lost {
        /// Time of the loss: on arrival, or behind the link when the last bit has left.
        at: Nanos,
        /// Whether the loss is random.
        random: bool,
    },
}

/// The first-in first-out links of all sources at one stage.
///
/// The departure time of a packet is known on arrival. Packets may be enqueued ahead of time, as
/// long as the packets of each source are enqueued in order.
#[derive(Debug)]
pub struct PerSourceHop {
    /// Link properties, for packets of `packet_bytes`.
    link: AccessLink,
    packet_bytes: u32,
    /// Time at which the link of each source becomes free; sources that have not sent may be
    /// missing.
    free: Vec<Nanos>,
    loss: Option<LinkLossConfig>,
    losses: Vec<LinkLossState>,
    cross: Option<Box<PerSourceCrossTraffic>>,
    seed: u64,
    replication: u32,
    stage: u32,
}

/// Cross traffic at the hop of each source.
#[derive(Debug)]
struct PerSourceCrossTraffic {
    streams: Vec<(u32, ArrivalProcess)>,
    bins: FluidBins,
    packet_ns: f64,
    limit: Option<u64>,
    /// Created at the first packet, on the thread of the replication.
    hop: Option<FluidHop>,
    sources: Vec<FluidHopSourceState>,
}

impl PerSourceCrossTraffic {
    fn new(hop: &HopConfig, run: &RunConfig, stage: usize) -> Option<Self> {
        let streams = run.cross_streams_at_stage(stage);
        let (_, first) = streams.first()?;
        let bins = FluidBins { bin: first.bin, bins: first.bins, series: first.series };
        let rate = hop.rate_bps?;
        let packet_ns = f64::from(run.packet_bytes) * 8e9 / rate as f64;
        let streams =
            streams.into_iter().map(|(index, stream)| (index, stream.process.clone())).collect();
        Some(Self { streams, bins, packet_ns, limit: hop.buffer, hop: None, sources: Vec::new() })
    }

    /// Departure time of a packet of `source` that arrives at `at`; `None` if it is lost. `name`
    /// contains the seed, replication and stage of the random streams.
    fn offer_packet(&mut self, source: u32, at: Nanos, name: (u64, u32, u32)) -> Option<Nanos> {
        let (seed, replication, stage) = name;
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
    /// Creates the hop `hop` of a run at index `stage` of its path.
    #[must_use]
    pub fn new(hop: &HopConfig, run: &RunConfig, replication: u32, stage: usize) -> Self {
        Self {
            link: AccessLink {
                data_time: transmission_time(run.packet_bytes, hop.rate_bps),
                ack_time: transmission_time(run.ack_bytes, hop.rate_bps),
                delay: hop.delay,
                limit: hop.buffer.unwrap_or(u64::MAX),
                rate_bps: hop.rate_bps,
            },
            packet_bytes: run.packet_bytes,
            free: Vec::new(),
            loss: hop.loss,
            losses: Vec::new(),
            cross: PerSourceCrossTraffic::new(hop, run, stage).map(Box::new),
            seed: run.seed,
            replication,
            stage: stage as u32,
        }
    }

    /// Enqueues a packet of `bytes` of `source` at time `at`.
    pub fn offer_packet(
        &mut self,
        source: u32,
        bytes: u32,
        at: Nanos,
        counters: &mut HopCounters,
    ) -> HopOutcome {
        counters.arrived += 1;
        if self.cross.is_some() {
            return self.offer_with_cross_traffic(source, at, counters);
        }
        let index = source as usize;
        if index >= self.free.len() {
            self.free.resize(index + 1, 0);
        }
        if self.loses_packet_at(source, LossPlace::Before) {
            return HopOutcome::Lost { at, random: true };
        }
        let free = &mut self.free[index];
        let link = &self.link;
        let usual = bytes == self.packet_bytes;
        let time = if usual { link.data_time } else { link.transmission_time_of(bytes) };
        if !link.has_buffer_room_with_packet_time(time, at, *free) {
            return HopOutcome::Lost { at, random: false };
        }
        *free = at.max(*free) + time;
        let leaves = *free;
        self.count_transmission(source, time, at, leaves, counters)
    }

    /// Counts a packet that arrives at `at`, takes `time` on the link, and leaves at `leaves`.
    fn count_transmission(
        &mut self,
        source: u32,
        time: Nanos,
        at: Nanos,
        leaves: Nanos,
        counters: &mut HopCounters,
    ) -> HopOutcome {
        counters.count_per_source_packet(time, leaves - at);
        if self.loses_packet_at(source, LossPlace::Behind) {
            return HopOutcome::Lost { at: leaves, random: true };
        }
        HopOutcome::Leaves(leaves)
    }

    #[cold]
    fn offer_with_cross_traffic(
        &mut self,
        source: u32,
        at: Nanos,
        counters: &mut HopCounters,
    ) -> HopOutcome {
        if self.loses_packet_at(source, LossPlace::Before) {
            return HopOutcome::Lost { at, random: true };
        }
        let name = (self.seed, self.replication, self.stage);
        let cross = self.cross.as_mut();
        match cross.and_then(|cross| cross.offer_packet(source, at, name)) {
            Some(leaves) => {
                self.count_transmission(source, self.link.data_time, at, leaves, counters)
            }
            None => HopOutcome::Lost { at, random: false },
        }
    }

    /// Reports the part of the counted times that is after `now`: packets are counted on arrival,
    /// but a long queue may be transmitted after the end of the run.
    pub fn report_time_ahead(&self, now: Nanos, counters: &mut HopCounters) {
        let (mut busy, mut held) = (0, 0_u64);
        if self.link.data_time == 0 {
            return; // Packets leave on arrival.
        }
        for free in self.free.iter().filter(|free| **free > now) {
            let left = free - now;
            let packets = left.div_ceil(self.link.data_time);
            let earlier = self.link.data_time.wrapping_mul(packets * (packets - 1) / 2);
            busy += left;
            held = held.wrapping_add(packets.wrapping_mul(left).wrapping_sub(earlier));
        }
        counters.set_time_ahead(busy, held);
    }

    /// Copies the statistics of the cross traffic to the counters.
    pub fn copy_cross_statistics(&self, counters: &mut HopCounters) {
        let Some(hop) = self.cross.as_ref().and_then(|cross| cross.hop.as_ref()) else { return };
        for stream in hop.streams() {
            let lost = stream.load * hop.loss_ratio();
            let counters = counters.cross.stream_mut(stream.index);
            counters.rates = stream.rates;
            counters.fluid = FluidSums { series: 1, load: stream.load, lost };
        }
    }

    fn loses_packet_at(&mut self, source: u32, at: LossPlace) -> bool {
        let Some(loss) = self.loss else { return false };
        while self.losses.len() <= source as usize {
            let entity = self.losses.len() as u32;
            let (seed, replication, stage) = (self.seed, self.replication, self.stage);
            let stream = RandomStream::for_entity_at_hop(
                seed,
                replication,
                entity,
                StreamPurpose::HopLoss,
                stage,
            );
            self.losses.push(LinkLossState::new(loss, stream));
        }
        self.losses[source as usize].loses_packet_at(at)
    }

    pub(crate) fn reset_for_next_transfer(&mut self) {
        self.losses.iter_mut().for_each(LinkLossState::restart_process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hop with a buffer of two packets that take `data_time` each.
    fn hop_of_two_packets(data_time: Nanos) -> PerSourceHop {
        PerSourceHop {
            link: AccessLink { data_time, ack_time: 27, delay: 0, limit: 2, rate_bps: None },
            packet_bytes: 1500,
            free: Vec::new(),
            loss: None,
            losses: Vec::new(),
            cross: None,
            seed: 1,
            replication: 0,
            stage: 0,
        }
    }

    #[test]
    fn packets_wait_only_for_packets_of_the_same_source() {
        let mut hop = hop_of_two_packets(1000);
        let mut counters = HopCounters::default();
        let mut offer = |source, at| hop.offer_packet(source, 1500, at, &mut counters);
        assert_eq!(offer(3, 0), HopOutcome::Leaves(1000));
        assert_eq!(offer(3, 0), HopOutcome::Leaves(2000));
        assert_eq!(offer(1, 500), HopOutcome::Leaves(1500));
        assert_eq!(offer(3, 999), HopOutcome::Lost { at: 999, random: false });
        assert_eq!(offer(3, 1000), HopOutcome::Leaves(3000));
        assert_eq!(
            (counters.arrived, counters.busy_time(), counters.queue_length_integral()),
            (5, 4000, 6000)
        );
        assert_eq!(counters.max_queue_length(), 2);
        // At 1200, source 1 sends for 300 ns more, and source 3 until 3000.
        hop.report_time_ahead(1200, &mut counters);
        assert_eq!((counters.busy_time(), counters.queue_length_integral()), (1900, 3100));
        counters.begin_measurement(1200);
        hop.report_time_ahead(2500, &mut counters);
        assert_eq!((counters.busy_time(), counters.queue_length_integral()), (1600, 2400));
    }

    #[test]
    fn hop_without_a_rate_holds_no_packets() {
        let mut hop = hop_of_two_packets(0);
        let mut counters = HopCounters::default();
        // The packet arrives after the end of the run.
        assert_eq!(hop.offer_packet(0, 1500, 7_000, &mut counters), HopOutcome::Leaves(7_000));
        hop.report_time_ahead(5_000, &mut counters);
        assert_eq!((counters.busy_time(), counters.queue_length_integral()), (0, 0));
    }
}
