//! Rates of links, and statistics of their queues. The disciplines belong to the crate `link`.

mod cross_statistics;
mod link_rate;

/// The disciplines of the crate `link`, and their parameters.
pub use tcpcast_link::queue as disciplines;

pub use cross_statistics::{CrossPacketEvent, CrossRateCounters};
pub use link_rate::{LinkLoad, LinkRate};
/// Token buckets and traces of packet opportunities.
pub use tcpcast_link::transmit::{OpportunityTrace, TokenBucketConfig};
