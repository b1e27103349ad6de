//! Rates of links, and statistics of their queues. The disciplines belong to the crate `link`.

mod cross_statistics;
mod link_rate;

/// The disciplines of the crate `link`, and their parameters.
pub use tcpcast_link::queue as disciplines;

pub use cross_statistics::{CrossPacketEvent, CrossRateCounters};
pub use link_rate::{LinkLoad, LinkRate};
/// Token buckets and traces of packet opportunities.
pub use tcpcast_link::transmit::{OpportunityTrace, TokenBucketConfig};

use crate::clock::Nanos;

/// Waiting time and ECN mark of a packet that the link starts to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmittedPacketInfo {
    /// Time from arrival to the start of transmission.
    pub waited: Nanos,
    /// Whether the queue marked the packet.
    pub marked: bool,
}
