//! Replications of a fixed point, and their memory.

use crate::config::{FixedPointConfig, RoadConfig};
use crate::flows::{CrossFlow, ReferenceFlow};
use crate::run::FixedPointReplication;
use std::mem::size_of;
use tcpcast_sim::Replications;
use tcpcast_sim::probe::{CLASS_CELLS, LINK_CELLS, SIZE_CELLS};

/// Bytes per flow in addition to its state: packets in flight, and events.
const BYTES_PER_FLOW: u64 = 200;
/// Bytes per replication in addition to flows and sums: histograms, timing wheel.
const BYTES_PER_REPLICATION: u64 = 2_500_000;
/// Snapshots of the sums of both kinds of flows: the stored ones, and a copy for the caller.
const SNAPSHOTS: u64 = 4 * 128;

/// Creates `count` replications of a fixed point.
#[must_use]
pub fn create_replications(
    config: &RoadConfig,
    spec: &FixedPointConfig,
    count: u32,
) -> Replications {
    let (config, spec) = (config.clone(), spec.clone());
    Replications::from_fn(count, move |number| {
        Box::new(FixedPointReplication::new(&config, &spec, number))
    })
}

/// Approximate memory in bytes of `replications` replications.
#[must_use]
pub fn estimate_bytes(config: &RoadConfig, replications: u32) -> u64 {
    let flows: u64 = config.classes.iter().map(|class| u64::from(class.sources)).sum();
    let per_flow = size_of::<ReferenceFlow>().max(size_of::<CrossFlow>()) as u64 + BYTES_PER_FLOW;
    let rows = config.probes.size_bounds.len() + 1;
    let cells =
        LINK_CELLS.len() + config.classes.len() * CLASS_CELLS.len() + rows * SIZE_CELLS.len();
    let sums = SNAPSHOTS * (cells * size_of::<u64>()) as u64;
    (flows * per_flow + sums + BYTES_PER_REPLICATION).saturating_mul(u64::from(replications))
}
