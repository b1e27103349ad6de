//! A network of links: packets follow routes over links that they share with other packets.
//!
//! ```text
//! send -> link -> link -> ... -> rest of the path -> delivered
//!
//! link: ECN remark -> policer -> loss -> [ queue discipline | transmitter ] -> loss -> jitter -> delay
//! ```
//!
//! The crate has no clock and performs no I/O: [`Network::send`] takes the current time in integer
//! nanoseconds, [`Network::next_time`] returns the time of the next event, and [`Network::step`]
//! processes it and notifies a [`NetworkObserver`]. Therefore a simulator in virtual time and an
//! emulator in real time can use the same network.

mod counters;
mod histogram;
mod link;
mod network;
mod pending;

pub use counters::{DropCause, LinkCounters, PacketAndByteCount, QueueOccupancy, Service};
pub use histogram::TimeHistogram;
pub use link::{Jitter, Link, LinkChange, LinkConfig, SharedServer};
pub use network::{LinkId, Network, NetworkObserver, Passage, RouteId};
