//! Replications of a fixed point.

use crate::config::FixedPointConfig;
use crate::run::FixedPointReplication;
use std::sync::Arc;
use tcpcast_sim::Replications;
use tcpcast_sim::flows::NetworkConfig;

/// Creates `count` replications of a fixed point.
#[must_use]
pub fn create_replications(
    config: &NetworkConfig,
    spec: &FixedPointConfig,
    count: u32,
) -> Replications {
    let (config, spec) = (Arc::new(config.clone()), spec.clone());
    Replications::from_fn(count, move |number| {
        Box::new(FixedPointReplication::new(&config, &spec, number))
    })
}
