//! Hops in series: all hops of the path, including the bottleneck.
//!
//! Data packets pass the stages of the path in order, from the ingress link to the egress link. A
//! *shared* hop is a queue for packets of all sources, so each packet has an event there. A
//! *per-source* hop is computed directly, like the access links. The bottleneck is also a stage;
//! see `bottleneck.rs`.
//!
//! Acknowledgements do not queue at hops of the forward path: each hop adds a transmission time and
//! a propagation delay. If there is a return link, it is a shared hop for acknowledgements and
//! replaces the return direction of the bottleneck (`return_link.rs`).

mod forwarding;
mod in_flight;
mod per_source_hop;
mod return_counters;
mod return_link;
mod shared_hop;

use crate::clock::{Nanos, transmission_time};
use crate::config::{HopConfig, RunConfig};
use crate::packet::Packet;
use crate::probe::Probes;
use in_flight::PacketsInFlight;
pub use per_source_hop::{HopOutcome, PerSourceHop};
use return_counters::ReturnLinkCounters;
pub(super) use shared_hop::SharedHop;

/// One hop of the path and the propagation delay behind it.
#[derive(Debug)]
pub(super) struct HopStage {
    delay: Nanos,
    pub(super) kind: StageKind,
}

#[derive(Debug)]
pub(super) enum StageKind {
    PerSource(Box<PerSourceHop>),
    Shared(Box<SharedHop>),
    /// The bottleneck; the propagation delay behind it depends on the class.
    Bottleneck,
}

/// A packet that the queue of a hop dropped after accepting it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DroppedAtHop {
    stage: usize,
    at: Nanos,
    packet: Packet,
}

/// All stages of the path and the packets between them.
#[derive(Debug)]
pub(crate) struct HopChain {
    pub(super) stages: Vec<HopStage>,
    /// Index of the first shared stage.
    first_shared: usize,
    bottleneck: usize,
    /// Number of stages of the forward path; the return link, if any, is the stage after the stages
    /// of the forward path.
    pub(super) forward: usize,
    pub(crate) acks: ReturnLinkCounters,
    /// Stages with separate events: departures of held packets, or cross packets.
    pub(super) busy: Vec<usize>,
    /// Packets in flight to the stages of the forward path and to the egress links.
    pub(super) arrivals: PacketsInFlight,
    /// Dropped packets whose sources have not been notified yet.
    pub(super) drops: Vec<DroppedAtHop>,
}

impl HopChain {
    /// Creates the hops of one replication.
    pub(crate) fn new(config: &RunConfig, replication: u32, return_lookahead: Nanos) -> Self {
        let stage = |(index, hop): (usize, &HopConfig)| HopStage {
            delay: hop.delay,
            kind: if hop.shared {
                StageKind::Shared(Box::new(SharedHop::new(hop, config, replication, index)))
            } else {
                StageKind::PerSource(Box::new(PerSourceHop::new(hop, config, replication, index)))
            },
        };
        let bottleneck = config.hops_before.len();
        let mut stages: Vec<HopStage> = config.hops_before.iter().enumerate().map(stage).collect();
        stages.push(HopStage { delay: 0, kind: StageKind::Bottleneck });
        stages.extend((bottleneck + 1..).zip(&config.hops_after).map(stage));
        let forward = stages.len();
        stages.extend(config.return_link.as_ref().map(|link| HopStage {
            delay: 0,
            kind: StageKind::Shared(Box::new(SharedHop::new_return_link(
                link,
                config,
                replication,
                forward,
            ))),
        }));
        let is_own = |stage: &HopStage| matches!(stage.kind, StageKind::PerSource(_));
        let busy = |stage: &HopStage| matches!(&stage.kind, StageKind::Shared(hop) if hop.has_departure_or_cross_events());
        Self {
            first_shared: stages.iter().take_while(|stage| is_own(stage)).count(),
            bottleneck,
            forward,
            acks: ReturnLinkCounters::new(config.ack_bytes, return_lookahead),
            busy: (0..stages.len()).filter(|stage| busy(&stages[*stage])).collect(),
            stages,
            arrivals: PacketsInFlight::new(forward + 1),
            drops: Vec::new(),
        }
    }

