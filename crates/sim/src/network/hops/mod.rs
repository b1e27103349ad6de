//! Hops in series: what lies on the path beside the measured bottleneck.
//!
//! Data packets take the stages of the path one after the other, from the source's own link to the
//! receiver's. A *shared* hop is a queue where packets of many meet, so each of them has an event
//! there; one of each source's own is arithmetic, like the links at the ends. The bottleneck is a
//! stage as well; see `bottleneck.rs`.
//!
//! Acknowledgements meet nobody at hops of the forward path: they take the transmission time of one
//! and the propagation. Where they have a link of their own, the return link, it is a shared hop
//! for them in place of the bottleneck the other way (`return_link.rs`).

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

/// One hop of the path, and the propagation behind it.
#[derive(Debug)]
pub(super) struct Stage {
    delay: Nanos,
    pub(super) kind: StageKind,
}

#[derive(Debug)]
pub(super) enum StageKind {
    PerSource(Box<PerSourceHop>),
    Shared(Box<SharedHop>),
    /// The bottleneck; the propagation behind it is a matter of the class.
    Bottleneck,
}

/// A packet that had to leave the queue of a hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct DroppedFromQueue {
    stage: usize,
    at: Nanos,
    packet: Packet,
}

/// All stages of a run's path, and the packets between them.
#[derive(Debug)]
pub(crate) struct HopChain {
    pub(super) stages: Vec<Stage>,
    /// The stage at which packets of different sources meet first.
    first_shared: usize,
    bottleneck: usize,
    /// Stages of the forward path; the return link, if there is one, is a stage after them.
    pub(super) forward: usize,
    pub(crate) acks: ReturnCounters,
    /// Stages where something happens by itself: packets are held until the link is free, or cross
    /// packets come.
    pub(super) busy: Vec<usize>,
    /// Packets in flight to the stages of the forward path, and behind it.
    pub(super) arrivals: Arrivals,
    /// Their sources are still to be told.
    pub(super) dropped_from_queue: Vec<DroppedFromQueue>,
}

impl HopChain {
    /// The hops of one replication.
    pub(crate) fn new(config: &RunConfig, replication: u32, return_lookahead: Nanos) -> Self {
        let stage = |(at, hop): (usize, &HopConfig)| Stage {
            delay: hop.delay,
            kind: if hop.shared {
                StageKind::Shared(Box::new(SharedHop::new(hop, config, replication, at)))
            } else {
                StageKind::PerSource(Box::new(PerSourceHop::new(hop, config, replication, at)))
            },
        };
        let bottleneck = config.before.len();
        let mut stages: Vec<Stage> = config.before.iter().enumerate().map(stage).collect();
        stages.push(Stage { delay: 0, kind: StageKind::Bottleneck });
        stages.extend((bottleneck + 1..).zip(&config.after).map(stage));
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
            busy: (0..stages.len()).filter(|at| busy(&stages[*at])).collect(),
            stages,
            arrivals: Arrivals::new(forward + 1),
            dropped_from_queue: Vec::new(),
        }
    }

    /// Whether packets of different sources meet before the bottleneck.
    pub(crate) fn is_shared_before_bottleneck(&self) -> bool {
        self.first_shared != self.bottleneck
    }

    /// Whether packets take a hop of the source's own before they meet others.
    pub(crate) fn starts_per_source(&self) -> bool {
        self.first_shared > 0
    }

    /// Whether sources are still to be told of packets that had to go.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped_from_queue.is_empty()
    }

    /// Whether packets of different sources meet at a stage beside the bottleneck.
    fn is_shared(&self, stage: usize) -> bool {
        matches!(self.stages.get(stage), Some(Stage { kind: StageKind::Shared(_), .. }))
    }

    /// Data packets in flight here and in no other place.
    pub(crate) fn in_flight(&self) -> u64 {
        let waiting = |stage: &Stage| match &stage.kind {
            StageKind::Shared(hop) => hop.waiting(),
            StageKind::PerSource(_) | StageKind::Bottleneck => 0,
        };
        let held: u64 = self.stages[..self.forward].iter().map(waiting).sum();
        self.arrivals.len() as u64 + held
    }

    /// Tells the counters what has left by `now`.
    pub(crate) fn advance_to(&mut self, now: Nanos, probes: &mut Probes) {
        let (forward, late) = (self.forward, self.acks.late);
        for (at, (stage, counters)) in self.stages.iter_mut().zip(&mut probes.hops).enumerate() {
            match &mut stage.kind {
                StageKind::Shared(hop) if at == forward => {
                    hop.advance_to(now.saturating_sub(late), counters)
                }
                StageKind::Shared(hop) => hop.advance_to(now, counters),
                StageKind::PerSource(hop) => hop.report_cross_traffic(counters),
                StageKind::Bottleneck => {}
            }
        }
    }

    /// Whether no packet is here; of queues, as of the last time that they were settled.
    pub(crate) fn is_empty(&self) -> bool {
        let empty = |stage: &Stage| match &stage.kind {
            StageKind::Shared(hop) => hop.held() == 0,
            StageKind::PerSource(_) | StageKind::Bottleneck => true,
        };
        self.arrivals.len() == 0 && self.stages.iter().all(empty)
    }

    /// Forgets the past of hops that are empty, for a transfer from fresh state.
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

/// How many stages are to have counters: all, or none where there is only the bottleneck.
#[must_use]
pub fn stages_of(config: &RunConfig) -> usize {
    let forward = config.before.len() + 1 + config.after.len();
    if config.has_hops() { forward + usize::from(config.return_link.is_some()) } else { 0 }
}

/// Time that a data packet of `bytes` takes from the first hop to where packets of different sources
/// meet.
#[must_use]
pub fn time_to_first_shared(config: &RunConfig, bytes: u32) -> Nanos {
    let own = config.before.iter().take_while(|hop| !hop.shared);
    own.map(|hop| transmission_time(bytes, hop.rate_bps) + hop.delay).sum()
}
