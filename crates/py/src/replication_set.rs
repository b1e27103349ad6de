//! Replications of one run of the packet engine or of a fixed point.

use tcpcast_fixed_point::{FixedPointConfig, FixedPointReplication};
use tcpcast_sim::probe::{Probes, SimulatedCapture};
use tcpcast_sim::{
    ConservationError, Replication, Replications, RunConfig, RunControl, RunLimit, StopReason,
};

/// Replications of the packet engine, or of a fixed point.
pub(crate) enum ReplicationSet {
    Packet(Replications),
    FixedPoint(Replications<dyn FixedPointReplication>),
}

impl ReplicationSet {
    pub(crate) fn new_packet_runs(config: &RunConfig, count: u32) -> Self {
        Self::Packet(Replications::new(config, count))
    }

    pub(crate) fn new_fixed_point_runs(
        config: &RunConfig,
        spec: &FixedPointConfig,
        count: u32,
    ) -> Self {
        Self::FixedPoint(tcpcast_fixed_point::fixed_point_replications(config, spec, count))
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
        control: &RunControl,
    ) -> StopReason {
        match self {
            Self::Packet(runs) => runs.advance(goal, threads, control),
            Self::FixedPoint(runs) => runs.advance(goal, threads, control),
        }
    }

    pub(crate) fn flush(&mut self) -> Result<Vec<&Probes>, ConservationError> {
        match self {
            Self::Packet(runs) => runs.flush(),
            Self::FixedPoint(runs) => runs.flush(),
        }
    }

    /// All created replications.
    pub(crate) fn replications(&self) -> Vec<&dyn Replication> {
        match self {
            Self::Packet(runs) => runs.created_replications().collect(),
            Self::FixedPoint(runs) => {
                runs.created_replications().map(FixedPointReplication::as_replication).collect()
            }
        }
    }

    /// All created replications of a fixed point; empty for the packet engine.
    pub(crate) fn fixed_points(&self) -> Vec<&dyn FixedPointReplication> {
        match self {
            Self::Packet(_) => Vec::new(),
            Self::FixedPoint(runs) => runs.created_replications().collect(),
        }
    }

    pub(crate) fn capture_mut(&mut self, index: usize) -> Option<&mut SimulatedCapture> {
        match self {
            Self::Packet(runs) => runs.capture_mut(index),
            Self::FixedPoint(runs) => runs.capture_mut(index),
        }
    }
}
