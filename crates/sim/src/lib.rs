//! Packet-level TCP simulation in virtual time, without I/O.
//!
//! A [`Simulation`] runs a [`RunConfig`] of plain numbers in integer nanoseconds, and [`Probes`]
//! record its events. The same configuration and seed yield bit-identical results on any machine
//! and with any number of threads.

pub mod clock;
mod config;
mod conservation;
pub mod cross;
mod event_queue;
pub mod flows;
mod jitter;
mod loss;
mod network;
mod packet;
mod population;
pub mod probe;
pub mod queue;
pub mod random;
mod replication;
mod round_loss;
mod run;
mod segments;
pub mod traffic;

pub use config::{AccessConfig, ClassConfig, HopConfig, ReturnLinkConfig, RunConfig};
pub use conservation::ConservationError;
pub use event_queue::timer_wheel;
pub use jitter::JitterConfig;
pub use loss::{BottleneckLoss, LinkLossConfig, LossModel, LossPlace};
pub use network::hops;
pub use packet::{Packet, PacketKind, PacketLabel};
pub use probe::{ProbeConfig, Probes};
pub use replication::{Replication, Replications, RunControl, RunLimit, RunWatch, StopReason};
pub use run::{Simulation, run_bytes};
pub use traffic::{
    BulkStartTimes, Distribution, FileSize, OnOffInitialState, SizeRounding, Traffic,
};
