//! Packet-level TCP simulation in virtual time, without I/O.
//!
//! A [`Simulation`] takes a [`RunConfig`] of plain numbers and advances in integer nanoseconds;
//! [`Probes`] hear what happens. The same configuration and seed give the same figures, to the
//! byte, on any machine and any number of threads.

mod access;
mod acks;
mod agenda;
mod balance;
mod bursts;
pub mod clock;
mod config;
pub mod cross;
mod drops;
mod expiry;
mod heads;
pub mod hops;
mod jitter;
mod loss;
mod mean_field;
mod memory;
mod network;
mod packet;
pub mod probe;
pub mod queue;
pub mod random;
mod replications;
mod rounds;
mod run;
mod source;
pub mod tcp;
mod timers;
pub mod traffic;
mod transfers;
mod way;
pub mod wheel;

pub use balance::Unbalanced;
pub use config::{AccessConfig, ClassConfig, HopConfig, ReturnConfig, RunConfig};
pub use jitter::JitterConfig;
pub use loss::{BottleneckLoss, LossLaw};
pub use memory::bytes as run_bytes;
pub use packet::{Kind, Label, Packet};
pub use probe::{ProbeConfig, Probes};
pub use replications::{Control, Replication, Replications};
pub use run::{Goal, Simulation, Stop};
pub use traffic::{Begin, FileSize, Law, Rounding, Start, Traffic};
