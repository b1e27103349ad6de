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

mod arrivals;
mod forwarding;
mod per_source;
mod return_counters;
mod return_link;
mod shared;

use crate::clock::{Nanos, transmission_time};
use crate::config::{HopConfig, RunConfig};
use crate::packet::Packet;
use crate::probe::Probes;
use arrivals::Arrivals;
pub use per_source::{HopOutcome, PerSourceHop};
use return_counters::ReturnCounters;
pub(super) use shared::SharedHop;

/// One hop of the path and the propagation delay behind it.
#[derive(Debug)]
pub(super) struct Stage {
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
pub(super) struct HopDrop {
    stage: usize,
    at: Nanos,
    packet: Packet,
}

/// All stages of the path and the packets between them.
#[derive(Debug)]
pub(crate) struct HopChain {
    pub(super) stages: Vec<Stage>,
    /// Index of the first shared stage.
    first_shared: usize,
    bottleneck: usize,
    /// Number of stages of the forward path; the return link, if any, is the stage after them.
    pub(super) forward: usize,
    pub(crate) acks: ReturnCounters,
    /// Stages with separate events: departures of held packets, or cross packets.
    pub(super) busy: Vec<usize>,
    /// Packets in flight to the stages of the forward path and to the egress links.
    pub(super) arrivals: Arrivals,
    /// Dropped packets whose sources have not been notified yet.
    pub(super) drops: Vec<HopDrop>,
}

impl HopChain {
    /// Creates the hops of one replication.
    pub(crate) fn new(config: &RunConfig, replication: u32, return_lookahead: Nanos) -> Self {
        let stage = |(index, hop): (usize, &HopConfig)| Stage {
            delay: hop.delay,
            kind: if hop.shared {
                StageKind::Shared(Box::new(SharedHop::new(hop, config, replication, index)))
            } else {
                StageKind::PerSource(Box::new(PerSourceHop::new(hop, config, replication, index)))
            },
        };
        let bottleneck = config.hops_before.len();
        let mut stages: Vec<Stage> = config.hops_before.iter().enumerate().map(stage).collect();
        stages.push(Stage { delay: 0, kind: StageKind::Bottleneck });
        stages.extend((bottleneck + 1..).zip(&config.hops_after).map(stage));
        let forward = stages.len();
        stages.extend(config.return_link.as_ref().map(|link| Stage {
            delay: 0,
            kind: StageKind::Shared(Box::new(SharedHop::new_return_link(
                link,
                config,
                replication,
                forward,
            ))),
        }));
        let is_own = |stage: &Stage| matches!(stage.kind, StageKind::PerSource(_));
        let busy =
            |stage: &Stage| matches!(&stage.kind, StageKind::Shared(hop) if hop.has_events());
        Self {
            first_shared: stages.iter().take_while(|stage| is_own(stage)).count(),
            bottleneck,
            forward,
            acks: ReturnCounters::new(config.ack_bytes, return_lookahead),
            busy: (0..stages.len()).filter(|stage| busy(&stages[*stage])).collect(),
            stages,
            arrivals: Arrivals::new(forward + 1),
            drops: Vec::new(),
        }
    }

    /// Whether there is a shared hop before the bottleneck.
    pub(crate) fn is_shared_before_bottleneck(&self) -> bool {
        self.first_shared != self.bottleneck
    }

    /// Whether the first hop is a per-source hop.
    pub(crate) fn starts_per_source(&self) -> bool {
        self.first_shared > 0
    }

    /// Whether sources have not been notified of dropped packets yet.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.drops.is_empty()
    }

    /// Whether a stage is a shared hop other than the bottleneck.
    fn is_shared(&self, stage: usize) -> bool {
        matches!(self.stages.get(stage), Some(Stage { kind: StageKind::Shared(_), .. }))
    }

    /// Number of data packets in flight between hops or held by them.
    pub(crate) fn in_flight(&self) -> u64 {
        let waiting = |stage: &Stage| match &stage.kind {
            StageKind::Shared(hop) => hop.waiting(),
            StageKind::PerSource(_) | StageKind::Bottleneck => 0,
        };
        let held: u64 = self.stages[..self.forward].iter().map(waiting).sum();
        self.arrivals.len() as u64 + held
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
                StageKind::PerSource(hop) => hop.report_cross_traffic(counters),
                StageKind::Bottleneck => {}
            }
        }
    }

    /// Whether no packet is in flight or queued, as of the last `advance_to`.
    pub(crate) fn is_empty(&self) -> bool {
        let empty = |stage: &Stage| match &stage.kind {
            StageKind::Shared(hop) => hop.held() == 0,
            StageKind::PerSource(_) | StageKind::Bottleneck => true,
        };
        self.arrivals.len() == 0 && self.stages.iter().all(empty)
    }

    /// Resets the state of empty hops before a new isolated transfer.
    pub(crate) fn restart(&mut self) {
        for stage in &mut self.stages {
            match &mut stage.kind {
                StageKind::PerSource(hop) => hop.restart(),
                StageKind::Shared(hop) => hop.restart(),
                StageKind::Bottleneck => {}
            }
        }
    }
}

/// Number of stages with counters: all, or 0 if the bottleneck is the only hop.
#[must_use]
pub fn stages_of(config: &RunConfig) -> usize {
    let forward = config.hops_before.len() + 1 + config.hops_after.len();
    if config.has_hops() { forward + usize::from(config.return_link.is_some()) } else { 0 }
}

/// Time that a data packet of `bytes` takes from the first hop to the first shared hop.
#[must_use]
pub fn time_to_first_shared(config: &RunConfig, bytes: u32) -> Nanos {
    let per_source = config.hops_before.iter().take_while(|hop| !hop.shared);
    per_source.map(|hop| transmission_time(bytes, hop.rate_bps) + hop.delay).sum()
}
