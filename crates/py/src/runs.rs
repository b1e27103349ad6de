//! The replications of one run, of whichever engine.

use tcpcast_fixed_point::{FixedPointConfig, Iterated};
use tcpcast_sim::probe::{Capture, Probes};
use tcpcast_sim::{
    Control, Replication, Replications, RunConfig, RunLimit, StopReason, Unbalanced,
};

/// Replications of the packet engine, or of a fixed point.
pub(crate) enum Runs {
    Packet(Replications),
    FixedPoint(Replications<dyn Iterated>),
}

impl Runs {
    pub(crate) fn packet(config: &RunConfig, count: u32) -> Self {
        Self::Packet(Replications::new(config, count))
    }

    pub(crate) fn fixed_point(config: &RunConfig, asked: &FixedPointConfig, count: u32) -> Self {
        Self::FixedPoint(tcpcast_fixed_point::replications(config, asked, count))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Packet(runs) => runs.len(),
            Self::FixedPoint(runs) => runs.len(),
        }
    }

    pub(crate) fn advance(
        &mut self,
        goal: RunLimit,
        threads: usize,
        control: &Control,
    ) -> StopReason {
        match self {
            Self::Packet(runs) => runs.advance(goal, threads, control),
            Self::FixedPoint(runs) => runs.advance(goal, threads, control),
        }
    }

    pub(crate) fn flush(&mut self) -> Result<Vec<&Probes>, Unbalanced> {
        match self {
            Self::Packet(runs) => runs.flush(),
            Self::FixedPoint(runs) => runs.flush(),
        }
    }

    /// The replications that are set up.
    pub(crate) fn runs(&self) -> Vec<&dyn Replication> {
        match self {
            Self::Packet(runs) => runs.runs().collect(),
            Self::FixedPoint(runs) => runs.runs().map(Iterated::replication).collect(),
        }
    }

    /// Likewise where they are of a fixed point; none of another run.
    pub(crate) fn fixed_points(&self) -> Vec<&dyn Iterated> {
        match self {
            Self::Packet(_) => Vec::new(),
            Self::FixedPoint(runs) => runs.runs().collect(),
        }
    }

    pub(crate) fn capture_mut(&mut self, index: usize) -> Option<&mut Capture> {
        match self {
            Self::Packet(runs) => runs.capture_mut(index),
            Self::FixedPoint(runs) => runs.capture_mut(index),
        }
    }
}
