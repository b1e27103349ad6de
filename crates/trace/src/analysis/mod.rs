//! Analysis of one direction of a TCP connection, segment by segment.
//!
//! A [`Flow`](flow::Flow) tracks the data of one end. It processes the segments sent by this end
//! ([`flow`]) and the acknowledgements of the other end ([`acknowledgements`]).
//! Memory per live connection is bounded: segments in flight, counters, and a few hundred recent
//! events.

mod acknowledgements;
mod cause;
mod direction_stats;
mod duplicates;
mod evidence;
mod exchanges;
mod failure;
mod flight;
mod flow;
mod growth;
mod histogram;
mod indications;
mod intervals;
mod limits;
mod negotiated;
mod numbering;
mod offload;
mod out_of_window;
mod packed_rounds;
mod recovery;
mod report;
mod rounds;
mod rtt;
mod scoreboard;
mod sequence;
mod sequence_plot;
mod side;

pub(crate) use direction_stats::EventQuota;
pub(crate) use duplicates::{RecentSegments, SAME_IDS, is_copy};
pub(crate) use exchanges::{DataEvent, Exchanges, FlowState};
pub(crate) use failure::{ConnectionView, EndTracker};
pub(crate) use flow::{ConnectionContext, Flow};
pub(crate) use negotiated::NegotiatedOptions;
pub(crate) use side::Tap;

pub use evidence::Evidence;
pub use exchanges::Exchange;
pub use failure::{Failure, FailureDetails, Stage};
pub use indications::{DEPTHS, Indication, Indications};
pub use intervals::{INTERVAL_S, Interval};
pub use limits::{LIMITS, Limit, Limitation};
pub use recovery::{Cause, Kind};
pub use report::{
    Announced, Causes, ConnectionReport, Counts, DirectionReport, End, Retransmission, RoundTrips,
    SlowStart, Spurious,
};
pub use rounds::Round;
pub use rtt::Durations;
pub use sequence_plot::{Mark, Point};
pub use side::Side;