    /// Whether there is a shared hop before the bottleneck.
    pub(crate) fn has_shared_hop_before_bottleneck(&self) -> bool {
        self.first_shared != self.bottleneck
    }

    /// Whether the first hop is a per-source hop.
    pub(crate) fn starts_with_per_source_hop(&self) -> bool {
        self.first_shared > 0
    }

    /// Whether sources have not been notified of dropped packets yet.
    pub(crate) fn has_unreported_drops(&self) -> bool {
        !self.drops.is_empty()
    }

    /// Whether a stage is a shared hop other than the bottleneck.
    fn is_shared_stage(&self, stage: usize) -> bool {
        matches!(self.stages.get(stage), Some(HopStage { kind: StageKind::Shared(_), .. }))
    }

    /// Number of data packets in flight between hops or held by them.
    pub(crate) fn packets_in_flight(&self) -> u64 {
        let waiting = |stage: &HopStage| match &stage.kind {
            StageKind::Shared(hop) => hop.waiting_packets(),
            StageKind::PerSource(_) | StageKind::Bottleneck => 0,
        };
        let held: u64 = self.stages[..self.forward].iter().map(waiting).sum();
        self.arrivals.len() as u64 + held
    }

    /// Number of acknowledgements in the queue of the return link.
    pub(crate) fn waiting_acks(&self) -> u64 {
        match self.stages.get(self.forward) {
            Some(HopStage { kind: StageKind::Shared(hop), .. }) => hop.waiting_packets(),
            _ => 0,
        }
    }

    /// Reports departures up to `now` to the counters.
    pub(crate) fn advance_to(&mut self, now: Nanos, probes: &mut Probes) {
        let (forward, late) = (self.forward, self.acks.late);
        for (index, (stage, counters)) in self.stages.iter_mut().zip(&mut probes.hops).enumerate() {
            match &mut stage.kind {
                StageKind::Shared(hop) if index == forward => {
                    hop.advance_to(now.saturating_sub(late), counters)
                }
                StageKind::Shared(hop) => hop.advance_to(now, counters),
                StageKind::PerSource(hop) => {
                    hop.report_time_ahead(now, counters);
                    hop.copy_cross_statistics(counters);
                }
                StageKind::Bottleneck => {}
            }
        }
    }

    /// Whether no packet is in flight or queued, as of the last `advance_to`.
    pub(crate) fn is_empty(&self) -> bool {
        let empty = |stage: &HopStage| match &stage.kind {
            StageKind::Shared(hop) => hop.held_packets() == 0,
            StageKind::PerSource(_) | StageKind::Bottleneck => true,
        };
        self.arrivals.len() == 0 && self.stages.iter().all(empty)
    }

    /// Resets the state of empty hops before a new isolated transfer.
    pub(crate) fn reset_for_next_transfer(&mut self) {
        for stage in &mut self.stages {
            match &mut stage.kind {
                StageKind::PerSource(hop) => hop.reset_for_next_transfer(),
                StageKind::Shared(hop) => hop.reset_for_next_transfer(),
                StageKind::Bottleneck => {}
            }
        }
    }
}

/// Number of stages with counters: all, or 0 if the bottleneck is the only hop.
#[must_use]
pub fn stage_count(config: &RunConfig) -> usize {
    let forward = config.hops_before.len() + 1 + config.hops_after.len();
    if config.has_hops() { forward + usize::from(config.return_link.is_some()) } else { 0 }
}

/// Time that a data packet of `bytes` takes from the first hop to the first shared hop.
#[must_use]
pub fn time_to_first_shared_hop(config: &RunConfig, bytes: u32) -> Nanos {
    let per_source = config.hops_before.iter().take_while(|hop| !hop.shared);
    per_source.map(|hop| transmission_time(bytes, hop.rate_bps) + hop.delay).sum()
}
