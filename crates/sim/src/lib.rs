//! Packet-level TCP simulation in virtual time, without I/O.
//!
//! A [`Simulation`] runs a [`RunConfig`] of plain numbers in integer nanoseconds, and [`Probes`]
//! record its events. The same configuration and seed yield bit-identical results on any machine
//! and with any number of threads.

mod balance;
pub mod clock;
mod config;
pub mod cross;
mod event_queue;
mod jitter;
mod loss;
mod network;
mod packet;
mod population;
pub mod probe;
pub mod queue;
pub mod random;
mod rounds;
mod run;
pub mod tcp;
pub mod traffic;

pub use balance::Unbalanced;
pub use config::{AccessConfig, ClassConfig, HopConfig, ReturnConfig, RunConfig};
pub use event_queue::wheel;
pub use jitter::JitterConfig;
pub use loss::{BottleneckLoss, LinkLoss, LossModel, LossPlace};
pub use network::hops;
pub use packet::{Kind, Label, Packet};
pub use probe::{ProbeConfig, Probes};
pub use run::{
    Control, Replication, Replications, RunLimit, Simulation, StopReason, Watch, run_bytes,
};
pub use traffic::{Begin, Distribution, FileSize, Rounding, Start, Traffic};
