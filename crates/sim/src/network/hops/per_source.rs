//! A hop of each source's own, such as an access router with one user.

use crate::clock::{Nanos, transmission_time};
use crate::config::{HopConfig, RunConfig};
use crate::cross::{CrossConfig, Fluid, FluidHop};
use crate::loss::{LinkLoss, LinkLosses, LossPlace};
use crate::network::access::AccessLink;
use crate::probe::{FluidSums, HopCounters};
use crate::random::{Named, Purpose, Stream};

/// What becomes of a packet there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopOutcome {
    /// Its last bit will have left at that time.
    Leaves(Nanos),
    /// It is lost, at random or for want of room.
    Lost {
        /// When: on arrival, or behind the link when its last bit has left.
        at: Nanos,
        /// At random.
        random: bool,
    },
}

/// The links of all sources at one stage; first in, first out.
///
/// A source's packets come in order, so when one leaves is known as soon as it comes; it may be
/// offered ahead of its time, as long as those of its source are offered one after the other.
#[derive(Debug)]
pub struct PerSourceHop {
    /// For packets of `packet_bytes`.
    link: AccessLink,
    packet_bytes: u32,
    /// When each source's link is free; sources that have sent nothing may be left out.
    free: Vec<Nanos>,
    loss: Option<LinkLoss>,
    losses: Vec<LinkLosses>,
    others: Option<Box<CrossTraffic>>,
    seed: u64,
    replication: u32,
    stage: u32,
}

/// Cross traffic at each source's hop.
#[derive(Debug)]
struct CrossTraffic {
    streams: Vec<(u32, CrossConfig)>,
    packet_ns: f64,
    most: Option<u64>,
    /// Drawn when the first packet comes: on the thread of its replication.
    hop: Option<FluidHop>,
    sources: Vec<Fluid>,
}

impl CrossTraffic {
    fn new(hop: &HopConfig, run: &RunConfig, stage: usize) -> Option<Self> {
        let streams: Vec<_> = run
            .cross_at(stage)
            .into_iter()
            .map(|(place, stream)| (place, stream.clone()))
            .collect();
        let rate = hop.rate_bps.filter(|_| !streams.is_empty())?;
        let packet_ns = f64::from(run.packet_bytes) * 8e9 / rate as f64;
        Some(Self { streams, packet_ns, most: hop.buffer, hop: None, sources: Vec::new() })
    }

    /// When a packet of `source` that comes at `at` will have left; `name` is of the streams drawn.
    fn offer(&mut self, source: u32, at: Nanos, name: (u64, u32, u32)) -> Option<Nanos> {
        let (seed, replication, stage) = name;
        let hop = self.hop.get_or_insert_with(|| {
            FluidHop::named(&self.streams, self.packet_ns, self.most, seed, replication)
        });
        while self.sources.len() <= source as usize {
            let next = self.sources.len() as u32;
            self.sources.push(hop.source(seed, replication, next, stage));
        }
        hop.offer(&mut self.sources[source as usize], at)
    }
}

impl PerSourceHop {
    /// The hop `hop` of a run, at place `stage` of all hops of its path.
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
            others: CrossTraffic::new(hop, run, stage).map(Box::new),
            seed: run.seed,
            replication,
            stage: stage as u32,
        }
    }

    /// A packet of `source`, whose packets have `bytes`, comes at `at`.
    pub fn offer(
        &mut self,
        source: u32,
        bytes: u32,
        at: Nanos,
        counters: &mut HopCounters,
    ) -> HopOutcome {
        counters.arrived += 1;
        if self.others.is_some() {
            return self.offer_among_cross_traffic(source, at, counters);
        }
        let index = source as usize;
        if index >= self.free.len() {
            self.free.resize(index + 1, 0);
        }
        if self.loses(source, LossPlace::Before) {
            return HopOutcome::Lost { at, random: true };
        }
        let free = &mut self.free[index];
        let link = &self.link;
        let usual = bytes == self.packet_bytes;
        let time = if usual { link.data_time } else { link.time_of(bytes) };
        if !link.has_room_for(time, at, *free) {
            return HopOutcome::Lost { at, random: false };
        }
        *free = at.max(*free) + time;
        let leaves = *free;
        self.carry(source, time, at, leaves, counters)
    }

    /// A packet that comes at `at` takes the link for `time` and will have left at `leaves`.
    fn carry(
        &mut self,
        source: u32,
        time: Nanos,
        at: Nanos,
        leaves: Nanos,
        counters: &mut HopCounters,
    ) -> HopOutcome {
        counters.carried(time, leaves - at);
        if self.loses(source, LossPlace::Behind) {
            return HopOutcome::Lost { at: leaves, random: true };
        }
        HopOutcome::Leaves(leaves)
    }

    #[cold]
    fn offer_among_cross_traffic(
        &mut self,
        source: u32,
        at: Nanos,
        counters: &mut HopCounters,
    ) -> HopOutcome {
        if self.loses(source, LossPlace::Before) {
            return HopOutcome::Lost { at, random: true };
        }
        let name = (self.seed, self.replication, self.stage);
        let others = self.others.as_mut();
        match others.and_then(|others| others.offer(source, at, name)) {
            Some(leaves) => self.carry(source, self.link.data_time, at, leaves, counters),
            None => HopOutcome::Lost { at, random: false },
        }
    }

    /// Tells the counters of the cross traffic.
    pub fn report_cross_traffic(&self, counters: &mut HopCounters) {
        let Some(hop) = self.others.as_ref().and_then(|others| others.hop.as_ref()) else { return };
        for stream in hop.streams() {
            let lost = stream.load * hop.loss_ratio();
            let of_stream = counters.cross.of(stream.index);
            of_stream.rates = stream.rates;
            of_stream.fluid = FluidSums { series: 1, load: stream.load, lost };
        }
    }

    fn loses(&mut self, source: u32, at: LossPlace) -> bool {
        let Some(loss) = self.loss else { return false };
        while self.losses.len() <= source as usize {
            let entity = self.losses.len() as u32;
            let (seed, replication, stage) = (self.seed, self.replication, self.stage);
            let stream = Stream::at_hop(seed, replication, entity, Purpose::HopLoss, stage);
            self.losses.push(LinkLosses::new(loss, stream));
        }
        self.losses[source as usize].loses(at)
    }

    pub(crate) fn restart(&mut self) {
        self.losses.iter_mut().for_each(LinkLosses::restart);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_waits_for_itself_alone() {
        let mut own = PerSourceHop {
            link: AccessLink { data_time: 1000, ack_time: 27, delay: 0, limit: 2, rate_bps: None },
            packet_bytes: 1500,
            free: Vec::new(),
            loss: None,
            losses: Vec::new(),
            others: None,
            seed: 1,
            replication: 0,
            stage: 0,
        };
        let mut counters = HopCounters::default();
        let mut offer = |source, at| own.offer(source, 1500, at, &mut counters);
        assert_eq!(offer(3, 0), HopOutcome::Leaves(1000));
        assert_eq!(offer(3, 0), HopOutcome::Leaves(2000));
        assert_eq!(offer(1, 500), HopOutcome::Leaves(1500));
        assert_eq!(offer(3, 999), HopOutcome::Lost { at: 999, random: false });
        assert_eq!(offer(3, 1000), HopOutcome::Leaves(3000));
        assert_eq!((counters.arrived, counters.busy(), counters.held()), (5, 4000, 6000));
        assert_eq!(counters.longest(), 2);
    }
}
