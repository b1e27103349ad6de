//! Fixed points: a few reference flows per class, simulated exactly, among cross flows drawn from
//! distributions measured on the reference flows (Baccelli, Hong and Liu, INRIA report 4154,
//! section 5).

mod config;
mod cross_flows;
mod cross_window;
mod distributions;
mod flow_events;
mod flow_probes;
mod flows;
mod per_source_hops;
mod reference_flows;
mod replications;
mod router_series;
mod run;
mod shared_router;

pub use config::{
    AccessConfig, ClassConfig, CrossConfig, CrossFlowScheme, CrossPacketTimeRule, FixedPointConfig,
    HopConfig, RoadConfig,
};
pub use replications::{create_replications, estimate_bytes};
pub use router_series::{LastDepartures, RouterSeries, SingleFlowRouter};
pub use run::{FixedPointReplication, STEP_CELLS};

#[cfg(test)]
#[path = "fixed_point_tests.rs"]
mod tests;
