//! What TCP did in one direction of a connection, read from its segments one by one.
//!
//! A [`Flow`](flow::Flow) follows the data of one end. It is told of each segment that this end sends
//! ([`flow`]), and of each that the other end answers with ([`answers`]).
//! What it keeps while the connection lives is bounded: the segments in flight, counts, and a few hundred
//! recent events.

mod answers;
mod duplicates;
mod exchanges;
mod fate;
mod flight;
mod flow;
mod growth;
mod histogram;
mod indications;
mod intervals;
mod journal;
mod limits;
mod numbering;
mod offload;
mod recovery;
mod report;
mod rounds;
mod rows;
mod rtt;
mod scoreboard;
mod sequence;
mod side;
mod signs;
mod strays;
mod terms;
mod trail;

pub(crate) use duplicates::{Recent, SAME_IDS, copies};
pub(crate) use exchanges::{Exchanges, Standing, Turned};
pub(crate) use fate::{Ending, Seen};
pub(crate) use flow::{Flow, Outlook};
pub(crate) use journal::Budget;
pub(crate) use side::Tap;
pub(crate) use terms::Terms;

pub use exchanges::Exchange;
pub use fate::{Failure, Fate, Stage};
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
pub use signs::Evidence;
pub use trail::{Mark, Point};
