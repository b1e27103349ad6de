//! Packet captures: what TCP did on each connection.

mod segment;

pub use segment::{Endpoint, Flags, MOST_SACK_BLOCKS, Nanos, Options, Segment};
