//! Analysis of one direction of a TCP connection, segment by segment.
//!
//! A [`Flow`](flow::Flow) tracks the data of one end. It processes the segments sent by this end
//! ([`flow`]) and the acknowledgements of the other end ([`acknowledgements`]).
//! Memory per live connection is bounded: segments in flight, counters, and a few hundred recent
//! events.

mod acknowledgements;
mod duplicates;
mod exchanges;
mod failure;
mod flight;
mod flow;
mod growth;
mod histogram;
mod indications;
mod intervals;
mod direction_stats;
mod limits;
mod numbering;
mod offload;
mod recovery;
mod report;
mod rounds;
mod packed_rounds;
mod rtt;
mod scoreboard;
mod sequence;
mod side;
mod evidence;
mod out_of_window;
mod negotiated;
mod sequence_plot;

pub(crate) use duplicates::{RecentSegments, SAME_IDS, is_copy};
pub(crate) use exchanges::{Exchanges, FlowState, DataEvent};
pub(crate) use failure::{EndTracker, ConnectionView};
pub(crate) use flow::{Flow, ConnectionContext};
pub(crate) use direction_stats::EventQuota;
pub(crate) use side::Tap;
pub(crate) use negotiated::NegotiatedOptions;

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
pub use side::Side;
pub use evidence::Evidence;
pub use sequence_plot::{Mark, Point};
