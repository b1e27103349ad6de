//! Packet-level TCP simulation in virtual time, without I/O.
//!
//! A [`FlowSimulation`](flows::FlowSimulation) runs a [`NetworkConfig`](flows::NetworkConfig) of
//! plain numbers in integer nanoseconds, and [`Probes`] record its events. The same configuration
//! and seed yield bit-identical results on any machine and with any number of threads.

pub mod clock;
mod conservation;
pub mod cross;
pub mod flows;
mod jitter;
mod loss;
mod merge;
mod packet;
mod population;
pub mod probe;
pub mod queue;
pub mod random;
mod replication;
mod round_loss;
pub mod traffic;

pub use conservation::ConservationError;
pub use jitter::JitterConfig;
pub use loss::{LinkLossConfig, LossModel, LossPlace};
pub use merge::Merge;
pub use packet::{Packet, PacketKind};
pub use probe::{ProbeConfig, Probes};
pub use replication::{Replication, Replications, RunControl, RunLimit, RunWatch, StopReason};
pub use traffic::{
    BulkStartTimes, Distribution, FileSize, OnOffInitialState, SizeRounding, Traffic,
};
