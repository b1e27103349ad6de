//! TCP analysis of packet captures.
//!
//! A [`Reader`] reads the TCP segments of a capture from a stream; [`Connections`] analyses them
//! per connection.

mod analysis;
mod between;
mod connection;
mod frame;
mod reader;
mod segment;

pub use analysis::{
    Announced, Cause, Causes, ConnectionReport, Counts, DEPTHS, DirectionReport, Durations, End,
    Evidence, Exchange, Failure, FailureDetails, INTERVAL_S, Indication, Indications, Interval,
    Kind, LIMITS, Limit, Limitation, Mark, Point, Retransmission, Round, RoundTrips, Side,
    SlowStart, Spurious, Stage,
};
pub use between::{ClockOffset, Comparison, Passage, TapComparison};
pub use connection::{Connections, Limits};
pub use frame::Tunnels;
pub use reader::{Damage, Defect, ReadError, Reader, Skip, Skipped, Stopped, Summary};
pub use segment::{Endpoint, Flags, MAX_SACK_BLOCKS, Nanos, Options, Segment};
